"""The sharp certificate: every weight of its event, every step of its bound, and the laws it obeys (MATH §9)."""

import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
import reference_policies
import reference_sharp
import simulation
from count_strategies import DELTAS, count_tables
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from chainscout import problems
from chainscout.certificates import certify, planning, sharp
from chainscout.certificates.sharp import entry as entries
from chainscout.certificates.sharp import event, row, search
from chainscout.counts import Counts
from chainscout.numerals import bound

EXACT = {"rel": 1e-12, "abs": 1e-12}


def lists(record):
    return type(record)(*(array.tolist() for array in record))


def prepared(counts, log_inverse):
    """A table and its scratch space, as lists, with the boxes filled in; ``counts``: one vector a row."""
    size = len(counts[0])
    rows = [{y: float(n) for y, n in enumerate(row) if n > 0} for row in counts]
    table = sharp.table_of(rows, size)
    table, space = lists(table), lists(sharp.space_for(len(table.count), len(rows)))
    for x in range(len(rows)):
        event.boxes_of_row(table, x, float(size), log_inverse, space)
    return table, space


# ---------------------------------------------------------------- the event's weights


def test_the_martingale_starts_at_one():
    """Every family of weights is a probability: the mean of M at the start is at most one."""
    assert math.fsum((event.JOINT, event.SINGLE)) == pytest.approx(1, **EXACT)
    assert sum(math.exp(-event.family_cost(f)) for f in range(event.FAMILIES)) == pytest.approx(1, **EXACT)
    levels = [math.exp(-event.level_cost(m)) for m in range(event.LEAST_LEVEL, 4000)]
    assert sum(levels) == pytest.approx(1, abs=1e-3)
    assert sum(levels) < 1
    for m in (-1, 0, 1, 5):
        for family, most in ((1, 200), (2, 200), (3, max(m, 0))):
            chances = [math.exp(-event.offset_cost(family, o, m, 0)) for o in range(most + 1)]
            assert sum(chances) == pytest.approx(1, **EXACT)
    assert event.offset_cost(0, 0, 3, 0) == 0
    assert math.fsum((event.NEVER, event.ALWAYS, event.BETA)) == pytest.approx(1, **EXACT)
    assert event.NEVER == event.ALWAYS  # the lower end of a box is the upper end of the others together


@pytest.mark.parametrize("family", range(4))
def test_the_price_of_every_choice(family):
    """B is −log of the weight that a term has in M: against the reference's weights, one level and two at once."""
    log_inverse = 4.2
    for m, offsets in itertools.product(range(-1, 9), itertools.product(range(3), repeat=2)):
        chances = [[reference_sharp.offset_probability(family, o, n) for o in offsets] for n in (m, m + 1)]
        if min(chances[0]) == 0:
            continue
        weights = [
            reference_sharp.JOINT * reference_sharp.FAMILY[family] * reference_sharp.level_weight(n) * math.prod(c)
            for n, c in zip((m, m + 1), chances, strict=True)
        ]
        dimension = 3.0
        one = event.joint_cost(log_inverse, family, m, 0)
        one += sum(event.row_cost(family, o, m, 0, dimension) for o in offsets)
        assert one == pytest.approx(log_inverse - math.log(weights[0]), rel=1e-9)
        # log(a + b) ≥ log 2 + ½log a + ½log b; and the divergence of one normal law from two, in S − 1 dimensions.
        both = event.joint_cost(log_inverse, family, m, 1)
        both += sum(event.row_cost(family, o, m, 1, dimension) for o in offsets)
        gap = math.log((1 + 4) / 2) - (math.log(1) + math.log(4)) / 2
        expected = log_inverse - math.log(2) - 0.5 * sum(map(math.log, weights)) + 2 * dimension / 2 * gap
        assert both == pytest.approx(expected, rel=1e-9)
    for m, offset in itertools.product(range(-1, 9), range(3)):
        rho = reference_sharp.scale(family, m, offset)
        assert event.scale(event.power(family, m, offset), 0) == rho
        assert event.scale(event.power(family, m, offset), 1) == (rho + 4 * rho) / 2


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 5000), st.floats(0, 1), st.floats(0.1, 40), st.integers(2, 60))
def test_the_boxes_are_the_reference_s_from_outside(exits, share, log_inverse, size):
    count = round(share * exits)
    low, high = reference_sharp.box(count, exits, size, log_inverse)
    level = event.entry_level(log_inverse, size)
    lower, upper = event.box(float(count), float(exits), level, event.log_gamma(exits + 1.0))
    assert upper >= high - 1e-12
    assert lower <= low + 1e-12
    # And not farther outside than rounding asks for.
    assert upper <= high + 1e-8
    assert lower >= low - 1e-8


