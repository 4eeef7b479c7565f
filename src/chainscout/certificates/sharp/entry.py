"""One entry of a row: the largest h(p) = g(p − P̂)² − μφ(p) − νp over its box (step E of docs/certificates.md).

φ(p) = max_b {na − Npω(e^b − 1) − ρa²/2}, a = ωb − s, is a maximum of functions that are affine in p. So every b gives
an upper bound of h, and nothing has to converge.
"""

import math

#: The largest number of steps in the search for an entry's maximum.
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


def follow(b: float, away: float, wide: float) -> float:
    """Approximately the b of the point that is ``away`` from a p where dp/db = −``wide``: b − log(1 + away/wide)."""
    away = min(3.0 * wide, max(-0.9 * wide, away))
    return b - away * (6.0 * wide + away) / (wide * (6.0 * wide + 4.0 * away))


def entry(
    count: float, exits: float, square: float, estimate: float, low: float, high: float, shift: float,
    rho: float, omega: float, mu: float, nu: float, tolerance: float, tilt: float, top: float, top_grown: float,
) -> tuple[float, float, float, float, float, float, float, float, float, float, float]:  # fmt: skip
    """An upper bound of h(p) = g(p − P̂)² − μφ(p) − νp on [low, high], φ(p) = max_b {na − Npω(e^b−1) − ρa²/2}.

    ``square`` is g, and a = ωb − s. On the curve p(b) = (n − ρa)e^{−b}/N the maximum is attained, and
    φ″ = N²ωe^{2b}/(Npe^b + ρω) falls as p grows. So h is first concave, then convex. Where h is concave at p(b), h lies
    below its parabola at p(b) to the left of it, and below its tangent to the right of it while h stays concave. The
    walk in b ends where the bound is expected to be within ``tolerance`` of the maximum. It starts from ``tilt``;
    ``top`` is a b for ``high``, and ``top_grown`` is e^top.

    Also returns where the bound is attained, the sum of the terms' absolute values, the derivatives of p and b with
    respect to ν and c there, a (these for ω = 1), and the three numbers from which the next call starts.
    """
    b = tilt
    a = bend = slope = p = grown = stiff = curve = wide = 0.0
    # The maximum lies between b = ``least`` and b = ``most``.
    least = -math.inf
    most = math.inf
    last = False
    edge = high  # the concave part ends before this point, or at ``high``
    for turn in range(WALK):
        a = omega * b - shift
        force = count - rho * a
        if force < 0.0:  # go to p = 0
            b = (shift + count / rho) / omega
            a = omega * b - shift
            force = 0.0
        grown = math.exp(b)
        weight = exits * grown
        inverse = 1.0 / weight
        p = force * inverse
        stiff = force + rho * omega
        wide = stiff * inverse  # dp/db = −wide
        curve = mu * omega * weight * weight / stiff
        bend = 2.0 * square - curve
        slope = 2.0 * square * (p - estimate) + mu * exits * omega * (grown - 1.0) - nu
        if last or turn + 1 == WALK:
            break
        if bend >= 0.0:
            if p <= low:
                break
            edge = min(edge, p)
            if most < math.inf and slope > 0.0:  # h hardly falls anywhere: it is largest at the right end
                last = True
                b = most
                continue
            least = b  # go to the left, where h may be concave
            b = 0.5 * (b + most) if most < math.inf else b + 0.4
            continue
        aim = min(high, max(low, p - slope / bend))
        away = aim - p
        if slope <= 0.0 and p <= low:
            if curve * away * away < 2.0 * tolerance:
                break
            most = b
        elif slope <= 0.0 or p >= high:
            if curve * abs(away * away * away) < 3.0 * wide * tolerance:
                break
            least = b
        else:
            if slope * (edge - p) < tolerance:
                break
            most = b
            # A step that ends beyond the maximum: the parabola bounds h on the left.
            away = min(high + 0.01 * (high - low), p - 1.2 * slope / bend) - p
        if most - least < 1e-9:
            break
        ahead = follow(b, away, wide)
        if ahead >= most or ahead <= least:
            ahead = 0.5 * (least + most)
        b = ahead
    # For any b, φ is at least an affine function of p. With that function h is a convex quadratic: its maximum is at
    # one of the ends.
    base = count * a - 0.5 * rho * a * a
    steep = exits * omega * (grown - 1.0)
    left = square * (low - estimate) * (low - estimate) - mu * (base - steep * low) - nu * low
    right = square * (high - estimate) * (high - estimate) - mu * (base - steep * high) - nu * high
    value = max(left, right)
    beyond = 1.0 + p
    magnitude = (
        mu * (abs(count * a) + exits * (grown + 1.0) * beyond + 0.5 * rho * a * a)
        + square * beyond * beyond
        + abs(nu) * beyond
    )
    aim = low if left > right else high
    settled = False
    if bend < 0.0:
        here = square * (p - estimate) * (p - estimate) - mu * (base - steep * p) - nu * p
        settled = True
        if p >= high or (slope <= 0.0 and p > low):  # the parabola
            aim = min(high, max(low, p - slope / bend))
            away = aim - p
            peak = here + away * (slope + 0.5 * bend * away)
            magnitude += curve * away * away
        else:  # the tangent
            aim = low if slope <= 0.0 else min(high, max(low, p - slope / bend))
            peak = here + max(slope * (low - p), slope * (edge - p))
            if slope <= 0.0 and p < low:  # h may be convex already at low: h(low) counts too, and any b bounds it
                b_low = tilt_at(low, count, exits, shift, rho, omega, b, 3)
                a_low = omega * b_low - shift
                grown_low = math.exp(b_low)
                minorant = count * a_low - exits * low * omega * (grown_low - 1.0) - 0.5 * rho * a_low * a_low
                peak = max(peak, square * (low - estimate) * (low - estimate) - mu * minorant - nu * low)
                magnitude += mu * (abs(count * a_low) + exits * (grown_low + 1.0) + 0.5 * rho * a_low * a_low)
        if peak < value:
            at_high = -math.inf
            if p < high:
                at_high, size_high, top, top_grown = at_right_end(
                    count,
                    exits,
                    square,
                    estimate,
                    high,
                    shift,
                    rho,
                    omega,
                    mu,
                    nu,
                    peak,
                    b,
                    (high - p) / wide,
                    2.0 - p / wide,
                    top,
                    top_grown,
                )
            value = min(value, max(peak, at_high))
            if at_high > peak:
                magnitude += size_high
                aim = high
                settled = False
                a = omega * top - shift
                grown = top_grown
                p = high
    elif p <= low:  # convex on the whole box: the maximum is h(low) or h(high)
        b_low = tilt_at(low, count, exits, shift, rho, omega, b, 3) if low > 0.0 else 0.0
        a_low = omega * b_low - shift
        grown_low = math.exp(b_low)
        minorant = 0.5 * count * count / rho
        if low > 0.0:
            minorant = count * a_low - exits * low * omega * (grown_low - 1.0) - 0.5 * rho * a_low * a_low
        at_low = square * (low - estimate) * (low - estimate) - mu * minorant - nu * low
        at_high, size_high, top, top_grown = at_right_end(
            count,
            exits,
            square,
            estimate,
            high,
            shift,
            rho,
            omega,
            mu,
            nu,
            at_low,
            b,
            (high - p) / wide,
            2.0 - p / wide,
            top,
            top_grown,
        )
        if max(at_low, at_high) < value:
            value = max(at_low, at_high)
            magnitude += size_high + mu * (abs(count * a_low) + exits * (grown_low + 1.0) + abs(minorant))
        a = a_low
        grown = grown_low
        p = aim = low
        if at_high > at_low:
            p = aim = high
            a = omega * top - shift
            grown = top_grown
    # Move to the point where the bound is attained.
    inverse = 1.0 / (exits * p * grown + rho)
    b_p = -exits * grown * inverse
    by_nu = 0.0
    by_c = 0.0
    if settled:
        a += omega * b_p * (aim - p)
        if low < aim < high:
            by_nu = 1.0 / bend
            by_c = -mu * rho * b_p * by_nu
    else:  # b need not be the best one there: this a makes μρa the derivative of the bound with respect to c
        a = (count - exits * aim * grown) / rho
    b_c = b_p * by_c - rho * inverse
    return value, aim, magnitude, by_nu, by_c, b_p * by_nu, b_c, a, b, top, top_grown


