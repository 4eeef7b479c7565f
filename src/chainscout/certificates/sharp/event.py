"""The event on which ``sharp`` holds: its weights, the price of every choice, and a box for every entry.

The certificate rests on one martingale a chain (docs/certificates.md, step A):

    M = JOINT·Σ_f w_f Σ_m w_m E_o Π_x Z_x(ρ_x)  +  (SINGLE/S²)·Σ_{x,y} R_xy .

While M < K/δ, two things hold. For every family f, level m and offsets o, Σ_x log Z_x(ρ_x) ≤ B. And every probability
P(x,y) lies in a box. Everything that the validity of the bound depends on is in this file.
"""

import math
from typing import Any

#: The weights of the two parts of the martingale: joint tilts of all rows, and single entries.
JOINT, SINGLE = 0.85, 0.15
#: The families of offsets: all zero | geometric 1/2 | geometric 1/4 in steps of 16 | uniform on 0 … max(m, 0).
FAMILIES = 4
W_ZERO, W_HALF, W_QUARTER, W_UNIFORM = 0.74, 0.08, 0.10, 0.08
#: The least level, and the sum of 1/((k+1.5)(k+2.5)), k = max(1−m, m−2), over all levels m ≥ LEAST_LEVEL: the levels
#: from 2 on telescope to 1/1.5.
LEAST_LEVEL = -1
LEVEL_SUM = 1 / 1.5 + 1 / (1.5 * 2.5) + 1 / (2.5 * 3.5) + 1 / (3.5 * 4.5)
#: The weights of the parts of R_xy: never went to y | always went to y | the Beta(½,½) mixture.
NEVER, ALWAYS, BETA = 0.3, 0.3, 0.4
#: Two neighbouring levels at once: the mean of ρ and 4ρ over ρ, and what a dimension of a row costs for it.
PAIR_SCALE = 2.5
PAIR_COST = 0.5 * math.log(1.25)
#: No scale is below 4^LEAST_POWER: smaller ones are never useful.
LEAST_POWER = -5

#: An allowance for rounding errors: relative to the sum of the absolute values of all terms, and its least value.
RELATIVE, ABSOLUTE = 2e-15, 1e-9


def level_cost(m: int) -> float:
    """−log w_m."""
    k = max(1 - m, m - 2)
    return math.log((k + 1.5) * (k + 2.5) * LEVEL_SUM)


def family_cost(family: int) -> float:
    """−log w_f."""
    if family == 0:
        return -math.log(W_ZERO)
    if family == 1:
        return -math.log(W_HALF)
    if family == 2:
        return -math.log(W_QUARTER)
    return -math.log(W_UNIFORM)


def offset_cost(family: int, offset: int, m: int, pair: int) -> float:
    """−log of the probability of a visited row's offset at level m, or for the mean of the levels m and m + 1."""
    if family == 1:
        return (offset + 1) * math.log(2.0)
    if family == 2:
        return math.log(4.0 / 3.0) + offset * math.log(4.0)
    if family == 3:
        cost = math.log(max(m, 0) + 1.0)
        if pair == 1:
            cost = 0.5 * (cost + math.log(max(m + 1, 0) + 1.0))
        return cost
    return 0.0


def power(family: int, m: int, offset: int) -> int:
    """log₄ of the scale of a row."""
    return m - 2 * offset if family == 2 else m - offset


def scale(power: int, pair: int) -> float:
    """ρ = 4^power, or the mean of 4^power and 4·4^power."""
    rho = math.ldexp(1.0, 2 * power)
    return rho * PAIR_SCALE if pair == 1 else rho


def joint_cost(log_inverse: float, family: int, m: int, pair: int) -> float:
    """B without the rows' parts: log(K/δ) − log JOINT − log w_f − log w_m.

    For two levels at once, Jensen's inequality with weights ½, ½ gives the mean of both costs minus log 2.
    """
    cost = log_inverse - math.log(JOINT) + family_cost(family)
    if pair == 1:
        return cost + 0.5 * (level_cost(m) + level_cost(m + 1)) - math.log(2.0)
    return cost + level_cost(m)


