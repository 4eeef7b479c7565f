"""``scout``, the default: optimistic variability to the power 3/4 over T, and its indices for other losses.

Index (μ̃^p + d)/T, μ̃ = min(S₊·cap, ΣĜ + Σ1/N·(g + c·(1/8 + 4/S₊)/S₊ + c/2 if T < 20)), S₊ = states left at least once.
Ĝ is too small by G/N in the mean. g = Σ(Ĝ/N)/(1 + Σ(N − 1)/N²) estimates G from the states that were left rarely. From
20 transitions on, the rest of the bonus is at most c·(1/8 + 4/S₊), however many states were seen for the first time. A
bonus c/N for each of them would give a long deterministic cycle nearly the whole budget.

d = Σ cap·(N − 2/3)·(r/(N + r))² is what smoothing adds to T·L in rows with one successor. A state that was left once
counts a third of that, because d falls only when the state comes again. docs/policies.md has the reasons.
"""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..certificates.mixture import OPEN
from ..counts import smoothing
from ..errors import InputError
from ..rows import deviation, frequency_gini, smoothed_gini
from ..validation import one_of, real_number, shown
from .bandits import sum_over_transitions
from .policy import Policy, Setting

if TYPE_CHECKING:
    from ..problems import Problem

#: The largest power. μ̃ is below S, so μ̃ to this power fits into a float for every possible S.
MOST_POWER = 10.0

#: From this T on, a chain that never surprised is believed to vary little. A dense chain of 50 states repeats a state
#: within so many transitions with probability 0.98, and shows what it is.
BELIEVED = 20.0

# c = (1 − 1/S, exploration, α, αS, power, S − 1)


def terms(row: Any, exits: float, squares: float, c: Any) -> tuple[float, float, float, float, float, float]:
    """Ĝ of the frequencies, 1/N, one, d, Ĝ/N, and (N − 1)/N²."""
    gini = frequency_gini(exits, squares)
    inverse = 1.0 / exits
    share = c[3] / (exits + c[3])
    smoothed = c[0] * (exits - 2.0 / 3.0) * (share * share)
    return gini, inverse, 1.0, smoothed, gini * inverse, (exits - 1.0) * inverse * inverse


def optimistic_variability(sums: Any, transitions: float, c: Any) -> float:
    """μ̃."""
    bonus = (0.125 + 4.0 / sums[2]) / sums[2] + (0.5 if transitions < BELIEVED else 0.0)
    rare = sums[4] / (1.0 + sums[5])
    return float(min(sums[2] * c[0], sums[0] + sums[1] * (rare + c[1] * bonus)))


def index_three_quarters(sums: Any, transitions: float, c: Any) -> float:
    """(μ̃^{3/4} + d)/T, made of square roots so that it has the same bits everywhere."""
    root = math.sqrt(optimistic_variability(sums, transitions, c))
    return float((root * math.sqrt(root) + sums[3]) / transitions)


def index_half(sums: Any, transitions: float, c: Any) -> float:
    """(μ̃^{1/2} + d)/T."""
    return float((math.sqrt(optimistic_variability(sums, transitions, c)) + sums[3]) / transitions)


def index_one(sums: Any, transitions: float, c: Any) -> float:
    """(μ̃ + d)/T."""
    return float((optimistic_variability(sums, transitions, c) + sums[3]) / transitions)


def index_any(sums: Any, transitions: float, c: Any) -> float:
    """(μ̃^p + d)/T for a power that square roots cannot give. Its bits are the same on one platform only."""
    return float((math.pow(optimistic_variability(sums, transitions, c), c[4]) + sums[3]) / transitions)


INDICES = {0.75: index_three_quarters, 0.5: index_half, 1.0: index_one}


# -- other losses (MATH §6)


def optimistic_gini(exits: float, squares: float, c: Any) -> float:
    """G̃ = min(1 − 1/S, Ĝ + c/N)."""
    return float(min(c[0], smoothed_gini(exits, squares, c[2], c[3]) + c[1] / exits))


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
    "stationary": (None, terms, index_one),
    "ones": (None, ones_terms, ones_index),
    "total-variation": (variation_entry, variation_terms, variation_index),
    "kullback-leibler": (support_entry, support_terms, entropy_index),
    "chi-squared": (support_entry, support_terms, sum_over_transitions),
    "squared-hellinger": (support_entry, support_terms, hellinger_index),
}


def scout(
    power: float | None = None, exploration: float = 2.0, alpha: float | str | None = None, loss: str = "squared"
) -> Policy:
    """Index (μ̃^p + d)/T. ``power`` 3/4 aims at E[max L], 1 at max E[L] (η); ``exploration`` is c in μ̃."""
    if power is not None and loss != "squared":
        raise InputError(f"power is for the loss 'squared' only, and the loss is {shown(loss)}")
    meaning = "what μ̃ is raised to"
    p = 0.75 if power is None else real_number(power, "power", above=0.0, most=MOST_POWER, meaning=meaning)
    real_number(exploration, "exploration", above=0.0, meaning="what the bonus for states seen rarely is multiplied by")
    smoothing(alpha, 1)  # refuses an invalid α now, not only when the first chain is prepared
    entry, rule, index = LOSSES[one_of(loss, "loss", LOSSES)]
    # αS of an open chain. The estimate smooths with 1/3, and d is about the estimate. For total variation, c is the
    # weight of states that were never seen: in a row with one successor P̂(1−P̂) is Nc/(N+c)², and not 0 for ever. The
    # terms of the other losses contain c/N and no smoothing.
    weight = {"squared": 1 / 3, "stationary": 1 / 3, "total-variation": exploration}.get(loss, 0.0)

    def constants(setting: Setting) -> tuple[float, ...]:
        if setting.open:  # α = 0 and cap = 1 (MATH §6, Open states); the support has no upper limit
            return (1.0, exploration, 0.0, weight, p, OPEN)
        a = smoothing(alpha, setting.size)
        return (1 - 1 / setting.size, exploration, a, a * setting.size, p, setting.size - 1.0)

    def target(problem: "Problem") -> npt.NDArray[np.float64]:
        shares = problem.allocation**p
        return np.asarray(shares / shares.sum())

    # Version 2 of total variation: open states keep a weight for states never seen. Version 2 of L and L″: one bonus a
    # chain that is bounded, and d.
    version = 2 if loss in ("squared", "stationary", "total-variation") else 1
    if loss == "squared":
        return Policy("scout", INDICES.get(p, index_any), rule, constants, power=p, target=target, version=version)
    aim = (lambda problem: problem.allocation) if loss == "stationary" else None
    return Policy("scout", index, rule, constants, entry, target=aim, version=version)
