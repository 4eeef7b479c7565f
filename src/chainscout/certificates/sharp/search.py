"""The search for free numbers that make the bounds of some chains small. ``bound`` alone decides what is valid.

A cheap score chooses scales and a first μ. A *point* is a chain with a choice that has no cells yet. All rows of all
points are worked on at once, as one long table of rows: a coarse look at a few points of each chain, and a fine one
near the best.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from . import event
from .bound import Cells, Choice, Entries, TiltLaw, cell_terms, cells_of, largest, price, tilt_law
from .event import Array
from .table import Index, Table

Point = tuple[int, Choice]
NO_CELLS: Any = np.zeros(0, np.int64), *(np.zeros(0),) * 5
#: No scale below 4^LEAST_POWER is tried.
LEAST_POWER = -5
#: The values of μ that the score is computed for.
MULTIPLIERS: Array = 1e-3 * 1.25 ** np.arange(44.0)
#: The largest number of scales that are evaluated, and how far above the best score they may be.
CANDIDATES, REACH = 3, 1.08
#: So many numbers are worked on at once.
CHUNK = 20_000
#: The first values of μ over the score's.
FIRST = (0.9, 1.2)
#: Fine looks.
ROUNDS = 3
#: Scales whose bound is at most NEAR times the best one are looked at further.
NEAR = 1.15
#: Another μ is looked at if it promises to lower the bound by the part GAIN, and the next one known is not as near as
#: the part NARROW. If none is known on that side, μ changes by the factor WIDENED.
GAIN, NARROW, WIDENED = 0.015, 0.02, 1.3
#: The price of missing mass that is mostly best, over the knapsack's.
OFTEN = 0.6
#: The first cells of a row: SIDE on either side of the estimate, each WIDER times as wide as the one before it. The
#: number of pieces that a cell is cut into.
SIDE, WIDER, PIECES = 7, 1.8, 3
#: Steps of the tilts, in the first pass and in each other one.
FIRST_STEPS, STEPS = 5, 3
#: In each pass, exchanges of weight between tangent planes.
EXCHANGES = 5


class Effort(NamedTuple):
    """How much work a look at points is worth."""

    #: A row's term is found to this part of the whole bound over the number of rows.
    tolerance: float
    #: Passes over a cell's entries, and how often the cells with the largest terms are cut.
    passes: int
    cuts: int


COARSE, FINE = Effort(tolerance=0.02, passes=6, cuts=1), Effort(tolerance=0.003, passes=12, cuts=1)
#: The fine look at chains with more than FEW rows: their kinks are many.
FEW, LARGE = 6, Effort(tolerance=0.003, passes=80, cuts=3)


# ---------------------------------------------------------------- the score


def evidence(count: Array, exits: Array, p: Array, shift: Array, rho: Array) -> Array:
    """Approximately max_a {na − Np(e^{a+s} − 1) − ρa²/2}: how strongly an entry's counts speak against p."""
    weight = exits * p * np.exp(shift)
    a = np.clip((count - weight) / (weight + rho), -3.0, 2.0)
    for _ in range(2):
        force = weight * np.exp(a)
        a = a + np.clip((count - force - rho * a) / (force + rho), -1.0, 1.0)
    return np.asarray(count * a - weight * np.exp(a) + exits * p - 0.5 * rho * a * a)


def scored(table: Table, powers: Index) -> tuple[Array, Array]:
    """What the score knows of each row, at ρ = 4^power for these powers, for one level and for two at once.

    First, ½·log det(I + u·Σ̂). Then how strongly the row's counts speak against the law that moves as much probability
    as the boxes allow from the mode to the entry with the widest box.
    """
    start = table.start[:-1]
    room = table.high - table.estimate
    room[start] = -1.0
    far = np.maximum.reduceat(room, start)
    other = np.lexsort((-room, table.row))[start]
    far = np.minimum(np.maximum(far, 0.0), table.estimate[start] - table.low[start])
    rho = np.stack([event.scale(powers, event.ZERO, 0, pair) for pair in (False, True)])[:, :, None]
    whole = table.exits + table.holes
    grown = 1.0 + (whole / rho)[..., table.row] * table.estimate
    part = np.add.reduceat(table.times * table.estimate / grown, start, axis=-1)
    cost = 0.5 * (np.add.reduceat(table.times * np.log(grown), start, axis=-1) + np.log(part))
    square = table.exits * far * far
    against = np.zeros(rho.shape)
    for at, away in ((start, -far), (other, far)):
        p = table.estimate[at]
        shift = 0.5 / (rho + whole * p) - 0.5 * part / rho
        against = against + evidence(table.count[at], whole, p + away, shift, rho)
        against = against - evidence(table.count[at], whole, p, shift, rho)
    return cost, table.most / np.maximum(2.0 * square, 1e-300) * np.maximum(1e-3 * square, against)


