"""The statistic of one chain: laws of counting, estimates, and a million states in little memory."""

import copy
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from strategies import PATHS, SIZES, tables

from chainscout.counts import DENSE_LIMIT, SMOOTHING, Counts, smoothing
from chainscout.errors import InputError


def counted(size, paths):
    counts = Counts(size)
    for path in paths:
        counts.restart()
        for state in path:
            counts.record(state)
    return counts


def closed(counts):
    """The same with its last path ended."""
    twin = copy.copy(counts)
    twin.restart()
    return twin


# ---------------------------------------------------------------- by hand


def test_a_path_and_a_restart_by_hand():
    counts = Counts(["dry", "wet"])
    assert (counts.observations, counts.paths, counts.total, counts.last) == (0, 0, 0, None)
    for state in ["dry", "dry", "wet"]:
        counts.record(state)
    assert (counts.observations, counts.paths, counts.total, counts.last) == (3, 1, 2, "wet")
    counts.restart()
    assert counts.last is None
    counts.record("dry")  # reveals a state: no transition wet → dry
    counts.record("wet")
    assert (counts.observations, counts.paths, counts.total, counts.last) == (5, 2, 3, "wet")
    assert counts.transitions.tolist() == [[1, 2], [0, 0]]
    assert counts.exits.tolist() == [3, 0]
    assert (counts.exits_of(0), counts.exits_of(1), counts.visited_exits()) == (3, 0, [3])
    assert {x: dict(row) for x, row in counts.rows().items()} == {0: {0: 1, 1: 2}}
    assert counts.occupancy.tolist() == [1, 0]
    assert counts.matrix("laplace").tolist() == [[2 / 5, 3 / 5], [1 / 2, 1 / 2]]
    assert (counts.size, counts.states, counts.index_of("wet")) == (2, ("dry", "wet"), 1)
    assert repr(counts) == "Counts(2 states, 5 observations, 3 transitions)"


def test_a_restart_that_nothing_follows_begins_no_path():
    counts = Counts.from_path([0, 1], 2)
    counts.restart()
    counts.restart()
    assert counts.paths == 1


def test_without_smoothing_there_are_frequencies_alone():
    assert Counts.from_path([0, 1], 2).matrix(0).tolist() == [[0, 1], [0.5, 0.5]]


def test_numbered_states_take_numpy_integers():
    counts = Counts.from_path(np.array([0, 1, 1]), np.int64(3))
    assert counts == Counts.from_path([0, 1, 1], 3)
    assert (counts.states, counts.last) == (range(3), 1)


def test_counts_kept_elsewhere():
    counts = Counts(["a", "b", "c"], open_states=True)
    for state in ("a", "b", "a", "a"):
        counts.record(state)
    rows = {x: dict(row) for x, row in counts.rows().items()}
    kept = {"observations": 4, "paths": 1, "last": 0}
    assert Counts.from_rows(rows, counts.states, **kept, open_states=True) == counts
    assert not Counts.from_rows(rows, counts.states, **kept).open_states
    for dressed in (np.int64, np.uint8):
        again = {dressed(x): {dressed(y): dressed(n) for y, n in row.items()} for x, row in rows.items()}
        assert Counts.from_rows(again, counts.states, **kept, open_states=True) == counts
    pairs = [("a", "b", 1), ("a", "a", np.int64(1)), ("b", "a", 1.0), (None, "a", 1), ("c", "c", 0)]
    assert closed(counts) == Counts.from_pairs(pairs, counts.states, open_states=True)
    assert Counts.from_rows({2: {0: 0}}, 3, observations=0, paths=0, last=None).rows() == {}  # 2 was never left


def test_published_counts():
    counts = Counts.from_transitions([[3, 1], [0, 0]], states=["a", "b"])
    assert counts.transitions.tolist() == [[3, 1], [0, 0]]
    assert (counts.total, counts.observations, counts.paths, counts.last) == (4, 4, 0, None)


@pytest.mark.parametrize(
    ("name", "alpha"),
    [
        (None, 1 / 12),
        ("ba-mc", 1 / 12),
        ("perks", 1 / 4),
        ("laplace", 1),
        ("jeffreys", 1 / 2),
        ("krichevsky-trofimov", 1 / 2),
        (0, 0),
        (np.float32(2), 2),
    ],
)
def test_alpha_by_its_right_name(name, alpha):
    assert smoothing(name, 4) == pytest.approx(alpha)


# ---------------------------------------------------------------- laws


@given(PATHS)
def test_counts_add_up(drawn):
    size, paths = drawn
    counts = counted(size, paths)
    assert counts.observations == sum(map(len, paths))
    assert counts.paths == sum(1 for path in paths if path)
    assert counts.total == counts.observations - counts.paths == counts.exits.sum() == counts.transitions.sum()
    assert counts.transitions.sum(axis=1).tolist() == counts.exits.tolist()
    assert [counts.exits_of(x) for x in range(size)] == counts.exits.tolist()
    assert counts.visited_exits() == [number for number in counts.exits.tolist() if number]