def test_the_gamma_function():
    for x in np.exp(np.random.default_rng(0).uniform(math.log(0.4), 35, 2000)):
        assert event.log_gamma(float(x)) == pytest.approx(math.lgamma(x), rel=3e-15, abs=3e-14)


def test_a_box_at_a_million_million_exits():
    for count in (0.0, 1.0, 1e6, 5e11):
        level = event.entry_level(5.0, 3.0)
        lower, upper = event.box(count, 1e12, level, event.log_gamma(1e12 + 1.0))
        assert count / 1e12 < upper < count / 1e12 + 20 / 1e6
        assert count / 1e12 - 20 / 1e6 < lower < max(count / 1e12, 1e-300)


# ---------------------------------------------------------------- the steps of the bound


def random_rows(number, sizes, seed):
    """Counts of a row, a law, ρ and μ: likely counts and unlikely ones, nearly deterministic laws too."""
    rng = np.random.default_rng(seed)
    for _ in range(number):
        size = int(rng.choice(sizes))
        law = rng.dirichlet(np.full(size, rng.choice([0.1, 1.0, 10.0])))
        exits = int(rng.choice([1, 3, 10, 40, 150]))
        counts = rng.multinomial(exits, law)
        if rng.random() < 0.2:
            counts = rng.multinomial(exits, rng.dirichlet(np.ones(size)))
        yield counts, float(4.0 ** rng.integers(-1, 4)), float(np.exp(rng.uniform(-3, 1.2))), rng


def laws_in_the_boxes(table, space, counts, number, rng):
    """Laws that the boxes allow, near the counts and at the edges; in the order of the states."""
    size = len(counts)
    ends = {table.count[i]: (space.low[i], space.high[i]) for i in range(len(table.count))}
    low = np.array([ends[float(n)][0] for n in counts])
    high = np.array([ends[float(n)][1] for n in counts])
    found = []
    for _ in range(number):
        centre = (counts + 1 / size) / (counts.sum() + 1)
        law = rng.dirichlet(centre * counts.sum() * rng.choice([0.02, 0.1, 1.0]) + 0.05)
        law = low + (law - low).clip(0)
        law = law / law.sum()
        if (law >= low - 1e-15).all() and (law <= high + 1e-15).all() and law.min() > 0:
            found.append(law)
    return found


def test_the_shape_of_the_tilts():
    """t and KL₀ against dense linear algebra, classes spelt out."""
    for counts, rho, _, _ in random_rows(60, [2, 3, 6], 1):
        table, space = prepared([counts], 3.0)
        size = len(counts)
        divergence = row.shape(table, 0, float(size), rho, space)
        times = [int(t) for t in table.times]
        p = np.repeat(space.mean, times)
        u = counts.sum() / rho
        assert p.sum() == pytest.approx(1, **EXACT)
        covariance = np.linalg.inv(np.eye(size) + u * (np.diag(p) - np.outer(p, p)))
        expected = 0.5 * (np.trace(covariance) - size - np.linalg.slogdet(covariance)[1])
        assert divergence == pytest.approx(expected, rel=1e-9, abs=1e-12)
        d = np.eye(size) - p
        spread = np.einsum("yi,ij,yj->y", d, covariance, d) / rho
        half = np.repeat(space.half, times)
        assert 2 * half == pytest.approx(spread, rel=1e-9, abs=1e-12)
        assert (2 * half >= spread * (1 - 1e-13)).all()


