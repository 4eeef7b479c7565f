"""One row's term of the bound: the largest N‖p − P̂‖² − μ·(a lower bound of log Z_x) over the laws p in the boxes.

Steps B to E of docs/certificates.md. The lower bound of log Z_x is a maximum of functions that are affine in p once the
probability of the row's most frequent successor, its mode, is confined to a cell. So the mode's box is cut into cells,
and in each cell every entry has a problem of its own, in one dimension. A class is a set of entries with equal counts;
the first class of a row is the mode alone. Every choice made here (p̄, cells, a, c, ν, b) is valid; good ones make the
bound small.
"""

import math
from typing import Any

from .event import RELATIVE

#: The most cells that a mode's box is cut into.
CELLS = 64
#: The cells on either side of the estimate to begin with, and the most cells in which entries are tied to the mode.
SIDE, WORK = 6, 48
#: The most of Newton's steps in a cell.
PASSES = 14
#: The most steps to the largest value of an entry.
WALK = 12
#: p̄ = P̂ + (PUSH/S)·(up − P̂) off the mode, normalised.
PUSH = 0.1


def shape(table: Any, x: int, size: float, rho: float, space: Any) -> float:
    """KL₀ of the tilts' law N(a, C/ρ), C = (I + u(diag p̄ − p̄p̄ᵀ))⁻¹; t_y/2 of each class goes to ``space.half``.

    With A = 1 + u·p̄ and β = Σ p̄/A (Sherman–Morrison), t_y = [Σ_i d_i²/A_i + u(Σ_i p̄_i d_i/A_i)²/β]/ρ, d = e_y − p̄.
    """
    first = table.start[x]
    last = table.stop[x]
    exits = table.exits[x]
    u = exits / rho
    total = 0.0
    for i in range(first, last):
        mean = space.estimate[i]
        if i > first and space.high[i] > mean:
            mean += PUSH / size * (space.high[i] - mean)
        space.mean[i] = mean
        total += table.times[i] * mean
    beta = 0.0
    squares = 0.0  # Σ p̄²/A off the mode
    rest = 0.0  # 1 − p̄ of the mode
    trace = 0.0
    logs = 0.0
    for i in range(first, last):
        mean = space.mean[i] / total
        space.mean[i] = mean
        times = table.times[i]
        inverse = 1.0 / (1.0 + u * mean)
        beta += times * mean * inverse
        trace += times * inverse
        logs += times * math.log1p(u * mean)
        if i > first:
            squares += times * mean * mean * inverse
            rest += times * mean
    mode = space.mean[first]
    inverse = 1.0 / (1.0 + u * mode)
    own = mode * mode * inverse
    # tr C = Σ 1/A + u·Σ p̄²/A²/β
    second = mode * mode * inverse * inverse
    for i in range(first + 1, last):
        mean = space.mean[i]
        there = 1.0 / (1.0 + u * mean)
        second += table.times[i] * mean * mean * there * there
        centred = mean * there - own - squares
        spread = (1.0 - mean) * (1.0 - mean) * there + own + max(0.0, squares - mean * mean * there)
        space.half[i] = half_variance(spread + u * centred * centred / beta, rho)
    centred = mode * rest * inverse - squares
    space.half[first] = half_variance(rest * rest * inverse + squares + u * centred * centred / beta, rho)
    bend = u * second / beta
    divergence: float = 0.5 * (trace + bend - size + logs + math.log(beta))
    slack: float = RELATIVE * (trace + bend + size + logs + abs(math.log(beta)))
    return divergence + slack


def half_variance(scaled: float, rho: float) -> float:
    """t/2, rounded upwards."""
    return 0.5 * (scaled * (1.0 + 1e-12) + 1e-14) / rho


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


def balance(table: Any, x: int, mode: float, rho: float, start: float, space: Any) -> float:
    """c with Σ_y a_y ≈ 0 if the mode has the probability ``mode`` and the entries share the rest as estimated."""
    first = table.start[x]
    exits = table.exits[x]
    c = start
    share = (1.0 - mode) / (1.0 - space.estimate[first])
    for i in range(first, table.stop[x]):
        space.lean[i] = 0.0
    for _ in range(4):
        total = 0.0
        slope = 0.0
        for i in range(first, table.stop[x]):
            p = mode if i == first else share * space.estimate[i]
            a = space.lean[i]
            force = exits * p * math.exp(a + space.half[i] - c)
            a += min(1.0, max(-2.0, (table.count[i] - force - rho * a) / (force + rho)))
            space.lean[i] = a
            total += table.times[i] * a
            slope += table.times[i] * force / (force + rho)
        move = -total / slope
        if not abs(move) < 1e300:
            return start
        c += min(0.5, max(-0.5, move))
        if abs(move) < 1e-3:
            break
    return c


