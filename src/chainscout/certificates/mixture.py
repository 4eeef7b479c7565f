"""The ``mixture`` certificate (MATH §7): a bound on Σ_x N_x‖P̃(x,·) − P(x,·)‖² that holds at all times at once.

The derivation stands in the documentation (docs/certificates.md). ``largest_excess`` is plain scalar Python over
scratch space that its caller gives, so that the same function is interpreted, compiled for the CPU and compiled for
the GPU.
"""

import math
from collections.abc import Sequence
from typing import Any

from ..counts import Counts

#: S − 1 for a chain whose number of states is not known: so large that cost(u) is its limit u/2.
OPEN = 1e300


def largest_excess(
    exits: Any, number: int, dimension: float, log_inverse: float, offset: Any, theta: Any, order: Any
) -> float:
    """W̄: the largest Σ_x W_x, W_x = N_x‖P̃(x,·) − P(x,·)‖², that no event of probability e^{−log_inverse} forbids.

    ``exits``: N_x > 0 of the ``number`` states left at least once. ``dimension``: S − 1, or OPEN.
    ``log_inverse``: log(K/δ). ``offset``, ``theta``, ``order``: scratch space for ``number`` values each.

    For every level m and offsets o, with ρ_x = 4^{m−o_x}: Σ_x θ_x W_x ≤ B, θ_x = N_x/(N_x + 2ρ_x), 0 ≤ W_x ≤ 2N_x.
    The largest ΣW under that is a fractional knapsack, filled by increasing θ; the smallest over m and o is W̄.
    """
    largest = 0.0
    ceiling = 0.0
    for x in range(number):
        largest = max(largest, exits[x])
        ceiling += 2.0 * exits[x]
        order[x] = x
    best = ceiling
    for x in range(number):
        # round(log₄(N_max/N_x)), in exact arithmetic: dividing by four is.
        ratio = largest / exits[x]
        steps = 0
        while ratio >= 2.0:
            ratio *= 0.25
            steps += 1
        offset[x] = steps
    for family in range(3):  # all o = 0 | o as above, geometric prior | min(o, m), uniform prior
        level = 0
        scale = 1.0  # 4^m
        while scale <= 4.0 * (largest + 1.0):  # m = 0 … ⌊log₄(N_max + 1)⌋ + 1
            bound = log_inverse + math.log(3.0 * (level + 1.0) * (level + 2.0))
            if family == 2:
                bound += number * math.log(level + 1.0)
            for x in range(number):
                shift = 0
                if family == 1:
                    shift = offset[x]
                    bound += (shift + 1) * math.log(2.0)
                elif family == 2:
                    shift = min(offset[x], level)
                rho = scale
                while shift > 0:
                    rho *= 0.25
                    shift -= 1
                u = exits[x] / rho
                # cost(u) = (S−1)/2·log(1 + u/S)
                bound += 0.5 * dimension * math.log1p(u / (dimension + 1.0))
                theta[x] = exits[x] / (exits[x] + 2.0 * rho)
            stride = 1  # Shell's sort: as short as an insertion sort, and a chain may have a million states
            while 3 * stride + 1 < number:
                stride = 3 * stride + 1
            while stride > 0:
                for i in range(stride, number):
                    x = order[i]
                    j = i - stride
                    while j >= 0 and theta[order[j]] > theta[x]:
                        order[j + stride] = order[j]
                        j -= stride
                    order[j + stride] = x
                stride //= 3
            total = 0.0
            for i in range(number):
                x = order[i]
                room = 2.0 * exits[x]
                if theta[x] * room > bound:
                    total += bound / theta[x]
                    break
                total += room
                bound -= theta[x] * room
            best = min(best, total)
            level += 1
            scale *= 4.0
    return best


def smoothing_excess(exits: Any, number: int, spread: float, weight: float) -> float:
    """r²·(1−1/S)·Σ_x N_x/(N_x+r)², r = αS: how far smoothing towards uniform rows can have moved ΣW."""
    total = 0.0
    for x in range(number):
        total += exits[x] / ((exits[x] + weight) * (exits[x] + weight))
    return weight * weight * spread * total


def combine(excess: float, smoothing: float, transitions: float) -> float:
    """b = (√W̄ + √(what smoothing can do))²/T (triangle inequality in the norm weighted by N_x)."""
    root = math.sqrt(excess) + math.sqrt(smoothing)
    return root * root / transitions


def bound_from_exits(
    exits: Sequence[float], size: int, log_inverse: float, weight: float = 1 / 3, open_states: bool = False
) -> float:
    """b for the exits of the states left at least once; ``weight`` is r = αS. Infinite if there are none.

    With ``open_states`` the chain may have more states than the ``size`` seen: cost(u) = u/2, which it grows to with S,
    and 1 + 1/S′ stands for 1 − 1/S where the estimate is smoothed (MATH §6).
    """
    number = len(exits)
    if number == 0:
        return math.inf
    if size == 1 and not open_states:
        return 0.0
    dimension, spread = size - 1.0, 1 - 1 / size
    if open_states:
        dimension, spread = OPEN, 1 + 1 / size
    excess = largest_excess(
        [float(n) for n in exits], number, dimension, log_inverse, [0] * number, [0.0] * number, [0] * number
    )
    return combine(excess, smoothing_excess(exits, number, spread, weight), float(sum(exits)))


def bounds(counts: Sequence[Counts], delta: float) -> list[float]:
    """b_k for every chain, all at once with probability ≥ 1 − δ: δ/K each."""
    log_inverse = math.log(len(counts) / delta)
    return [
        bound_from_exits(chain.visited_exits(), chain.size, log_inverse, open_states=chain.open_states)
        for chain in counts
    ]
