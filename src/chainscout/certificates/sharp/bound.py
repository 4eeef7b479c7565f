"""The bound of ``sharp`` for free numbers that somebody chose: it is valid whatever they are.

Steps B to E of docs/certificates.md. On the event, for every family, level, offsets and μ ≥ 0,

    T·L ≤ μ·B + Σ_x [μ·KL₀ + max over cells (μN⁺c + ν + Σ_y max_p (N(p − P̂)² − μφ_y(p) − νp))],

where the cells cover the box of the row's most frequent successor, its *mode*. N counts the steps out of x with a known
outcome, N⁺ the holes too. If the states are not declared, the labels that a row was not seen to go to are its *lump*:
they enter by their total probability q alone, linearly. ``bound`` computes the right-hand side from a ``Choice``.
Nothing here searches: ``search`` does.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .event import (
    ABSOLUTE,
    FAMILIES,
    LEAST_LEVEL,
    PAIR_SCALE,
    RELATIVE,
    ZERO,
    Array,
    has_offsets,
    joint_cost,
    row_cost,
    scale,
)
from .table import Index, Table

#: p̄ = P̂ + (PUSH/S)·(up − P̂) off the mode, normalised. Any positive p̄ is valid.
PUSH = 0.1


class Choice(NamedTuple):
    """All free numbers."""

    family: int
    level: int
    pair: bool
    #: Of each row.
    offset: Index
    mu: float
    #: The price μ₂ of missing mass, and which v it is for; 0 if the states are declared.
    mu_missing: float
    surprise: int
    #: The cells: a row, and a part of its mode's box. A row whose cells do not cover the box is given up.
    row: Index
    left: Array
    right: Array
    #: Of each cell: c and ν. Of each entry of each cell three b: for the inside of the box, its upper and its
    #: lower end; for n, and with holes for n + h (the second axis).
    c: Array
    nu: Array
    tilts: Array


class Shape(NamedTuple):
    """The law N(a, C/ρ) of the tilts of each row, C = (I + u(diag p̄ − p̄p̄ᵀ))⁻¹."""

    rho: Array
    #: Of each class: t_y/2, rounded up.
    half: Array
    #: Of each row: KL₀, rounded up; and −log Z_x at most, whatever the law (the lemma of ``mixture``).
    divergence: Array
    given_up: Array
    #: Of each row: G of its lump, E e^{λ_y − p̄·ξ} of an unseen label.
    lump: Array


class Lanes(NamedTuple):
    """One cell of one row in each lane, and the entries of all lanes one after another."""

    row: Index
    left: Array
    right: Array
    #: Where the entries of a lane begin; of each entry: its lane and its class.
    first: Index
    lane: Index
    entry: Index


class Entries(NamedTuple):
    """What ``largest`` needs of the entries of all lanes. The two rows of ``count`` are n and n + h, one if there is
    no hole."""

    count: Any
    times: Array
    #: N⁺, N, P̂, the box, ρ, t/2 and μ of each entry.
    whole: Array
    exits: Array
    estimate: Array
    low: Array
    high: Array
    rho: Array
    half: Array
    mu: Array


class Parts(NamedTuple):
    """Of each entry: an upper bound of h on its box, where it is attained, e^b there, h″ or 0, and the terms' sizes."""

    value: Array
    place: Array
    grown: Array
    bend: Array
    size: Array


