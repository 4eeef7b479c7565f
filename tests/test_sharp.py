"""The sharp certificate: every weight of its event, every step of its bound, and the laws it obeys.

The search chooses numbers, and the bound is valid whatever they are. So most tests here choose badly on purpose.
"""

import importlib
import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
import reference_policies
import reference_sharp
from count_strategies import DELTAS, count_tables
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from chainscout import problems
from chainscout.certificates import mixture, sharp
from chainscout.certificates.sharp import event, lemma
from chainscout.certificates.sharp import table as tables
from chainscout.counts import Counts

# The package has functions of these modules' names.
bounds, search = (importlib.import_module(f"chainscout.certificates.sharp.{name}") for name in ("bound", "search"))

EXACT = {"rel": 1e-12, "abs": 1e-12}
#: What roundings may do to a comparison of T·b.
SLACK = 1e-7


def table_of(rows, log_inverse, holes=None, mute=(), states=None, size=None):
    """A table of rows that are vectors of counts; with ``states``, states are open and so many of them are known."""
    size = len(rows[0]) if size is None else size
    rows = [{y: float(n) for y, n in enumerate(row) if n > 0} for row in rows]
    return tables.table_of(rows, states or size, log_inverse, holes, mute, states is not None)


def spelt(table, values, x=0):
    """The values of a row's classes, once for each entry."""
    part = slice(table.start[x], table.start[x + 1])
    return np.repeat(values[part], table.times[part].astype(int))


def by_state(table, values, row):
    """The values of the classes of row 0, in the order of the states; a state that was never seen may have no class."""
    known = dict(zip(table.count[1:].tolist(), values[1:].tolist(), strict=True))
    found = np.array([known.get(float(n), values[0]) for n in row])
    found[int(np.argmax(row))] = values[0]
    return found


def least(table):
    """T·b of the chain, by all that the package has."""
    return next(sharp.least_excess([table]))


def chosen(table):
    """What the search chooses."""
    return search.search([table])[0]


# ---------------------------------------------------------------- the event's weights


def test_the_martingale_starts_at_one():
    """Every family of weights is a probability: the mean of M at the start is at most one."""
    assert math.fsum((event.JOINT, event.SINGLE)) == pytest.approx(1, **EXACT)
    assert math.fsum((event.JOINT, event.SEEN, 2 * event.MISSING)) == pytest.approx(1, **EXACT)
    assert math.fsum(event.SURPRISE_WEIGHTS) == pytest.approx(1, **EXACT)
    assert len(event.SURPRISES) == len(event.SURPRISE_WEIGHTS) == len(set(event.SURPRISES))
    assert math.fsum(event.FAMILIES) == pytest.approx(1, **EXACT)
    levels = [math.exp(-event.level_cost(m)) for m in range(event.LEAST_LEVEL, 4000)]
    assert sum(levels) == pytest.approx(1, abs=1e-3)
    assert sum(levels) < 1
    for m in (-1, 0, 1, 5):
        for family, most in ((1, 200), (2, 200), (3, max(m, 0))):
            prices = event.offset_cost(family, np.arange(most + 1), m, False)
            assert np.exp(-prices).sum() == pytest.approx(1, **EXACT)
        assert event.offset_cost(0, 0, m, False) == 0
    assert math.fsum((event.NEVER, event.ALWAYS, event.BETA)) == pytest.approx(1, **EXACT)
    assert event.NEVER == event.ALWAYS  # the lower end of a box is the upper end of the others together
    for rows in (1, 2, 7):  # one weight for all rows is no more than the weight of each one's number
        assert event.row_weight(rows) <= min(reference_sharp.row_weight(j + 1) for j in range(rows))
        assert event.row_weight(rows) == pytest.approx(reference_sharp.row_weight(rows), **EXACT)


def test_the_surprises_are_the_reference_s():
    found = dict(zip(event.SURPRISES.tolist(), event.SURPRISE_WEIGHTS.tolist(), strict=True))
    assert found == pytest.approx(reference_sharp.SURPRISE, **EXACT)


@pytest.mark.parametrize("family", range(len(event.FAMILIES)))
def test_the_price_of_every_choice(family):
    """B is −log of the weight that a term has in M: against the reference's weights, one level and two at once."""
    log_inverse, dimension = 4.2, np.full(2, 3.0)
    for m, offsets in itertools.product(range(-1, 9), itertools.product(range(3), repeat=2)):
        chances = [[reference_sharp.offset_probability(family, o, n) for o in offsets] for n in (m, m + 1)]
        if min(chances[0]) == 0:
            continue
        weights = [
            reference_sharp.JOINT * reference_sharp.FAMILY[family] * reference_sharp.level_weight(n) * math.prod(c)
            for n, c in zip((m, m + 1), chances, strict=True)
        ]
        one = event.joint_cost(log_inverse, family, m, False)
        one += event.row_cost(family, np.array(offsets), m, False, dimension).sum()
        assert one == pytest.approx(log_inverse - math.log(weights[0]), rel=1e-9)
        # log(a + b) ≥ log 2 + ½log a + ½log b; and the divergence of one normal law from two, in S − 1 dimensions.
        both = event.joint_cost(log_inverse, family, m, True)
        both += event.row_cost(family, np.array(offsets), m, True, dimension).sum()
        gap = math.log((1 + 4) / 2) - (math.log(1) + math.log(4)) / 2
        expected = log_inverse - math.log(2) - 0.5 * sum(map(math.log, weights)) + dimension.sum() / 2 * gap
        assert both == pytest.approx(expected, rel=1e-9)
    for m, offset in itertools.product(range(-1, 9), range(3 if family else 1)):
        rho = reference_sharp.scale(family, m, offset)
        assert event.scale(m, family, offset, False) == rho
        assert event.scale(m, family, offset, True) == (rho + 4 * rho) / 2


