"""The counts of one chain in the form that ``sharp`` takes: rows of classes of equal counts, each with its box."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import event
from .event import Array

Index = npt.NDArray[np.int64]

#: A row of counts: how often each successor was seen. Successors never seen are left out.
Row = Mapping[int, float]

#: r = α·S of the smoothed estimate P̂ = (n + r/S)/(N + r).
WEIGHT = 1.0 / 3.0


class Table(NamedTuple):
    """The visited rows of one chain. Entries of a row with equal counts are one class; the row's mode is one alone.

    If the states are declared, a row's classes are all states. Else they are the labels that it was seen to go to, and
    all others together are its *lump*.
    """

    #: Row x has the classes start[x] … start[x + 1] − 1. The first of them is the mode, the most frequent successor.
    start: Index
    #: Of each class: the row it belongs to, N[x,y], and how many entries it has.
    row: Index
    count: Any
    times: Array
    #: Of each row: N_x, the number of steps out of x whose outcomes are not known, and how many rows are like it.
    exits: Array
    holes: Array
    copies: Array
    #: Of each class: the box, and P̂(x,y).
    low: Array
    high: Array
    estimate: Array
    #: Of each row: the largest N‖p − P̂‖² that the boxes allow.
    most: Array
    #: Of each row: the number of its entries.
    size: Array
    #: Of each row's lump: q̄, its largest probability; κ, that of one label in it; N(S′ − k)e², what smoothing adds.
    mass: Array
    heavy: Array
    smooth: Array
    #: The holes of rows that have nothing else.
    mute: Array
    #: The number of declared states, or of those known so far.
    states: float
    #: Whether the states are not declared, and what the event then says of the lumps.
    open: bool
    missing: event.Missing
    #: log(K/δ).
    log_inverse: float


def table_of(
    rows: Sequence[Row], size: int, log_inverse: float, holes: Sequence[int] | None = None, mute: Sequence[int] = (),
    open_states: bool = False, copies: Sequence[int] | None = None,
) -> Table:  # fmt: skip
    """The table of a chain with these visited rows and ``size`` states (with ``open_states``, so many known ones).

    ``holes``: of each of these rows; ``mute``: of each other row that has holes. ``copies``: how many rows
    each stands for.
    """
    start, count, times = [0], [], []
    for row in rows:
        known = sorted((number for number in row.values() if number > 0), reverse=True)
        classes = Counter(known[1:])
        if size > len(known) and not open_states:
            classes[0.0] = size - len(known)
        count += [known[0], *classes]
        times += [1, *classes.values()]
        start.append(len(count))
    first = np.array(start)
    counts, many = np.array(count, dtype=np.float64), np.array(times, dtype=np.float64)
    row_of = np.repeat(np.arange(len(rows)), np.diff(first))
    exits = np.add.reduceat(counts * many, first[:-1])
    missing_steps = np.zeros(len(rows)) if holes is None else np.array(holes, dtype=np.float64)
    muted = np.array(mute, dtype=np.float64)
    alike = np.ones(len(rows)) if copies is None else np.array(copies, dtype=np.float64)
    labels = np.add.reduceat(many, first[:-1])
    estimate = (counts + WEIGHT / size) / (exits + WEIGHT)[row_of]
    none = np.zeros(len(rows))
    mass, heavy, smooth = none, none, none
    missing = event.Missing(none, np.zeros((1, len(rows))), np.zeros(1))
    if open_states:
        weight = event.row_weight(int(alike.sum()) + len(muted))
        level = log_inverse - math.log(event.SEEN * weight)
        low, high = event.seen_boxes(counts, exits[row_of], missing_steps[row_of], level)
        missing = event.missing_mass(exits, missing_steps, labels, muted, log_inverse, weight, level, alike)
        # A label that a hole may have reached is as heavy as the box of so many steps allows.
        met = event.seen_boxes(np.maximum(1.0, missing_steps), exits + missing_steps, none, level)[1]
        heavy = np.where(missing_steps > 0.0, met, event.heaviest(exits, level))
        mass = np.minimum(missing.mass, 1.0 - np.add.reduceat(many * low, first[:-1]) + event.SLACK)
        heavy = np.minimum(heavy, mass)
        smooth = exits * (size - labels) * (WEIGHT / size / (exits + WEIGHT)) ** 2
    else:
        # While one successor alone was seen, p_1 ≤ 1 − p_y makes R_x1 at least R_xy. Their sum is at most e^level.
        alone = ((counts[first[:-1]] == exits) & (missing_steps == 0))[row_of] & ((counts == 0) | (size == 2))
        level = log_inverse + 2.0 * math.log(size) - math.log(event.SINGLE) - math.log(2.0) * alone
        low, high = event.boxes(counts, exits[row_of], missing_steps[row_of], level)
    least = np.add.reduceat(many * low, first[:-1])
    high = np.maximum(low, np.minimum(high, 1.0 - (least[row_of] - low) + event.SLACK))
    found = Table(
        first, row_of, counts, many, exits, missing_steps, alike, low, high, estimate, exits, labels, mass, heavy,
        smooth, muted, float(size), open_states, missing, log_inverse,
    )  # fmt: skip
    return found._replace(most=box_loss(found))


def box_loss(table: Table) -> Array:
    """Of each row, an upper bound of N‖p − P̂‖² over the laws p in the boxes: ν + Σ_y max_p (N(p − P̂)² − νp).

    Each maximum is at an end of its box. Any ν gives a valid bound. The smallest one fills the boxes, beginning at the
    lower ends, by decreasing N(lo + up − 2P̂), until the probabilities sum to one. The lump is a box that begins at 0.
    """
    number = len(table.exits)
    row = np.concatenate((table.row, np.arange(number)))
    exits = table.exits[table.row]
    slope = np.concatenate((exits * (table.low + table.high - 2.0 * table.estimate), table.exits * table.heavy))
    mass = np.concatenate((table.times * (table.high - table.low), table.mass))
    order = np.lexsort((-slope, row))
    start = table.start[:-1] + np.arange(number)
    filled = np.cumsum(mass[order])
    filled -= (filled[start] - mass[order][start])[row[order]]
    room = 1.0 - np.add.reduceat(table.times * table.low, table.start[:-1])
    # The last class that is needed; if all are filled and the sum is still below one, the last of all.
    last = np.minimum(np.add.reduceat((filled < room[row[order]]).astype(np.int64), start), np.diff(table.start))
    nu = slope[order][start + last]
    ends = [exits * (end - table.estimate) ** 2 - nu[table.row] * end for end in (table.low, table.high)]
    lump = np.maximum(0.0, table.mass * (table.exits * table.heavy - nu)) + table.smooth
    found = nu + lump + np.add.reduceat(table.times * np.maximum(*ends), table.start[:-1])
    size = np.abs(nu) + np.abs(lump) + np.add.reduceat(table.times * np.maximum(*map(np.abs, ends)), table.start[:-1])
    return np.asarray(np.minimum(2.0 * table.exits, found + event.RELATIVE * size))
