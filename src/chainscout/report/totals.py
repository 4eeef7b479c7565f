"""Λ of the estimates and the policy's aim at past moments: both need all chains, so the whole log is followed, once.

Counts of chains whose states are known beforehand lie in flat arrays, so that 100,000 chains fit. A line of the log
changes one row of them; what it changes of Λ is added, and now and then Λ is summed up anew, so that no errors add up.
"""

import math
import time
from array import array
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..counts import smoothed, smoothing
from ..rows import smoothed_gini
from ..store import RowRecord, plug_in_variability
from .shares import MOST_CHAINS, MOST_ENTRIES, aimed

if TYPE_CHECKING:
    from ..study import Browser

#: Σ_k S_k² up to which the log is followed: four bytes each.
MOST_PAIRS = 25_000_000
#: Lines read in one transaction, and seconds that one look takes: the rest is read at the next.
PAGE = 5_000
SECONDS = 1.0
#: The policy's aim is found at one point in so many: it needs a stationary law of each chain.
STRIDE = 4
#: r = αS of the smoothed estimates.
WEIGHT = 1 / 3


def point_after(number: int) -> int:
    """The next number of observations at which the past is looked at."""
    return max(number + 1, math.ceil(number * 1.03))


class Totals:
    """All chains at the points."""

    def __init__(self, browser: "Browser") -> None:
        outlines = browser.outlines()
        self._sizes = [0 if outline.open else outline.size for outline in outlines]
        self._weights = [outline.weight for outline in outlines]
        pairs = sum(size * size for size in self._sizes)
        #: Whether there is room for all counts.
        self.possible = pairs <= MOST_PAIRS
        #: Λ, and each chain's share in the policy's aim, by the number of observations.
        self.variability: dict[int, float] = {}
        self.aims: dict[int, list[float]] = {}
        self._number, self._next, self._place = 0, 1, 0
        #: The number that the reading has come to, if it is no point, and Λ there.
        self._now: tuple[int, float] = (0, 0.0)
        self._open: dict[int, dict[int, RowRecord]] = {k: {} for k, outline in enumerate(outlines) if outline.open}
        self._open_sizes = dict.fromkeys(self._open, 0)
        if not self.possible:
            return
        self._first_row = list(accumulate(self._sizes, initial=0))
        self._first_pair = list(accumulate((size * size for size in self._sizes), initial=0))
        self._exits, self._squares = (array("q", bytes(8 * self._first_row[-1])) for _ in range(2))
        self._counts = array("i", bytes(4 * pairs))
        self._last: dict[tuple[int, int], int] = {}  # chain and path → state
        sizes = np.repeat(np.array(self._sizes, dtype=np.float64), self._sizes)
        self._alpha = WEIGHT / sizes
        self._sum, self._added = 0.0, 0  # Λ of these rows, and the lines since it was summed up
        self._row_weight = np.repeat(np.array(self._weights), self._sizes)
        self._has_aim = not self._open and len(outlines) <= MOST_CHAINS and pairs <= MOST_ENTRIES
        for k, outline in enumerate(outlines):
            if outline.warm:
                for x, row in browser.prior_counts(k).items():
                    for y, number in row.items():
                        self._count(k, x, y, number)
        self._sum_up()

    def follow(self, browser: "Browser", last: int) -> bool:
        """Reads on to the study's observation ``last``; False if there is more to read."""
        end = time.monotonic() + SECONDS
        while self.possible and self._number < last:
            if time.monotonic() > end:
                return False
            lines = browser.observations(None, self._number, min(PAGE, last - self._number))
            for line in lines:
                chain, state = line.chain, line.state
                before = self._last.get((chain, line.path))
                if before is not None:
                    self._count(chain, before, state, 1)
                self._last[chain, line.path] = state
                if chain in self._open:
                    self._open_sizes[chain] = max(self._open_sizes[chain], state + 1)
                self._number = line.number
                if self._number == self._next:
                    self._mark(browser)
            if not lines:
                break
        if self.possible and self._number and self._number not in self.variability:
            self._now = self._number, self._variability()
        return True

    def variability_at(self, number: int) -> float | None:
        """Λ after so many observations: at a point, or where the reading has come to."""
        if number in self.variability:
            return self.variability[number]
        return self._now[1] if number == self._now[0] else None

    def _count(self, chain: int, x: int, y: int, number: int) -> None:
        if chain in self._open:
            known = self._open[chain].setdefault(x, RowRecord())
            seen = known.counts.get(y, 0)
            known.counts[y] = seen + number
            known.exits += number
            known.squares += number * (2 * seen + number)
            return
        size = self._sizes[chain]
        row, pair = self._first_row[chain] + x, self._first_pair[chain] + x * size + y
        seen, exits, squares = self._counts[pair], self._exits[row], self._squares[row]
        before = smoothed_gini(exits, squares, WEIGHT / size, WEIGHT)
        self._counts[pair] = seen = seen + number
        self._exits[row] = exits = exits + number
        self._squares[row] = squares = squares + number * (2 * seen - number)
        self._sum += self._weights[chain] * (smoothed_gini(exits, squares, WEIGHT / size, WEIGHT) - before)
        self._added += 1

    def _mark(self, browser: "Browser") -> None:
        self.variability[self._number] = self._variability()
        if self._has_aim and self._place % STRIDE == 0:
            matrices = [self._matrix(k, size) for k, size in enumerate(self._sizes)]
            aims = aimed(browser.study, matrices, self._weights)
            if aims is not None:
                self.aims[self._number] = aims
        self._place += 1
        self._next = point_after(self._number)

    def _variability(self) -> float:
        if self._added > 10 * len(self._exits):
            self._sum_up()
        return self._sum + sum(
            self._weights[chain] * plug_in_variability(self._open_sizes[chain], rows)
            for chain, rows in self._open.items()
        )

    def _sum_up(self) -> None:
        exits, squares = (np.array(part, dtype=np.float64) for part in (self._exits, self._squares))
        # The same scalar function as everywhere; it works on arrays as well.
        rows: Any = smoothed_gini(exits, squares, self._alpha, WEIGHT)  # type: ignore[arg-type]
        self._sum, self._added = float(np.dot(self._row_weight, rows)), 0

    def _matrix(self, chain: int, size: int) -> npt.NDArray[np.float64]:
        first = self._first_pair[chain]
        counts = np.frombuffer(self._counts, dtype=np.intc)[first : first + size * size].reshape(size, size)
        return smoothed(counts, smoothing(None, size))
