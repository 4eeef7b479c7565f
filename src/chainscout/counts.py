"""The statistic of one chain (MATH §1): transitions, exits, last state, paths, and the smoothed estimate.

Only observed transitions are stored, row by row. So a chain of a million states takes a few megabytes if ten thousand
of them were observed. Arrays of size S² are made only on request. (This module does not import scipy, because scipy
alone would take more address space than such a chain.)
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from .errors import InputError
from .frames import frame
from .validation import number_array, real_number, shown, unique_labels, whole_number

Array = npt.NDArray[np.float64]

#: α of the named estimators for S states: P̂ = (N[x,y] + α)/(N_x + αS).
SMOOTHING: dict[str, Callable[[int], float]] = {
    "ba-mc": lambda size: 1 / (3 * size),  # the paper's choice, our default
    "perks": lambda size: 1 / size,  # the paper calls it Laplace
    "laplace": lambda size: 1.0,
    "jeffreys": lambda size: 0.5,
    "krichevsky-trofimov": lambda size: 0.5,
}

#: A dense S × S array is refused above this size (2 GiB).
DENSE_LIMIT = 16_384

#: The largest number of states. Their exits still fit into an array.
MOST_STATES = 10**9

#: A float holds every whole number up to this one.
MOST_TRANSITIONS = 2**53


def smoothing(alpha: float | str | None, size: int) -> float:
    """α for a chain of ``size`` states: a number ≥ 0, the name of a preset, or None for 1/(3S)."""
    whole_number(size, "size", meaning="the number of states")
    if isinstance(alpha, str):
        if alpha not in SMOOTHING:
            raise InputError(f"alpha must be a number ≥ 0 or one of {', '.join(SMOOTHING)}, not {shown(alpha)}")
        return SMOOTHING[alpha](size)
    if alpha is None:
        return SMOOTHING["ba-mc"](size)
    meaning = "what is added to every count before the rows are normalised"
    return real_number(alpha, "alpha", least=0.0, below=1e100, meaning=meaning)


def smoothed(transitions: npt.NDArray[Any], alpha: float) -> Array:
    """P̂ = (N[x,y] + α)/(N_x + αS) over the last two axes. A row of zeros (α = 0, never left) becomes uniform."""
    raised = transitions + alpha
    sums = raised.sum(axis=-1, keepdims=True)
    uniform = np.full_like(raised, 1 / raised.shape[-1])
    return np.asarray(np.divide(raised, sums, out=uniform, where=sums > 0))


def never_left(rows: int, states: int) -> str:
    """A phrase that says how many rows are unknown, such as '3 of 5 rows were never left'."""
    return f"{rows:,} of {states:,} rows {'was' if rows == 1 else 'were'} never left"


class Counts:
    """Transitions of one chain, recorded one observation at a time.

    ``states``: how many there are (numbered from 0), or their labels. The first observation of a path reveals a
    state and adds no transition; ``restart`` begins a new path.

    ``open_states``: these are the states seen so far, and the chain may have others. A certificate must then hold for
    any number of states (MATH §6). ``correlated``: the transitions overlap in time (a sliding lag). Then they are not
    transitions of a Markov chain, and nothing can be certified from them. ``holes``: how many steps out of a state (by
    its position) were asked for without an outcome being known, because they were lost or are pending (MATH §15).
    """

    def __init__(
        self,
        states: int | Sequence[Hashable],
        *,
        open_states: bool = False,
        correlated: bool = False,
        holes: Mapping[int, int] | None = None,
    ) -> None:
        self.open_states = open_states
        self.correlated = correlated
        if isinstance(states, Integral) and not isinstance(states, bool):
            self._labels: tuple[Hashable, ...] | None = None
            self._positions: dict[Hashable, int] | None = None
            self.size = whole_number(states, "states", meaning="the number of states")
            if self.size > MOST_STATES:
                raise InputError(f"states (their number) must be at most {MOST_STATES}, not {shown(states)}")
        else:
            self._labels = unique_labels(states)
            self._positions = {label: position for position, label in enumerate(self._labels)}
            self.size = len(self._labels)
        self._rows: dict[int, dict[int, int]] = {}
        self._exits: dict[int, int] = {}
        self._holes = {self._position(x): _number(number) for x, number in (holes or {}).items() if number}
        self._last: int | None = None
        self.observations = 0
        self.paths = 0

    @classmethod
    def from_path(cls, path: Iterable[Hashable], states: int | Sequence[Hashable]) -> Self:
        """The counts of one unbroken path."""
        counts = cls(states)
        for state in _each(path, "a path must be a sequence of states"):
            counts.record(state)
        return counts

    @classmethod
    def from_transitions(cls, transitions: npt.ArrayLike, states: Sequence[Hashable] | None = None) -> Self:
        """Counts from a matrix of transition counts, such as one printed in a publication. Its paths are not known."""
        matrix = number_array(transitions, "transition counts")
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
            raise InputError(f"transition counts must be square with at least one state, not of shape {matrix.shape}")
        whole = (matrix >= 0) & (matrix <= MOST_TRANSITIONS) & (matrix == np.floor(matrix))
        if not whole.all() or matrix.sum() > MOST_TRANSITIONS:
            raise InputError(
                f"transition counts must be whole numbers ≥ 0, 2⁵³ in all at most, not {shown(matrix.tolist())}"
            )
        counts = cls(len(matrix) if states is None else states)
        if counts.size != len(matrix):
            raise InputError(f"{len(matrix)} rows of counts need {len(matrix)} state labels, not {counts.size}")
        for x, y in np.argwhere(matrix > 0):
            counts._add(int(x), int(y), int(matrix[x, y]))
        counts.observations = counts.total
        return counts

    @classmethod
    def from_pairs(
        cls,
        pairs: Iterable[tuple[Hashable | None, Hashable, int]],
        states: int | Sequence[Hashable],
        *,
        open_states: bool = False,
        correlated: bool = False,
    ) -> Self:
        """Counts from triples (from, to, number): that many transitions. If ``from`` is None: paths begun in ``to``."""
        counts = cls(states, open_states=open_states, correlated=correlated)
        for pair in _each(pairs, "pairs must be a sequence of (from, to, number)"):
            try:
                x, y, number = pair
            except (TypeError, ValueError):
                raise InputError(f"a pair must be (from, to, number), not {shown(pair)}") from None
            position = counts.index_of(y)
            number = _number(number)
            if x is None:
                counts.paths += number
            else:
                counts._add(counts.index_of(x), position, number)
            counts.observations += number
        _check_total(counts.observations)
        return counts

    @classmethod
    def from_rows(
        cls,
        rows: Mapping[int, Mapping[int, int]],
        states: int | Sequence[Hashable],
        *,
        observations: int,
        paths: int,
        last: int | None,
        open_states: bool = False,
        holes: Mapping[int, int] | None = None,
    ) -> Self:
        """Counts from stored rows: position → position → count, and the position that the chain is in.

        ``holes``: position → how many steps out of that state have no known outcome.
        """
        counts = cls(states, open_states=open_states)
        counts._holes = {x: number for x, number in (holes or {}).items() if number}
        if not isinstance(rows, Mapping) or not all(isinstance(row, Mapping) for row in rows.values()):
            raise InputError(f"rows must map positions to mappings from positions to counts, not {shown(rows)}")
        for x, row in rows.items():
            before = counts._position(x)
            for y, number in row.items():
                counts._add(before, counts._position(y), _number(number))
        _check_total(counts.total)
        counts.observations = whole_number(observations, "observations", least=0)
        counts.paths = whole_number(paths, "paths", least=0)
        counts._last = None if last is None else counts._position(last)
        return counts

    @classmethod
    def over(
        cls,
        rows: dict[int, dict[int, int]],
        size: int,
        open_states: bool = False,
        holes: Mapping[int, int] | None = None,
    ) -> Self:
        """Counts that share the caller's ``rows``. Nothing is checked or copied, and nothing may be recorded.

        ``rows``: position → position → count. ``size``: the number of states; with ``open_states``, of those seen so
        far.
        ``holes``: position → how many steps out of that state have no known outcome.
        """
        counts = cls(size, open_states=open_states, holes=holes)
        counts._rows = rows
        counts._exits = {x: sum(row.values()) for x, row in rows.items()}
        counts.observations = counts.total
        return counts

    def record(self, state: Hashable) -> None:
        """Adds one observation: the state that the chain is in now."""
        position = self.index_of(state)
        if self._last is None:
            self.paths += 1
        else:
            self._add(self._last, position, 1)
        self._last = position
        self.observations += 1

    def restart(self) -> None:
        """Ends the path: no transition is counted from the last state to the next one recorded."""
        self._last = None

    def merge(self, other: "Counts") -> "Counts":
        """The sum of two counts over the same states. The merged counts begin a new path."""
        if not isinstance(other, Counts) or self.states != other.states:
            given = shown(other.states) if isinstance(other, Counts) else shown(other)
            raise InputError(f"only counts over the same states can be merged: {shown(self.states)} and {given}")
        merged = Counts(
            self.size if self._labels is None else self._labels,
            open_states=self.open_states or other.open_states,
            correlated=self.correlated or other.correlated,
            holes={x: self._holes.get(x, 0) + other._holes.get(x, 0) for x in (*self._holes, *other._holes)},
        )
        for counts in (self, other):
            for x, row in counts._rows.items():
                for y, number in row.items():
                    merged._add(x, y, number)
        merged.observations = self.observations + other.observations
        merged.paths = self.paths + other.paths
        return merged

    def _add(self, x: int, y: int, number: int) -> None:
        if number == 0:  # rows and exits hold only the states left at least once
            return
        row = self._rows.setdefault(x, {})
        row[y] = row.get(y, 0) + number
        self._exits[x] = self._exits.get(x, 0) + number

    def __copy__(self) -> "Counts":
        # The default would share the rows with the original.
        twin = self.merge(Counts(self.size if self._labels is None else self._labels))
        twin._last = self._last
        return twin

    # -- what was seen

    @property
    def states(self) -> Sequence[Hashable]:
        """The labels, or ``range(S)``."""
        return range(self.size) if self._labels is None else self._labels

    def index_of(self, state: Hashable) -> int:
        """The position of a state's label."""
        if self._positions is None:
            if type(state) is int and 0 <= state < self.size:  # the usual case, kept fast
                return state
            if isinstance(state, Integral) and not isinstance(state, bool) and 0 <= int(state) < self.size:
                return int(state)
            raise InputError(f"a state must be a whole number from 0 to {self.size - 1}, not {shown(state)}")
        try:
            return self._positions[state]
        except (KeyError, TypeError):
            raise InputError(f"unknown state {shown(state)}: the states are {shown(self.states)}") from None

    @property
    def last(self) -> Hashable | None:
        """The state that the chain is in, or None at the beginning of a path."""
        return None if self._last is None else self.states[self._last]

    @property
    def total(self) -> int:
        """T, the number of transitions."""
        return sum(self._exits.values())

    def rows(self) -> Mapping[int, Mapping[int, int]]:
        """N[x,y] for the states left at least once: position → position → count."""
        return self._rows

    def exits_of(self, position: int) -> int:
        """N_x of the state at ``position``."""
        try:
            return self._exits[position]
        except (KeyError, TypeError):
            self._position(position)
            return 0

    def _position(self, position: Any) -> int:
        """The position as a plain number, if there is a state there."""
        if type(position) is int and 0 <= position < self.size:
            return position
        if isinstance(position, Integral) and not isinstance(position, bool) and 0 <= int(position) < self.size:
            return int(position)
        raise InputError(f"a position must be a whole number from 0 to {self.size - 1}, not {shown(position)}")

    def visited_exits(self) -> list[int]:
        """N_x of the states left at least once, in the order of their positions."""
        return [self._exits[x] for x in sorted(self._exits)]

    @property
    def holes(self) -> Mapping[int, int]:
        """How many steps out of a state, by its position, have no known outcome."""
        return self._holes

    def holes_by_row(self) -> tuple[list[int], list[int]]:
        """The holes of each state left at least once, in the order of ``visited_exits``, and those of all others."""
        known = [self._holes.get(x, 0) for x in sorted(self._exits)]
        return known, [number for x, number in sorted(self._holes.items()) if x not in self._exits]

    @property
    def unknown_rows(self) -> int:
        """How many states were never left. Nothing is known about their rows."""
        return self.size - len(self._exits)

    @property
    def exits(self) -> npt.NDArray[np.int64]:
        """N_x = Σ_y N[x,y] for every state."""
        exits = np.zeros(self.size, dtype=np.int64)
        for x, number in self._exits.items():
            exits[x] = number
        return exits

    @property
    def transitions(self) -> npt.NDArray[np.int64]:
        """N[x,y] as a dense array."""
        self.need_dense()
        matrix = np.zeros((self.size, self.size), dtype=np.int64)
        for x, row in self._rows.items():
            for y, number in row.items():
                matrix[x, y] = number
        return matrix

    def need_dense(self) -> None:
        """Raises ``InputError`` if an S × S array would be too large."""
        if self.size > DENSE_LIMIT:
            raise InputError(
                f"a dense {self.size} × {self.size} array would not fit into memory; rows() has what was seen"
            )

    def to_pandas(self) -> Any:
        """A pandas DataFrame with a row for each transition that was seen: ``from``, ``to``, ``count``."""
        states = self.states
        seen = [(states[x], states[y], self._rows[x][y]) for x in sorted(self._rows) for y in sorted(self._rows[x])]
        return frame({name: [row[i] for row in seen] for i, name in enumerate(("from", "to", "count"))})

    # -- estimates

    def matrix(self, alpha: float | str | None = None) -> Array:
        """P̂(x,y) = (N[x,y] + α)/(N_x + αS); with α = 0, a row never left is uniform."""
        return smoothed(self.transitions, smoothing(alpha, self.size))

    @property
    def occupancy(self) -> Array:
        """π̂(x) = N_x/T, the paper's empirical stationary law."""
        if self.total == 0:
            raise InputError("no transition has been seen yet, so that there is no empirical stationary law")
        return np.asarray(self.exits / self.total)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counts):
            return NotImplemented
        return all(
            getattr(self, name) == getattr(other, name)
            for name in ("states", "_rows", "_holes", "_last", "observations", "paths", "open_states", "correlated")
        )

    __hash__ = None  # type: ignore[assignment]  # it changes with every observation

    def __repr__(self) -> str:
        return f"Counts({self.size} states, {self.observations} observations, {self.total} transitions)"


def _each(values: Iterable[Any], wanted: str) -> Iterator[Any]:
    try:
        return iter(values)
    except TypeError:
        raise InputError(f"{wanted}, not {shown(values)}") from None


def _number(number: Any) -> int:
    """A count as a plain int, checked."""
    if type(number) is int and number >= 0:  # the usual case, kept fast
        return number
    return whole_number(number, "a count", least=0, meaning="how often a transition was seen, or a path begun")


def _check_total(number: int) -> None:
    if number > MOST_TRANSITIONS:
        raise InputError(f"counts must be 2⁵³ in all at most, not {shown(number)}")
