"""Leases: who walks which path, for how long, and what becomes of it, wherever the study is kept."""

import datetime
import re
import threading
import time

import pytest
from study_checks import check
from study_driving import STATES, drive, nth_state
from study_places import LATER, lease, set_clock
from study_rules import FLOOR, RULE, RULES

from chainscout.errors import Held, InputError, LeaseLost, NothingFree, OutOfStep, StudyFinished
from chainscout.policies import Policy
from chainscout.study import LeaseStatus, Study


def test_workers_get_the_best_chain_with_what_is_pending(place):
    study = place.create(STATES, policy=RULE)
    drive(study, 20)
    leases = []
    for number in range(9):
        indices = study.indices()
        leases.append(lease(study, f"worker {number}"))
        assert indices[leases[-1].chain] == max(indices.values())
        check(study, STATES, RULE)
    assert {held.chain for held in leases} == set(STATES)
    assert len({held.token for held in leases}) == 9
    assert len({(held.chain, held.path) for held in leases}) == 9
    assert all(held.state is None and held.step == 1 for held in leases)
    study.tell(leases[0].chain, nth_state(leases[0].chain, 1))  # plain tells walk a path of their own
    for held in leases[:4]:
        held.tell(nth_state(held.chain, 1))
    for held in leases:
        held.give_back()
    assert study.progress().leases == 0
    check(study, STATES, RULE)


@pytest.mark.parametrize("policy", RULES, ids=lambda policy: policy.name)
def test_what_is_pending_counts_in_t_until_it_is_given_back(place, policy):
    study = place.create(STATES, policy=policy)
    drive(study, 47)
    before = study.indices()
    leases = [lease(study, f"w{number}", steps=1 + 2 * number) for number in range(6)]
    check(study, STATES, policy)
    assert study.indices() != before
    for held in leases:
        held.give_back()
    assert study.indices() == before
    check(study, STATES, policy)


def test_with_three_chains_nobody_of_sixteen_is_idle(place):
    study = place.create(STATES, budget=100, policy=RULE)
    leases = [lease(study, f"w{number}") for number in range(16)]  # no chain has a transition: the fewest pending first
    assert [held.chain for held in leases] == [list(STATES)[number % 3] for number in range(16)]
    for held in leases:
        held.tell(nth_state(held.chain, 1))
    assert study.progress().paths == 16
    assert sum(study.counts(name).total for name in STATES) == 0
    check(study, STATES, RULE)


def test_a_worker_stays_with_a_path_that_it_walks(place):
    study = place.create(dict.fromkeys("abcd", 2), policy=RULE)
    study.tell_many([(name, state) for name in "abcd" for state in (0, 1) * 20])
    worker = study.worker("w", renews=False)
    first = worker.lease()
    first.tell(0)
    for state in (1, 0):
        again = worker.lease()
        assert (again.chain, again.path) == (first.chain, first.path)  # the others have the same index, or nearly
        assert again.state is not None
        again.tell(state)
    assert study.progress().paths == 5
    check(study, dict.fromkeys("abcd", 2), RULE)


def test_a_lease_is_for_so_many_observations(place):
    study = place.create({"a": 2}, budget=5, policy=RULE)
    worker = study.worker("w", renews=False)
    with worker.lease(steps=3) as held:
        assert (held.chain, held.path, held.step, held.steps, held.state) == ("a", 1, 1, 3, None)
        held.tell(0)
        held.tell(1)
        held.renew(100.0)
    assert study.progress().leases == 0
    with worker.lease(steps=30) as held:
        assert (held.path, held.step, held.steps, held.state) == (1, 3, 3, 1)
        for _ in range(3):
            held.tell(1)
        assert held.status is LeaseStatus.USED
        with pytest.raises(LeaseLost, match="have been told"):
            held.tell(1)
    assert study.stop_reason == "budget"
    assert worker.lease() is None
    assert study.counts("a").total == 4
    check(study, {"a": 2}, RULE)


def test_a_budget_is_not_lowered_below_what_is_promised(place):
    study = place.create(dict.fromkeys("abcdef", 2), budget=100, policy=RULE)
    set_clock(study, 1000.0)
    study.tell("a", 0)
    lease(study, "late", seconds=5.0, steps=20)
    leases = [lease(study, worker, seconds=60.0, steps=3) for worker in ("first", "second")]
    set_clock(study, 1010.0)
    held = ", ".join(f"{w!r} on {found.chain!r}" for w, found in zip(("first", "second"), leases, strict=True))
    words = f"1 of the budget are used and 6 are promised to leases ({held}): it cannot become 6"
    with pytest.raises(InputError, match=f"^{re.escape(words)}$"):
        study.extend(budget=6)
    assert study.progress().budget == 100
    study.extend(budget=7)  # what the lease that ran out was promised is nobody's
    for found in leases:
        for state in (0, 1, 1):
            found.tell(state)
    assert (study.progress().used, study.stop_reason) == (7, "budget")


