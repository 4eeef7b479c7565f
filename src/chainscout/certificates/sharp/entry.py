"""One entry of a row: the largest h(p) = N(p − P̂)² − μφ(p) − νp over its box (step E of docs/certificates.md).

φ(p) = max_b {na − Npω(e^b − 1) − ρa²/2}, a = ωb − s, is a maximum of functions that are affine in p. So every b gives
an upper bound of h, and nothing has to converge.
"""

import math
from typing import Any

#: The most steps to the largest value of an entry.
WALK = 12


def tilt_at(
    p: float, count: float, exits: float, shift: float, rho: float, omega: float, start: float, steps: int
) -> float:
    """b with Npe^b + ρ(ωb − s) ≈ n: the best tilt for the probability p. Any b is valid."""
    b = start
    weight = exits * p
    for _ in range(steps):
        force = weight * math.exp(b)
        move = (count - force - rho * (omega * b - shift)) / (force + rho * omega)
        b += min(1.0, max(-2.0, move))
    return b


def entry(
    count: float, exits: float, estimate: float, low: float, high: float, shift: float,
    rho: float, omega: float, mu: float, nu: float, place: int, space: Any,
) -> tuple[float, float, float, float, float, float, float, float]:  # fmt: skip
    """An upper bound of h(p) = N(p − P̂)² − μφ(p) − νp on [low, high], φ(p) = max_b {na − Npω(e^b−1) − ρa²/2}.

    Here a = ωb − s. On the curve p(b) = (n − ρa)e^{−b}/N the maximum is attained, and φ″ = N²ωe^{2b}/(Npe^b + ρω)
    falls as p grows: h is first concave, then convex. Gives also where the bound is attained, the sum of the terms'
    sizes, the derivatives of p and b by ν and c there (for ω = 1), and a.
    """
    # Is h concave up to ``high``? It is if it is at a p(b) ≥ high. If that is not certain, h(high) takes part.
    b = space.top[place]
    grown = math.exp(b)
    force = count - rho * (omega * b - shift)
    at_high = -math.inf
    size_high = 0.0
    b_high = b
    if force < high * exits * grown or mu * exits * omega * grown * grown < 2.0 * (force + rho * omega):
        b_high = tilt_at(high, count, exits, shift, rho, omega, b, 4)
        space.top[place] = b_high - 0.02
        grown = math.exp(b_high)
        a = omega * b_high - shift
        minorant = count * a - exits * high * omega * (grown - 1.0) - 0.5 * rho * a * a
        at_high = exits * (high - estimate) * (high - estimate) - mu * minorant - nu * high
        size_high = mu * (abs(count * a) + exits * high * (grown + 1.0) + 0.5 * rho * a * a) + exits + abs(nu)
    # Walk in b to where h is flat, or to the end of the box where it is largest. The slope of h grows with b.
    b = space.tilt[place]
    a = bend = slope = p = 0.0
    least = -math.inf
    most = math.inf
    clamped = False
    limit = (shift + count / rho) / omega  # p = 0
    for turn in range(WALK):
        b = min(b, limit)
        a = omega * b - shift
        grown = math.exp(b)
        force = max(0.0, count - rho * a)
        p = force / (grown * exits)
        bend = 2.0 * exits - mu * exits * exits * omega * grown * grown / (force + rho * omega)
        slope = 2.0 * exits * (p - estimate) + mu * exits * omega * (grown - 1.0) - nu
        if clamped or turn + 1 == WALK:
            break
        if bend >= 0.0:
            if p <= low:
                break
            if most < math.inf and slope > 0.0:  # h rises from its concave part on: it is largest at the right end
                clamped = True
                b = most
                continue
            least = b  # to the left, where h may be concave
            b = 0.5 * (b + most) if most < math.inf else b + 0.4
            continue
        if slope < 0.0:
            least = b
            if p <= low:
                clamped = True
                b = tilt_at(low, count, exits, shift, rho, omega, b, 4)
                continue
        else:
            most = b
            if p >= high:
                clamped = True
                b = tilt_at(high, count, exits, shift, rho, omega, b, 4)
                continue
        if abs(slope) * (high - low) < 5e-4 * mu or most - least < 1e-6:
            break
        move = slope / bend * exits * grown / (force + rho * omega)  # dp = −slope/bend, dp/db = −(Npe^b + ρω)/(Ne^b)
        ahead = b + min(1.0, max(-1.0, move))
        if ahead >= most or ahead <= least:
            ahead = 0.5 * (least + most)
        b = ahead
    space.tilt[place] = b
    # For any b, φ is at least an affine function of p. With it h is a convex quadratic, and the ends decide.
    base = count * a - 0.5 * rho * a * a
    left = exits * (low - estimate) * (low - estimate) - mu * (base - exits * low * omega * (grown - 1.0)) - nu * low
    right = (
        exits * (high - estimate) * (high - estimate) - mu * (base - exits * high * omega * (grown - 1.0)) - nu * high
    )
    value = max(left, right)
    magnitude = mu * (abs(count * a) + exits * (grown + 1.0) + 0.5 * rho * a * a) + exits + abs(nu)
    if bend <= 0.0:  # the tangent at p(b), and h(high) if h may be convex there
        tangent = exits * (p - estimate) * (p - estimate) - mu * (base - exits * p * omega * (grown - 1.0)) - nu * p
        tangent += max(slope * (low - p), slope * (high - p))
        magnitude += (2.0 * exits + mu * exits * (grown + 1.0) + abs(nu)) * (high - low)
        if max(tangent, at_high) < value:
            value = tangent
            if at_high > value:
                value = at_high
                magnitude = size_high
                p = high
                bend = 0.0
                a = omega * b_high - shift
                grown = math.exp(b_high)
    elif p <= low and at_high > -math.inf:  # convex on the whole box: h(low) and h(high) decide
        b = tilt_at(low, count, exits, shift, rho, omega, b, 3) if low > 0.0 else 0.0
        a = omega * b - shift
        grown = math.exp(b)
        minorant = 0.5 * count * count / rho
        if low > 0.0:
            minorant = count * a - exits * low * omega * (grown - 1.0) - 0.5 * rho * a * a
        at_low = exits * (low - estimate) * (low - estimate) - mu * minorant - nu * low
        if max(at_low, at_high) < value:
            value = max(at_low, at_high)
            magnitude += size_high + mu * (abs(count * a) + exits * (grown + 1.0) + abs(minorant)) + exits + abs(nu)
        p = low if at_low > at_high else high
        if at_high > at_low:
            a = omega * b_high - shift
            grown = math.exp(b_high)
    p = min(high, max(low, p))
    if clamped and bend < 0.0:
        p = low if slope < 0.0 else high
    force = exits * p * grown
    by_nu = 0.0
    by_c = 0.0
    if bend < 0.0 and low < p < high and not clamped:
        by_nu = 1.0 / bend
        by_c = mu * exits * grown * rho / ((force + rho) * bend)
    b_p = -exits * grown / (force + rho)
    return value, p, magnitude, by_nu, by_c, b_p * by_nu, b_p * by_c - rho / (force + rho), a


