"""Logs in memory: columns of arrays, or the paths themselves. NumPy counts them; no database engine is needed."""

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..validation import shown
from .columns import Codes, Column, as_array, label_column, time_column
from .faults import need_complete, tie, without_state
from .request import CountRequest, Kind
from .spool import Spool

#: The name of the only chain of a list of paths.
ONLY = "chain"


@dataclass(frozen=True)
class Paths:
    """Rows of a log in any order, with one array for each column."""

    chain: Column
    state: Column
    path: Column | None
    time: npt.NDArray[Any]
    order: npt.NDArray[Any] | None


class Table:
    """Counts in memory: the rows (chain, from, to, count), sorted by chain."""

    def __init__(self, chain: Column, state: Column, rows: Sequence[Codes]) -> None:
        self._chain, self._state, self._rows = chain, state, rows

    def __len__(self) -> int:
        return len(np.unique(self._rows[0]))

    def pairs(self) -> Iterator[tuple[Any, Any, Any, int]]:
        """The rows (chain, from, to, count)."""
        chains, states = self._chain.labels, self._state.labels
        for k, x, y, number in zip(*(column.tolist() for column in self._rows), strict=True):
            yield chains[k], None if x < 0 else states[x], states[y], number

    def write_parquet(self, path: str) -> None:
        """The rows (chain, from, to, count) as a Parquet file."""
        spool = Spool()
        try:
            spool.fill(self._chain.kind, self._state.kind, ((*row, 0) for row in self.pairs()))
            spool.finish()
            spool.write_parquet(path)
        finally:
            spool.close()

    def close(self) -> None:
        """Does nothing, because nothing is held outside memory."""


def from_table(where: Any, request: CountRequest) -> Paths:
    """The columns of a mapping or a data frame."""
    names = list(getattr(where, "columns", where))
    columns = {name: where[name] for name in request.columns if name in names}
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(f"the columns of a log must be equally long, not {shown(lengths)}")
    kinds = dict.fromkeys(names, Kind.OTHER)
    labels = {name: label_column(columns[name], name) for name in _label_names(request) if name in columns}
    moments = {name: time_column(columns[name], name) for name in (request.time, request.order) if name in columns}
    kinds |= {name: column.kind for name, column in labels.items()}
    kinds |= {name: kind for name, (_, _, kind) in moments.items()}
    request.check(kinds)
    path = labels[request.path] if request.path else None
    time, undated, _ = moments[request.time]
    order, unordered, _ = moments[request.order] if request.order else (None, None, None)
    lacking = [labels[request.chain].codes < 0, undated]
    lacking += [] if path is None else [path.codes < 0]
    lacking += [] if unordered is None else [unordered]
    need_complete(request, [int(absent.sum()) for absent in lacking])
    return Paths(labels[request.chain], labels[request.state], path, time, order)


def _label_names(request: CountRequest) -> list[str]:
    return [name for name in (request.chain, request.state, request.path) if name is not None]


def from_paths(where: Any) -> Paths:
    """A path, a list of paths of one chain (as deeptime has them), or either by the names of chains."""
    named = dict(where) if isinstance(where, Mapping) else {ONLY: where}
    pieces = [(str(name), path) for name, paths in named.items() for path in _split(paths)]
    if not pieces:
        raise InputError(f"a log must hold at least one path, not {shown(where)}")
    names = sorted({name for name, _ in pieces})
    numbers = {name: k for k, name in enumerate(names)}
    arrays = [_path(path) for _, path in pieces]
    lengths = [len(array) for array in arrays]
    values = np.concatenate(arrays) if len({array.dtype.kind for array in arrays}) == 1 else _joined(arrays)
    state = label_column(values, "state")
    chains = np.repeat(np.array([numbers[name] for name, _ in pieces], dtype=np.int64), lengths)
    paths = np.repeat(np.arange(len(pieces), dtype=np.int64), lengths)
    time = np.concatenate([np.arange(length) for length in lengths])
    path = Column(paths, range(len(pieces)), Kind.INTEGER)
    return Paths(Column(chains, names, Kind.TEXT), state, path, time, None)


def _split(paths: Any) -> list[Any]:
    """The paths of one chain, from a list of sequences or from one sequence."""
    if isinstance(paths, str | bytes) or not hasattr(paths, "__len__"):
        raise InputError(f"a path must be a sequence of states, not {shown(paths)}")
    nested = isinstance(paths, list | tuple) and any(
        hasattr(item, "__len__") and not isinstance(item, str | bytes) for item in paths
    )
    return list(paths) if nested else [paths]


