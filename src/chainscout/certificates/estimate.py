"""What is known of one chain: the estimated matrix, and an interval for each entry that holds at all times at once.

A chain may have many states. So an estimate keeps only the counts, and computes a part of the matrix on demand.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..counts import DENSE_LIMIT, Counts, never_left, smoothed, smoothing
from ..errors import InputError
from ..frames import frame
from ..markup import MOST, html_table
from ..validation import failure_probability, shown, whole_number
from .entrywise import intervals

Array = npt.NDArray[np.float64]


class Part(NamedTuple):
    """Some rows and columns of an estimate."""

    transitions: npt.NDArray[np.int64]
    matrix: Array
    lower: Array
    upper: Array


class RowEstimates(ABC):
    """A chain's smoothed matrix with intervals: a part at a time, or whole if there are not too many states."""

    def __init__(
        self, states: Sequence[Hashable], rows: Mapping[int, Mapping[int, int]], delta: float, alpha: float
    ) -> None:
        self.states = states
        self.delta = delta
        self._rows = rows
        self._alpha = alpha
        self.exits = np.zeros(len(states), dtype=np.int64)
        for x, row in rows.items():
            self.exits[x] = sum(row.values())

    @property
    def stationary(self) -> Array:
        """π̂(x) = N_x/T, the paper's empirical stationary law; all nan before the first transition."""
        total = self.exits.sum()
        return np.asarray(self.exits / total) if total else np.full(len(self.exits), math.nan)

    def window(self, rows: range, columns: range) -> Part:
        """The part with these rows and columns. Both ranges are clipped to the existing states."""
        rows, columns = (part[: max(0, len(self.states) - part.start)] for part in (rows, columns))
        counts = self._counts_of(rows)
        matrix = self._smoothed(counts)
        part = slice(columns.start, columns.stop)
        return Part(counts[:, part], matrix[:, part], *self._ends(rows, columns, counts[:, part]))

    def __repr__(self) -> str:
        never = int((self.exits == 0).sum())
        rows = never_left(never, len(self.states)) if never else "every row was left"
        return f"Estimate({len(self.states):,} states, {int(self.exits.sum()):,} transitions, {rows})"

    def _repr_html_(self) -> str:
        """The first rows and columns of the matrix, for a notebook."""
        columns = [str(state) for state in self.states[:MOST]]
        part = self.window(range(MOST), range(MOST)).matrix
        rows = [
            (name, *map(float, values), int(exits))
            for name, values, exits in zip(columns, part, self.exits, strict=False)
        ]
        notes = [f"The first {MOST} of {len(self.states):,} states are shown."] if len(self.states) > MOST else []
        return html_table(repr(self), ("from \\ to", *columns, "times left"), rows, notes)

    @abstractmethod
    def widths(self) -> Array:
        """The width of the widest interval of each row."""

    @abstractmethod
    def _ends(self, rows: range, columns: range, counts: npt.NDArray[np.int64]) -> tuple[Array, Array]:
        """The lower and the upper ends of the intervals of a part."""

    def _counts_of(self, rows: range) -> npt.NDArray[np.int64]:
        counts = np.zeros((len(rows), len(self.states)), dtype=np.int64)
        for x in rows:
            row = self._rows.get(x)
            if row:
                counts[x - rows.start, list(row)] = list(row.values())
        return counts

    @property
    def _all(self) -> range:
        size = len(self.states)
        if size > DENSE_LIMIT:
            raise InputError(f"a dense {size} × {size} array would not fit into memory; window() gives a part of it")
        return range(size)

    @cached_property
    def transitions(self) -> npt.NDArray[np.int64]:
        """N[x,y]."""
        return self._counts_of(self._all)

    @cached_property
    def matrix(self) -> Array:
        """P̂(x,y) = (N[x,y] + α)/(N_x + αS)."""
        return self._smoothed(self.transitions)

    def _smoothed(self, counts: npt.NDArray[np.int64]) -> Array:
        return smoothed(counts, self._alpha) if len(self.states) else counts.astype(np.float64)

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
        return self._ends(self._all, self._all, self.transitions)


