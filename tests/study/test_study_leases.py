"""Leases: who holds which chain, for how long, and what becomes of it, wherever the study is kept."""

import re

import pytest
from study_checks import check
from study_driving import STATES, drive, nth_state
from study_places import set_clock
from study_rules import RULE

from chainscout.errors import InputError, LeaseLost, NothingFree, StudyFinished


def test_workers_get_different_chains_best_first(place):
    study = place.create(STATES, policy=RULE)
    drive(study, 20)
    ranked = sorted(STATES, key=lambda name: -study.indices()[name])
    leases = [study.lease(f"worker {n}") for n in range(3)]
    assert [lease.chain for lease in leases] == ranked
    assert len({lease.token for lease in leases}) == 3
    with pytest.raises(NothingFree, match="3 chains are held"):
        study.lease("late", wait=0)
    with pytest.raises(NothingFree):
        study.ask()
    with pytest.raises(InputError, match="held by 'worker 0'"):
        study.tell(ranked[0], nth_state(ranked[0], 1))
    leases[1].tell(nth_state(ranked[1], 1))
    assert study.ask() == ranked[1]
    for lease in leases:
        lease.give_back()
    assert study.progress().leases == 0
    check(study, STATES, RULE)


def test_a_lease_is_for_so_many_observations(place):
    study = place.create({"a": 2}, budget=5, policy=RULE)
    with study.lease("w", steps=3) as lease:
        assert (lease.chain, lease.step, lease.steps, lease.restarted) == ("a", 1, 3, True)
        lease.tell(0)
        lease.tell(1)
        lease.renew(100.0)
    assert study.progress().leases == 0
    with study.lease("w", steps=30) as lease:
        assert (lease.step, lease.steps, lease.restarted) == (3, 3, False)
        for _ in range(3):
            lease.tell(1)
        with pytest.raises(LeaseLost, match="have been told"):
            lease.tell(1)
    assert study.stop_reason == "budget"
    check(study, {"a": 2}, RULE)


def test_a_budget_is_not_lowered_below_what_is_promised(place):
    study = place.create(dict.fromkeys("abcdef", 2), budget=100, policy=RULE)
    set_clock(study, 1000.0)
    study.tell("a", 0)
    study.lease("late", seconds=5.0, steps=20)
    leases = [study.lease(worker, seconds=60.0, steps=3) for worker in ("first", "second")]
    set_clock(study, 1010.0)
    held = ", ".join(f"{w!r} on {lease.chain!r}" for w, lease in zip(("first", "second"), leases, strict=True))
    words = f"1 of the budget are used and 6 are promised to leases ({held}): it cannot become 6"
    with pytest.raises(InputError, match=f"^{re.escape(words)}$"):
        study.extend(budget=6)
    assert study.progress().budget == 100
    study.extend(budget=7)  # what the lease that ran out was promised is nobody's
    for lease in leases:
        for state in (0, 1, 1):
            lease.tell(state)
    assert (study.progress().used, study.stop_reason) == (7, "budget")


def test_of_many_leases_some_are_named(place):
    study = place.create(dict.fromkeys("abcdef", 2), budget=100, policy=RULE)
    for number in range(5):
        study.lease(f"w{number}")
    with pytest.raises(
        InputError, match=r"^0 of .* and 5 are promised to leases \('w0' on .*, 'w2' on '.' and 2 more\): "
    ):
        study.extend(budget=4)