def test_of_many_leases_some_are_named(place):
    study = place.create({"a": 2}, budget=100, policy=RULE)
    for number in range(5):
        lease(study, f"w{number}")
    with pytest.raises(
        InputError, match=r"^0 of .* and 5 are promised to leases \('w0' on .*, 'w2' on '.' and 2 more\): "
    ):
        study.extend(budget=4)


def test_leases_in_flight_count_against_the_budget(place):
    study = place.create(STATES, budget=2, policy=RULE)
    first, second = lease(study, "one"), lease(study, "two")
    with pytest.raises(NothingFree):
        lease(study, "three")
    with pytest.raises(NothingFree):
        study.ask()
    first.tell("idle")
    assert not study.finished
    second.tell(0)
    assert study.stop_reason == "budget"
    assert study.progress().observations == 2


def test_what_is_promised_is_not_spent_by_others(place):
    study = place.create({"a": 2, "b": 2}, budget=10, policy=RULE)
    set_clock(study, 100.0)
    held = lease(study, "w", seconds=60, steps=5)
    assert held.chain == "a"
    for state in (0, 1, 0, 1):
        study.tell("b", state)
    for refused in (lambda: study.tell_many([("b", 0)] * 3), lambda: study.tell_many([("b", 0), ("b", 1)])):
        with pytest.raises(NothingFree, match=r"the batch costs .* than is left of the budget, less what is promised"):
            refused()
    study.tell_many([("b", 0)])
    with pytest.raises(NothingFree, match="the observation costs 1 more than is left of the budget, less what is"):
        study.tell("b", 1)
    study.tell("b", 0, step=5)  # a retry costs nothing
    for asking in (study.ask, lambda: study.ask(3), lambda: lease(study, "late")):
        with pytest.raises(NothingFree, match="what is left of the budget is promised"):
            asking()
    held.tell(0)
    held.tell(1)
    assert (study.progress().used, study.stop_reason) == (7, None)
    set_clock(study, 160.0)  # it has run out: what it was promised is there for all, though nobody has noticed yet
    assert study.ask() in ("a", "b")
    assert len(study.ask(10)) == 3
    study.tell("b", 1)
    with pytest.raises(LeaseLost):
        held.tell(1)
    study.tell_many([("a", 0), ("b", 0)])
    assert (study.progress().used, study.stop_reason) == (10, "budget")
    check(study, {"a": 2, "b": 2}, RULE)


def test_a_dear_observation_is_not_taken_from_what_is_left(place):
    study = place.create({"a": 2, "b": 2}, budget=10.0, policy=RULE, costs={"a": 4.0})
    study.tell_many([("a", 0), ("a", 1)])
    with pytest.raises(InputError, match="the observation costs 2 more than is left of the budget: nothing"):
        study.tell("a", 0)
    study.tell_many([("b", 0), ("b", 1)])
    assert (study.progress().used, study.stop_reason) == (10.0, "budget")


def test_costs_are_promised_and_given_back(place):
    costs = {"a": 0.1, "b": 0.7}
    study = place.create({"a": 2, "b": 2}, budget=3.0, policy=RULE, costs=costs)
    leases = [lease(study, f"w{number}", steps=2) for number in range(4)]
    leases += [lease(study, f"w{number}", steps=4) for number in (4, 5)]
    assert [(held.chain, held.steps) for held in leases[-2:]] == [("a", 4), ("a", 1)]  # nobody can pay for the other
    with pytest.raises(NothingFree):
        lease(study, "late", steps=2)
    check(study, {"a": 2, "b": 2}, RULE)
    leases[1].tell(0)
    leases[1].give_back()
    leases[2].tell(1)
    check(study, {"a": 2, "b": 2}, RULE)
    for held in leases:
        held.give_back()
    assert study._keeper.state().reserved == 0.0
    while (held := lease(study, "w", steps=3)) is not None:
        while held.steps:
            held.tell(0)
    assert study.progress().used <= 3.0 + 1e-8
    assert study.progress().used > 3.0 - 0.7
    check(study, {"a": 2, "b": 2}, RULE)


