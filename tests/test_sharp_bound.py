"""The bound of `sharp` as a whole: against the event itself, against a hostile search, and the laws it obeys."""

import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
import reference_sharp
from count_strategies import DELTAS, count_tables
from hypothesis import given, settings
from hypothesis import strategies as st
from test_sharp import bounds, by_state, chosen, least, of_laws, search, table_of

from chainscout import problems
from chainscout.certificates import mixture, sharp
from chainscout.certificates.sharp import lemma
from chainscout.counts import Counts

# ---------------------------------------------------------------- the whole bound, against the event itself

#: Rows, holes of each, log(K/δ), and by how much the bound may be larger than what the event allows.
WHOLE = {
    "few": ([[5, 5]], [0], 3.0, 1.7),
    "two unlike": ([[40, 3]], [0], 3.0, 1.7),
    "one successor": ([[200, 0]], [0], 3.0, 2.0),
    "large δ": ([[30, 30]], [0], 0.7, 1.7),
    "two rows": ([[12, 8], [3, 20]], [0, 0], 3.0, 1.8),
    "three states": ([[8, 4, 0]], [0], 3.0, 2.1),
    "three states seen": ([[30, 9, 4]], [0], 2.0, 2.1),
    "one hole": ([[40, 3]], [1], 3.0, 1.8),
    "two holes": ([[30, 30]], [2], 1.5, 1.8),
    "three holes": ([[12, 2]], [3], 3.0, 2.0),
    "holes and one successor": ([[60, 0]], [2], 3.0, 2.1),
    "holes and three states": ([[14, 5, 0]], [1], 3.0, 2.2),
    "two rows and holes": ([[12, 8], [3, 20]], [1, 1], 3.0, 2.0),
    "a row with holes alone": ([[12, 8], [0, 0]], [0, 2], 3.0, 2.2),
}


def brute(name):
    rows, holes, log_inverse, _ = WHOLE[name]
    steps = {1: 120, 2: 16}[len(rows)] if len(rows[0]) == 2 else 22
    return reference_sharp.largest_loss(rows, log_inverse, holes, steps)


def whole_table(name):
    rows, holes, log_inverse, _ = WHOLE[name]
    known = [(row, h) for row, h in zip(rows, holes, strict=True) if sum(row)]
    mute = [float(h) for row, h in zip(rows, holes, strict=True) if not sum(row)]
    return table_of([row for row, _ in known], log_inverse, [h for _, h in known], mute)


@pytest.mark.parametrize("name", WHOLE)
def test_the_bound_is_above_every_law_that_the_event_allows(name):
    lowest, table = brute(name), whole_table(name)
    by_choice, by_all = bounds.loss_bound(table, chosen(table)), least(table)
    print(f"{name}: the event allows {lowest:.3f}; bound {by_choice:.3f}, with lemma and boxes {by_all:.3f}")
    assert lowest <= by_all <= by_choice
    assert by_all <= WHOLE[name][3] * lowest


#: What one row went to, one after another (None: a hole), known states, labels that have a probability, log(K/δ).
OPEN = {
    "one label": ([[0] * 20], 1, 2, 3.0, 2.4),
    "two labels": ([[0, 1] + [0] * 10 + [1] * 3], 2, 3, 3.0, 2.4),
    "one of two known": ([[0] * 15], 2, 3, 2.0, 3.0),
    "one label and a hole": ([[0, None] + [0] * 40], 1, 2, 3.0, 2.6),
    "late hole, two labels": ([[0, 1] + [0] * 20 + [None]], 2, 3, 2.0, 2.6),
    "two holes": ([[0] * 30 + [None, None]], 1, 2, 1.5, 2.8),
    "met once": ([[0] * 8 + [1]], 2, 3, 3.0, 3.5),
    "two rows": ([[0] * 12, [0, 0, 0, 0, 0, 0]], 1, 2, 3.0, 3.0),
}


def open_brute(name):
    paths, states, labels, log_inverse, _ = OPEN[name]
    steps = {1: 120, 2: 16}[len(paths)] if labels == 2 else 16
    return reference_sharp.largest_open_loss(paths, states, labels, log_inverse, steps)


def open_table(name):
    paths, states, _, log_inverse, _ = OPEN[name]
    rows = [np.bincount([y for y in path if y is not None]) for path in paths]
    return table_of(rows, log_inverse, [path.count(None) for path in paths], states=states)