def _path(path: Any) -> npt.NDArray[Any]:
    if isinstance(path, str | bytes) or not hasattr(path, "__len__"):
        raise InputError(f"a path must be a sequence of states, not {shown(path)}")
    array = as_array(path)
    if array.ndim != 1:
        raise InputError(f"a path must be one-dimensional, not of shape {array.shape}")
    return array


def _joined(arrays: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Paths of different types in one array of Python objects, so that labels are compared and not converted."""
    values = [value for array in arrays for value in array.tolist()]
    joined = np.empty(len(values), dtype=object)
    joined[:] = values
    return joined


def _sorted(paths: Paths, request: CountRequest) -> tuple[Codes, npt.NDArray[np.bool_]]:
    """The rows by chain, path and time, and which of them begin an unbroken path. Raises ``LogError`` for faults."""
    keys = [paths.time, *([paths.path.codes] if paths.path else []), paths.chain.codes]
    if paths.order is not None:
        keys.insert(0, paths.order)
    rows = np.lexsort(keys)
    chain, state, time = paths.chain.codes[rows], paths.state.codes[rows], paths.time[rows]
    beginning = np.ones(len(rows), dtype=bool)  # the first row of an unbroken path
    beginning[1:] = chain[1:] != chain[:-1]
    if paths.path is not None:
        path = paths.path.codes[rows]
        beginning[1:] |= path[1:] != path[:-1]
    tied = ~beginning
    tied[1:] &= time[1:] == time[:-1]
    if paths.order is not None:
        order = paths.order[rows]
        tied[1:] &= order[1:] == order[:-1]
    if tied.any():
        raise tie(request, *_first(paths, chain, time, tied))
    if request.missing == "error" and (state < 0).any():
        raise without_state(request, *_first(paths, chain, time, state < 0))
    if request.gap is not None:
        beginning[1:] |= np.diff(time) > _gap(request.gap)
    beginning |= state < 0
    beginning[1:] |= state[:-1] < 0
    return rows, beginning


def steps(paths: Paths, request: CountRequest) -> Iterator[tuple[Any, ...]]:
    """Every row as a ``walks.Step``."""
    rows, beginning = _sorted(paths, request)
    chain = paths.chain.codes[rows]
    path = np.zeros(len(rows), dtype=np.int64) if paths.path is None else paths.path.codes[rows]
    # The number of each moment. It rises when the time, or the order within it, differs from the row before.
    keys = [paths.time[rows], *([] if paths.order is None else [paths.order[rows]])]
    by_time = np.lexsort((*keys[::-1], chain))
    new = np.zeros(len(rows), dtype=bool)
    for column in (chain, *keys):
        new[1:] |= column[by_time][1:] != column[by_time][:-1]
    moment = np.empty(len(rows), dtype=np.int64)
    moment[by_time] = np.cumsum(new)
    states, names = paths.state.labels, paths.chain.labels
    columns = (chain, path, moment, beginning, paths.state.codes[rows])
    for k, p, when, begins, y in zip(*(column.tolist() for column in columns), strict=True):
        yield names[k], p, when, begins, None if y < 0 else states[y], 0


def count(paths: Paths, request: CountRequest) -> Table:
    """Transitions, begun paths and faults of every chain, by the same steps as the SQL statement."""
    rows, beginning = _sorted(paths, request)
    chain, state = paths.chain.codes[rows], paths.state.codes[rows]
    # step: the distance of a row from the beginning of its unbroken path.
    place = np.arange(len(rows))
    step = place - np.maximum.accumulate(np.where(beginning, place, 0))
    used = state >= 0
    if not request.sliding:
        used &= step % request.lag == 0
    previous = np.full(len(rows), -1, dtype=np.int64)
    later = step >= request.lag
    previous[later] = state[place[later] - request.lag]
    return Table(paths.chain, paths.state, _grouped(chain[used], previous[used], state[used]))


def _grouped(*columns: Codes) -> list[Codes]:
    """Each combination once, sorted, and how often it occurs."""
    if not len(columns[0]):
        return [*columns, np.zeros(0, dtype=np.int64)]
    order = np.lexsort(columns[::-1])
    columns = tuple(column[order] for column in columns)
    changes = np.ones(len(order), dtype=bool)
    changes[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    firsts = np.flatnonzero(changes)
    return [*(column[firsts] for column in columns), np.diff(np.append(firsts, len(order)))]


def _first(paths: Paths, chain: Codes, time: npt.NDArray[Any], where: npt.NDArray[np.bool_]) -> tuple[Any, Any]:
    """Chain and time of the first of these rows."""
    places = np.flatnonzero(where)
    place = places[np.lexsort((time[places], chain[places]))[0]]
    return paths.chain.labels[chain[place]], time[place].item()


def _gap(gap: float | datetime.timedelta) -> Any:
    return np.timedelta64(gap) if isinstance(gap, datetime.timedelta) else gap
