"""MATH §15, 'The rule', sentence by sentence; and the aim's side of it (MATH §16)."""

import math

import pytest
from fold_studies import Kept, kept, worker

from chainscout.counts import Counts
from chainscout.errors import InputError, LeaseLost, NothingFree, OutOfStep
from chainscout.journal.entry import End, Kind
from chainscout.paths import HOLE
from chainscout.policies import Policy
from chainscout.study import commands, stop
from chainscout.study.draws import UNKNOWN, Status
from chainscout.study.views import StopReason
from chainscout.study.walker import Walker
from chainscout.study.walks import walked_paths


def holes(study: Kept, name: str = "a"):
    """The slots without a value: the state that each leaves, and what it is."""
    return [(hole.source, hole.status) for hole in study.state.names[name].draws.holes if hole.is_slot]


def counts(study: Kept, name: str = "a"):
    """The counts of the chosen cut."""
    chain = study.state.names[name]
    return study.state.chosen_cut(chain).counts(chain.rows)


def leased(study: Kept, who: Walker, name: str = "a", state: int = 0, **options):
    """A lease of a path that stands in a state."""
    first = study.lease(who, chain=name)
    study.tell_leased(who, first, state)
    return study.lease(who, chain=name, **options)


@pytest.fixture
def study() -> Kept:
    return kept()


@pytest.fixture
def one() -> Walker:
    return worker("one")


@pytest.fixture
def two() -> Walker:
    return worker("two")


# -- slots


def test_one_walker_that_loses_nothing_has_the_old_counts_and_no_hole_but_its_step(study):
    states = [0, 1, 1, 0, 0, 1, 0, 1, 1, 1]
    for state in states:
        study.tell("a", state)
        assert holes(study) == [(state, Status.PENDING)]
    chain = study.state.names["a"]
    assert counts(study) == Counts.from_path(states, 2).rows()
    assert study.state.chosen_cut(chain).holes == {}
    assert chain.draws.candidates() == [0]


def test_a_first_state_is_no_draw_of_a_row(study, one):
    study.lease(one, chain="a")
    assert holes(study) == []


def test_a_step_has_its_slot_when_it_is_asked_for_and_not_when_it_is_told(study, one, two):
    early, late = leased(study, one), leased(study, two)
    study.tell_leased(two, late, 1)
    study.tell_leased(one, early, 1)
    order = [card.path for card in study.state.names["a"].draws.ordered() if card.step == 2]
    assert order == [early.path, late.path]


def test_a_plain_step_has_its_slot_from_the_tell_before_it(study):
    quick, slow = Walker(), Walker()
    study.tell("a", 0, slow)
    study.tell("a", 0, quick)
    study.tell("a", 1, quick)
    study.tell("a", 1, slow)
    order = [card.path for card in study.state.names["a"].draws.ordered() if card.step == 2]
    assert order == [1, 2]


def test_a_slot_stays_when_a_lease_is_renewed_given_back_and_taken_again(study, one, two):
    lease = leased(study, one)
    (hole,) = study.state.names["a"].draws.holes
    other = leased(study, two)
    study.do(commands.renew, lease.token, "a", 90_000)
    study.do(commands.give_back, lease.token, "a")
    again = study.lease(one, chain="a")
    assert again.path == lease.path
    assert study.state.names["a"].draws.holes[0] is hole
    study.tell_leased(two, other, 1)
    study.tell_leased(one, again, 0)
    order = [card.path for card in study.state.names["a"].draws.ordered() if card.step == 2]
    assert order == [lease.path, other.path]


# -- void slots (rule 1)


def test_a_slot_given_back_is_void_if_no_later_one_had_been_issued(study, one, two):
    lease = leased(study, one)
    study.do(commands.give_back, lease.token, "a")
    assert holes(study) == [(0, Status.RELEASED)]
    leased(study, two)
    assert holes(study) == [(0, Status.PENDING)], "only the new one"


def test_a_slot_given_back_is_a_hole_if_a_later_one_had_been_issued(study, one, two):
    lease = leased(study, one)
    leased(study, two, state=1)
    study.do(commands.give_back, lease.token, "a")
    assert holes(study) == [(0, Status.LOST), (1, Status.PENDING)]


