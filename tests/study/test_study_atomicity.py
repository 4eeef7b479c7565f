"""What ends with an error has changed nothing, wherever the study is kept: a rule slips at every place where it can."""

import math
from dataclasses import replace

import pytest
from study_checks import check, check_issues, check_leases
from study_places import lease, set_clock

from chainscout.errors import InputError
from chainscout.policies import Policy
from chainscout.study import Study

CHAINS = {"a": ["x", "y"], "b": [], "c": 3}


class Slip:
    """A rule that fails once, when it is looked at for the n-th time from now."""

    def __init__(self, block):
        self.left = 0
        self.policy = Policy(
            "frail",
            index=self.index,
            terms=lambda row, exits, squares, _: (squares / (exits * exits),),
            constants=lambda setting: (float(setting.budget or 0), float(setting.size)),
            block=block,
        )

    def index(self, sums, transitions, constants):
        self.left -= 1
        return math.nan if self.left == 0 else (1.0 + sums[0] + constants[0]) / transitions


def everything(study):
    """All that a study shows, but for the times."""
    chains = [(study.chain(name), study.states(name)) for name in study.names]
    counts = [study.counts(name) for name in study.names if study.states(name)]
    estimates = [(e.lower.tolist(), e.upper.tolist()) for e in map(study.estimate, study.names)]
    events = [(event.kind, event.chain, event.detail) for event in study.events()]
    log = [(line.chain, line.step, line.path, line.state, line.issued) for line in study.log()]
    with study._store.reading() as transaction:
        records = [path for chain in transaction.every() for path in transaction.paths(chain)]
        paths = [repr(replace(path, token=path.token and "t", teller=path.teller and "t")) for path in records]
        held = [(path.chain, path.number) for path in transaction.held()]
        totals = transaction.study.issues, transaction.study.reserved
    seen = chains, counts, estimates, events, log, paths, held, totals
    return study.progress(), study.indices(), study.certificate(), *seen


def begun(place, slip):
    """A study in the middle of its life: an open chain, a broken path, and a lease that has run out."""
    study = place.create(CHAINS, budget=200, policy=slip.policy, open_states=["b"], target_loss=1e-3)
    set_clock(study, 100.0)
    study.tell_many([("a", "x"), ("a", "y"), ("a", "y"), ("b", "p"), ("b", "q"), ("b", "q")])
    study.restart("a")
    assert lease(study, "gone", seconds=10, steps=2).chain == "c"
    set_clock(study, 200.0)
    return study


def refused(call):
    """Whether the rule slipped."""
    try:
        call()
    except InputError as error:
        if "an index that is no number" not in str(error):
            raise
        return True
    return False


