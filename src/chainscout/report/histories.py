"""Chains over time, from the log.

A chain's certificate at an earlier moment depends on how often each of its states had been left, which only its log
tells. So its log is followed once, line by line, and points are kept at numbers of observations that grow by a few per
cent; when it is looked at again only what is new is read. A study keeps no history of its own: that would cost every
writer. ``totals`` does the same for what depends on all chains.
"""

import math
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..certificates.certificate import loss_bound
from ..counts import Counts
from ..store import RowRecord, plug_in_variability
from .totals import Totals, point_after

if TYPE_CHECKING:
    from ..study import Browser, ChainLine, Progress

#: Lines read in one transaction, and in one look, and seconds that one look takes: the rest is read at the next.
PAGE = 2_000
MOST_LINES = 200_000
SECONDS = 1.0
#: Histories that are kept.
MOST_CHAINS = 200


class History:
    """One chain at the points: numbers of observations of the whole study."""

    def __init__(self, line: "ChainLine", progress: "Progress", prior: Mapping[int, Mapping[int, int]]) -> None:
        self.number = line.number
        self._open, self._weight, self._method = line.open, line.weight, progress.method
        self._log_inverse = math.log(progress.chains / progress.delta)
        # A bound costs S² steps and more: large chains get fewer points, each still a point of all chains.
        self._stride = 1 if line.size <= 8 else 3 if line.size <= 24 else 8
        self._rows = {
            x: RowRecord(sum(row.values()), sum(n * n for n in row.values()), dict(row)) for x, row in prior.items()
        }
        self._last: dict[int, int] = {}  # path → state
        self._size = 0 if line.open else line.size
        self._next = 1
        #: Lines read, and the number of the last one.
        self.steps = self._read = 0
        #: When the last line that was read was told.
        self.latest: float | None = None
        self._known: tuple[float | None, float] | None = None  # certificate and variability, until the chain moves
        self.observations: list[int] = []
        self.time: list[float | None] = []
        self.certificate: list[float | None] = []
        self.share: list[float] = []
        self.variability: list[float] = []

    def follow(self, browser: "Browser", last: int, observations: int) -> bool:
        """Reads on to the chain's observation ``last``; False if there is more to read.

        ``observations``: of the study, counted before the chain's; up to there this chain's are all among the ``last``.
        """
        limit, end = self.steps + MOST_LINES, time.monotonic() + SECONDS
        while self.steps < min(last, limit) and time.monotonic() < end:
            lines = browser.observations(self.number, self._read, min(PAGE, last - self.steps))
            for line in lines:
                self._mark_until(line.number - 1)
                if line.path in self._last:
                    self._count(self._last[line.path], line.state)
                self._last[line.path] = line.state
                self._size = max(self._size, line.state + 1)
                self.steps, self._read, self.latest, self._known = self.steps + 1, line.number, line.time, None
            if not lines:
                break
        if self.steps < last:
            return False
        self._mark_until(observations)
        return True

    def _count(self, x: int, y: int) -> None:
        row = self._rows.setdefault(x, RowRecord())
        seen = row.counts.get(y, 0)
        row.counts[y] = seen + 1
        row.exits += 1
        row.squares += 2 * seen + 1

    def _mark_until(self, number: int) -> None:
        """The points up to the study's observation ``number``, at which the chain stood where it stands."""
        while self._next <= number:
            if self._known is None:
                self._known = self._bound(), self._weight * plug_in_variability(self._size, self._rows)
            self.observations.append(self._next)
            self.time.append(self.latest)
            self.certificate.append(self._known[0])
            self.variability.append(self._known[1])
            self.share.append(self.steps / self._next)
            for _ in range(self._stride):
                self._next = point_after(self._next)

    def _bound(self) -> float | None:
        """ω·b where the reading has come to."""
        if not self._rows:
            return None
        counts = Counts.over({x: row.counts for x, row in self._rows.items()}, self._size, self._open)
        return self._weight * loss_bound(counts, self._method, self._log_inverse)


class Histories:
    """The histories that were asked for, kept up to date by reading what is new."""

    def __init__(self, browser: "Browser", second: "Browser | None" = None) -> None:
        """``second``: the same study once more, for the log of all chains, which is long."""
        self._browser = browser
        self._second = second or browser
        self._lock = threading.Lock()
        self._known: dict[int, History] = {}
        self._totals: Totals | None = None

    def of(self, line: "ChainLine", progress: "Progress") -> tuple[History, bool]:
        """A chain's history, and whether it has been read to its end; the study's progress must be the older one."""
        with self._lock:
            history = self._known.pop(line.number, None)
            if history is None:
                history = History(line, progress, self._browser.prior_counts(line.number))
            self._known[line.number] = history  # the latest asked for last
            if len(self._known) > MOST_CHAINS:
                del self._known[next(iter(self._known))]
            return history, history.follow(self._browser, line.observations, progress.observations)

    def totals(self, progress: "Progress") -> tuple[Totals, bool]:
        """What depends on all chains, and whether it has been read to the end."""
        with self._lock:
            if self._totals is None:
                self._totals = Totals(self._second)
            return self._totals, self._totals.follow(self._second, progress.observations)