class Estimate(RowEstimates):
    """A chain's smoothed matrix with all-time intervals.

    All intervals of all chains hold at once with probability ≥ 1 − δ if ``entries`` is Σ_k S_k² over the chains that
    share δ (by default this chain alone). A larger number leaves a part of δ for others.
    """

    def __init__(
        self, counts: Counts, delta: float = 0.05, *, entries: int | None = None, alpha: float | str | None = None
    ) -> None:
        if not isinstance(counts, Counts):
            raise InputError(f"an estimate is made from Counts, not from {shown(counts)}")
        least = counts.size**2
        meaning = "Σ S² over the chains that share delta"
        super().__init__(
            counts.states,
            {x: dict(row) for x, row in counts.rows().items()},
            failure_probability(delta),
            smoothing(alpha, counts.size),
        )
        self.entries = least if entries is None else whole_number(entries, "entries", least=least, meaning=meaning)
        self._without_intervals = _without_intervals(counts)
        self._holes = np.zeros(counts.size, dtype=np.int64)
        for x, number in counts.holes.items():
            self._holes[x] = number

    def _ends(self, rows: range, columns: range, counts: npt.NDArray[np.int64]) -> tuple[Array, Array]:
        of_rows = (values[rows.start : rows.stop, None] for values in (self.exits, self._holes))
        # Most entries of a row share a few values of counts, and an interval takes long to compute.
        pairs, places = np.unique(
            np.stack((counts, *(np.broadcast_to(values, counts.shape) for values in of_rows)), axis=-1).reshape(-1, 3),
            axis=0,
            return_inverse=True,
        )
        low, high = self._of_pairs(*pairs.T)
        places = places.reshape(-1)
        return low[places].reshape(counts.shape), high[places].reshape(counts.shape)

    def _of_pairs(self, counts: npt.ArrayLike, exits: npt.ArrayLike, holes: npt.ArrayLike) -> tuple[Array, Array]:
        if self._without_intervals:
            raise InputError(self._without_intervals)
        return intervals(counts, exits, math.log(self.entries / self.delta), holes)

    def to_pandas(self) -> Any:
        """A pandas DataFrame with a row for each entry: from, to, transitions, estimate, lower, upper.

        The ends of the intervals are nan where these counts have none.
        """
        return entries_frame(self, *([None, None] if self._without_intervals else self._intervals))

    def to_xarray(self, draws: int = 1_000, *, chains: int = 4, seed: int = 0) -> Any:
        """Draws of the matrix from its posterior law, as an xarray Dataset that ArviZ reads.

        The variable ``P`` has the dimensions chain, draw, from and to. Rows are independent, and row x has the law
        Dirichlet(N[x,·] + α), whose mean is ``matrix``. These are credible values under that prior. Unlike the
        intervals, they guarantee nothing. All draws are independent.

        ``draws``: draws in each of the ``chains``.
        ``chains``: groups of draws; samplers call them chains, and four is their usual number.
        ``seed``: determines all randomness.
        """
        from .posterior import posterior_draws

        return posterior_draws(self.states, self.transitions, self._alpha, draws, chains, seed)

    def widths(self) -> Array:
        """The width of the widest interval of each row."""
        size = len(self.states)
        found = np.ones(size)  # [0, 1] for a row that was never left
        counts: list[int] = []
        exits: list[int] = []
        of: list[int] = []
        for x, row in self._rows.items():
            seen = {*row.values(), *([0] if len(row) < size else [])}
            counts += seen
            exits += [int(self.exits[x])] * len(seen)
            of += [x] * len(seen)
        if of:
            low, high = self._of_pairs(counts, exits, self._holes[of])
            found[of] = 0.0
            np.maximum.at(found, of, high - low)
        return found


def entries_frame(estimate: Any, lower: Array | None, upper: Array | None) -> Any:
    """A frame with one row for each entry of an estimate."""
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
    """The reason why no interval would hold for these counts; empty if intervals hold."""
    if counts.correlated:
        return "no interval holds for counts taken with a sliding lag: their transitions overlap and are correlated"
    if counts.open_states:
        return "intervals need the chain's states to be known beforehand, and these are only the ones seen"
    return ""
