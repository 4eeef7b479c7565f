"""Certificates and intervals of a chain whose states are not all known beforehand (MATH §6, 'Open states').

S′ is the number of states known so far. The mixture's cost, (S−1)/2·log(1 + u/S), grows with S towards its limit u/2,
and the limit is used. Smoothing over S′ states moves a row that has mass elsewhere by at most
‖1/S′ − P(x,·)‖² ≤ 1 + 1/S′.

Intervals: the j-th pair that is discovered gets δ/(K·j(j+1)), so that a chain spends at most δ/K. Which pair comes j-th
depends on the observations. So its coin is counted from the exit after the one that revealed it: from there on it is a
fixed coin, and Ville's inequality holds. A pair that was not seen yet has the interval [0, 1].
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .entrywise import intervals
from .estimate import RowEstimates, entries_frame

Array = npt.NDArray[np.float64]


class OpenEstimate(RowEstimates):
    """The estimate of a chain with open states. It has the attributes of ``Estimate``."""

    def __init__(
        self,
        states: Sequence[Hashable],
        rows: Mapping[int, Mapping[int, int]],
        discoveries: Mapping[int, Mapping[int, tuple[int, int, int]]],
        delta: float,
        chains: int,
    ) -> None:
        """``discoveries``: x → y → (the pair's number in order of discovery, N_x and N[x,y] just after it)."""
        super().__init__(states, rows, delta, 1 / (3 * max(1, len(states))))  # r = 1/3, over S′ states
        self._discoveries = discoveries
        self._chains = chains

    def to_pandas(self) -> Any:
        """A pandas DataFrame with a row for each entry between known states, in the form of ``Estimate.to_pandas``."""
        return entries_frame(self, self.lower, self.upper)

    def _ends(self, rows: range, columns: range, counts: npt.NDArray[np.int64]) -> tuple[Array, Array]:
        lower, upper = np.zeros(counts.shape), np.ones(counts.shape)
        inside = [
            (x, y, *known)
            for x in rows
            for y, known in self._discoveries.get(x, {}).items()
            if columns.start <= y < columns.stop
        ]
        if inside:
            x, y, number, exits, count = np.array(inside, dtype=np.int64).T
            place = x - rows.start, y - columns.start
            levels = np.log(self._chains * (number * (number + 1.0)) / self.delta)
            lower[place], upper[place] = intervals(counts[place] - count, self.exits[x] - exits, levels)
        return lower, upper

    def widths(self) -> Array:
        """The width of the widest interval of each row. It is one if a pair of the row was not seen."""
        found = np.ones(len(self.states))
        for x, known in self._discoveries.items():
            if len(known) == len(self.states):
                part = self.window(range(x, x + 1), range(len(self.states)))
                found[x] = (part.upper - part.lower).max()
        return found
