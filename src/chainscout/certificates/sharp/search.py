"""The search for free numbers that make the bounds of some chains small. ``bound`` alone decides what is valid.

A cheap score chooses scales and a first μ. A *point* is a chain with scales and a μ. All rows of all points are worked
on at once, as one long table of rows: a coarse look at a few points of each chain, and a fine one near the best.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .bound import (
    Choice,
    Entries,
    Lanes,
    Lump,
    Parts,
    Shape,
    entries_of,
    lanes_of,
    largest,
    lump_of,
    price,
    shape,
    terms,
)
from .event import (
    FAMILIES,
    HALF,
    LEAST_LEVEL,
    PAIR_COST,
    QUARTER,
    STRIDES,
    UNIFORM,
    ZERO,
    Array,
    joint_cost,
    offset_cost,
    scale,
)
from .table import Index, Table

#: No scale below 4^LEAST_POWER is tried.
LEAST_POWER = -5
#: The values of μ that the score is computed for.
MULTIPLIERS: Array = 1e-3 * 1.25 ** np.arange(44.0)
#: The largest number of scales that are evaluated, and how far above the best score they may be.
CANDIDATES, REACH = 3, 1.08
#: So many numbers are worked on at once.
CHUNK = 25_000
#: The first values of μ over the score's: for the best scales, and for the others.
FIRST, OTHER = (0.9, 1.2, 1.6), (1.2,)
#: Scales whose bound is at most NEAR times the best one at the coarse look have a fine one too.
NEAR = 1.15
#: Another point is evaluated if it promises to lower the bound by this part.
GAIN = 0.015
#: The price of missing mass that is mostly best, over the knapsack's.
OFTEN = 0.6
#: The first cells of a row: SIDE on either side of the estimate, each WIDER times as wide as the one before it. The
#: number of pieces that a cell is cut into.
SIDE, WIDER, PIECES = 7, 1.8, 3
#: Steps of the tilts in the first pass over a cell's entries.
FIRST_STEPS = 5


class Effort(NamedTuple):
    """How much work an evaluation is worth."""

    #: How often points are chosen.
    rounds: int
    #: A row's term is found to this part of the whole bound over the number of rows.
    tolerance: float
    #: Passes over a cell's entries; in each, steps of the tilts, and exchanges of weight between tangent planes.
    passes: int
    steps: int
    exchanges: int
    #: How often the cells with the largest terms are cut.
    cuts: int


COARSE = Effort(rounds=1, tolerance=0.02, passes=6, steps=2, exchanges=1, cuts=1)
FINE = Effort(rounds=2, tolerance=0.003, passes=14, steps=3, exchanges=3, cuts=1)
#: The fine look at chains with more than FEW rows: their kinks are many.
FEW, LARGE = 6, Effort(rounds=3, tolerance=0.003, passes=80, steps=4, exchanges=5, cuts=3)


# ---------------------------------------------------------------- the score


class Scales(NamedTuple):
    """A family, a level and offsets, with a first μ."""

    family: int
    level: int
    pair: bool
    offset: Index
    mu: float


def evidence(count: Array, exits: Array, p: Array, shift: Array, rho: Array) -> Array:
    """Approximately max_a {na − Np(e^{a+s} − 1) − ρa²/2}: how strongly an entry's counts speak against p."""
    weight = exits * p * np.exp(shift)
    a = np.clip((count - weight) / (weight + rho), -3.0, 2.0)
    for _ in range(2):
        force = weight * np.exp(a)
        a = a + np.clip((count - force - rho * a) / (force + rho), -1.0, 1.0)
    return np.asarray(count * a - weight * np.exp(a) + exits * p - 0.5 * rho * a * a)