def tied(
    table: Any, x: int, left: float, right: float, rho: float, mu: float, c: float, nu: float,
    enough: float, tolerance: float, space: Any,
) -> tuple[float, float, float, float, bool]:  # fmt: skip
    """The row's term without μ·KL₀ while the mode's probability is in [left, right], entries tied to the mode.

    c and ν start as given and go to where the term is least, Σ_y a_y = 0 and Σ_y p_y = 1, until it is at most
    ``enough`` or hardly falls any more: by Newton's steps where the term is smooth, else along ν alone. Gives the term,
    how much of it is due to the cell's width, the best c and ν, and whether they have settled. ``space.drift`` gets how
    fast c and ν move with the mode's probability.
    """
    first = table.start[x]
    last = table.stop[x]
    exits = table.exits[x]
    middle = 0.5 * (left + right)
    others_low = 0.0
    others_high = 0.0
    for i in range(first + 1, last):
        others_low += table.times[i] * space.low[i]
        others_high += table.times[i] * space.high[i]
    best = math.inf
    best_gap = best_c = best_nu = 0.0
    settled = False
    c = balance(table, x, middle, rho, c, space)
    free = 3  # so many steps of c and ν together; then c stays
    # With c fixed the term is convex in ν: ν is too small at ``below`` and too large at ``above``.
    below = above = 0.0
    at_below = at_above = math.inf
    below_mass = above_mass = 0.0
    stride = 0.2 * math.sqrt(exits * (1.0 - left)) + 0.01
    tilt = space.tilt[first]  # a of the mode
    half = space.half[first]
    count = table.count[first]
    estimate = space.estimate[first]
    for turn in range(PASSES):
        # The mode. Its part is convex in p: the ends of the cell decide.
        for _ in range(3):
            force = exits * middle * math.exp(tilt + half - c)
            tilt += min(1.0, max(-2.0, (count - force - rho * tilt) / (force + rho)))
        grown = math.expm1(tilt + half - c)
        base = count * tilt - exits * c - 0.5 * rho * tilt * tilt
        magnitude = mu * (abs(count * tilt) + abs(exits * c) + 0.5 * rho * tilt * tilt) + 2.0 * abs(nu)
        magnitude += exits * (1.0 + mu * abs(grown))
        pull = mu * exits * grown - nu
        at_left = exits * (left - estimate) * (left - estimate) + pull * left
        at_right = exits * (right - estimate) * (right - estimate) + pull * right
        gap = max(at_left, at_right) - exits * (middle - estimate) * (middle - estimate) - pull * middle
        total = max(at_left, at_right) - mu * base + nu
        mass = 1.0 - middle
        tilts = tilt
        force = exits * middle * (grown + 1.0)
        mass_nu = mass_c = tilts_nu = 0.0
        kinked = False
        tilts_c = force / (force + rho)
        tilts_p = -exits * (grown + 1.0) / (force + rho)
        for i in range(first + 1, last):
            times = table.times[i]
            low = max(space.low[i], 1.0 - right - (others_high - space.high[i]))
            high = min(space.high[i], 1.0 - left - (others_low - space.low[i]))
            low = max(0.0, min(low, high) - 1e-12)
            high = max(low, high) + 1e-12
            value, p, size_of, by_nu, by_c, b_nu, b_c, a = entry(
                table.count[i], exits, space.estimate[i], low, high, space.half[i] - c, rho, 1.0, mu, nu, i, space
            )
            total += times * value
            magnitude += times * size_of
            mass -= times * p
            kinked = kinked or (by_nu == 0.0 and p >= high)
            tilts += times * a
            mass_nu += times * by_nu
            mass_c += times * by_c
            tilts_nu += times * b_nu
            tilts_c += times * (b_c + 1.0)
        total += RELATIVE * magnitude
        # The derivatives of the term by ν and c are ``mass`` and μρ·``tilts``; it is convex in both.
        worse = not total < best
        if total < best:
            best = total
            best_gap = gap
            best_c = c
            best_nu = nu
        if best <= enough or turn + 1 == PASSES:
            break
        determinant = mass_nu * tilts_c - mass_c * tilts_nu
        smooth = mass_nu < 0.0 and determinant < 0.0
        if smooth and not worse:
            space.drift[0] = -(mass_nu * tilts_p - tilts_nu) / determinant
            space.drift[1] = (mass_c * tilts_p - tilts_c) / determinant
        if free > 0 and smooth and not kinked and not worse:
            nu_move = (mass * tilts_c + mass_c * tilts) / determinant
            c_move = -(mass_nu * tilts + mass * tilts_nu) / determinant
            if -(mass * nu_move + mu * rho * tilts * c_move) < tolerance:
                settled = True
                break
            shorter = 1.0 / max(1.0, 2.0 * abs(c_move), abs(nu_move) / (10.0 * stride))
            nu += shorter * nu_move
            c += shorter * c_move
            free -= 1
            at_below = at_above = math.inf
            continue
        if c != best_c:  # the step was too long: c stays where the term was least
            free = 0
            c = best_c
            nu = best_nu
            at_below = at_above = math.inf
            continue
        if mass > 0.0:
            if at_above == math.inf or nu < above:
                above, at_above, above_mass = nu, total, mass
        elif at_below == math.inf or nu > below:
            below, at_below, below_mass = nu, total, mass
        if at_above < math.inf and at_below < math.inf:
            # Where the tangents at both ends meet, the term is no less than there: at a kink, the minimum.
            width = above - below
            meet = (at_above - above_mass * width - at_below) / (below_mass - above_mass)
            if best - (at_below + below_mass * meet) < tolerance or not width > 0.0:
                settled = True
                break
            ahead = nu + mass / mass_nu if smooth and not kinked else below + meet
            nu = min(above - 0.05 * width, max(below + 0.05 * width, ahead))
        else:
            nu_move = mass / mass_nu if smooth and not kinked else (-stride if mass > 0.0 else stride)
            if smooth and not kinked and abs(mass * nu_move) < tolerance:
                settled = True
                break
            nu += min(4.0 * stride, max(-4.0 * stride, nu_move))
            stride *= 2.0
    space.tilt[first] = tilt
    return best, best_gap, best_c, best_nu, settled


