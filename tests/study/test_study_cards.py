"""`Study.paths`: a chain's draws in the order of issue, whoever made them."""

import numpy as np
import pytest
from study_places import set_clock

import chainscout as cs
from chainscout.errors import OutOfStep
from chainscout.paths import HOLE, PENDING, START


def rows(paths):
    """(path, step, source, target) of each card, in the order of issue."""
    columns = (paths.path, paths.step, paths.source, paths.target)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_plain_tells_of_one_path_after_another_are_in_their_order(place):
    study = place.create({"a": 3})
    study.tell_many([("a", 0), ("a", 1)])
    study.restart("a", due=True)
    study.tell_many([("a", 2), ("a", 2)])
    paths = study.paths("a")
    # The draw after the first path was never made, because its end was due. So its slot is void.
    assert rows(paths) == [(0, 0, START, 0), (0, 1, 0, 1), (1, 0, START, 2), (1, 1, 2, 2), (1, 2, 2, PENDING)]
    assert not paths.late_losses(by_row=False).any()
    assert (paths.workers, paths.unordered) == (("main",), None)
    assert paths.counts() == study.counts("a")


def test_a_path_that_was_left_waits_for_its_next_tell(place):
    study = place.create({"a": ["x", "y"]})
    study.tell_many([("a", "x"), ("a", "y")])
    study.tell("a", "x", path=2, step=1)
    study.tell("a", "x", path=2, step=2)
    paths = study.paths("a")
    assert paths.states == ("x", "y")
    assert rows(paths)[2] == (0, 2, 1, PENDING)
    assert paths.pending == 2
    study.tell("a", "x", path=1, step=3)
    assert rows(study.paths("a"))[2] == (0, 2, 1, 0)


def test_leases_are_in_the_order_of_their_grants_and_not_of_arrival(place):
    study = place.create({"a": 2})
    with study.worker("one", renews=False) as one, study.worker("two", renews=False) as two:
        first, second = one.lease(steps=3), two.lease(steps=3)
        assert rows(study.paths("a")) == [(0, 0, START, PENDING), (1, 0, START, PENDING)]
        second.tell(0)  # draw 2 arrives before draw 1
        first.tell(1)
        second.tell(1)
        paths = study.paths("a")
        assert rows(paths) == [(0, 0, START, 1), (1, 0, START, 0), (1, 1, 0, 1), (0, 1, 1, PENDING), (1, 2, 1, PENDING)]
        assert paths.issued.tolist()[:2] == [first.token, second.token]
        assert [paths.workers[worker] for worker in paths.worker] == ["one", "two"]
        second.tell(0)  # draw 5, from state 1, is known …
        first.give_back()  # … when draw 4 of the same state is given up
        paths = study.paths("a")
        assert rows(paths)[3] == (0, 1, 1, HOLE)
        assert paths.late_losses(by_row=True).tolist() == [False, False, False, True, False]


def test_an_expired_lease_is_a_hole(place):
    study = place.create({"a": 2})
    set_clock(study, 100.0)
    study.worker("one", renews=False).lease(seconds=5, steps=2).tell(0)
    set_clock(study, 200.0)
    study.worker("two", renews=False).lease(seconds=5).tell(1)
    assert rows(study.paths("a"))[:2] == [(0, 0, START, 0), (0, 1, 0, HOLE)]


def test_a_first_state_that_was_lost_is_a_hole_of_the_law_of_starts(place):
    """The worker of the second one says that nothing was drawn, but a later one had been asked for."""
    study = place.create({"a": 2})
    workers = [study.worker(name, renews=False) for name in ("lost", "back", "told", "last")]
    lost, back, told, last = (worker.lease(chain="a") for worker in workers)
    told.tell(1)
    lost.abandon()
    back.give_back()
    last.give_back()
    assert [target for _, _, source, target in rows(study.paths("a")) if source == START] == [HOLE, HOLE, 1]