def shape(table: Table, rho: Array, pair: Array | bool) -> Shape:
    """The tilts' law at the scales ρ_x (Sherman–Morrison; each sum is written without cancellation)."""
    start, row, times = table.start[:-1], table.row, table.times
    u = (table.exits + table.holes) / rho
    mean = table.estimate + PUSH / table.size[row] * np.maximum(0.0, table.high - table.estimate)
    mean[start] = table.estimate[start]
    mean /= np.add.reduceat(times * mean, start)[row]
    inverse = 1.0 / (1.0 + u[row] * mean)
    beta = np.add.reduceat(times * mean * inverse, start)
    weighted = times * mean * mean * inverse
    trace = np.add.reduceat(times * inverse, start)
    logs = np.add.reduceat(times * np.log1p(u[row] * mean), start)
    bend = u * np.add.reduceat(weighted * inverse, start) / beta
    # t_y = [Σ_i d_i²/A_i + u(Σ_i p̄_i d_i/A_i)²/β]/ρ, d = e_y − p̄. The mode's sums over the others are made without it.
    squares = np.add.reduceat(weighted, start)
    rest, others = 1.0 - mean, np.maximum(0.0, squares[row] - mean * mean * inverse)
    weighted[start] = 0.0
    share = times * mean
    share[start] = 0.0
    rest[start], others[start] = np.add.reduceat(share, start), np.add.reduceat(weighted, start)
    centred = mean * rest * inverse - others
    spread = rest * rest * inverse + others + u[row] * centred * centred / beta[row]
    half = 0.5 * (spread * (1.0 + 1e-12) + 1e-14) / rho[row]
    divergence = 0.5 * (trace + bend - table.size + logs + np.log(beta))
    divergence += RELATIVE * (trace + bend + table.size + logs + np.abs(np.log(beta)))
    given_up = unknown(table.size, table.exits + table.holes, rho, pair, table.open)
    if not table.open:
        return Shape(rho, half, divergence, given_up, np.zeros(len(rho)))
    # p̄ᵀCp̄ = 1/k, along the vector of ones, and σ across it; of two levels each has its own variance along it.
    across = np.maximum(0.0, squares + u * squares * squares / beta - 1.0 / table.size) * (1.0 + 1e-12) + 1e-14
    along = (1.0 + 1.0 / table.size) * np.where(pair, np.array([[PAIR_SCALE], [PAIR_SCALE / 4.0]]), 1.0)
    lump = np.exp(0.5 * (along + across) / rho * (1.0 + 1e-12)).mean(axis=0) * (1.0 + 1e-12)
    return Shape(rho, half, divergence, given_up, lump)


def unknown(size: Array | float, exits: Array, rho: Array, pair: Array | bool, open_states: bool) -> Array:
    """−log Z_x is at most this, whatever the law: the lemma of ``mixture``."""
    if open_states:
        return np.where(pair, 0.78125, 0.5) * exits / rho * (1.0 + 1e-12)
    return np.asarray(0.5 * (size - 1.0) * np.log1p(exits / rho / size) * (1.0 + 1e-12))


def lanes_of(table: Table, row: Index, left: Array, right: Array) -> Lanes:
    """The lanes of these cells."""
    number = table.start[row + 1] - table.start[row]
    first = np.cumsum(number) - number
    lane = np.repeat(np.arange(len(row)), number)
    entry = np.arange(len(lane)) - np.repeat(first - table.start[row], number)
    return Lanes(row, left, right, first, lane, entry)


def entries_of(table: Table, lanes: Lanes, of: Shape, mu: Array) -> Entries:
    """The entries of these lanes. While the mode's probability is in its cell, the other entries fill the rest."""
    entry, lane = lanes.entry, lanes.lane
    row = lanes.row[lane]
    low, high, times, count = table.low[entry], table.high[entry], table.times[entry], table.count[entry]
    other_low = np.add.reduceat(times * low, lanes.first) - low[lanes.first]
    other_high = np.add.reduceat(times * high, lanes.first) - high[lanes.first] + table.mass[lanes.row]
    least = np.maximum(low, (1.0 - lanes.right - other_high)[lane] + high - 1e-12)
    most = np.minimum(high, (1.0 - lanes.left - other_low)[lane] + low + 1e-12)
    least[lanes.first], most[lanes.first] = lanes.left, lanes.right
    least = np.maximum(0.0, np.minimum(least, most))
    counts = np.stack((count, count + table.holes[row])) if table.holes.any() else count[None]
    return Entries(
        counts, times, (table.exits + table.holes)[row], table.exits[row], table.estimate[entry], least, most,
        of.rho[row], of.half[entry], mu[lanes.row][lane],
    )  # fmt: skip