@pytest.mark.parametrize("name", OPEN)
def test_the_bound_of_open_states_is_above_every_law_that_the_event_allows(name):
    lowest, table = open_brute(name), open_table(name)
    by_choice, by_all = bounds.loss_bound(table, chosen(table)), least(table)
    print(f"{name}: the event allows {lowest:.3f}; bound {by_choice:.3f}, with lemma and boxes {by_all:.3f}")
    assert lowest <= by_all <= by_choice
    assert by_all <= OPEN[name][4] * lowest


@pytest.mark.parametrize("name", WHOLE)
def test_half_of_the_bound_would_be_caught_by_the_event(name):
    assert least(whole_table(name)) / 2 < brute(name)


@pytest.mark.parametrize("name", ["three holes", "holes and one successor"])
def test_holes_that_are_ignored_would_be_caught_by_the_event(name):
    rows, _, log_inverse, _ = WHOLE[name]
    assert least(table_of(rows, log_inverse)) < brute(name)


def test_holes_in_the_denominator_would_be_caught_by_the_event():
    """T·b over T + h instead of T."""
    (row,), (holes,), _, _ = WHOLE["three holes"]
    assert least(whole_table("three holes")) / (sum(row) + holes) < brute("three holes") / sum(row)


def test_all_exits_in_the_objective_would_be_caught(monkeypatch):
    """N⁺‖p − P̂‖² instead of N‖p − P̂‖² is not the loss of the known counts: the bound is no longer near it."""
    inner = bounds.cells_of

    def mistaken(*given):
        found = inner(*given)
        return found._replace(entries=found.entries._replace(exits=found.entries.whole))

    table, right = whole_table("three holes"), brute("three holes")
    honest = bounds.loss_bound(table, chosen(table))
    monkeypatch.setattr(bounds, "cells_of", mistaken)
    monkeypatch.setattr(search, "cells_of", mistaken)
    # Given up, a row has the known exits.
    found = bounds.loss_bound(table._replace(most=np.array([math.inf])), chosen(table))
    assert found > 1.15 * honest
    assert honest < 1.25 * right < found


@pytest.mark.parametrize("holes", [1, 2])
def test_completions_agree_with_the_bound_with_holes(holes):
    """A second proof of the same kind: the largest bound of all completions, seen from the known counts.

    Both are valid, so neither need be the smaller one; but a mistake in one of them would drive them apart.
    """
    for row in ([60, 20], [150, 30, 4], [300, 2]):
        row, size = np.array(row), len(row)
        table = table_of([row], 3.0, [holes])
        completed = []
        for full in map(np.array, reference_sharp.completions(row, holes)):
            away = row.sum() * ((reference_sharp.smoothed(row) - reference_sharp.smoothed(full)) ** 2).sum()
            completed.append((math.sqrt(least(table_of([full], 3.0, size=size))) + math.sqrt(away)) ** 2)
        ratio = least(table) / max(completed)
        print(row.tolist(), holes, f"with holes over by completions: {ratio:.3f}")
        assert 0.75 < ratio < 1.35


def test_a_hole_costs_some_per_cent():
    """One at T = 1,000: at most 11 % of b; ten at T = 10,000: at most 20 %."""
    for total, holes, most in ((1_000, 1, 1.11), (10_000, 10, 1.20)):
        rows = [np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.8, 0.1]), np.array([0.3, 0.3, 0.4])]
        rows = [np.round(total / 3 * row) for row in rows]
        costs = least(table_of(rows, 3.0, [holes, 0, 0])) / least(table_of(rows, 3.0))
        print(f"T = {total}, {holes} holes: {costs:.3f}")
        assert 1 < costs < most


# ---------------------------------------------------------------- a hostile search

EXTREMES = (0.0, -1.0, 1e-300, -1e-6, 1e6, -1e9, 1e30, -1e300, 1e308, math.inf, -math.inf, math.nan)


def spoilt(values, rng):
    """The values, some of them changed a little, much, or to something absurd."""
    values = np.array(values, dtype=float)
    kind = rng.integers(0, 5)
    with np.errstate(all="ignore"):
        if kind == 1:
            values = values * np.exp(rng.normal(size=values.shape) * 10 ** rng.uniform(-3, 1))
        if kind == 2:
            values = values + rng.normal(size=values.shape) * 10 ** rng.uniform(-4, 3)
        if kind == 3:
            values = np.where(rng.random(values.shape) < 0.1, rng.choice(EXTREMES, values.shape), values)
        if kind == 4:
            values = np.full(values.shape, rng.choice(EXTREMES))
    return values


