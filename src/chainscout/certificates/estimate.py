"""What is known of one chain: the estimated matrix, and an interval for each entry that holds at all times at once."""

import math
from collections.abc import Hashable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ..counts import Counts
from ..errors import InputError
from ..validation import failure_probability, shown, whole_number
from .entrywise import intervals

Array = npt.NDArray[np.float64]


class Estimate:
    """A chain's smoothed matrix with all-time intervals.

    All intervals of all chains hold at once with probability ≥ 1 − δ if ``entries`` is Σ_k S_k² over the chains that
    share δ (by default this chain alone). A larger number leaves a part of δ to others.
    """

    def __init__(
        self, counts: Counts, delta: float = 0.05, *, entries: int | None = None, alpha: float | str | None = None
    ) -> None:
        if not isinstance(counts, Counts):
            raise InputError(f"an estimate is made from Counts, not from {shown(counts)}")
        self.delta = failure_probability(delta)
        least = counts.size**2
        meaning = "Σ S² over the chains that share delta"
        self.entries = least if entries is None else whole_number(entries, "entries", least=least, meaning=meaning)
        self.states: Sequence[Hashable] = counts.states
        self.exits = counts.exits
        self.transitions = counts.transitions
        self.matrix = counts.matrix(alpha)
        self._without_intervals = _without_intervals(counts)

    @property
    def stationary(self) -> Array:
        """π̂(x) = N_x/T, the paper's empirical stationary law; all nan before the first transition."""
        total = self.exits.sum()
        return self.exits / total if total else np.full(len(self.exits), math.nan)

    @property
    def lower(self) -> Array:
        """The lower ends of the intervals."""
        return self._intervals[0]

    @property
    def upper(self) -> Array:
        """The upper ends of the intervals."""
        return self._intervals[1]

    @cached_property
    def _intervals(self) -> tuple[Array, Array]:
        if self._without_intervals:
            raise InputError(self._without_intervals)
        return intervals(self.transitions, self.exits[:, None], math.log(self.entries / self.delta))


def _without_intervals(counts: Counts) -> str:
    """Why no interval of these counts would hold, or nothing."""
    if counts.correlated:
        return "no interval holds for counts taken with a sliding lag: their transitions overlap and are correlated"
    if counts.open_states:
        return "intervals need the chain's states to be known beforehand, and these are only the ones seen"
    return ""