def row_cost(family: int, offset: int, m: int, pair: int, dimension: float) -> float:
    """The amount that one visited row adds to B."""
    cost = offset_cost(family, offset, m, pair)
    if pair == 1:
        cost += PAIR_COST * dimension
    return cost


def entry_level(log_inverse: float, size: float) -> float:
    """log of the level that no R_xy exceeds: log(K/δ) + log(S²/SINGLE)."""
    return log_inverse + 2.0 * math.log(size) - math.log(SINGLE)


def log_gamma(x: float) -> float:
    """log Γ(x), x > 0, by Stirling's series from 12 on. It has the same bits wherever ``log`` has the same bits.

    The first omitted term is below 3e-15; ``log_beta_mixture`` allows for more.
    """
    product = 1.0
    while x < 12.0:
        product *= x
        x += 1.0
    y = 1.0 / (x * x)
    series = (1.0 / 12 - y * (1.0 / 360 - y * (1.0 / 1260 - y * (1.0 / 1680 - y / 1188)))) / x
    found = (x - 0.5) * math.log(x) - x + 0.5 * math.log(2.0 * math.pi) + series
    return found if product == 1.0 else found - math.log(product)


def log_beta_mixture(first: float, second: float, third: float) -> tuple[float, float]:
    """log of B(n + ½, N − n + ½)/B(½, ½) from log Γ of n + ½, N − n + ½ and N + 1, and a bound on its rounding."""
    return first + second - third - math.log(math.pi), ABSOLUTE + RELATIVE * (abs(first) + abs(second) + abs(third))


def box(count: float, exits: float, level: float, whole: float) -> tuple[float, float]:
    """An interval that contains P(x,y) while R_xy ≤ e^level, if ``count`` of ``exits`` steps went to y.

    ``whole`` is log Γ(exits + 1). If more than half of the steps went to y, the interval of 1 − P(x,y) is computed.
    """
    mixture, slack = log_beta_mixture(log_gamma(count + 0.5), log_gamma(exits - count + 0.5), whole)
    few = min(count, exits - count)
    low = 0.0
    if few <= 0.0:
        # (NEVER + BETA·B(½, N+½)/π)·(1−p)^{−N} ≤ e^level
        allowed = level + slack - math.log(NEVER + BETA * math.exp(mixture))
        high = min(1.0, -math.expm1(-allowed / exits) * (1.0 + 1e-12))
    else:
        least = mixture + math.log(BETA) - level - slack
        frequency = few / exits
        largest = few * math.log(frequency) + (exits - few) * math.log1p(-frequency)
        z = max(0.0, (largest - least) / exits)
        low = end(few, exits, least, frequency, z, -1.0)
        high = end(few, exits, least, frequency, z, 1.0)
    if count > few:
        return max(0.0, 1.0 - high), min(1.0, 1.0 - low)
    return low, high


