"""The bound of one chain: the smallest that the event gives, over scales, multipliers and the two lemmas.

For every family f, level m, offsets o and multiplier μ ≥ 0 (step D of docs/certificates.md)

    T·L ≤ μ·B(f, m, o) + Σ_x (the row's term at μ and ρ_x),

and ``mixture``'s lemma holds on the same event. A cheap score chooses f, m, o and a first μ; a few evaluations along μ
follow. Whatever is chosen is valid.
"""

import math
from typing import Any, NamedTuple

from .event import (
    ABSOLUTE,
    FAMILIES,
    LEAST_LEVEL,
    LEAST_POWER,
    PAIR_COST,
    boxes_of_row,
    joint_cost,
    offset_cost,
    power,
    row_cost,
    scale,
)
from .row import row_term

#: The multipliers that the score looks at: 0.7·(the largest v)·STEP^g.
MULTIPLIERS, STEP = 24, 1.19
#: The evaluations along μ of one choice of scales, at most, and how far log μ moves at first.
EVALUATIONS = 7
#: How exactly a row's term is found, as a part of the whole.
TOLERANCE = 0.006
#: The levels that there is room for: from LEAST_POWER to two above log₄ of 2⁵³.
LEVELS = 2 * (30 - LEAST_POWER)


class Table(NamedTuple):
    """One chain's counts, as the kernels take them: the rows with exits, each as classes of equal counts."""

    #: Row x has the classes start[x] … stop[x] − 1; the first of them is the row's most frequent successor alone.
    start: Any
    stop: Any
    #: N[x,y] of a class, and how many entries it has.
    count: Any
    times: Any
    #: N_x.
    exits: Any


class Space(NamedTuple):
    """Scratch space, and what is known of the last solution."""

    # a class each
    low: Any
    high: Any
    estimate: Any
    mean: Any
    half: Any
    tilt: Any
    top: Any
    lean: Any
    # a row each
    most: Any
    spread: Any
    centre: Any
    multiplier: Any
    apart: Any
    apart_tilt: Any
    rho: Any
    theta: Any
    term: Any
    natural: Any
    offset: Any
    trial: Any
    order: Any
    # a cell each
    left: Any
    right: Any
    cell_term: Any
    cell_gap: Any
    cell_tied: Any
    cell_c: Any
    cell_nu: Any
    cell_c_drift: Any
    cell_nu_drift: Any
    # a row and level each
    cost: Any
    # what was chosen: family, level, pair, μ, and the smallest bound; two numbers of the last cell
    chosen: Any
    drift: Any


def evaluate(table: Any, rows: int, size: float, log_inverse: float, spare: float, space: Any) -> float:
    """T·b, T times the bound: the full search. ``size`` is S ≥ 2, ``rows`` ≥ 1.

    The search is made for ``log_inverse`` ≥ log(K/δ), and the bound given for log(K/δ) = ``log_inverse`` − ``spare``:
    the rows' terms hold there too, and only B is smaller. What is looked at does not depend on ``spare``, so that with
    the same ``log_inverse`` a smaller δ never has a smaller bound.
    """
    for x in range(rows):
        boxes_of_row(table, x, size, log_inverse, space)
    best = 0.0
    largest = 0.0
    for x in range(rows):
        best += space.most[x]
        largest = max(largest, table.exits[x])
    space.chosen[0] = -1.0
    guess_spread(table, rows, space)
    natural_offsets(table, rows, largest, space)
    top = LEAST_LEVEL  # ⌊log₄(N_max + 1)⌋ + 2
    while math.ldexp(1.0, 2 * top) <= 16.0 * (largest + 1.0):
        top += 1
    top -= 1
    costs(table, rows, size, top, space)
    space.chosen[4] = min(best, lemma(table, rows, size, log_inverse - spare, top, space))
    best = min(best, lemma(table, rows, size, log_inverse, top, space))
    reach = math.inf
    for family in range(FAMILIES):
        estimate, m, pair, mu = score(table, rows, size, log_inverse, family, top, space)
        if family == 0:
            reach = estimate
        if estimate > 1.1 * reach:
            continue
        reach = min(reach, estimate)
        best = descend(table, rows, size, log_inverse, spare, family, m, pair, mu, best, space)
    found: float = space.chosen[4]
    return found * (1.0 + ABSOLUTE)


def refresh(table: Any, rows: int, size: float, log_inverse: float, space: Any) -> float:
    """T·b at the scales and the μ of the last full search; keeps every row's term, so that ``move`` can go on."""
    if space.chosen[0] < 0.0:
        return math.inf
    total: float = space.chosen[3] * prepared(
        table, rows, size, log_inverse, int(space.chosen[0]), int(space.chosen[1]), int(space.chosen[2]), space
    )
    tolerance = TOLERANCE * total / rows
    for x in range(rows):
        space.term[x] = row_term(table, x, size, space.rho[x], space.chosen[3], tolerance, space)
        total += space.term[x]
    return total * (1.0 + ABSOLUTE)