def test_it_does_not_matter_whether_the_later_one_is_known(study, one, two):
    lease, other = leased(study, one), leased(study, two)
    study.tell_leased(two, other, 1)
    study.do(commands.give_back, lease.token, "a")
    assert holes(study) == [(0, Status.LOST)]


@pytest.mark.parametrize("end", [End.DUE, End.TERMINATED, End.TRUNCATED])
def test_an_end_by_a_rule_that_looks_at_the_path_alone_makes_no_hole(study, end):
    here, there = Walker(), Walker()
    study.tell("a", 0, here)
    study.tell("a", 1, there)
    study.do(commands.end_path, here, "a", end)
    assert holes(study) == [(1, Status.PENDING)]


@pytest.mark.parametrize(("end", "left"), [(End.UNKNOWN, Status.LOST), (End.LOST, Status.LOST)])
def test_an_end_that_nobody_explains_makes_a_hole_behind_which_others_were_issued(study, end, left):
    here, there = Walker(), Walker()
    study.tell("a", 0, here)
    study.tell("a", 1, there)
    study.do(commands.end_path, here, "a", end)
    assert holes(study) == [(0, left), (1, Status.PENDING)]


def test_an_end_that_nobody_explains_makes_a_hole_at_the_end_of_the_order_too(study):
    """A rig that breaks down on one outcome, and is started again, would drop this outcome."""
    study.tell("a", 0)
    study.do(commands.end_path, study.main, "a", End.UNKNOWN)
    assert holes(study) == [(0, Status.LOST)]


def test_a_state_that_ends_its_path_issues_no_further_slot(study):
    here, there = Walker(), Walker()
    study.tell("a", 0, here)
    study.tell("a", 0, there)
    study.tell("a", 1, here, ends=True)
    assert holes(study) == [(0, Status.PENDING)]
    assert study.tell("a", 1, here).path == 3


@pytest.mark.parametrize("gone", ["expires", "abandoned"])
def test_a_walker_that_is_gone_leaves_a_hole_even_at_the_end_of_the_order(study, one, gone):
    lease = leased(study, one)
    if gone == "expires":
        study.now += 61_000
        study.sweep()
    else:
        study.do(commands.give_back, lease.token, "a", lost=True)
    assert holes(study) == [(0, Status.LOST)]
    assert study.state.lost == 1


def test_an_orderly_close_voids_what_nothing_followed(study):
    here, there = Walker(), Walker()
    study.tell("a", 0, here)
    study.tell("b", 0, here)
    study.tell("b", 1, there)
    study.do(commands.close, {here.number: {0, 1}})
    assert holes(study, "a") == [(0, Status.RELEASED)]
    assert holes(study, "b") == [(0, Status.LOST), (1, Status.PENDING)]
    study.tell("a", 1, there)
    assert holes(study, "a") == [(1, Status.PENDING)]


def test_a_mere_exit_leaves_the_slot_pending(study):
    study.tell("a", 0)
    study.tell("a", 1, Walker(opened=study.state.head.number))
    assert holes(study) == [(0, Status.PENDING), (1, Status.PENDING)]


def test_who_stands_where_the_study_was_closed_goes_on_in_the_same_slot(study):
    study.tell("a", 0)
    study.tell("a", 1)
    number = study.state.names["a"].draws.holes[0].number
    study.do(commands.close, {study.main.number: {0}})
    again = Walker(opened=study.state.head.number, continuing=True)
    again.number = study.do(commands.go_on, again)
    assert holes(study) == [(1, Status.PENDING)], "its next step is asked for now, and keeps its slot"
    assert study.tell("a", 1, again) == (again.number, 0, 1, 3, True, False, False)
    assert study.state.names["a"].draws.cards[-1].number == number
    assert counts(study) == {0: {1: 1}, 1: {1: 1}}


def test_who_stands_there_begins_a_new_path_if_another_one_was_begun_meanwhile(study):
    study.tell("a", 0)
    study.do(commands.close, {study.main.number: {0}})
    study.tell("a", 1, Walker(opened=study.state.head.number))
    again = Walker(opened=study.state.head.number, continuing=True)
    assert study.tell("a", 1, again).path == 2, "the latest path of plain tells"


