"""What a connection keeps of a study is never believed when another one has changed it."""

import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from study_checks import check, walked_paths
from study_places import lease as leased
from study_rules import RULE

from chainscout.errors import Held, InputError, LeaseLost, NothingFree, OutOfStep, StudyFinished
from chainscout.store.sql import cache, transaction
from chainscout.study import Study

STATES = {"a": 2, "b": 3, "c": ["x", "y"]}


@pytest.mark.filterwarnings("ignore::chainscout.errors.BarePathsWarning")
@pytest.mark.parametrize("limit", [cache.MOST_KEPT, 2])
def test_two_connections_in_turn_are_like_one(where, monkeypatch, limit):
    """The same operations, dealt out at random to two connections, and in memory, where nothing is kept or read."""
    for module in (cache, transaction):
        monkeypatch.setattr(module, "MOST_KEPT", limit)
    rng = random.Random(3)
    Study.create(where, STATES, policy=RULE).close()
    pair = [Study.open(where, RULE), Study.open(where, RULE)]
    memory = Study.create(None, STATES, policy=RULE)
    # A worker on each connection, and its like in memory; the paths of plain tells have a walker each, too.
    hands = [
        (one.worker(name, renews=False), memory.worker(name, renews=False))
        for one, name in zip(pair, "vw", strict=True)
    ]
    held: list[tuple] = []  # the same lease here and there
    for _ in range(300):
        number = rng.randrange(2)
        study = pair[number]
        kind = rng.choice(["tell", "tell", "tell", "many", "restart", "lease", "end", "renew", "slip", "again"])
        name = rng.choice(list(STATES))
        if kind == "tell":
            state = rng.choice(study.states(name))
            study.tell(name, state)
            memory.tell(name, state, path=study.chain(name).path)
        elif kind == "many":
            batch = [(chain, rng.choice(study.states(chain))) for chain in rng.choices(list(STATES), k=4)]
            study.tell_many(batch)
            for chain, state in batch:
                memory.tell(chain, state, path=study.chain(chain).path)
        elif kind == "restart" and study.chain(name).step > 1:
            memory._main.remember(name, memory._store.path(memory._store.chain(name), study.chain(name).path))
            study.restart(name)
            memory.restart(name)
        elif kind == "lease" and sum(one._worker is hands[number][0] for one, _ in held) < len(STATES):
            try:
                held.append(tuple(hand.lease(wait=0, steps=2) for hand in hands[number]))
            except (Held, NothingFree):  # it must tell of another chain first
                continue
            assert [(one.chain, one.path, one.state) for one in held[-1]] == [
                (held[-1][0].chain, held[-1][0].path, held[-1][0].state)
            ] * 2
        elif kind == "renew" and held:
            for lease in rng.choice(held):
                lease.renew(500)
        elif kind == "again" and held:
            for lease in (leases := rng.choice(held)):
                lease.restart()
            assert leases[0].path == leases[1].path
        elif kind == "end" and held:
            leases = held.pop(rng.randrange(len(held)))
            state = rng.choice(study.states(leases[0].chain))
            for lease in leases:
                lease.tell(state)
                lease.give_back()
        elif kind == "slip":  # an error after the first change: nothing of it may be remembered
            with pytest.raises(InputError):
                study.tell_many([(name, study.states(name)[0]), (name, "no such state")])
        for one in pair:
            assert one.indices() == memory.indices()
            assert one.progress().leases == memory.progress().leases == len(held)
            assert one.ask() == memory.ask()
    assert walked_paths(pair[0]) == walked_paths(memory)
    for lease, _ in held:
        lease.give_back()
    for one in pair:
        check(one, STATES, RULE)
        one.audit()
        one.close()


def test_a_lease_that_has_moved_on_is_noticed(where):
    """As many chains are held as before, but not the same: the totals alone would not tell."""
    study = Study.create(where, STATES, policy=RULE, paths="shared")
    other = Study.open(where, RULE)
    first = leased(other, "other")
    assert first.chain == "a"
    study.indices()  # reads all of them
    second = leased(other, "other")
    assert second.chain == "b"
    first.give_back()
    study.restart("a")
    with pytest.raises(Held, match="is held"):
        study.restart("b")
    with pytest.raises(LeaseLost):
        study.tell("a", 0, token=first.token)
    second.give_back()
    check(study, STATES, RULE)
    for one in (study, other):
        one.close()