def test_a_worker_that_stays_with_a_chain_can_pay_for_it(place):
    flat = Policy("flat", index=lambda sums, t, _: 1.0, terms=lambda *_: (0.0,))
    study = place.create({"cheap": 2, "dear": 2}, budget=12.0, policy=flat, costs={"dear": 4.0})
    study.tell_many([("cheap", 0), ("cheap", 1), ("cheap", 0)])
    worker = study.worker("w", renews=False)
    for state in (0, 1):
        held = worker.lease()
        assert held.chain == "dear"  # it has no transition
        held.tell(state)
    assert (study.progress().used, study.ask()) == (11.0, "cheap")
    held = worker.lease(wait=0)
    assert held.chain == "cheap"  # this worker walks the other one, which costs more than is left
    held.tell(0)
    assert worker.lease() is None
    assert study.progress().used == 12.0


def test_a_valid_holder_is_always_heard(place):
    study = place.create(STATES, budget=100, policy=RULE, deadline=LATER + 1000.0)
    set_clock(study, 990.0)
    held = lease(study, "slow", seconds=60)
    set_clock(study, 1001.0)
    assert lease(study, "late") is None
    with pytest.raises(StudyFinished, match="deadline"):
        study.ask()
    held.tell("busy")
    assert study.progress().observations == 1
    assert study.stop_reason == "deadline"


@pytest.mark.parametrize("paths", ["own", "shared"])
def test_a_lease_that_runs_out(place, paths):
    study = place.create({"a": 2, "b": 2}, policy=RULE, paths=paths)
    if paths == "own":
        study.tell_many([("a", 0), ("b", 0)])
    else:
        for name, other in ("ab", "ba"):
            lease(study, "before", without={other}).tell(study.states(name)[0])
    set_clock(study, 100.0)
    dead = lease(study, "dead", seconds=10, steps=2)
    assert (dead.chain, dead.path) == ("a", 1 if paths == "shared" else 2)
    set_clock(study, 109.0)
    assert study.ask() == "b"
    set_clock(study, 110.0)
    if paths == "shared":
        assert study.ask() == "a"  # asking changes nothing, but the chain is free
    with pytest.raises(LeaseLost, match="ran out"):
        dead.tell(1)
    with lease(study, "alive", seconds=10) as held:
        assert (held.chain, held.path, held.state) == ("a", dead.path + 1, None)
        with pytest.raises(LeaseLost, match="has ended"):
            dead.tell(1)
        held.tell(1)
    with pytest.raises(LeaseLost, match="has ended"):  # the same state at the same step, and still not acknowledged
        dead.tell(1)
    with pytest.raises(LeaseLost):
        study.tell("a", 1, path=held.path, step=1, token=dead.token)
    with pytest.raises(LeaseLost):
        dead.renew()
    with pytest.raises(LeaseLost):
        dead.give_back()
    assert study.counts("a").total == 0
    assert study.progress().lost == 1
    assert "1 observation was lost" in study.certificate().notes[1]
    assert "lease expired" in [event.kind for event in study.events()]
    check(study, {"a": 2, "b": 2}, RULE)


def test_a_repeat_is_accepted_from_the_token_that_told_it_alone(place):
    study = place.create({"a": 2}, policy=RULE)
    worker = study.worker("w", renews=False)
    held = worker.lease()
    study.tell("a", 1, path=held.path, step=held.step, token=held.token)
    held.tell(1)  # the acknowledgement was lost, and the lease has ended with its last observation
    assert study.progress().observations == 1
    with pytest.raises(OutOfStep, match="another state"):
        study.tell("a", 0, path=1, step=1, token=held.token)
    with pytest.raises(LeaseLost):
        study.tell("a", 1, path=1, step=2, token=held.token)
    with pytest.raises(LeaseLost):
        study.tell("a", 1, path=1, step=1, token=held.token + 1000)
    for token in ("guessed", -1, True):
        with pytest.raises(InputError, match=r"token \(the number of a lease\) must be a whole number ≥ 1"):
            study.tell("a", 1, path=1, step=1, token=token)
    other = worker.lease()
    assert (other.path, other.step, other.state) == (1, 2, 1)
    study.tell("a", 1, path=1, step=1, token=held.token)  # it did tell it
    with pytest.raises(LeaseLost, match="told before, under another lease"):
        study.tell("a", 1, path=1, step=1, token=other.token)
    other.tell(0)
    study.tell("a", 0, path=1, step=2, token=other.token)
    study.tell("a", 1, path=1, step=1, token=held.token)
    assert study.progress().observations == 2
    assert study.counts("a").transitions.tolist() == [[0, 0], [1, 0]]
    check(study, {"a": 2}, RULE)