def test_a_step_that_lost_its_place_cannot_be_told_by_the_name_of_its_path(study):
    study.tell("a", 0)
    study.do(commands.close, {study.main.number: {0}})
    later = Walker(opened=study.state.head.number)
    study.tell("a", 0, later)
    with pytest.raises(OutOfStep, match="path 1 of the chain 'a' was closed, and another path of the chain went on"):
        study.tell("a", 1, later, path=1, step=2)


# -- holes (rule 2)


def test_a_value_that_comes_late_closes_its_hole_and_the_path_stays_ended(study, one):
    lease = leased(study, one)
    study.now += 61_000
    study.sweep()
    with pytest.raises(LeaseLost):
        study.tell_leased(one, lease, 1)
    told = study.tell_leased(one, lease, 1, late=True)
    assert told.late
    assert holes(study) == []
    assert study.state.names["a"].rows[0].counts == {1: 1}
    assert study.lease(one, chain="a").path == 2


def test_a_late_value_closes_its_hole_before_anybody_noticed_that_the_lease_had_ended(study, one):
    lease = leased(study, one)
    study.now += 61_000
    assert study.tell_leased(one, lease, 1, late=True).late
    assert study.state.lost == 1
    with pytest.raises(LeaseLost):
        study.tell_leased(one, lease, 1, late=True)


def test_who_said_that_no_step_was_made_cannot_tell_it_later(study, one, two):
    lease = leased(study, one)
    leased(study, two)
    study.do(commands.give_back, lease.token, "a")
    with pytest.raises(LeaseLost):
        study.tell_leased(one, lease, 1, late=True)


def test_no_cut_has_a_lease_whose_steps_are_told_in_one_go(study, one, two):
    lease = leased(study, one, steps=3, at_once=True)
    other = leased(study, two)
    for _ in range(4):
        study.tell_leased(two, other, 0)
        other = study.lease(two, chain="a")
    chain = study.state.names["a"]
    assert holes(study) == [(UNKNOWN, Status.PENDING), (0, Status.PENDING)]
    assert counts(study) == {}
    study.do(commands.tell_walk, lease.token, "a", [1, 1, 0], path=lease.path)
    assert counts(study) == {0: {0: 4, 1: 1}, 1: {1: 1, 0: 1}}
    assert [card.number for card in chain.draws.ordered() if card.path == lease.path][1:] == [lease.token] * 3


def test_a_walk_that_is_told_at_once_is_told_as_a_whole(study, one):
    lease = leased(study, one, steps=3, at_once=True)
    with pytest.raises(OutOfStep, match="for 3 observations of path 1, not for 2"):
        study.do(commands.tell_walk, lease.token, "a", [1, 1], path=lease.path)


def test_a_corrected_observation_is_a_hole_and_its_path_ends(study):
    for state in (0, 1, 0, 1):
        study.tell("a", state)
    study.do(commands.correct, study.main, "a", path=1, step=4)
    assert holes(study) == [(0, Status.LOST), (UNKNOWN, Status.LOST)], "the step after it may have been made"
    assert study.state.names["a"].transitions == 2
    assert study.tell("a", 0).path == 2
    with pytest.raises(OutOfStep, match="path 1 of the chain 'a' has ended"):
        study.do(commands.correct, study.main, "a", path=1, step=3)


# -- cuts (rule 3)


def test_the_candidates_are_before_the_1st_2nd_3rd_5th_9th_hole_and_after_the_last_told_draw(study):
    walkers = [Walker() for _ in range(12)]
    for walker in walkers:
        study.tell("a", 0, walker)
    draws = study.state.names["a"].draws
    assert draws.candidates() == [0], "nothing was told, so all cuts have the same counts"
    study.tell("a", 1, walkers[11])
    assert len(draws.holes) == 12
    assert draws.candidates() == [0, 1, 2, 4, 8, 11]
    assert draws.cut(11, 10**9).holes == {0: 11}
    study.tell("a", 1, walkers[0])
    assert draws.candidates() == [0, 1, 2, 4, 8, 10]