def test_a_path_that_another_connection_has_walked_is_read_again(where):
    study = Study.create(where, {"a": 2}, policy=RULE)
    worker = study.worker("w", renews=False)
    worker.lease().tell(0)
    study.tell_many([("a", 0), ("a", 1)])
    other = Study.open(where, RULE, continuing=True)
    other.tell("a", 0)
    held = leased(other, "w", continuing=True)
    assert (held.path, held.state) == (1, 0)
    held.tell(1)
    assert study.chain("a").last is None  # what this connection kept of path 2 is not believed
    study.tell("a", 1)
    held = worker.lease()
    assert held.state is None
    held.tell(0)
    assert walked_paths(study) == {("a", 1): [0, 1], ("a", 2): [0, 1, 0], ("a", 3): [1], ("a", 4): [0]}
    check(other, {"a": 2}, RULE)
    for one in (study, other):
        one.close()


def alone(where, **options):
    """A study whose only writer has told something last, and another connection to it."""
    study = Study.create(where, STATES, policy=RULE, **options)
    for state in (0, 1, 0):
        for name in "ab":
            study.tell(name, state)
    return study, Study.open(where, RULE)


def test_a_tell_after_a_tell_of_another_writer_counts_both(where):
    """No question in between: what the first writer knows is old when it tells."""
    study, other = alone(where)
    for state in (1, 0, 1, 1):
        other.tell("a", state)
        other.tell("b", state)
        study.tell("a", state)
    assert walked_paths(study)["a", 1] == [0, 1, 0, 1, 0, 1, 1]
    assert walked_paths(study)["a", 2] == [1, 0, 1, 1]
    check(study, STATES, RULE)
    study.audit()
    for one in (study, other):
        one.close()


def test_asking_sees_what_another_writer_told(where):
    study, other = alone(where)
    memory = Study.create(None, STATES, policy=RULE)
    for state in (0, 1, 0):
        for name in "ab":
            memory.tell(name, state)
    assert study.ask() == memory.ask() == "c"
    for state in "xyx":
        other.tell("c", state)
        memory.tell("c", state)
    assert study.ask() == other.ask() == memory.ask() != "c"
    other.set_aside(memory.ask(), "it was switched off")
    memory.set_aside(memory.ask(), "it was switched off")
    assert study.ask() == memory.ask()
    for one in (study, other):
        one.close()


def test_an_error_is_about_the_study_as_it_is(where):
    """Old records raise no error that the study does not, and hide none."""
    study, other = alone(where, budget=8)
    for state in (1, 0):
        study.tell("a", state)
    other.extend(budget=12)  # for all that the first writer knows, the study has stopped
    for state in (1, 0, 1):
        study.tell("a", state)
    other.tell("b", 0)
    with pytest.raises(StudyFinished):
        study.tell("a", 0)
    other.extend(budget=14)
    study.tell("a", 0)
    assert walked_paths(study)["a", 1] == [0, 1, 0, 1, 0, 1, 0, 1, 0]
    for one in (study, other):
        one.close()


def test_asking_sees_that_another_writer_has_ended_the_study(where):
    study, other = alone(where, budget=8)
    assert study.ask() == "c"
    for state in "xy":
        other.tell("c", state)
    with pytest.raises(StudyFinished):
        study.ask()
    other.extend(budget=9)
    assert study.ask() in STATES
    lease = leased(other, "w")
    with pytest.raises(NothingFree):
        study.ask()
    lease.give_back()
    assert study.ask() in STATES
    for one in (study, other):
        one.close()


def test_a_rule_that_fails_changes_nothing(where):
    """The error of a tell that was not confirmed yet: the records are as they were, and so is the study."""
    study, other = alone(where)
    before = walked_paths(other)
    with pytest.raises(InputError):
        study.tell("a", 17)
    with pytest.raises(OutOfStep):
        study.tell("a", 1, path=1, step=9)
    assert walked_paths(study) == walked_paths(other) == before
    study.tell("a", 1)
    check(study, STATES, RULE)
    for one in (study, other):
        one.close()


def test_writers_at_once_lose_nothing(where):
    """Threads with a connection each, which often believe that they are alone."""
    Study.create(where, STATES, policy=RULE).close()
    told = 40

    def work(number):
        with Study.open(where, RULE) as study:
            for step in range(told):
                if step % 3 == 0:
                    study.ask()
                study.tell("ab"[step // 5 % 2], (number + step) % 2)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(3)))
    with Study.open(where, RULE) as study:
        assert study.progress().observations == 3 * told
        assert sorted(len(path) for path in walked_paths(study).values()) == [told // 2] * 6
        check(study, STATES, RULE)
        study.audit()