class Lump(NamedTuple):
    """What the lumps of the lanes add to their terms: the largest q·(slope − ν) for q between two ends."""

    low: Array
    high: Array
    #: The slope without c: Nκ − μN⁺ − μ₂·rate; and μN⁺G, which e^{−c} multiplies.
    fixed: Array
    pull: Array
    smooth: Array


def lump_of(table: Table, lanes: Lanes, of: Shape, mu: Array, priced: Array) -> Lump:
    """The lumps of these lanes. ``priced``: of each row, μ₂·rate."""
    entry, row = lanes.entry, lanes.row
    times, first = table.times[entry], lanes.first
    rest_low = np.add.reduceat(times * table.low[entry], first) - table.low[entry[first]]
    rest_high = np.add.reduceat(times * table.high[entry], first) - table.high[entry[first]]
    high = np.maximum(0.0, np.minimum(table.mass[row], 1.0 - lanes.left - rest_low + 1e-12))
    low = np.minimum(high, np.maximum(0.0, 1.0 - lanes.right - rest_high - 1e-12))
    whole = (table.exits + table.holes)[row]
    fixed = table.exits[row] * table.heavy[row] - mu[row] * whole - priced[row]
    return Lump(low, high, fixed, mu[row] * whole * of.lump[row], table.smooth[row])


