"""Losses: the distance of an estimate from the truth (MATH §3)."""

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import numpy.typing as npt

from .chains import MarkovChain
from .counts import Counts, smoothed, smoothing
from .errors import InputError
from .validation import one_of, shown

Array = npt.NDArray[np.float64]


def _squared(p: Array, q: Array) -> Array:
    return np.asarray(((p - q) ** 2).sum(axis=-1))


def _total_variation(p: Array, q: Array) -> Array:
    return np.asarray(np.abs(p - q).sum(axis=-1) / 2)


def _kullback_leibler(p: Array, q: Array) -> Array:
    from scipy.special import rel_entr  # here, because it loads slowly

    # Rounding can leave −1e-17 where both rows are equal.
    return np.asarray(np.maximum(rel_entr(p, q).sum(axis=-1), 0.0))


def _chi_squared(p: Array, q: Array) -> Array:
    # 0/0 counts as distance 0; a positive number over 0 is infinite.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.asarray(np.where(p == q, 0.0, (p - q) * ((p - q) / q)).sum(axis=-1))


def _squared_hellinger(p: Array, q: Array) -> Array:
    return np.asarray(((np.sqrt(p) - np.sqrt(q)) ** 2).sum(axis=-1) / 2)


#: Distances between a row P(x,·) of the truth and the row P̂(x,·) of an estimate, in this order of arguments.
DISTANCES: dict[str, Callable[[Array, Array], Array]] = {
    "squared": _squared,  # ‖P − P̂‖₂², the paper's
    "total-variation": _total_variation,  # ½ Σ|P − P̂|
    "kullback-leibler": _kullback_leibler,  # Σ P log(P/P̂)
    "chi-squared": _chi_squared,  # Σ (P − P̂)²/P̂
    "squared-hellinger": _squared_hellinger,  # ½ Σ (√P − √P̂)²
}

#: The weights of the rows: π̂ gives the paper's L, ones give L′, the stationary law gives L″.
WEIGHTS = ("empirical", "ones", "stationary")


def loss(
    chain: MarkovChain,
    counts: Counts,
    *,
    distance: str = "squared",
    weights: str = "empirical",
    alpha: float | str | None = None,
) -> float:
    """L_k = Σ_x w(x)·distance(P(x,·), P̂(x,·)): the loss of the estimate that ``counts`` give of ``chain``."""
    one_of(distance, "distance", DISTANCES)
    one_of(weights, "weights", WEIGHTS)
    if not isinstance(chain, MarkovChain) or not isinstance(counts, Counts):
        raise InputError(f"a loss compares a MarkovChain with Counts, not {shown(chain, 60)} with {shown(counts, 60)}")
    if counts.size != chain.size or not _same_states(chain.states, tuple(counts.states)):
        raise InputError(
            f"the counts must be over the chain's states {shown(list(chain.states), 60)},"
            f" not over {shown(counts.states, 60)}"
        )
    if weights == "empirical":
        weight = counts.occupancy
    elif weights == "ones":
        weight = np.ones(chain.size)
    else:
        weight = chain.stationary
    return float(of_transitions(chain.matrix, counts.transitions, weight, distance, smoothing(alpha, chain.size)))


def _same_states(labels: tuple[Hashable, ...], others: tuple[Hashable, ...]) -> bool:
    """Whether both sides have the same labels in the same order. Numbers 0 … S−1 on one side match any labels.

    The exception: labels that are these numbers in another order do not match, because a 0 would then mean two states.
    """
    numbers = tuple(range(len(labels)))
    return labels == others or (numbers in (labels, others) and set(labels) != set(others))


def of_transitions(matrices: Array, transitions: npt.NDArray[Any], weight: Array, distance: str, alpha: float) -> Array:
    """The loss for arrays: their last two axes (one for ``weight``) are the states. The arguments are not checked."""
    distances = DISTANCES[distance](matrices, smoothed(transitions, alpha))
    # A row with weight 0 contributes 0, even if its distance is infinite.
    return np.asarray((weight * np.where(weight == 0, 0.0, distances)).sum(axis=-1))
