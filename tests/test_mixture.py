"""The mixture certificate: its kernel, the lemma that it rests on, and the step from there to the bound (MATH §7)."""

import math

import numpy as np
import pytest
import reference
import reference_policies
import simulation
from count_strategies import DELTAS, EXITS, count_tables
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import logsumexp

from chainscout.certificates import certify, mixture
from chainscout.counts import Counts

EXACT = {"rel": 1e-12, "abs": 1e-14}
#: Nothing here magnifies a relative error: the terms of the bound B are not negative, and what is filled by increasing
#: θ up to the row where it stops is at least B/θ there, so that a relative change of B or of a θ changes it by no more.
#: For 12 rows that makes at most 31 roundings in B, 2 in θ, 37 in the knapsack and 10 from there to the certificate:
#: 80 a side. Against 50 digits, 4,403 draws in the ranges of EXITS and DELTAS gave 6e-16 at most, on either side.
CLOSE = {"rel": 200 * 2**-53, "abs": 0}


def excess_of(function, exits, size, log_inverse):
    number = len(exits)
    arrays = np.array(exits, dtype=np.float64), np.zeros(number, np.int64), np.zeros(number), np.zeros(number, np.int64)
    return function(arrays[0], arrays[0], number, size - 1.0, log_inverse, *arrays[1:])


def table_with(exits, size):
    """Counts with these exits; `mixture` does not look at where they went."""
    table = np.zeros((size, size), dtype=np.int64)
    table[: len(exits), 0] = exits
    return table


compiled = simulation.largest_excess


@settings(max_examples=200)
@given(EXITS, st.integers(0, 40), DELTAS, st.integers(1, 50))
def test_the_largest_excess_is_the_reference(exits, more_states, delta, chains):
    size = max(2, len(exits) + more_states)
    expected = reference_policies.mixture_excess(table_with(exits, size), chains, delta)
    assert excess_of(mixture.largest_excess, exits, size, math.log(chains / delta)) == pytest.approx(expected, **CLOSE)


@settings(max_examples=200)
@given(EXITS, st.integers(0, 40), DELTAS)
def test_compiled_and_interpreted_agree_to_the_last_bit(exits, more_states, delta):
    size = max(2, len(exits) + more_states)
    both = [excess_of(function, exits, size, math.log(1 / delta)) for function in (mixture.largest_excess, compiled)]
    assert both[0] == both[1]


def test_levels_that_are_passed_over_are_no_better():
    """Every level of every family, evaluated in the order of the reference, gives no smaller bound."""
    generator = np.random.default_rng(5)
    for _ in range(300):
        exits = np.exp(generator.uniform(0, generator.uniform(1, 14), generator.integers(1, 13))).astype(int)
        size = len(exits) + int(generator.integers(1, 40))
        expected = reference_policies.mixture_excess(table_with(exits, size), 3, 0.05)
        assert excess_of(compiled, exits, size, math.log(3 / 0.05)) == pytest.approx(expected, **CLOSE)


def test_the_largest_excess_by_hand():
    # One exit of one state of two, δ = 1/e. W ≤ 2 is the ceiling, and no level does better: at ρ = 1,
    # B = 1 + log 6 + ½·log 1.5 = 2.99 and θ = 1/3.
    assert excess_of(mixture.largest_excess, [1], 2, 1.0) == 2
    # 100 exits, o = 0: B/θ = (1 + log 3(m+1)(m+2) + ½·log(1 + 100/(2·4^m)))·(1 + 2·4^m/100) is least at m = 0.
    expected = (1 + math.log(6) + 0.5 * math.log(51)) * 1.02
    assert excess_of(mixture.largest_excess, [100], 2, 1.0) == pytest.approx(expected, **EXACT)
    # Ten states, 10⁴ exits of each of two, equal scales: no knapsack.
    by_level = [
        (1 + math.log(3 * (m + 1) * (m + 2)) + 2 * reference_policies.row_cost(10**4 / 4**m, 10))
        * (1 + 2 * 4**m / 10**4)
        for m in range(9)
    ]
    assert excess_of(mixture.largest_excess, [10**4] * 2, 10, 1.0) == pytest.approx(min(by_level), **EXACT)
    # A second row left once is not worth its share of the knowledge: its W is 2 at most, and is taken to be 2.
    alone, both = (excess_of(mixture.largest_excess, exits, 2, 1.0) for exits in ([10**6], [10**6, 1]))
    assert alone < both <= alone + 2


