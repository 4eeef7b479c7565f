"""The ``mixture`` certificate (MATH §7): a bound on Σ_x N_x‖P̃(x,·) − P(x,·)‖² that holds at all times at once.

docs/certificates.md has the derivation. ``largest_excess`` is plain scalar Python over scratch space that the caller
gives. So the same function is interpreted, compiled for the CPU and compiled for the GPU.
"""

import math
from collections.abc import Sequence
from typing import Any

from ..counts import Counts
from ..logarithm import log, log1p

#: S − 1 for a chain with an unknown number of states: so large that cost(u) equals its limit u/2.
OPEN = 1e300

LOG_2, LOG_4 = log(2.0), log(4.0)
#: log(3(m+1)(m+2)) and log(m+1) of every level m that counts can have: N_x is below 4⁵⁰.
LEVELS = 52
LEVEL_LOGS = tuple(log(3.0 * (m + 1.0) * (m + 2.0)) for m in range(LEVELS))
UNIFORM_LOGS = tuple(log(m + 1.0) for m in range(LEVELS))

#: If a number is larger than another in exact arithmetic, this factor times it is larger after some hundred roundings.
CERTAINLY = 1.0 - 1e-9


def knapsack(order: Any, number: int, theta: Any, room: Any, bound: float) -> float:
    """The largest Σ_x W_x with Σ_x θ_x W_x ≤ ``bound`` and 0 ≤ W_x ≤ 2·room_x; ``order``: rows by increasing θ."""
    total = 0.0
    for i in range(number):
        x = order[i]
        most = 2.0 * room[x]
        if theta[x] * most > bound:
            filled: float = total + bound / theta[x]
            return filled
        total += most
        bound -= theta[x] * most
    return total


def largest_excess(
    exits: Any, room: Any, number: int, dimension: float, log_inverse: float, offset: Any, theta: Any, order: Any
) -> float:
    """W̄: with probability ≥ 1 − e^{−log_inverse}, Σ_x W_x ≤ W̄ at all times, where W_x = N_x‖P̃(x,·) − P(x,·)‖².

    ``exits``: N_x > 0 of the ``number`` states left at least once. ``dimension``: S − 1, or OPEN.
    ``log_inverse``: log(K/δ). ``offset``, ``theta``, ``order``: scratch space for ``number`` values each.
    ``room``: the same as ``exits``; with holes, ``exits`` is N⁺_x, ``room`` is N⁺_x²/N_x, and W̄ bounds
    Σ_x (N⁺_x/N_x)·W⁺_x (docs/certificates.md, 'Holes').

    For every level m and offsets o, with ρ_x = 4^{m−o_x}: Σ_x θ_x W_x ≤ B, θ_x = N_x/(N_x + 2ρ_x), 0 ≤ W_x ≤ 2N_x.
    The largest ΣW under these constraints is a fractional knapsack, filled in the order of increasing θ. W̄ is the
    smallest of these over m and o.
    """
    largest = 0.0
    ceiling = 0.0
    for x in range(number):
        largest = max(largest, exits[x])
        ceiling += 2.0 * room[x]
        order[x] = x
    best = ceiling
    size = dimension + 1.0
    inverse_size = 1.0 / size
    deepest = 0
    shifts = 0
    shifted = 0.0  # Σ N_x·4^{o_x}
    fewest = largest  # the smallest N_x
    lowest = 4.0 * largest  # the smallest N_x·4^{o_x}, and the N_x that it belongs to
    fewest_shifted = largest
    logs = 0.0  # Σ log(N_x/S), as one logarithm of a product while the product does not overflow
    product = 1.0
    for x in range(number):
        # round(log₄(N_max/N_x)), exactly: a division by four has no rounding error.
        ratio = largest / exits[x]
        power = exits[x]
        steps = 0
        while ratio >= 2.0:
            ratio *= 0.25
            power *= 4.0
            steps += 1
        offset[x] = steps
        deepest = max(deepest, steps)
        shifts += steps
        shifted += power
        fewest = min(fewest, exits[x])
        if power < lowest:
            lowest = power
            fewest_shifted = exits[x]
        product *= exits[x] * inverse_size
        if product > 1e250 or product < 1e-250:
            logs += log(product)
            product = 1.0
    logs += log(product)
    likely = 0
    likely_scale = 1.0
    levels = 0
    scale = 1.0
    while scale <= 4.0 * (largest + 1.0):  # m = 0 … ⌊log₄(N_max + 1)⌋ + 1
        if scale * (2.0 * size) <= largest:
            likely = levels
            likely_scale = scale
        levels += 1
        scale *= 4.0
    # If all o are 0, the second and the third family equal the first one with a larger B.
    for family in range(3 if deepest > 0 else 1):  # all o = 0 | o as above, geometric prior | min(o, m), uniform prior
        prior = log_inverse
        if family == 1:
            prior += (shifts + number) * LOG_2
        for turn in range(2):  # upwards from the level that is likely to be the best one, then downwards from there
            up = turn == 0
            level = likely - 1 if up else likely
            scale = 0.25 * likely_scale if up else likely_scale  # 4^m
            while True:
                level += 1 if up else -1
                scale *= 4.0 if up else 0.25
                if level < 0 or level >= levels:
                    break
                # A lower bound of ΣW: log(1+v) ≥ log v and log(1+v) ≥ 2v/(2+v) in B; the smallest θ is filled first,
                # and all others are at most the largest. A level that cannot be better is skipped.
                mass = 0.5 * ceiling
                top = largest
                smallest = fewest
                least_room = 2.0 * fewest
                cost = logs - number * (level * LOG_4)
                if family == 1 or (family == 2 and level >= deepest):
                    mass = shifted
                    top = 2.0 * largest
                    smallest = lowest
                    least_room = 2.0 * fewest_shifted
                    cost += shifts * LOG_4
                elif family == 2:
                    top = 2.0 * largest
                    least_room = 0.0
                cost = max(cost, 2.0 * mass / (2.0 * size * scale + top))
                # A plan may expect larger counts than a study can reach, and so needs more levels.
                far = level >= LEVELS
                least = prior + (log(3.0 * (level + 1.0) * (level + 2.0)) if far else LEVEL_LOGS[level])
                if family == 2:
                    least += number * (log(level + 1.0) if far else UNIFORM_LOGS[level])
                # Upwards, 1/θ grows and B is never below its prior. Downwards, costs grow, except the third family's.
                if up and least * (1.0 + 2.0 * scale / top) * CERTAINLY > best:
                    break
                if not up and family < 2 and (prior + LEVEL_LOGS[0] + 0.5 * dimension * cost) * CERTAINLY > best:
                    break
                bound = least + 0.5 * dimension * cost
                share = smallest / (smallest + 2.0 * scale)
                total = bound / share
                if share * least_room <= bound:
                    total = least_room + (bound - share * least_room) * (1.0 + 2.0 * scale / top)
                if total * CERTAINLY > best:
                    continue
                bound = least
                inverse = 1.0 / scale
                product = 1.0
                for x in range(number):
                    shift = 0
                    if family == 1:
                        shift = offset[x]
                    elif family == 2:
                        shift = min(offset[x], level)
                    u = exits[x] * inverse  # N_x/ρ_x: powers of four are exact
                    while shift > 0:
                        u *= 4.0
                        shift -= 1
                    # Σ cost(u), cost(u) = (S−1)/2·log(1 + u/S): for large u/S as the logarithm of a product.
                    v = u * inverse_size
                    if v < 0.0625:
                        bound += 0.5 * dimension * log1p(v)
                    else:
                        product *= 1.0 + v
                        if product > 1e250:
                            bound += 0.5 * dimension * log(product)
                            product = 1.0
                    theta[x] = u / (u + 2.0) * (exits[x] / room[x])
                if product > 1.0:
                    bound += 0.5 * dimension * log(product)
                stride = 1  # Shell sort: nearly as short as an insertion sort, and fast enough for a million states
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
                best = min(best, knapsack(order, number, theta, room, bound))
    return best


