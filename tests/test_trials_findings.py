"""Figures with their intervals, and the verdicts that follow from them."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest, linregress
from scipy.stats import t as student
from trial_samples import around, finding

from trials import findings
from trials.findings import FAILS, HOLDS, NOT_REACHED, VACUOUS, Measured


@pytest.mark.parametrize(("successes", "trials"), [(0, 8), (3, 10), (10, 10), (1, 4_000)])
def test_proportions_have_clopper_pearson_intervals(successes, trials):
    measured = findings.proportion(successes, trials)
    exact = binomtest(successes, trials).proportion_ci(0.95, method="exact")
    assert measured.value == successes / trials
    assert (measured.low, measured.high) == pytest.approx((exact.low, exact.high), abs=1e-12)


def test_means_and_what_is_made_of_them():
    rng = np.random.default_rng(0)
    values = rng.normal([1.0, 3.0], 1.0, size=(400, 2))
    one = findings.mean(values[:, 1])
    assert one.high - one.value == pytest.approx(1.959964 * values[:, 1].std(ddof=1) / 20)
    largest = findings.largest_mean(values)
    assert largest.value == pytest.approx(one.value)
    assert largest.low < one.low < one.high < largest.high  # two means at once
    quotient = findings.ratio(values[:, 1], values[:, 0])
    assert quotient.low < 3 < quotient.high
    spread = findings.variance(values[:, 1])
    assert spread.value == pytest.approx(values[:, 1].var(ddof=1))
    assert spread.low < 1 < spread.high
    assert findings.mean(values[:1, 0]).high == math.inf


def test_exponents():
    budgets = [1_000, 4_000, 16_000, 64_000]
    exact = findings.exponent(budgets, [n**-0.5 for n in budgets], [0.01 * n**-0.5 for n in budgets])
    assert exact.value == pytest.approx(-0.5)
    # Relative errors of 1 % at four points log 4 apart: 0.01/√(Σ(x − x̄)²), Σ(x − x̄)² = 5·log²4.
    assert exact.high - exact.value == pytest.approx(1.959964 * 0.01 / (math.sqrt(5) * math.log(4)), rel=1e-6)
    bent = findings.exponent(budgets, [1.0, 0.9, 0.5, 0.1], [1e-3] * 4)
    assert bent.high - bent.low > 0.3  # what scatters more than its errors is less certain
    # Equal relative errors, far below the scatter: SciPy's slope, its standard error, and Student's quantile.
    values = [1.0, 0.9, 0.5, 0.1]
    scattered = findings.exponent(budgets, values, [1e-6 * v for v in values])
    fit = linregress(np.log(budgets), np.log(values))
    assert scattered.value == pytest.approx(fit.slope)
    assert scattered.high - scattered.value == pytest.approx(student.ppf(0.975, 2) * fit.stderr)
    two = findings.exponent(budgets[:2], [1.0, 0.5], [0.01, 0.005])  # shows no scatter: the errors decide
    assert two.high - two.value == pytest.approx(1.959964 * 0.01 / math.sqrt(math.log(4) ** 2 / 2), rel=1e-6)
    none = findings.exponent(budgets, [1.0, -1.0, 0.0, -2.0], [1.0] * 4)
    assert math.isnan(none.value)
    assert (none.low, none.high) == (-math.inf, math.inf)


def test_exponents_cover_their_truth():
    """600 fits of noisy powers: 95 % of the intervals, less 3 standard errors, have the exponent inside."""
    rng, budgets, inside = np.random.default_rng(1), np.array([1e3, 4e3, 1.6e4, 6.4e4]), 0
    for _ in range(600):
        truth = 3 * budgets**-0.4
        measured = findings.exponent(
            budgets.tolist(), (truth * rng.normal(1, 0.05, 4)).tolist(), (0.05 * truth).tolist()
        )
        inside += measured.low <= -0.4 <= measured.high
    assert inside >= 600 * (0.95 - 3 * math.sqrt(0.05 * 0.95 / 600))


@pytest.mark.parametrize("points", [3, 4, 5])
@pytest.mark.parametrize("scatter", [1, 2, 30])
def test_exponents_of_few_points_cover_their_truth(points, scatter):
    """The points scatter by so many of their errors. With a normal quantile three points that scatter widely covered
    70 %, four 79 % and five 85 %. Student's interval alone covers 95 %, and the one that is given contains it."""
    generator, fits = np.random.default_rng(points), 4_000
    budgets = 1_000.0 * 4.0 ** np.arange(points)
    inside = 0
    for _ in range(fits):
        # Normal logarithms, and errors in proportion to the values: what Student's law is derived for.
        values = 3 * budgets**-0.4 * np.exp(generator.normal(0, 0.01 * scatter, points))
        measured = findings.exponent(budgets.tolist(), values.tolist(), (0.01 * values).tolist())
        inside += measured.low <= -0.4 <= measured.high
    tolerance = 4 * math.sqrt(0.05 * 0.95 / fits)  # four standard deviations of a binomial share
    assert inside / fits >= 0.95 - tolerance
    if scatter == 30:  # the scatter decides nearly always, and then the interval is Student's
        assert inside / fits == pytest.approx(0.95, abs=tolerance)