def end(count: float, exits: float, least: float, frequency: float, z: float, side: float) -> float:
    """The p below (``side`` −1) or above (1) the frequency where the log-likelihood equals ``least``, from outside.

    The log-likelihood is concave: a Newton step from anywhere on that side of the frequency ends outside, and all later
    steps stay outside. Nz is how far the log-likelihood has to fall. This happens about where the angle of √p has
    moved by √(z/2).
    """
    rest = exits - count
    p = 1.0 if side > 0.0 else 0.0
    if z < 0.5:
        sine = math.sqrt(0.5 * z) * (1.0 - z / 12.0)
        turned = side * 2.0 * sine * math.sqrt((1.0 - sine * sine) * frequency * (1.0 - frequency))
        if side * (1.0 - 2.0 * frequency) * sine + 2.0 * math.sqrt(frequency * (1.0 - frequency)) > 0.0:
            p = frequency + (1.0 - 2.0 * frequency) * sine * sine + turned
    if side < 0.0 and not 0.05 * frequency < p < frequency:
        p = frequency * math.exp(-1.0 - z / frequency)
        if not p > 0.0:
            return 0.0
    if side > 0.0 and not frequency < p < 0.99:
        p = 0.5 * (1.0 + frequency)
    outside = False
    for _ in range(60):
        value = count * math.log(p) + rest * math.log1p(-p) - least
        move = value / (count / p - rest / (1.0 - p))
        was = p
        p -= move
        if side * (p - was) > 0.0:  # the step came from inside
            outside = 0.0 < p < 1.0
            if not outside:
                p = 0.5 * (was + (1.0 if side > 0.0 else 0.0))
                if min(p, 1.0 - p) < 1e-13:
                    return 1.0 if side > 0.0 else 0.0
        else:
            outside = True
            if abs(p - was) <= 1e-4 * min(abs(p - frequency), p, 1.0 - p) + 1e-15:
                break
    if not outside:
        return 1.0 if side > 0.0 else 0.0
    return min(1.0, p * (1.0 + side * 1e-11))


def boxes_of_row(table: Any, x: int, size: float, log_inverse: float, space: Any) -> None:
    """Fills ``space.low`` and ``space.high`` of a row's classes, and ``space.most`` with the most that they allow."""
    level = entry_level(log_inverse, size)
    weight = 1.0 / 3.0  # α·S
    exits = table.exits[x]
    first = table.start[x]
    last = table.stop[x]
    least = 0.0
    whole = log_gamma(exits + 1.0)
    for i in range(first, last):
        count = table.count[i]
        space.low[i], space.high[i] = box(count, exits, level, whole)
        space.estimate[i] = (count + weight / size) / (exits + weight)
        least += table.times[i] * space.low[i]
    for i in range(first, last):  # the other entries are at least at their lower ends
        space.high[i] = max(space.low[i], min(space.high[i], 1.0 - (least - space.low[i]) + 1e-12))
    space.most[x] = box_loss(table, x, space)


def box_loss(table: Any, x: int, space: Any) -> float:
    """An upper bound of N‖p − P̂‖² over the laws p in the boxes: min over ν of ν + Σ_y max_p (N(p − P̂)² − νp).

    Each maximum is at an end of its box. Any ν gives a valid bound; the bisection only makes it small.
    """
    exits = table.exits[x]
    first = table.start[x]
    last = table.stop[x]
    best: float = 2.0 * exits
    below = -2.0 * exits
    above = 2.0 * exits
    at_below = at_above = math.inf
    below_mass = above_mass = 0.0
    nu = 0.0
    for _ in range(26):
        total = nu
        magnitude = abs(nu)
        mass = 1.0
        for i in range(first, last):
            low = space.low[i]
            high = space.high[i]
            at_low = exits * (low - space.estimate[i]) * (low - space.estimate[i]) - nu * low
            at_high = exits * (high - space.estimate[i]) * (high - space.estimate[i]) - nu * high
            if at_high > at_low:
                total += table.times[i] * at_high
                magnitude += table.times[i] * abs(at_high)
                mass -= table.times[i] * high
            else:
                total += table.times[i] * at_low
                magnitude += table.times[i] * abs(at_low)
                mass -= table.times[i] * low
        best = min(best, total + RELATIVE * magnitude)
        if mass > 0.0:
            above, at_above, above_mass = nu, total, mass
        else:
            below, at_below, below_mass = nu, total, mass
        nu = 0.5 * (below + above)
        if at_above < math.inf and at_below < math.inf:  # go to where the tangents meet: a lower bound of the minimum
            meet = (at_above - above_mass * (above - below) - at_below) / (below_mass - above_mass)
            if best - (at_below + below_mass * meet) < 1e-6 * best:
                break
            nu = min(above - 0.02 * (above - below), max(below + 0.02 * (above - below), below + meet))
    return best