def test_a_worker_that_fails_gives_the_path_up(place):
    study = place.create({"a": 2}, policy=RULE)
    worker = study.worker("w", renews=False)
    worker.lease().tell(0)
    with pytest.raises(OSError, match="simulator"), worker.lease():
        raise OSError("the simulator died")
    assert study.progress().lost == 1
    with worker.lease() as held:
        assert (held.path, held.state) == (2, None)
        held.restart(lost=True)
        assert (held.path, held.state) == (3, None)
        held.tell(0)
    assert study.progress().lost == 2
    assert study.counts("a").total == 0

    def fail():
        with study.worker("v", renews=False) as worker:
            worker.lease()
            raise OSError("the simulator died")

    with pytest.raises(OSError, match="simulator"):
        fail()
    assert (study.progress().leases, study.progress().lost) == (0, 3)
    check(study, {"a": 2}, RULE)


def test_a_lease_that_restarts_walks_another_path(place):
    study = place.create({"a": 2}, policy=RULE, budget=10)
    with study.worker("w", renews=False) as worker:
        held = worker.lease(steps=5)
        for state in (0, 1):
            held.tell(state)
        held.restart()
        assert (held.path, held.step, held.state, held.steps) == (2, 1, None, 3)
        check(study, {"a": 2}, RULE)
        for state in (0, 1):
            held.tell(state)
        assert study.progress().leases == 1
    assert study.progress().leases == 0
    assert study.counts("a").transitions.tolist() == [[0, 2], [0, 0]]
    check(study, {"a": 2}, RULE)


def test_a_plain_tell_ends_a_lease_that_ran_out(place):
    study = place.create({"a": 2}, policy=RULE)
    study.tell_many([("a", 0), ("a", 1)])
    before = study.indices()
    set_clock(study, 10.0)
    lease(study, "dead", seconds=1, steps=1000)
    assert study.indices()["a"] < before["a"]
    set_clock(study, 11.0)
    study.tell("a", 1)
    assert study.counts("a").total == 2  # the path of plain tells went on
    assert (study.progress().leases, study.progress().lost) == (0, 1)
    check(study, {"a": 2}, RULE)


def test_the_least_sampled_chain_counts_what_is_pending(place):
    study = place.create({"a": 2, "b": 2}, policy=FLOOR)
    study.tell_many([("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 0)])
    assert [lease(study, f"w{number}").chain for number in range(4)] == ["a", "a", "b", "a"]
    assert study.ask() == "b"
    check(study, {"a": 2, "b": 2}, FLOOR)


def test_another_budget_keeps_what_is_pending(place):
    study = place.create({"a": 2, "b": 2}, policy=RULE)
    study.tell_many([("a", 0), ("a", 1), ("b", 0), ("b", 1)])
    lease(study, "w", steps=7)
    before = study.indices()
    study.extend(budget=100)
    assert study.indices() == before
    check(study, {"a": 2, "b": 2}, RULE)


# -- workers


def test_a_worker_renews_its_leases_while_it_lives(place):
    study = place.create({"a": 2, "b": 2}, policy=RULE)
    with study.worker("alive") as worker:
        long = worker.lease(seconds=60)
        short = worker.lease(seconds=0.4)  # taken while the thread sleeps for the long one
        left = study.worker("dead", renews=False).lease(seconds=0.4)
        time.sleep(1.0)
        with pytest.raises(LeaseLost, match="ran out"):
            left.tell(0)
        short.tell(0)
        long.tell(0)
    assert study.progress().observations == 2
    lease(study, "sweeping").give_back()
    assert (study.progress().leases, study.progress().lost) == (0, 1)


def test_a_closed_worker_has_given_everything_back(place):
    study = place.create({"a": 2, "b": 2}, policy=RULE)
    set_clock(study, 100.0)
    threads = threading.active_count()
    with study.worker("w") as worker:
        for seconds in (5.0, 50.0):
            worker.lease(seconds)
        set_clock(study, 110.0)  # one of them is lost, which is no reason to keep the other
    assert [event.kind for event in study.events()][-1] == "lease given back"
    assert study.progress().leases == 1
    lease(study, "sweeping").give_back()
    assert (study.progress().leases, study.progress().lost) == (0, 1)
    deadline = time.monotonic() + 10.0
    while threading.active_count() > threads and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() == threads


def test_chains_that_are_left_out(place):
    study = place.create({"a": 2, "b": 2}, policy=RULE)
    worker = study.worker("w", renews=False)
    assert worker.lease(without={"a"}).chain == "b"
    with pytest.raises(NothingFree):
        worker.lease(without={"a", "b"}, wait=0)
    for held in tuple(worker._leases):
        held.give_back()
    with pytest.raises(NothingFree):  # the study is not finished
        worker.lease(without={"a", "b"}, wait=0)
    with pytest.raises(InputError, match="no chain 'c'"):
        worker.lease(without={"c"})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"worker": ""}, "worker's name"),
        ({"worker": 3}, "worker's name"),
        ({"worker": "main"}, "cannot be 'main', because the paths of plain tells have that name"),
        ({"seconds": 0}, "seconds"),
        ({"steps": 0}, "steps"),
        ({"wait": -1}, "wait"),
    ],
)
def test_leases_are_checked(place, change, words):
    study = place.create({"a": 2}, policy=RULE)
    options = {"worker": "w", **change}
    with pytest.raises(InputError, match=words):
        study.worker(options.pop("worker")).lease(**options)