def move(table: Any, rows: int, size: float, log_inverse: float, moved: int, space: Any) -> float:
    """T·b after row ``moved`` has changed: μ, scales and the other rows' terms are those of the last time.

    B and the boxes of the row are computed again. A row's term depends on its own counts, μ, ρ_x, S, K and δ alone.
    """
    boxes_of_row(table, moved, size, log_inverse, space)
    best = 0.0
    largest = 0.0
    for x in range(rows):
        best += space.most[x]
        largest = max(largest, table.exits[x])
    if space.chosen[0] >= 0.0:
        family, m, pair = int(space.chosen[0]), int(space.chosen[1]), int(space.chosen[2])
        mu = space.chosen[3]
        total = mu * prepared(table, rows, size, log_inverse, family, m, pair, space)
        space.term[moved] = row_term(table, moved, size, space.rho[moved], mu, TOLERANCE * total / rows, space)
        for x in range(rows):
            total += space.term[x]
        best = min(best, total)
    natural_offsets(table, rows, largest, space)
    top = LEAST_LEVEL
    while math.ldexp(1.0, 2 * top) <= 16.0 * (largest + 1.0):
        top += 1
    best = min(best, lemma(table, rows, size, log_inverse, top - 1, space))
    return best * (1.0 + ABSOLUTE)


def guess_spread(table: Any, rows: int, space: Any) -> None:
    """v_x, the largest variance of a direction in row x, guessed from above."""
    for x in range(rows):
        first = table.start[x]
        mode = space.estimate[first]
        rest = 1.0 - mode
        rest += 0.3 * max(0.0, 1.0 - space.low[first] - rest)
        second = 0.0
        for i in range(first + 1, table.stop[x]):
            second = max(second, space.estimate[i] + 0.3 * max(0.0, space.high[i] - space.estimate[i]))
        space.spread[x] = mode * (rest + second) / (mode + rest)
        space.centre[x] = 0.0
        space.multiplier[x] = 0.0


def natural_offsets(table: Any, rows: int, largest: float, space: Any) -> None:
    """log₄(N_max/N_x), rounded to a whole number."""
    for x in range(rows):
        ratio = largest / table.exits[x]
        steps = 0
        while ratio >= 2.0:
            ratio *= 0.25
            steps += 1
        space.natural[x] = steps