@given(PATHS)
def test_agrees_with_the_reference_and_counts_nothing_across_a_break(drawn):
    size, paths = drawn
    counts = counted(size, paths)
    transitions = sum((reference.transition_counts(path, size) for path in paths), np.zeros((size, size)))
    assert counts.transitions.tolist() == transitions.tolist()
    assert counts.matrix() == pytest.approx(reference.smoothed(transitions))
    if counts.total:
        assert counts.occupancy == pytest.approx(reference.occupancy(transitions))
        assert counts.occupancy.sum() == pytest.approx(1)


@given(PATHS, PATHS, PATHS)
def test_merging_is_counting_one_after_the_other(first, second, third):
    size = max(first[0], second[0], third[0])
    one, two, three = (counted(size, paths) for _, paths in (first, second, third))
    before = copy.deepcopy((one, two))
    merged = one.merge(two)
    assert (one, two) == before
    assert merged == closed(counted(size, first[1] + second[1]))
    assert merged == two.merge(one)
    assert merged.merge(three) == one.merge(two.merge(three))
    assert one.merge(Counts(size)) == closed(one)


@given(PATHS, st.randoms(use_true_random=False))
def test_relabelling_permutes_everything(drawn, random):
    size, paths = drawn
    order = random.sample(range(size), size)  # order[new position] = old position
    labels = [f"s{old}" for old in order]
    counts, other = counted(size, paths), Counts(labels)
    for path in paths:
        other.restart()
        for state in path:
            other.record(f"s{state}")
    assert other.transitions.tolist() == counts.transitions[np.ix_(order, order)].tolist()
    assert other.exits.tolist() == counts.exits[order].tolist()
    assert other.matrix() == pytest.approx(counts.matrix()[np.ix_(order, order)])
    assert (other.total, other.paths, other.observations) == (counts.total, counts.paths, counts.observations)
    assert other.last == (None if counts.last is None else f"s{counts.last}")


@given(SIZES.flatmap(tables), st.sampled_from([None, *SMOOTHING, 0, 1e-300, 0.3, 1e6, 1e99]))
def test_rows_of_every_estimate_sum_to_one(table, alpha):
    matrix = Counts.from_transitions(table).matrix(alpha)
    assert matrix.sum(axis=1) == pytest.approx(np.ones(len(table)))
    assert (matrix >= 0).all()
    if smoothing(alpha, len(table)) > 0:
        assert matrix == pytest.approx(reference.smoothed(table, smoothing(alpha, len(table))))
    else:  # frequencies; a state never left is uniform
        left = table.sum(axis=1) > 0
        assert matrix[left] == pytest.approx(table[left] / table[left].sum(axis=1, keepdims=True))
        assert (matrix[~left] == 1 / len(table)).all()


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda counts: pickle.loads(pickle.dumps(counts))])
def test_copies_go_their_own_way(again):
    counts = Counts.from_path("abca", ["a", "b", "c"])
    twin = again(counts)
    assert twin == counts
    twin.record("c")
    assert counts == Counts.from_path("abca", ["a", "b", "c"])
    assert twin == Counts.from_path("abcac", ["a", "b", "c"])


def test_equality():
    counts = Counts.from_path([0, 1, 0], 2)
    others = [Counts.from_path([0, 1], 2), Counts.from_path([0, 1, 0], 3), Counts.from_path([0, 1, 0], [0, 1])]
    assert all(counts != other for other in [*others, closed(counts), [[0, 1], [1, 0]]])
    with pytest.raises(TypeError, match="unhashable"):
        hash(counts)


# ---------------------------------------------------------------- a million states


MILLION = """
import resource

limit = 200 * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

from chainscout.counts import Counts

size, observations = 10**6, 10**4
path = [(t * t * 7919) % size for t in range(observations)]
counts = Counts.from_path(path, size)
assert counts.total == observations - 1
assert counts.exits.sum() == observations - 1
assert abs(counts.occupancy.sum() - 1) < 1e-9
assert counts.merge(counts).total == 2 * counts.total
labelled = Counts([f"s{x}" for x in range(size // 10)])
labelled.record("s99999")
try:
    bytearray(limit)
except MemoryError:
    print("the limit holds")
"""


def test_a_million_states_in_two_hundred_megabytes():
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # each thread would reserve memory of its own
    done = subprocess.run([sys.executable, "-c", MILLION], capture_output=True, text=True, env=environment, check=False)
    assert done.stdout == "the limit holds\n", done.stderr


@pytest.mark.parametrize("read", [lambda counts: counts.transitions, lambda counts: counts.matrix()])
def test_a_dense_array_of_many_states_is_refused(read):
    counts = Counts(DENSE_LIMIT + 1)
    with pytest.raises(InputError, match=r"a dense 16385 × 16385 array would not fit into memory; rows\(\) has what"):
        read(counts)
