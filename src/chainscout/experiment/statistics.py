"""The three losses of an experiment, with standard errors (MATH §3).

Each statistic carries its influence values: how much every replication moves it. The standard errors of the statistic,
of a ratio and of a difference between policies follow from them (the delta method). They account for the pairing of
replications: all policies see the same paths.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

Array = npt.NDArray[np.float64]

#: Half the width of a 95 % interval in standard errors.
NORMAL = 1.959963984540054


@dataclass(frozen=True)
class Statistic:
    """A value and its influence values, one for each replication, with mean zero."""

    value: float
    influence: Array

    @property
    def error(self) -> float:
        """The standard error; nan for a single replication."""
        number = len(self.influence)
        if number < 2:
            return math.nan
        return float(np.sqrt((self.influence**2).sum() / (number - 1) / number))

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the normal approximation."""
        return self.value - NORMAL * self.error, self.value + NORMAL * self.error

    @property
    def band(self) -> tuple[float, float]:
        """The interval; the value alone if there is a single replication."""
        return (self.value, self.value) if math.isnan(self.error) else self.interval

    def over(self, other: "Statistic") -> "Statistic":
        """The ratio of two statistics of the same replications; nan if the second is zero."""
        divisor = other.value or math.nan
        ratio = self.value / divisor
        return Statistic(ratio, (self.influence - ratio * other.influence) / divisor)

    def minus(self, other: "Statistic") -> "Statistic":
        """The difference of two statistics of the same replications."""
        return Statistic(self.value - other.value, self.influence - other.influence)

    def times(self, factor: float) -> "Statistic":
        """The statistic in another unit."""
        return Statistic(self.value * factor, self.influence * factor)


def largest_mean(loss: Array) -> Statistic:
    """max_k E[L_k] from ``loss`` (replication, chain); the error is that of the chain with the largest mean.

    If several chains are close to the largest mean (under the oracle all are), the largest of their estimates is too
    high on average, by at most :func:`most_bias` standard errors. Ratios to the oracle are then too low by as much. A
    split sample, which chooses the chain in one half and takes its mean in the other, would be too low instead and has
    a larger error (docs/experiments.md has the figures).
    """
    means = loss.mean(axis=0)
    worst = int(means.argmax())
    return Statistic(float(means[worst]), loss[:, worst] - means[worst])


def most_bias(chains: int) -> float:
    """√(2·log K): how far the largest of K estimated means can be above the largest mean, in standard errors."""
    return math.sqrt(2 * math.log(chains))


def mean_largest(loss: Array) -> Statistic:
    """E[max_k L_k]."""
    largest = loss.max(axis=1)
    return Statistic(float(largest.mean()), largest - largest.mean())


def quantile_largest(loss: Array, level: float) -> Statistic:
    """The ``level`` quantile of max_k L_k. Its influence is (level − 1{x ≤ Q})/f, the density f by order statistics."""
    largest = loss.max(axis=1)
    if bool(np.isnan(largest).any()):  # CuPy's quantile would leave them out
        return Statistic(math.nan, largest * math.nan)
    value = float(np.quantile(largest, level))
    # Bofinger's bandwidth for the slope of the quantile function, 1/f, kept inside (0, 1).
    z = float(ndtri(level))
    density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    width = (4.5 * density**4 / (2 * z * z + 1) ** 2 / len(largest)) ** 0.2
    low, high = max(0.0, level - width), min(1.0, level + width)
    slope = float(np.quantile(largest, high) - np.quantile(largest, low)) / (high - low)
    below = largest <= value
    return Statistic(value, (below.mean() - below) * slope)


#: The statistics of one policy at one budget, each from the losses (replication, chain) and δ.
STATISTICS: dict[str, Callable[[Array, float], Statistic]] = {
    "max E[L]": lambda loss, delta: largest_mean(loss),
    "E[max L]": lambda loss, delta: mean_largest(loss),
    "quantile(L)": lambda loss, delta: quantile_largest(loss, 1 - delta),
}