def test_a_mistold_step_is_a_hole_at_its_own_place(place):
    """Whoever tells more of other paths before the correction does not move it."""
    study = place.create({"a": 2})
    one, two = (study.worker(name, renews=False).lease(steps=9) for name in ("one", "two"))
    for lease, state in ((one, 0), (two, 0), (two, 0), (one, 0), (two, 1), (one, 1)):
        lease.tell(state)
    before = [row for row in rows(study.paths("a")) if row[2] == 0]
    assert before == [(0, 1, 0, 0), (1, 1, 0, 0), (1, 2, 0, 1), (0, 2, 0, 1)]
    study.correct("a", 1, 3)
    after = [(source, target) for _, _, source, target in rows(study.paths("a"))]
    assert [target for source, target in after if source == 0] == [0, 0, 1, HOLE]
    two.tell(0)
    study.correct("a", 2, 4)
    assert [t for _, _, source, t in rows(study.paths("a")) if source == 1] == [HOLE]


def test_plain_tells_of_two_paths_at_a_time_are_ordered_by_the_tells_before_them(place):
    study = place.create({"a": 2})
    study.tell("a", 0)
    study.tell("a", 1, path=2, step=1)
    study.tell("a", 1, path=1, step=2)
    paths = study.paths("a")
    assert paths.unordered is None
    assert rows(paths)[:4] == [(0, 0, START, 0), (0, 1, 0, 1), (1, 0, START, 1), (1, 1, 1, PENDING)]
    assert paths.issued[:3].tolist() == sorted(line.issued for line in study.log())
    assert paths.issued[4] == paths.told[1] > paths.issued[3]


def test_plain_tells_among_leases_have_their_place(place):
    study = place.create({"a": 2})
    lease = study.worker("one", renews=False).lease(steps=5)
    lease.tell(0)
    study.tell("a", 0)
    lease.tell(1)
    paths = study.paths("a")
    assert paths.unordered is None
    assert [(path, target) for path, _, source, target in rows(paths) if source == 0] == [(0, 1), (1, PENDING)]


def test_a_plain_tell_does_not_go_on_with_the_path_of_a_worker(place):
    study = place.create({"a": 2})
    study.worker("one", renews=False).lease().tell(0)
    with pytest.raises(OutOfStep, match="belongs to a worker"):
        study.tell("a", 1, path=1, step=2)


def test_where_a_chain_is_one_process_its_steps_are_in_their_order(place):
    study = place.create({"a": 2}, paths="shared")
    for name, values in (("one", [0, 1]), ("two", [1]), ("one", [0])):
        lease = study.worker(name, renews=False).lease(steps=3)
        for value in values:
            lease.tell(value)
        lease.restart() if value == 0 else lease.give_back()
    paths = study.paths("a")
    assert paths.unordered is None
    assert paths.counts() == study.counts("a")
    known = paths.target >= 0
    assert (np.diff(paths.told[known]) > 0).all()
    assert paths.path[known].tolist() == [0, 0, 0, 0]


def test_open_states_and_nothing_told(place):
    study = place.create({"a": []}, open_states=True)
    assert (study.paths("a").size, len(study.paths("a"))) == (0, 0)
    study.tell_many([("a", "x"), ("a", 7)])
    paths = study.paths("a")
    assert (paths.states, paths.open_states, paths.transitions) == (("x", 7), True, 1)


@pytest.mark.parametrize("seed", range(3))
def test_many_workers_walk_at_random(seed):
    """Every told line is a card with its own source, and was issued before it was told."""
    rng = np.random.default_rng(seed)
    study = cs.Study.create(None, {"a": 3, "b": 2})
    workers = [study.worker(f"w{i}", renews=False) for i in range(4)]
    leases = {}
    for _ in range(400):
        worker = workers[rng.integers(4)]
        lease = leases.get(worker.name)
        if lease is None or lease.steps == 0:
            leases[worker.name] = worker.lease(steps=int(rng.integers(1, 4)))
        elif rng.random() < 0.1:
            lease.restart(lost=bool(rng.random() < 0.5))
        elif rng.random() < 0.1:
            lease.give_back()
            leases[worker.name] = None
        else:
            lease.tell(int(rng.integers(2)))
    for chain in study.names:
        paths = study.paths(chain)
        assert paths.unordered is None
        assert paths.counts() == study.counts(chain, everything=True)
        known = paths.target >= 0
        assert paths.issued[known].tolist() == sorted(line.issued for line in study.log(chain))
        assert (paths.issued[known] <= paths.told[known]).all()