def test_a_warm_start_lies_in_every_cut(one):
    study = kept(warm_start={"a": Counts.from_path([0, 0, 1, 1], 2)})
    lease = leased(study, one)
    study.do(commands.give_back, lease.token, "a", lost=True)
    chain = study.state.names["a"]
    for place in range(len(chain.draws.holes) + 1):
        assert chain.draws.cut(place, 10**9).counts(chain.rows) == {0: {0: 1, 1: 1}, 1: {1: 1}}


def test_equal_bounds_choose_the_earliest_cut(study, one, two):
    leased(study, one)
    leased(study, two)
    chain = study.state.names["a"]
    assert study.state.chosen_cut(chain).place == 0
    assert math.isinf(chain.ratio)


# -- rules 4 and 5


def test_a_hole_says_whether_checks_and_answers_may_leave_it_out(study, one, two):
    early = leased(study, one)
    study.do(commands.give_back, early.token, "a", lost=True)
    late, back, other = leased(study, one), leased(study, worker("back"), state=1), leased(study, two)
    study.do(commands.end_path, study.main, "a", End.DUE, token=other.token)
    leased(study, worker("last"), state=1)
    study.do(commands.give_back, back.token, "a")
    study.do(commands.end_path, study.main, "a", End.UNKNOWN, token=late.token)
    found = {card.number: card for card in study.state.names["a"].draws.ordered() if card.target == UNKNOWN}
    assert other.token not in found, "it was due: it is void"
    assert found[early.token].is_early
    assert not found[late.token].is_early
    assert not any(card.is_row_void for card in found.values())


def test_a_step_of_a_path_that_was_begun_anew_can_be_told_late(study, one, two):
    lease = leased(study, one)
    leased(study, two)
    study.do(commands.end_path, study.main, "a", End.UNKNOWN, token=lease.token)
    assert study.tell_leased(one, lease, 1, late=True).late
    assert (0, Status.LOST) not in holes(study)


def test_answers_and_checks_read_the_draws_in_the_order_of_issue(study, one, two):
    slow, quick = leased(study, one), leased(study, two)
    study.tell_leased(two, quick, 1)
    study.do(commands.give_back, study.lease(two, chain="a").token, "a", lost=True)
    found = walked_paths(study.state, study.state.names["a"])
    told = list(
        zip(found.path.tolist(), found.step.tolist(), found.source.tolist(), found.target.tolist(), strict=True)
    )
    assert told == [(0, 0, -1, 0), (0, 1, 0, -1), (1, 0, -1, 0), (1, 1, 0, 1), (1, 2, 1, HOLE)]
    assert found.workers == ("one", "two")
    assert found.unordered is None
    walk = leased(study, two, steps=2, at_once=True)
    study.tell_leased(one, slow, 1)
    assert len(walked_paths(study.state, study.state.names["a"]).path) == 6, "a walk that is not told ends the order"
    study.do(commands.tell_walk, walk.token, "a", [1, 0], path=walk.path)
    assert len(walked_paths(study.state, study.state.names["a"]).path) == 8


def test_a_program_that_is_gone_gives_up_its_slots(study):
    dead = Walker("w", is_worker=True)
    dead.program = "boot-7"
    lease = leased(study, dead)
    study.do(commands.give_up_gone, {"boot-8"}.__contains__)
    assert lease.token in study.state.leases
    study.do(commands.give_up_gone, {"boot-7"}.__contains__)
    assert not study.state.leases
    assert holes(study) == [(0, Status.LOST)]
    again = leased(study, dead, state=1)
    study.do(commands.give_up_gone, {"boot-7"}.__contains__, frozenset({"a"}))
    assert again.token not in study.state.leases
    assert holes(study) == [(0, Status.LOST), (1, Status.RELEASED)]


# -- the aim (rule 6; MATH §16)


def look(study: Kept, name: str, ratio: float | None) -> None:
    """Gives the bound that is due."""
    chain = study.state.names[name]
    place = chain.draws.holes.index(chain.wanted)
    cut = chain.draws.cut(place, chain.wanted.number)
    transitions = sum(sum(row.values()) for row in cut.counts(chain.rows).values())
    study.do(commands.bound, name, cut, transitions=transitions, value=1.0, ratio=ratio, method="mixture")