BATCH = [("c", 2), ("c", 1), ("a", "y"), ("b", "new"), ("b", "newer"), ("a", "x"), ("b", "p"), ("a", "x"), ("b", "new")]
CHANGES = {
    "a batch": (lambda study: study.tell_many(BATCH), 4),
    "a larger budget": (lambda study: study.extend(budget=300, target_loss=0.5, deadline=900.0), 2),
    "a new state": (lambda study: study.tell("b", "new"), 1),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("block", [0.0, 0.5])
def test_a_rule_that_slips_halfway_has_changed_nothing(place, block, change):
    make, least = CHANGES[change]
    slip = Slip(block)
    study = begun(place, slip)
    before = everything(study)
    slip.left = slips = 1
    while refused(lambda: make(study)):
        assert everything(study) == before
        slips += 1
        slip.left = slips
    assert slips > least
    slip.left = 0
    untouched = begun(place, slip)
    make(untouched)
    assert everything(study) == everything(untouched)
    for one in (study, untouched):  # and they go on alike
        for _ in range(30):
            name = one.ask()
            one.tell(name, one.states(name)[one.chain(name).observations % 2])
    assert everything(study) == everything(untouched)
    study.audit()


def worked(place, slip):
    """Two workers in the middle of their work, one with a path that it has left for a while."""
    study = place.create({"a": 2, "b": 3}, budget=200, policy=slip.policy)
    set_clock(study, 100.0)
    study.tell_many([("a", 0), ("a", 1), ("a", 1), ("b", 2), ("b", 0), ("b", 1)])
    worker = study.worker("one", renews=False)
    worker.lease(steps=1).tell(0)
    held = worker.lease(steps=4)
    held.tell(1)
    lease(study, "gone", seconds=10, steps=2)
    set_clock(study, 120.0)
    return study, worker, held


UNDER_LEASE = {
    "a grant": lambda study, worker, held: study.worker("two", renews=False).lease(steps=3),
    "a tell": lambda study, worker, held: held.tell(1),
    "an end": lambda study, worker, held: held.give_back(),
    "an abandoned lease": lambda study, worker, held: held.abandon(),
    "a chain set aside": lambda study, worker, held: study.set_aside(held.chain, "broken", token=held.token),
    "a plain tell": lambda study, worker, held: study.tell("b", 1),
}


@pytest.mark.parametrize("change", UNDER_LEASE)
@pytest.mark.parametrize("block", [0.0, 0.5])
def test_what_a_slip_leaves_of_leases(place, block, change):
    make, slip = UNDER_LEASE[change], Slip(block)
    study, worker, held = worked(place, slip)
    before = everything(study)
    slip.left = slips = 1
    while refused(lambda: make(study, worker, held)):
        assert everything(study) == before
        check_leases(study)
        slips += 1
        slip.left = slips
    assert slips > 1 or (block and change == "a tell")
    slip.left = 0
    untouched = worked(place, slip)
    make(*untouched)
    assert everything(study) == everything(untouched[0])
    for one, hand, last in ((study, worker, held), untouched):
        if last.steps and change != "a chain set aside":
            last.restart()
            last.tell(0)
        hand.lease().tell(0)
        lease(one, "another").tell(1)
        check_leases(one)
        check_issues(one)
    assert everything(study) == everything(untouched[0])
    study.audit()


@pytest.mark.parametrize(
    "wrong",
    [
        {"budget": 500, "target_loss": -1},
        {"budget": 500, "deadline": "soon"},
        {"budget": 500, "target_loss": 0.5, "deadline": math.nan},
        {"budget": 2, "target_loss": 0.5, "deadline": 900.0},
        {"budget": 2.5, "target_loss": 0.5, "deadline": 900.0},
    ],
)
def test_a_study_is_extended_whole_or_not_at_all(place, wrong):
    study = begun(place, Slip(0.0))
    before = everything(study)
    with pytest.raises(InputError):
        study.extend(**wrong)
    assert everything(study) == before


def test_an_ended_lease_is_ended_by_what_is_accepted_alone(place):
    study = begun(place, Slip(0.0))
    before = everything(study)
    for refused in ([("c", 1), ("c", 3)], [("c", 1), ("west", 0)], [("c", 1)] * 300):
        with pytest.raises(InputError):
            study.tell_many(refused)
        assert everything(study) == before
    study.tell_many([("c", 1)])
    assert [event.kind for event in study.events()][-1] == "lease expired"
    assert (study.progress().leases, study.progress().lost) == (0, 1)


def test_an_interrupted_batch_has_changed_nothing():
    def interrupted(sums, transitions, constants):
        if transitions == 3.0:
            raise KeyboardInterrupt
        return 1.0 / transitions

    policy = Policy("interrupted", index=interrupted, terms=lambda *_: (0.0,))
    study = Study.create(None, {"a": 2, "b": 2}, policy=policy)
    before = everything(study)
    with pytest.raises(KeyboardInterrupt):
        study.tell_many([("b", 1)] * 3 + [("a", 0)] * 4)
    assert everything(study) == before
    assert study.ask() == "a"
    study.tell_many([("a", 0), ("a", 1), ("b", 1)])
    check(study, {"a": 2, "b": 2}, policy)