def test_offsets_that_a_family_does_not_have_are_refused():
    table = table_of([[20.0, 6.0, 3.0]], 3.0)
    good = chosen(table)
    for family, level, offset in ((0, 3, 1), (1, 3, -1), (3, 3, 4), (3, -1, 1), (4, 3, 0), (-1, 3, 0), (0, -2, 0)):
        assert bounds.bound(table, good._replace(family=family, level=level, offset=np.array([offset]))) == math.inf
    for family, level, offset in ((0, 3, 0), (1, 3, 3), (2, 3, 1), (3, 3, 3), (3, -1, 0)):
        assert bounds.bound(table, good._replace(family=family, level=level, offset=np.array([offset]))) < math.inf


def test_rows_with_holes_alone_pay_for_their_offset_and_for_two_levels():
    rows, alone = [[9.0, 3.0, 1.0]], (2.0, 5.0)
    for family, level, pair, states in itertools.product(range(len(event.FAMILIES)), (-1, 2), (False, True), (None, 3)):
        more, less = (
            bounds.price(table_of(rows, 3.0, mute=mute, states=states), family, level, pair, np.zeros(1, np.int64))
            for mute in (alone, ())
        )
        each = event.row_cost(family, np.zeros(()), level, pair, 0.0 if states else 2.0)
        assert more - less == pytest.approx(2 * float(each), **EXACT)


# ---------------------------------------------------------------- boxes


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 5000), st.floats(0, 1), st.integers(0, 30), st.floats(0.1, 40), st.integers(2, 60))
def test_the_boxes_are_the_reference_s_from_outside(exits, share, holes, log_inverse, size):
    """With holes: the lower end for n of N + h, the upper one for n + h of N + h."""
    count = round(share * exits)
    low, _ = reference_sharp.box(count, exits + holes, size, log_inverse)
    _, high = reference_sharp.box(count + holes, exits + holes, size, log_inverse)
    level = log_inverse + 2 * math.log(size) - math.log(event.SINGLE)
    lower, upper = event.boxes(*(np.array([float(v)]) for v in (count, exits, holes)), level)
    assert upper[0] >= high - 1e-12
    assert lower[0] <= low + 1e-12
    # And not farther outside than rounding asks for.
    assert upper[0] <= high + 1e-8
    assert lower[0] >= low - 1e-8


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 5000), st.floats(0, 1), st.integers(0, 30), st.floats(0.1, 40), st.integers(1, 30))
def test_the_boxes_of_seen_labels_are_the_reference_s_from_outside(exits, share, holes, log_inverse, rows):
    count = max(1, round(share * exits))
    weight = reference_sharp.row_weight(rows)
    level = log_inverse - math.log(event.SEEN * weight)
    lower, upper = event.seen_boxes(*(np.array([float(v)]) for v in (count, exits, holes)), level)
    if exits + holes == 1:
        assert (lower[0], upper[0]) == (0, 1)
        return
    low, _ = reference_sharp.seen_box(count, exits + holes, weight, log_inverse)
    _, high = reference_sharp.seen_box(count + holes, exits + holes, weight, log_inverse)
    assert low - 1e-8 <= lower[0] <= low + 1e-12
    assert high - 1e-12 <= upper[0] <= high + 1e-8


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 10**5), st.floats(0.1, 40), st.integers(1, 30))
def test_the_heaviest_label_that_was_never_seen(exits, log_inverse, rows):
    weight = reference_sharp.row_weight(rows)
    found = event.heaviest(np.array([float(exits)]), log_inverse - math.log(event.SEEN * weight))[0]
    expected = reference_sharp.heaviest(exits, weight, log_inverse)
    assert expected * (1 - 1e-9) <= found <= expected * (1 + 1e-6) + 1e-12
    assert found <= 1


