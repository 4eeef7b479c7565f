"""What costs time on PostgreSQL is waiting for answers.

Asking and telling wait once each while nobody else writes, and twice each while somebody does.
"""

import random

import pytest
from study_wire import watched

from chainscout.study import Study
from chainscout.study._repetition import CHECKPOINTS


def waits(wire, call, *arguments):
    """How often a call waits for the server, and what it gives."""
    before = wire.turns
    found = call(*arguments)
    return wire.turns - before, found


def filled(server, **options):
    """A study with 500 observations of each chain; one with a target of chains that no check speaks against."""
    address, rng = server.address(), random.Random(0)
    with Study.create(address, {"a": 3, "b": ["x", "y", "z"], "c": []}, open_states=["c"], **options) as study:
        told = {"a": (0, 1, 2, 1), "b": ("x", "y", "z", "y"), "c": ("up", 5, "5")}
        drawn = {name: rng.choices(states, k=500) if options else states * 167 for name, states in told.items()}
        study.tell_many([(name, drawn[name][t]) for t in range(500) for name in told])
    return address


def turn(study, wire, step):
    """One pair; gives how often asking and telling waited, and whether something was due besides the observation."""
    asked, name = waits(wire, study.ask)
    before = due(study)
    wait, _ = waits(wire, study.tell, name, {"a": 1, "b": "y", "c": ("up", 5)[step % 2]}[name])
    after = due(study)
    # A path that began like another one costs two reads: is there another one, and which states do they have in common?
    return asked, wait - 2 * (after[-1] - before[-1]), after != before


def due(study):
    """What is written now and then: certificates, history, prefixes of paths."""
    with study._store.reading() as transaction:
        steps = [path.steps for chain in transaction.every() for path in transaction.paths(chain)]
        begun = sum(s >= length for s in steps for length in CHECKPOINTS)
        return [chain.certified for chain in transaction.every()], transaction.study.lines, begun


@pytest.mark.parametrize(
    ("writers", "target", "expected"),
    [(1, None, (1, 1)), (1, 1e-6, (1, 1)), (2, None, (2, 2)), (2, 1e-6, (2, 2))],
)
def test_asking_and_telling_wait_once_or_twice(server, tmp_path, writers, target, expected):
    address = filled(server, target_loss=target)
    with watched(server, tmp_path / "0", address) as one, watched(server, tmp_path / "1", address) as other:
        places = [one, other][:writers]
        for step in range(24):  # everything is prepared, and every writer knows its path and the rows of every chain
            for study, _ in places:
                study.tell("abc"[step % 3], ((0, "x", "up"), (1, "y", 5))[step // 3 % 2][step % 3])
        found = [turn(*place, step) for step in range(25) for place in places]
    plain = [(asked, told) for asked, told, is_due in found if not is_due]
    assert plain == [expected] * len(plain)
    assert len(plain) > 10
    # A certificate or a line of history needs one more answer at most, unless the rows are known.
    assert all((asked, told) <= (2, 3) for asked, told, _ in found)


@pytest.mark.parametrize("writers", [1, 2])
def test_plain_tells_beside_leases_wait_twice(server, tmp_path, writers):
    address = filled(server)
    with watched(server, tmp_path / "0", address) as one, watched(server, tmp_path / "1", address) as other:
        places = [one, other][:writers]
        held = [other[0].worker(f"w{k}", renews=False).lease(600.0) for k in range(3)]
        for step in range(6):
            for study, _ in places:
                study.tell("ab"[step % 2], (0, "x")[step % 2])
        found = [turn(*place, step) for step in range(12) for place in places]
        plain = [(asked, told) for asked, told, is_due in found if not is_due]
        assert plain == [(2, 2)] * len(plain)
        assert len(plain) > 5
        assert all(lease.status.value == "held" for lease in held)


def test_workers_in_turn(server, tmp_path):
    """A lease waits three times, and telling under it twice, when another worker has written in between."""
    address = filled(server)
    with watched(server, tmp_path / "0", address) as one, watched(server, tmp_path / "1", address) as other:
        workers = [(study.worker(f"worker {k}", renews=False), wire) for k, (study, wire) in enumerate((one, other))]
        found = []
        for _ in range(30):
            for (worker, wire), (study, _) in zip(workers, (one, other), strict=True):
                leased, lease = waits(wire, worker.lease, 600.0)
                before = due(study)
                told, _ = waits(wire, lease.tell, {"a": 1, "b": "y", "c": "up"}[lease.chain])
                found.append((leased, told, due(study) != before))
    plain = [(leased, told) for leased, told, is_due in found[24:] if not is_due]
    assert len(plain) > 10
    assert all(leased <= 3 and told == 2 for leased, told in plain), plain


def test_a_writer_that_was_slower_waits_three_times(server, tmp_path):
    """The message that was too late, and then the two of somebody who is not alone."""
    address = filled(server)
    with watched(server, tmp_path / "0", address) as one, watched(server, tmp_path / "1", address) as other:
        (study, wire), (second, _) = one, other
        for state in (0, 1, 0, 1, 0, 1):
            study.tell("a", state)
        study.ask()  # this reads the labels of "b"
        assert waits(wire, study.tell, "a", 0)[0] == 1
        second.tell("b", "x")
        assert waits(wire, study.tell, "a", 1)[0] == 3
        assert [waits(wire, study.ask)[0], waits(wire, study.tell, "a", 0)[0]] == [2, 2]
        assert [waits(wire, study.ask)[0], waits(wire, study.tell, "a", 1)[0]] == [1, 1]  # it is alone again