def row_scores(table: Table, known: tuple[Array, Array], mu: Array) -> Array:
    """The score of each row at each μ: μ·(its cost), and what the counts leave of the boxes' loss."""
    cost, against = known
    return mu * cost + np.maximum(0.0, table.most - mu * against)


def sums_of_scores(table: Table, known: tuple[Array, Array], mu: Array) -> Array:
    """The rows' scores together, with what their offsets cost more than 0: by family, μ, one or two, and power."""
    value = row_scores(table, known, mu)
    found = [value]
    for family in event.FAMILIES[1:3]:
        best = value.copy()
        for q in range(family.stride, best.shape[2]):
            best[:, :, q] = np.minimum(best[:, :, q], best[:, :, q - family.stride] + family.each * mu[:, 0])
        found.append(best)
    best = value.copy()
    best[:, :, -LEAST_POWER:] = np.minimum.accumulate(value[:, :, -LEAST_POWER:], axis=2)  # powers m … 0
    return np.stack([rows @ table.copies for rows in (*found, best)])


def best_scales(table: Table) -> list[Choice]:
    """The best scales by the score, each with a first μ and a price of missing mass."""
    levels = range(event.LEAST_LEVEL, int(math.log(float(table.exits.max()) + 1.0) / math.log(4.0)) + 3)
    known = scored(table, np.arange(LEAST_POWER, levels.stop))
    parts = np.array_split(MULTIPLIERS[:, None, None, None], known[0].size * len(MULTIPLIERS) // CHUNK + 1)
    sums = np.concatenate([sums_of_scores(table, known, part) for part in parts], axis=1)
    zero = np.zeros(len(table.exits), np.int64)
    prices = [
        [[price(table, family, m, pair, zero) for m in levels] for pair in (False, True)]
        for family in range(len(event.FAMILIES))
    ]
    sums = sums[..., event.LEAST_LEVEL - LEAST_POWER :] + MULTIPLIERS[:, None, None] * np.array(prices)[:, None]
    least, found = sums.min(axis=1), []
    near = np.flatnonzero(least <= least.min() + (REACH - 1.0) * abs(least.min()))
    for place in near[np.argsort(least.flat[near])][:CANDIDATES]:
        family, pair, step = (int(i) for i in np.unravel_index(place, least.shape))
        mu, m, stride = MULTIPLIERS[sums[family, :, pair, step].argmin()], levels[step], event.FAMILIES[family].stride
        offset = zero
        if stride:
            value = row_scores(table, known, mu)[pair, m - LEAST_POWER :: -stride]
            value = value[: max(m, 0) + 1] if family == event.UNIFORM else value
            paid = mu * event.offset_cost(family, np.arange(len(value)), m, bool(pair))
            offset = (value + paid[:, None]).argmin(axis=0)
        found.append(Choice(family, m, bool(pair), offset, float(mu), *cheapest(table), *NO_CELLS))
    return found


# ---------------------------------------------------------------- the terms of cells


class Work(NamedTuple):
    """The rows of all points as one long table, and what belongs to each row: its tilts' law, μ and μ₂·rate."""

    table: Table
    law: TiltLaw
    mu: Array
    priced: Array


class Solved(NamedTuple):
    """Cells' tilts, c, ν, the term with the mode at the cell's middle, and anywhere in the cell, and its squares."""

    tilts: Array
    c: Array
    nu: Array
    inner: Array
    term: Array
    square: Array


def tilted(e: Entries, shift: Array, p: Array, b: Array, steps: int) -> Array:
    """b with N⁺pe^b + ρa ≈ n: the best tilt for the probability p."""
    weight = e.whole * p
    for _ in range(steps):
        force = weight * np.exp(b)
        move = (e.count - force - e.rho * (b - shift)) / (force + e.rho)
        b = b + np.minimum(1.0, np.maximum(-2.0, move))
    return b


def begin(cells: Cells) -> tuple[Array, Array]:
    """First c and tilts: c with Σ_y a_y ≈ 0 near the estimate."""
    e, first = cells.entries, cells.first
    weight = e.whole * e.estimate
    share = e.times / (weight + e.rho)
    seen = np.add.reduceat(share * e.count.mean(axis=0), first)
    c = np.log(np.add.reduceat(share * weight * np.exp(e.half), first) / seen)
    points = np.stack((np.minimum(e.high, np.maximum(e.low, e.estimate)), e.high, e.low))[:, None]
    return c, tilted(e, e.half - c[cells.cell], points, np.zeros((3, *e.count.shape)), FIRST_STEPS)


def follow(cells: Cells, c: Array, nu: Array, tilts: Array, steps: int) -> Array:
    """The tilts after some steps towards the largest value of each entry, and towards the ends of its box.

    The mode is at the middle of its cell.
    """
    e, first, middle = cells.entries, cells.first, 0.5 * (cells.left + cells.right)
    shift = e.half - c[cells.cell]
    most = shift + e.count / e.rho  # p = 0
    double = 2.0 * e.exits
    aim, b = double * e.estimate + e.mu * e.whole + nu[cells.cell], tilts[0]
    for _ in range(steps):
        b = np.minimum(b, most)
        force = e.count - e.rho * (b - shift)
        weight = e.whole * np.exp(b)
        p, wide = force / weight, (force + e.rho) / weight  # −dp/db
        bend = double - e.mu * weight * weight / (force + e.rho)
        slope = double * p + e.mu * weight - aim
        # Where h is concave, Newton's step.
        away = -slope / np.where(bend < 0.0, bend, -1.0)
        away = np.minimum(e.high, np.maximum(e.low, p + away)) - p
        away = np.minimum(3.0 * wide, np.maximum(-0.9 * wide, away))
        move = away * (6.0 * wide + away) / (wide * (6.0 * wide + 4.0 * away))
        # Where it is convex, to the left, unless the box has no concave part.
        b = np.where(bend < 0.0, b - move, np.where(p > e.low, b + 0.4, b))
    ends = tilted(e, shift, np.stack((e.high, e.low))[:, None], tilts[1:], 1)
    modes = Entries(e.count[:, first], *(x[first] for x in e[1:]))
    b[:, first] = tilted(modes, shift[first], middle, tilts[0][:, first], 2)
    return np.concatenate((b[None], ends))


def attained(cells: Cells, c: Array, nu: Array, tilts: Array) -> tuple[Array, Array, Array, Array]:
    """Of each entry: the largest h that the tilts find, where it is, e^b there, and h″, which is 0 at an end.

    This is on the curve or at an end of the box; the mode is at the middle of its cell.
    """
    e, first = cells.entries, cells.first
    a, grown = tilts - e.half + c[cells.cell], np.exp(tilts)
    force, steep = e.count - e.rho * a[0], e.whole * grown[0]
    p = force / steep
    bend = 2.0 * e.exits - e.mu * steep * steep / (force + e.rho)
    inside = (bend < 0.0) & (p > e.low) & (p < e.high)
    p[:, first] = 0.5 * (cells.left + cells.right)
    place = np.stack((p, *(np.broadcast_to(end, p.shape) for end in (e.high, e.low))))
    phi = e.count * a - 0.5 * e.rho * a * a - e.whole * (grown - 1.0) * place
    phi[2] = np.where(e.low > 0.0, phi[2], 0.5 * e.count * e.count / e.rho)
    value = e.exits * (place - e.estimate) ** 2 - e.mu * phi - nu[cells.cell] * place
    mode = np.zeros(p.shape, bool)
    mode[:, first] = True
    value = np.where(np.stack((inside | mode, ~mode, ~mode)), value, -np.inf)
    bend = np.stack((np.where(mode, 0.0, bend), *np.zeros((2, *p.shape))))
    which = value.reshape(-1, p.shape[1]).argmax(axis=0), np.arange(p.shape[1])
    return tuple(x.reshape(-1, p.shape[1])[which] for x in (value, place, grown, bend))


def solve(
    work: Work, row: Index, left: Array, right: Array, group: Index, tolerance: Array, floor: Array, effort: Effort
) -> Solved:  # fmt: skip
    """c and ν of these cells, moved towards the minimum of their terms.

    A cell is left alone when its term hardly falls any more, or when it is below the term of a cell of its ``group`` (a
    row of a point) that has settled: the largest term decides. ``floor``: of each group, a term that is reached anyway.

    The term is convex in c and ν, with kinks where an entry's largest value jumps from one place to another. Each pass
    gives its value and a tangent plane, and the next c and ν minimise the largest of all planes plus a parabola around
    the best point so far (a bundle method): where the term is smooth, this is Newton's step.
    """
    cells, number = cells_of(*work, row, left, right), len(row)
    (c, tilts), nu = begin(cells), np.zeros(number)
    best = Solved(tilts.copy(), *np.full((5, number), np.inf))
    # Of each active cell: the planes' c and ν, values, slopes and weights. Of each cell: its best curvature.
    planes, curve, reached = np.zeros((6, 0, number)), np.zeros((3, number)), floor.copy()
    active, entry = np.arange(number), np.arange(len(cells.cell))
    for turn in range(effort.passes):
        tilts = follow(cells, c, nu, tilts, FIRST_STEPS if turn == 0 else STEPS)
        found, place, grown, bend = attained(cells, c, nu, tilts)
        e, lumps, first = cells.entries, cells.lumps, cells.first
        value, size = largest(e, nu[cells.cell], c[cells.cell], tilts)
        term, q = cell_terms(cells, c, nu, value, size)
        lost = value - found
        inner, below = term - lost[first], term - np.add.reduceat(e.times * lost, first)
        mu, whole = e.mu[first], e.whole[first]
        by_c = mu * (whole - np.add.reduceat(e.times * e.whole * grown * place, first)) - q * lumps.pull * np.exp(-c)
        by_nu = 1.0 - np.add.reduceat(e.times * place, first) - q
        better = inner < best.inner[active]
        index, kept = active[better], better[cells.cell]
        best.tilts[..., entry[kept]] = tilts[..., kept]
        square = np.add.reduceat(e.times * e.exits * (place - e.estimate) ** 2, first) + nu * by_nu
        square += q * (lumps.fixed + mu * whole) + lumps.smooth
        for stored, values in zip(best[1:], (c, nu, inner, term, square), strict=True):
            stored[index] = values[better]
        curve[:, index] = curvature(cells, place, grown, bend, by_c, by_nu)[:, better]
        fresh = np.stack((c, nu, below, by_c, by_nu, np.full(len(c), float(turn == 0))))
        planes = np.concatenate((planes, fresh[:, None]), axis=1)
        move_c, move_nu, promise = ahead(planes, Solved(best.tilts, *(x[active] for x in best[1:])), curve[:, active])
        enough, mine = tolerance[group[active]], group[active]
        done = promise < enough
        np.maximum.at(reached, mine[done], best.inner[active[done]])
        go = ~done & (best.term[active] > reached[mine] + enough)
        if turn + 1 == effort.passes or not go.any():
            break
        c, nu = (best.c[active] - move_c)[go], (best.nu[active] - move_nu)[go]
        if not go.all():
            kept = go[cells.cell]
            tilts, entry, planes, active = tilts[..., kept], entry[kept], planes[..., go], active[go]
            cells = cells_of(*work, row[active], left[active], right[active])
    return best


def curvature(cells: Cells, place: Array, grown: Array, bend: Array, by_c: Array, by_nu: Array) -> Array:
    """The second derivatives of each cell's term by c, by c and ν, and by ν; large enough to keep a step short."""
    e, first = cells.entries, cells.first
    pull = e.whole * grown
    force = pull * place
    stiff = e.rho / (force + e.rho)
    inverse = np.where(bend < 0.0, -1.0 / np.where(bend < 0.0, bend, -1.0), 0.0)
    across = e.mu * pull * stiff
    nu_nu = np.add.reduceat(e.times * inverse, first)
    nu_c = -np.add.reduceat(e.times * inverse * across, first)
    c_c = np.add.reduceat(e.times * (e.mu * force * stiff + inverse * across * across), first)
    reach = 0.8 * np.sqrt(e.exits[first] * (1.0 - cells.left)) + 0.04
    nu_nu = np.maximum(nu_nu, np.abs(by_nu) / reach + 1e-12)
    c_c = np.maximum(c_c, 2.0 * np.abs(by_c) + 1e-12)
    nu_c = np.where(nu_c * nu_c < 0.999 * nu_nu * c_c, nu_c, 0.0)
    return np.stack((c_c, nu_c, nu_nu))


def ahead(planes: Array, best: Solved, curve: Array) -> tuple[Array, Array, Array]:
    """The step from the best point to the least value of the model, and by how much it promises to lower the term.

    At the least value the planes have weights that sum to one. They are found by moving weight from the lowest plane
    to the highest, two planes at a time; the weights of the last pass are a good start.
    """
    at_c, at_nu, value, by_c, by_nu, weight = planes
    c_c, c_nu, nu_nu = curve
    determinant = c_c * nu_nu - c_nu * c_nu
    i_cc, i_cn, i_nn = nu_nu / determinant, -c_nu / determinant, c_c / determinant
    height = np.minimum(0.0, value - best.inner + by_c * (best.c - at_c) + by_nu * (best.nu - at_nu))
    cell = np.arange(len(best.c))
    s_c, s_nu = (weight * by_c).sum(axis=0), (weight * by_nu).sum(axis=0)
    move_c, move_nu = i_cc * s_c + i_cn * s_nu, i_cn * s_c + i_nn * s_nu
    for _ in range(EXCHANGES if len(value) > 1 else 0):
        level = height - by_c * move_c - by_nu * move_nu
        highest, lowest = level.argmax(axis=0), np.where(weight > 0.0, level, np.inf).argmin(axis=0)
        d_c, d_nu = by_c[highest, cell] - by_c[lowest, cell], by_nu[highest, cell] - by_nu[lowest, cell]
        steep = i_cc * d_c * d_c + 2.0 * i_cn * d_c * d_nu + i_nn * d_nu * d_nu
        gap = level[highest, cell] - level[lowest, cell]
        moved = np.minimum(weight[lowest, cell], gap / np.maximum(steep, 1e-300))
        weight[lowest, cell] -= moved
        weight[highest, cell] += moved
        s_c, s_nu = s_c + moved * d_c, s_nu + moved * d_nu
        move_c, move_nu = i_cc * s_c + i_cn * s_nu, i_cn * s_c + i_nn * s_nu
    promise = 0.5 * (s_c * move_c + s_nu * move_nu) - (weight * height).sum(axis=0)
    return move_c, move_nu, promise


# ---------------------------------------------------------------- points


class Evaluation(NamedTuple):
    """A point with its cells, its bound, and the bound's slope in μ."""

    chain: int
    choice: Choice
    total: float
    slope: float


def work_of(tables: Sequence[Table], points: Sequence[Point]) -> Work:
    """One long table of the rows of all points."""
    each, choices = [tables[k] for k, _ in points], [choice for _, choice in points]
    rows = np.cumsum([0] + [len(table.exits) for table in each])
    classes = np.cumsum([0] + [len(table.count) for table in each])

    start = np.concatenate([table.start[:-1] + classes[i] for i, table in enumerate(each)] + [classes[-1:]])
    row = np.concatenate([table.row + rows[i] for i, table in enumerate(each)])
    joined: Any = (np.concatenate(x) if isinstance(x[0], np.ndarray) else x[0] for x in zip(*each, strict=True))
    long = Table(*joined)._replace(start=start, row=row)
    rho = np.concatenate([event.scale(p.level, p.family, p.offset, p.pair) for p in choices])
    pair, mu = (np.repeat(x, np.diff(rows)) for x in zip(*((p.pair, p.mu) for p in choices), strict=True))
    priced = np.concatenate([p.mu_missing * t.missing.rate[p.surprise] for p, t in zip(choices, each, strict=True)])
    return Work(long, tilt_law(long, rho, pair), mu, priced)


def first_cells(work: Work, rows: Index, tolerance: Array) -> tuple[Index, Array, Array]:
    """The first cells of these rows: which of the rows, left end, right end."""
    table = work.table
    mode = table.start[rows]
    low, high = table.low[mode], table.high[mode]
    middle = np.clip(table.estimate[mode], low, high)
    bend = np.maximum(0.1, 1.0 - 0.5 * work.mu[rows] / (middle + work.law.rho[rows] / table.exits[rows]))
    steps = np.sqrt(tolerance / (bend * table.exits[rows]))[:, None] * np.cumsum(WIDER ** np.arange(SIDE))
    edges = middle[:, None] + np.concatenate((-steps[:, ::-1], steps), axis=1)
    edges[:, 0], edges[:, -1] = -np.inf, np.inf
    edges = np.clip(edges, low[:, None], high[:, None])
    left, right = edges[:, :-1], edges[:, 1:]
    kept = right > left
    kept[:, 0] |= ~kept.any(axis=1)
    return np.nonzero(kept)[0], left[kept], right[kept]


def evaluate(
    tables: Sequence[Table], points: Sequence[Point], best: Sequence[float], effort: Effort
) -> list[Evaluation]:
    """The points' bounds, each to a part of the ``best`` one of its chain so far."""
    work = work_of(tables, points)
    table = work.table
    number = [len(tables[k].exits) for k, _ in points]
    tolerances = np.repeat([effort.tolerance * best[k] / tables[k].copies.sum() for k, _ in points], number)
    entries = np.cumsum(np.diff(table.start)) * (2 * SIDE - 1)
    parts = np.split(np.arange(len(entries)), np.flatnonzero(np.diff(entries // CHUNK)) + 1)
    found = [row_terms(work, part, tolerances[part], effort) for part in parts]
    term, square, row, *cells, tilts = (np.concatenate(x, axis=-1) for x in zip(*found, strict=True))
    ends = np.cumsum([0, *number])
    total = np.add.reduceat(table.copies * (term + work.mu * work.law.divergence), ends[:-1])
    slope = np.add.reduceat(table.copies * ((term - square) / work.mu + work.law.divergence), ends[:-1])
    results = []
    for i, (k, point) in enumerate(points):
        kept = (row >= ends[i]) & (row < ends[i + 1])
        cost = price(tables[k], *point[:4])
        paid = point.mu_missing * float(tables[k].missing.most[point.surprise]) if point.mu_missing else 0.0
        mine = row[kept] - ends[i], *(x[kept] for x in cells), tilts[..., np.repeat(kept, np.diff(table.start)[row])]
        whole = float(total[i]) + point.mu * cost + paid
        results.append(Evaluation(k, Choice(*point[:7], *mine), whole, float(slope[i]) + cost))
    return results


def row_terms(work: Work, rows: Index, tolerance: Array, effort: Effort) -> tuple[Array, ...]:
    """The terms of these rows without μ·KL₀, and the squares there; and the cells that are used.

    A cell whose term is far above that of its middle is cut, if it may decide the row's term.
    """
    limit = work.table.most[rows] + work.mu[rows] * (work.law.lemma - work.law.divergence)[rows]
    group, left, right = first_cells(work, rows, tolerance)
    floor = np.full(len(rows), -np.inf)
    top, square = floor.copy(), work.table.most[rows]
    found = []
    for cut in range(effort.cuts + 1):
        solved = solve(work, rows[group], left, right, group, 0.3 * tolerance, floor, effort)
        np.maximum.at(floor, group, np.minimum(solved.inner, limit[group]))
        wide = (solved.term > floor[group] + tolerance[group]) & (solved.inner < limit[group]) & (cut < effort.cuts)
        kept = np.repeat(~wide, np.diff(work.table.start)[rows[group]])
        found.append([*(x[~wide] for x in (rows[group], left, right, solved.c, solved.nu)), solved.tilts[..., kept]])
        used = np.flatnonzero(~wide)[np.argsort(solved.term[~wide])]
        used = used[solved.term[used] > top[group[used]]]
        top[group[used]], square[group[used]] = solved.term[used], solved.square[used]  # the largest one comes last
        if not wide.any():
            break
        ends = left[wide] + (right - left)[wide] * np.linspace(0.0, 1.0, PIECES + 1)[:, None]
        ends[-1] = right[wide]
        group, left, right = np.tile(group[wide], PIECES), ends[:-1].ravel(), ends[1:].ravel()
    square = np.where(top < limit, square, work.table.most[rows])
    return np.minimum(top, limit), square, *(np.concatenate(x, axis=-1) for x in zip(*found, strict=True))


def best_choices(tables: Sequence[Table]) -> list[Choice]:
    """For each chain, free numbers with a small bound."""
    with np.errstate(all="ignore"):
        best = [rounded(float(table.copies @ table.most)) for table in tables]
        points = [
            (k, point._replace(mu=point.mu * factor))
            for k, table in enumerate(tables)
            for point in best_scales(table)
            for factor in FIRST
        ]
        fine = FINE if max(len(table.exits) for table in tables) <= FEW else LARGE
        seen: list[list[Evaluation]] = [[] for _ in tables]
        for effort in (COARSE, *[fine] * ROUNDS):
            for found in evaluate(tables, points, best, effort):
                seen[found.chain].append(found)
            tops = [rivals(mine) for mine in seen]
            best = [rounded(top[0].total) for top in tops]
            points = [
                (one.chain, point)
                for top, mine in zip(tops, seen, strict=True)
                for one in (top if effort is COARSE else top[:1])
                for point in ([one.choice] if effort is COARSE else []) + beside(one, mine)
            ]
            if not points:
                break
        return [top[0].choice for top in tops]


def rivals(found: list[Evaluation]) -> list[Evaluation]:
    """The best point of each of the scales, the best of all first, as far as they are at most NEAR times that."""
    best: dict[Sequence[Any], Evaluation] = {}
    for one in sorted(found, key=lambda one: one.total):
        best.setdefault(one.choice[:3], one)
    (first, *others) = best.values()
    return [first, *(one for one in others if one.total <= NEAR * first.total)]


def rounded(value: float) -> float:
    """Six digits: the last ones depend on the order of the rows, on which the choice must not depend."""
    return float(f"{value:.6g}")


def beside(top: Evaluation, seen: list[Evaluation]) -> list[Choice]:
    """A better μ for the scales of the best point: where its tangent meets that of the next point on the side where the
    bound falls. None, if that promises to lower the bound by less than GAIN."""
    mu, up = top.choice.mu, top.slope < 0.0
    alike = [found for found in seen if found.choice[:3] == top.choice[:3]]
    others = [found for found in alike if (found.choice.mu > mu if up else found.choice.mu < mu)]
    if not others:
        return [top.choice._replace(mu=rounded(mu * WIDENED if up else mu / WIDENED))]
    other = min(others, key=lambda found: abs(found.choice.mu - mu))
    way = other.choice.mu - mu
    fall, rise = -top.slope * way, other.slope * way
    share = (top.total - other.total + rise) / (fall + rise) if rise > 0.0 else 0.0
    meet = 0.0 < share < 1.0  # else one of the two bounds was not found well
    if abs(way) < NARROW * mu or (meet and fall * share < GAIN * top.total):
        return []
    return [top.choice._replace(mu=rounded(mu + way * (min(0.8, max(0.2, share)) if meet else 0.5)))]


def cheapest(table: Table) -> tuple[float, int]:
    """A good price of missing mass, and its v: of the largest ΣNκq with Σ rate·q ≤ most and q ≤ q̄, a knapsack."""
    gain, found = table.exits * table.heavy, []
    for v, rate in enumerate(table.missing.rate if table.open else ()):
        most = float(table.missing.most[v])
        ratio = np.where(rate > 0.0, gain / np.maximum(rate, 1e-300), np.inf)
        order = np.argsort(-ratio)
        last = int(np.searchsorted(np.cumsum((rate * table.mass * table.copies)[order]), most))
        margin = float(ratio[order[last]]) if last < len(order) else 0.0
        left = float((table.copies * table.mass) @ np.maximum(0.0, gain - margin * rate))
        found.append((left + (margin * most if margin else 0.0), margin, v))
    _, best, which = min(found, default=(0.0, 0.0, 0))
    return OFTEN * best, which
