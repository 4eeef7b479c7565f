"""The ``sharp`` certificate: a bound on the loss that knows how nearly deterministic each row is (MATH §9).

docs/certificates.md has the proof. ``event`` holds everything that the bound's validity depends on, ``row`` computes
one row's term, and ``search`` chooses the free numbers. All three are plain scalar Python over scratch space that the
caller gives. They are compiled when the first certificate is requested.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np

from ...compile import compiled, is_off
from ...counts import Counts
from .event import FAMILIES
from .row import CELLS, FOUND, PASSES, PLANE
from .search import LEVELS, Space, Table, evaluate

#: A row of counts: how often each successor was seen. Successors never seen are left out.
Row = Mapping[int, float]


def table_of(rows: Sequence[Row], size: int) -> Table:
    """The counts of a chain of ``size`` states, row by row, in the shape that the kernels take.

    Entries of a row with equal counts form one class. The most frequent successor (the first one in case of a tie)
    forms a class of its own.
    """
    start: list[int] = []
    stop: list[int] = []
    count: list[float] = []
    times: list[float] = []
    exits: list[float] = []
    for row in rows:
        mode = max(row, key=lambda y: (row[y], -y))
        classes: dict[float, int] = {}
        for y, number in row.items():
            if y != mode:
                classes[number] = classes.get(number, 0) + 1
        unseen = size - len(row)
        start.append(len(count))
        count.append(float(row[mode]))
        times.append(1.0)
        for number in sorted(classes, reverse=True):
            count.append(float(number))
            times.append(float(classes[number]))
        if unseen:
            count.append(0.0)
            times.append(float(unseen))
        stop.append(len(count))
        exits.append(float(sum(row.values())))
    whole, real = np.int64, np.float64
    return Table(
        np.array(start, whole), np.array(stop, whole), np.array(count, real), np.array(times, real),
        np.array(exits, real),
    )  # fmt: skip


def space_for(classes: int, rows: int) -> Space:
    """Scratch space for a table with this number of classes and rows."""
    cells, candidates = CELLS + 1, 2 * FAMILIES
    lengths = {
        **dict.fromkeys(("low", "high", "estimate", "mean", "half", "tilt", "top", "top_grown", "gain"), classes),
        **dict.fromkeys(("left", "right", "cell_term", "cell_square", "cell_state", "cell_halved"), cells),
        **dict.fromkeys(("cost", "give", "half_give", "plain"), LEVELS * rows),
        **dict.fromkeys(("rating", "level", "start"), candidates),
        "cell_found": FOUND * cells, "found": FOUND, "plane": PASSES * PLANE, "offset": candidates * rows, "chosen": 7,
    }  # fmt: skip
    wholes = {"level", "natural", "offset", "trial", "order", "unsolved", "place", "cell_state", "cell_halved"}
    return cleared(
        Space(
            *(np.empty(lengths.get(name, rows), np.int64 if name in wholes else np.float64) for name in Space._fields)
        )
    )


def cleared(space: Space) -> Space:
    """Scratch space in which every number is 0, except ``top_grown``, which is e to the power of ``top``."""
    for array in space:
        array.fill(0)
    space.top_grown.fill(1)
    return space


@lru_cache(maxsize=3)
def kernel(function: Callable[..., float]) -> Callable[..., float]:
    """A compiled kernel. With compilation off: the same function, interpreted over lists."""
    if not is_off():
        return compiled(function, {}, cache=True)

    def interpreted(table: Table, *arguments: Any) -> float:
        arrays = arguments[-1]
        lists = Space(*(array.tolist() for array in arrays))
        found = function(Table(*(array.tolist() for array in table)), *arguments[:-1], lists)
        for array, values in zip(arrays, lists, strict=True):
            array[:] = values
        return found

    return interpreted


#: A search uses the smallest power of this number that is at least log(K/δ): see ``largest_loss``.
GRID, LEAST = 1.2, 0.25


def largest_loss(table: Table, size: int, log_inverse: float, space: Space | None = None) -> float:
    """T·b: the loss of a chain of ``size`` ≥ 2 states exceeds b with probability at most e^{−log_inverse}.

    A bound found for a smaller δ also holds for δ. The search runs at the next point of a fixed grid of log(K/δ).
    Between two points of the grid, a smaller δ therefore never has a smaller bound. Across points of the grid this
    happens hardly ever, however crude the search is.
    """
    rows = len(table.exits)
    space = space_for(len(table.count), rows) if space is None else space
    step = math.ceil(math.log(max(log_inverse, LEAST)) / math.log(GRID) - 1e-9)
    spare = max(0.0, GRID**step - log_inverse)
    return kernel(evaluate)(table, rows, float(size), log_inverse + spare, spare, space)


class Bounds:
    """The result of one evaluation of a chain: b, and the largest error in each row, on the same event."""

    def __init__(self, counts: Counts, log_inverse: float, room: Any = None) -> None:
        """``room``: a ``Room`` whose scratch space is used, when chains are evaluated one after another."""
        size, total = counts.size, counts.total
        #: b; the bound on Σ_x π̂(x)·TV(P̂(x,·), P(x,·)); N_x and the largest error of an entry, for each visited row.
        self.loss, self.total_variation = math.inf, 1.0
        self.entries: tuple[tuple[int, float], ...] = ()
        if size == 1:
            self.loss, self.total_variation = 0.0, 0.0
            self.entries = ((total, 0.0),)
            return
        if total == 0:
            return
        # In an order that does not depend on the states' numbers.
        rows_of = sorted(counts.rows().values(), key=lambda row: sorted(row.values(), reverse=True), reverse=True)
        table = table_of(rows_of, size)
        classes = len(table.count)
        space = (room or Room()).space(classes, len(table.exits))
        self.loss = largest_loss(table, size, log_inverse, space) / total
        estimate = space.estimate[:classes]
        errors = np.maximum(space.high[:classes] - estimate, estimate - space.low[:classes])
        rows = np.minimum(1.0, 0.5 * np.add.reduceat(table.times * errors, table.start))
        # Σ_x π̂(x)·½‖·‖₁ ≤ ½√(S·L), by the inequality of Cauchy and Schwarz twice; or row by row from the boxes.
        widest = float(table.exits @ rows) / total
        self.total_variation = min(widest, 0.5 * math.sqrt(size * self.loss)) * (1 + 1e-9)
        largest = np.maximum.reduceat(errors, table.start)
        self.entries = tuple(zip(table.exits.astype(np.int64).tolist(), largest.tolist(), strict=True))


class Room:
    """Scratch space that is shared by chains evaluated one after another. It grows when a chain needs more."""

    def __init__(self) -> None:
        self._classes, self._rows = 0, 0
        self._space: Space | None = None

    def space(self, classes: int, rows: int) -> Space:
        """Cleared space for at least this number of classes and rows: no chain's result depends on another chain."""
        if self._space is None or classes > self._classes or rows > self._rows:
            self._classes, self._rows = max(classes, self._classes), max(rows, self._rows)
            self._space = space_for(self._classes, self._rows)
        return cleared(self._space)


def prepare() -> None:
    """Compiles everything that a study's certificates need, so that no observation waits for it."""
    Bounds(Counts.from_path([0, 1, 1, 0], 2), 1.0)


#: With more chains than this, threads share the work, in parts of this many chains: the kernels release Python's lock.
FEW = 64


def bounds(counts: Sequence[Counts], log_inverse: float) -> list[Bounds]:
    """The bounds of each chain; ``log_inverse`` is log(K/δ)."""

    def some(first: int) -> list[Bounds]:
        room = Room()
        return [Bounds(chain, log_inverse, room) for chain in counts[first : first + FEW]]

    firsts = range(0, len(counts), FEW)
    if len(counts) <= FEW:
        return [bound for first in firsts for bound in some(first)]
    with ThreadPoolExecutor() as pool:
        return [bound for found in pool.map(some, firsts) for bound in found]
