"""What a connection keeps of a study is never believed when another one has changed it."""

import random

import pytest
from study_checks import check, walked_paths
from study_places import lease as leased
from study_rules import RULE

from chainscout.errors import Held, InputError, LeaseLost
from chainscout.store.sql import transaction
from chainscout.study import Study

STATES = {"a": 2, "b": 3, "c": ["x", "y"]}


@pytest.mark.filterwarnings("ignore::chainscout.errors.BarePathsWarning")
@pytest.mark.parametrize("limit", [transaction._MOST_KEPT, 2])
def test_two_connections_in_turn_are_like_one(where, monkeypatch, limit):
    """The same operations, dealt out at random to two connections, and in memory, where nothing is kept or read."""
    monkeypatch.setattr(transaction, "_MOST_KEPT", limit)
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
            held.append(tuple(hand.lease(wait=0, steps=2) for hand in hands[number]))
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
