"""The event of the sharp certificate, its boxes, and every step of its bound (test_sharp_bound has the whole of it).

The search chooses numbers, and the bound is valid whatever they are. So most tests here choose badly on purpose.
"""

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest
import reference_policies
import reference_sharp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from chainscout.certificates import sharp
from chainscout.certificates.sharp import bound as bounds
from chainscout.certificates.sharp import event, lemma, search
from chainscout.certificates.sharp import table as tables

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
    return sharp.least_excess([table])[0]


def chosen(table):
    """What the search chooses."""
    return search.best_choices([table])[0]


# ---------------------------------------------------------------- the event's weights


def test_the_martingale_starts_at_one():
    """Every family of weights is a probability: the mean of M at the start is at most one."""
    assert math.fsum((event.JOINT, event.SINGLE)) == pytest.approx(1, **EXACT)
    assert math.fsum((event.JOINT, event.SEEN, 2 * event.MISSING)) == pytest.approx(1, **EXACT)
    assert math.fsum(event.SURPRISE_WEIGHTS) == pytest.approx(1, **EXACT)
    assert len(event.SURPRISES) == len(event.SURPRISE_WEIGHTS) == len(set(event.SURPRISES))
    assert math.fsum(family.weight for family in event.FAMILIES) == pytest.approx(1, **EXACT)
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
        assert (
            bounds.loss_bound(table, good._replace(family=family, level=level, offset=np.array([offset]))) == math.inf
        )
    for family, level, offset in ((0, 3, 0), (1, 3, 3), (2, 3, 1), (3, 3, 3), (3, -1, 0)):
        assert bounds.loss_bound(table, good._replace(family=family, level=level, offset=np.array([offset]))) < math.inf


def test_rows_with_holes_alone_pay_for_their_offset_and_for_two_levels():
    rows, alone = [[9.0, 3.0, 1.0]], (2.0, 5.0)
    for family, level, pair, states in itertools.product(range(len(event.FAMILIES)), (-1, 2), (False, True), (None, 3)):
        more, less = (
            bounds.price(table_of(rows, 3.0, mute=mute, states=states), family, level, pair, np.zeros(1, np.int64))
            for mute in (alone, ())
        )
        each = event.row_cost(family, np.zeros(()), level, pair, 0.0 if states else 2.0)
        assert more - less == pytest.approx(2 * float(each), **EXACT)


def test_every_name_in_the_proof_exists():
    """The documentation names the function of each step."""
    page = (Path(__file__).resolve().parent.parent / "docs" / "certificates.md").read_text(encoding="utf-8")
    modules = {"event": event, "table": tables, "bound": bounds, "lemma": lemma, "search": search}
    functions = re.findall(rf"`({'|'.join(modules)})\.(\w+)`", page)
    fields = re.findall(r"`(Table|Choice|TiltLaw|Entries|Missing)\.(\w+)`", page)
    assert len(functions) > 15
    assert [f"{module}.{name}" for module, name in functions if not hasattr(modules[module], name)] == []
    records = {
        name: getattr(module, name)
        for name in dict(fields)
        for module in (bounds, tables, event)
        if hasattr(module, name)
    }
    assert [f"{name}.{field}" for name, field in fields if field not in records[name]._fields] == []


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
        found = bounds.tilt_law(table, np.array([rho]), pair)
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
            assert found.lemma[0] == pytest.approx(given_up, rel=1e-9)
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
        assert found.lemma[0] == pytest.approx(u / 2 if not pair else 0.78125 * u, rel=1e-9)


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
    """Entries as `largest` takes them, one a cell, and their shift and ν."""
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
            value, size = bounds.largest(e, nu, c, rng.normal(size=(3, *e.count.shape)) * spread)
            fine = value + event.RELATIVE * size
        assert (np.isnan(fine) | (fine >= top - slack)).all()  # `cell_terms` makes infinity of what is not a number
    # For n and for n + h: the best tilts where h is largest, and at the ends of the box.
    p = e.low + (e.high - e.low) * np.linspace(0, 1, 400)[:, None, None]
    value = e.exits * (p - e.estimate) ** 2 - e.mu * phi(p, e.count, 0, e.whole, e.half - c, e.rho) - nu * p
    at = np.take_along_axis(np.broadcast_to(p, value.shape), value.argmax(axis=0)[None], axis=0)[0]
    wanted = np.stack((at, *(np.broadcast_to(end, at.shape) for end in (e.high, e.low))))
    tilts = best_tilt(wanted, e.count, 0, e.whole, e.half - c, e.rho) + e.half - c
    with np.errstate(all="ignore"):
        over = (bounds.largest(e, nu, c, tilts)[0] - top) / (1 + np.abs(top))
    assert np.median(over) < 0.001
    assert np.quantile(over, 0.95) < 0.01


def test_an_entry_without_a_bend_is_followed_to_the_end_of_its_box():
    """h″ = 2N − μ(N⁺e^b)²/(N⁺pe^b + ρ) is zero at p = ¼: to the left, h is below its tangent."""
    for nu in (0.3, 1.0, 3.0, -1.0):
        values = (1.0, 2.0, 2.0, 0.25, 0.1, 0.2, 0.5, 0.0, 1.0)
        e = bounds.Entries(np.array([[0.5]]), *(np.array([v]) for v in values))
        tilts = np.array([0.0, 3.0, -3.0])[:, None, None]  # those for the ends are far off
        with np.errstate(all="ignore"):
            value, _ = bounds.largest(e, np.array([nu]), np.zeros(1), tilts)
        assert value[0] >= grid_maximum(e, np.zeros(1), np.zeros(1), np.array([nu]))[0] - 1e-12


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
        value, size = bounds.largest(e, nu, c, rng.normal(size=(3, *count.shape)) * 0.05)
    top = grid_maximum(e, np.zeros(number), c, nu, 12)
    assert (value + event.RELATIVE * size >= top - 1e-12 * np.abs(top)).all()


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
        found = bounds.loss_bound(table, choice)
        rho = event.scale(choice.level, choice.family, choice.offset, choice.pair)
        of = bounds.tilt_law(table, rho, choice.pair)
        paid = choice.mu * bounds.price(table, *choice[:4])
        given_up = table.most[0] + choice.mu * of.lemma[0]
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
            found = bounds.loss_bound(table, choice)
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
        found, paid = bounds.loss_bound(table, choice), 40.0 * bounds.price(table, *choice[:4])
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
            difference = bounds.loss_bound(more, choice) - bounds.loss_bound(plain, choice)
            assert difference == pytest.approx(choice.mu * extra, rel=1e-6)
        else:
            assert bounds.loss_bound(more, choice) >= bounds.loss_bound(plain, choice) + choice.mu * lost * (1 - 1e-6)
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
        room = [w * w / n for w, n in zip(whole, exits, strict=False)]  # rows with holes alone pay, and earn nothing
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
            theta = [n / (n + 2 * rho) * n / r for n, rho, r in zip(whole, rhos, room, strict=False)]
            best = min(best, reference_policies.knapsack(theta, [2 * r for r in room], paid))
        spread = 1 + 1 / size if states else 1 - 1 / size
        shift = math.sqrt(
            sum(
                n / (n + 1 / 3) ** 2 * (math.sqrt(2) * h + math.sqrt(spread) / 3) ** 2
                for n, h in zip(exits, holes, strict=True)
            )
        )
        assert lemma.by_lemma(table) == pytest.approx((math.sqrt(best) + shift) ** 2, rel=1e-7)