@given(count_tables(least=2), DELTAS)
def test_the_mixture_certificate_is_the_reference(table, delta):
    other = Counts.from_transitions([[3, 1], [0, 2]])
    found = certify({"a": Counts.from_transitions(table), "b": other}, delta, "mixture")
    assert found.loss["a"] == pytest.approx(reference_policies.mixture_certificate(table, 2, delta), **CLOSE)
    assert found.loss["b"] == pytest.approx(
        reference_policies.mixture_certificate(other.transitions, 2, delta), **CLOSE
    )


@given(count_tables(least=2))
def test_the_parts_of_the_mixture_certificate(table):
    """L ≤ (√(ΣW) + √(what smoothing did))²/T whatever the truth: the step from W̄ to b."""
    size, exits = len(table), table.sum(axis=1)
    seen = exits > 0
    moved = mixture.smoothing_excess(exits[seen].astype(float), int(seen.sum()), 1 - 1 / size, 1 / 3)
    frequencies = table[seen] / exits[seen, None]
    # What smoothing did is known, and smoothing_excess is at least that.
    shift = exits[seen, None] * (reference.smoothed(table)[seen] - frequencies) ** 2
    assert shift.sum() <= moved * (1 + 1e-12)
    for truth in np.random.default_rng(0).dirichlet(np.full(size, 0.3), (5, size)):
        excess = (exits[seen, None] * (frequencies - truth[seen]) ** 2).sum()
        bound = mixture.combine(excess, moved, float(exits.sum()))
        assert reference.loss(truth, table) <= bound * (1 + 1e-12)


# ---------------------------------------------------------------- holes


def literal_bound(exits, holes, mute, size, log_inverse, open_states=False):
    """b with holes: everything of the event has N⁺ = N + h, and the loss has N.

    The largest Σ (N⁺/N)·W⁺ under Σ θW⁺ ≤ B and 0 ≤ W⁺ ≤ 2N⁺, for each family and level; then smoothing and holes, row
    by row. A row with holes alone is counted like another one.
    """
    whole = [n + h for n, h in zip(exits, holes, strict=True)] + list(mute)
    gain = [w / n for w, n in zip(whole, exits, strict=False)] + [1.0] * len(mute)
    natural = [reference_policies.natural_offset(max(whole), w) for w in whole]
    best = 2 * sum(g * w for g, w in zip(gain, whole, strict=True))
    m = 0
    while 4**m <= 4 * (max(whole) + 1):
        shifted = [min(o, m) for o in natural]
        for offsets, price in (
            ([0] * len(whole), 0.0),
            (natural, sum(natural) * math.log(2) + len(whole) * math.log(2)),
            (shifted, len(whole) * math.log(m + 1)),
        ):
            scales = [4.0 ** (m - o) for o in offsets]
            bound = log_inverse + math.log(3 * (m + 1) * (m + 2)) + price
            for w, rho in zip(whole, scales, strict=True):
                bound += w / rho / 2 if open_states else reference_policies.row_cost(w / rho, size)
            # In units of (N⁺/N)·W⁺ the price is θ·N/N⁺.
            theta = [w / (w + 2 * rho) / g for w, rho, g in zip(whole, scales, gain, strict=True)]
            room = [2 * w * g for w, g in zip(whole, gain, strict=True)]
            best = min(best, reference_policies.knapsack(theta, room, bound))
        m += 1
    spread = 1 + 1 / size if open_states else 1 - 1 / size
    moved = [
        math.sqrt(n) / (n + 1 / 3) * (math.sqrt(2) * h + math.sqrt(spread) / 3)
        for n, h in zip(exits, holes, strict=True)
    ]
    return (math.sqrt(best) + math.sqrt(sum(e * e for e in moved))) ** 2 / sum(exits)


