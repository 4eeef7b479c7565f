"""``count_transitions``: finds the engine for a log, lets it count, and returns complete counts."""

import datetime
import os
import warnings
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import CorrelatedCountsWarning, InputError
from ..paths import Paths
from ..validation import duration, one_of, real_number, shown, whole_number
from . import arrays, walks
from .request import MISSING, CountRequest, is_session, is_stream, is_table
from .results import States, Store, TransitionCounts
from .spool import Spool


def count_transitions(
    where: Any,
    *,
    chain: str | None = None,
    time: str | None = None,
    state: str | None = None,
    path: str | None = None,
    order: str | None = None,
    table: str | None = None,
    lag: int = 1,
    sliding: bool = False,
    gap: float | str | datetime.timedelta | None = None,
    missing: str = "error",
    states: int | Sequence[Hashable] | Mapping[str, int | Sequence[Hashable]] | None = None,
    memory_limit: str | None = None,
    threads: int | None = None,
    temp_directory: str | os.PathLike[str] | None = None,
) -> TransitionCounts:
    """Counts the transitions of every chain of a log.

    ``where`` is a file or a pattern such as ``logs/*.parquet`` (Parquet, CSV, JSON lines; ``.gz``, ``.zst``), or a list
    of them; a database's address and its ``table``; a Spark session or a ``spark://`` address and a ``table`` (a table,
    a view, or files the cluster sees); a pandas frame or a mapping of columns; anything with the Arrow C stream
    protocol (a pyarrow table or reader, a polars frame, lazy or not, a DuckDB relation); or, without columns, paths: an
    array, a list of arrays of one chain, or a mapping from names to these.

    ``chain``, ``time``, ``state``, ``path``, ``order``, ``lag``, ``sliding``, ``gap`` and ``missing`` are those of
    ``CountRequest``. Rows may come in any order. Rows of equal time are an error unless ``order`` names a column that
    says which came first. ``gap`` is a number if ``time`` is a number; for a column of times it is a text such as
    ``"30min"``, or a timedelta. ``states`` lists the states of all chains, or of each chain. Without it, the states are
    those that occur, and certificates hold whatever other states there may be. ``memory_limit``, ``threads`` and
    ``temp_directory`` are for DuckDB. It counts files and streams, and keeps the counts of all logs that are not in
    memory.
    """
    one_of(missing, "missing", MISSING)
    whole_number(lag, "lag", meaning="how many steps lie between the two states of a transition")
    if sliding and lag > 1:
        warnings.warn(
            f"transitions counted with a sliding lag of {lag} overlap: they are correlated, and no certificate holds"
            " for them",
            CorrelatedCountsWarning,
            stacklevel=2,
        )
    request, paths = _request(
        chain, time, state, path, order, table, lag=int(lag), sliding=bool(sliding), gap=gap, missing=missing
    )
    if paths:
        return _results(arrays.count(_paths(where), request), request, states)
    if not is_stream(where) and is_table(where):
        return _results(arrays.count(arrays.from_table(where, request), request), request, states)
    spool = Spool(memory_limit, threads, temp_directory)
    from . import engines  # its packages are optional

    try:
        engines.count(spool, where, table, request)
    except BaseException:
        spool.close()
        raise
    return _results(spool, request, states)


def read_paths(
    where: Any,
    *,
    chain: str | None = None,
    time: str | None = None,
    state: str | None = None,
    path: str | None = None,
    order: str | None = None,
    table: str | None = None,
    gap: float | str | datetime.timedelta | None = None,
    missing: str = "error",
    states: States = None,
    memory_limit: str | None = None,
    threads: int | None = None,
    temp_directory: str | os.PathLike[str] | None = None,
) -> dict[str, Paths]:
    """Reads every chain of a log with its order, for ``chainscout.diagnose``, in about 75 bytes of memory for each row.

    The arguments are those of ``count_transitions``. The place of a draw is the moment at which the state before it is
    known. Draws of several paths that start at the same moment are taken in the order of the paths. It is assumed that
    no path ended because of the state that would have come next.
    """
    one_of(missing, "missing", MISSING)
    request, arrays_only = _request(chain, time, state, path, order, table, gap=gap, missing=missing)
    if arrays_only or (not is_stream(where) and is_table(where)):
        rows = _paths(where) if arrays_only else arrays.from_table(where, request)
        return walks.paths_of(walks.gathered(arrays.steps(rows, request)), states, untyped=False)
    spool = Spool(memory_limit, threads, temp_directory)
    from . import engines  # its packages are optional

    try:
        found, untyped = engines.walk(spool, where, table, request)
        return walks.paths_of(found, states, untyped)
    finally:
        spool.close()


def _request(
    chain: str | None,
    time: str | None,
    state: str | None,
    path: str | None,
    order: str | None,
    table: str | None,
    *,
    lag: int = 1,
    sliding: bool = False,
    gap: float | str | datetime.timedelta | None,
    missing: str,
) -> tuple[CountRequest, bool]:
    """The request, and whether the log is arrays of states without columns."""
    paths = chain is None and time is None and state is None
    if paths and any(given is not None for given in (gap, path, order, table)):
        raise InputError("arrays of states have neither gap, path, order nor table: these are for logs with columns")
    request = CountRequest(
        chain=arrays.ONLY if paths else _column(chain, "chain"),
        time="step" if paths else _column(time, "time"),
        state="state" if paths else _column(state, "state"),
        path=None if path is None else _column(path, "path"),
        order=None if order is None else _column(order, "order"),
        lag=lag,
        sliding=sliding,
        gap=_checked_gap(gap),
        missing=missing,
    )
    return request, paths


def _paths(where: Any) -> arrays.Paths:
    if isinstance(where, str | Path) or is_session(where) or is_stream(where):
        raise InputError("a log with columns needs their names: chain=, time= and state=")
    return arrays.from_paths(where)


def _results(store: Store, request: CountRequest, states: States) -> TransitionCounts:
    return TransitionCounts(store, lag=request.lag, correlated=request.correlated, states=states)


def _column(name: Any, role: str) -> str:
    if not isinstance(name, str) or not name:
        raise InputError(f"{role} must be the name of a column, not {shown(name)}")
    return name


def _checked_gap(gap: Any) -> float | datetime.timedelta | None:
    if gap is None:
        return None
    meaning = "a longer step in time begins a new path"
    if isinstance(gap, str | datetime.timedelta):
        return duration(gap, "gap", meaning=meaning)
    number = real_number(gap, "gap", least=0.0, meaning=meaning)
    return int(number) if number.is_integer() else number