def scored(table: Table, top: int) -> tuple[Array, Array, Array]:
    """What the score knows of each row, at the powers from LEAST_POWER to ``top``, for one level and for two at once.

    First, ½·log det(I + u·Σ̂). Then how strongly the row's counts speak against two laws: one moves as much probability
    as the boxes allow from the mode to the entry with the widest box, the other moves half of that.
    """
    start = table.start[:-1]
    room = table.high - table.estimate
    room[start] = -1.0
    far = np.maximum.reduceat(room, start)
    other = np.lexsort((-room, table.row))[start]
    far = np.minimum(np.maximum(far, 0.0), table.estimate[start] - table.low[start])
    powers = np.arange(LEAST_POWER, top + 1)
    rho = np.stack((scale(powers, ZERO, 0, False), scale(powers, ZERO, 0, True)))[:, :, None]
    whole = table.exits + table.holes
    grown = 1.0 + (whole / rho)[..., table.row] * table.estimate
    part = np.add.reduceat(table.times * table.estimate / grown, start, axis=-1)
    cost = 0.5 * (np.add.reduceat(table.times * np.log(grown), start, axis=-1) + np.log(part))
    cost[1] += PAIR_COST * (table.size - 1.0)
    mode, second = table.estimate[start], table.estimate[other]
    square = table.exits * far * far
    share = table.most / np.maximum(2.0 * square, 1e-300)
    shifts = [0.5 / (rho + whole * p) - 0.5 * part / rho for p in (mode, second)]
    against = [
        evidence(table.count[start], whole, mode - step * far, shifts[0], rho)
        + evidence(table.count[other], whole, second + step * far, shifts[1], rho)
        for step in (0.0, 1.0, 0.5)
    ]
    give = share * np.maximum(1e-3 * square, against[1] - against[0])
    half = share * np.maximum(2.5e-4 * square, against[2] - against[0])
    return cost, give, half


def row_scores(table: Table, known: tuple[Array, Array, Array], multipliers: Array) -> Array:
    """The score of each row at each μ: μ·(its cost), and what the counts leave of the boxes' loss."""
    cost, give, half = known
    mu = multipliers[:, None, None, None]
    return mu * cost + np.maximum(0.0, np.maximum(table.most - mu * give, 0.25 * table.most - mu * half))


def sums_of_scores(table: Table, known: tuple[Array, Array, Array], multipliers: Array) -> Array:
    """The rows' scores together, by family, μ, one level or two, and power."""
    value = row_scores(table, known, multipliers)
    mu, found = multipliers[:, None, None], [value]
    for family in (HALF, QUARTER):
        best, stride = value.copy(), STRIDES[family]
        one, two = (float(offset_cost(family, o, 0, False)) for o in (0, 1))
        for q in range(stride, best.shape[2]):
            best[:, :, q] = np.minimum(best[:, :, q], best[:, :, q - stride] + (two - one) * mu)
        found.append(best + one * mu[..., None])
    best = value.copy()
    best[:, :, -LEAST_POWER:] = np.minimum.accumulate(value[:, :, -LEAST_POWER:], axis=2)  # powers m … 0
    return np.stack([rows @ table.copies for rows in (*found, best)])


