"""What a connection keeps of a study is never believed when another one has changed it."""

import random

import pytest
from study_checks import check
from study_rules import RULE

from chainscout.errors import InputError, LeaseLost
from chainscout.store.sql import transaction
from chainscout.study import Study

STATES = {"a": 2, "b": 3, "c": ["x", "y"]}


@pytest.mark.parametrize("limit", [transaction._MOST_KEPT, 2])
def test_two_connections_in_turn_are_like_one(where, monkeypatch, limit):
    """The same operations, dealt out at random to two connections, and in memory, where nothing is kept or read."""
    monkeypatch.setattr(transaction, "_MOST_KEPT", limit)
    rng = random.Random(3)
    Study.create(where, STATES, policy=RULE).close()
    pair = [Study.open(where, RULE), Study.open(where, RULE)]
    memory = Study.create(None, STATES, policy=RULE)
    held: list[tuple] = []  # the same lease here and there
    for _ in range(300):
        study = rng.choice(pair)
        kind = rng.choice(["tell", "tell", "tell", "many", "restart", "lease", "end", "renew", "slip"])
        free = [name for name in STATES if name not in [lease.chain for lease, _ in held]]
        if kind == "tell" and free:
            name = rng.choice(free)
            state = rng.choice(study.states(name))
            study.tell(name, state)
            memory.tell(name, state)
        elif kind == "many" and free:
            batch = [(name, rng.choice(study.states(name))) for name in rng.choices(free, k=4)]
            study.tell_many(batch)
            memory.tell_many(batch)
        elif kind == "restart" and free:
            name = rng.choice(free)
            study.restart(name)
            memory.restart(name)
        elif kind == "lease" and free:
            held.append((study.lease("w", wait=0, steps=2), memory.lease("w", wait=0, steps=2)))
            assert held[-1][0].chain == held[-1][1].chain
        elif kind == "renew" and held:
            for lease in rng.choice(held):
                lease.renew(500)
        elif kind == "end" and held:
            leases = held.pop(rng.randrange(len(held)))
            state = rng.choice(study.states(leases[0].chain))
            for lease in leases:
                lease.tell(state)
                lease.give_back()
        elif kind == "slip" and free:  # an error after the first change: nothing of it may be remembered
            with pytest.raises(InputError):
                study.tell_many([(free[0], study.states(free[0])[0]), (free[0], "no such state")])
        for one in pair:
            assert one.indices() == memory.indices()
            assert one.progress().leases == memory.progress().leases == len(held)
            if len(held) < len(STATES):
                assert one.ask() == memory.ask()
    for lease, _ in held:
        lease.give_back()
    for one in pair:
        check(one, STATES, RULE)
        one.audit()
        one.close()


def test_a_lease_that_has_moved_on_is_noticed(where):
    """As many chains are held as before, but not the same: the totals alone would not tell."""
    study = Study.create(where, STATES, policy=RULE)
    other = Study.open(where, RULE)
    first = other.lease("other", wait=0)
    assert first.chain == "a"
    study.tell("c", "x")
    study.indices()  # reads all of them
    second = other.lease("other", wait=0)
    assert second.chain == "b"
    first.give_back()
    study.tell("a", 0)
    with pytest.raises(InputError, match="is held"):
        study.tell("b", 0)
    with pytest.raises(LeaseLost):
        study.tell("a", 0, token=first.token)
    second.give_back()
    check(study, STATES, RULE)
    for one in (study, other):
        one.close()