def best_tilt(p, count, exits, shift, rho, omega):
    """φ(p) by bisection: its derivative in b falls."""
    low, high = -60.0, 60.0
    for _ in range(100):
        b = (low + high) / 2
        if count - exits * p * math.exp(b) - rho * (omega * b - shift) > 0:
            low = b
        else:
            high = b
    a = omega * b - shift
    return count * a - exits * p * omega * math.expm1(b) - rho * a * a / 2


def test_the_largest_value_of_an_entry():
    """`entry` is never below a fine grid's maximum, whatever it starts from, and mostly near it."""
    rng = np.random.default_rng(2)
    excess = []
    for _ in range(400):
        exits = float(rng.choice([1, 5, 30, 200, 3000]))
        count = float(rng.integers(0, exits + 1)) if rng.random() < 0.7 else float(rng.choice([0, 1]))
        low, high = sorted(rng.random(2) * rng.choice([0.01, 0.1, 1.0]))
        if rng.random() < 0.3:
            low = 0.0
        rho, omega = float(4.0 ** rng.integers(-2, 4)), float(rng.choice([0.1, 0.5, 1.0]))
        mu, nu = float(np.exp(rng.uniform(-3, 1.5))), float(rng.normal() * exits * 0.3)
        shift, estimate = float(rng.normal() * 0.3), (count + 0.1) / (exits + 1 / 3)
        square, tilt, top = exits * float(rng.choice([0.5, 1.0, 1.3])), float(rng.normal()), float(rng.normal())
        value, *_ = row.entry(
            count, exits, square, estimate, low, high, shift, rho, omega, mu, nu, 1e-3, tilt, top, math.exp(top)
        )
        grid = [low + (high - low) * i / 300 for i in range(301)]
        values = [
            square * (p - estimate) ** 2 - mu * best_tilt(p, count, exits, shift, rho, omega) - nu * p for p in grid
        ]
        assert value >= max(values) - 1e-9 * (1 + abs(max(values)))
        excess.append(value - max(values))
    assert np.median(excess) < 0.001
    assert np.quantile(excess, 0.95) < 0.05


def test_the_mode_s_part_of_a_cell():
    """`mode_cell` is never below a fine grid's maximum, whatever it starts from, and near it on narrow cells."""
    rng = np.random.default_rng(14)
    excess = []
    for _ in range(300):
        exits = float(rng.choice([1, 5, 30, 200, 3000]))
        count = float(rng.integers(0, exits + 1))
        estimate, width = (count + 0.1) / (exits + 1 / 3), float(rng.choice([0.2, 1.0, 3.0])) / math.sqrt(exits)
        left = min(1.0, max(0.0, estimate + float(rng.normal()) / math.sqrt(exits)))
        right = min(1.0, left + width)
        rho, mu = float(4.0 ** rng.integers(-2, 4)), float(np.exp(rng.uniform(-3, 1.5)))
        nu, shift = float(rng.normal() * exits * 0.3), float(rng.normal() * 0.3)
        value, *_ = entries.mode_cell(count, exits, estimate, left, right, shift, rho, mu, nu, float(rng.normal()))
        grid = [left + (right - left) * i / 200 for i in range(201)]
        values = [exits * (p - estimate) ** 2 - mu * best_tilt(p, count, exits, shift, rho, 1.0) - nu * p for p in grid]
        assert value >= max(values) - 1e-9 * (1 + abs(max(values)))
        if width < 0.3 / math.sqrt(exits):
            excess.append(value - max(values))
    assert np.median(excess) < 0.02


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


@pytest.mark.parametrize(("sizes", "number"), [([2], 60), ([3], 40), ([5, 8], 60)], ids=["2", "3", "5 and 8"])
def test_a_row_s_term_is_above_every_law_in_the_boxes(sizes, number):
    """Row term ≥ N‖p − P̂‖² − μ·(the bound of step B, which is at most log Z), or what boxes and §7's lemma give."""
    looked_at = 0
    for counts, rho, mu, rng in random_rows(number, sizes, 3):
        table, space = prepared([counts], 3.0)
        size = len(counts)
        term = row.row_term(table, 0, float(size), rho, mu, 0.01, space)
        divergence = row.shape(table, 0, float(size), rho, space)
        given_up = space.most[0] + mu * reference_policies.row_cost(counts.sum() / rho, size)
        by_count = {table.count[i]: space.half[i] for i in range(1, len(table.count))}
        half = np.array([by_count.get(float(n), space.half[0]) for n in counts])
        half[int(counts.argmax())] = space.half[0]
        for law in laws_in_the_boxes(table, space, counts, 12, rng):
            value = counts.sum() * ((reference_sharp.smoothed(counts) - law) ** 2).sum()
            value -= mu * (tangent_bound(counts, law, rho, half) - divergence)
            assert term >= min(value, given_up) - 1e-7
            looked_at += 1
    assert looked_at > 2 * number