def test_a_chain_that_never_gives_a_first_state_starves_no_other(place):
    study = place.create({"a": 2, "b": 2}, policy=RULE)
    for number in range(20):
        held = lease(study, f"w{number}")
        held.abandon() if held.chain == "a" else held.tell(0)
    assert study.allocation() == {"a": 0, "b": 10}
    assert study.chain("a").aside
    assert not study.chain("b").aside
    study.take_up("a")
    assert not study.chain("a").aside


def test_a_lease_is_of_a_chain_that_can_be_paid(place):
    study = place.create({"a": 2, "b": 2}, 0.3, policy=RULE, costs={"a": 0.1, "b": 0.3})
    lease(study, "w").tell(0)
    assert not study.finished
    assert study.ask() == "a"
    assert lease(study, "v").chain == "a"


def test_a_repeat_is_heard_from_the_lease_that_told_it_and_from_no_other(place):
    study = place.create({"a": 2}, policy=RULE)
    worker = study.worker("w", renews=False)
    first = worker.lease()
    first.tell(0)
    second = worker.lease(steps=2)
    second.tell(1)
    assert second.path == first.path
    for step, state, mine, other in ((1, 0, first, second), (2, 1, second, first)):
        study.tell("a", state, path=1, step=step, token=mine.token)
        with pytest.raises(LeaseLost):
            study.tell("a", state, path=1, step=step, token=other.token)
    study.tell("a", 1, step=2, token=second.token)
    with pytest.raises(LeaseLost, match="under another lease"):
        study.tell("a", 0, step=1, token=second.token)
    assert study.progress().observations == 2
    second.tell(0)
    study.tell("a", 1, path=1, step=2, token=second.token)  # not the last one any more
    check(study, {"a": 2}, RULE)


def test_a_worker_that_nobody_has_any_more_leaves_no_thread(place):
    study = place.create({"a": 2}, policy=RULE)
    before = threading.active_count()
    for number in range(20):
        study.worker(f"w{number}").lease().tell(0)
    deadline = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() == before


def test_a_lease_that_is_renewed_for_less_is_still_renewed_by_itself(place):
    study = place.create({"a": 2}, policy=RULE)
    with study.worker("w") as worker:
        held = worker.lease(600)
        time.sleep(0.05)  # the thread that renews has gone to sleep
        held.renew(0.4)
        time.sleep(1.0)
        held.tell(0)
    assert study.progress().lost == 0


def test_a_worker_that_was_closed_takes_no_leases(place):
    study = place.create({"a": 2}, policy=RULE)
    with study.worker("w") as worker:
        pass
    with pytest.raises(InputError, match="the worker 'w' was closed"):
        worker.lease()
    assert study.progress().leases == 0


# -- shared paths: a chain is one physical process