def at_right_end(
    count: float, exits: float, square: float, estimate: float, high: float, shift: float, rho: float, omega: float,
    mu: float, nu: float, peak: float, b: float, away: float, bow: float, top: float, top_grown: float,
) -> tuple[float, float, float, float]:  # fmt: skip
    """An upper bound of h(high), or −∞ if h is concave up to ``high``; the sum of the terms' sizes; b and e^b.

    h is concave up to ``high`` if it is concave at some p(b) ≥ high. Any b gives a bound of h(high). ``top``, the b of
    the last call, is tried first, with its e^b. ``b`` belongs to a point ``away`` to the left of ``high``, in units of
    dp/db, which itself grows by ``bow`` per unit of p. While the bound is above ``peak``, b is improved.
    """
    found = math.inf
    magnitude = 0.0
    for turn in range(4):
        if turn == 1:
            top = b - math.log1p(bow * away) / bow
        elif turn == 2:  # try beyond ``high``, where h may be concave
            top = b - math.log1p(away)
        elif turn == 3:
            top = tilt_at(high, count, exits, shift, rho, omega, b - math.log1p(bow * away) / bow, 4)
        if turn > 0:
            top_grown = math.exp(top)
        a = omega * top - shift
        force = count - rho * a
        weight = exits * top_grown
        if (
            force >= high * weight
            and mu * omega * weight * weight >= 2.0 * square * (force + rho * omega)
        ):  # fmt: skip
            return -math.inf, 0.0, top, top_grown
        minorant = count * a - exits * high * omega * (top_grown - 1.0) - 0.5 * rho * a * a
        found = square * (high - estimate) * (high - estimate) - mu * minorant - nu * high
        magnitude = mu * (abs(count * a) + exits * high * (top_grown + 1.0) + 0.5 * rho * a * a) + square + abs(nu)
        if found <= peak:
            break
    return found, magnitude, top, top_grown


def mode_cell(
    count: float, exits: float, estimate: float, left: float, right: float, shift: float, rho: float, mu: float,
    nu: float, lean: float,
) -> tuple[float, float, float, float, float, float]:  # fmt: skip
    """An upper bound of the h of ``entry`` on a narrow cell, whether h is concave or convex there.

    φ is at least each of its tangents: one at the middle of the cell, and one near each end. With the largest of them
    h is piecewise a convex quadratic, so its maximum is at an end or where two tangents meet. Returns the bound, the
    sum of the terms' absolute values, the part that is due to the cell's width, and a, e^b and b of the middle.
    ``lean`` is a b to start from.
    """
    middle = 0.5 * (left + right)
    b = tilt_at(middle, count, exits, shift, rho, 1.0, lean, 2)
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
    return value, size_of, value - inside, a, grown, b
