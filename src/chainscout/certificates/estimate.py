"""What is known of one chain: the estimated matrix, and an interval for each entry that holds at all times at once."""

import math
from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..counts import Counts, smoothing
from ..errors import InputError
from ..frames import frame
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
        self._alpha = smoothing(alpha, counts.size)
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

    def to_pandas(self) -> Any:
        """A pandas DataFrame with a row for each entry: from, to, transitions, estimate, lower, upper.

        The ends of the intervals are nan where these counts have none.
        """
        return entries_frame(self, *([None, None] if self._without_intervals else self._intervals))

    def to_xarray(self, draws: int = 1_000, *, chains: int = 4, seed: int = 0) -> Any:
        """Draws of the matrix from its posterior law, as an xarray Dataset that ArviZ reads.

        The variable ``P`` has the dimensions chain, draw, from and to. Rows are independent, and row x has the law
        Dirichlet(N[x,·] + α), whose mean is ``matrix``. These are credible values under that prior: unlike the
        intervals they guarantee nothing. ``chains`` is what samplers call so, by default four as theirs; the draws are
        all independent.

        ``draws``: draws in each of the ``chains``.
        ``seed``: what all randomness follows from.
        """
        from .posterior import posterior_draws

        return posterior_draws(self.states, self.transitions, self._alpha, draws, chains, seed)

    @cached_property
    def _intervals(self) -> tuple[Array, Array]:
        if self._without_intervals:
            raise InputError(self._without_intervals)
        return intervals(self.transitions, self.exits[:, None], math.log(self.entries / self.delta))


def entries_frame(estimate: Any, lower: Array | None, upper: Array | None) -> Any:
    """The entries of an estimate, one a row."""
    states = list(estimate.states)
    nowhere = np.full(estimate.matrix.size, math.nan)
    return frame(
        {
            "from": [state for state in states for _ in states],
            "to": states * len(states),
            "transitions": estimate.transitions.ravel(),
            "estimate": estimate.matrix.ravel(),
            "lower": nowhere if lower is None else lower.ravel(),
            "upper": nowhere if upper is None else upper.ravel(),
        }
    )


def _without_intervals(counts: Counts) -> str:
    """Why no interval of these counts would hold, or nothing."""
    if counts.correlated:
        return "no interval holds for counts taken with a sliding lag: their transitions overlap and are correlated"
    if counts.open_states:
        return "intervals need the chain's states to be known beforehand, and these are only the ones seen"
    return ""
