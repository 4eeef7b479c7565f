"""``scout``, the default: an optimistic Gini index to the power 3/4 over T, and its indices for other losses."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..checks import one_of, real_number
from ..counts import smoothing
from .bandits import sum_over_transitions
from .policy import Policy, Setting

if TYPE_CHECKING:
    from ..problems import Problem

#: Losses that scout has an index for: the paper's L, L′ (weights one), and L with other distances.
LOSSES = ("squared", "ones", "total-variation", "kullback-leibler", "chi-squared")


def optimistic_gini(exits: float, squares: float, c: Any) -> float:
    """G̃ = min(1 − 1/S, Ĝ + c/N), Ĝ = 1 − (Q + 2αN + Sα²)/(N + αS)². c = (cap, exploration, 2α, Sα², αS)."""
    total = exits + c[4]
    return float(min(c[0], 1.0 - (squares + c[2] * exits + c[3]) / (total * total) + c[1] / exits))


def terms(row: Any, exits: float, squares: float, c: Any) -> tuple[float]:
    """G̃ of the row."""
    return (optimistic_gini(exits, squares, c),)


def index_three_quarters(sums: Any, transitions: float, c: Any) -> float:
    """μ̃^{3/4}/T, made of square roots so that it has the same bits everywhere."""
    root = math.sqrt(sums[0])
    return root * math.sqrt(root) / transitions


def index_half(sums: Any, transitions: float, c: Any) -> float:
    """μ̃^{1/2}/T."""
    return math.sqrt(sums[0]) / transitions


def index_any(sums: Any, transitions: float, c: Any) -> float:
    """μ̃^p/T with a power that is not made of square roots: its bits repeat on one platform only."""
    return float(math.pow(sums[0], c[5]) / transitions)


INDICES = {0.75: index_three_quarters, 0.5: index_half, 1.0: sum_over_transitions}


# -- other losses


def ones_terms(row: Any, exits: float, squares: float, c: Any) -> tuple[float]:
    """G̃/N: a row's share of L′."""
    return (optimistic_gini(exits, squares, c) / exits,)


def ones_index(sums: Any, transitions: float, c: Any) -> float:
    """ΣG̃/N."""
    return float(sums[0])


def variation_terms(row: Any, exits: float, squares: float, c: Any) -> tuple[float]:
    """√N·Σ_y √(P̂(1−P̂)(x,y))."""
    inverse = 1.0 / (exits + c[4])
    roots = 0.0
    for y in range(len(row)):
        p = (row[y] + 0.5 * c[2]) * inverse
        roots += math.sqrt(p * (1.0 - p))
    return (math.sqrt(exits) * roots,)


def variation_index(sums: Any, transitions: float, c: Any) -> float:
    """c_k²/T, c_k = ½√(2/π)·Σ_x √π̂_x Σ_y √(P̂(1−P̂)): the mean of a normal variable's modulus."""
    return float(sums[0] * sums[0] / (2.0 * math.pi * transitions * transitions))


def support_terms(row: Any, exits: float, squares: float, c: Any) -> tuple[float]:
    """One less than the successors seen."""
    seen = -1.0
    for y in range(len(row)):
        if row[y] > 0:
            seen += 1.0
    return (seen,)


def entropy_index(sums: Any, transitions: float, c: Any) -> float:
    """Σ(support − 1)/(2T)."""
    return float(0.5 * sums[0] / transitions)


def scout(power: float = 0.75, exploration: float = 2.0, loss: str = "squared") -> Policy:
    """Index μ̃^p/T, μ̃ = ΣG̃. ``power`` 3/4 aims at E[max L], 1 at max E[L] (η); ``exploration`` is c in G̃."""
    real_number(power, "power", above=0.0, meaning="what the estimated variability is raised to")
    real_number(exploration, "exploration", above=0.0, meaning="what is added to a row's Gini index, over N")
    one_of(loss, "loss", LOSSES)

    def constants(setting: Setting) -> tuple[float, ...]:
        size, a = setting.size, smoothing(None, setting.size)
        return (1 - 1 / size, exploration, 2 * a, size * a * a, size * a, power)

    if loss == "squared":

        def target(problem: "Problem") -> npt.NDArray[np.float64]:
            shares = problem.allocation**power
            return np.asarray(shares / shares.sum())

        return Policy("scout", INDICES.get(power, index_any), terms, constants, power=power, target=target)
    rule, index = {
        "ones": (ones_terms, ones_index),
        "total-variation": (variation_terms, variation_index),
        "kullback-leibler": (support_terms, entropy_index),
        "chi-squared": (support_terms, sum_over_transitions),
    }[loss]
    return Policy("scout", index, rule, constants)