def mode_apart(
    table: Any, x: int, left: float, right: float, rho: float, mu: float, omega: float, space: Any
) -> tuple[float, float]:
    """The mode's part while its probability is in [left, right] and the entries are apart, and what is due to width.

    Φ(p) = max_{a,c} {na − Nc − Np(e^{a+t/2−c}−1) − N(1−p)(1−ω)(e^{−c/(1−ω)}−1) − ρa²/2}: any a and c are valid.
    """
    first = table.start[x]
    exits = table.exits[x]
    count = table.count[first]
    half = space.half[first]
    estimate = space.estimate[first]
    middle = 0.5 * (left + right)
    a = space.apart_tilt[x]
    c = space.apart[x]
    share = 1.0 - omega
    for _ in range(4):
        own = exits * middle * math.exp(a + half - c)
        other = exits * (1.0 - middle) * math.exp(-c / share)
        by_a = count - own - rho * a
        by_c = own + other - exits
        curve = own + other / share
        determinant = (own + rho) * curve - own * own
        a_move = (by_a * curve + own * by_c) / determinant
        c_move = (own * by_a + (own + rho) * by_c) / determinant
        largest = max(abs(a_move), abs(c_move) / share)
        if not largest < 1e300:
            break
        if largest > 1.0:
            a_move /= largest
            c_move /= largest
        a += a_move
        c += c_move
        if largest < 1e-3:
            break
    space.apart_tilt[x] = a
    space.apart[x] = c
    grown = math.expm1(a + half - c)
    fallen = share * math.expm1(-c / share)
    base = count * a - exits * c - exits * fallen - 0.5 * rho * a * a
    pull = mu * exits * (grown - fallen)
    at_left = exits * (left - estimate) * (left - estimate) + pull * left
    at_right = exits * (right - estimate) * (right - estimate) + pull * right
    inside = exits * (middle - estimate) * (middle - estimate) + pull * middle
    value = max(at_left, at_right)
    magnitude = abs(count * a) + exits * (abs(c) + 2.0 * abs(fallen) + abs(grown)) + 0.5 * rho * a * a
    return value - mu * base + RELATIVE * (mu * magnitude + exits), value - inside


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