def hostile(choice, table, rng):
    """A choice that nobody who means well would make: some fields of a good one are spoilt, the others stay."""
    given = choice._asdict()
    for name in ("c", "nu", "tilts"):
        if rng.random() < 0.35:
            given[name] = spoilt(given[name], rng)
    if rng.random() < 0.3:
        given["mu"] = float(rng.choice([1e-6, 1e-3, 0.1, 1.0, 10.0, 1e3, 1e6, *EXTREMES]))
    if rng.random() < 0.3:
        given["mu_missing"] = float(rng.choice([1e-6, 1e-2, 1.0, 1e2, 1e6, *EXTREMES]))
    if rng.random() < 0.3:
        given["surprise"] = int(rng.integers(-2, len(table.missing.most) + 2))
    if rng.random() < 0.4:
        given["family"], given["level"] = int(rng.integers(-1, 5)), int(rng.choice([-5, -2, -1, 0, 1, 2, 3, 5, 9, 600]))
        given["pair"] = bool(rng.integers(0, 2))
    if rng.random() < 0.4:
        given["offset"] = rng.choice([-1, 0, 0, 1, 2, 7, 600], len(choice.offset))
    kind = rng.integers(0, 6)
    if kind == 1:  # some cells are missing
        keep = rng.random(len(choice.row)) < 0.7
        for name in ("row", "left", "right", "c", "nu"):
            given[name] = np.asarray(given[name])[keep]
        entries = np.repeat(keep, (table.start[1:] - table.start[:-1])[choice.row])
        given["tilts"] = np.asarray(given["tilts"])[..., entries]
    if kind == 2:
        given["left"] = spoilt(given["left"], rng)
    if kind == 3:
        given["right"] = spoilt(given["right"], rng)
    if kind == 4:  # all overlap, or end before they begin
        given["left"], given["right"] = rng.random((2, len(choice.row)))
    return choice._replace(**given)


def broken(table, lowest, number, seed):
    """How many of so many hostile choices give a bound below ``lowest``, and how many give one at all."""
    rng = np.random.default_rng(seed)
    good, below, finite = chosen(table), 0, 0
    for _ in range(number):
        found = bounds.loss_bound(table, hostile(good, table, rng))
        assert not math.isnan(found)
        below += found < lowest
        finite += found < math.inf
    return below, finite


HOSTILE = 250


@pytest.mark.parametrize("name", WHOLE)
def test_a_hostile_search_never_gets_a_bound_that_is_too_small(name):
    below, finite = broken(whole_table(name), brute(name), HOSTILE, 21)
    print(f"{name}: {finite} of {HOSTILE} choices give a bound, {below} below the largest loss")
    assert below == 0
    assert finite > HOSTILE / 10


@pytest.mark.parametrize("name", OPEN)
def test_a_hostile_search_never_gets_a_bound_of_open_states_that_is_too_small(name):
    below, finite = broken(open_table(name), open_brute(name), HOSTILE, 22)
    print(f"{name}: {finite} of {HOSTILE} choices give a bound, {below} below the largest loss")
    assert below == 0
    assert finite > HOSTILE / 10


def in_the_event(table, row, grid):
    """The laws of the grid that are in the boxes of row 0, and whose missing mass the event allows if states are open.

    The labels that the row was seen to go to are the first ones.
    """
    row = np.asarray(row)
    seen = row > 0 if table.open else np.full(len(row), True)
    low, high = (by_state(table, ends, row[seen]) for ends in (table.low, table.high))
    for law in grid:
        fits = (law[: seen.sum()] >= low).all() and (law[: seen.sum()] <= high).all()
        rest = law[seen.sum() :]
        if table.open:
            fits &= rest.max() <= table.heavy[0] and rest.sum() <= table.mass[0]
            fits &= bool((table.missing.rate[:, 0] * rest.sum() <= table.missing.most).all())
        if fits:
            yield law


