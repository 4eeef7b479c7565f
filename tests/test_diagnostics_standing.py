"""Checks that go on: fed in pieces, they say what one pass says."""

import json

import numpy as np
import pytest
from diagnostics_simulation import MATRICES, cards_of

import chainscout as cs
from chainscout.diagnostics._numbering import CONTEXTS
from chainscout.diagnostics._processes import Cards
from chainscout.diagnostics.standing import (
    CHECKS,
    MOMENTS,
    ChainStanding,
    Labelled,
    Standing,
    Thinned,
    checks_of,
    thinned,
)
from chainscout.paths import Paths


def walks(names, length, seed, *, restart=0.02, memory=None):
    """Cards of several chains with issue numbers in common, workers by path, and Paths of the same."""
    rng = np.random.default_rng(seed)
    issued = rng.permuted(np.repeat(np.arange(len(names)), length)).argsort(kind="stable").reshape(len(names), length)
    found = []
    for k, name in enumerate(names):
        path, step, source, target = cards_of(MATRICES[name], length, rng, restart)
        if name == memory:
            target[1::2] = target[:-1:2]
        worker = np.arange(path.max() + 1) % 3
        cards = Cards(path, step, source, target)
        labelled = Labelled(source, target, cards.predecessors(), worker[path], path, cards.ages())
        numbers = 1 + np.sort(issued[k])
        paths = Paths(
            len(MATRICES[name]), path=path, step=step, source=source, target=target, issued=numbers,
            worker=worker, workers=("a", "b", "c"),
        )  # fmt: skip
        found.append((labelled, numbers, paths))
    return found


#: The level at which a check of a study with δ = 0.05 rejects.
LEVEL = 0.05 / len(CHECKS)


@pytest.mark.parametrize(
    ("names", "restart"),
    [
        (["dense five"], 0.02),
        (["sparse twenty", "sticky pair", "dense ten"], 0.3),  # more paths in a row than labels are told apart
        (["fair coin", "dense three"], 0.0),
    ],
)
def test_fed_in_pieces_it_is_one_pass(names, restart):
    length = 900
    data = walks(names, length, 3, restart=restart, memory="dense ten")
    rng = np.random.default_rng(7)
    together = Standing(len(names))
    chains = [ChainStanding(len(MATRICES[name])) for name in names]
    end = length * len(names) + 1
    cuts = [*np.unique(rng.integers(1, end, 9)).tolist(), end]
    for first, last in zip([1, *cuts], cuts, strict=False):
        fed = {}
        for k, (labelled, numbers, _) in enumerate(data):
            chosen = (numbers >= first) & (numbers < last)
            piece = Labelled(*(array[chosen] for array in labelled))
            if k == 0 or chosen.any():
                fed[k] = chains[k], numbers[chosen], chains[k].feed(piece)
        together.add(fed, LEVEL)
    keys = names if len(names) > 1 else ["only"]
    whole = cs.diagnose({key: paths for key, (_, _, paths) in zip(keys, data, strict=True)})
    expected = [check for check in whole if check.chain is None or len(names) == 1]
    found = checks_of(json.loads(json.dumps(together.numbers())), None if len(names) > 1 else "only", LEVEL)
    assert [(check.kind, check.by) for check in found] == [(check.kind, check.by) for check in expected]
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.level == pytest.approx(theirs.level, rel=1e-9)
        assert mine.e_value == pytest.approx(theirs.e_value, rel=1e-9)
        assert mine.largest == pytest.approx(theirs.largest, rel=1e-9)
        assert (mine.chain, mine.cards, mine.left_out) == (theirs.chain, theirs.cards, theirs.left_out)
        assert mine.since == theirs.since
        assert np.array(mine.history) == pytest.approx(np.array(theirs.history), rel=1e-9)
    if restart > 0.1:
        assert found[3].left_out > 0
        assert max(data[0][0].path) > CONTEXTS
    assert [check.kind for check in found][:2] == [kind for kind, _ in CHECKS][:2]


def test_the_level_of_a_chain_that_is_not_advanced_stays():
    first, second = ChainStanding(2), ChainStanding(2)
    together = Standing(2)
    zeros = np.zeros(800, np.int64)
    changes = Labelled(zeros, (np.arange(800) >= 400).astype(np.int64), zeros, zeros, zeros, zeros)
    together.add({0: (first, np.arange(800), first.feed(changes))}, LEVEL)
    level = together.level
    assert level == pytest.approx(2 * first.change.level)
    assert level < 1e-9
    constant = Labelled(*(zeros[:50] for _ in Labelled._fields))
    together.add({1: (second, np.arange(800, 850), second.feed(constant))}, LEVEL)
    assert together.level == level


def test_a_chain_with_nothing_to_compare_is_in_the_mean():
    """Whether a chain is in the mean over chains must not depend on what was seen of it."""
    (_, _, first), (_, _, second) = walks(["dense five", "dense three"], 400, 5, restart=0.0)
    found = cs.diagnose({"first": first.by_one_worker(), "second": second.by_one_worker()})
    assert not any(check.by in ("worker", "path") for check in found)  # there is nothing to show
    (_, _, several), _ = walks(["dense five", "dense three"], 400, 5, restart=0.05)
    found = cs.diagnose({"first": several, "second": second.by_one_worker()})
    alone = next(check for check in found if (check.chain, check.by) == ("first", "path"))
    together = next(check for check in found if (check.chain, check.by) == (None, "path"))
    assert not any((check.chain, check.by) == ("second", "path") for check in found)
    assert together.e_value < (alone.e_value + 1) / 2  # the other one has bet on nothing, and paid for it


@pytest.mark.parametrize("number", [0, 1, MOMENTS, MOMENTS + 1, 5 * MOMENTS + 3])
def test_history_is_thinned_alike_in_pieces(number):
    values = np.random.default_rng(1).normal(size=number)
    issued = 3 * np.arange(number)
    pieces = Thinned()
    for at in range(0, number, 37):
        pieces.add(issued[at : at + 37], values[at : at + 37])
    assert pieces.moments() == thinned(issued, values)
    assert len(pieces.moments()) <= MOMENTS + 1
    if number:
        assert pieces.moments()[-1] == (issued[-1], values[-1])
