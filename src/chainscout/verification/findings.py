"""What a trial of a claim gives: a figure with its interval, and a verdict by rules that are written down here."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, ndtri, stdtrit

Array = npt.NDArray[np.float64]

HOLDS, FAILS, VACUOUS, NOT_REACHED = "holds", "fails", "vacuous", "not reached"

#: Intervals have this probability.
LEVEL = 0.95

#: No loss is larger: Σ_x π̂(x)‖P(x,·) − P̂(x,·)‖² averages squared distances of probability vectors.
LARGEST_LOSS = 2.0

#: An approach to a limit slower than n to this power is taken for none.
SLOWEST = -0.1


@dataclass(frozen=True)
class Measured:
    """A figure and the ends of its 95 % interval; a figure that was computed and not sampled has no width."""

    value: float
    low: float
    high: float

    @classmethod
    def exactly(cls, value: float) -> "Measured":
        """A figure without chance in it."""
        return cls(value, value, value)

    @property
    def exact(self) -> bool:
        """Whether there is no chance in it."""
        return self.low == self.high


@dataclass(frozen=True)
class Finding:
    """One claim on trial in one setting."""

    claim: str
    #: Where it stands, by the paper's numbering.
    place: str
    setting: str
    #: What was measured.
    figure: str
    measured: Measured
    verdict: str
    #: The verdict that is expected: what the mathematics says, or was found before.
    expected: str
    #: What else the trial showed.
    note: str = ""

    def surprising(self, thorough: bool) -> bool:
        """Whether the verdict is another than expected. 'Not reached' is none unless the effort was thorough."""
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
    """max_k E[X_k] from values (replication, k). Each mean has an interval, so wide that all hold at once."""
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

    ``errors`` are the values' standard errors. The interval is the wider of two: the normal one that follows from the
    errors, and Student's with m − 2 degrees of freedom from how far the m points scatter about the line, because they
    scatter more than their errors say while the law is not yet a power. Two points show no scatter. Values that are not
    positive have no logarithm: with fewer than two left there is no exponent, and its interval is the whole line.
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
    """Of a figure that is claimed to be ≤ ``allowed``."""
    if measured.high <= allowed:
        return HOLDS
    return FAILS if measured.low > allowed else NOT_REACHED


def bounds_loss(measured: Measured, allowed: float, bound: float) -> str:
    """Of a bound on a loss that is broken with probability ≤ ``allowed``; ``bound`` is the smallest one on trial.

    A bound that no loss can exceed is never broken, whatever was simulated.
    """
    return VACUOUS if bound >= LARGEST_LOSS else at_most(measured, allowed)


def never(measured: Measured) -> str:
    """Of something that is claimed not to happen: once is enough to refute it."""
    return FAILS if measured.value > 0 else HOLDS


def tends(measured: Measured, limit: float, tolerance: float, slope: Measured) -> str:
    """Of a limit: whether the figure at the largest budget is near it, or at least on its way.

    ``slope`` is the exponent of the distance to the limit along the budgets.
    """
    if limit - tolerance <= measured.low and measured.high <= limit + tolerance:
        return HOLDS
    away = measured.low > limit + tolerance or measured.high < limit - tolerance
    return FAILS if away and slope.low > SLOWEST else NOT_REACHED


def as_fast_as(slope: Measured, claimed: float, slack: float = 0.0) -> str:
    """Of a rate n^claimed, within ``slack``. A slower one so far refutes nothing: the rate is for large n."""
    return HOLDS if slope.high <= claimed + slack else NOT_REACHED


def says_nothing(measured: Measured, allowed: float) -> str:
    """Of a bound on how fast a quantity falls to zero, from how often the quantity is positive at all."""
    if measured.high <= allowed:
        return VACUOUS
    return HOLDS if measured.low > allowed else NOT_REACHED


def once_seen(measured: Measured) -> str:
    """Of something rare that is claimed not to happen: not having seen it says nothing."""
    return FAILS if measured.value > 0 else NOT_REACHED