def two_states(table: Any, x: int, left: float, right: float, rho: float, mu: float, space: Any) -> tuple[float, float]:
    """The term of a row of two states without μ·KL₀, and what is due to the cell's width.

    One number p says all: max_{a,c} {(n₁ − n₂)a − Nc − Np(e^{a+t₁/2−c}−1) − N(1−p)(e^{−a+t₂/2−c}−1) − ρa²}.
    """
    first = table.start[x]
    exits = table.exits[x]
    middle = 0.5 * (left + right)
    lean = table.count[first] - table.count[first + 1]
    a = space.apart_tilt[x]
    c = space.apart[x]
    for _ in range(5):
        own = exits * middle * math.exp(a + space.half[first] - c)
        other = exits * (1.0 - middle) * math.exp(-a + space.half[first + 1] - c)
        by_a = lean - own + other - 2.0 * rho * a
        by_c = own + other - exits
        both = own + other
        determinant = (both + 2.0 * rho) * both - (own - other) * (own - other)
        a_move = (by_a * both + (own - other) * by_c) / determinant
        c_move = ((own - other) * by_a + (both + 2.0 * rho) * by_c) / determinant
        largest = max(abs(a_move), abs(c_move))
        if not largest < 1e300:
            break
        if largest > 1.0:
            a_move /= largest
            c_move /= largest
        a += a_move
        c += c_move
        if largest < 1e-3:
            break
    space.apart_tilt[x] = a
    space.apart[x] = c
    grown = math.expm1(a + space.half[first] - c)
    fallen = math.expm1(-a + space.half[first + 1] - c)
    base = lean * a - exits * c - exits * fallen - rho * a * a
    pull = mu * exits * (grown - fallen)
    estimate = space.estimate[first]
    at_left = 2.0 * exits * (left - estimate) * (left - estimate) + pull * left
    at_right = 2.0 * exits * (right - estimate) * (right - estimate) + pull * right
    inside = 2.0 * exits * (middle - estimate) * (middle - estimate) + pull * middle
    value = max(at_left, at_right)
    magnitude = abs(lean * a) + exits * (abs(c) + 2.0 * abs(fallen) + abs(grown)) + rho * a * a
    return value - mu * base + RELATIVE * (mu * magnitude + 2.0 * exits), value - inside


def split(table: Any, x: int, rho: float, mu: float, space: Any) -> float:
    """ω, the entries' part of a tilt when they are apart from the mode; any number between 0 and 1 is valid."""
    first = table.start[x]
    mode = space.estimate[first]
    rest = 1.0 - mode
    rest += 0.5 * max(0.0, 1.0 - space.low[first] - rest)
    second = 0.0
    for i in range(first + 1, table.stop[x]):
        second = max(second, space.estimate[i] + 0.5 * max(0.0, space.high[i] - space.estimate[i]))
    v = max(mode * (rest + second) / (mode + rest), 0.5 * mu - rho / table.exits[x])
    least: float = second / v
    most: float = 1.0 - rest * (mode - v) / (mode * v) if v < mode else 0.98
    return min(0.98, max(0.02, 0.5 * (least + most)))