def farthest(table, row, choice, holes, laws):
    """The largest N‖p − P̂‖² of these laws with log Z ≤ B at the choice's own scales, for some completion.

    Nothing is lost here but what the steps from log Z to the bound lose, so this is nearer to it than the whole event.
    """
    best = 0.0
    free = choice._replace(mu=1.0, mu_missing=0.0)
    for law in laws:
        full = np.append(row, np.zeros(len(law) - len(row)))
        value = reference_sharp.square(full, law, int(table.states))
        if value > best and max(of_laws(table, row, free, [law], holes)) >= value:
            best = value
    return best


ONE_ROW = ["few", "two unlike", "one successor", "three holes", "holes and three states"]
ONE_OPEN_ROW = ["one label", "two labels", "met once", "one label and a hole", "two holes"]


@pytest.mark.parametrize("name", ONE_ROW + ONE_OPEN_ROW)
def test_a_hostile_search_never_gets_below_the_laws_that_its_own_scales_allow(name):
    """At each level, many choices of all other numbers against the best law found in the boxes with log Z ≤ B."""
    if name in WHOLE:
        (row,), (holes,), _, _ = WHOLE[name]
        table, labels = whole_table(name), len(row)
    else:
        (path,), _, labels, _, _ = OPEN[name]
        row, holes, table = np.bincount([y for y in path if y is not None]), path.count(None), open_table(name)
    grid = reference_sharp.laws_on_a_grid(labels, 60 if labels == 2 else 14)
    laws, rng = list(in_the_event(table, row, grid)), np.random.default_rng(23)
    good, tightest = chosen(table), math.inf
    for level, pair in itertools.product(range(-1, 4), (False, True)):
        choice = good._replace(level=level, pair=pair, family=0, offset=np.zeros(1, np.int64))
        lowest = farthest(table, row, choice, holes, laws)
        for _ in range(40):
            bad = hostile(choice, table, rng)._replace(level=level, pair=pair, family=0, offset=choice.offset)
            found = bounds.loss_bound(table, bad)
            assert found >= lowest * (1 - 1e-9)
            tightest = min(tightest, found / lowest)
    print(f"{name}: the smallest bound over the largest loss is {tightest:.3f}")
    assert tightest < (2.0 if table.open else 1.5)


def by_hand(row, left, right, c, entries, **other):
    """A choice of one cell a row; all tilts are 0."""
    known = {"family": 0, "level": 0, "pair": False, "offset": np.zeros(len(row), np.int64), "mu": 0.0,
             "mu_missing": 0.0, "surprise": 0} | other  # fmt: skip
    cells = {"row": np.array(row), "left": np.array(left), "right": np.array(right), "c": np.array(c, float),
             "nu": np.zeros(len(row)), "tilts": np.zeros((3, 1, entries))}  # fmt: skip
    return bounds.Choice(**known, **cells)


def test_a_lump_whose_slope_is_not_a_number_is_counted():
    """0·∞: with one exit the law (0.1, 0.9) has T·L = 1.62, and M is below 20 there."""
    table = sharp.table_of([{0: 1.0}], 1, math.log(20), open_states=True)
    for c in (0.0, -800.0, 800.0):
        assert bounds.loss_bound(table, by_hand([0], [0.0], [1.0], [c], 1)) > 1.62
    deep = {"family": 1, "level": -1, "offset": np.array([5]), "mu": 1e-4}
    assert bounds.loss_bound(table, by_hand([0], [0.0], [1.0], [800.0], 1, **deep)) > 1.62


def test_a_row_that_does_not_exist_is_no_choice():
    table = sharp.table_of([{0: 5.0, 1: 5.0}, {0: 50_000.0, 1: 50_000.0}], 2, math.log(20))
    mode = table.start[:-1]
    low, high = table.low[mode], table.high[mode]
    assert bounds.loss_bound(table, by_hand([0, 1], low, high, [0, 0], 4)) < math.inf
    assert bounds.loss_bound(table, by_hand([-2, 1], low, high, [0, 0], 4)) == math.inf


def test_a_count_of_zero_is_a_successor_never_seen():
    table = sharp.table_of([{0: 5, 1: 0}], 3, math.log(20))
    assert table.times.sum() == 3
    assert table.most == pytest.approx(sharp.table_of([{0: 5}], 3, math.log(20)).most)


# ---------------------------------------------------------------- laws


def excess(counts, delta=0.05):
    return sharp.bounds([counts], math.log(1 / delta))[0].loss


def bound_of(matrix, delta=0.05):
    return excess(Counts.from_transitions(matrix), delta)


