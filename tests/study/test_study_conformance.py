"""What every study does, wherever it is kept."""

import math
import random

import pytest
from study_checks import check, naive_index, replayed_counts
from study_driving import STATES, drive, nth_state
from study_places import set_clock
from study_rules import BLOCKS, FLOOR, RULE, RULES, TWO_TERMS

from chainscout.counts import Counts
from chainscout.errors import ChainscoutError, InputError, StudyFinished
from chainscout.policies import Policy, Setting
from chainscout.study import Study


@pytest.mark.parametrize("policy", RULES, ids=lambda policy: policy.name)
def test_every_place_makes_the_same_choices_with_stops_in_between(place, policy):
    study = place.create(STATES, budget=150, policy=policy)
    alone = Study.create(None, STATES, budget=150, policy=policy)
    expected = drive(alone, 150)
    found = []
    for _ in range(3):
        found += drive(study, 50)
        study = place.reopen(study, policy)
    assert found == expected
    assert study.finished
    assert study.stop_reason == "budget"
    assert study.indices() == alone.indices()
    check(study, STATES, policy)


@pytest.mark.parametrize("policy", [RULE, TWO_TERMS], ids=lambda policy: policy.name)
def test_indices_are_those_of_the_counts(place, policy):
    study = place.create(STATES, budget=200, policy=policy)
    drive(study, 90)
    counts = replayed_counts(study, STATES)
    for number, (name, index) in enumerate(study.indices().items()):
        setting = Setting(number, counts[name].size, 3, 29, 200)
        assert index == pytest.approx(naive_index(policy, setting, counts[name]), rel=1e-9)


def test_the_chosen_chain_has_the_largest_index_and_the_smallest_number(place):
    study = place.create(STATES, policy=RULE)
    for _ in range(60):
        name = study.ask()
        indices = study.indices()
        best = max(indices.values())
        assert name == next(chain for chain, index in indices.items() if index == best)
        study.tell(name, nth_state(name, study.next_step(name)))


def test_asking_is_pure(place):
    study = place.create(STATES, budget=40, policy=RULE)
    drive(study, 20)
    before = study.progress(), study.indices(), list(study.log())
    assert study.ask() == study.ask()
    assert study.ask(5) == study.ask(5)
    assert study.ask(1) == [study.ask()]
    assert (study.progress(), study.indices(), list(study.log())) == before


def test_warm_up_is_two_observations_of_each_chain(place):
    study = place.create(STATES, policy=RULE)
    assert drive(study, 6) == ["north", "north", "south", "south", "east", "east"]


def test_blocks_are_kept_over_a_reopening(place):
    study = place.create({"a": 2, "b": 2}, policy=BLOCKS)
    rng = random.Random(1)
    previous, runs = None, {}
    for _ in range(400):
        name = study.ask()
        if name != previous:
            runs = {name: (study.counts(name).total, 0)}
        start, done = runs[name]
        runs[name] = start, done + 1
        previous = name
        study.tell(name, rng.randrange(2))
        if done == 0 and start >= 60:  # the block lasts ⌊0.05·T⌋ ≥ 3 observations
            study = place.reopen(study, BLOCKS)
            assert study.ask() == name
    assert study.counts("a").total > 100


def test_the_least_sampled_chain_goes_first(place):
    study = place.create(STATES, policy=FLOOR)
    for _ in range(80):
        name = study.ask()
        totals = {chain: study.counts(chain).total for chain in STATES}
        if min(totals.values()) < math.sqrt(study.progress().observations) + 1:
            assert totals[name] == min(totals.values())
        study.tell(name, nth_state(name, study.next_step(name)))


def test_what_is_wrong_changes_nothing(place):
    study = place.create(STATES, budget=30, policy=RULE)
    drive(study, 12)
    before = study.progress(), study.indices(), list(study.log())
    for chain, state, words in (
        ("north", "broken", "unknown state"),
        ("north", ["idle"], "unknown state"),
        ("south", 4, "from 0 to 3"),
        ("south", -1, "from 0 to 3"),
        ("south", True, "from 0 to 3"),
        ("south", 1.0, "from 0 to 3"),
        ("west", 0, "no chain 'west'"),
        (3, 0, "no chain 3"),
    ):
        with pytest.raises(InputError, match=words):
            study.tell(chain, state)
    with pytest.raises(InputError, match="unknown state"):
        study.tell_many([("south", 1), ("north", "broken")])
    for batch, words in (
        (3, "observations must be pairs"),
        ([("south", 1), "so"], r"observation 2 of the batch must be a pair \(chain, state\), not 'so'"),
        ([("south", 1), 7], "observation 2 .* not 7"),
        ([("south", 1, 2)], r"observation 1 .* not \('south', 1, 2\)"),
        ([("south", 1), (["south"], 1)], "no chain \\['south'\\]"),
    ):
        with pytest.raises(InputError, match=words):
            study.tell_many(batch)
    with pytest.raises(InputError, match="number"):
        study.ask(0)
    assert (study.progress(), study.indices(), list(study.log())) == before