def test_leases_in_flight_count_against_the_budget(place):
    study = place.create(STATES, budget=2, policy=RULE)
    first, second = study.lease("one"), study.lease("two")
    with pytest.raises(NothingFree):
        study.lease("three", wait=0)
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
    lease = study.lease("w", seconds=60, steps=5)
    assert lease.chain == "a"
    for state in (0, 1, 0, 1):
        study.tell("b", state)
    for refused in (lambda: study.tell_many([("b", 0)] * 3), lambda: study.tell_many([("b", 0), ("b", 1)])):
        with pytest.raises(NothingFree, match=r"the batch costs .* than is left of the budget, less what is promised"):
            refused()
    study.tell_many([("b", 0)])
    with pytest.raises(NothingFree, match="the observation costs 1 more than is left of the budget, less what is"):
        study.tell("b", 1)
    study.tell("b", 0, step=5)  # a retry costs nothing
    for asking in (study.ask, lambda: study.ask(3), lambda: study.lease("late", wait=0)):
        with pytest.raises(NothingFree, match="what is left of the budget is promised"):
            asking()
    lease.tell(0)
    lease.tell(1)
    assert (study.progress().used, study.stop_reason) == (7, None)
    set_clock(study, 160.0)  # it has run out: what it was promised is there for all, though nobody has noticed yet
    assert study.ask() in ("a", "b")
    assert len(study.ask(10)) == 3
    study.tell("b", 1)
    with pytest.raises(LeaseLost):
        lease.tell(1)
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


def test_a_valid_holder_is_always_heard(place):
    study = place.create(STATES, budget=100, policy=RULE, deadline=1000.0)
    set_clock(study, 990.0)
    lease = study.lease("slow", seconds=60)
    set_clock(study, 1001.0)
    with pytest.raises(StudyFinished, match="deadline"):
        study.lease("late")
    lease.tell("busy")
    assert study.progress().observations == 1
    assert study.stop_reason == "deadline"


@pytest.mark.parametrize("fate", ["restart", "continue"])
def test_a_lease_that_runs_out(place, fate):
    study = place.create({"a": 2, "b": 2}, policy=RULE, on_lost_lease=fate)
    study.tell_many([("a", 0), ("b", 0)])
    set_clock(study, 100.0)
    dead = study.lease("dead", seconds=10)
    assert dead.chain == "a"
    set_clock(study, 109.0)
    assert study.ask() == "b"
    set_clock(study, 110.0)
    assert study.ask() == "a"  # asking changes nothing, but the chain is free
    with pytest.raises(LeaseLost, match="ran out"):
        dead.tell(1)
    with study.lease("alive", seconds=10) as lease:
        assert lease.chain == "a"
        assert lease.restarted == (fate == "restart")
        with pytest.raises(LeaseLost, match="has ended"):
            dead.tell(1)
        lease.tell(1)
    with pytest.raises(LeaseLost):
        dead.renew()
    with pytest.raises(LeaseLost):
        dead.give_back()
    assert study.counts("a").total == (0 if fate == "restart" else 1)
    assert study.progress().lost == 1
    assert "1 observation was lost" in study.certificate().notes[1]
    assert "lease expired" in [event.kind for event in study.events()]
    check(study, {"a": 2, "b": 2}, RULE)


def test_a_late_tell_that_was_stored_before_is_no_error(place):
    study = place.create({"a": 2}, policy=RULE)
    lease = study.lease("w")
    study.tell("a", 1, step=lease.step, token=lease.token)
    lease.tell(1)  # the acknowledgement was lost, and the lease has ended with its last observation
    assert study.progress().observations == 1


def test_a_worker_that_fails_gives_the_chain_up(place):
    study = place.create({"a": 2}, policy=RULE)
    study.tell("a", 0)
    with pytest.raises(OSError, match="simulator"), study.lease("w"):
        raise OSError("the simulator died")
    assert study.counts("a").last is None
    assert study.progress().lost == 1
    with study.lease("w") as lease:
        lease.restart(lost=True)
        lease.tell(0)
    assert study.progress().lost == 2


def test_a_plain_tell_ends_a_lease_that_ran_out(place):
    study = place.create({"a": 2}, policy=RULE)
    study.tell("a", 0)
    set_clock(study, 10.0)
    study.lease("dead", seconds=1)
    set_clock(study, 11.0)
    study.tell("a", 1)
    assert study.counts("a").total == 0  # the path ended with the lease
    assert study.progress().leases == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"worker": ""}, "worker's name"),
        ({"seconds": 0}, "seconds"),
        ({"steps": 0}, "steps"),
        ({"wait": -1}, "wait"),
    ],
)
def test_leases_are_checked(place, change, words):
    study = place.create({"a": 2}, policy=RULE)
    with pytest.raises(InputError, match=words):
        study.lease(**{"worker": "w", **change})