def test_boxes_with_holes_contain_those_of_every_completion():
    """The ends rise with the count: n and n + h decide."""
    for exits, holes in ((1, 1), (5, 3), (40, 4), (300, 2)):
        for count in sorted({0, 1, exits // 3, exits - 1, exits} & set(range(exits + 1))):
            for function, least_count in ((event.boxes, 0), (event.seen_boxes, 1)):
                if count < least_count:
                    continue
                n, whole = np.array([float(count)]), np.array([float(exits)])
                low, high = function(n, whole, np.array([float(holes)]), 6.0)
                for more in range(holes + 1):
                    inner = function(n + more, whole + holes, np.zeros(1), 6.0)
                    assert low[0] <= inner[0][0] + 1e-15
                    assert high[0] >= inner[1][0] - 1e-15


def test_one_successor_makes_the_others_boxes_narrower_only_if_every_step_is_known():
    """Where y was never met and another label always, R_x1 + R_xy ≥ 2·R_xy: the level is lower by log 2."""
    for size, holes in ((2, 0), (5, 0), (2, 1), (5, 1)):
        table = table_of([[30.0] + [0.0] * (size - 1)], 3.0, [holes])
        level = 3.0 + math.log(size**2 / event.SINGLE) - (0.0 if holes else math.log(2.0))
        _, high = event.boxes(np.zeros(1), np.array([30.0]), np.array([float(holes)]), level)
        assert table.high[1] == pytest.approx(high[0], rel=1e-9)
        if size == 2 and not holes:
            assert table.low[0] == pytest.approx(1 - high[0], abs=1e-9)
    # Where two labels were met, nothing is shared.
    table = table_of([[29.0, 1.0, 0.0]], 3.0)
    assert table.high[2] == pytest.approx(reference_sharp.box(0, 30, 3, 3.0)[1], rel=1e-8)
    # The claim itself: p_1 ≤ 1 − p, and R_x1 falls as p_1 grows.
    for p, rest in itertools.product((0.01, 0.2, 0.5), (0.0, 0.1)):
        both = np.logaddexp(reference_sharp.log_r(30, 30, 1 - p - rest), reference_sharp.log_r(0, 30, p))
        assert both >= math.log(2) + reference_sharp.log_r(0, 30, p) - 1e-12


def test_a_box_at_a_million_million_exits():
    for count in (0.0, 1.0, 1e6, 5e11):
        level = 5.0 + math.log(9 / event.SINGLE)
        lower, upper = (ends[0] for ends in event.boxes(np.array([count]), np.array([1e12]), np.zeros(1), level))
        assert count / 1e12 < upper < count / 1e12 + 20 / 1e6
        assert count / 1e12 - 20 / 1e6 < lower <= max(count / 1e12, 0)


def test_the_missing_mass_is_what_surprises_allow():
    """q̄ and B₂ from their definitions, without holes and with them."""
    rng = np.random.default_rng(1)
    for _ in range(40):
        number = int(rng.integers(1, 4))
        exits, holes = rng.integers(1, 60, number), rng.integers(0, 3, number) * int(rng.integers(0, 2))
        labels = np.array([int(rng.integers(1, min(n, 5) + 1)) for n in exits])
        mute = rng.integers(1, 3, int(rng.integers(0, 2)))
        weight, ell = reference_sharp.row_weight(number + len(mute)), 3.0
        level = ell - math.log(reference_sharp.OPEN[1] * weight)
        found = event.missing_mass(*(np.asarray(v, float) for v in (exits, holes, labels, mute)), ell, weight, level)
        whole, news = exits + holes, labels + holes - 1
        hidden = [
            min(1.0, max(h * reference_sharp.seen_box(i, n, weight, ell)[1] / i for i in range(1, h + 1))) if h else 0.0
            for n, h in zip(whole, holes, strict=True)
        ]
        assert event.hidden(exits.astype(float), holes.astype(float), level) == pytest.approx(hidden, abs=1e-8)
        least_mass = np.ones(number)
        for v, (z, chance) in enumerate(reference_sharp.SURPRISE.items()):

            def times(k, z=z):
                return 0.0 if k == 0 else k * z  # 0⁰ = 1

            kept = 1 - math.exp(-z)
            together = ell - math.log(reference_sharp.OPEN[2] * chance) + sum(map(times, [*news, *(mute - 1)]))
            for x in range(number):
                alone = ell - math.log(reference_sharp.OPEN[3] * weight * chance) + times(news[x])
                late = whole[x] - 1
                if late:
                    least_mass[x] = min(least_mass[x], (1 - math.exp(-min(alone, together) / late)) / kept)
                assert found.rate[v, x] == pytest.approx(late * kept, rel=1e-12)
            most = together + sum((n - 1) * kept * s for n, s in zip(whole, hidden, strict=True))
            assert found.most[v] == pytest.approx(most, abs=1e-6) or found.most[v] == most == math.inf
        assert found.mass == pytest.approx(np.minimum(1, least_mass + hidden), abs=1e-8)
        assert (found.mass >= np.minimum(1, least_mass + hidden) - 1e-15).all()


def test_a_lump_is_no_heavier_than_the_boxes_leave_room_for():
    for row, holes in (([30.0, 8.0], 0), ([30.0, 8.0], 2), ([1.0, 0.0], 0), ([400.0, 0.0], 0)):
        table = table_of([row], 3.0, [holes], states=3)
        known = np.count_nonzero(row)
        assert table.mass[0] <= 1 - (table.times * table.low).sum() + 1e-11
        assert table.heavy[0] <= table.mass[0]
        expected = reference_sharp.heaviest(sum(row), 1 / 2, 3.0)
        if holes:
            expected = reference_sharp.seen_box(holes, sum(row) + holes, 1 / 2, 3.0)[1]
        assert table.heavy[0] == pytest.approx(min(table.mass[0], expected), abs=1e-7)
        e = (1 / 9) / (sum(row) + 1 / 3)
        assert table.smooth[0] == pytest.approx(sum(row) * (3 - known) * e * e, rel=1e-12)


def laws_in_the_boxes(table, row, number, rng):
    """Laws that the boxes of row 0 allow, near the counts and at the edges, in the order of the states.

    If states are open, there is one label more, which is not known, and the lump's mass is at most q̄.
    """
    opened = table.open
    row = np.asarray(row, dtype=float)
    low, high = by_state(table, table.low, row), by_state(table, table.high, row)
    if opened:
        unseen = row == 0
        low, high = np.where(unseen, 0.0, low), np.where(unseen, table.heavy[0], high)
        low, high = np.append(low, 0.0), np.append(high, table.heavy[0])
        row = np.append(row, 0.0)
    found = []
    for _ in range(number):
        centre = (row + 1 / len(row)) / (row.sum() + 1)
        law = rng.dirichlet(centre * row.sum() * rng.choice([0.02, 0.1, 1.0]) + 0.05)
        law = low + (law - low).clip(0)
        law = law / law.sum()
        fits = (law >= low - 1e-15).all() and (law <= high + 1e-15).all() and law.min() > 0
        if fits and (not opened or law[row == 0].sum() <= table.mass[0]):
            found.append(law)
    return found


def test_the_box_loss_is_the_largest_that_the_boxes_allow():
    """Above every law in the boxes; and no larger than the linear programme of the ends of the boxes."""
    for row, _, _, rng in random_rows(60, [2, 3, 6], 7):
        holes = [int(rng.integers(0, 3))]
        for states in (None, len(row)):
            table = table_of([row], 2.0, holes, states=states)
            for law in laws_in_the_boxes(table, row, 20, rng):
                full = np.append(row, np.zeros(len(law) - len(row)))
                assert table.most[0] >= reference_sharp.square(full, law, len(row)) * (1 - 1e-12) - 1e-9
        table, exits = table_of([row], 2.0, holes), row.sum()
        low, high, estimate = (spelt(table, v) for v in (table.low, table.high, table.estimate))
        ends = [exits * (end - estimate) ** 2 for end in (low, high)]
        share = linprog(
            -np.concatenate(ends),
            A_eq=np.block([[np.eye(len(low)), np.eye(len(low))], [low, high]]),
            b_eq=np.ones(len(low) + 1),
        )
        if share.status == 0:
            assert table.most[0] == pytest.approx(min(2 * exits, -share.fun), rel=1e-6, abs=1e-9)


# ---------------------------------------------------------------- the steps of the bound


def random_rows(number, sizes, seed):
    """Counts of a row, a level, μ: likely counts and unlikely ones, nearly deterministic laws too."""
    rng = np.random.default_rng(seed)
    for _ in range(number):
        size = int(rng.choice(sizes))
        law = rng.dirichlet(np.full(size, rng.choice([0.1, 1.0, 10.0])))
        exits = int(rng.choice([1, 3, 10, 40, 150]))
        counts = rng.multinomial(exits, law)
        if rng.random() < 0.2:
            counts = rng.multinomial(exits, rng.dirichlet(np.ones(size)))
        yield counts, int(rng.integers(-1, 4)), float(np.exp(rng.uniform(-3, 1.2))), rng


@pytest.mark.parametrize("states", [None, 6], ids=["declared", "open"])
def test_the_shape_of_the_tilts(states):
    """t, KL₀ and the lump's factor against dense linear algebra, classes spelt out, with holes in N⁺."""
    for row, level, _, rng in random_rows(60, [2, 3, 6], 1):
        holes, rho, pair = int(rng.integers(0, 4)), 4.0**level, bool(rng.integers(0, 2))
        table = table_of([row], 3.0, [holes], states=states and max(states, len(row)))
        found = bounds.shape(table, np.array([rho]), pair)
        p = spelt(table, table.estimate + 0.1 / table.size[0] * (table.high - table.estimate).clip(0))
        p[0] = table.estimate[0]
        p /= p.sum()
        size, u = len(p), (row.sum() + holes) / rho
        assert size == (np.count_nonzero(row) if states else len(row))
        covariance = np.linalg.inv(np.eye(size) + u * (np.diag(p) - np.outer(p, p)))
        expected = 0.5 * (np.trace(covariance) - size - np.linalg.slogdet(covariance)[1])
        assert found.divergence[0] == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert found.divergence[0] >= expected - 1e-13 * (1 + size)
        d = np.eye(size) - p
        spread = np.einsum("yi,ij,yj->y", d, covariance, d) / rho
        half = spelt(table, found.half)
        assert 2 * half == pytest.approx(spread, rel=1e-9, abs=1e-12)
        assert (2 * half >= spread * (1 - 1e-13)).all()
        given_up = reference_policies.row_cost(u, size)
        if not states:
            assert found.given_up[0] == pytest.approx(given_up, rel=1e-9)
            assert found.lump[0] == 0
            continue
        # An unseen label's exponent is λ − p̄·ξ; of two levels, each has its own variance on it and along 1.
        across = p @ covariance @ p - 1 / size
        assert across >= -1e-12
        levels = (rho / 2.5, 4 * rho / 2.5) if pair else (rho,)
        exponents = [(1 + 1 / size) / one + across / rho for one in levels]
        factor = np.mean([math.exp(t / 2) for t in exponents])
        assert found.lump[0] == pytest.approx(factor, rel=1e-9)
        assert found.lump[0] >= factor * (1 - 1e-13)
        assert found.given_up[0] == pytest.approx(u / 2 if not pair else 0.78125 * u, rel=1e-9)


def best_tilt(p, count, holes, whole, shift, rho):
    """The a where na + h·min(a, 0) − N⁺p(e^{a+s} − 1) − ρa²/2 is largest, by bisection: its derivative falls."""
    with np.errstate(divide="ignore", invalid="ignore"):
        high = np.where(p > 0, np.maximum(0, np.log(count / (whole * p)) - shift), count / rho) + 1e-9
    low = -whole * p * np.exp(shift) / rho - 1
    for _ in range(90):
        a = (low + high) / 2
        rises = count + holes * (a < 0) - rho * a > np.where(p > 0, whole * p * np.exp(a * (p > 0) + shift), 0)
        low, high = np.where(rises, a, low), np.where(rises, high, a)
    return a


def phi(p, count, holes, whole, shift, rho):
    """The largest value itself."""
    a = best_tilt(p, count, holes, whole, shift, rho)
    lost = np.where(p > 0, whole * p * np.expm1(a * (p > 0) + shift), 0)
    return count * a + holes * np.minimum(a, 0) - lost - rho * a * a / 2


def random_entries(number, seed, holes):
    """Entries as `largest` takes them, one a lane, and their shift and ν."""
    rng = np.random.default_rng(seed)
    exits = rng.choice([1.0, 5.0, 30.0, 200.0, 3000.0], number)
    count = np.where(rng.random(number) < 0.7, np.floor(rng.random(number) * (exits + 1)), rng.integers(0, 2, number))
    lost = np.where(rng.random(number) < 0.8, rng.integers(1, 6, number), 0) if holes else np.zeros(number)
    edges = np.sort(rng.random((2, number)) * rng.choice([0.01, 0.1, 1.0], number), axis=0)
    low = np.where(rng.random(number) < 0.3, 0.0, edges[0])
    estimate = (count + 0.1) / (exits + 1 / 3)
    rho, mu = 4.0 ** rng.integers(-2, 4, number), np.exp(rng.uniform(-3, 1.5, number))
    half, c = rng.random(number) * 0.3, rng.normal(size=number) * 0.3
    counts = np.stack((count, count + lost)) if holes else count[None]
    entries = bounds.Entries(counts, np.ones(number), exits + lost, exits, estimate, low, edges[1], rho, half, mu)
    return entries, lost, c, rng.normal(size=number) * exits * 0.3, rng


def grid_maximum(e, lost, c, nu, points=400):
    """The largest value of each entry's h on a fine grid of its box."""
    p = e.low + (e.high - e.low) * np.linspace(0, 1, points)[:, None]
    value = phi(p, e.count[0], lost, e.whole, e.half - c, e.rho)
    return (e.exits * (p - e.estimate) ** 2 - e.mu * value - nu * p).max(axis=0)


@pytest.mark.parametrize("holes", [False, True], ids=["no holes", "holes"])
def test_the_largest_value_of_an_entry_whatever_the_tilts(holes):
    """Never below a fine grid's maximum, for any three tilts; and with good tilts mostly near it."""
    e, lost, c, nu, rng = random_entries(500, 2, holes)
    top = grid_maximum(e, lost, c, nu)
    slack = 1e-9 * (1 + np.abs(top))
    for spread in (0.1, 1.0, 10.0, 1000.0):
        with np.errstate(all="ignore"):
            found = bounds.largest(e, nu, c, rng.normal(size=(3, *e.count.shape)) * spread)
            fine = found.value + event.RELATIVE * found.size
        assert (np.isnan(fine) | (fine >= top - slack)).all()  # `terms` makes infinity of what is not a number
    # For n and for n + h: the best tilts where h is largest, and at the ends of the box.
    p = e.low + (e.high - e.low) * np.linspace(0, 1, 400)[:, None, None]
    value = e.exits * (p - e.estimate) ** 2 - e.mu * phi(p, e.count, 0, e.whole, e.half - c, e.rho) - nu * p
    at = np.take_along_axis(np.broadcast_to(p, value.shape), value.argmax(axis=0)[None], axis=0)[0]
    wanted = np.stack((at, *(np.broadcast_to(end, at.shape) for end in (e.high, e.low))))
    tilts = best_tilt(wanted, e.count, 0, e.whole, e.half - c, e.rho) + e.half - c
    with np.errstate(all="ignore"):
        over = (bounds.largest(e, nu, c, tilts).value - top) / (1 + np.abs(top))
    assert np.median(over) < 0.001
    assert np.quantile(over, 0.95) < 0.01


def test_an_entry_without_a_bend_is_followed_to_the_end_of_its_box():
    """h″ = 2N − μ(N⁺e^b)²/(N⁺pe^b + ρ) is zero at p = ¼: to the left, h is below its tangent."""
    for nu in (0.3, 1.0, 3.0, -1.0):
        values = (1.0, 2.0, 2.0, 0.25, 0.1, 0.2, 0.5, 0.0, 1.0)
        e = bounds.Entries(np.array([[0.5]]), *(np.array([v]) for v in values))
        tilts = np.array([0.0, 3.0, -3.0])[:, None, None]  # those for the ends are far off
        with np.errstate(all="ignore"):
            found = bounds.largest(e, np.array([nu]), np.zeros(1), tilts)
        assert found.value[0] >= grid_maximum(e, np.zeros(1), np.zeros(1), np.array([nu]))[0] - 1e-12


def test_an_entry_whose_box_is_convex_is_not_below_its_left_end():
    """The tangent from a point left of the box falls, and h is convex on the box: its left end may be the largest."""
    rng = np.random.default_rng(5)
    number = 3000
    exits, estimate = np.exp(rng.uniform(2, 13, number)), rng.random(number)
    low = np.clip(estimate + rng.normal(size=number) / np.sqrt(exits), 1e-6, 0.99)
    high = np.minimum(1, low + rng.random(number) * 6 / np.sqrt(exits))
    rho, mu = 4.0 ** rng.integers(-1, 7, number), np.exp(rng.uniform(-1, 2, number))
    half, c, nu = (scale * rng.normal(size=number) for scale in (0.01, 0.01, np.sqrt(exits)))
    count = (estimate * exits)[None]
    e = bounds.Entries(count, np.ones(number), exits, exits, estimate, low, high, rho, half, mu)
    with np.errstate(all="ignore"):
        found = bounds.largest(e, nu, c, rng.normal(size=(3, *count.shape)) * 0.05)
    top = grid_maximum(e, np.zeros(number), c, nu, 12)
    assert (found.value + event.RELATIVE * found.size >= top - 1e-12 * np.abs(top)).all()


def tangent_bound(counts, law, rho, half):
    """Step B: max over a, c of a·n − N(c + Σ p e^{a + t/2 − c} − 1) − ρ‖a‖²/2; c at its best is log Σ p e^{a+t/2}."""
    exits = counts.sum()

    def lost(a):
        weights = law * np.exp(a + half)
        return -(a @ counts - exits * math.log(weights.sum()) - rho * (a @ a) / 2)

    def slope(a):
        weights = law * np.exp(a + half)
        return -(counts - exits * weights / weights.sum() - rho * a)

    return -minimize(lost, np.zeros(len(law)), jac=slope, method="BFGS").fun


def moved(choice, table, rng):
    """Another choice: scales, μ and all multipliers are changed a little or much."""
    spread = float(rng.choice([0.0, 0.02, 0.3, 2.0]))
    return choice._replace(
        level=int(rng.integers(-1, 5)),
        pair=bool(rng.integers(0, 2)),
        mu=choice.mu * math.exp(spread * rng.normal()),
        mu_missing=choice.mu_missing * math.exp(spread * rng.normal()) if table.open else 0.0,
        surprise=int(rng.integers(0, len(table.missing.most))),
        c=choice.c + spread * rng.normal(size=choice.c.shape) * 0.1,
        nu=choice.nu * (1 + spread * rng.normal(size=choice.nu.shape)),
        tilts=choice.tilts + spread * rng.normal(size=choice.tilts.shape) * 0.1,
    )


def of_laws(table, row, choice, laws, holes=0):
    """For each law of row 0: N‖p − P̂‖² + μ(B − log Z(p)) + μ₂(B₂ − rate·q), log Z the least of all completions.

    For laws in the boxes, T·b for this choice must be at least this. For two levels log Z is the mean of both, and B
    does not have what the step from both to one costs.
    """
    dims = (table.size[0] - 1) * event.PAIR_COST if choice.pair else 0.0
    rho = reference_sharp.scale(choice.family, choice.level, choice.offset[0])
    scales = (rho, 4 * rho) if choice.pair else (rho,)
    paid = choice.mu * (bounds.price(table, *choice[:4]) - dims)
    for law in laws:
        full = list(row) + [0] * (len(law) - len(row))
        mixture_at = min(
            np.mean([reference_sharp.log_z(n, law, scale) for scale in scales])
            for n in reference_sharp.completions(full, holes)
        )
        value = reference_sharp.square(full, law, int(table.states)) + paid - choice.mu * mixture_at
        if choice.mu_missing:
            q = law[np.array(full) == 0].sum()
            value += choice.mu_missing * float(
                table.missing.most[choice.surprise] - q * table.missing.rate[choice.surprise, 0]
            )
        yield value


@pytest.mark.parametrize(("sizes", "number"), [([2], 40), ([3], 30), ([5, 8], 30)], ids=["2", "3", "5 and 8"])
def test_the_bound_of_a_row_is_above_every_law_in_the_boxes(sizes, number):
    """T·b ≥ N‖p − P̂‖² + μ(B − (the bound of step B, which is at most log Z)), or what boxes and lemma give."""
    looked_at = 0
    for row, _, _, rng in random_rows(number, sizes, 3):
        table = table_of([row], 3.0)
        choice = moved(chosen(table), table, rng)
        found = bounds.bound(table, choice)
        rho = event.scale(choice.level, choice.family, choice.offset, choice.pair)
        of = bounds.shape(table, rho, choice.pair)
        paid = choice.mu * bounds.price(table, *choice[:4])
        given_up = table.most[0] + choice.mu * of.given_up[0]
        for law in laws_in_the_boxes(table, row, 8, rng):
            below = tangent_bound(row.astype(float), law, float(rho[0]), by_state(table, of.half, row))
            value = reference_sharp.square(row, law) - choice.mu * (below - of.divergence[0])
            assert found >= paid + min(value, given_up) - SLACK
            looked_at += 1
    assert looked_at > number


@pytest.mark.parametrize(
    ("size", "number", "holes", "states"),
    [(2, 40, 0, None), (3, 25, 0, None), (2, 30, 2, None), (3, 12, 1, None), (2, 30, 0, 2), (2, 20, 1, 2)],
    ids=["2", "3", "2 with holes", "3 with holes", "open", "open with a hole"],
)
def test_the_bound_of_a_row_is_above_the_integrated_mixture(size, number, holes, states):
    """Steps B to E at once: for the search's choices and for others. The integral is of all labels, seen or not."""
    slack = []
    for row, _, _, rng in random_rows(number, [size], 4):
        table = table_of([row], 3.0, [holes], states=states)
        first = chosen(table)
        for choice in (first, first._replace(pair=not first.pair), moved(first, table, rng)):
            found = bounds.bound(table, choice)
            laws = laws_in_the_boxes(table, row, 6, rng)
            for value in of_laws(table, row, choice, laws, holes):
                assert found >= value - SLACK
                slack.append((found - value) / max(found, 1.0))
    assert len(slack) > 3 * number
    assert min(slack) < 0.15  # not far above somewhere, so that no term is missing


def test_a_row_that_is_given_up_pays_for_it():
    """With a large μ a row's term is mostly what log Z < 0 costs: the boxes' loss alone would be too small."""
    below_the_boxes = 0
    for row, _, _, rng in random_rows(20, [2], 12):
        table = table_of([row], 3.0)
        choice = chosen(table)._replace(mu=40.0)
        found, paid = bounds.bound(table, choice), 40.0 * bounds.price(table, *choice[:4])
        laws = laws_in_the_boxes(table, row, 6, rng)
        for value in of_laws(table, row, choice, laws):
            assert found >= value - SLACK
            below_the_boxes += value - paid > table.most[0]
    assert below_the_boxes > 10


def test_rows_with_holes_alone_are_in_the_bound():
    """Their log Z may be negative, so each adds μ·(S − 1)/2·log(1 + h/(Sρ)), or μ·h/(2ρ), and its price."""
    for states in (None, 3):
        rows = [[20.0, 5.0, 2.0]]
        plain, more = (table_of(rows, 3.0, mute=mute, states=states) for mute in ((), (4.0,)))
        choice = chosen(plain)._replace(mu_missing=0.0)
        rho = float(event.scale(choice.level, choice.family, 0, choice.pair))
        lost = 4 / rho * (0.78125 if choice.pair else 0.5) if states else reference_policies.row_cost(4 / rho, 3)
        # The boxes of open states depend on the number of rows.
        if not states:
            extra = lost + float(event.row_cost(choice.family, np.zeros(()), choice.level, choice.pair, 2.0))
            difference = bounds.bound(more, choice) - bounds.bound(plain, choice)
            assert difference == pytest.approx(choice.mu * extra, rel=1e-6)
        else:
            assert bounds.bound(more, choice) >= bounds.bound(plain, choice) + choice.mu * lost * (1 - 1e-6)
        assert least(more) >= least(plain) * 0.999


def test_only_cells_that_cover_the_mode_s_box_count():
    table = table_of([[20.0, 6.0, 3.0]], 3.0)
    low, high = table.low[0], table.high[0]
    choice = chosen(table)

    def is_covered(*cells):
        left, right = (np.array(ends) for ends in zip(*cells, strict=True))
        cells = choice._replace(row=np.zeros(len(left), np.int64), left=left, right=right)
        return bool(bounds.covered(table, cells)[0])

    middle = (low + high) / 2
    assert is_covered((low, high))
    assert is_covered((middle, high), (low, middle))  # in any order
    assert is_covered((low, 0.9 * high), (low, middle), (middle, high))  # overlapping
    assert is_covered((0.0, 1.0))
    assert not is_covered((low, middle))
    assert not is_covered((middle, high))
    assert not is_covered((low, middle), (math.nextafter(middle, 1), high))
    assert not is_covered((high, low))
    assert not is_covered((low, math.nan), (math.nan, high))
    assert not is_covered((low, -math.inf), (math.inf, high))


# ---------------------------------------------------------------- the lemma


@pytest.mark.parametrize("states", [None, 4], ids=["declared", "open"])
def test_the_lemma_on_this_event(states):
    """The bound of `mixture` with this B, against the reference's knapsack, at the offsets that it tries."""
    rng = np.random.default_rng(6)
    for _ in range(20):
        size, number = 4 if states else int(rng.choice([2, 4])), int(rng.integers(1, 3))
        rows = [rng.multinomial(int(n), rng.dirichlet(np.ones(size))) for n in np.exp(rng.uniform(0, 8, number)) + 1]
        holes, mute = rng.integers(0, 3, number) * int(rng.integers(0, 2)), [2.0] * int(rng.integers(0, 2))
        table = table_of(rows, 3.5, holes, mute, states)
        exits = [float(row.sum()) for row in rows]
        whole = [n + h for n, h in zip(exits, holes, strict=True)] + mute
        room = [w * w / n for w, n in zip(whole, exits, strict=False)] + mute
        natural = [math.log(max(whole) / n) / math.log(4) for n in whole]
        top = math.floor(math.log(max(whole) + 1) / math.log(4)) + 2
        best = 2 * sum(room)
        for family, m, pair in itertools.product(range(4), range(-1, top + 1), (False, True)):
            steps = {
                0: [0 for _ in natural],
                1: [round(o) for o in natural],
                2: [round(o / 2) for o in natural],
                3: [min(round(o), max(m, 0)) for o in natural],
            }[family]
            rhos = [reference_sharp.scale(family, m, o) * (2.5 if pair else 1) for o in steps]
            paid = 0.0
            for level in (m, m + 1) if pair else (m,):
                weight = reference_sharp.JOINT * reference_sharp.FAMILY[family] * reference_sharp.level_weight(level)
                weight *= math.prod(reference_sharp.offset_probability(family, o, level) for o in steps)
                paid -= math.log(weight) / (2 if pair else 1)
            paid += 3.5 - math.log(2) * pair
            if states:
                paid += sum((0.78125 if pair else 0.5) * n / rho for n, rho in zip(whole, rhos, strict=True))
            else:
                paid += pair * len(whole) * (size - 1) / 2 * math.log(1.25)
                paid += sum(reference_policies.row_cost(n / rho, size) for n, rho in zip(whole, rhos, strict=True))
            theta = [n / (n + 2 * rho) * n / r for n, rho, r in zip(whole, rhos, room, strict=True)]
            best = min(best, reference_policies.knapsack(theta, [2 * r for r in room], paid))
        spread = 1 + 1 / size if states else 1 - 1 / size
        shift = math.sqrt(
            sum(
                n / (n + 1 / 3) ** 2 * (math.sqrt(2) * h + math.sqrt(spread) / 3) ** 2
                for n, h in zip(exits, holes, strict=True)
            )
        )
        assert lemma.by_lemma(table) == pytest.approx((math.sqrt(best) + shift) ** 2, rel=1e-7)


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
    by_choice, by_all = bounds.bound(table, chosen(table)), least(table)
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
    by_choice, by_all = bounds.bound(table, chosen(table)), least(table)
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
    inner = bounds.entries_of

    def mistaken(*given):
        found = inner(*given)
        return found._replace(exits=found.whole)

    table, right = whole_table("three holes"), brute("three holes")
    honest = bounds.bound(table, chosen(table))
    monkeypatch.setattr(bounds, "entries_of", mistaken)
    monkeypatch.setattr(search, "entries_of", mistaken)
    # Given up, a row has the known exits.
    found = bounds.bound(table._replace(most=np.array([math.inf])), chosen(table))
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
        lane = np.repeat(np.arange(len(choice.row)), (table.start[1:] - table.start[:-1])[choice.row])
        given["tilts"] = np.asarray(given["tilts"])[..., keep[lane]]
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
        found = bounds.bound(table, hostile(good, table, rng))
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
            found = bounds.bound(table, bad)
            assert found >= lowest * (1 - 1e-9)
            tightest = min(tightest, found / lowest)
    print(f"{name}: the smallest bound over the largest loss is {tightest:.3f}")
    assert tightest < (2.0 if table.open else 1.5)


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
    found = bounds.bound(apart, choice._replace(tilts=wide))
    assert found == pytest.approx(bounds.bound(table, choice), rel=1e-9)


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
    assert 0 < bounds.bound(table, chosen(table)) <= 4 * 101


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
    dearer = bounds.bound(table._replace(log_inverse=3.5), choice)
    assert dearer - bounds.bound(table, choice) == pytest.approx(0.5 * choice.mu, rel=1e-7)


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
    start = lowest = bounds.bound(table, best)
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
        found = bounds.bound(table, trial)
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
            assert found <= bounds.bound(table, chosen(table))


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