def test_a_rule_that_fails_changes_nothing(place):
    def terms(row, exits, squares, constants):
        if exits == 5.0:
            raise ZeroDivisionError("a slip in a rule")
        return (exits,)

    frail = Policy("frail", index=lambda sums, t, _: 1.0 / t, terms=terms)
    study = place.create({"a": 1}, policy=frail)
    for _ in range(5):
        study.tell("a", 0)
    before = study.progress(), study.indices(), list(study.log()), study.counts("a")
    with pytest.raises(ZeroDivisionError):
        study.tell("a", 0)
    with pytest.raises(ZeroDivisionError):
        study.tell_many([("a", 0)])
    assert (study.progress(), study.indices(), list(study.log()), study.counts("a")) == before


def test_an_index_that_is_no_number_is_refused(place):
    study = place.create({"a": 2}, policy=Policy("nan", index=lambda sums, t, _: math.nan, terms=lambda *_: (0.0,)))
    study.tell("a", 0)
    with pytest.raises(InputError, match="no number"):
        study.tell("a", 1)
    assert study.progress().observations == 1


def test_steps_make_a_retry_harmless(place):
    study = place.create(STATES, policy=RULE)
    study.tell("south", 3, step=1)
    study.tell("south", 2, step=2)
    before = study.progress(), study.indices()
    study.tell("south", 2, step=2)
    study.tell("south", 3, step=1)
    assert (study.progress(), study.indices()) == before
    with pytest.raises(InputError, match="another state"):
        study.tell("south", 1, step=2)
    with pytest.raises(InputError, match="has the number 3, not 4"):
        study.tell("south", 1, step=4)
    with pytest.raises(InputError, match="step"):
        study.tell("south", 1, step=0)
    assert study.next_step("south") == 3
    study.tell("south", 1, step=3)
    check(study, STATES, RULE)


def test_many_at_once_are_as_one_by_one(place):
    study, alone = place.create(STATES, budget=60, policy=RULE), Study.create(None, STATES, budget=60, policy=RULE)
    rng = random.Random(5)
    while not study.finished:
        chosen = study.ask(10)
        assert chosen == alone.ask(10)
        pairs = [(name, nth_state(name, rng.randrange(100))) for name in chosen]
        study.tell_many(pairs)
        for pair in pairs:
            alone.tell(*pair)
    assert study.stop_reason == "budget"
    assert study.indices() == alone.indices()
    check(study, STATES, RULE)
    with pytest.raises(StudyFinished):
        study.tell_many([("south", 1)])


def test_a_batch_that_costs_too_much_is_refused_whole(place):
    study = place.create(STATES, budget=3, policy=RULE)
    with pytest.raises(InputError, match="costs 1 more than is left"):
        study.tell_many([("south", 1)] * 4)
    assert study.progress().observations == 0
    assert len(study.ask(10)) == 3


def test_a_batch_follows_the_pending_rule(place):
    study = place.create(STATES, policy=RULE)
    drive(study, 30)
    sums = {name: index * study.counts(name).total for name, index in study.indices().items()}
    pending = dict.fromkeys(STATES, 0)
    expected = []
    for _ in range(12):
        index = {name: sums[name] / (study.counts(name).total + pending[name]) for name in STATES}
        expected.append(max(STATES, key=index.get))
        pending[expected[-1]] += 1
    assert study.ask(12) == expected


def test_restart_begins_a_segment(place):
    study = place.create({"a": 2}, policy=RULE)
    for state in (0, 1):
        study.tell("a", state)
    study.restart("a")
    study.restart("a")  # nothing was told in between: still the same new segment
    for state in (0, 0):
        study.tell("a", state)
    assert study.counts("a").transitions.tolist() == [[1, 1], [0, 0]]
    assert [(line.step, line.segment, line.state) for line in study.log()] == [
        (1, 1, 0),
        (2, 1, 1),
        (3, 2, 0),
        (4, 2, 0),
    ]
    assert [line.step for line in study.log("a", after=2)] == [3, 4]
    check(study, {"a": 2}, RULE)


