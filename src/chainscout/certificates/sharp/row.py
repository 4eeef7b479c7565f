"""One row's term of the bound: the largest N‖p − P̂‖² − μ·(a lower bound of log Z_x) over the laws p in the boxes.

Steps B to E of docs/certificates.md. The *mode* of a row is its most frequent successor. Once the mode's probability is
confined to a cell, the lower bound of log Z_x is a maximum of functions that are affine in p. So the mode's box is cut
into cells. In each cell, every entry is a one-dimensional problem of its own. A class is a set of entries with equal
counts; the first class of a row is the mode alone. Every choice made here (p̄, cells, a, c, ν, b) is valid. Good choices
make the bound small.
"""

import math
from typing import Any

from .entry import entry, mode_cell
from .event import RELATIVE

#: The largest number of cells into which a mode's box is cut.
CELLS = 40
#: The first number of cells on either side of the estimate; the largest number of cells with entries tied to the mode.
SIDE, WORK = 4, 20
#: A cell is this many times as wide as the one before it.
WIDER = 2.5
#: The largest number of times that a cell is halved.
HALVINGS = 3
#: The state of a cell: entries apart from the mode | tied to it | nothing more to be gained.
APART, TIED, FINAL = 0, 1, 2
#: The numbers that a cell keeps: c, ν, the mode's probability, and the derivatives of c and ν with respect to it.
FOUND = 5
#: The mode's part counts as flat while μ/2 is below this times p + 1/u.
FLAT = 1.25
#: The tolerance for the entries' parts, as a fraction of the tolerance for the term.
ENTRY = 3.0
#: All cells become one only if every entry's part has at least this curvature near the estimate: μφ″/2N.
MARGIN = 1.05
#: One cell is enough only if its term is attained near the estimate: where the squares are below this many tolerances.
NEAR = 4.0
#: The largest number of passes over the entries in a cell.
PASSES = 12
#: The number of passes that one cell for the whole box may take.
KINKED = 3
#: What is kept of the tangent plane of a pass over the entries: ν, c, the term, its derivatives by ν and by c, and the
#: squares where it is attained; then the plane's weight, and its height at the best point so far.
PLANE = 8
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