def largest(e: Entries, nu: Array, c: Array, tilts: Array) -> Parts:
    """An upper bound of h(p) = N(p − P̂)² − μφ(p) − νp on [low, high], whatever the tilts are (step E).

    φ(p) = max_b {na − N⁺p(e^b − 1) − ρa²/2}, a = b − s, s = t/2 − c, is a maximum of functions that are affine in p, so
    with any three of them in its place h becomes piecewise a convex quadratic. On the curve p(b) = (n − ρa)e^{−b}/N⁺
    the maximum over b is attained, and φ″ = N⁺²e^{2b}/(N⁺pe^b + ρ) falls as p grows: h is first concave, then convex.

    ``tilts``: for each row of ``count`` a b between the ends of the box, one for its upper and one for its lower end.
    With holes, h is at most the largest of what n and n + h give and of its values where a = 0 is the best tilt.
    """
    shift = e.half - c
    a, grown = tilts - shift, np.exp(tilts)
    base, steep = e.count * a - 0.5 * e.rho * a * a, e.whole * (grown - 1.0)  # φ ≥ base − steep·p
    # The ends of the box, and where two of the three affine functions are equal.
    meets = (base - base[[1, 2, 0]]) / (steep - steep[[1, 2, 0]])
    points = np.concatenate(
        (np.broadcast_to(e.low, (1, *a.shape[1:])), np.broadcast_to(e.high, (1, *a.shape[1:])), meets)
    )
    points = np.minimum(e.high, np.maximum(e.low, points))
    minorant = np.maximum(
        np.maximum(base[0] - steep[0] * points, base[1] - steep[1] * points), base[2] - steep[2] * points
    )
    above = e.exits * (points - e.estimate) ** 2 - e.mu * minorant - nu * points
    at_zero = e.exits * e.estimate * e.estimate - 0.5 * e.mu * e.count * e.count / e.rho  # φ(0) = n²/(2ρ)
    at_low, at_high = np.where(e.low > 0.0, above[0], np.fmin(above[0], at_zero)), above[1]
    ends = np.maximum(at_low, at_high)
    # Between two of these points the three functions give a convex quadratic, so their own value at 0 is needed here.
    # Parallel functions do not meet: what is not a number is left out.
    meet = np.fmax(np.fmax(np.fmax(above[2], above[3]), above[4]), -np.inf)
    cut = np.maximum(np.maximum(above[0], above[1]), meet)
    size = e.mu * (np.abs(base).sum(axis=0) + np.abs(steep).sum(axis=0) + np.abs(at_zero))
    # The point of the curve.
    a, grown, base, steep = a[0], grown[0], base[0], steep[0]
    force = e.count - e.rho * a
    p = np.maximum(0.0, force / (e.whole * grown))
    bend = 2.0 * e.exits - e.mu * (e.whole * grown) ** 2 / (force + e.rho)
    slope = 2.0 * e.exits * (p - e.estimate) + e.mu * steep - nu
    here = e.exits * (p - e.estimate) ** 2 - e.mu * (base - steep * p) - nu * p
    # Where h is concave: to the left of p below the parabola there, to the right below the tangent, then convex.
    concave = (force >= 0.0) & (bend <= 0.0)
    convex = (force >= 0.0) & (bend > 0.0) & (p <= e.low)
    away = -slope / np.where(bend < 0.0, bend, -1e-300)  # a straight line is followed to the end
    away = np.minimum(np.minimum(0.0, e.high - p), np.maximum(np.minimum(0.0, e.low - p), away))
    inside, beyond = here + away * (slope + 0.5 * bend * away), here + slope * (e.high - p)
    peak = np.where(p < e.high, np.maximum(inside, beyond), inside)
    peak = np.where(p > e.low, peak, np.maximum(np.maximum(here + slope * (e.low - p), beyond), at_low))
    by_curve = np.where(p < e.high, np.maximum(peak, at_high), peak)
    value = np.fmin(cut, np.where(concave, by_curve, np.where(convex, ends, np.inf)))
    # Where it is attained, for the search alone.
    inner = concave & (peak >= at_high) & ((p > e.low) | (slope > 0.0))
    lower = at_low > at_high
    place = np.where(inner, np.minimum(e.high, np.maximum(e.low, p + away)), np.where(lower, e.low, e.high))
    pull = np.where(inner, grown, np.exp(np.where(lower, tilts[2], tilts[1])))
    bend = np.where(inner & (place > e.low) & (place < e.high), bend, 0.0)
    reach = 1.0 + np.maximum(p, 1.0)
    size += e.mu * (np.abs(e.count * a) + 0.5 * e.rho * a * a + e.whole * (grown + 1.0) * reach)
    size += (e.exits * reach + np.abs(nu)) * reach + np.abs(bend) * away * away
    found = Parts(value, place, pull, bend, size)
    return Parts(*(x[0] for x in found)) if len(e.count) == 1 else with_holes(e, nu, shift, found)


def with_holes(e: Entries, nu: Array, shift: Array, found: Parts) -> Parts:
    """The largest of the parts for n, the parts for n + h, and h where a = 0 is the best tilt: between p₁ and p₂."""
    flat = e.whole * (np.exp(shift) - 1.0)
    middle = np.where(e.count > 0.0, e.count * np.exp(-shift), 0.0) / e.whole * np.array([[1.0 - 1e-12], [1.0 + 1e-12]])
    meets = (middle[1] >= e.low) & (middle[0] <= e.high)
    point = np.minimum(e.high, np.maximum(e.low, middle))
    there = np.where(meets, e.exits * (point - e.estimate) ** 2 + e.mu * flat * point - nu * point, -np.inf)
    there = np.where(np.isnan(there), np.inf, there)
    value = np.concatenate((found.value, there))
    which = value.argmax(axis=0)[None]
    pull = np.broadcast_to(np.exp(shift), there.shape)
    none = np.zeros(there.shape)
    size = found.size.sum(axis=0) + 4.0 * e.exits + e.mu * e.whole * (np.exp(shift) + 1.0) + np.abs(nu)
    both = (found.value, there), (found.place, point), (found.grown, pull), (found.bend, none)
    value, place, grown, bend = (np.take_along_axis(np.concatenate(two), which, axis=0)[0] for two in both)
    return Parts(value, place, grown, bend, size)


