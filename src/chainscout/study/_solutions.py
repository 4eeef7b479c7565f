"""Certificates of growing chains: each starts from the last search, while this process has the study open.

A solution of ``sharp`` is the choice of its free numbers. Every choice gives a valid bound. The bound from an old
choice is only a little less tight than one from a new search, and costs a tenth of it. Solutions are kept in memory and
are not stored: a study that is opened again makes a new search.
"""

import math
from collections import OrderedDict
from collections.abc import Mapping

from ..certificates import EXITS, sharp
from ..counts import Counts
from ..store import ChainRecord, RowRecord, StudyRecord

#: A new search is made when T has grown by the first factor since the last one, or when T·b has grown by the second.
GROWTH = 1.25
WORSE = 1.1
#: A certificate of at most this many times the target always comes from a new search from the counts alone. So the
#: moment when a study stops does not depend on the memory of this process.
NEAR = 1.25
#: If more rows than this have changed, a new search is made.
MOST_ROWS = 32
#: The bytes that the solutions of a study may take, and about how many a row and an entry of a chain take.
MOST_BYTES = 64_000_000
ROW_BYTES, ENTRY_BYTES = 1_000, 200


class _Solution:
    """The last search of one chain."""

    def __init__(self, size: int, log_inverse: float) -> None:
        self.running = sharp.Running(size, log_inverse)
        #: The counts that ``running`` has seen last.
        self.seen: dict[int, dict[int, int]] = {}
        #: T and T·b of the last search.
        self.searched, self.excess = 0, math.inf

    @property
    def bytes(self) -> int:
        """Approximately how much memory it takes."""
        return ROW_BYTES * len(self.seen) + ENTRY_BYTES * sum(map(len, self.seen.values()))

    def bound(self, rows: dict[int, dict[int, int]], size: int) -> float:
        """b for these counts, from the last search if that is good enough."""
        counts = Counts.over(rows, size)
        total = counts.total
        changed = [x for x, row in rows.items() if self.seen.get(x) != row]
        found = math.inf
        if rows.keys() == self.seen.keys() and total < GROWTH * self.searched and 0 < len(changed) <= MOST_ROWS:
            for x in changed:  # the bound is valid after the last of them
                found = self.running.moved(counts, x)
        if found == math.inf or found * total > WORSE * self.excess:
            found = self.running.full(counts)
            self.searched, self.excess = total, found * total
            changed = list(rows)
            self.seen = {}
        self.seen.update((x, dict(rows[x])) for x in changed)
        return found


class Solutions:
    """The last searches of the chains that moved most recently."""

    def __init__(self) -> None:
        self._known: OrderedDict[int, _Solution] = OrderedDict()
        self._bytes = 0

    def bound(self, study: StudyRecord, chain: ChainRecord, rows: Mapping[int, RowRecord]) -> tuple[float, float]:
        """b for a closed chain with at least one transition and two states, and its `ChainRecord.error`."""
        solution = self._known.pop(chain.number, None)  # an error leaves no solution behind
        if solution is None:
            solution = _Solution(chain.size, math.log(study.chains / study.delta))
        self._bytes -= solution.bytes
        found = solution.bound({x: row.counts for x, row in rows.items()}, chain.size)
        self._known[chain.number] = solution
        self._bytes += solution.bytes
        while self._bytes > MOST_BYTES and len(self._known) > 1:
            self._bytes -= self._known.popitem(last=False)[1].bytes
        return found, solution.running.error(EXITS)