def tied(
    table: Any, x: int, left: float, right: float, rho: float, mu: float, c: float, nu: float,
    enough: float, tolerance: float, whole: bool, space: Any,
) -> tuple[float, float, float, bool]:  # fmt: skip
    """The row's term without μ·KL₀ while the mode's probability is in [left, right], entries tied to the mode by c.

    c and ν start as given and move towards the minimum of the term, where Σ_y a_y = 0 and Σ_y p_y = 1. The term is
    convex in both, with kinks. Every pass over the entries gives a tangent plane, and ``ahead`` makes the next step
    from all planes so far. The search ends when the term is at most ``enough`` or hardly falls any more.

    Returns the term, Σ_y N(p_y − P̂_y)² + ν(1 − Σp) where it is attained, the part of it that is due to the cell's
    width, and whether c and ν have settled. ``space.found`` receives c, ν, the mode's probability, and the derivatives
    of c and ν with respect to it.
    """
    first = table.start[x]
    last = table.stop[x]
    exits = table.exits[x]
    others_low = 0.0
    others_high = 0.0
    for i in range(first + 1, last):
        others_low += table.times[i] * space.low[i]
        others_high += table.times[i] * space.high[i]
    best = least = math.inf  # for the cell, and for its middle
    best_square = 0.0
    gap = 0.0
    settled = False
    space.found[0], space.found[1] = c, nu
    space.found[2] = 0.5 * (left + right)
    space.found[3] = space.found[4] = 0.0
    # The term's derivatives where it was least: by ν and by c, first and second.
    chosen = 0
    by_nu = by_c = nu_nu = nu_c = c_c = 0.0
    reach = 0.8 * math.sqrt(exits * (1.0 - left)) + 0.04  # the longest step of ν
    each = ENTRY * tolerance / (last - first)
    # Where the mode's part is nearly flat or convex, the middle of the cell stands for the mode.
    middle = 0.5 * (left + right)
    flat = not whole and 0.5 * mu < FLAT * (middle + rho / exits)
    for turn in range(PASSES):
        within = 0.0
        magnitude = mu * abs(exits * c) + 2.0 * abs(nu)
        total = mu * exits * c + nu
        square = 0.0
        mass = 1.0
        tilts = 0.0
        mass_nu = mass_c = tilts_nu = tilts_c = 0.0
        mode = mode_nu = mode_c = grown = 0.0
        if flat:
            # The value holds for the whole cell; c and ν are chosen for its middle.
            value, size_of, within, a, grown, space.lean[x] = mode_cell(
                table.count[first], exits, space.estimate[first], left, right, space.half[first] - c, rho, mu, nu,
                space.lean[x],
            )  # fmt: skip
            mode = middle
            total += value
            square = exits * (mode - space.estimate[first]) * (mode - space.estimate[first])
            magnitude += size_of
            mass -= mode
            tilts = a
            tilts_c = 1.0 - rho / (exits * mode * grown + rho)
        for i in range(first + 1 if flat else first, last):
            low = left
            high = right
            if i > first:
                low = max(space.low[i], 1.0 - right - (others_high - space.high[i]))
                high = min(space.high[i], 1.0 - left - (others_low - space.low[i]))
                low = max(0.0, min(low, high) - 1e-12)
                high = max(low, high) + 1e-12
            estimate = space.estimate[i]
            times = table.times[i]
            gain = space.gain[i] if whole else exits
            value, p, size_of, p_nu, p_c, b_nu, b_c, a, space.tilt[i], space.top[i], space.top_grown[i] = entry(
                table.count[i], exits, gain, estimate, low, high, space.half[i] - c, rho, 1.0, mu, nu, each / times,
                space.tilt[i], space.top[i], space.top_grown[i],
            )  # fmt: skip
            total += times * value
            square += times * gain * (p - estimate) * (p - estimate)
            magnitude += times * size_of
            mass -= times * p
            tilts += times * a
            mass_nu += times * p_nu
            mass_c += times * p_c
            tilts_nu += times * b_nu
            tilts_c += times * (b_c + 1.0)
            if i == first:
                mode = p
                mode_nu, mode_c = p_nu, p_c
                if p > 0.0:
                    grown = (table.count[i] - rho * a) / (exits * p)  # e^b, because Npe^b = n − ρa
        total += RELATIVE * magnitude
        # The derivatives of the term with respect to ν and c are ``mass`` and μρ·``tilts``; it is convex in both.
        at = turn * PLANE
        space.plane[at], space.plane[at + 1], space.plane[at + 2] = nu, c, total - within
        space.plane[at + 3], space.plane[at + 4] = mass, mu * rho * tilts
        space.plane[at + 5] = square + nu * mass
        if total < best:
            best = total
            gap = within
        if total - within < least:
            least = total - within
            best_square = square + nu * mass
            chosen = turn
            by_nu, by_c = mass, mu * rho * tilts
            nu_nu, nu_c, c_c = -mass_nu, -mass_c, mu * rho * tilts_c
            space.found[0], space.found[1], space.found[2] = c, nu, mode
            # The derivatives of c and ν with respect to the mode's probability.
            by_mode = -exits * grown / (exits * mode * grown + rho)  # the derivative of its tilt
            others_nu = mass_nu - mode_nu
            others_c = mass_c - mode_c
            along_nu = tilts_nu - by_mode * mode_nu
            along_c = tilts_c - by_mode * mode_c
            curvature = others_nu * along_c - others_c * along_nu
            if others_nu < 0.0 and curvature < 0.0:
                space.found[3] = -(others_nu * by_mode - along_nu) / curvature
                space.found[4] = (others_c * by_mode - along_c) / curvature
        if best <= enough or turn + 1 == PASSES:
            break
        # Curvatures are made large enough to keep the step short.
        steep_nu = max(nu_nu, abs(by_nu) / reach)
        steep_c = max(c_c, 2.0 * abs(by_c), 1e-12)
        if steep_nu > nu_nu:
            reach *= 2.0
        determinant = steep_nu * steep_c - nu_c * nu_c
        if not determinant > 1e-6 * steep_nu * steep_c:
            nu_c = 0.0
            determinant = steep_nu * steep_c
        if not determinant > 0.0:
            break
        decrease, best_square, move_nu, move_c = ahead(
            turn + 1, chosen, steep_c / determinant, -nu_c / determinant, steep_nu / determinant, tolerance, space
        )
        if whole:
            # With one cell the term must be attained at one point: Newton's step alone must promise no more.
            alone = steep_c * by_nu * by_nu - 2.0 * nu_c * by_nu * by_c + steep_nu * by_c * by_c
            settled = 0.5 * alone < tolerance * determinant
            if settled or turn >= KINKED:
                break
        elif decrease < tolerance:
            settled = True
            break
        nu = space.found[1] - move_nu
        c = space.found[0] - move_c
    return best, best_square, gap, settled


