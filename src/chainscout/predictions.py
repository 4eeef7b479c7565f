"""Predictions of the loss from its limit law (MATH §6, §8): T·L_k tends to a weighted sum of χ² variables.

The limit has mean ΣG and variance v. Quantiles and laws use the Wilson-Hilferty approximation. It is accurate enough
for plans (tests compare it with simulation).
"""

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .errors import InputError
from .validation import number_array, one_of, real_number, shown

if TYPE_CHECKING:
    from .problems import Problem

Array = npt.NDArray[np.float64]

#: How a budget can be divided: by the paper's η, by the share rule of MATH §6, or equally.
ALLOCATIONS = ("oracle", "oracle-max", "uniform")

#: Between these two numbers, the square of a mean and a matching variance neither overflow nor vanish.
LEAST_MEAN, LARGEST_MEAN = 1e-140, 1e140


def quantile(mean: float, variance: float, q: float) -> float:
    """The q-quantile of the limit law: Q = μ·max(0, 1 − v/(9μ²) + z_q·√v/(3μ))³."""
    real_number(q, "q", above=0.0, below=1.0, meaning="a probability")
    from scipy.special import ndtri

    return quantile_at(mean, variance, float(ndtri(q)))


def quantile_at(mean: float, variance: float, z: float) -> float:
    """The quantile at the standard normal deviate z = z_q. If q is close to one, −z_{1−q} is more accurate."""
    if mean == 0:
        return 0.0
    return mean * max(0.0, 1 - variance / (9 * mean * mean) + z * math.sqrt(variance) / (3 * mean)) ** 3


def share_rule(means: npt.ArrayLike, variances: npt.ArrayLike) -> Array:
    """Shares τ with τ_k ∝ Q_k(1 − τ_k/2): within 0.1 % of the shares that minimise E[max_k W_k/τ_k] (MATH §6).

    For a fixed normaliser c, τ = Q_k(1 − τ/2)/c has one root, because Q_k falls as τ grows. The sum of the roots falls
    as c grows.
    """
    mean, variance = number_array(means, "means"), number_array(variances, "variances")
    both = np.concatenate([mean.ravel(), variance.ravel()])
    if mean.ndim != 1 or mean.shape != variance.shape or not (np.isfinite(both) & (both >= 0)).all():
        raise InputError("means and variances must be finite numbers ≥ 0, one of each a chain")
    _check_range(mean[mean > 0])
    if (variance > 2 * mean**2 * (1 + 1e-9)).any():  # v = 2Σλ² and μ = Σλ
        raise InputError("the variance of a chain's limit law is at most twice its squared mean")
    if not mean.any():
        raise InputError("all chains are deterministic: there is nothing to share the budget for")

    def shares(log_normaliser: float) -> Array:
        c = math.exp(log_normaliser)
        return np.array([_root(m, v, c) if m > 0 else 0.0 for m, v in zip(mean, variance, strict=True)])

    # c = Σ_k Q_k(1 − τ_k/2) is at least the medians' sum, and Q(½) ≥ (1 − 2/9)³μ > μ/e.
    scale = math.log(mean.sum())
    low, high = scale - 1.0, scale + 1.0
    while shares(high).sum() > 1:
        high += 1
    from scipy.optimize import brentq  # here, because it loads slowly and is rarely needed

    solution = shares(brentq(lambda c: shares(c).sum() - 1, low, high, xtol=1e-14))
    return np.asarray(solution / solution.sum())


def _root(mean: float, variance: float, c: float) -> float:
    from scipy.optimize import brentq
    from scipy.special import ndtri

    # In log(share), and with −z_{τ/2} instead of z_{1−τ/2}, so that a tiny share is as exact as a large one. At τ = 2,
    # Q is 0.
    def gap(log_share: float) -> float:
        share = math.exp(log_share)
        return quantile_at(mean, variance, -float(ndtri(min(1.0, share / 2)))) - c * share

    return math.exp(brentq(gap, math.log(1e-300), math.log(2), xtol=1e-15))


def shares(problem: "Problem", allocation: str) -> Array:
    """The chains' shares of the budget under an allocation that knows the true matrices."""
    one_of(allocation, "allocation", ALLOCATIONS)
    if allocation == "oracle":
        return problem.allocation
    if allocation == "uniform":
        return np.full(len(problem), 1 / len(problem))
    return share_rule(*_moments(problem))


def mean_of_maximum(problem: "Problem", share: Array) -> float:
    """E[max_k W_k/share_k]: n·E[L_n] in the limit."""
    mean, variance = _scaled(problem, share)
    if not mean.any():
        return 0.0
    # The law of the maximum is a product. Beyond the largest 1 − 1e-13 quantile its mass is negligible.
    end = max(quantile(m, v, 1 - 1e-13) for m, v in zip(mean, variance, strict=True))
    from scipy.integrate import quad

    value, _ = quad(lambda w: 1 - _law(mean, variance, w), 0, end, limit=500)
    return float(value)


def quantile_of_maximum(problem: "Problem", share: Array, q: float) -> float:
    """The q-quantile of max_k W_k/share_k: the limit of the q-quantile of n·L_n."""
    real_number(q, "q", above=0.0, below=1.0, meaning="a probability")
    mean, variance = _scaled(problem, share)
    if not mean.any():
        return 0.0
    each = 1 - (1 - q) / len(mean)
    low = max(quantile(m, v, q) for m, v in zip(mean, variance, strict=True))
    if _law(mean, variance, low) >= q:  # one chain, or a quantile so low that Wilson-Hilferty puts it at zero
        return low
    high = max(quantile(m, v, each) for m, v in zip(mean, variance, strict=True))
    if _law(mean, variance, high) <= q:  # one chain, up to rounding
        return high
    from scipy.optimize import brentq

    return float(brentq(lambda w: _law(mean, variance, w) - q, low, high))


def _moments(problem: "Problem") -> tuple[Array, Array]:
    chains = problem.chains.values()
    return np.array([c.variability for c in chains]), np.array([c.loss_variance for c in chains])


def _scaled(problem: "Problem", share: Array) -> tuple[Array, Array]:
    mean, variance = _moments(problem)
    given = number_array(share, "shares")
    if given.shape != mean.shape or not np.isfinite(given).all():
        raise InputError(f"shares must be {len(problem)} finite numbers, one a chain, not {shown(share)}")
    used = mean > 0  # a deterministic chain is known after one visit of each state, so it is never the worst
    if (given[used] <= 0).any():
        raise InputError("every chain that is not deterministic needs a positive share of the budget")
    mean, variance, given = mean[used], variance[used], given[used]
    _check_range(mean)
    with np.errstate(over="ignore"):  # a tiny share makes it infinite, which the range check refuses
        _check_range(mean / given)
    return mean / given, variance / given / given


def _check_range(means: Array) -> None:
    """Raises ``InputError`` for means whose square does not fit into a float."""
    outside = means[(means < LEAST_MEAN) | (means > LARGEST_MEAN)]
    if outside.size:
        raise InputError(
            f"the mean of a chain's limit law (ΣG, over its share) must be 0 or from {LEAST_MEAN:g} to"
            f" {LARGEST_MEAN:g} to be computed with, not {outside[0]:g}"
        )


def _law(mean: Array, variance: Array, w: float) -> float:
    """P(max_k W_k ≤ w), Wilson-Hilferty."""
    deviation = np.sqrt(variance) / (3 * mean)
    from scipy.special import ndtr

    return float(np.prod(ndtr(((max(w, 0.0) / mean) ** (1 / 3) - 1 + deviation**2) / deviation)))