def best_scales(table: Table) -> list[Scales]:
    """The best scales by the score, the best first."""
    top = int(math.log(float(table.exits.max()) + 1.0) / math.log(4.0)) + 2
    known = scored(table, top)
    together = max(1, CHUNK // known[0].size)  # values of μ
    sums = np.concatenate(
        [sums_of_scores(table, known, MULTIPLIERS[i : i + together]) for i in range(0, len(MULTIPLIERS), together)],
        axis=1,
    )
    rows = np.zeros(len(table.exits), np.int64)
    joint = [
        [
            [
                joint_cost(table.log_inverse, family, m, pair)
                + (float(table.copies @ offset_cost(family, rows, m, pair)) if family == UNIFORM else 0.0)
                for m in range(LEAST_LEVEL, top + 1)
            ]
            for pair in (False, True)
        ]
        for family in range(len(FAMILIES))
    ]
    sums = sums[..., LEAST_LEVEL - LEAST_POWER :] + MULTIPLIERS[:, None, None] * np.array(joint)[:, None]
    at = sums.argmin(axis=1)
    least = sums.min(axis=1)
    found: list[Scales] = []
    for place in np.argsort(least, axis=None)[:CANDIDATES]:
        if found and least.flat[place] > least.min() + (REACH - 1.0) * abs(least.min()):
            break
        family, pair, step = (int(i) for i in np.unravel_index(place, least.shape))
        i, q = int(at[family, pair, step]), step + LEAST_LEVEL - LEAST_POWER
        m, stride, offset = LEAST_LEVEL + step, STRIDES[family], rows
        if stride:
            value = row_scores(table, known, MULTIPLIERS[i : i + 1])[0, int(pair), q::-stride]
            value = value[: max(m, 0) + 1] if family == UNIFORM else value
            paid = MULTIPLIERS[i] * offset_cost(family, np.arange(len(value)), m, bool(pair))
            offset = (value + paid[:, None]).argmin(axis=0)
        found.append(Scales(family, m, bool(pair), offset, float(MULTIPLIERS[i])))
    return found


# ---------------------------------------------------------------- the terms of cells


class Work(NamedTuple):
    """The rows of all points as one long table, and what belongs to each row: its tilts' law and μ."""

    table: Table
    of: Shape
    mu: Array
    #: μ₂·rate of each row: what the missing mass is priced at.
    priced: Array


class Cells(NamedTuple):
    """Cells with their solutions: c, ν, tilts, the term, the term at the cell's middle, and the squares there."""

    lanes: Lanes
    c: Array
    nu: Array
    tilts: Array
    term: Array
    inner: Array
    square: Array


def tilted(e: Entries, shift: Array, p: Array, b: Array, steps: int) -> Array:
    """b with N⁺pe^b + ρa ≈ n: the best tilt for the probability p."""
    weight = e.whole * p
    for _ in range(steps):
        force = weight * np.exp(b)
        move = (e.count - force - e.rho * (b - shift)) / (force + e.rho)
        b = b + np.minimum(1.0, np.maximum(-2.0, move))
    return b


def begin(e: Entries, lanes: Lanes) -> tuple[Array, Array, Array]:
    """First c, ν and tilts: c with Σ_y a_y ≈ 0 near the estimate, and the ν that most entries ask for there."""
    lane, first = lanes.lane, lanes.first
    weight = e.whole * e.estimate
    share = e.times / (weight + e.rho)
    seen = np.add.reduceat(share * e.count.mean(axis=0), first)
    c = np.log(np.add.reduceat(share * weight * np.exp(e.half), first) / seen)
    shift = e.half - c[lane]
    p = np.minimum(e.high, np.maximum(e.low, e.estimate))
    b = tilted(e, shift, p, np.zeros(e.count.shape), 4)
    force = e.whole * np.exp(b[0])
    slope = 2.0 * e.exits * (p - e.estimate) + e.mu * (force - e.whole)
    bend = 2.0 * e.exits - e.mu * force * force / (p * force + e.rho)
    steer = e.times / (np.abs(bend) + 1e-3 * e.whole)
    steer[first] = 0.0
    nu = np.add.reduceat(steer * slope, first) / np.add.reduceat(steer, first)
    ends = tilted(e, shift, np.stack((e.high, e.low))[:, None], np.broadcast_to(b, (2, *b.shape)), 5)
    return c, nu, np.concatenate((b[None], ends))


def follow(e: Entries, lanes: Lanes, c: Array, nu: Array, tilts: Array, middle: Array, steps: int) -> Array:
    """The tilts after some steps towards the largest value of each entry, and towards the ends of its box.

    ``middle``: the middles of the cells, which then stand for the modes.
    """
    shift, by_nu = e.half - c[lanes.lane], nu[lanes.lane]
    most = shift + e.count / e.rho  # p = 0
    double = 2.0 * e.exits
    aim, b = double * e.estimate + e.mu * e.whole + by_nu, tilts[0]
    for step in range(steps):
        b = np.minimum(b, most)
        force = e.count - e.rho * (b - shift)
        weight = e.whole * np.exp(b)
        p, wide = force / weight, (force + e.rho) / weight  # −dp/db
        bend = double - e.mu * weight * weight / (force + e.rho)
        slope = double * p + e.mu * weight - aim
        # Where h is concave, Newton's step; the last one goes a little too far, so that the tangent falls.
        away = -slope / np.where(bend < 0.0, bend, -1.0)
        if step + 1 == steps:
            away = np.where(away < 0.0, away, 1.15 * away)
        away = np.minimum(e.high, np.maximum(e.low, p + away)) - p
        away = np.minimum(3.0 * wide, np.maximum(-0.9 * wide, away))
        move = away * (6.0 * wide + away) / (wide * (6.0 * wide + 4.0 * away))
        # Where it is convex, to the left, unless the box has no concave part.
        b = np.where(bend < 0.0, b - move, np.where(p > e.low, b + 0.4, b))
    fresh = tilted(e, shift, np.stack((e.high, e.low))[:, None], tilts[1:], 1)
    fresh = np.concatenate((b[None], fresh))
    at = lanes.first
    modes = Entries(e.count[:, at], *(x[at] for x in e[1:]))
    fresh[0][:, at] = tilted(modes, shift[at], middle, tilts[0][:, at], 2)
    return fresh


def solve(
    work: Work, lanes: Lanes, group: Index, middle: Array, tolerance: Array, floor: Array, effort: Effort,
) -> Cells:  # fmt: skip
    """The lanes' terms, c and ν being moved towards the minimum.

    A lane is left alone when its term hardly falls any more, or when it is below the term of a lane of its ``group`` (a
    row of a point) that has settled: the largest term decides. ``floor``: of each group, a term that is reached anyway.

    The term is convex in c and ν, with kinks where an entry's largest value jumps from one place to another. Each pass
    gives its value and a tangent plane, and the next c and ν minimise the largest of all planes plus a parabola around
    the best point so far (a bundle method): where the term is smooth, this is Newton's step.
    """
    table, number = work.table, len(lanes.row)
    whole_of = table.exits + table.holes
    e, lump = entries_of(table, lanes, work.of, work.mu), lump_of(table, lanes, work.of, work.mu, work.priced)
    c, nu, tilts = begin(e, lanes)
    infinite = np.full(number, np.inf)
    best = Cells(lanes, c.copy(), nu.copy(), tilts.copy(), infinite, infinite.copy(), np.zeros(number))
    # Of each active lane: the planes' c and ν, values, slopes and weights. Of each lane: its best curvature.
    planes = np.zeros((6, 0, number))
    curve = np.zeros((3, number))
    reached = floor.copy()
    active, part = np.arange(number), lanes
    for turn in range(effort.passes):
        tilts = follow(e, part, c, nu, tilts, middle, FIRST_STEPS if turn == 0 else effort.steps)
        found = largest(e, nu[part.lane], c[part.lane], tilts)
        term, q = terms(table, part, e, lump, c, nu, found)
        inner, found = at_middle(e, part, c, nu, tilts, middle, found, term)
        pull = e.whole * found.grown
        by_c = e.mu[part.first] * (whole_of[part.row] - np.add.reduceat(e.times * pull * found.place, part.first))
        by_c -= q * lump.pull * np.exp(-c)
        by_nu = 1.0 - np.add.reduceat(e.times * found.place, part.first) - q
        better = inner < best.inner[active]
        if better.any():
            index, keep = active[better], better[part.lane]
            best.tilts[..., places(lanes, index)] = tilts[..., keep]
            square = np.add.reduceat(e.times * e.exits * (found.place - e.estimate) ** 2, part.first) + nu * by_nu
            square += q * (lump.fixed + e.mu[part.first] * whole_of[part.row]) + lump.smooth
            for stored, value in (
                (best.c, c),
                (best.nu, nu),
                (best.term, term),
                (best.inner, inner),
                (best.square, square),
            ):
                stored[index] = value[better]
            curve[:, index] = curvature(table, e, part, found, pull, by_c, by_nu)[:, better]
        fresh = np.stack((c, nu, inner, by_c, by_nu, np.full(len(c), float(turn == 0))))
        planes = np.concatenate((planes, fresh[:, None]), axis=1)
        move_c, move_nu, promise = ahead(planes, best, active, curve[:, active], effort.exchanges)
        enough, mine = tolerance[group[active]], group[active]
        settled = promise < enough
        np.maximum.at(reached, mine[settled], best.inner[active[settled]])
        go = ~settled & (best.term[active] > reached[mine] + enough)
        if turn + 1 == effort.passes or not go.any():
            break
        c, nu = (best.c[active] - move_c)[go], (best.nu[active] - move_nu)[go]
        if not go.all():
            keep, planes = go[part.lane], planes[..., go]
            active, tilts, e = active[go], tilts[..., keep], Entries(e.count[:, keep], *(x[keep] for x in e[1:]))
            middle, lump = middle[go], Lump(*(x[go] for x in lump))
            part = lanes_of(table, part.row[go], part.left[go], part.right[go])
    return best


def at_middle(
    e: Entries, lanes: Lanes, c: Array, nu: Array, tilts: Array, middle: Array, found: Parts, term: Array
) -> tuple[Array, Parts]:
    """The lanes' terms with the mode at the middle of its cell, and where the entries then are."""
    at = lanes.first
    count, b = e.count[:, at], tilts[0][:, at]
    a = b - e.half[at] + c
    phi = (count * a - e.whole[at] * middle * np.expm1(b) - 0.5 * e.rho[at] * a * a).min(axis=0)
    value = e.exits[at] * (middle - e.estimate[at]) ** 2 - e.mu[at] * phi - nu * middle
    place, grown, bend = found.place.copy(), found.grown.copy(), found.bend.copy()
    place[at], grown[at], bend[at] = middle, np.exp(b[0]), 0.0
    return term + value - found.value[at], found._replace(place=place, grown=grown, bend=bend)


def curvature(table: Table, e: Entries, lanes: Lanes, found: Parts, pull: Array, by_c: Array, by_nu: Array) -> Array:
    """The second derivatives of each lane's term by c, by c and ν, and by ν; large enough to keep a step short."""
    first, force = lanes.first, pull * found.place
    stiff = e.rho / (force + e.rho)
    inverse = np.where(found.bend < 0.0, -1.0 / np.where(found.bend < 0.0, found.bend, -1.0), 0.0)
    across = e.mu * pull * stiff
    nu_nu = np.add.reduceat(e.times * inverse, first)
    nu_c = -np.add.reduceat(e.times * inverse * across, first)
    c_c = np.add.reduceat(e.times * (e.mu * force * stiff + inverse * across * across), first)
    reach = 0.8 * np.sqrt(table.exits[lanes.row] * (1.0 - lanes.left)) + 0.04
    nu_nu = np.maximum(nu_nu, np.abs(by_nu) / reach + 1e-12)
    c_c = np.maximum(c_c, 2.0 * np.abs(by_c) + 1e-12)
    nu_c = np.where(nu_c * nu_c < 0.999 * nu_nu * c_c, nu_c, 0.0)
    return np.stack((c_c, nu_c, nu_nu))


def ahead(
    planes: Array, best: Cells, active: Index, curve: Array, exchanges: int
) -> tuple[Array, Array, Array]:  # fmt: skip
    """The step from the best point to the least value of the model, and by how much it promises to lower the term.

    At the least value the planes have weights that sum to one. They are found by moving weight from the lowest plane
    to the highest, two planes at a time; the weights of the last pass are a good start.
    """
    at_c, at_nu, value, by_c, by_nu, weight = planes
    c_c, c_nu, nu_nu = curve
    determinant = c_c * nu_nu - c_nu * c_nu
    i_cc, i_cn, i_nn = nu_nu / determinant, -c_nu / determinant, c_c / determinant
    height = value - best.inner[active] + by_c * (best.c[active] - at_c) + by_nu * (best.nu[active] - at_nu)
    height = np.minimum(0.0, height)
    lane = np.arange(len(active))
    s_c, s_nu = (weight * by_c).sum(axis=0), (weight * by_nu).sum(axis=0)
    move_c, move_nu = i_cc * s_c + i_cn * s_nu, i_cn * s_c + i_nn * s_nu
    for _ in range(exchanges if len(value) > 1 else 0):
        level = height - by_c * move_c - by_nu * move_nu
        highest, lowest = level.argmax(axis=0), np.where(weight > 0.0, level, np.inf).argmin(axis=0)
        d_c, d_nu = by_c[highest, lane] - by_c[lowest, lane], by_nu[highest, lane] - by_nu[lowest, lane]
        steep = i_cc * d_c * d_c + 2.0 * i_cn * d_c * d_nu + i_nn * d_nu * d_nu
        gap = level[highest, lane] - level[lowest, lane]
        moved = np.minimum(weight[lowest, lane], gap / np.maximum(steep, 1e-300))
        weight[lowest, lane] -= moved
        weight[highest, lane] += moved
        s_c, s_nu = s_c + moved * d_c, s_nu + moved * d_nu
        move_c, move_nu = i_cc * s_c + i_cn * s_nu, i_cn * s_c + i_nn * s_nu
    promise = 0.5 * (s_c * move_c + s_nu * move_nu) - (weight * height).sum(axis=0)
    return move_c, move_nu, promise


def places(lanes: Lanes, active: Index) -> Index:
    """The places of the entries of some lanes."""
    ends = np.append(lanes.first, len(lanes.lane))
    number = ends[active + 1] - ends[active]
    first = np.cumsum(number) - number
    return np.asarray(np.arange(number.sum()) + np.repeat(ends[active] - first, number))


# ---------------------------------------------------------------- points


class Point(NamedTuple):
    """A chain with scales and a μ."""

    chain: int
    scales: Scales
    mu: float
    mu_missing: float
    surprise: int


class Evaluation(NamedTuple):
    """A point's bound with its slope in μ; its first row in the long table; the cells of all points, and those used."""

    point: Point
    total: float
    slope: float
    first: int
    solved: list[tuple[Cells, Index]]


def work_of(tables: Sequence[Table], points: Sequence[Point]) -> Work:
    """One long table of the rows of all points."""
    each = [tables[point.chain] for point in points]
    rows = np.cumsum([0] + [len(table.exits) for table in each])
    classes = np.cumsum([0] + [len(table.count) for table in each])

    def joined(name: str) -> Array:
        return np.concatenate([getattr(table, name) for table in each])

    start = np.concatenate([table.start[:-1] + classes[i] for i, table in enumerate(each)] + [classes[-1:]])
    row = np.concatenate([table.row + rows[i] for i, table in enumerate(each)])
    names = (
        "count", "times", "exits", "holes", "copies", "low", "high", "estimate", "most", "size", "mass", "heavy",
        "smooth", "mute",
    )  # fmt: skip
    values: dict[str, Any] = {name: joined(name) for name in names}
    long = each[0]._replace(start=start, row=row, **values)
    rho = np.concatenate([scale(p.scales.level, p.scales.family, p.scales.offset, p.scales.pair) for p in points])
    pair = np.repeat([p.scales.pair for p in points], np.diff(rows))
    priced = np.concatenate([p.mu_missing * t.missing.rate[p.surprise] for p, t in zip(points, each, strict=True)])
    return Work(long, shape(long, rho, pair), np.repeat([p.mu for p in points], np.diff(rows)), priced)


def first_cells(work: Work, rows: Index, tolerance: Array) -> tuple[Index, Array, Array]:
    """The first cells of these rows: which of the rows, left end, right end."""
    table = work.table
    mode = table.start[rows]
    low, high = table.low[mode], table.high[mode]
    middle = np.clip(table.estimate[mode], low, high)
    bend = np.maximum(0.1, 1.0 - 0.5 * work.mu[rows] / (middle + work.of.rho[rows] / table.exits[rows]))
    steps = np.sqrt(tolerance / (bend * table.exits[rows]))[:, None] * np.cumsum(WIDER ** np.arange(SIDE))
    edge = np.full((len(rows), 1), np.inf)
    edges = np.concatenate((-edge, middle[:, None] - steps[:, -2::-1], middle[:, None] + steps[:, :-1], edge), axis=1)
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
    number = [len(tables[p.chain].exits) for p in points]
    each = [effort.tolerance * best[p.chain] / tables[p.chain].copies.sum() for p in points]
    tolerance = np.repeat(each, number)
    limit = table.most + work.mu * (work.of.given_up - work.of.divergence)
    term, square = np.zeros(len(limit)), np.zeros(len(limit))
    solved: list[tuple[Cells, Index]] = []
    entries = np.cumsum(np.diff(table.start)) * (2 * SIDE - 1)
    for part in np.split(np.arange(len(limit)), np.flatnonzero(np.diff(entries // CHUNK)) + 1):
        term[part], square[part], found = row_terms(work, part, tolerance[part], limit[part], effort)
        solved += found
    first = np.cumsum([0, *number])[:-1]
    total = np.add.reduceat(table.copies * (term + work.mu * work.of.divergence), first)
    slope = np.add.reduceat(table.copies * ((term - square) / work.mu + work.of.divergence), first)
    results = []
    for i, point in enumerate(points):
        own = tables[point.chain]
        cost = price(own, *point.scales[:4])
        paid = point.mu_missing * float(own.missing.most[point.surprise]) if point.mu_missing else 0.0
        whole = float(total[i]) + point.mu * cost + paid
        results.append(Evaluation(point, whole, float(slope[i]) + cost, int(first[i]), solved))
    return results


def row_terms(
    work: Work, rows: Index, tolerance: Array, limit: Array, effort: Effort
) -> tuple[Array, Array, list[tuple[Cells, Index]]]:  # fmt: skip
    """The terms of these rows without μ·KL₀, at most ``limit``; the squares there; the cells, and those that are used.

    A cell whose term is far above that of its middle is cut, if it may decide the row's term.
    """
    group, left, right = first_cells(work, rows, tolerance)
    floor = np.full(len(rows), -np.inf)
    top, square = floor.copy(), work.table.most[rows]
    found = []
    for cut in range(effort.cuts + 1):
        lanes = lanes_of(work.table, rows[group], left, right)
        cells = solve(work, lanes, group, 0.5 * (left + right), 0.3 * tolerance, floor, effort)
        np.maximum.at(floor, group, np.minimum(cells.inner, limit[group]))
        wide = (cells.term > floor[group] + tolerance[group]) & (cells.inner < limit[group]) & (cut < effort.cuts)
        used = np.flatnonzero(~wide)
        found.append((cells, used))
        used = used[np.argsort(cells.term[used])]
        used = used[cells.term[used] > top[group[used]]]
        top[group[used]], square[group[used]] = cells.term[used], cells.square[used]  # the largest one comes last
        if not wide.any():
            break
        ends = left[wide] + (right - left)[wide] * np.linspace(0.0, 1.0, PIECES + 1)[:, None]
        ends[-1] = right[wide]
        group, left, right = np.tile(group[wide], PIECES), ends[:-1].ravel(), ends[1:].ravel()
    return np.minimum(top, limit), np.where(top < limit, square, work.table.most[rows]), found


def choice_of(table: Table, of: Evaluation) -> Choice:
    """The free numbers of a point."""
    parts = []
    for cells, used in of.solved:
        lanes = cells.lanes
        kept = used[(lanes.row[used] >= of.first) & (lanes.row[used] < of.first + len(table.exits))]
        known = (lanes.row[kept] - of.first, *(x[kept] for x in (lanes.left, lanes.right, cells.c, cells.nu)))
        parts.append((*known, cells.tilts[..., places(lanes, kept)]))
    joined = (np.concatenate(x, axis=-1) for x in zip(*parts, strict=True))
    return Choice(*of.point.scales[:4], *of.point[2:], *joined)


def search(tables: Sequence[Table]) -> list[Choice]:
    """For each chain, free numbers with a small bound."""
    with np.errstate(all="ignore"):
        best = [float(table.copies @ table.most) for table in tables]
        points = [
            Point(k, scales, scales.mu * factor, *cheapest(table))
            for k, table in enumerate(tables)
            for i, scales in enumerate(best_scales(table))
            for factor in (FIRST if i == 0 else OTHER)
        ]
        fine = FINE if max(len(table.exits) for table in tables) <= FEW else LARGE
        coarse = evaluate(tables, points, best, COARSE)
        points = []
        for k in range(len(tables)):
            mine = of_chain(coarse, k)
            best[k] = min(found.total for found in mine)
            for top in rivals(mine):
                points += [top.point, *beside(top, mine)]
            for factor in (0.0, 1.0 / OFTEN) if points[-1].mu_missing else ():
                points.append(rivals(mine)[0].point._replace(mu_missing=factor * points[-1].mu_missing))
        seen: list[Evaluation] = []
        tops: list[Evaluation] = []
        for _ in range(fine.rounds):
            seen += evaluate(tables, points, best, fine)
            tops = [rivals(of_chain(seen, k))[0] for k in range(len(tables))]
            points = [point for k, top in enumerate(tops) for point in beside(top, of_chain(coarse + seen, k))]
            if not points:
                break
        return [choice_of(table, found) for table, found in zip(tables, tops, strict=True)]


def of_chain(found: list[Evaluation], k: int) -> list[Evaluation]:
    """The points of one chain."""
    return [one for one in found if one.point.chain == k]


def rivals(found: list[Evaluation]) -> list[Evaluation]:
    """The best point of each of the scales, the best of all first, as far as they are at most NEAR times that."""
    best: dict[int, Evaluation] = {}
    for one in sorted(found, key=lambda one: one.total):
        best.setdefault(id(one.point.scales), one)
    (first, *others) = best.values()
    return [first, *(one for one in others if one.total <= NEAR * first.total)]


def beside(top: Evaluation, seen: list[Evaluation]) -> list[Point]:
    """A better μ for the scales and prices of the best point: where its tangent meets that of the next point on the
    side where the bound falls. None, if that promises to lower the bound by less than GAIN."""
    alike = [found for found in seen if found.point._replace(mu=0.0) == top.point._replace(mu=0.0)]
    mu, up = top.point.mu, top.slope < 0.0
    others = [found for found in alike if (found.point.mu > mu if up else found.point.mu < mu)]
    if not others:
        return [top.point._replace(mu=mu * 1.3 if up else mu / 1.3)]
    other = min(others, key=lambda found: abs(found.point.mu - mu))
    least, width = min(mu, other.point.mu), abs(other.point.mu - mu)
    meet = mu
    if (other.slope < 0.0) != up:
        meet = (other.total - top.total + top.slope * mu - other.slope * other.point.mu) / (top.slope - other.slope)
        if top.total - (top.total + top.slope * (meet - mu)) < GAIN * top.total:
            return []
    if width < 0.02 * mu:
        return []
    return [top.point._replace(mu=min(least + 0.8 * width, max(least + 0.2 * width, meet)))]


def cheapest(table: Table) -> tuple[float, int]:
    """A good price of missing mass, and its v: of the largest ΣNκq with Σ rate·q ≤ most and q ≤ q̄, a knapsack."""
    best, price_of, which = math.inf, 0.0, 0
    gain = table.exits * table.heavy
    for v, rate in enumerate(table.missing.rate if table.open else ()):
        ratio = np.where(rate > 0.0, gain / np.maximum(rate, 1e-300), np.inf)
        order = np.argsort(-ratio)
        used = np.cumsum((rate * table.mass * table.copies)[order])
        last = int(np.searchsorted(used, table.missing.most[v]))
        margin = float(ratio[order[last]]) if last < len(order) else 0.0
        least = margin * float(table.missing.most[v]) if margin else 0.0
        least += float((table.copies * table.mass) @ np.maximum(0.0, gain - margin * rate))
        if least < best:
            best, price_of, which = least, margin, v
    return OFTEN * price_of, which