def costs(table: Any, rows: int, size: float, top: int, space: Any) -> None:
    """½·log det(I + u·Σ̂) of every row at every scale, for the score."""
    for x in range(rows):
        for j in range(2 * (top - LEAST_POWER) + 2):
            u = table.exits[x] / scale(LEAST_POWER + j // 2, j % 2)
            beta = 0.0
            logs = 0.0
            for i in range(table.start[x], table.stop[x]):
                p = space.estimate[i]
                beta += table.times[i] * p / (1.0 + u * p)
                logs += table.times[i] * math.log1p(u * p)
            space.cost[x * LEVELS + j] = 0.5 * (logs + math.log(beta)) + (j % 2) * PAIR_COST * (size - 1.0)


def score(
    table: Any, rows: int, size: float, log_inverse: float, family: int, top: int, space: Any
) -> tuple[float, int, int, float]:
    """A guess of the smallest bound of a family: its value, level, pair and μ; the offsets go to ``space.offset``."""
    widest = 0.0
    for x in range(rows):
        widest = max(widest, space.spread[x])
    best = math.inf
    best_m = 0
    best_pair = 0
    best_mu = widest
    for double in range(2 * LEAST_LEVEL, 2 * top + 1):
        m = double // 2
        pair = double % 2
        base = joint_cost(log_inverse, family, m, pair)
        most = 0
        if family == 1:
            most = m - LEAST_POWER
        elif family == 2:
            most = (m - LEAST_POWER) // 2
        elif family == 3:
            most = max(m, 0)
        mu = 0.7 * widest
        before = math.inf
        for _ in range(MULTIPLIERS):
            total = mu * base
            for x in range(rows):
                least = math.inf
                at = 0
                for offset in range(most + 1):
                    exponent = power(family, m, offset)
                    u = table.exits[x] / scale(exponent, pair)
                    value = mu * (
                        space.cost[x * LEVELS + 2 * (exponent - LEAST_POWER) + pair]
                        + offset_cost(family, offset, m, pair)
                    )
                    over = 1.0 - 0.5 * mu / (space.spread[x] + 1.0 / u)
                    if over > 0.0:
                        value += over * space.most[x]
                    if value < least:
                        least = value
                        at = offset
                total += least
                space.trial[x] = at
            if total < best:
                best = total
                best_m = m
                best_pair = pair
                best_mu = mu
                for x in range(rows):
                    space.offset[family * rows + x] = space.trial[x]
            if total > before:  # it falls, and then it grows
                break
            before = total
            mu *= STEP
    return best, best_m, best_pair, best_mu


def prepared(
    table: Any, rows: int, size: float, log_inverse: float, family: int, m: int, pair: int, space: Any
) -> float:
    """B of a choice of scales; each row's ρ goes to ``space.rho``."""
    bound = joint_cost(log_inverse, family, m, pair) + ABSOLUTE
    for x in range(rows):
        offset = space.offset[family * rows + x]
        space.rho[x] = scale(power(family, m, offset), pair)
        bound += row_cost(family, offset, m, pair, size - 1.0)
    return bound


def descend(
    table: Any, rows: int, size: float, log_inverse: float, spare: float, family: int, m: int, pair: int, mu: float,
    best: float, space: Any,
) -> float:  # fmt: skip
    """The smaller of ``best`` and what a search along log μ finds at these scales: downhill, then by parabolas.

    ``space.chosen[4]`` becomes the smallest of all bounds at log(K/δ) = ``log_inverse`` − ``spare``.
    """
    bound = prepared(table, rows, size, log_inverse, family, m, pair, space)
    # Three points, the middle one the lowest; what is not known is infinite.
    left = middle = right = math.log(mu)
    at_left = at_middle = at_right = math.inf
    at = middle
    step = 0.22
    for _ in range(EVALUATIONS):
        mu = math.exp(at)
        total = mu * bound
        tolerance = TOLERANCE * best / rows
        for x in range(rows):
            space.term[x] = row_term(table, x, size, space.rho[x], mu, tolerance, space)
            total += space.term[x]
        space.chosen[4] = min(space.chosen[4], total - mu * spare)
        if total < best:
            best = total
            space.chosen[0] = family
            space.chosen[1] = m
            space.chosen[2] = pair
            space.chosen[3] = mu
        if total < at_middle:
            if at > middle:
                left, at_left = middle, at_middle
            elif at < middle:
                right, at_right = middle, at_middle
            middle, at_middle = at, total
        elif at > middle:
            right, at_right = at, total
        else:
            left, at_left = at, total
        if at_right == math.inf:
            at = middle + step
            step *= 1.5
        elif at_left == math.inf:
            at = middle - step
            step *= 1.5
        else:
            below, above = middle - left, right - middle
            fall, rise = (at_middle - at_left) / below, (at_right - at_middle) / above
            at = middle - 0.5 * (fall * above + rise * below) / (rise - fall)
            near = 0.1 * min(below, above)
            if abs(at - middle) < near:
                at = middle + near if above > below else middle - near
            if (rise - fall) * near * near < 0.5 * TOLERANCE * at_middle and right - left < 0.3:
                break
    return best


def lemma(table: Any, rows: int, size: float, log_inverse: float, top: int, space: Any) -> float:
    """§7's bound on this event: the largest Σ_x W_x with Σ_x θ_x W_x ≤ B, then what smoothing can do."""
    best = 0.0
    moved = 0.0
    for x in range(rows):
        best += 2.0 * table.exits[x]
        moved += table.exits[x] / ((table.exits[x] + 1.0 / 3.0) * (table.exits[x] + 1.0 / 3.0))
        space.order[x] = x
    moved *= (1.0 - 1.0 / size) / 9.0
    for family in range(FAMILIES):
        for double in range(2 * LEAST_LEVEL, 2 * top + 1):
            m = double // 2
            pair = double % 2
            bound = joint_cost(log_inverse, family, m, pair) + ABSOLUTE
            for x in range(rows):
                offset = 0
                if family == 1:
                    offset = min(space.natural[x], m - LEAST_POWER)
                elif family == 2:
                    offset = min((space.natural[x] + 1) // 2, (m - LEAST_POWER) // 2)
                elif family == 3:
                    offset = min(space.natural[x], max(m, 0))
                rho = scale(power(family, m, offset), pair)
                bound += row_cost(family, offset, m, pair, size - 1.0)
                bound += 0.5 * (size - 1.0) * math.log1p(table.exits[x] / rho / size)
                space.theta[x] = table.exits[x] / (table.exits[x] + 2.0 * rho)
            best = min(best, knapsack(table, rows, bound * (1.0 + 1e-12), space))
    root = math.sqrt(best) + math.sqrt(moved)
    return root * root


def knapsack(table: Any, rows: int, bound: float, space: Any) -> float:
    """The largest Σ_x W_x with Σ_x θ_x W_x ≤ bound and 0 ≤ W_x ≤ 2N_x: filled by increasing θ."""
    stride = 1
    while 3 * stride + 1 < rows:
        stride = 3 * stride + 1
    while stride > 0:
        for i in range(stride, rows):
            x = space.order[i]
            j = i - stride
            while j >= 0 and space.theta[space.order[j]] > space.theta[x]:
                space.order[j + stride] = space.order[j]
                j -= stride
            space.order[j + stride] = x
        stride //= 3
    total: float = 0.0
    for i in range(rows):
        x = space.order[i]
        room = 2.0 * table.exits[x]
        if space.theta[x] * room > bound:
            filled: float = total + bound / space.theta[x]
            return filled
        total += room
        bound -= space.theta[x] * room
    return total
