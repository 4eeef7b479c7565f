"""The bound of ``sharp`` for free numbers that somebody chose: it is valid whatever they are.

Steps B to E of docs/certificates.md. On the event, for every family, level, offsets and μ ≥ 0,

    T·L ≤ μ·B + Σ_x [μ·KL₀ + max over cells (μN⁺c + ν + Σ_y max_p (N(p − P̂)² − μφ_y(p) − νp))],

where the cells cover the box of the row's most frequent successor, its *mode*. N counts the steps out of x with a known
outcome, N⁺ the holes too. If the states are not declared, the labels that a row was not seen to go to are its *lump*:
they enter by their total probability q alone, linearly. ``loss_bound`` computes the right-hand side from a ``Choice``,
and the functions before it are its parts, in the order of the proof. Nothing here searches: ``search`` does.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import event
from .event import Array
from .table import Index, Table

#: p̄ = P̂ + (PUSH/S)·(up − P̂) off the mode, normalised. Any positive p̄ is valid.
PUSH = 0.1
#: The lemma's −log Z_x over N⁺/ρ if the states are not declared: ½, and for two levels ¼(1 + ¼)·PAIR_SCALE.
LEMMA, LEMMA_OF_PAIR = 0.5, 0.78125


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


# ---------------------------------------------------------------- step B: the law of the tilts


class TiltLaw(NamedTuple):
    """The law N(a, C/ρ) of the tilts of each row, C = (I + u(diag p̄ − p̄p̄ᵀ))⁻¹."""

    rho: Array
    #: Of each class: t_y/2, rounded up.
    half: Array
    #: Of each row: KL₀, rounded up; and −log Z_x at most, whatever the law.
    divergence: Array
    lemma: Array
    #: Of each row: G of its lump, E e^{λ_y − p̄·ξ} of an unseen label.
    lump: Array


def tilt_law(table: Table, rho: Array, pair: Array | bool) -> TiltLaw:
    """The tilts' law at the scales ρ_x (Sherman–Morrison; each sum is written without cancellation)."""
    start, row, times = table.start[:-1], table.row, table.times
    whole = table.exits + table.holes
    u = whole / rho
    mean = table.estimate + PUSH / table.size[row] * np.maximum(0.0, table.high - table.estimate)  # p̄
    mean[start] = table.estimate[start]
    mean /= np.add.reduceat(times * mean, start)[row]
    inverse = 1.0 / (1.0 + u[row] * mean)  # 1/A
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
    half = 0.5 * (spread * event.UP + event.LAST_DIGITS) / rho[row]
    divergence = 0.5 * (trace + bend - table.size + logs + np.log(beta))
    divergence += event.RELATIVE * (trace + bend + table.size + logs + np.abs(np.log(beta)))
    lemma = lemma_cost(table.size, whole, rho, pair, table.open)
    if not table.open:
        return TiltLaw(rho, half, divergence, lemma, np.zeros(len(rho)))
    # p̄ᵀCp̄ = 1/k, along the vector of ones, and σ across it; of two levels each has its own variance along it.
    across = np.maximum(0.0, squares + u * squares * squares / beta - 1.0 / table.size) * event.UP + event.LAST_DIGITS
    scales = np.where(pair, np.array([[event.PAIR_SCALE], [event.PAIR_SCALE / 4.0]]), 1.0)
    along = (1.0 + 1.0 / table.size) * scales
    lump = np.exp(0.5 * (along + across) / rho * event.UP).mean(axis=0) * event.UP
    return TiltLaw(rho, half, divergence, lemma, lump)


def lemma_cost(size: Array | float, whole: Array, rho: Array, pair: Array | bool, open_states: bool) -> Array:
    """−log Z_x is at most this, whatever the law: the lemma of ``mixture``."""
    if open_states:
        return np.where(pair, LEMMA_OF_PAIR, LEMMA) * whole / rho * event.UP
    return np.asarray(0.5 * (size - 1.0) * np.log1p(whole / rho / size) * event.UP)


# ---------------------------------------------------------------- steps C and D: cells


class Entries(NamedTuple):
    """The entries of all cells. The two rows of ``count`` are n and n + h, one if there is no hole."""

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