def test_a_chain_without_transitions_is_set_aside(place):
    study = place.create({"a": 2, "b": 2}, policy=RULE)
    for _ in range(10):
        assert study.ask() == "a"
        study.tell("a", 0)
        study.restart("a")
    assert study.ask() == "b"
    assert study.progress().aside == 1
    assert study.certificate().aside == ("a",)
    assert "set aside" in study.certificate().notes[-1]
    assert [event.kind for event in study.events()][-1] == "set aside"
    for _ in range(10):
        study.tell("b", 0)
        study.restart("b")
    assert study.stop_reason == "every chain was set aside"
    study.extend(target_loss=0.5)
    assert study.stop_reason == "every chain was set aside"  # no chain is left, and so no target is met
    with pytest.raises(StudyFinished, match="set aside"):
        study.ask()


def test_a_finished_study_and_its_extension(place):
    study = place.create(STATES, budget=8, policy=RULE)
    drive(study, 8)
    for refused in (study.ask, lambda: study.ask(3), lambda: study.lease("w"), lambda: study.tell("south", 1)):
        with pytest.raises(StudyFinished, match="budget"):
            refused()
    with pytest.raises(InputError, match="8 of the budget are used"):
        study.extend(budget=5)
    with pytest.raises(InputError, match="none was given"):
        study.extend()
    study.extend(budget=12)
    assert not study.finished
    study = place.reopen(study, RULE)
    drive(study, 4)
    assert study.stop_reason == "budget"
    assert [event.kind for event in study.events()] == ["created", "finished", "extended", "finished"]


def test_constants_follow_an_extended_budget(place):
    policy = Policy(
        "horizon",
        index=lambda sums, t, constants: constants[0] / t,
        terms=lambda *_: (0.0,),
        constants=lambda setting: (float(setting.budget or -1),),
    )
    study = place.create({"a": 2}, budget=4, policy=policy)
    study.tell_many([("a", 0)] * 3)
    assert study.indices() == {"a": 2.0}
    study.extend(budget=10)
    assert study.indices() == {"a": 5.0}


def test_the_target_stops_the_study_on_fresh_certificates(place):
    study = place.create({"a": 2, "b": 2}, budget=3000, policy=RULE, target_loss=0.6)
    rng = random.Random(3)
    while not study.finished:
        study.tell_many([(name, rng.randrange(2)) for name in study.ask(7)])
    assert study.stop_reason == "target_loss"
    certificate = study.certificate()
    assert certificate.max <= 0.6
    assert study.progress().certificate == certificate.max
    check(study, {"a": 2, "b": 2}, RULE)
    study.extend(target_loss=0.3)
    assert not study.finished


def test_the_deadline_stops_the_study(place):
    study = place.create({"a": 2}, policy=RULE, deadline=5000.0)
    set_clock(study, 4999.0)
    study.tell(study.ask(), 0)
    set_clock(study, 5000.0)
    assert study.stop_reason == "deadline"
    with pytest.raises(StudyFinished, match="deadline"):
        study.ask()
    study.tell("a", 1)  # it was observed in time
    assert study.progress().observations == 2
    with pytest.raises(StudyFinished, match="deadline"):
        study.tell("a", 1)
    study.extend(deadline=6000.0)
    assert study.ask() == "a"


def test_weights_multiply_index_and_certificate(place):
    weights = {"a": 4.0}
    study = place.create({"a": 2, "b": 2}, policy=RULE, weights=weights)
    plain = Study.create(None, {"a": 2, "b": 2}, policy=RULE)
    for s in (study, plain):
        for name in ("a", "b"):
            for state in (0, 1, 1, 0):
                s.tell(name, state)
    assert study.indices()["a"] == pytest.approx(4.0**0.75 * plain.indices()["a"])
    assert study.indices()["b"] == plain.indices()["b"]
    assert study.certificate().loss["a"] == 4.0 * plain.certificate().loss["a"]
    check(study, {"a": 2, "b": 2}, RULE, weights)


def test_costs_change_how_the_budget_is_counted(place):
    study = place.create({"a": 2, "b": 2}, budget=1.0, policy=RULE, costs={"a": 0.3, "b": 0.1})
    made = []
    while not study.finished:
        name = study.ask()
        made.append(name)
        study.tell(name, 0)
    assert made == ["a", "a", "b", "b", "a"][: len(made)]
    assert study.progress().used <= 1.0 + 1e-9
    assert study.stop_reason == "budget"


def test_a_budget_of_many_small_costs_is_used_up(place):
    study = place.create({"a": 1}, budget=0.3, policy=RULE, costs={"a": 0.1})
    study.tell_many([("a", 0)] * 3)
    assert study.stop_reason == "budget"