def opened(matrix, holes=None):
    """The counts of a chain whose states were not declared; states that were never met are left out."""
    matrix = np.asarray(matrix)
    met = [x for x in range(len(matrix)) if matrix[x].sum() + matrix[:, x].sum()]
    pairs = {x: {y: int(matrix[a, b]) for y, b in enumerate(met) if matrix[a, b]} for x, a in enumerate(met)}
    return Counts.over({x: row for x, row in pairs.items() if row}, len(met), True, holes)


@settings(max_examples=15, deadline=None)
@given(count_tables(least=2, most=4), st.randoms(use_true_random=False), DELTAS)
def test_relabelling_states_changes_nothing(matrix, random, delta):
    order = list(range(len(matrix)))
    random.shuffle(order)
    other = matrix[np.ix_(order, order)]
    assert bound_of(other, delta) == pytest.approx(bound_of(matrix, delta), rel=1e-9)
    assert excess(opened(other), delta) == pytest.approx(excess(opened(matrix), delta), rel=1e-9)


def test_other_chains_in_the_same_call_change_nothing():
    rng = np.random.default_rng(3)
    several = [Counts.from_transitions(rng.integers(0, 30, (size, size)) + 1) for size in (2, 4, 3)]
    several += [opened(rng.integers(0, 9, (4, 4)) + 1)]
    together = sharp.bounds(several, 3.0)
    for chain, found in zip(several, together, strict=True):
        assert sharp.bounds([chain], 3.0)[0].loss == pytest.approx(found.loss, rel=1e-9)


def test_rows_in_any_order():
    """Rows that change places, with their holes, give the same bound.

    Rows with equal counts cannot be added up into one row: equal counts do not say that the laws are equal, and the
    certificate bounds the sum of both rows' losses.
    """
    matrix = np.array([[50, 3, 0, 7], [50, 3, 0, 7], [0, 7, 50, 3], [2, 2, 2, 2]])
    found = {round(bound_of(matrix[np.ix_(order, order)]), 12) for order in itertools.permutations(range(4))}
    assert max(found) - min(found) <= 1e-9 * max(found)
    for states in (None, 4):
        rows, holes = [matrix[1], matrix[2], matrix[3]], [0, 3, 1]
        one = least(table_of(rows, 3.0, holes, states=states))
        two = least(table_of(rows[::-1], 3.0, holes[::-1], states=states))
        assert one == pytest.approx(two, rel=1e-6)


def test_entries_with_equal_counts_are_one():
    """Entries of a row with equal counts are one class: apart they give the same bound."""
    table = table_of([[60, 7, 7, 7, 0, 0]], 3.0)
    assert table.times.tolist() == [1, 3, 2]
    choice = chosen(table)
    times = table.times.astype(int)
    names = ("count", "low", "high", "estimate")
    apart = table._replace(
        start=np.array([0, 6]),
        row=np.zeros(6, np.int64),
        times=np.ones(6),
        **{name: np.repeat(getattr(table, name), times) for name in names},
    )
    cells = len(choice.row)
    wide = choice.tilts.reshape(3, 1, cells, 3).repeat(times, axis=-1).reshape(3, 1, cells * 6)
    found = bounds.loss_bound(apart, choice._replace(tilts=wide))
    assert found == pytest.approx(bounds.loss_bound(table, choice), rel=1e-9)


def test_the_ends_of_the_scale():
    assert excess(Counts.from_transitions([[7]])) == 0
    assert excess(Counts(1)) == 0
    assert excess(Counts(5)) == math.inf
    assert excess(Counts(5, holes={2: 3})) == math.inf
    for size in (2, 3, 40):
        one = np.zeros((size, size), dtype=int)
        one[0, 1] = 1
        assert 0 < bound_of(one) <= 2
        assert 0 < excess(opened(one)) <= 2
    # One known state of an open chain proves nothing; a thousand exits prove something.
    assert excess(Counts.over({0: {0: 1}}, 1, True)) > 0.5
    assert 0 < excess(Counts.over({0: {0: 1000}}, 1, True)) < 0.1


