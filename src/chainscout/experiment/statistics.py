"""The three normalised losses of an experiment, with standard errors (MATH §3).

Each statistic carries its influence values: how much every replication moves it. Standard errors of the statistic, of
a ratio and of a difference between policies all follow from them (the delta method), with the pairing of replications
taken into account: policies see the same paths.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Statistic:
    """A value and its influence values, one a replication, which average zero."""

    value: float
    influence: Array

    @property
    def error(self) -> float:
        """The standard error; nan for a single replication."""
        number = len(self.influence)
        if number < 2:
            return math.nan
        return float(np.sqrt((self.influence**2).sum() / (number - 1) / number))

    def over(self, other: "Statistic") -> "Statistic":
        """The ratio of two statistics of the same replications."""
        ratio = self.value / other.value if other.value else math.nan
        return Statistic(ratio, (self.influence - ratio * other.influence) / (other.value or math.nan))

    def minus(self, other: "Statistic") -> "Statistic":
        """The difference of two statistics of the same replications."""
        return Statistic(self.value - other.value, self.influence - other.influence)


def largest_mean(loss: Array) -> Statistic:
    """max_k E[L_k] from ``loss`` (replication, chain); the error is that of the chain with the largest mean."""
    means = loss.mean(axis=0)
    worst = int(means.argmax())
    return Statistic(float(means[worst]), loss[:, worst] - means[worst])


def mean_largest(loss: Array) -> Statistic:
    """E[max_k L_k]."""
    largest = loss.max(axis=1)
    return Statistic(float(largest.mean()), largest - largest.mean())


def quantile_largest(loss: Array, level: float) -> Statistic:
    """The ``level`` quantile of max_k L_k. Its influence is (level − 1{x ≤ Q})/f, the density f by order statistics."""
    largest = loss.max(axis=1)
    value = float(np.quantile(largest, level))
    # Bofinger's bandwidth for the slope of the quantile function, kept inside (0, 1).
    z = float(ndtri(level))
    density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    width = (4.5 * density**4 / (2 * z * z + 1) ** 2 / len(largest)) ** 0.2
    low, high = max(0.0, level - width), min(1.0, level + width)
    slope = float(np.quantile(largest, high) - np.quantile(largest, low)) / (high - low)
    below = largest <= value
    return Statistic(value, (below.mean() - below) * slope)


#: The name that a table gives each statistic.
NAMES = {"max E[L]": "n·max E[L]/Λ", "E[max L]": "n·E[max L]/Λ", "quantile": "n·quantile(L)/Λ"}


def statistics(loss: Array, delta: float) -> dict[str, Statistic]:
    """The three statistics of one policy at one budget."""
    return {
        "max E[L]": largest_mean(loss),
        "E[max L]": mean_largest(loss),
        "quantile": quantile_largest(loss, 1 - delta),
    }