def ahead(
    passes: int, chosen: int, nu_nu: float, nu_c: float, c_c: float, tolerance: float, space: Any
) -> tuple[float, float, float, float]:
    """The step from the plane ``chosen`` to the least value of a model: by how much it lowers the term, and the step.

    The model is the largest of all tangent planes, which lie below the term, plus a parabola around the point of the
    plane ``chosen``. ``nu_nu``, ``nu_c`` and ``c_c`` are the inverse of its curvature. At the least value the planes
    have weights that sum to one: they are found by moving weight from one plane to another, two planes at a time. The
    second number is the squares' mean with these weights.
    """
    at = chosen * PLANE
    nu, c, top = space.plane[at], space.plane[at + 1], space.plane[at + 2]
    for j in range(passes):
        at = j * PLANE
        space.plane[at + 6] = 1.0 if j == chosen else 0.0
        # The plane's height at the chosen point. The entries' parts are not exact: a plane above the term is lowered.
        height = space.plane[at + 2] + space.plane[at + 3] * (nu - space.plane[at])
        height += space.plane[at + 4] * (c - space.plane[at + 1])
        space.plane[at + 7] = min(height, top)
    at = chosen * PLANE
    by_nu, by_c = space.plane[at + 3], space.plane[at + 4]
    move_nu = move_c = 0.0
    for _ in range(3 * passes + 1):
        move_nu = nu_nu * by_nu + nu_c * by_c
        move_c = nu_c * by_nu + c_c * by_c
        highest = lowest = -1
        high = -math.inf
        low = math.inf
        for j in range(passes):
            at = j * PLANE
            here = space.plane[at + 7] - space.plane[at + 3] * move_nu - space.plane[at + 4] * move_c
            if here > high:
                high, highest = here, at
            if space.plane[at + 6] > 0.0 and here < low:
                low, lowest = here, at
        if high - low < 0.1 * tolerance:
            break
        along_nu = space.plane[highest + 3] - space.plane[lowest + 3]
        along_c = space.plane[highest + 4] - space.plane[lowest + 4]
        steep = nu_nu * along_nu * along_nu + 2.0 * nu_c * along_nu * along_c + c_c * along_c * along_c
        weight = space.plane[lowest + 6]
        if weight * steep > high - low:
            weight = (high - low) / steep
            space.plane[lowest + 6] -= weight
        else:
            space.plane[lowest + 6] = 0.0
        space.plane[highest + 6] += weight
        by_nu += weight * along_nu
        by_c += weight * along_c
    height = 0.0
    square = 0.0
    for j in range(passes):
        at = j * PLANE
        height += space.plane[at + 6] * space.plane[at + 7]
        square += space.plane[at + 6] * space.plane[at + 5]
    decrease: float = top - height + 0.5 * (by_nu * move_nu + by_c * move_c)
    return decrease, square, move_nu, move_c


def mode_apart(
    count: float, exits: float, estimate: float, half: float, left: float, right: float, rho: float, mu: float,
    omega: float, a: float, c: float,
) -> tuple[float, float, float, float]:  # fmt: skip
    """The mode's part if its probability is in [left, right] and the entries are apart, and N(p − P̂)² at that point.

    Φ(p) = max_{a,c} {na − Nc − Np(e^{a+t/2−c}−1) − N(1−p)(1−ω)(e^{−c/(1−ω)}−1) − ρa²/2}: any a and c are valid.
    The search starts from the given a and c, and returns the ones it found.
    """
    middle = 0.5 * (left + right)
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
    grown = math.expm1(a + half - c)
    fallen = share * math.expm1(-c / share)
    base = count * a - exits * c - exits * fallen - 0.5 * rho * a * a
    pull = mu * exits * (grown - fallen)
    at_left = exits * (left - estimate) * (left - estimate) + pull * left
    at_right = exits * (right - estimate) * (right - estimate) + pull * right
    value = max(at_left, at_right)
    end = left if at_left > at_right else right
    magnitude = abs(count * a) + exits * (abs(c) + 2.0 * abs(fallen) + abs(grown)) + 0.5 * rho * a * a
    value += RELATIVE * (mu * magnitude + exits) - mu * base
    return value, exits * (end - estimate) * (end - estimate), a, c


