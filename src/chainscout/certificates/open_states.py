"""Certificates and intervals of a chain whose states are not all known beforehand (MATH §6, 'Open states').

S′ is the number of states known so far. The mixture's cost, (S−1)/2·log(1 + u/S), grows with S and is below its limit
u/2, which is taken. Smoothing over S′ states moves a row that has mass elsewhere by at most
‖1/S′ − P(x,·)‖² ≤ 1 + 1/S′.

Intervals: the j-th pair that is discovered gets δ/(K·j(j+1)), so that a chain spends δ/K at most. Which pair that is
depends on what was observed, so its coin is counted from the exit after the one that revealed it: from there on it is a
fixed coin, and Ville's inequality holds. A pair that was not seen yet has no interval but [0, 1].
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .entrywise import intervals
from .estimate import entries_frame

Array = npt.NDArray[np.float64]


class OpenEstimate:
    """What is known of a chain with open states; the attributes are those of ``Estimate``."""

    def __init__(
        self,
        states: Sequence[Hashable],
        rows: Mapping[int, Mapping[int, int]],
        discoveries: Mapping[int, Mapping[int, tuple[int, int, int]]],
        delta: float,
        chains: int,
    ) -> None:
        """``discoveries``: x → y → (the pair's number in order of discovery, N_x and N[x,y] just after it)."""
        size = len(states)
        self.delta = delta
        self.states = states
        self.transitions = np.zeros((size, size), dtype=np.int64)
        self.lower: Array = np.zeros((size, size))
        self.upper: Array = np.ones((size, size))
        for x, row in rows.items():
            for y, number in row.items():
                self.transitions[x, y] = number
        self.exits = self.transitions.sum(axis=1)
        for x, found in discoveries.items():
            for y, (j, exits, count) in found.items():
                level = math.log(chains * j * (j + 1) / delta)
                low, high = intervals(self.transitions[x, y] - count, self.exits[x] - exits, level)
                self.lower[x, y], self.upper[x, y] = float(low), float(high)
        smoothed: Array = self.transitions + np.float64(1 / (3 * max(1, size)))  # r = 1/3, over S′ states
        self.matrix: Array = smoothed / smoothed.sum(axis=1, keepdims=True)

    @property
    def stationary(self) -> Array:
        """π̂(x) = N_x/T; all nan before the first transition."""
        total = self.exits.sum()
        return np.asarray(self.exits / total) if total else np.full(len(self.exits), math.nan)

    def to_pandas(self) -> Any:
        """A pandas DataFrame with a row for each entry between known states, as that of ``Estimate``."""
        return entries_frame(self, self.lower, self.upper)
