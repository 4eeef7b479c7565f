"""Telling: alone, in batches, again and after a restart; what is wrong changes nothing. In every place."""

import math
import random

import pytest
from study_checks import check
from study_driving import STATES, drive, nth_state
from study_rules import RULE

from chainscout.errors import InputError, StudyFinished
from chainscout.policies import Policy
from chainscout.study import Study


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
        ([1], 0, r"no chain \[1\]"),
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


def test_a_rule_that_fails_loses_no_observation_and_is_told_to_who_asks(place):
    def terms(row, exits, squares, constants):
        if exits == 5.0:
            raise ZeroDivisionError("a slip in a rule")
        return (exits,)

    frail = Policy("frail", index=lambda sums, t, _: 1.0 / t, terms=terms)
    study = place.create({"a": 1}, policy=frail)
    worker = study.worker("rig", renews=False)
    lease = worker.lease()
    for _ in range(6):
        study.tell("a", 0)
    for ask in (study.ask, lambda: study.ask(3), worker.lease):
        with pytest.raises(ZeroDivisionError, match="a slip in a rule"):
            ask()
    assert (study.progress().observations, study.counts("a").transitions.tolist()) == (6, [[5]])
    study.tell_many([("a", 0)])  # the terms of the row are computed again, and are right
    lease.tell(0)
    assert study.ask() == "a"
    assert study.progress().observations == 8


def test_a_rule_that_fails_after_a_workers_tell_fails_at_its_next_lease(place):
    def index(sums, transitions, constants):
        if transitions == 3.0:
            raise ZeroDivisionError("a slip in a rule")
        return 1.0

    study = place.create({"a": 1}, policy=Policy("frail", index=index, terms=lambda *_: (0.0,)))
    with study.worker("rig", renews=False) as worker:
        leases = iter(worker)
        next(leases).tell(0)
        for _ in range(3):
            next(leases).tell(0)
        with pytest.raises(ZeroDivisionError):
            next(leases)
        assert study.progress().observations == 4


def test_an_index_that_is_no_number_is_refused(place):
    study = place.create({"a": 2}, policy=Policy("nan", index=lambda sums, t, _: math.nan, terms=lambda *_: (0.0,)))
    study.tell("a", 0)
    study.tell("a", 1)
    with pytest.raises(InputError, match="no number"):
        study.ask()
    assert study.progress().observations == 2


def test_steps_make_a_retry_harmless(place):
    study = place.create(STATES, policy=RULE)
    study.tell("south", 3, step=1)
    study.tell("south", 2, step=2)
    before = study.progress(), study.indices()
    study.tell("south", 2, step=2)
    study.tell("south", 3, step=1)
    study.tell("south", 2, path=1, step=2)
    assert (study.progress(), study.indices()) == before
    with pytest.raises(InputError, match="another state"):
        study.tell("south", 1, step=2)
    with pytest.raises(InputError, match="has the number 3, not 4"):
        study.tell("south", 1, step=4)
    with pytest.raises(InputError, match="step"):
        study.tell("south", 1, step=0)
    with pytest.raises(InputError, match="path"):
        study.tell("south", 1, path=0)
    with pytest.raises(InputError, match="no path 3: its next one has the number 2"):
        study.tell("south", 1, path=3, step=1)
    with pytest.raises(InputError, match=r"path 2 .* has the number 1, not 2"):
        study.tell("south", 1, path=2, step=2)
    assert study.chain("south").step == 3
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


def test_restart_begins_a_path(place):
    study = place.create({"a": 2}, policy=RULE)
    for state in (0, 1):
        study.tell("a", state)
    study.restart("a")
    study.restart("a")  # nothing was told in between: still the same new path
    for state in (0, 0):
        study.tell("a", state)
    assert study.counts("a").transitions.tolist() == [[1, 1], [0, 0]]
    assert [(line.step, line.path, line.state) for line in study.log()] == [
        (1, 1, 0),
        (2, 1, 1),
        (1, 2, 0),
        (2, 2, 0),
    ]
    assert [line.number for line in study.log("a", after=2)] == [3, 4]
    check(study, {"a": 2}, RULE)