@pytest.mark.parametrize("open_states", [False, True], ids=["declared", "open"])
def test_huge_counts_and_tiny_deltas(open_states):
    for scale, delta in ((10**12, 0.05), (10**12, 1e-300), (10**6, 1e-30), (1, 1e-300)):
        rows = {0: {0: 3 * scale, 1: scale}, 1: {0: 1, 1: scale}, 2: {0: scale}}
        found = excess(Counts.over(rows, 3, open_states), delta)
        total = sum(n for row in rows.values() for n in row.values())
        assert 0 < found <= 2
        if scale > 1:
            assert found < 20 * (math.log(1 / delta) + 3 * math.log(scale)) / total


def test_a_mode_whose_box_reaches_zero():
    """One exit and a tiny δ: the mode may have probability 0, and the search goes on."""
    table = table_of([[94, 6, 0, 0, 0], [1, 0, 0, 0, 0]], 46.0)
    assert table.low[table.start[1]] == 0
    assert 0 < bounds.loss_bound(table, chosen(table)) <= 4 * 101


def test_expected_counts_need_not_be_whole():
    """Plans ask for the bound at fractional counts; near whole ones it is near theirs."""
    whole = sharp.largest_loss([{0: 40.0, 1: 3.0}, {0: 7.0}], 2, 3.0)
    for less in (1e-9, 1e-3):
        parts = sharp.largest_loss([{0: 40.0 - less, 1: 3.0 + less}, {0: 7.0 - less, 1: less}], 2, 3.0)
        assert parts == pytest.approx(whole, rel=0.25)
    tiny = sharp.largest_loss([{0: 1e-3, 1: 1e-4}], 2, 3.0)
    assert 0 < tiny <= 2 * (1e-3 + 1e-4) * (1 + 1e-9)


def random_matrices(number, seed):
    rng = np.random.default_rng(seed)
    for _ in range(number):
        size = int(rng.integers(2, 6))
        matrix = rng.dirichlet(np.full(size, rng.choice([0.1, 0.5, 2.0])), size)
        exits = np.exp(rng.uniform(0, math.log(3000), size)).astype(int) * (rng.random(size) < 0.9)
        exits[0] += 1
        yield np.array([rng.multinomial(n, p) for n, p in zip(exits, matrix, strict=True)]), rng


def test_a_smaller_delta_hardly_ever_gives_a_smaller_bound():
    """50 tables, two δ each, near and far apart. The search is crude: some go a little the wrong way."""
    wrong, number = [], 50
    for matrix, rng in random_matrices(number, 8):
        delta = math.exp(rng.uniform(math.log(1e-8), math.log(0.5)))
        smaller = delta * math.exp(-rng.exponential() * rng.choice([0.1, 1.0, 5.0]) - 0.01)
        found = bound_of(matrix, delta), bound_of(matrix, smaller)
        if found[0] > found[1] * (1 + 1e-9):
            wrong.append(found[0] / found[1])
    print(f"{len(wrong)} of {number} the wrong way, by a factor of {max(wrong, default=1):.4f} at most")
    assert len(wrong) <= 0.1 * number
    assert max(wrong, default=1.0) < 1.04


def test_a_smaller_delta_costs_its_multiplier():
    """The same choice and the same boxes: T·b grows by μ for each nat."""
    table = table_of([[50, 8, 3], [9, 9, 0]], 3.0)
    choice = chosen(table)
    dearer = bounds.loss_bound(table._replace(log_inverse=3.5), choice)
    assert dearer - bounds.loss_bound(table, choice) == pytest.approx(0.5 * choice.mu, rel=1e-7)


@pytest.mark.parametrize("open_states", [False, True], ids=["declared", "open"])
def test_hardly_ever_above_the_mixture(open_states):
    ratios = []
    for matrix, rng in random_matrices(40, 9):
        counts = opened(matrix) if open_states else Counts.from_transitions(matrix)
        if rng.random() < 0.3:
            holes = {x: int(rng.integers(0, 4)) for x in range(counts.size)}
            counts = Counts.over(dict(counts.rows()), counts.size, open_states, holes)
        ratios.append((excess(counts) / mixture.bound_of(counts, math.log(20)), matrix.sum()))
    worst = max(ratio for ratio, _ in ratios)
    large = max(ratio for ratio, total in ratios if total >= 200)
    print(f"largest quotient {worst:.3f}, from 200 transitions on {large:.3f}")
    assert worst <= 1.10
    assert large <= 1.02