def test_warm_start(place):
    counts = Counts.from_path([0, 1, 1, 0, 1], 2)
    study = place.create({"a": 2, "b": 2}, budget=10, policy=RULE, warm_start={"a": counts})
    assert study.ask() == "b"
    assert study.counts("a").transitions.tolist() == counts.transitions.tolist()
    assert study.progress().observations == 0
    study.tell("a", 0)  # a new segment
    study.tell("a", 0)
    study = place.reopen(study, RULE)
    assert study.counts("a").transitions.tolist() == [[1, 2], [1, 1]]
    with pytest.raises(InputError, match="warm-started from Counts over"):
        place.create({"a": 3}, policy=RULE, warm_start={"a": counts})


# -- open states


def test_open_states_are_discovered(place):
    study = place.create({"a": [], "b": 2}, policy=TWO_TERMS, open_states=["a"])
    for state in ("x", "y", 3, "x", "x"):
        study.tell("a", state)
    study = place.reopen(study, TWO_TERMS)
    study.tell("a", "z")
    estimate = study.estimate("a")
    assert list(estimate.states) == ["x", "y", 3, "z"]
    assert estimate.transitions.tolist() == [[1, 1, 0, 1], [0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0]]
    assert (estimate.lower <= estimate.matrix).all()
    assert (estimate.matrix <= estimate.upper).all()
    assert [line.state for line in study.log("a")] == ["x", "y", 3, "x", "x", "z"]
    with pytest.raises(InputError, match="string or a whole number"):
        study.tell("a", 1.5)
    assert math.isfinite(study.certificate().loss["a"])


def test_an_open_chain_is_certified_for_any_number_of_states(place):
    study = place.create({"a": 2, "b": 2}, policy=TWO_TERMS, open_states=True)
    rng = random.Random(0)
    study.tell_many([("a", rng.randrange(2)) for _ in range(300)])
    closed = Study.create(None, {"a": 2, "b": 2}, policy=TWO_TERMS)
    for line in study.log():
        closed.tell(line.chain, line.state)
    assert study.certificate().loss["a"] > closed.certificate().loss["a"]


# -- what a study is made of


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"chains": {}}, "at least one"),
        ({"chains": {"": 2}}, "not empty"),
        ({"chains": {"a": 0}}, "≥ 1"),
        ({"chains": {"a": "xyz"}}, "list of labels"),
        ({"chains": {"a": ["x", "x"]}}, "unique"),
        ({"chains": {"a": []}}, "at least one state"),
        ({"chains": {"a": [1.5]}}, "label"),
        ({"budget": 0}, "budget"),
        ({"budget": 2.5}, "budget"),
        ({"delta": 1.0}, "delta"),
        ({"target_loss": -1}, "target_loss"),
        ({"deadline": "soon"}, "deadline"),
        ({"weights": {"b": 1}}, "weights names chains"),
        ({"weights": {"a": -1}}, "weights of chain 'a'"),
        ({"costs": [1]}, "costs must be a mapping"),
        ({"costs": {"a": 5}, "budget": 4}, "does not pay for one observation"),
        ({"on_lost_lease": "shrug"}, "on_lost_lease"),
        ({"open_states": "a"}, "open_states"),
        ({"open_states": ["b"]}, "open_states names chains"),
        ({"warm_start": {"a": [[1]]}}, "warm-started"),
    ],
)
def test_a_study_is_checked_before_it_is_made(place, change, words):
    with pytest.raises(InputError, match=words):
        place.create(**{"chains": {"a": 2}, "policy": RULE, **change})


def test_a_million_chains_share_one_list_of_labels():
    study = Study.create(None, {f"c{k}": ["on", "off"] for k in range(100)}, policy=RULE)
    assert len({id(chain.labels) for chain in study._store.chains}) == 1


def test_estimates_hold_for_all_chains_at_once(place):
    study = place.create(STATES, policy=RULE)
    drive(study, 60)
    estimate = study.estimate("south")
    assert estimate.entries == 9 + 16 + 4
    assert estimate.delta == 0.05
    assert estimate.transitions.tolist() == replayed_counts(study, STATES)["south"].transitions.tolist()


def test_the_user_learns_what_happened_in_one_sentence(place):
    study = place.create({"a": 2}, budget=1, policy=RULE)
    study.tell("a", 0)
    with pytest.raises(ChainscoutError) as caught:
        study.ask()
    assert str(caught.value) == "the study is finished (budget); extend it with a larger budget to go on"
