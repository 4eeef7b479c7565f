"""The result of a trial: a figure with its interval, and a verdict. The rules for verdicts are in this module."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, ndtri, stdtrit

Array = npt.NDArray[np.float64]

HOLDS, FAILS, VACUOUS, NOT_REACHED = "holds", "fails", "vacuous", "not reached"

#: The probability of an interval.
LEVEL = 0.95

#: No loss is larger: Σ_x π̂(x)‖P(x,·) − P̂(x,·)‖² averages squared distances of probability vectors.
LARGEST_LOSS = 2.0

#: An approach to a limit that is slower than n to this power counts as no approach.
SLOWEST = -0.1


@dataclass(frozen=True)
class Measured:
    """A figure and the ends of its 95 % interval. The interval of a computed figure has no width."""

    value: float
    low: float
    high: float

    @classmethod
    def exactly(cls, value: float) -> "Measured":
        """A figure that was computed and not sampled."""
        return cls(value, value, value)

    @property
    def exact(self) -> bool:
        """Whether the figure was computed and not sampled."""
        return self.low == self.high


@dataclass(frozen=True)
class Finding:
    """One claim on trial in one setting."""

    claim: str
    #: The place of the claim, in the paper's numbering.
    place: str
    setting: str
    #: What was measured.
    figure: str
    measured: Measured
    verdict: str
    #: The expected verdict, from the mathematics or from earlier trials.
    expected: str
    #: What else the trial showed.
    note: str = ""

    def surprising(self, thorough: bool) -> bool:
        """Whether the verdict differs from the expected one. 'Not reached' counts only if the effort was thorough."""
        return self.verdict != self.expected and (thorough or self.verdict != NOT_REACHED)


# -- figures


def proportion(successes: int, trials: int) -> Measured:
    """A probability with its Clopper–Pearson interval."""
    tail = (1 - LEVEL) / 2
    low = float(betaincinv(successes, trials - successes + 1, tail)) if successes else 0.0
    high = float(betaincinv(successes + 1, trials - successes, 1 - tail)) if successes < trials else 1.0
    return Measured(successes / trials, low, high)


def mean(values: Array) -> Measured:
    """A mean with its normal interval."""
    return _around(float(np.mean(values)), standard_error(values))


def standard_error(values: Array) -> float:
    """The standard error of a mean; infinite for a single value."""
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.inf


def largest_mean(values: Array) -> Measured:
    """max_k E[X_k] from values (replication, k). The intervals of the means are so wide that all hold at once."""
    means = values.mean(axis=0)
    errors = np.array([standard_error(column) for column in values.T])
    reach = _quantile(1 - (1 - LEVEL) / values.shape[1]) * errors
    return Measured(float(means.max()), float((means - reach).max()), float((means + reach).max()))


def ratio(above: Array, below: Array) -> Measured:
    """E[X]/E[Y] of independent samples, by the delta method."""
    x, y = float(np.mean(above)), float(np.mean(below))
    relative = math.hypot(standard_error(above) / x, standard_error(below) / y)
    return _around(x / y, x / y * relative)


def variance(values: Array) -> Measured:
    """A variance; its standard error by the fourth moment."""
    squares = (values - values.mean()) ** 2 * (len(values) / max(1, len(values) - 1))
    return mean(squares)


def exponent(budgets: Sequence[int], values: Sequence[float], errors: Sequence[float]) -> Measured:
    """p in value ∝ n^p by weighted least squares on logarithms.

    ``errors`` are the values' standard errors. The interval is the wider of two. One is the normal interval that
    follows from the errors. The other is Student's interval with m − 2 degrees of freedom, from the scatter of the m
    points about the line: they scatter more than their errors say while the law is not yet a power. Two points show no
    scatter. Values that are not positive have no logarithm. If fewer than two are left, the interval of the exponent is
    the whole line.
    """
    points = [(n, v, e) for n, v, e in zip(budgets, values, errors, strict=True) if v > 0 and e > 0]
    if len(points) < 2:
        return Measured(math.nan, -math.inf, math.inf)
    x = np.log([n for n, _, _ in points])
    y = np.log([v for _, v, _ in points])
    weight = np.array([(v / e) ** 2 for _, v, e in points])
    x = x - np.average(x, weights=weight)
    spread = float((weight * x * x).sum())
    slope = float((weight * x * y).sum()) / spread
    residuals = y - np.average(y, weights=weight) - slope * x
    reach = _quantile(LEVEL)
    if freedom := len(points) - 2:
        scatter = float((weight * residuals**2).sum()) / freedom
        reach = max(reach, float(stdtrit(freedom, (1 + LEVEL) / 2)) * math.sqrt(scatter))
    reach /= math.sqrt(spread)
    return Measured(slope, slope - reach, slope + reach)


def _around(value: float, error: float) -> Measured:
    reach = _quantile(LEVEL) * error
    return Measured(value, value - reach, value + reach)


def _quantile(level: float) -> float:
    """Half the width of a normal interval, in standard errors."""
    return float(ndtri((1 + level) / 2))


# -- verdicts


def at_most(measured: Measured, allowed: float) -> str:
    """The verdict about a figure that is claimed to be ≤ ``allowed``."""
    if measured.high <= allowed:
        return HOLDS
    return FAILS if measured.low > allowed else NOT_REACHED


def bounds_loss(measured: Measured, allowed: float, bound: float) -> str:
    """The verdict about a bound on a loss that fails with probability ≤ ``allowed``; ``bound``: the smallest one tried.

    A bound that no loss can exceed never fails, whatever was simulated.
    """
    return VACUOUS if bound >= LARGEST_LOSS else at_most(measured, allowed)


def never(measured: Measured) -> str:
    """The verdict about something that is claimed never to happen: one case refutes the claim."""
    return FAILS if measured.value > 0 else HOLDS


def tends(measured: Measured, limit: float, tolerance: float, slope: Measured) -> str:
    """The verdict about a limit: whether the figure at the largest budget is near it, or at least approaches it.

    ``slope`` is the exponent of the distance to the limit along the budgets.
    """
    if limit - tolerance <= measured.low and measured.high <= limit + tolerance:
        return HOLDS
    away = measured.low > limit + tolerance or measured.high < limit - tolerance
    return FAILS if away and slope.low > SLOWEST else NOT_REACHED


def as_fast_as(slope: Measured, claimed: float, slack: float = 0.0) -> str:
    """The verdict about a rate n^claimed, within ``slack``. A slower rate refutes nothing: the claim is for large n."""
    return HOLDS if slope.high <= claimed + slack else NOT_REACHED


def says_nothing(measured: Measured, allowed: float) -> str:
    """The verdict about a bound on how fast a quantity falls to zero, from how often the quantity is positive."""
    if measured.high <= allowed:
        return VACUOUS
    return HOLDS if measured.low > allowed else NOT_REACHED


def once_seen(measured: Measured) -> str:
    """The verdict about something rare that is claimed not to happen: if it was not seen, that says nothing."""
    return FAILS if measured.value > 0 else NOT_REACHED