@pytest.mark.parametrize("name", ["two-state", "unlike", "cpg-islands", "cd4"])
def test_hardly_ever_above_the_mixture_at_typical_counts(name):
    rng = np.random.default_rng(17)
    for chain in problems.get(name).chains.values():
        for total in (5, 30, 200, 2_000, 50_000):
            exits = np.maximum(1, np.round(total * chain.stationary)).astype(int)
            counts = Counts.from_transitions([rng.multinomial(n, p) for n, p in zip(exits, chain.matrix, strict=True)])
            most = 1.02 if total >= 200 else 1.10
            assert excess(counts) <= most * mixture.bound_of(counts, math.log(20))


def slow_search(table, seed):
    """The least bound of a long random walk from the search's choice, the scales included."""
    rng = np.random.default_rng(seed)
    best = chosen(table)
    start = lowest = bounds.loss_bound(table, best)
    for step in range(1500):
        size = 10 ** rng.uniform(-4, -0.5)
        trial = best
        kind = rng.integers(0, 6)
        if kind == 0:
            trial = best._replace(mu=best.mu * math.exp(size * rng.normal()))
        elif kind == 1:
            trial = best._replace(c=best.c + size * rng.normal(size=best.c.shape))
        elif kind == 2:
            trial = best._replace(nu=best.nu + size * np.abs(best.nu).max() * rng.normal(size=best.nu.shape))
        elif kind == 3:
            trial = best._replace(tilts=best.tilts + size * rng.normal(size=best.tilts.shape))
        elif kind == 4 and best.mu_missing:
            trial = best._replace(mu_missing=best.mu_missing * math.exp(size * rng.normal()))
        elif kind == 5 and step % 3 == 0:
            trial = best._replace(level=best.level + int(rng.choice([-1, 1])), pair=bool(rng.integers(0, 2)))
        found = bounds.loss_bound(table, trial)
        if found < lowest:
            best, lowest = trial, found
    return start / lowest


@pytest.mark.parametrize("states", [None, 3], ids=["declared", "open"])
def test_the_search_is_near_what_a_slow_search_finds(states):
    found = []
    for rows, holes in (([[40, 3, 0]], [0]), ([[200, 90, 30]], [2]), ([[12, 8, 2], [3, 20, 1]], [0, 1])):
        found.append(slow_search(table_of(rows, 3.0, holes, states=states), 1))
    print("the search's bound over a slow search's:", *(f"{ratio:.3f}" for ratio in found))
    assert max(found) < 1.06


def test_the_certificate_is_never_above_any_of_its_three_bounds():
    for matrix, _ in random_matrices(8, 30):
        rows = [row for row in matrix if row.sum()]
        for states in (None, len(matrix)):
            table = table_of(rows, 3.0, states=states)
            found = least(table)
            assert found <= lemma.by_lemma(table)
            assert found <= table.most.sum()
            assert found <= bounds.loss_bound(table, chosen(table))


# ---------------------------------------------------------------- what follows from it


def test_largest_errors_and_total_variation():
    rows = {0: {0: 9000, 1: 1000}, 1: {0: 30, 1: 20}}
    found = sharp.bounds([Counts.over(rows, 2)], math.log(20))[0]
    low, high = reference_sharp.box(1000, 10_000, 2, math.log(20))
    estimate = (1000 + 1 / 6) / (10_000 + 1 / 3)
    entries = dict(found.entries)
    assert set(entries) == {10_000, 50}
    assert entries[10_000] == pytest.approx(max(high - estimate, estimate - low), rel=1e-6)
    assert entries[50] > entries[10_000]
    assert found.total_variation <= 0.5 * math.sqrt(2 * found.loss) * (1 + 1e-6)
    # Open states: a label that was never seen may be as heavy as κ, and nothing like ½√(Sb) holds.
    opened_found = sharp.bounds([Counts.over({0: {0: 40}}, 1, True)], math.log(20))[0]
    heavy = reference_sharp.heaviest(40, 1 / 2, math.log(20))
    table = table_of([[40.0]], math.log(20), states=1)
    assert dict(opened_found.entries)[40] == pytest.approx(max(1 - table.low[0], min(heavy, table.mass[0])), rel=1e-6)
    assert opened_found.total_variation >= 0.5 * (1 - table.low[0])


def test_no_compiler_is_loaded():
    code = (
        "import sys, math; from chainscout.certificates import sharp; from chainscout.counts import Counts;"
        "sharp.bounds([Counts.from_transitions([[40, 3], [2, 9]])], 3.0); print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