class Lumps(NamedTuple):
    """What the lumps of the cells add to their terms: the largest q·(slope − ν) for q between two ends."""

    low: Array
    high: Array
    #: The slope without c: Nκ − μN⁺ − μ₂·rate; and μN⁺G, which e^{−c} multiplies.
    fixed: Array
    pull: Array
    smooth: Array


class Cells(NamedTuple):
    """Cells with the entries of their rows one after another."""

    row: Index
    left: Array
    right: Array
    #: Where the entries of a cell begin; of each entry: its cell.
    first: Index
    cell: Index
    entries: Entries
    lumps: Lumps


def cells_of(
    table: Table, law: TiltLaw, mu: Array, priced: Array, row: Index, left: Array, right: Array
) -> Cells:  # fmt: skip
    """The cells [left, right] of these rows. ``mu``: of each row; ``priced``: of each row, μ₂·rate.

    While the mode's probability is in its cell, the other entries and the lump fill the rest.
    """
    number = table.start[row + 1] - table.start[row]
    first = np.cumsum(number) - number
    cell = np.repeat(np.arange(len(row)), number)
    entry, x = np.arange(len(cell)) - np.repeat(first - table.start[row], number), row[cell]
    low, high, times, count = table.low[entry], table.high[entry], table.times[entry], table.count[entry]
    rest_low = np.add.reduceat(times * low, first) - low[first]
    rest_high = np.add.reduceat(times * high, first) - high[first]
    whole = table.exits + table.holes
    lump_high = np.maximum(0.0, np.minimum(table.mass[row], 1.0 - left - rest_low + event.SLACK))
    lump_low = np.minimum(lump_high, np.maximum(0.0, 1.0 - right - rest_high - event.SLACK))
    fixed = table.exits[row] * table.heavy[row] - mu[row] * whole[row] - priced[row]
    lumps = Lumps(lump_low, lump_high, fixed, mu[row] * whole[row] * law.lump[row], table.smooth[row])
    least = np.maximum(low, (1.0 - right - rest_high - table.mass[row])[cell] + high - event.SLACK)
    most = np.minimum(high, (1.0 - left - rest_low)[cell] + low + event.SLACK)
    least[first], most[first] = left, right
    least = np.maximum(0.0, np.minimum(least, most))
    counts = np.stack((count, count + table.holes[x])) if table.holes.any() else count[None]
    entries = Entries(
        counts, times, whole[x], table.exits[x], table.estimate[entry], least, most, law.rho[x], law.half[entry], mu[x]
    )  # fmt: skip
    return Cells(row, left, right, first, cell, entries, lumps)


def cell_terms(cells: Cells, c: Array, nu: Array, value: Array, size: Array) -> tuple[Array, Array]:
    """Each cell's max over p of its row's N‖p − P̂‖² − μ·log Z_x without μ·KL₀, from above, and where q is then.

    ``value`` and ``size`` are what ``largest`` gives for the entries. A term that is not a number is infinite.
    """
    e, lumps, first = cells.entries, cells.lumps, cells.first
    constant = e.mu[first] * e.whole[first] * c
    pull = lumps.pull * np.exp(-c)
    slope = lumps.fixed + pull - nu
    q = np.where(slope <= 0.0, lumps.low, lumps.high)  # the larger one too if the slope is not a number
    total = constant + nu + np.add.reduceat(e.times * value, first) + lumps.smooth
    total += np.where(q > 0.0, q * slope, 0.0)
    sizes = np.abs(constant) + 2.0 * np.abs(nu) + np.add.reduceat(e.times * size, first) + lumps.smooth
    sizes += np.where(q > 0.0, q * (np.abs(lumps.fixed) + pull + np.abs(nu)), 0.0)
    total += event.RELATIVE * sizes
    return np.where(np.isnan(total), np.inf, total), q


# ---------------------------------------------------------------- step E: the maxima, from above


