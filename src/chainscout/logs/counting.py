"""``count_transitions`` and its kin: counts and paths of logs, and the statement that makes counts elsewhere."""

import datetime
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..errors import CorrelatedCountsWarning, InputError, MissingExtraError
from ..paths import Paths
from ..validation import one_of, shown
from .request import MISSING, CountRequest, checked_lag
from .results import States, TransitionCounts

__all__ = ["count_transitions", "counting_sql", "read_counts", "read_paths"]


def count_transitions(
    where: Any,
    *,
    chain: str | None = None,
    time: str | None = None,
    state: str | None = None,
    path: str | None = None,
    order: str | None = None,
    lag: int = 1,
    sliding: bool = False,
    gap: float | str | datetime.timedelta | None = None,
    missing: str = "error",
    states: States = None,
    memory_limit: str | None = None,
    threads: int | None = None,
    temp_directory: str | os.PathLike[str] | None = None,
) -> TransitionCounts:
    """Counts the transitions of every chain of a log.

    ``where`` is a file or a pattern such as ``logs/*.parquet`` (Parquet, CSV, JSON lines; ``.gz``, ``.zst``), or a list
    of them; a pandas frame; anything with the Arrow C stream protocol (a pyarrow table or reader, a polars frame, lazy
    or not, a DuckDB relation); or a Spark data frame, which is counted on its cluster.

    ``chain``, ``time``, ``state``, ``path``, ``order``, ``lag``, ``sliding``, ``gap`` and ``missing`` are those of
    ``CountRequest``. Rows may come in any order. Rows of equal time are an error unless ``order`` names a column that
    says which came first. ``gap`` is a number if ``time`` is a number; for a column of times it is a text such as
    ``"30min"``, or a timedelta. ``states`` lists the states of all chains, or of each chain. Without it, the states are
    those that occur, and certificates hold whatever other states there may be. ``memory_limit``, ``threads`` and
    ``temp_directory`` are for DuckDB, which counts all logs but Spark's, and keeps the counts of all.
    """
    request = CountRequest.checked(
        chain=chain, time=time, state=state, path=path, order=order, lag=lag, sliding=sliding, gap=gap, missing=missing
    )
    _warn_if_overlapping(request.lag, request.sliding)
    spool = _optional().count(where, request, memory_limit, threads, temp_directory)
    return TransitionCounts(spool, lag=request.lag, correlated=request.correlated, states=states)


def read_paths(
    where: Any,
    *,
    chain: str | None = None,
    time: str | None = None,
    state: str | None = None,
    path: str | None = None,
    order: str | None = None,
    gap: float | str | datetime.timedelta | None = None,
    missing: str = "error",
    states: States = None,
    memory_limit: str | None = None,
    threads: int | None = None,
    temp_directory: str | os.PathLike[str] | None = None,
) -> dict[str, Paths]:
    """Reads every chain of a log with its order, for ``chainscout.diagnose``, in about 75 bytes of memory for each row.

    The place of a draw is the moment at which the state before it is known. Draws of several paths that start at the
    same moment are taken in the order of the paths. It is assumed that no path ended because of the state that would
    have come next.

    ``where``, ``chain``, ``time``, ``state``, ``path``, ``order``, ``gap``, ``missing``, ``states``, ``memory_limit``,
    ``threads``, ``temp_directory``: those of ``count_transitions``.
    """
    request = CountRequest.checked(
        chain=chain, time=time, state=state, path=path, order=order, gap=gap, missing=missing
    )
    found: dict[str, Paths] = _optional().walk(where, request, states, memory_limit, threads, temp_directory)
    return found


def counting_sql(
    table: str,
    *,
    dialect: str,
    chain: str,
    time: str,
    state: str,
    path: str | None = None,
    order: str | None = None,
    lag: int = 1,
    sliding: bool = False,
    gap: float | str | datetime.timedelta | None = None,
    types: Mapping[str, str] | None = None,
) -> str:
    """The statement that counts a table where it is, in any database; ``read_counts`` takes the rows of its answer.

    ``table``: the name of a table or view, such as ``events`` or ``lab.events``. ``dialect``: ``duckdb``, ``spark`` or
    a name that SQLAlchemy knows, such as ``postgresql``, ``sqlite`` or ``mysql``. ``types``: the types of columns,
    where they matter: ``float`` (NaN is then a missing value), ``date``, ``moment``, ``decimal`` or ``other`` (labels
    of these types become text), ``integer``, ``boolean``, ``text``. ``chain``, ``time``, ``state``, ``path``,
    ``order``, ``lag``, ``sliding``, ``gap``: those of ``count_transitions``.
    """
    request = CountRequest.checked(
        chain=chain, time=time, state=state, path=path, order=order, lag=lag, sliding=sliding, gap=gap
    )
    if not isinstance(table, str) or not table:
        raise InputError(f"table must be the name of a table or view, not {shown(table)}")
    statement: str = _optional().statement_for(table, dialect, request, types or {})
    return statement


def read_counts(
    rows: Iterable[Sequence[Any]],
    *,
    lag: int = 1,
    sliding: bool = False,
    missing: str = "error",
    states: States = None,
) -> TransitionCounts:
    """The counts that a statement of ``counting_sql`` made.

    ``rows``: the rows of its answer, in any order. ``lag``, ``sliding``: those that the statement was made with.
    ``missing``, ``states``: those of ``count_transitions``.
    """
    lag = checked_lag(lag)
    one_of(missing, "missing", MISSING)
    _warn_if_overlapping(lag, sliding)
    return TransitionCounts(_optional().read(rows, missing), lag=lag, correlated=sliding and lag > 1, states=states)


def _warn_if_overlapping(lag: int, sliding: bool) -> None:
    if sliding and lag > 1:
        warnings.warn(
            f"transitions counted with a sliding lag of {lag} overlap: they are correlated, and no certificate holds"
            " for them",
            CorrelatedCountsWarning,
            stacklevel=3,
        )


def _optional() -> Any:
    """The module of the engines, whose packages are optional."""
    try:
        import duckdb  # noqa: F401
        import sqlalchemy  # noqa: F401
    except ImportError:
        raise MissingExtraError("counting a log", "logs") from None
    from . import _engines

    return _engines
