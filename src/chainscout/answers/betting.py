"""Confidence sequences by betting: bounds on a mean that hold at all times at once (MATH §11).

The bets are fixed beforehand, so the wealth is a product over values. A histogram of the values is enough.
"""

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

__all__ = ["BETS", "least_mean", "least_share", "most_mean_above", "most_mean_within"]

_Array = npt.NDArray[np.float64]

#: The number of bets. Each has the same weight.
BETS = 44
#: The bets: γ_j = 0.999·2^{−j/2}.
_GAMMA = 0.999 * 2.0 ** (-np.arange(BETS) / 2)
_LOG_WEIGHT = -math.log(BETS)
#: The log of the wealth must exceed log(1/share) by this much, to allow for rounding.
_MARGIN = 1e-9
#: A bound of so many different values is remembered.
_MOST_KEPT = 64


def _wealth(factors: _Array, counts: _Array) -> float:
    """log Σ_j q_j Π_i factor, for an array of factors: one row per bet, one column per value."""
    logs = np.log(factors) @ counts
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum())) + _LOG_WEIGHT


def least_mean(values: _Array, counts: _Array, log_inverse: float) -> float:
    """A lower bound of the mean of values ≥ 0: the largest m found with wealth ≥ 1/share against 'the mean is ≤ m'.

    Each factor 1 − γ + γ·R/m is ≥ 0 and has a mean ≤ 1 if the mean of R is ≤ m. R needs no upper limit.
    """
    total = float(counts.sum())
    if total == 0 or not (values[counts > 0] > 0).any():
        return 0.0
    if len(values) <= _MOST_KEPT:
        return _least_mean_kept(values.tobytes(), counts.tobytes(), log_inverse)
    return _least_mean(values, counts, log_inverse)


@lru_cache(maxsize=4096)
def _least_mean_kept(values: bytes, counts: bytes, log_inverse: float) -> float:
    """Most values of holes that an answer goes through give the same few histograms."""
    return _least_mean(np.frombuffer(values), np.frombuffer(counts), log_inverse)


def _least_mean(values: _Array, counts: _Array, log_inverse: float) -> float:
    mean = float(values @ counts) / float(counts.sum())
    gamma = _GAMMA[:, None]

    def rejected(m: float) -> bool:
        return _wealth(1 - gamma + gamma * (values / m), counts) >= log_inverse + _MARGIN

    good, bad = math.log(mean) - 700.0, math.log(mean)
    if not rejected(math.exp(good)):
        return 0.0
    while bad - good > 1e-10:
        middle = (good + bad) / 2
        good, bad = (middle, bad) if rejected(math.exp(middle)) else (good, middle)
    return math.exp(good)


def most_mean_within(values: _Array, counts: _Array, log_inverse: float) -> float:
    """An upper bound of the mean of values in [0, 1]: the mirror image."""
    return 1.0 - least_mean(1.0 - values, counts, log_inverse)


def _fixed_bets(scale: float) -> _Array:
    """Absolute bets for values whose size is fixed beforehand."""
    return _GAMMA / scale


def most_mean_above(values: _Array, counts: _Array, largest: float, scale: float, log_inverse: float) -> float:
    """An upper bound of the mean of values in [0, ``largest``], where ``largest`` may depend on the data.

    The bets must not depend on it: the factor is 1 − λ_j(R − m) with λ_j fixed by ``scale``, and each j with
    λ_j(largest − m) > 0.999 is left out. This is monotone in m and in ``largest``.
    """
    total = float(counts.sum())
    if total == 0 or not math.isfinite(largest):
        return largest
    bets = _fixed_bets(scale)

    def rejected(m: float) -> bool:
        kept = bets[bets * (largest - m) <= 0.999][:, None]
        return len(kept) > 0 and _wealth(1 - kept * (values - m), counts) >= log_inverse + _MARGIN

    good, bad = largest, float(values @ counts) / total
    if not rejected(good):
        return largest
    while good - bad > 1e-10 * good:
        middle = (good + bad) / 2
        good, bad = (middle, bad) if rejected(middle) else (good, middle)
    return good


def least_share(
    inside: _Array, outside: _Array, early: _Array, counts: _Array, rest: float, scale: float, log_inverse: float
) -> float:
    """A lower bound of a long-run share g from cycles: the time inside and outside, and whether it was stopped early.

    ``rest``: an upper bound of the mean time outside after an early stop; it may depend on the data.
    ``scale``: no cycle has more time outside. The factor 1 + λ(A(1/θ − 1) − B − 1{early}·rest) is ≥ 0 for
    λ(scale + rest) ≤ 0.999, and has a mean ≤ 1 if g ≤ θ.
    """
    if counts.sum() == 0 or not math.isfinite(rest) or not (inside[counts > 0] > 0).any():
        return 0.0
    bets = _fixed_bets(scale)
    kept = bets[bets * (scale + rest) <= 0.999][:, None]
    if len(kept) == 0:
        return 0.0
    loss = outside + early * rest

    def rejected(ratio: float) -> bool:
        return _wealth(1 + kept * (inside * ratio - loss), counts) >= log_inverse + _MARGIN

    # θ = 1/(1 + ratio): the largest rejected θ has the least rejected ratio. Beyond e^{±40} it makes no difference.
    good, bad = 40.0, -40.0
    if not rejected(math.exp(good)):
        return 0.0
    while good - bad > 1e-10:
        middle = (good + bad) / 2
        good, bad = (middle, bad) if rejected(math.exp(middle)) else (good, middle)
    return 1.0 / (1.0 + math.exp(good))