def two_states(
    lean: float, exits: float, estimate: float, half: float, other_half: float, left: float, right: float, rho: float,
    mu: float, a: float, c: float,
) -> tuple[float, float, float, float, float]:  # fmt: skip
    """The term of a row of two states without μ·KL₀, the part due to the cell's width, and N‖p − P̂‖² at that point.

    One number p determines the row: max_{a,c} {(n₁ − n₂)a − Nc − Np(e^{a+t₁/2−c}−1) − N(1−p)(e^{−a+t₂/2−c}−1) − ρa²}.
    ``lean`` is n₁ − n₂. The search starts from the given a and c, and returns the ones it found.
    """
    middle = 0.5 * (left + right)
    for _ in range(5):
        own = exits * middle * math.exp(a + half - c)
        other = exits * (1.0 - middle) * math.exp(-a + other_half - c)
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
    grown = math.expm1(a + half - c)
    fallen = math.expm1(-a + other_half - c)
    base = lean * a - exits * c - exits * fallen - rho * a * a
    pull = mu * exits * (grown - fallen)
    at_left = 2.0 * exits * (left - estimate) * (left - estimate) + pull * left
    at_right = 2.0 * exits * (right - estimate) * (right - estimate) + pull * right
    inside = 2.0 * exits * (middle - estimate) * (middle - estimate) + pull * middle
    value = max(at_left, at_right)
    end = left if at_left > at_right else right
    magnitude = abs(lean * a) + exits * (abs(c) + 2.0 * abs(fallen) + abs(grown)) + rho * a * a
    return (
        value - mu * base + RELATIVE * (mu * magnitude + 2.0 * exits),
        value - inside,
        2.0 * exits * (end - estimate) ** 2,
        a,
        c,
    )