HOLES = st.lists(st.integers(0, 30), min_size=12, max_size=12)


@settings(max_examples=200)
@given(EXITS, HOLES, st.lists(st.integers(1, 30), max_size=3), st.integers(0, 40), DELTAS, st.booleans())
def test_the_bound_with_holes_is_the_literal_one(exits, holes, mute, more_states, delta, open_states):
    """Levels are passed over by a rule that is made for no holes, so that a few bounds are a little larger."""
    size, holes = max(2, len(exits) + len(mute) + more_states), holes[: len(exits)]
    given = exits, size, math.log(1 / delta), 1 / 3, open_states
    found = mixture.bound_from_exits(*given, holes, mute)
    literal = literal_bound(exits, holes, mute, size, math.log(1 / delta), open_states)
    assert literal * (1 - 1e-12) <= found <= literal * 1.02
    assert found >= mixture.bound_from_exits(*given) * (1 - 1e-12)


@settings(max_examples=100)
@given(EXITS, st.integers(0, 40), DELTAS, st.booleans())
def test_without_holes_the_bound_is_the_one_before(exits, more_states, delta, open_states):
    size = max(2, len(exits) + more_states)
    given = exits, size, math.log(1 / delta), 1 / 3, open_states
    assert mixture.bound_from_exits(*given, [0] * len(exits)) == mixture.bound_from_exits(*given)
    table = table_with(exits, size)
    literal = reference_policies.mixture_certificate(table, 1, delta, open_states)
    if not open_states or len(exits) == size:
        assert mixture.bound_from_exits(*given) == pytest.approx(literal, **CLOSE)


def test_what_holes_can_move():
    """√N‖P̂ − P‖ ≤ √(N⁺/N)·√W⁺ + e for every law, all counts and every completion, and nearly equal for some."""
    generator, tightest = np.random.default_rng(11), math.inf
    for _ in range(3000):
        size = int(generator.integers(2, 5))
        law = generator.dirichlet(np.full(size, 0.3))
        exits, holes = int(generator.integers(1, 40)), int(generator.integers(0, 5))
        counts = generator.multinomial(exits, law)
        lost = generator.multinomial(holes, generator.dirichlet(np.full(size, 0.3)))
        whole = exits + holes
        excess = ((counts + lost - whole * law) ** 2).sum() / whole
        moved = mixture.hole_excess([exits], [holes], 1 - 1 / size, 1 / 3)
        loss = exits * (((counts + 1 / 3 / size) / (exits + 1 / 3) - law) ** 2).sum()
        most = (math.sqrt(excess * whole / exits) + math.sqrt(moved)) ** 2
        assert loss <= most * (1 + 1e-12)
        tightest = min(tightest, most / loss)
    assert tightest < 1.1


def test_a_row_with_holes_alone_costs_and_earns_nothing():
    plain = mixture.bound_from_exits([100, 50], 3, 3.0)
    assert plain < mixture.bound_from_exits([100, 50], 3, 3.0, holes=[0, 0], mute=[4]) < 1.5 * plain
    counts = Counts.from_pairs([(0, 1, 100), (1, 0, 50)], 3)
    withheld = Counts.over(dict(counts.rows()), 3, holes={2: 4, 0: 1})
    assert mixture.bound_of(withheld, 3.0) == mixture.bound_from_exits([100, 50], 3, 3.0, holes=[1, 0], mute=[4])
    assert mixture.bound_of(counts, 3.0) == plain
    assert mixture.bound_of(Counts(3, holes={1: 2}), 3.0) == math.inf


# ---------------------------------------------------------------- the lemma behind it, by numerical integration


