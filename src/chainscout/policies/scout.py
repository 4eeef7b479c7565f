"""``scout``, the default: an optimistic Gini index to the power 3/4 over T, and its indices for other losses."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..certificates.mixture import OPEN
from ..counts import smoothing
from ..errors import InputError
from ..rows import deviation, smoothed_gini
from ..validation import one_of, real_number, shown
from .bandits import sum_over_transitions
from .policy import Policy, Setting

if TYPE_CHECKING:
    from ..problems import Problem

#: The largest power. μ̃ is below S, so μ̃ to this power fits into a float for every possible S.
MOST_POWER = 10.0

# c = (1 − 1/S, exploration, α, αS, power, S − 1)


def optimistic_gini(exits: float, squares: float, c: Any) -> float:
    """G̃ = min(1 − 1/S, Ĝ + c/N)."""
    return float(min(c[0], smoothed_gini(exits, squares, c[2], c[3]) + c[1] / exits))


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
    """μ̃^p/T for a power that square roots cannot give. Its bits are the same on one platform only."""
    return float(math.pow(sums[0], c[4]) / transitions)


INDICES = {0.75: index_three_quarters, 0.5: index_half, 1.0: sum_over_transitions}


# -- other losses (MATH §6)


def ones_terms(row: Any, exits: float, squares: float, c: Any) -> tuple[float, float]:
    """G̃/N, a row's part of L′, and N."""
    return optimistic_gini(exits, squares, c) / exits, exits


def ones_index(sums: Any, transitions: float, c: Any) -> float:
    """ΣG̃/N, times ΣN/T. The second factor is one unless observations are pending, which count in T."""
    return float(sums[0] * (sums[1] / transitions))


def variation_entry(count: float, exits: float, c: Any) -> float:
    """(N + αS)·√(N·P̂(1−P̂)(x,y))."""
    return deviation(count, exits, c[2], c[3])


def variation_terms(deviations: float, exits: float, squares: float, c: Any) -> tuple[float]:
    """√N·Σ_y √(P̂(1−P̂)(x,y))."""
    return (deviations / (exits + c[3]),)


def variation_index(sums: Any, transitions: float, c: Any) -> float:
    """c_k²/T, c_k = ½√(2/π)·Σ_x √π̂_x Σ_y √(P̂(1−P̂)), from the mean absolute value of a normal variable."""
    return float(sums[0] * sums[0] / (2.0 * math.pi * transitions * transitions))


def support_entry(count: float, exits: float, c: Any) -> float:
    """One for a successor that was seen."""
    return 1.0 if count > 0.0 else 0.0


def support_terms(seen: float, exits: float, squares: float, c: Any) -> tuple[float]:
    """min(S − 1, support − 1 + c/N). Without c/N, a chain with one successor per row would never be sampled."""
    return (min(c[5], seen - 1.0 + c[1] / exits),)


def entropy_index(sums: Any, transitions: float, c: Any) -> float:
    """Σ(support − 1)/(2T), the mean of KL(P‖P̂)."""
    return float(0.5 * sums[0] / transitions)


def hellinger_index(sums: Any, transitions: float, c: Any) -> float:
    """Σ(support − 1)/(8T): near P, the squared Hellinger distance is a quarter of the divergence."""
    return float(0.125 * sums[0] / transitions)


#: entry, terms and index for the losses other than the paper's. L″ (weights π, estimated by π̂) is L with power 1. L′
#: has weights one. The others are L with another distance.
LOSSES: dict[str, tuple[Any, Any, Any]] = {
    "squared": (None, terms, None),
    "stationary": (None, terms, sum_over_transitions),
    "ones": (None, ones_terms, ones_index),
    "total-variation": (variation_entry, variation_terms, variation_index),
    "kullback-leibler": (support_entry, support_terms, entropy_index),
    "chi-squared": (support_entry, support_terms, sum_over_transitions),
    "squared-hellinger": (support_entry, support_terms, hellinger_index),
}


def scout(
    power: float | None = None, exploration: float = 2.0, alpha: float | str | None = None, loss: str = "squared"
) -> Policy:
    """Index μ̃^p/T, μ̃ = ΣG̃. ``power`` 3/4 aims at E[max L], 1 at max E[L] (η); ``exploration`` is c in G̃."""
    if power is not None and loss != "squared":
        raise InputError(f"power is for the loss 'squared' only, and the loss is {shown(loss)}")
    meaning = "what μ̃ is raised to"
    p = 0.75 if power is None else real_number(power, "power", above=0.0, most=MOST_POWER, meaning=meaning)
    real_number(exploration, "exploration", above=0.0, meaning="what is added to a row's Gini index, over N")
    smoothing(alpha, 1)  # refuses an invalid α now, not only when the first chain is prepared
    entry, rule, index = LOSSES[one_of(loss, "loss", LOSSES)]
    # In an open chain the terms of every other loss contain c/N. Total variation has a square root instead. So c is the
    # weight of states that were never seen: in a row with one successor P̂(1−P̂) is Nc/(N+c)², and not 0 for ever.
    unseen = exploration if loss == "total-variation" else 0.0

    def constants(setting: Setting) -> tuple[float, ...]:
        if setting.open:  # α = 0 and cap = 1 (MATH §6, Open states); the support has no upper limit
            return (1.0, exploration, 0.0, unseen, p, OPEN)
        a = smoothing(alpha, setting.size)
        return (1 - 1 / setting.size, exploration, a, a * setting.size, p, setting.size - 1.0)

    def target(problem: "Problem") -> npt.NDArray[np.float64]:
        shares = problem.allocation**p
        return np.asarray(shares / shares.sum())

    if loss == "squared":
        return Policy("scout", INDICES.get(p, index_any), rule, constants, power=p, target=target)
    aim = (lambda problem: problem.allocation) if loss == "stationary" else None
    version = 2 if loss == "total-variation" else 1  # version 2: open states keep a weight for states never seen
    return Policy("scout", index, rule, constants, entry, target=aim, version=version)