def aiming(**settings) -> Kept:
    study = kept(target_loss=0.1, policy="furthest", **settings)
    for state in (0, 1, 0):
        study.tell("a", state)
        study.tell("b", state)
    return study


def test_a_look_is_due_and_its_cut_is_kept_until_somebody_has_looked():
    study = aiming()
    chain = study.state.names["a"]
    assert study.state.aim.looks == {0, 1}
    study.tell("a", 0)
    kept_end = chain.draws.holes.index(chain.wanted)
    assert chain.draws.cut(kept_end, 10**9).counts(chain.rows) == {0: {1: 1}}
    look(study, "a", 3.0)
    assert (chain.ratio, chain.looked, chain.enough) == (3.0, 1, 3.0)


def test_done_is_latched_at_its_cut():
    study = aiming()
    chain = study.state.names["a"]
    while not chain.done:
        look(study, "a", 0.9 if chain.transitions > 2 else 5.0)
        study.tell("a", 1)
    before = counts(study)
    study.tell("a", 1)
    study.tell("a", 1)
    assert counts(study) == before
    assert chain.rows[1].counts[1] > before.get(1, {}).get(1, 0), "what came later is there all the same"
    with pytest.raises(NothingFree):
        study.lease(worker("one"), chain="a")
    assert study.ask() == "b"


def test_only_a_harder_aim_takes_done_back():
    study = aiming()
    chain = study.state.names["a"]
    look(study, "a", 0.9)
    assert chain.done
    study.do(commands.extend, target_loss=0.2)
    assert chain.done
    study.do(commands.extend, target_loss=0.01)
    assert not chain.done
    assert chain.latched is None
    assert chain.wanted is not None


#: What checks say that find nothing.
NOTHING = {"results": [], "waiting": 0, "remarks": [], "blamed": []}


def test_every_chain_done_ends_the_study_once_the_checks_have_been_made():
    study = aiming()
    look(study, "a", 0.9)
    look(study, "b", 0.9)
    assert study.state.aim.behind == 0
    assert stop.reason(study.state) is None, "no study stops on bounds that do not hold"
    study.do(commands.check, study.state.observations, NOTHING, {})
    assert stop.reason(study.state) is StopReason.TARGET_LOSS
    study.do(commands.check, study.state.observations, NOTHING, {})
    assert study.entries[-2].kind is not Kind.CHECKED, "once is enough"


def test_a_chain_that_the_checks_speak_against_has_not_reached_the_aim():
    study = aiming()
    look(study, "a", 0.9)
    look(study, "b", 0.9)
    study.do(commands.check, study.state.observations, NOTHING, {"a": ("order", "no bound holds")})
    chain = study.state.names["a"]
    assert (chain.done, chain.ratio, chain.latched, chain.aside) == (False, math.inf, None, "no bound holds")
    assert study.state.doubts == {"a": "no bound holds"}
    assert study.state.aim.missed == 1
    study.do(commands.check, study.state.observations, NOTHING, {"a": ("order", "no bound holds")})
    assert stop.reason(study.state) is StopReason.TARGET_LOSS_OF_THE_REST
    study.do(commands.extend, target_loss=0.4)
    study.do(commands.check, study.state.observations, NOTHING, dict.fromkeys("ab", ("order", "no bound holds")))
    assert stop.reason(study.state) is StopReason.NO_BOUND


def test_of_two_bounds_for_one_look_the_first_one_counts():
    study = aiming()
    chain = study.state.names["a"]
    place = chain.draws.holes.index(chain.wanted)
    cut = chain.draws.cut(place, 0)
    for ratio in (4.0, 2.0):
        study.do(commands.bound, "a", cut, transitions=1, value=1.0, ratio=ratio, method="mixture")
    assert chain.ratio == 4.0
    assert [entry.kind for entry in study.entries[-2:]].count(Kind.BOUND) == 1