@pytest.mark.parametrize(("size", "number"), [(2, 40), (3, 25)])
def test_a_row_s_term_is_above_the_integrated_mixture(size, number):
    """Row term ≥ N‖p − P̂‖² − μ·log Z(p) for laws in the boxes, Z by numerical integration; and not far above."""
    slack = []
    for counts, rho, mu, rng in random_rows(number, [size], 4):
        table, space = prepared([counts], 3.0)
        term = row.row_term(table, 0, float(size), rho, mu, 0.01, space)
        for law in laws_in_the_boxes(table, space, counts, 10, rng):
            value = counts.sum() * ((reference_sharp.smoothed(counts) - law) ** 2).sum()
            value -= mu * reference_sharp.log_z(counts, law, rho)
            assert term >= value - 1e-7
            slack.append(term - value)
    assert min(slack) < 0.1


def test_a_row_that_is_given_up_pays_for_it():
    """With a large μ a row's term is mostly what log Z < 0 costs: the boxes' loss alone would be too small."""
    below_the_boxes = 0
    for counts, rho, _, rng in random_rows(20, [2], 12):
        table, space = prepared([counts], 3.0)
        term = row.row_term(table, 0, 2.0, rho, 40.0, 0.01, space)
        for law in laws_in_the_boxes(table, space, counts, 6, rng):
            value = counts.sum() * ((reference_sharp.smoothed(counts) - law) ** 2).sum()
            value -= 40.0 * reference_sharp.log_z(counts, law, rho)
            assert term >= value - 1e-7
            below_the_boxes += value > space.most[0]
    assert below_the_boxes > 10


def test_the_cells_cover_the_mode_s_box(monkeypatch):
    """However narrow the first cell is."""
    monkeypatch.setattr(row, "shared", lambda *_: False)  # which makes one cell of all of them
    for name, size, place in (("mode_apart", 4, 4), ("two_states", 2, 5)):
        looked_at = []
        inner = getattr(row, name)
        monkeypatch.setattr(row, name, lambda *a, f=inner, s=looked_at, at=place: s.append(a[at : at + 2]) or f(*a))
        for counts, rho, mu, _ in random_rows(20, [size], 13):
            table, space = prepared([counts], 3.0)
            looked_at.clear()
            row.row_term(table, 0, float(size), rho, mu, 1e-9, space)
            edge = space.low[0]
            for left, right in sorted(looked_at):
                assert left <= edge
                edge = max(edge, right)
            assert edge == space.high[0]


def test_a_shared_square_is_no_smaller():
    """Σ_y g_y(p_y − P̂_y)² ≥ N‖p − P̂‖² for every law, and equality is possible: a smaller g would be too small."""
    shares, least = 0, math.inf
    for counts, rho, mu, rng in random_rows(400, [3, 5, 8], 16):
        table, space = prepared([counts], 3.0)
        if not row.shared(table, 0, rho, mu, space):
            continue
        shares += space.gain[0] < 0.9 * counts.sum()
        times, exits = np.array(table.times), float(counts.sum())
        gain, estimate = np.repeat(space.gain, times.astype(int)), np.repeat(space.estimate, times.astype(int))
        for _ in range(5):
            moved = rng.dirichlet(np.full(len(gain), 0.5)) - estimate
            assert gain @ moved**2 >= exits * (moved @ moved) * (1 - 1e-12)
        # Cauchy and Schwarz are equal where the others move in proportion to w = 1/(g/N − 1).
        if space.gain[0] < exits:
            moved = np.concatenate([[-1.0], 1 / (gain[1:] / exits - 1)])
            moved[1:] /= moved[1:].sum()
            least = min(least, gain @ moved**2 / (exits * (moved @ moved)))
    assert shares > 10
    assert least == pytest.approx(1, abs=1e-9)