FALLS, STAYS, UNKNOWN = around(-0.5, 0.05), around(0.0, 0.05), around(0.0, 1.0)


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (findings.at_most(Measured(0.0, 0.0, 0.04), 0.05), HOLDS),
        (findings.at_most(Measured(0.1, 0.06, 0.2), 0.05), FAILS),
        (findings.at_most(Measured(0.0, 0.0, 0.3), 0.05), NOT_REACHED),
        (findings.bounds_loss(Measured(0.0, 0.0, 0.04), 0.05, bound=1.99), HOLDS),
        (findings.bounds_loss(Measured(0.1, 0.06, 0.2), 0.05, bound=1.99), FAILS),
        (findings.bounds_loss(Measured(0.0, 0.0, 0.3), 0.05, bound=1.99), NOT_REACHED),
        (findings.bounds_loss(Measured(0.0, 0.0, 0.04), 0.05, bound=2.0), VACUOUS),
        (findings.bounds_loss(Measured(0.0, 0.0, 0.3), 0.05, bound=6.4), VACUOUS),
        (findings.never(Measured(0.0, 0.0, 0.3)), HOLDS),
        (findings.never(Measured(0.01, 0.0, 0.3)), FAILS),
        (findings.once_seen(Measured(0.0, 0.0, 0.3)), NOT_REACHED),
        (findings.once_seen(Measured(0.01, 0.0, 0.3)), FAILS),
        (findings.says_nothing(Measured(0.0, 0.0, 0.05), 0.1), VACUOUS),
        (findings.says_nothing(Measured(0.5, 0.4, 0.6), 0.1), HOLDS),
        (findings.says_nothing(Measured(0.1, 0.0, 0.2), 0.1), NOT_REACHED),
        (findings.tends(around(1.02, 0.05), 1.0, 0.1, FALLS), HOLDS),
        (findings.tends(around(1.4, 0.05), 1.0, 0.1, FALLS), NOT_REACHED),
        (findings.tends(around(1.4, 0.05), 1.0, 0.1, STAYS), FAILS),
        (findings.tends(around(0.6, 0.05), 1.0, 0.1, STAYS), FAILS),
        (findings.tends(around(1.4, 0.05), 1.0, 0.1, UNKNOWN), NOT_REACHED),
        (findings.tends(around(1.0, 0.5), 1.0, 0.1, STAYS), NOT_REACHED),
        (findings.as_fast_as(FALLS, -0.5), NOT_REACHED),
        (findings.as_fast_as(FALLS, -0.5, slack=0.1), HOLDS),
        (findings.as_fast_as(FALLS, -1 / 8), HOLDS),
        (findings.as_fast_as(around(-0.3, 0.05), -0.5), NOT_REACHED),
        (findings.as_fast_as(around(-0.5, 0.3), -0.5), NOT_REACHED),
    ],
)
def test_verdicts_follow_from_figures(verdict, expected):
    assert verdict == expected


def test_what_is_surprising():
    assert not finding(FAILS, FAILS).surprising(thorough=True)
    assert finding(HOLDS, FAILS).surprising(thorough=False)
    assert finding(NOT_REACHED, HOLDS).surprising(thorough=True)
    assert not finding(NOT_REACHED, HOLDS).surprising(thorough=False)