def row_term(table: Any, x: int, size: float, rho: float, mu: float, tolerance: float, space: Any) -> float:
    """The row's term at the scale ρ: μ·KL₀ and the largest cell, or what the boxes and §7's lemma give."""
    # §7's lemma: log Z ≥ −((S−1)/2)·log(1 + u/S), whatever the truth.
    exits = table.exits[x]
    given_up: float = space.most[x] + mu * (0.5 * (size - 1.0) * math.log1p(exits / rho / size) * (1.0 + 1e-12))
    divergence = mu * shape(table, x, size, rho, space)
    first = table.start[x]
    low = space.low[first]
    high = space.high[first]
    # The entries apart from the mode.
    omega = split(table, x, rho, mu, space)
    apart = 0.0
    magnitude = 0.0
    for i in range(first, table.stop[x]):
        space.tilt[i] = 0.0
        space.top[i] = -0.1
        if i > first and size > 2.0:
            value, _, size_of, _, _, _, _, _ = entry(
                table.count[i], exits, space.estimate[i], space.low[i], space.high[i], space.half[i], rho, omega, mu,
                0.0, i, space,
            )  # fmt: skip
            apart += table.times[i] * value
            magnitude += table.times[i] * size_of
    apart += RELATIVE * magnitude
    # A narrow cell about the estimate, where the largest term usually is, and wider and wider ones on either side.
    middle = min(high, max(low, space.estimate[first]))
    narrow = math.sqrt(tolerance / exits)
    space.left[0] = max(low, middle - narrow)
    space.right[0] = min(high, middle + narrow)
    cells = 1
    for side in range(2):
        width = 2.0 * narrow
        edge = space.right[0] if side == 0 else space.left[0]
        for j in range(SIDE):
            if side == 0 and edge < high:
                space.left[cells] = edge
                edge = high if j == SIDE - 1 else min(high, edge + width)
                space.right[cells] = edge
                cells += 1
            elif side == 1 and edge > low:
                space.right[cells] = edge
                edge = low if j == SIDE - 1 else max(low, edge - width)
                space.left[cells] = edge
                cells += 1
            width *= 2.5
    done = 0
    enough = -math.inf
    top = 0
    work = 0
    term: float = math.inf
    while True:
        for j in range(done, cells):
            if size > 2.0:
                term, gap = mode_apart(table, x, space.left[j], space.right[j], rho, mu, omega, space)
            else:
                term, gap = two_states(table, x, space.left[j], space.right[j], rho, mu, space)
            space.cell_term[j] = term + apart if term + apart < math.inf else math.inf  # not a number: no bound
            space.cell_gap[j] = gap
            space.cell_tied[j] = 1.0 if size == 2.0 else -1.0 if work > 0 else 0.0  # a half knows where to start
        done = cells
        top = 0
        for j in range(1, cells):
            if space.cell_term[j] > space.cell_term[top]:
                top = j
        if work == 0 and size > 2.0:
            top = 0  # the cell of the estimate first: it says what is enough for the others
        term = space.cell_term[top] + divergence
        if work >= WORK or (space.cell_tied[top] > 0.5 and term - space.cell_gap[top] > given_up):
            break
        if space.cell_tied[top] > 0.5:
            if space.cell_gap[top] < tolerance or cells + 2 > CELLS:
                break
            # Halve the largest cell. The last cell takes its place, and its halves come last.
            middle = 0.5 * (space.left[top] + space.right[top])
            done = cells - 1
            left, right = space.left[top], space.right[top]
            space.left[top], space.right[top] = space.left[done], space.right[done]
            space.cell_term[top], space.cell_gap[top] = space.cell_term[done], space.cell_gap[done]
            space.cell_tied[top] = space.cell_tied[done]
            c, nu = space.cell_c[top], space.cell_nu[top]
            c_drift, nu_drift = space.cell_c_drift[top], space.cell_nu_drift[top]
            space.cell_c[top], space.cell_nu[top] = space.cell_c[done], space.cell_nu[done]
            space.cell_c_drift[top], space.cell_nu_drift[top] = space.cell_c_drift[done], space.cell_nu_drift[done]
            space.left[done], space.right[done] = left, middle
            space.left[cells], space.right[cells] = middle, right
            for j in range(done, cells + 1):
                away = 0.5 * (space.left[j] + space.right[j]) - middle
                space.cell_c[j] = c + away * c_drift
                space.cell_nu[j] = nu + away * nu_drift
            cells += 1
            continue
        c = space.cell_c[top]
        nu = space.cell_nu[top]
        if work == 0:
            c = space.centre[x]
            nu = space.multiplier[x]
        elif space.cell_tied[top] == 0.0:  # start from where the nearest cell that was tied has ended
            middle = 0.5 * (space.left[top] + space.right[top])
            near = -1
            away = 0.0
            for j in range(cells):
                distance = middle - 0.5 * (space.left[j] + space.right[j])
                if space.cell_tied[j] > 0.5 and (near < 0 or abs(distance) < abs(away)):
                    near = j
                    away = distance
            away *= 0.3 / (abs(away * space.cell_c_drift[near]) + 0.3)
            most = math.sqrt(exits * (1.0 - space.left[top])) + 1.0
            away *= most / (abs(away * space.cell_nu_drift[near]) + most)
            c = space.cell_c[near] + away * space.cell_c_drift[near]
            nu = space.cell_nu[near] + away * space.cell_nu_drift[near]
        value, gap, c, nu, settled = tied(
            table, x, space.left[top], space.right[top], rho, mu, c, nu, enough, 0.3 * tolerance, space
        )
        if value < space.cell_term[top]:
            space.cell_term[top] = value
            space.cell_gap[top] = gap
        space.cell_tied[top] = 1.0
        space.cell_c[top] = c
        space.cell_nu[top] = nu
        space.cell_c_drift[top] = space.drift[0]
        space.cell_nu_drift[top] = space.drift[1]
        if work == 0:
            space.centre[x] = c
            space.multiplier[x] = nu
        if settled and space.cell_gap[top] < 4.0 * tolerance:
            enough = max(enough, space.cell_term[top] - space.cell_gap[top])
        work += 1
    if not term < given_up:  # not finite, or no better
        return given_up
    return term
