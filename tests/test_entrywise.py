"""Intervals for single probabilities, the certificate they give, and the Estimate that shows them (MATH §7)."""

import math

import numpy as np
import pytest
import reference
import reference_policies
from count_strategies import DELTAS, count_tables
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import betaln

from chainscout.certificates import Estimate, certify, entrywise
from chainscout.counts import Counts

EXACT = {"rel": 1e-12, "abs": 1e-14}


@st.composite
def trials(draw):
    """How often, of how often."""
    number = draw(st.integers(0, 10**9))
    return draw(st.integers(0, number)), number


def slow_interval(successes, number, delta):
    """By brentq; of more than one half of successes by the failures, for near one a double has too few digits."""
    if 2 * successes <= number:
        return reference_policies.entry_interval(successes, number, delta)
    low, high = reference_policies.entry_interval(number - successes, number, delta)
    return 1 - high, 1 - low


def interval(successes, number, delta):
    low, high = entrywise.intervals(successes, number, math.log(1 / delta))
    return float(low), float(high)


# ---------------------------------------------------------------- intervals


@given(trials(), DELTAS)
@example((0, 1), 0.05)
@example((1, 1), 0.05)
@example((1, 2), 0.05)
@example((1, 10**9), 1e-9)
@example((10**9 - 1, 10**9), 1e-9)
def test_the_ends_are_where_the_martingale_meets_its_threshold(observed, delta):
    successes, number = observed
    low, high = interval(successes, number, delta)
    expected = slow_interval(successes, number, delta)
    # log B(a+½, n−a+½) is of size n and off by up to n·1e-14: that moves an end by as much over the slope of the
    # log-likelihood there, n|p − a/n|/(p(1−p)).
    for end, exact in zip((low, high), expected, strict=True):
        slope = number * abs(exact - successes / max(number, 1)) / max(exact * (1 - exact), 1e-300)
        assert end == pytest.approx(exact, rel=1e-9, abs=1e-15 + 1e-14 * number / max(slope, 1e-3))


@given(trials(), DELTAS)
def test_an_interval_holds_the_frequency(observed, delta):
    successes, number = observed
    low, high = interval(successes, number, delta)
    assert 0 <= low <= (successes / number if number else 0.5) <= high <= 1
    # And lies on the safe side: at its ends the martingale is not below its threshold.
    mixed = betaln(successes + 0.5, number - successes + 0.5) - math.log(math.pi)
    for end in (low, high):
        if 0 < end < 1:
            likelihood = successes * math.log(end) + (number - successes) * math.log1p(-end)
            assert mixed - likelihood >= math.log(1 / delta) - 1e-6


@given(st.integers(0, 500), st.integers(0, 500), DELTAS)
def test_failures_mirror_successes(successes, failures, delta):
    low, high = interval(successes, successes + failures, delta)
    mirrored = interval(failures, successes + failures, delta)
    assert (1 - high, 1 - low) == pytest.approx(mirrored, abs=1e-12)


@given(st.integers(1, 10**6), DELTAS, DELTAS)
def test_intervals_are_monotone(number, one, other):
    successes = np.unique(np.linspace(0, number, 40).astype(int))
    low, high = entrywise.intervals(successes, number, math.log(1 / one))
    assert (np.diff(low) >= 0).all()
    assert (np.diff(high) >= 0).all()
    # A smaller δ gives wider intervals.
    narrow, wide = (entrywise.intervals(successes, number, math.log(1 / d)) for d in (max(one, other), min(one, other)))
    assert (wide[0] <= narrow[0]).all()
    assert (wide[1] >= narrow[1]).all()


@pytest.mark.parametrize(
    ("successes", "number", "low", "high"),
    [
        (0, 0, 0.0, 1.0),
        # 0 of n: B(½, n+½)/π = C(2n,n)/4ⁿ, and (1−p)ⁿ = δ·C(2n,n)/4ⁿ at the end.
        (0, 1, 0.0, 1 - 0.05 / 2),
        (0, 2, 0.0, 1 - math.sqrt(0.05 * 3 / 8)),
        (1, 1, 0.05 / 2, 1.0),
        (5, 5, (0.05 * 63 / 256) ** 0.2, 1.0),
        # 1 of 2: B(3/2, 3/2)/π = 1/8, and p(1−p) = δ/8.
        (1, 2, 0.5 - math.sqrt(0.25 - 0.05 / 8), 0.5 + math.sqrt(0.25 - 0.05 / 8)),
    ],
)
def test_intervals_by_hand(successes, number, low, high):
    assert interval(successes, number, 0.05) == pytest.approx((low, high), **EXACT)


def test_a_thousand_million_exits():
    low, high = interval(0, 10**9, 0.05)
    # (1−p)ⁿ = δ·C(2n,n)/4ⁿ, C(2n,n)/4ⁿ → 1/√(πn).
    assert (low, high) == (0.0, pytest.approx(math.log(math.sqrt(math.pi * 1e9) / 0.05) / 1e9, rel=1e-6))
    low, high = interval(3 * 10**8, 10**9, 0.05)
    # Normal likelihood: n(p − .3)²/(2·.21) = log(√(n·2π·.21·…)): the mixture's density at .3 is 1/(π√.21).
    width = math.sqrt(2 * 0.21 / 1e9 * math.log(math.sqrt(1e9 * math.pi / 2) / 0.05))
    assert (0.3 - low, high - 0.3) == pytest.approx((width, width), rel=1e-3)


