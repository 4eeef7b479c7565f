"""How far an estimate is from the truth (MATH §3)."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.special import rel_entr

from .chains import MarkovChain
from .checks import one_of
from .counts import Counts
from .errors import InputError

Array = npt.NDArray[np.float64]


def _squared(p: Array, q: Array) -> Array:
    return np.asarray(((p - q) ** 2).sum(axis=-1))


def _total_variation(p: Array, q: Array) -> Array:
    return np.asarray(np.abs(p - q).sum(axis=-1) / 2)


def _kullback_leibler(p: Array, q: Array) -> Array:
    return np.asarray(rel_entr(p, q).sum(axis=-1))


def _chi_squared(p: Array, q: Array) -> Array:
    # 0/0 is no distance, something/0 is infinitely far.
    difference = (p - q) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(difference == 0, 0.0, difference / q).sum(axis=-1))


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

#: What a row's distance is multiplied by: π̂ gives the paper's L, ones L′, the stationary law L″.
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
    if counts.size != chain.size:
        raise InputError(f"the counts must be over the chain's {chain.size} states, not over {counts.size}")
    distances = DISTANCES[distance](chain.matrix, counts.matrix(alpha))
    weight = {
        "empirical": lambda: counts.occupancy,
        "ones": lambda: np.ones(chain.size),
        "stationary": lambda: chain.stationary,
    }[weights]()
    # A row of no weight counts for nothing even where its distance is infinite.
    return float((weight[weight > 0] * distances[weight > 0]).sum())