def terms(
    table: Table, lanes: Lanes, e: Entries, lump: Lump, c: Array, nu: Array, found: Parts
) -> tuple[Array, Array]:  # fmt: skip
    """Each lane's max over p of its row's N‖p − P̂‖² − μ·log Z_x without μ·KL₀, from above, and where q is then.

    The term is infinite if it is not a number.
    """
    constant = e.mu[lanes.first] * (table.exits + table.holes)[lanes.row] * c
    slope = lump.fixed + lump.pull * np.exp(-c) - nu
    q = np.where(slope <= 0.0, lump.low, lump.high)  # the larger one too if the slope is not a number
    total = constant + nu + np.add.reduceat(e.times * found.value, lanes.first)
    total += np.where(q > 0.0, q * slope, 0.0) + lump.smooth
    size = np.abs(constant) + 2.0 * np.abs(nu) + np.add.reduceat(e.times * found.size, lanes.first)
    size += np.where(q > 0.0, q * (np.abs(lump.fixed) + lump.pull * np.exp(-c) + np.abs(nu)), 0.0) + lump.smooth
    total += RELATIVE * size
    return np.where(np.isnan(total), np.inf, total), q


def price(table: Table, family: int, level: int, pair: bool, offset: Index) -> float:
    """B: what the event gives for the sum of all rows' log Z_x at these scales."""
    rows = table.copies @ row_cost(family, offset, level, pair, table.size - 1.0)
    alone = 0.0 if table.open else table.states - 1.0
    mute = row_cost(family, np.zeros(len(table.mute), np.int64), level, pair, alone).sum()
    return float(joint_cost(table.log_inverse, family, level, pair) + rows + mute + ABSOLUTE)


def covered(table: Table, choice: Choice) -> npt.NDArray[np.bool_]:
    """Of each row: whether its cells, one after another, cover the mode's box."""
    mode = table.start[:-1]
    reached = table.low[mode].copy()
    for j in np.lexsort((choice.left, choice.row)).tolist():
        x = choice.row[j]
        if choice.left[j] <= reached[x]:
            reached[x] = max(reached[x], choice.right[j])
    return np.asarray(reached >= table.high[mode])


def bound(table: Table, choice: Choice) -> float:
    """T·b for this choice: at every time, T·L is at most this, with probability ≥ 1 − e^{−log_inverse}."""
    family, level, pair, offset, mu, mu_missing, surprise = choice[:7]
    fits = family in range(len(FAMILIES)) and level >= LEAST_LEVEL and has_offsets(family, offset, level)
    fits &= surprise in range(len(table.missing.most)) and bool((choice.row >= 0).all())
    if not (fits and 0.0 <= mu < np.inf and 0.0 <= mu_missing < np.inf):
        return np.inf
    with np.errstate(all="ignore"):
        of = shape(table, scale(level, family, offset, pair), pair)
        lanes = lanes_of(table, choice.row, choice.left, choice.right)
        every = np.full(len(table.exits), mu)
        e = entries_of(table, lanes, of, every)
        lump = lump_of(table, lanes, of, every, mu_missing * table.missing.rate[surprise])
        found = largest(e, choice.nu[lanes.lane], choice.c[lanes.lane], choice.tilts)
        row = np.full(len(table.exits), -np.inf)
        np.maximum.at(row, choice.row, terms(table, lanes, e, lump, choice.c, choice.nu, found)[0])
        row = np.where(covered(table, choice), row + mu * of.divergence, np.inf)
        row = np.fmin(row, table.most + mu * of.given_up)
        # Rows with holes alone have no part in the loss; their log Z_x may be negative.
        mute = unknown(table.states, table.mute, scale(level, ZERO, 0, pair), pair, table.open)
        total = mu * (price(table, family, level, pair, offset) + float(mute.sum())) + float(table.copies @ row)
        total += mu_missing * float(table.missing.most[surprise]) if mu_missing > 0.0 else 0.0
    return total * (1.0 + ABSOLUTE) if total >= 0.0 else np.inf
