"""Paths over tuples of states."""

import numpy as np
import pytest

import chainscout as cs
from chainscout.errors import InputError
from chainscout.paths import LOST, PENDING, START, Paths


def test_pairs_by_hand():
    data = Paths.from_walks([["a", "b", "b", "a"], ["b"], ["b", "a"]], ["a", "b"], workers=["x", "y", "x"])
    lifted = data.lifted(2)
    assert list(lifted.states) == [("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")]
    assert lifted.source.tolist() == [START, 1, 3, START]
    assert lifted.target.tolist() == [1, 3, 2, 2]
    assert lifted.path.tolist() == [0, 0, 0, 2]
    assert lifted.step.tolist() == [0, 1, 2, 0]
    assert lifted.issued.tolist() == [2, 3, 4, 7]
    assert (lifted.workers, lifted.worker.tolist()) == (("x", "y"), [0, 1, 0])
    assert lifted.counts().total == 2


@pytest.mark.parametrize("order", [2, 3, 4])
@pytest.mark.parametrize("known", [True, False])
def test_tuples_are_windows_of_the_walk(order, known):
    rng = np.random.default_rng(order)
    walks = [rng.integers(0, 3, length).tolist() for length in (1, 2, 3, 4, 7, 40)]
    lifted = Paths.from_walks(walks, 3 if known else None).lifted(order)
    assert lifted.open_states == (not known)
    labels = Paths.from_walks(walks, 3 if known else None).states
    expected = [
        tuple(labels.index(s) if not known else s for s in walk[j : j + order])
        for walk in walks
        for j in range(len(walk) - order + 1)
    ]
    places = [tuple(labels.index(part) for part in lifted.states[y]) for y in lifted.target]
    assert places == expected
    assert lifted.transitions == sum(max(0, len(walk) - order) for walk in walks)
    for x, y in zip(lifted.source.tolist(), lifted.target.tolist(), strict=True):
        assert x == START or lifted.states[x][1:] == lifted.states[y][:-1]


def test_pending_and_lost_draws_stay_in_their_places():
    data = Paths(
        2, path=[0, 0, 0, 0, 0, 1], step=[0, 1, 2, 2, 3, 0], source=[START, 0, 1, 1, 0, START],
        target=[0, 1, LOST, 0, PENDING, PENDING], told=[1, 2, 2, 3, 0, 0],
    )  # fmt: skip
    lifted = data.lifted()
    assert lifted.source.tolist() == [START, 1, 1, 2]
    assert lifted.target.tolist() == [1, LOST, 2, PENDING]
    assert lifted.issued.tolist() == [2, 3, 4, 5]
    assert lifted.told.tolist() == [2, 2, 3, 0]


def test_a_path_whose_beginning_is_cut_begins_later():
    data = Paths.from_walks([[0, 1, 1, 0, 1]], 2).after(2)
    assert data.lifted().source.tolist() == [START, 2]
    assert data.lifted().target.tolist() == [2, 1]


def test_lifting_twice_is_not_lifting_by_three_but_counts_the_same():
    data = Paths.from_walks([np.random.default_rng(0).integers(0, 2, 50)], 2)
    assert data.lifted(2).lifted(2).transitions == data.lifted(3).transitions == 47


def test_a_second_order_process_is_learned_over_pairs():
    rng = np.random.default_rng(1)
    states = [0, 1]
    while len(states) < 20_000:
        states.append(states[-2] if rng.random() < 0.8 else 1 - states[-2])
    counts = Paths.from_walks([states], 2).lifted(2).counts()
    matrix = counts.matrix()
    # After (x, y) comes x with probability 0.8; four standard deviations of 5,000 draws at the least.
    for x in range(2):
        for y in range(2):
            assert matrix[2 * x + y, 2 * y + x] == pytest.approx(0.8, abs=4 * np.sqrt(0.16 / 3000))
    assert cs.certify({"pairs": counts}, method="sharp").max < 0.01


@pytest.mark.parametrize("order", [1, 0, 2.5, "two"])
def test_the_order_must_be_at_least_two(order):
    with pytest.raises(InputError, match="order"):
        Paths.from_walks([[0, 1]], 2).lifted(order)


def test_too_many_tuples():
    with pytest.raises(
        InputError, match=r"2000 states make 4,000,000 tuples of 2, and at most 1,000,000 can be states"
    ):
        Paths.from_walks([[0, 1]], 2000).lifted(2)


def test_paths_by_one_worker():
    data = Paths.from_walks([[0, 1], [1, 0]], 2, workers=["a", "b"])
    assert data.by_one_worker().workers == ("main",)
    assert data.by_one_worker().target.tolist() == data.target.tolist()