def test_a_bound_whose_cut_is_not_known_any_more_does_not_end_a_chain():
    study = aiming()
    chain = study.state.names["a"]
    cut = study.state.chosen_cut(chain)
    study.tell("a", 0)
    study.tell("a", 1)
    study.do(commands.bound, "a", cut, transitions=2, value=0.01, ratio=0.1, method="mixture")
    assert chain.ratio == 0.1
    assert not chain.done
    assert chain.wanted is not None, "a look at a cut that is known comes next"


def test_a_chain_whose_look_may_end_it_is_neither_leased_nor_done():
    study = aiming()
    chain = study.state.names["a"]
    look(study, "a", 1.5)
    study.tell("a", 1)
    assert chain.wanted is not None
    assert chain.rests()
    look(study, "a", 4.0)
    assert not chain.rests()


# -- rules that raise, labels, retries


def unlucky(raises: int) -> Policy:
    def terms(row, exits, squares, constants):
        if exits == raises:
            raise ZeroDivisionError("this rule cannot count to it")
        return (exits,)

    return Policy("unlucky", index=lambda sums, t, c: sums[0] / t, terms=terms)


def test_an_error_of_a_rule_is_raised_by_the_next_choice_and_no_observation_is_lost():
    study = kept({"a": 2}, policy=unlucky(2))
    for _ in range(3):
        study.tell("a", 0)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            study.ask()
    study.tell("a", 0)
    assert study.ask() == "a", "the row's terms are known again"
    assert study.state.observations == 4
    assert study.state.names["a"].sums == (3.0,)


def test_an_index_that_is_no_number_is_an_error_of_the_choice():
    study = kept({"a": 2}, policy=Policy("nan", index=lambda *_: math.nan, terms=lambda *_: (1.0,)))
    study.tell("a", 0)
    study.tell("a", 0)
    with pytest.raises(InputError, match="gave the chain 'a' an index that is no number"):
        study.ask()


def test_an_open_chain_learns_its_states():
    study = kept({"a": []}, open_states=True)
    study.tell("a", "idle")
    study.tell_many([("a", "busy"), ("a", "idle"), ("a", "down"), ("a", "busy")])
    chain = study.state.names["a"]
    assert chain.labels == ["idle", "busy", "down"]
    assert study.state.pairs == 9
    assert chain.rows[0].discoveries == {1: (1, 1, 1), 2: (3, 2, 1)}


def test_paths_that_begin_alike_are_noticed_whichever_comes_first():
    study = kept({"a": 4}, policy="uniform")
    early, late = Walker(), Walker()
    states = [(7 * step * step + step // 3) % 4 for step in range(64)]
    study.tell("a", states[0], early)
    for state in states:
        study.tell("a", state, late)
    assert not study.state.twins
    for state in states[1:]:
        study.tell("a", state, early)
    found = study.state.twins[-1]
    assert (found.first, found.second, found.length) == (1, 2, 64)
    study.do(commands.repeat, found)
    assert study.state.spoilt
    assert not study.state.twins


def test_a_retry_is_told_once(study, one):
    told = study.tell("a", 0, path=1, step=1)
    assert study.tell("a", 0, path=1, step=1) == told._replace(own=False, repeated=True)
    with pytest.raises(OutOfStep, match="was told before, with another state"):
        study.tell("a", 1, path=1, step=1)
    with pytest.raises(OutOfStep, match="the next observation of path 1 of the chain 'a' has the number 2, not 3"):
        study.tell("a", 1, path=1, step=3)
    study.tell("a", 1, key="mine")
    assert study.tell("a", 1, key="mine").repeated
    with pytest.raises(OutOfStep, match="the key 'mine' was given before"):
        study.tell("b", 1, key="mine")
    assert study.state.observations == 2


def test_an_old_step_is_found_by_who_can_read_the_journal(study):
    for state in (0, 1, 1):
        study.tell("a", state)

    def recall(chain, path, step):
        told = [entry for entry in study.entries if entry.kind is Kind.TOLD and entry.path == path]
        return told[step - 1] if step <= len(told) else None

    assert study.tell("a", 1, path=1, step=2, recall=recall).repeated
    with pytest.raises(OutOfStep, match="was told before, with another state"):
        study.tell("a", 0, path=1, step=2, recall=recall)
    with pytest.raises(OutOfStep, match="has no observation 2"):
        study.tell("a", 0, path=1, step=2)
