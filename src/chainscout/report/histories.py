"""Chains over time, from the log.

A chain's certificate at an earlier moment depends on how often each of its states had been left, which only its log
tells. So its log is followed once, line by line, and points are kept at observations that grow by a few per cent; when
it is looked at again only what is new is read. A study keeps no history of its own: that would cost every writer.
"""

import math
import threading
from typing import TYPE_CHECKING

from ..certificates.mixture import bound_from_exits

if TYPE_CHECKING:
    from ..study import ChainLine, Study

#: Lines read in one transaction, and in one look: the rest is read at the next.
PAGE = 2_000
MOST_LINES = 200_000
#: Histories that are kept.
MOST_CHAINS = 200


class History:
    """The points of one chain."""

    def __init__(self, line: "ChainLine", chains: int, delta: float, prior: dict[int, int]) -> None:
        self.number = line.number
        self._open, self._size, self._weight = line.open, line.size, line.weight
        self._log_inverse = math.log(chains / delta)
        # A bound costs S steps and more: large chains get fewer points.
        self._growth = 1.03 if line.size <= 20 else 1.1 if line.size <= 100 else 1.25
        self._exits = dict(prior)
        self._last: tuple[int, int] | None = None  # segment and state
        self._known = 0 if line.open else line.size
        self._next = 1
        self.steps = 0
        #: When the last line that was read was told.
        self.latest = 0.0
        self.observations: list[int] = []
        self.time: list[float] = []
        self.certificate: list[float | None] = []
        self.share: list[float] = []

    def follow(self, study: "Study", last: int) -> bool:
        """Reads on to the chain's observation ``last``; False if there is more to read."""
        limit = self.steps + MOST_LINES
        while self.steps < min(last, limit):
            lines = study.path(self.number, self.steps, min(PAGE, last - self.steps))
            for line in lines:
                if self._last is not None and self._last[0] == line.segment:
                    self._exits[self._last[1]] = self._exits.get(self._last[1], 0) + 1
                self._last = line.segment, line.state
                self._known = max(self._known, line.state + 1)
                self.steps, self.latest = line.step, line.time
                if line.step >= self._next:
                    self._next = max(line.step + 1, math.ceil(line.step * self._growth))
                    self._mark(line.number, line.time)
            if not lines:
                break
        return self.steps >= last

    def _mark(self, number: int, moment: float) -> None:
        self.observations.append(number)
        self.time.append(moment)
        self.certificate.append(self.bound())
        self.share.append(self.steps / number)

    def bound(self) -> float | None:
        """ω·b where the reading has come to."""
        exits = [self._exits[x] for x in sorted(self._exits)]
        value = self._weight * bound_from_exits(exits, self._known, self._log_inverse, open_states=self._open)
        return value if math.isfinite(value) else None


class Histories:
    """The histories that were asked for, kept up to date by reading what is new."""

    def __init__(self, study: "Study") -> None:
        self._study = study
        self._lock = threading.Lock()
        self._known: dict[int, History] = {}

    def of(self, line: "ChainLine") -> tuple[History, bool]:
        """A chain's history, and whether it has been read to its end."""
        with self._lock:
            history = self._known.pop(line.number, None)
            if history is None:
                progress = self._study.progress()
                prior = self._study.prior_exits(line.number)
                history = History(line, progress.chains, progress.delta, prior)
            self._known[line.number] = history  # the latest asked for last
            if len(self._known) > MOST_CHAINS:
                del self._known[next(iter(self._known))]
            return history, history.follow(self._study, line.observations)