def smoothing_excess(exits: Any, number: int, spread: float, weight: float) -> float:
    """r²·(1−1/S)·Σ_x N_x/(N_x+r)², r = αS: how far smoothing towards uniform rows can move ΣW."""
    total = 0.0
    for x in range(number):
        total += exits[x] / ((exits[x] + weight) * (exits[x] + weight))
    return weight * weight * spread * total


def combine(excess: float, smoothing: float, transitions: float) -> float:
    """b = (√W̄ + √smoothing)²/T, by the triangle inequality in the norm weighted by N_x."""
    root = math.sqrt(excess) + math.sqrt(smoothing)
    return root * root / transitions


def hole_excess(exits: Sequence[float], holes: Sequence[float], spread: float, weight: float) -> float:
    """How far smoothing and holes together can move ΣW: Σ_x N_x/(N_x+r)²·(√2·h_x + r·√spread)²."""
    root = weight * math.sqrt(spread)
    return sum(
        n / ((n + weight) * (n + weight)) * (math.sqrt(2.0) * h + root) ** 2 for n, h in zip(exits, holes, strict=True)
    )


def bound_from_exits(
    exits: Sequence[float],
    size: int,
    log_inverse: float,
    weight: float = 1 / 3,
    open_states: bool = False,
    holes: Sequence[float] | None = None,
    mute: Sequence[float] = (),
) -> float:
    """b for the exits of the states left at least once; ``weight`` is r = αS.

    It is 0 for a chain of one state, and else infinite without exits. ``holes``: of each of these states, the steps out
    of it whose outcomes are not known. ``mute``: the holes of each state that has nothing else.
    With ``open_states`` the chain may have more states than the ``size`` seen. Then cost(u) is its limit u/2 for large
    S, and 1 + 1/S′ replaces 1 − 1/S in the smoothing term (MATH §6).
    """
    if size == 1 and not open_states:
        return 0.0
    if not exits:
        return math.inf
    dimension, spread = size - 1.0, 1 - 1 / size
    if open_states:
        dimension, spread = OPEN, 1 + 1 / size
    lost = [0.0] * len(exits) if holes is None else holes
    # A row with holes alone has no part in the loss. It is counted like another row, which cannot make W̄ smaller.
    whole = [float(n + h) for n, h in zip(exits, lost, strict=True)] + [float(h) for h in mute]
    room = [w * w / n for n, w in zip(exits, whole, strict=False)] + whole[len(exits) :]
    number = len(whole)
    excess = largest_excess(
        whole, room, number, dimension, log_inverse, [0] * number, [0.0] * number, [0] * number
    )  # fmt: skip
    return combine(excess, hole_excess(exits, lost, spread, weight), float(sum(exits)))


def bounds(counts: Sequence[Counts], delta: float) -> list[float]:
    """b_k for every chain, with δ/K each: all hold at once with probability ≥ 1 − δ."""
    log_inverse = math.log(len(counts) / delta)
    return [bound_of(chain, log_inverse) for chain in counts]


def bound_of(counts: Counts, log_inverse: float) -> float:
    """b of one chain. It fails with probability at most e^{−log_inverse}."""
    known, mute = counts.holes_by_row()
    return bound_from_exits(
        counts.visited_exits(), counts.size, log_inverse, open_states=counts.open_states, holes=known, mute=mute
    )  # fmt: skip