def test_two_levels_at_once():
    """Row term at ρ̄ = 2.5ρ and its price ≥ N‖p − P̂‖² − μ·(log Z(ρ) + log Z(4ρ))/2."""
    slack = []
    for counts, rho, mu, rng in random_rows(30, [2], 5):
        table, space = prepared([counts], 3.0)
        term = row.row_term(table, 0, 2.0, event.PAIR_SCALE * rho, mu, 0.01, space)
        for law in laws_in_the_boxes(table, space, counts, 6, rng):
            value = counts.sum() * ((reference_sharp.smoothed(counts) - law) ** 2).sum()
            value -= mu * sum(reference_sharp.log_z(counts, law, scale) for scale in (rho, 4 * rho)) / 2
            assert term + mu * event.PAIR_COST >= value - 1e-7
            slack.append(term + mu * event.PAIR_COST - value)
    assert min(slack) < 0.1


def test_the_lemma_on_this_event():
    """§7's bound with this B, against the reference's knapsack, at the offsets that it tries."""
    rng = np.random.default_rng(6)
    for _ in range(20):
        size, number = int(rng.choice([2, 4])), int(rng.integers(1, 3))
        counts = [rng.multinomial(int(n), rng.dirichlet(np.ones(size))) for n in np.exp(rng.uniform(0, 8, number)) + 1]
        table, space = prepared(counts, 3.5)
        exits = [float(c.sum()) for c in counts]
        search.natural_offsets(table, number, max(exits), space)
        top = 6
        for x in range(number):
            search.plain_costs(table, x, float(size), top, space)
        less, found = search.lemma(table, number, float(size), 3.5 + 0.4, 0.4, top, space)
        assert less > found
        natural = [reference_policies.natural_offset(max(exits), n) for n in exits]
        best = 2 * sum(exits)
        for family, m, pair in itertools.product(range(4), range(-1, top + 1), (0, 1)):
            if m == top and pair:
                continue
            steps = {
                0: [0] * number,
                1: [min(o, m + 5) for o in natural],
                2: [min((o + 1) // 2, (m + 5) // 2) for o in natural],
                3: [min(o, max(m, 0)) for o in natural],
            }[family]
            rhos = [reference_sharp.scale(family, m, o) * (2.5 if pair else 1) for o in steps]
            bound = 0.0
            for level in (m, m + 1) if pair else (m,):
                weight = reference_sharp.JOINT * reference_sharp.FAMILY[family] * reference_sharp.level_weight(level)
                weight *= math.prod(reference_sharp.offset_probability(family, o, level) for o in steps)
                bound -= math.log(weight) / (2 if pair else 1)
            bound += 3.5 + (number * (size - 1) / 2 * math.log(1.25) - math.log(2) if pair else 0)
            bound += sum(reference_policies.row_cost(n / rho, size) for n, rho in zip(exits, rhos, strict=True))
            theta = [n / (n + 2 * rho) for n, rho in zip(exits, rhos, strict=True)]
            best = min(best, reference_policies.knapsack(theta, [2 * n for n in exits], bound))
        shift = math.sqrt((1 - 1 / size) / 9 * sum(n / (n + 1 / 3) ** 2 for n in exits))
        assert found == pytest.approx((math.sqrt(best) + shift) ** 2, rel=1e-7)


def test_the_box_loss_is_above_every_law_in_the_boxes():
    for counts, _, _, rng in random_rows(80, [2, 3, 6], 7):
        table, space = prepared([counts], 2.0)
        for law in laws_in_the_boxes(table, space, counts, 20, rng):
            assert space.most[0] >= counts.sum() * ((reference_sharp.smoothed(counts) - law) ** 2).sum() - 1e-9


# ---------------------------------------------------------------- the whole bound, against the event itself

WHOLE = [
    ([[5, 5]], 3.0, 1.6),
    ([[40, 3]], 3.0, 1.6),
    ([[200, 0]], 3.0, 1.9),
    ([[30, 30]], 0.7, 1.6),
    ([[12, 8], [3, 20]], 3.0, 1.7),
    ([[8, 4, 0]], 3.0, 2.0),
]


@pytest.mark.parametrize(("counts", "log_inverse", "most"), WHOLE, ids=lambda value: str(value))
def test_the_bound_is_above_every_matrix_that_the_event_allows(counts, log_inverse, most):
    rows = [np.array(c) for c in counts]
    lowest = reference_sharp.largest_loss(rows, log_inverse, {1: 40, 2: 14}[len(rows)] if len(rows[0]) == 2 else 12)
    table, space = prepared(rows, log_inverse)
    found = search.evaluate(table, len(rows), float(len(rows[0])), log_inverse, 0.0, space)
    print(counts, log_inverse, "bound", round(found, 3), "the event allows", round(lowest, 3))
    assert lowest <= found <= most * lowest


# ---------------------------------------------------------------- laws


def bound_of(table, delta=0.05):
    return certify({"a": Counts.from_transitions(table)}, delta, "sharp").max


@settings(max_examples=20, deadline=None)
@given(count_tables(least=2, most=4), st.randoms(use_true_random=False), DELTAS)
def test_relabelling_states_and_chains_changes_nothing(table, random, delta):
    order = list(range(len(table)))
    random.shuffle(order)
    other = Counts.from_transitions([[3, 1], [0, 2]])
    one = certify({"a": Counts.from_transitions(table), "b": other}, delta, "sharp").loss
    two = certify({"b": other, "a": Counts.from_transitions(table[np.ix_(order, order)])}, delta, "sharp").loss
    assert one["a"] == pytest.approx(two["a"], rel=1e-9)
    assert one["b"] == two["b"]


def test_the_ends_of_the_scale():
    assert certify({"trap": Counts.from_transitions([[7]]), "unseen": Counts(1)}, method="sharp").loss == {
        "trap": 0,
        "unseen": 0,
    }
    assert certify({"new": Counts(5)}, method="sharp").max == math.inf
    for size in (2, 3, 40):
        one = np.zeros((size, size), dtype=int)
        one[0, 1] = 1
        assert 0 < bound_of(one) <= 2


def random_tables(number, seed):
    rng = np.random.default_rng(seed)
    for _ in range(number):
        size = int(rng.integers(2, 6))
        matrix = rng.dirichlet(np.full(size, rng.choice([0.1, 0.5, 2.0])), size)
        exits = np.exp(rng.uniform(0, math.log(3000), size)).astype(int) * (rng.random(size) < 0.9)
        exits[0] += 1
        yield np.array([rng.multinomial(n, p) for n, p in zip(exits, matrix, strict=True)]), rng


@pytest.mark.parametrize("seed", [8, 77])
def test_a_smaller_delta_hardly_ever_gives_a_smaller_bound(seed):
    """1,000 tables, two δ each, near and far apart. The search is crude: a few in a thousand go the wrong way."""
    wrong = []
    tables = 1000 if simulation.COMPILED else 3
    for table, rng in random_tables(tables, seed):
        delta = math.exp(rng.uniform(math.log(1e-8), math.log(0.5)))
        smaller = delta * math.exp(-rng.exponential() * rng.choice([0.1, 1.0, 5.0]) - 0.01)
        bounds = bound_of(table, delta), bound_of(table, smaller)
        if bounds[0] > bounds[1] * (1 + 1e-9):
            wrong.append(bounds[0] / bounds[1])
    assert len(wrong) <= 0.005 * tables
    assert max(wrong, default=1.0) < 1.02


def test_between_two_points_of_the_grid_a_smaller_delta_never_gives_a_smaller_bound():
    """By construction: the search is the same, and B alone grows."""
    power = math.ceil(math.log(3.0) / math.log(sharp.GRID))
    levels = np.linspace(sharp.GRID ** (power - 1) + 1e-6, sharp.GRID**power, 5)
    for table, _ in random_tables(40 if simulation.COMPILED else 1, 15):
        rows = [{y: int(n) for y, n in enumerate(r) if n} for r in table if r.sum()]
        found = [sharp.largest_loss(sharp.table_of(rows, len(table)), len(table), float(level)) for level in levels]
        assert found == sorted(found)


def test_hardly_ever_above_the_mixture():
    ratios = []
    for table, _ in random_tables(400 if simulation.COMPILED else 5, 9):
        counts = {"a": Counts.from_transitions(table)}
        ratios.append((certify(counts, method="sharp").max / certify(counts, method="mixture").max, table.sum()))
    worst = max(ratio for ratio, _ in ratios)
    large = max((ratio for ratio, total in ratios if total >= 200), default=0)
    print(f"largest quotient {worst:.3f}, from 200 transitions on {large:.3f}")
    assert worst <= 1.10
    assert large <= 1.02


@pytest.mark.parametrize("name", ["two-state", "unlike", "cpg-islands", "cd4"])
def test_hardly_ever_above_the_mixture_at_expected_counts(name):
    problem = problems.get(name)
    by_sharp, by_mixture = planning.sharp_bound(problem, 0.05), planning.mixture_bound(problem, 0.05)
    for chain in problem.chains.values():
        for transitions in (5, 30, 200, 2_000, 50_000) if simulation.COMPILED else (200,):
            most = 1.02 if transitions >= 200 else 1.10
            assert by_sharp(chain, transitions) <= most * by_mixture(chain, transitions)


def test_rows_with_equal_counts_in_any_order():
    """Rows with equal counts can change places.

    That is the form in which 'merge equal rows' is a law here. Their counts cannot be added up into one row: equal
    counts do not say that the laws are equal, and the certificate bounds the sum of both rows' losses. The bound of the
    merged row is another number, of another chain. What does merge is inside a row, and in the bound of a row: see the
    next test.
    """
    table = np.array([[50, 3, 0, 7], [50, 3, 0, 7], [0, 7, 50, 3], [2, 2, 2, 2]])
    found = {round(bound_of(table[np.ix_(order, order)]), 12) for order in itertools.permutations(range(4))}
    assert max(found) - min(found) <= 1e-9 * max(found)


def test_entries_and_rows_with_equal_counts_are_one():
    """Entries of a row with equal counts are one class: apart they give the same term. Equal rows have equal terms."""
    for rho, mu in ((4.0, 0.5), (16.0, 0.9), (64.0, 1.4)):
        counts = np.array([60, 7, 7, 7, 0, 0])
        merged, space = prepared([counts, counts], 3.0)
        assert merged.times[:3] == [1.0, 3.0, 2.0]
        terms = [row.row_term(merged, x, 6.0, rho, mu, 1e-4, space) for x in range(2)]
        assert terms[0] == terms[1]
        single = search.Table([0], [6], [60.0, 7.0, 7.0, 7.0, 0.0, 0.0], [1.0] * 6, [81.0])
        apart = lists(sharp.space_for(6, 1))
        event.boxes_of_row(single, 0, 6.0, 3.0, apart)
        assert row.row_term(single, 0, 6.0, rho, mu, 1e-4, apart) == pytest.approx(terms[0], abs=1e-3)


def test_interpreted_and_compiled_agree():
    for table, _ in random_tables(10, 10):
        rows = [r for r in table if r.sum()]
        ready, space = prepared(rows, 3.0)
        interpreted = search.evaluate(ready, len(rows), float(len(table)), 3.0, 0.2, space)
        packed = sharp.table_of([{y: int(n) for y, n in enumerate(r) if n} for r in rows], len(table))
        scratch = sharp.space_for(len(packed.count), len(rows))
        compiled = sharp.kernel(search.evaluate)(packed, len(rows), float(len(table)), 3.0, 0.2, scratch)
        assert compiled == pytest.approx(interpreted, rel=1e-9)


def test_a_mode_whose_box_reaches_zero():
    """One exit and a tiny δ: the mode may have probability 0. Interpreted and compiled searches both go on."""
    rows = [np.array([94, 6, 0, 0, 0]), np.array([1, 0, 0, 0, 0])]
    ready, space = prepared(rows, 46.0)
    assert space.low[ready.start[1]] == 0
    interpreted = search.evaluate(ready, 2, 5.0, 46.0, 0.0, space)
    packed = sharp.table_of([{y: int(n) for y, n in enumerate(r) if n} for r in rows], 5)
    compiled = sharp.kernel(search.evaluate)(packed, 2, 5.0, 46.0, 0.0, sharp.space_for(len(packed.count), 2))
    assert compiled == pytest.approx(interpreted, rel=1e-9)
    assert 0 < interpreted <= 2 * 101


def test_an_open_chain_keeps_its_mixture_certificate():
    """Every chain has δ/K, whichever method it has."""
    closed = Counts.from_transitions([[60, 30], [20, 70]])
    opened = Counts.from_pairs([("a", "b", 40), ("b", "a", 41)], ["a", "b"], open_states=True)
    both = certify({"closed": closed, "open": opened}, 0.1, "sharp")
    assert both.loss["closed"] == certify({"closed": closed}, 0.05, "sharp").max
    assert both.loss["open"] == certify({"open": opened}, 0.05, "mixture").max
    assert both.method == "sharp"
    assert both.guaranteed
    assert both.largest_error() == math.inf
    assert "'sharp' does" in both.in_words()


def test_single_probabilities_in_plain_words():
    table = np.array([[9000, 1000], [30, 20]])
    certificate = certify({"a": Counts.from_transitions(table)}, method="sharp")
    error = certificate.largest_error(100)
    level = sharp.GRID ** math.ceil(math.log(math.log(20)) / math.log(sharp.GRID))  # the next point above log(K/δ)
    low, high = reference_sharp.box(1000, 10_000, 2, level)
    estimate = (1000 + 1 / 6) / (10_000 + 1 / 3)
    assert error == pytest.approx(max(high - estimate, estimate - low), rel=1e-6)
    assert certificate.largest_error(50) > error
    assert certificate.in_words() == (
        "With probability 0.95, each probability of a transition out of a state that was left at least 100 times is"
        f" within ±{bound(error)} of its estimate."
    )
    assert certificate.in_words(10**6) == "No state was left at least 1000000 times."
    assert certificate.total_variation["a"] <= 0.5 * math.sqrt(2 * certificate.max) * (1 + 1e-6)


def test_nothing_is_compiled_before_the_first_certificate():
    code = "import sys; from chainscout.certificates import certify, sharp; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize(
    "given",
    [
        (
            168260.0, 459445.0, 459445.0, 0.36622444261292847, 0.36038180286161753, 0.36359896819639004,
            0.00042686911529482883, 10.0, 1.0, 0.701198870092938, 409.1387631718091, 0.01157311547136009,
            0.012606911888777115, 0.007194515024853276, 1.0072204577258068,
        ),
        (
            16205.0, 39509.0, 39509.0, 0.41015793736501077, 0.3959716170155067, 0.4052509230748276,
            0.0021518221565543735, 4096.0, 1.0, 0.9483147422418571, 119.50383308929146, 0.002387382764000114,
            0.024564469230220425, 0.010043617433878573, 1.0100942238413593,
        ),
        (
            3207.0, 6875.0, 214809.37020183264, 0.4664662723423511, 0.43999427068806785, 0.47960209188129355,
            -0.3242922229393485, 2560.0, 1.0, 6.1808729576965415, 0.0, 0.014407664465118566, 0.76641506513652,
            -0.29902395980139923, 0.7415416420316873,
        ),
    ],
    ids=["one step short", "the walk ends", "back to a point left of the box"],
)  # fmt: skip
def test_an_entry_whose_box_is_convex_is_not_below_its_left_end(given):
    """The tangent from a point left of the box falls, and h is convex on the box: its left end may be the largest."""
    count, exits, square, estimate, low, _, shift, rho, omega, mu, nu = given[:11]
    value, _, size, *_ = entries.entry(*given)
    left, right = -20.0, 20.0  # the best b for p = low: the derivative of φ in b falls
    for _ in range(200):
        b = 0.5 * (left + right)
        falls = count - exits * low * math.exp(b) - rho * (omega * b - shift) > 0
        left, right = (b, right) if falls else (left, b)
    a = omega * b - shift
    minorant = count * a - exits * low * omega * math.expm1(b) - 0.5 * rho * a * a
    assert value + 2e-15 * size >= (square * (low - estimate) ** 2 - mu * minorant - nu * low) * (1 - 1e-12)