def test_many_at_once_are_the_same_as_one_by_one():
    table = np.array([[0, 3, 7], [1, 0, 0], [0, 0, 0]])
    low, high = entrywise.intervals(table, table.sum(axis=1)[:, None], 4.0)
    for x in range(3):
        for y in range(3):
            assert (low[x, y], high[x, y]) == interval(table[x, y], table[x].sum(), math.exp(-4.0))


# ---------------------------------------------------------------- the certificate


def brute_force(table, pairs, delta):
    """Σ_x π̂(x)·min(2, Σ_y (the farthest that P(x,y) can be from P̂(x,y))²), entry by entry with brentq."""
    estimate, exits = reference.smoothed(table), table.sum(axis=1)
    total = 0.0
    for x in range(len(table)):
        if exits[x] > 0:
            row = 0.0
            for y in range(len(table)):
                low, high = slow_interval(table[x, y], exits[x], delta / pairs)
                row += max(high - estimate[x, y], estimate[x, y] - low) ** 2
            total += exits[x] / exits.sum() * min(2.0, row)
    return total


@given(count_tables(least=2, most=4), st.floats(1e-9, 0.5))
def test_the_certificate_is_brute_force(table, delta):
    counts = {"a": Counts.from_transitions(table), "b": Counts.from_transitions([[1, 1], [1, 1]])}
    found = certify(counts, delta, "entrywise").loss["a"]
    assert found == pytest.approx(brute_force(table, len(table) ** 2 + 4, delta), rel=1e-7)


@given(count_tables(least=2, most=4))
def test_every_matrix_within_the_intervals_has_a_smaller_loss(table):
    counts, rng = Counts.from_transitions(table), np.random.default_rng(0)
    bound, estimate = certify({"a": counts}, 0.1, "entrywise").max, Estimate(counts, 0.1)
    frequencies = counts.matrix(alpha=0.0)
    for truth in rng.dirichlet(np.ones(len(table)), (20, len(table))):
        # As far from the frequencies towards a random matrix as the intervals let it be.
        step = 1.0
        while not ((estimate.lower <= truth) & (truth <= estimate.upper)).all():
            step /= 2
            truth = frequencies + step * (truth - frequencies)
        assert reference.loss(truth, table) <= bound * (1 + 1e-12)


# ---------------------------------------------------------------- Estimate


def test_an_estimate():
    counts = Counts(["dry", "wet"])
    for state in ["dry", "dry", "wet", "dry", "dry"]:
        counts.record(state)
    estimate = Estimate(counts, 0.1)
    assert estimate.states == ("dry", "wet")
    assert estimate.exits.tolist() == [3, 1]
    assert estimate.transitions.tolist() == [[2, 1], [1, 0]]
    assert estimate.stationary == pytest.approx([3 / 4, 1 / 4], **EXACT)
    # α = 1/6: (2 + 1/6)/(3 + 1/3).
    assert estimate.matrix == pytest.approx(np.array([[0.65, 0.35], [0.875, 0.125]]), **EXACT)
    assert (estimate.delta, estimate.entries) == (0.1, 4)
    assert (estimate.lower[0, 0], estimate.upper[0, 0]) == interval(2, 3, 0.1 / 4)
    assert (estimate.lower[1, 1], estimate.upper[1, 1]) == interval(0, 1, 0.1 / 4)


def test_an_estimate_of_nothing():
    estimate = Estimate(Counts(2))
    assert np.isnan(estimate.stationary).all()
    assert estimate.matrix.tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert estimate.lower.tolist() == [[0, 0], [0, 0]]
    assert estimate.upper.tolist() == [[1, 1], [1, 1]]


@given(count_tables(), DELTAS, st.integers(0, 1000))
def test_lower_frequency_upper(table, delta, more):
    counts = Counts.from_transitions(table)
    estimate = Estimate(counts, delta, entries=len(table) ** 2 + more)
    frequencies, seen = counts.matrix(alpha=0.0), table.sum(axis=1) > 0
    assert (estimate.lower <= frequencies)[seen].all()
    assert (frequencies <= estimate.upper)[seen].all()
    assert (estimate.lower >= 0).all()
    assert (estimate.upper <= 1).all()
    assert estimate.matrix.sum(axis=1) == pytest.approx(np.ones(len(table)), **EXACT)
    # Sharing δ with more entries makes the intervals wider.
    alone = Estimate(counts, delta)
    assert (estimate.lower <= alone.lower).all()
    assert (estimate.upper >= alone.upper).all()


def test_smoothing_moves_the_estimate_and_not_its_intervals():
    counts = Counts.from_transitions([[8, 2], [0, 4]])
    default, laplace = Estimate(counts), Estimate(counts, alpha="laplace")
    assert laplace.matrix == pytest.approx(np.array([[9 / 12, 3 / 12], [1 / 6, 5 / 6]]), **EXACT)
    assert (default.lower == laplace.lower).all()
    assert (default.upper == laplace.upper).all()


def test_an_estimate_is_of_the_moment_it_was_made():
    counts = Counts.from_transitions([[8, 2], [0, 4]])
    estimate = Estimate(counts)
    counts.record(0)
    counts.record(0)
    assert estimate.exits.sum() == 14
    assert (estimate.lower[0, 0], estimate.upper[0, 0]) == interval(8, 10, 0.05 / 4)