def split(table: Any, x: int, rho: float, mu: float, space: Any) -> float:
    """ω, the entries' part of a tilt if they are apart from the mode; any number between 0 and 1 is valid."""
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
    """The row's term at the scale ρ: μ·KL₀ plus the largest cell, or the value that the boxes and §7's lemma give.

    ``space.slope`` receives approximately the derivative of the term with respect to μ, ``space.base`` the term near
    the estimate.
    """
    # §7's lemma: log Z ≥ −((S−1)/2)·log(1 + u/S), whatever the truth.
    exits = table.exits[x]
    first = table.start[x]
    given_up: float = space.most[x] + mu * (0.5 * (size - 1.0) * math.log1p(exits / rho / size) * (1.0 + 1e-12))
    divergence = mu * shape(table, x, size, rho, space)
    space.base[x] = given_up
    space.lost[x] = 0.0
    term = math.inf
    if space.unsolved[x]:
        space.unsolved[x] = False
        space.centre[x], space.multiplier[x] = first_centre(table, x, rho, space), 0.0
    if size > 2.0 and shared(table, x, rho, mu, space):
        low, high = space.low[first], space.high[first]
        term, square, _, settled = tied(
            table, x, low, high, rho, mu, space.centre[x], space.multiplier[x], -math.inf, 0.3 * tolerance, True, space
        )
        if settled and square < NEAR * tolerance:
            space.centre[x], space.multiplier[x] = space.found[0], space.found[1]
            term += divergence
            if term < given_up:
                space.base[x] = term
                space.slope[x] = (term - square) / mu
                return term
    omega = 1.0
    apart = 0.0
    apart_square = 0.0
    if size > 2.0:
        omega = split(table, x, rho, mu, space)
        each = ENTRY * tolerance / (table.stop[x] - first)
        apart, apart_square = entries_apart(table, x, rho, mu, omega, each, space)
    cells = first_cells(table, x, size, rho, mu, tolerance, space)
    near = math.inf  # the term of the cell that contains the estimate
    fresh = 0  # the first cell that was not evaluated yet
    enough = -math.inf
    top = 0
    work = 0
    while True:
        for j in range(fresh, cells):
            if size > 2.0:
                term, square, space.apart_tilt[x], space.apart[x] = mode_apart(
                    table.count[first], exits, space.estimate[first], space.half[first], space.left[j], space.right[j],
                    rho, mu, omega, space.apart_tilt[x], space.apart[x],
                )  # fmt: skip
                term += apart
                square += apart_square
                space.cell_state[j] = APART
            else:
                term, gap, square, space.apart_tilt[x], space.apart[x] = two_states(
                    table.count[first] - table.count[first + 1], exits, space.estimate[first], space.half[first],
                    space.half[first + 1], space.left[j], space.right[j], rho, mu, space.apart_tilt[x], space.apart[x],
                )  # fmt: skip
                space.cell_state[j] = FINAL if gap < tolerance else TIED
            if term < space.cell_term[j]:  # false if the term is nan
                space.cell_term[j] = term
                space.cell_square[j] = square
        if fresh == 0:
            near = space.cell_term[0]
        fresh = cells
        top = 0
        for j in range(1, cells):
            if space.cell_term[j] > space.cell_term[top]:
                top = j
        if work == 0 and size > 2.0:
            top = 0  # the cell of the estimate first: its term says how small the others need to be
        state = space.cell_state[top]
        if state == FINAL or work >= WORK or (work > 0 and space.cell_term[top] <= enough + tolerance):
            break
        if enough + divergence > given_up:
            break
        work += 1
        if state == APART:
            c, nu = space.centre[x], space.multiplier[x]
            if work > 1:
                c, nu = start_of_cell(table, x, top, cells, space)
            before = space.cell_term[top]
            term, square, gap, settled = tied(
                table,
                x,
                space.left[top],
                space.right[top],
                rho,
                mu,
                c,
                nu,
                enough + 0.9 * tolerance,
                0.3 * tolerance,
                False,
                space,
            )
            if term < before:
                space.cell_term[top] = term
                space.cell_square[top] = square
            final = (settled and gap < tolerance) or space.cell_halved[top] >= HALVINGS
            space.cell_state[top] = FINAL if final else TIED
            if settled and gap < 4.0 * tolerance:
                enough = max(enough, term - gap)
            for k in range(FOUND):
                space.cell_found[top * FOUND + k] = space.found[k]
            if work == 1:
                near = space.cell_term[0]
                space.centre[x], space.multiplier[x] = space.found[0], space.found[1]
            continue
        if cells >= CELLS:
            break
        halve(top, cells, space)
        fresh = cells - 1
        cells += 1
    found: float = space.cell_term[top] + divergence
    space.base[x] = min(near + divergence, given_up)
    if not found < given_up:  # not finite, or no better
        space.lost[x] = given_up
        space.slope[x] = (given_up - space.most[x]) / mu
        return given_up
    space.slope[x] = (found - space.cell_square[top]) / mu
    return found


def first_centre(table: Any, x: int, rho: float, space: Any) -> float:
    """A first c for a row: the c with Σ_y a_y ≈ 0 at the estimate, where a ≈ (n − Npe^{t/2−c})/(Np + ρ)."""
    exits = table.exits[x]
    expected = 0.0
    seen = 0.0
    for i in range(table.start[x], table.stop[x]):
        weight = exits * space.estimate[i]
        share = table.times[i] / (weight + rho)
        expected += share * weight * math.exp(space.half[i])
        seen += share * table.count[i]
    return math.log(expected / seen)


def shared(table: Any, x: int, rho: float, mu: float, space: Any) -> bool:
    """Whether the term is roughly concave in p. If so, sets g_y of every class: Σ_y g_y(p_y − P̂_y)² ≥ N‖p − P̂‖².

    p and P̂ sum to one. So for 0 ≤ θ ≤ 1 and weights w that sum to one, the Cauchy–Schwarz inequality gives
    N(p_1 − P̂_1)² ≤ (1 − θ)·N(p_1 − P̂_1)² + θ·Σ_{y≥2} N(p_y − P̂_y)²/w_y: a part of the mode's square is shared among
    the others. Any θ and w are valid. They are chosen so that each entry's part is concave near the estimate, where φ″
    is about N/(p + 1/u).
    """
    first = table.start[x]
    exits = table.exits[x]
    rest = rho / exits
    theta = max(0.0, 1.0 - 0.5 * mu / (MARGIN * (space.estimate[first] + rest)))
    total = 0.0
    for i in range(first + 1, table.stop[x]):
        slack = 0.5 * mu / (MARGIN * (space.estimate[i] + rest)) - 1.0
        if not slack > 0.0:
            return False
        space.gain[i] = slack
        total += table.times[i] * theta / slack
    if total > 1.0:
        return False
    # With w_y = θ/(slack_y·total) the share of y is θ/w_y = total·slack_y.
    space.gain[first] = exits * (1.0 - theta)
    for i in range(first + 1, table.stop[x]):
        space.gain[i] = exits * (1.0 + total * space.gain[i]) * (1.0 + 1e-12)
    return True