def largest(e: Entries, nu: Array, c: Array, tilts: Array) -> tuple[Array, Array]:
    """An upper bound of h(p) = N(p − P̂)² − μφ(p) − νp on [low, high], whatever the tilts are, and its terms' size.

    φ(p) = max_b {na − N⁺p(e^b − 1) − ρa²/2}, a = b − s, s = t/2 − c, is a maximum of functions that are affine in p.

    ``tilts``: for each row of ``count`` a b between the ends of the box, one for its upper and one for its lower end.
    With holes, h is at most the largest of what n and n + h give and of its values where a = 0 is the best tilt.
    """
    shift = e.half - c
    a, grown = tilts - shift, np.exp(tilts)
    base, steep = e.count * a - 0.5 * e.rho * a * a, e.whole * (grown - 1.0)  # φ ≥ base − steep·p
    at_low, at_high, by_lines, size = below_lines(e, nu, base, steep)
    by_curve, more = below_curve(e, nu, a[0], grown[0], base[0], steep[0], at_low, at_high)
    value, size = np.fmin(by_lines, by_curve), size + more
    if len(e.count) == 1:
        return value[0], size[0]
    resting, more = where_tilts_rest(e, nu, shift)
    return np.maximum(value.max(axis=0), resting), size.sum(axis=0) + more


def below_lines(e: Entries, nu: Array, base: Array, steep: Array) -> tuple[Array, Array, Array, Array]:
    """h at both ends of its box, and everywhere, at most: with the largest of three affine functions in place of φ.

    h is then piecewise a convex quadratic: it is largest at an end, or where two of the three are equal.
    """
    meets = (base - base[[1, 2, 0]]) / (steep - steep[[1, 2, 0]])
    ends = np.broadcast_to(np.stack((e.low, e.high))[:, None], (2, *base.shape[1:]))
    points = np.concatenate((ends, np.minimum(e.high, np.maximum(e.low, meets))))
    minorant = (base[:, None] - steep[:, None] * points).max(axis=0)
    above = e.exits * (points - e.estimate) ** 2 - e.mu * minorant - nu * points
    at_zero = e.exits * e.estimate * e.estimate - 0.5 * e.mu * e.count * e.count / e.rho  # φ(0) = n²/(2ρ)
    at_low, at_high = np.where(e.low > 0.0, above[0], np.fmin(above[0], at_zero)), above[1]
    # Between two of these points the three functions give a convex quadratic, so their own value at 0 is needed here.
    # Parallel functions do not meet: what is not a number is left out.
    meet = np.fmax(np.fmax(np.fmax(above[2], above[3]), above[4]), -np.inf)
    size = e.mu * (np.abs(base).sum(axis=0) + np.abs(steep).sum(axis=0) + np.abs(at_zero))
    return at_low, at_high, np.maximum(np.maximum(above[0], above[1]), meet), size


def below_curve(
    e: Entries, nu: Array, a: Array, grown: Array, base: Array, steep: Array, at_low: Array, at_high: Array
) -> tuple[Array, Array]:  # fmt: skip
    """h is nowhere above this number, from the point p(b) of the curve; infinite if that point does not say it.

    On the curve p(b) = (n − ρa)e^{−b}/N⁺ the maximum over b is attained, and φ″ = N⁺²e^{2b}/(N⁺pe^b + ρ) falls as p
    grows: h is first concave, then convex. Where h is concave, it is below the parabola to the left of p(b), and below
    the tangent to the right, until it is convex.
    """
    force = e.count - e.rho * a
    p = np.maximum(0.0, force / (e.whole * grown))
    bend = 2.0 * e.exits - e.mu * (e.whole * grown) ** 2 / (force + e.rho)  # h″
    slope = 2.0 * e.exits * (p - e.estimate) + e.mu * steep - nu
    here = e.exits * (p - e.estimate) ** 2 - e.mu * (base - steep * p) - nu * p
    concave = (force >= 0.0) & (bend <= 0.0)
    convex = (force >= 0.0) & (bend > 0.0) & (p <= e.low)
    # The top of the parabola in the box; a straight line is followed to the end.
    away = -slope / np.where(bend < 0.0, bend, -1e-300)
    away = np.minimum(np.minimum(0.0, e.high - p), np.maximum(np.minimum(0.0, e.low - p), away))
    parabola, tangent = here + away * (slope + 0.5 * bend * away), here + slope * (e.high - p)
    peak = np.where(p < e.high, np.maximum(parabola, tangent), parabola)
    peak = np.where(p > e.low, peak, np.maximum(np.maximum(here + slope * (e.low - p), tangent), at_low))
    peak = np.where(p < e.high, np.maximum(peak, at_high), peak)
    value = np.where(concave, peak, np.where(convex, np.maximum(at_low, at_high), np.inf))
    reach = 1.0 + np.maximum(p, 1.0)
    size = e.mu * (np.abs(e.count * a) + 0.5 * e.rho * a * a + e.whole * (grown + 1.0) * reach)
    size += (e.exits * reach + np.abs(nu)) * reach + np.abs(bend) * away * away
    return value, size