def mode_cell(
    count: float, exits: float, estimate: float, left: float, right: float, shift: float, rho: float, mu: float,
    nu: float, x: int, space: Any,
) -> tuple[float, float, float, float, float]:  # fmt: skip
    """An upper bound of the h of ``entry`` on a cell that is narrow, wherever h bends.

    φ is at least each of its tangents: at the middle of the cell, and about at its ends. With the largest of them h is
    piecewise a convex quadratic: the ends and the points where tangents meet decide. Gives the bound, the sum of the
    terms' sizes, what is due to the cell's width, and a and e^b of the middle.
    """
    middle = 0.5 * (left + right)
    b = tilt_at(middle, count, exits, shift, rho, 1.0, space.lean[x], 2)
    space.lean[x] = b
    grown = math.exp(b)
    a = b - shift
    base = count * a - 0.5 * rho * a * a
    steep = exits * (grown - 1.0)  # φ ≥ base − steep·p
    value = exits * (middle - estimate) * (middle - estimate) - mu * (base - steep * middle) - nu * middle
    size_of = mu * (abs(count * a) + 0.5 * rho * a * a + exits * (grown + 1.0)) + exits + abs(nu)
    inside = value
    bow = exits * grown / (exits * middle * grown + rho)  # −db/dp
    for side in range(2):
        end = left if side == 0 else right
        b_end = b - bow * (end - middle)
        a_end = b_end - shift
        grown_end = math.exp(b_end)
        base_end = count * a_end - 0.5 * rho * a_end * a_end
        steep_end = exits * (grown_end - 1.0)
        size_of += mu * (abs(count * a_end) + 0.5 * rho * a_end * a_end + exits * (grown_end + 1.0))
        minorant = max(base - steep * end, base_end - steep_end * end)
        value = max(value, exits * (end - estimate) * (end - estimate) - mu * minorant - nu * end)
        if steep_end != steep:
            meet = (base_end - base) / (steep_end - steep)
            if min(middle, end) < meet < max(middle, end):
                here = exits * (meet - estimate) * (meet - estimate) - mu * (base - steep * meet) - nu * meet
                value = max(value, here)
    return value, size_of, value - inside, a, grown
