"""`Paths`: the draws of one chain in the order of issue."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chainscout as cs
from chainscout.errors import InputError
from chainscout.paths import LOST, PENDING, START, Paths


def cards(rows, states=3, **others):
    """Paths from (path, step, source, target) and, if a fifth is given, the moment of the tell."""
    columns = np.array(rows, dtype=np.int64)
    told = {"told": columns[:, 4]} if columns.shape[1] > 4 else {}
    path, step, source, target = columns[:, :4].T
    return Paths(states, path=path, step=step, source=source, target=target, **told, **others)


def test_walks_become_cards_in_their_order():
    paths = cs.Paths.from_walks([["a", "b", "a"], [], ["b", "b"]], states=["a", "b", "c"], workers=["x", "y", "x"])
    assert paths.path.tolist() == [0, 0, 0, 2, 2]
    assert paths.step.tolist() == [0, 1, 2, 0, 1]
    assert paths.source.tolist() == [START, 0, 1, START, 1]
    assert paths.target.tolist() == [0, 1, 0, 1, 1]
    assert paths.issued.tolist() == paths.told.tolist() == [1, 2, 3, 4, 5]
    assert [paths.workers[worker] for worker in paths.worker] == ["x", "y", "x"]
    assert paths.starts.tolist() == [0, PENDING, 1]
    assert (len(paths), paths.transitions, paths.pending, paths.lost, paths.unordered) == (5, 3, 0, 0, None)
    assert repr(paths) == "Paths(3 states, 3 paths, 3 transitions)"
    assert not paths.open_states


def test_states_are_discovered_where_they_are_not_given():
    paths = Paths.from_walks([["b", "a"], ["c"]])
    assert (paths.states, paths.open_states) == (("b", "a", "c"), True)
    assert not Paths.from_walks([["b", "a"]], open_states=False).open_states


@given(st.lists(st.lists(st.integers(0, 3), max_size=20), max_size=5))
def test_counts_are_those_of_the_walks(walks):
    expected = cs.Counts(4)
    for walk in walks:
        for state in walk:
            expected.record(state)
        expected.restart()
    found = Paths.from_walks(walks, 4).counts()
    assert found == expected
    assert Paths.from_walks([np.array(walk, dtype=int) for walk in walks], 4).counts() == expected


def test_pending_and_lost_cards_are_counted_apart():
    paths = cards([(0, 0, START, 0), (0, 1, 0, LOST), (1, 0, START, PENDING), (0, 1, 0, 2)])
    assert (paths.transitions, paths.pending, paths.lost) == (1, 1, 1)
    assert paths.told.tolist() == [1, 1, 0, 2]
    assert paths.starts.tolist() == [0, PENDING]
    assert repr(paths) == "Paths(3 states, 2 paths, 1 transitions, 1 pending, 1 lost)"
    assert paths.counts().observations == 2


def test_a_loss_is_late_if_a_later_card_was_known_when_the_card_was_given_up():
    # Card 1 of state 0 is given up at moments 1, 2, 3; the later card of state 1 is known at 2, that of state 0 at 3.
    for moment, any_card, same_row in ((1, False, False), (2, True, False), (3, True, True)):
        paths = cards(
            [(0, 0, START, 0, 1), (0, 1, 0, LOST, moment), (1, 1, 1, 0, 2), (2, 1, 0, 0, 3), (3, 1, 2, PENDING, 0)]
        )
        assert paths.late_losses(by_row=False).tolist() == [False, any_card, False, False, False]
        assert paths.late_losses(by_row=True).tolist() == [False, same_row, False, False, False]


@given(st.integers(0, 2**32))
def test_late_losses_are_those_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    number = 12
    source = rng.integers(START, 2, number)
    target = rng.integers(LOST, 2, number)
    told = np.where(target == PENDING, 0, rng.permutation(number) + 1)
    order = np.arange(number)
    paths = Paths(2, path=order, step=order, source=source, target=target, told=told)
    for by_row in (True, False):
        expected = [
            target[i] == LOST
            and any(
                target[j] >= 0 and told[j] <= told[i] and (not by_row or source[j] == source[i])
                for j in range(i + 1, number)
            )
            for i in range(number)
        ]
        assert paths.late_losses(by_row=by_row).tolist() == expected


def test_the_cards_after_a_number_of_issue():
    paths = Paths.from_walks([[0, 1, 2]], 3).after(1)
    assert (paths.issued.tolist(), paths.source.tolist()) == ([2, 3], [0, 1])


def test_paths_do_not_change():
    target = np.array([0])
    paths = Paths(1, path=[0], step=[0], source=[START], target=target)
    target[0] = -1
    assert paths.target.tolist() == [0]
    with pytest.raises(ValueError, match="read-only"):
        paths.target[0] = 1
    with pytest.raises(AttributeError, match="paths do not change: size cannot be set"):
        paths.size = 3
    with pytest.raises(AttributeError, match="paths do not change: size cannot be deleted"):
        del paths.size
    copy = pickle.loads(pickle.dumps(paths))
    assert copy == paths
    assert copy != Paths.from_walks([[0, 0]], 1)
    assert copy != 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"target": [3]}, "target .* must be whole numbers from -3 to 2, not 3"),
        ({"source": [-2]}, "source .* from -1 to 2, not -2"),
        ({"path": [-1]}, "path .* at least 0, not -1"),
        ({"step": [0, 1]}, "one place for each card"),
        ({"step": [0.5]}, "step must be a list of whole numbers"),
        ({"worker": [2]}, "worker .* from 0 to 0, not 2"),
        ({"worker": []}, "a place for each of the 1 paths, and has 0"),
        ({"states": 0}, "the number of states"),
        ({"states": ["a", "a", "b"]}, "unique"),
    ],
)
def test_wrong_cards_are_refused_with_one_sentence(change, words):
    given = {"states": 3, "path": [0], "step": [0], "source": [START], "target": [0]} | change
    with pytest.raises(InputError, match=words):
        Paths(given.pop("states"), **given)


def test_cards_must_be_in_the_order_of_issue_unless_it_is_not_known():
    given = {"path": [0, 0], "step": [0, 1], "source": [START, 0], "target": [0, 0], "issued": [2, 1]}
    with pytest.raises(InputError, match="issued must rise"):
        Paths(1, **given)
    paths = Paths(1, **given, unordered="nobody knows")
    assert repr(paths) == "Paths(1 states, 1 paths, 1 transitions, order not known)"


@pytest.mark.parametrize(
    ("walks", "states", "words"),
    [
        ("ab", None, "walks must be a list of lists of states"),
        (["ab"], None, "a walk must be a list of states, not 'ab'"),
        ([[0, 3]], 3, "a whole number from 0 to 2, not 3"),
        ([["a"]], 3, "a walk must be a list of states from 0 to 2"),
        ([3], 3, "a walk must be a list of states from 0 to 2"),
        ([["a", "d"]], ["a"], "unknown state 'd'"),
        ([[["a"]]], None, "a walk must be a list of states"),
        ([[]], None, "give them with states="),
    ],
)
def test_wrong_walks_are_refused_with_one_sentence(walks, states, words):
    with pytest.raises(InputError, match=words):
        Paths.from_walks(walks, states)


def test_each_walk_has_its_worker():
    with pytest.raises(InputError, match="who made each of the 1 walks"):
        Paths.from_walks([[0]], 1, workers=["x", "y"])