def test_a_shared_chain_is_held_by_one_worker_at_a_time(place):
    study = place.create(STATES, policy=RULE, paths="shared")
    for step in range(20):
        held = lease(study, "before")
        held.tell(nth_state(held.chain, step))
    ranked = sorted(STATES, key=lambda name: -study.indices()[name])
    leases = [lease(study, f"worker {n}") for n in range(3)]
    assert [held.chain for held in leases] == ranked
    with pytest.raises(NothingFree, match="3 leases are held"):
        lease(study, "late")
    with pytest.raises(NothingFree):
        study.ask()
    for refused in (
        lambda: study.restart(ranked[0]),
        lambda: study.set_aside(ranked[0], "broken"),
    ):
        with pytest.raises(Held, match="held by 'worker 0'"):
            refused()
    leases[1].tell(nth_state(ranked[1], 1))
    assert study.ask() == ranked[1]
    for held in leases:
        held.give_back()
    assert study.progress().leases == 0
    check(study, STATES, RULE)


def test_the_next_holder_continues_a_shared_path_that_was_given_back(place):
    study = place.create({"a": 2}, policy=RULE, paths="shared")
    with lease(study, "one", steps=3) as held:
        assert (held.path, held.step, held.state) == (1, 1, None)
        held.tell(0)
        held.tell(1)
    assert (study.chain("a").path, study.chain("a").step, study.chain("a").last) == (1, 3, 1)
    with lease(study, "two") as held:
        assert (held.path, held.step, held.state) == (1, 3, 1)
        held.tell(1)
    assert study.counts("a").transitions.tolist() == [[0, 1], [0, 1]]
    held = lease(study, "three")
    assert (held.path, held.state) == (1, 1)
    held.abandon()
    with lease(study, "four") as held:
        assert (held.path, held.state) == (2, None)
        held.tell(1)
    assert study.counts("a").total == 2
    check(study, {"a": 2}, RULE)


def test_who_advances_a_shared_process_must_hold_it(place):
    """A plain tell says nothing of who moved the process between its draw and the tell. Nothing is changed."""
    study = place.create({"a": 2}, policy=RULE, paths="shared")
    lease(study, "one").tell(0)
    before = study.progress(), list(study.log())
    for refused in (
        lambda: study.tell("a", 1),
        lambda: study.tell("a", 1, path=1, step=2),
        lambda: study.tell("a", 0, path=1, step=1),
        lambda: study.tell_many([("a", 1)]),
    ):
        with pytest.raises(Held, match=r"'a' is one process that workers share .* 'ask --lease WORKER'"):
            refused()
    assert (study.progress(), list(study.log())) == before


@pytest.mark.parametrize("continuing", [False, True])
def test_a_shared_process_that_was_started_anew(place, continuing):
    """Whoever says so ends the chain's one path, also in another process than the one that walked it last."""
    study = place.create({"a": 2}, policy=RULE, paths="shared")
    lease(study, "one").tell(0)
    lease(study, "two").tell(1)
    study = place.reopen(study, RULE, continuing)
    assert study.restart("a") == (2, 1)
    assert [event.kind for event in study.events()][-1] == "path ended"
    study.restart("a")  # there is no path that could end
    assert [event.kind for event in study.events()].count("path ended") == 1
    held = lease(study, "two", continuing=True)
    assert (held.path, held.state) == (2, None)
    with pytest.raises(Held, match="held by 'two'"):
        study.restart("a")
    held.tell(0)
    assert study.counts("a").transitions.tolist() == [[0, 1], [0, 0]]
    check(study, {"a": 2}, RULE)


def test_a_chain_set_aside_is_not_asked_for_when_its_lease_expires(place):
    study = place.create({"a": 2, "b": 2}, policy=RULE, paths="shared")
    set_clock(study, 10.0)
    held = lease(study, "w", seconds=5, steps=12)
    for _ in range(10):
        held.tell(0)
        held.restart()
    assert study.chain("a").aside
    set_clock(study, 20.0)
    assert study.ask() == "b"
    assert set(study.ask(4)) == {"b"}
    assert lease(study, "v").chain == "b"


def test_durations_are_numbers_words_or_timedeltas(tmp_path):
    with Study.create(None, {"a": 2}, budget=9) as study, study.worker("w", renews=False) as worker:
        lease = worker.lease("5min", wait="1s")
        assert lease.seconds == 300
        lease.renew(datetime.timedelta(minutes=2))
        assert lease.seconds == 120
        study.renew("a", lease.token, "1h 30min")
        with pytest.raises(InputError, match=r"seconds .how long the chain is held. must be a duration such as 30s"):
            lease.renew("soon")
        with pytest.raises(InputError, match=r"must be a finite number > 0, not 0\.0"):
            lease.renew("0s")
    Study.create(tmp_path / "lab.db", {"a": 2}, budget=9).close()
    Study.open(tmp_path / "lab.db", patience="10s").close()