def where_tilts_rest(e: Entries, nu: Array, shift: Array) -> tuple[Array, Array]:
    """The largest h with holes between p₁ and p₂, where a = 0 is the best tilt, and the size of its terms."""
    flat = e.whole * (np.exp(shift) - 1.0)
    outwards = np.array([[1.0 - event.SLACK], [1.0 + event.SLACK]])
    middle = np.where(e.count > 0.0, e.count * np.exp(-shift), 0.0) / e.whole * outwards
    meets = (middle[1] >= e.low) & (middle[0] <= e.high)
    point = np.minimum(e.high, np.maximum(e.low, middle))
    value = np.where(meets, e.exits * (point - e.estimate) ** 2 + e.mu * flat * point - nu * point, -np.inf)
    size = 4.0 * e.exits + e.mu * e.whole * (np.exp(shift) + 1.0) + np.abs(nu)
    return np.where(np.isnan(value), np.inf, value).max(axis=0), size


# ---------------------------------------------------------------- the bound


def price(table: Table, family: int, level: int, pair: bool, offset: Index) -> float:
    """B: what the event gives for the sum of all rows' log Z_x at these scales."""
    rows = table.copies @ event.row_cost(family, offset, level, pair, table.size - 1.0)
    alone = 0.0 if table.open else table.states - 1.0
    mute = event.row_cost(family, np.zeros(len(table.mute), np.int64), level, pair, alone).sum()
    return float(event.joint_cost(table.log_inverse, family, level, pair) + rows + mute + event.ABSOLUTE)


def covered(table: Table, choice: Choice) -> npt.NDArray[np.bool_]:
    """Of each row: whether its cells, one after another, cover the mode's box."""
    mode = table.start[:-1]
    reached = table.low[mode].copy()
    for j in np.lexsort((choice.left, choice.row)).tolist():
        x = choice.row[j]
        if choice.left[j] <= reached[x]:
            reached[x] = max(reached[x], choice.right[j])
    return np.asarray(reached >= table.high[mode])


def loss_bound(table: Table, choice: Choice) -> float:
    """T·b for this choice: at every time, T·L is at most this, with probability ≥ 1 − e^{−log_inverse}."""
    family, level, pair, offset, mu, mu_missing, surprise = choice[:7]
    fits = family in range(len(event.FAMILIES)) and level >= event.LEAST_LEVEL
    fits = fits and event.has_offsets(family, offset, level) and bool((choice.row >= 0).all())
    fits = fits and surprise in range(len(table.missing.most)) and 0.0 <= mu < np.inf and 0.0 <= mu_missing < np.inf
    if not fits:
        return np.inf
    with np.errstate(all="ignore"):
        law = tilt_law(table, event.scale(level, family, offset, pair), pair)
        every = np.full(len(table.exits), mu)
        cells = cells_of(
            table, law, every, mu_missing * table.missing.rate[surprise], choice.row, choice.left, choice.right
        )
        value, size = largest(cells.entries, choice.nu[cells.cell], choice.c[cells.cell], choice.tilts)
        row = np.full(len(table.exits), -np.inf)
        np.maximum.at(row, choice.row, cell_terms(cells, choice.c, choice.nu, value, size)[0])
        row = np.where(covered(table, choice), row + mu * law.divergence, np.inf)
        row = np.fmin(row, table.most + mu * law.lemma)
        # Rows with holes alone have no part in the loss; their log Z_x may be negative.
        rho = event.scale(level, event.ZERO, 0, pair)
        mute = lemma_cost(table.states, table.mute, rho, pair, table.open).sum()
        total = mu * (price(table, family, level, pair, offset) + float(mute)) + float(table.copies @ row)
        total += mu_missing * float(table.missing.most[surprise]) if mu_missing > 0.0 else 0.0
    return total * (1.0 + event.ABSOLUTE) if total >= 0.0 else np.inf