def entries_apart(
    table: Any, x: int, rho: float, mu: float, omega: float, tolerance: float, space: Any
) -> tuple[float, float]:
    """The entries' part if they are apart from the mode, and Σ_y N(p_y − P̂_y)² where it is attained."""
    exits = table.exits[x]
    total = 0.0
    square = 0.0
    magnitude = 0.0
    for i in range(table.start[x] + 1, table.stop[x]):
        value, p, size_of, _, _, _, _, _, _, space.top[i], space.top_grown[i] = entry(
            table.count[i], exits, exits, space.estimate[i], space.low[i], space.high[i], space.half[i], rho, omega, mu,
            0.0, tolerance / table.times[i], 0.0, space.top[i], space.top_grown[i],
        )  # fmt: skip
        total += table.times[i] * value
        square += table.times[i] * exits * (p - space.estimate[i]) * (p - space.estimate[i])
        magnitude += table.times[i] * size_of
    return total + RELATIVE * magnitude, square


def first_cells(table: Any, x: int, size: float, rho: float, mu: float, tolerance: float, space: Any) -> int:
    """A narrow cell around the estimate, where the largest term usually is, and ever wider cells on either side."""
    first = table.start[x]
    low = space.low[first]
    high = space.high[first]
    middle = min(high, max(low, space.estimate[first]))
    bend = 2.0
    if size > 2.0:
        bend = max(0.1, 1.0 - 0.5 * mu / (middle + rho / table.exits[x]))
    narrow = math.sqrt(tolerance / (bend * table.exits[x]))
    space.left[0] = max(low, middle - narrow)
    space.right[0] = min(high, middle + narrow)
    cells = 1
    for side in range(2):
        width = WIDER * narrow
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
            width *= WIDER
    for j in range(cells):
        space.cell_term[j] = math.inf
        space.cell_halved[j] = 0
    return cells


def start_of_cell(table: Any, x: int, top: int, cells: int, space: Any) -> tuple[float, float]:
    """Start values of c and ν in a cell: the final values of the nearest tied cell, extrapolated."""
    left, right = space.left[top], space.right[top]
    near = -1
    away = 0.0
    for j in range(cells):
        if space.cell_state[j] != APART:
            mode = space.cell_found[j * FOUND + 2]
            aim = left + 0.2 * (right - left) if mode < left else right - 0.2 * (right - left) if mode > right else mode
            if near < 0 or abs(aim - mode) < abs(away):
                near = j
                away = aim - mode
    if near < 0:
        return space.centre[x], space.multiplier[x]
    at = near * FOUND
    most = math.sqrt(table.exits[x] * (1.0 - left)) + 1.0
    away *= 0.3 / (abs(away * space.cell_found[at + 3]) + 0.3)
    away *= most / (abs(away * space.cell_found[at + 4]) + most)
    return (
        space.cell_found[at] + away * space.cell_found[at + 3],
        space.cell_found[at + 1] + away * space.cell_found[at + 4],
    )


def halve(top: int, cells: int, space: Any) -> None:
    """Cuts the cell ``top`` in two. The last cell takes its place, and the two halves are appended."""
    last = cells - 1
    left, right = space.left[top], space.right[top]
    term, square, halved = space.cell_term[top], space.cell_square[top], space.cell_halved[top]
    space.left[top], space.right[top] = space.left[last], space.right[last]
    space.cell_term[top], space.cell_square[top] = space.cell_term[last], space.cell_square[last]
    space.cell_state[top], space.cell_halved[top] = space.cell_state[last], space.cell_halved[last]
    for k in range(FOUND):
        space.cell_found[top * FOUND + k] = space.cell_found[last * FOUND + k]
    middle = 0.5 * (left + right)
    space.left[last], space.right[last] = left, middle
    space.left[cells], space.right[cells] = middle, right
    for j in range(last, cells + 1):
        space.cell_term[j] = term
        space.cell_square[j] = square
        space.cell_halved[j] = halved + 1
        space.cell_state[j] = APART