def log_mixture(p, counts, rho):
    """log ∫ exp(λ·M − Nψ(λ)) dN(0, Π/ρ)(λ) on the vectors that sum to zero, for 2 or 3 states.

    The exponent f is concave with curvature between ρ and ρ + N/2. So f ≤ f(peak) − ρ|λ − peak|²/2, and a box of 9/√ρ
    around the peak leaves out e^{−40} of the integral; the trapezoidal rule with half the least width 1/√(ρ + N/2) as
    its step is exact to rounding.
    """
    size, number = len(p), counts.sum()
    M = counts - number * p
    basis = np.linalg.qr(np.eye(size) - 1 / size)[0][:, : size - 1]  # orthonormal, sums to zero

    def exponent(coordinates):
        vectors = coordinates @ basis.T
        cumulant = logsumexp(vectors, b=p, axis=-1) - vectors @ p
        return vectors @ M - number * cumulant - rho / 2 * (coordinates**2).sum(axis=-1)

    peak = minimize(lambda point: -exponent(point), np.zeros(size - 1)).x
    axis = np.arange(-9 / math.sqrt(rho), 9 / math.sqrt(rho), 0.5 / math.sqrt(rho + number / 2))
    grid = np.stack(np.meshgrid(*[axis] * (size - 1), indexing="ij"), axis=-1).reshape(-1, size - 1)
    volume = (size - 1) * math.log((axis[1] - axis[0]) * math.sqrt(rho / (2 * math.pi)))
    return float(logsumexp(exponent(peak + grid))) + volume


def lemma_cases():
    """Random rows, also nearly deterministic ones, with likely and with impossible-looking counts."""
    rng = np.random.default_rng(7)
    for size, number in ((2, 150), (3, 50)):
        for _ in range(number):
            p = rng.dirichlet(np.full(size, rng.choice([0.1, 1.0, 10.0]))) * 0.999 + 0.001 / size
            exits = int(rng.choice([1, 2, 5, 20, 60]))
            likely = rng.multinomial(exits, p)
            worst = np.zeros(size, dtype=int)
            worst[p.argmin()] = exits
            for counts in (likely, worst):
                yield p, counts, float(rng.choice([0.25, 1.0, 4.0, 16.0]) if exits <= 20 else rng.choice([4.0, 16.0]))


def test_the_integral_is_right_where_it_is_known():
    # No exit: the integral of a density. And in the mean over what can happen it is one: a martingale.
    assert log_mixture(np.array([0.2, 0.3, 0.5]), np.zeros(3, dtype=int), 1.0) == pytest.approx(0, abs=1e-9)
    p, exits, rho = 0.3, 6, 2.0
    chances = [math.comb(exits, a) * p**a * (1 - p) ** (exits - a) for a in range(exits + 1)]
    values = [log_mixture(np.array([p, 1 - p]), np.array([a, exits - a]), rho) for a in range(exits + 1)]
    mean = sum(c * math.exp(v) for c, v in zip(chances, values, strict=True))
    assert mean == pytest.approx(1, rel=1e-9)


def test_the_lemma_of_the_mixture():
    """log of the mixture ≥ ‖M‖²/(N + 2ρ) − cost(u), u = N/ρ: MATH §7's cost, and the smaller ((S−1)/2)·log(1 + u/S).

    The smaller cost: in the proof's shift take N(a, sΠ/ρ) for N(a, Π/ρ). That costs ((S−1)/2)(s − 1 − log s) and makes
    the first cost s(1−1/S)u/2; the best s = 1/(1 + u/S) gives it, and it is below both of MATH's.
    """
    slack = []
    for p, counts, rho in lemma_cases():
        size, exits = len(p), counts.sum()
        M, u = counts - exits * p, exits / rho
        smaller = (size - 1) / 2 * math.log(1 + u / size)
        assert smaller <= reference_policies.row_cost(u, size) * (1 + 1e-12)
        gap = log_mixture(p, counts, rho) - (M @ M) / (exits + 2 * rho) + smaller
        assert gap >= -1e-9
        slack.append(gap)
    assert len(slack) == 2 * (150 + 50)
    assert min(slack) < 0.05  # and nearly tight somewhere, so that no constant could be missing
