"""Finds the engine for a log, lets it count or walk, and checks its rows: each fault is one sentence."""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from ..errors import InputError, LogError
from ..paths import Paths
from ..validation import did_you_mean, one_of, shown
from . import _statement, _walks
from ._files import Files
from ._spark import Spark, is_spark
from ._spool import Spool, guarded
from ._tables import Table, is_table
from .request import CountRequest, Kind
from .results import States

#: The engines that run the statement where the log is.
Engine = Files | Table | Spark

BREAK = "missing='break' (--missing break) begins a new path after such rows"
ORDER = "which came first is not known: name the column that says it, with order= (--order)"


def count(where: Any, request: CountRequest, *settings: Any) -> Spool:
    """Runs the statement where the log is, and keeps its checked answer; ``settings``: those of ``Spool``."""
    spool = Spool(*settings)
    try:
        with closing(_engine(spool, where, request)) as engine, guarded(engine.name):
            engine.count(_sql(engine, _statement.counting, request))
            for _, wrong, stateless in spool.faults():
                _refuse(engine, request, wrong, stateless)
            spool.finish(engine.untyped)
    except BaseException:
        spool.close()
        raise
    return spool


def walk(where: Any, request: CountRequest, states: States, *settings: Any) -> dict[str, Paths]:
    """The chains of a log with their order."""
    with closing(Spool(*settings)) as spool, closing(_engine(spool, where, request)) as engine, guarded(engine.name):
        found = _walks.gathered(engine.streamed(_sql(engine, _statement.walking, request)))
        _refuse(engine, request, found.faults, found.stateless)
        return _walks.paths_of(found, states, engine.untyped)


def read(rows: Iterable[Sequence[Any]], missing: str) -> Spool:
    """Keeps the checked answer of a statement that ran elsewhere."""
    spool = Spool()
    try:
        with guarded("these rows"):
            spool.fill(rows)
            for chain, wrong, stateless in spool.faults():
                where = f"chain {shown(str(chain))}"
                if chain is None:
                    raise LogError(f"every row needs a chain, but {_have(wrong)} none")
                if wrong:
                    raise LogError(
                        f"{where} has rows at the same time, and {ORDER}; or rows lack a time, a path or an order"
                        f" ({_rows(wrong)})"
                    )
                if missing == "error":
                    raise LogError(f"{where} has no state in {_rows(stateless)}; {BREAK}")
            spool.finish()
    except BaseException:
        spool.close()
        raise
    return spool


def statement_for(table: str, dialect: str, request: CountRequest, types: Mapping[str, str]) -> str:
    """The statement for a table of any database. Columns without a type are what their roles need."""
    known = {kind.name.lower(): kind for kind in Kind if kind is not Kind.UNUSABLE}
    kinds = dict.fromkeys(request.columns, Kind.TEXT)
    for name in (request.time, request.order):
        if name is not None:
            kinds[name] = Kind.MOMENT if isinstance(request.gap, datetime.timedelta) else Kind.INTEGER
    for name, kind in types.items():
        if name not in kinds:
            raise InputError(f"types names the column {shown(name)}, which is not read{did_you_mean(name, kinds)}")
        kinds[name] = known[one_of(kind, f"the type of column {shown(name)}", known)]
    request.check(kinds)
    if dialect == "sqlite" and isinstance(request.gap, datetime.timedelta):
        raise InputError("SQLite keeps times as text and cannot subtract them: a gap needs a time column of numbers")
    return _statement.as_text(_statement.counting, request, table, kinds, dialect)


def _sql(engine: Engine, build: _statement.Build, request: CountRequest) -> str:
    return _statement.as_text(build, request, engine.table, engine.kinds, engine.dialect)


def _refuse(engine: Engine, request: CountRequest, wrong: int, stateless: int) -> None:
    """Raises ``LogError`` for the first row that cannot be used."""

    def answer(build: _statement.Build) -> list[Sequence[Any]]:
        return list(engine.streamed(_sql(engine, build, request)))

    if wrong:
        [numbers] = answer(_statement.lacking)
        roles = ["chain", "time", *(role for role in ("path", "order") if getattr(request, role) is not None)]
        for role, number in zip(roles, numbers, strict=True):
            if number:
                article, column = "an" if role == "order" else "a", shown(getattr(request, role))
                raise LogError(f"every row needs {article} {role}, but {_have(number)} none in column {column}")
        for chain, time in answer(_statement.first_tie):
            column = request.time if request.order is None else f"{request.time}, {request.order}"
            place = f"chain {shown(str(chain))} has two rows at {column} = {time}"
            if request.order is None:
                raise LogError(f"{place}, and {ORDER}")
            raise LogError(f"{place} that are equal in the order column too, so that which came first is not known")
        raise LogError(f"{engine.name}: the log was changed while it was counted, and nothing was counted")
    if stateless and request.missing == "error":
        for chain, time in answer(_statement.first_without_state):
            column = shown(request.state)
            raise LogError(
                f"chain {shown(str(chain))} has no state in column {column} at {request.time} = {time}; {BREAK}"
            )


def _rows(number: int) -> str:
    return f"{number:,} row{'s' * (number != 1)}"


def _have(number: int) -> str:
    return f"{_rows(number)} {'has' if number == 1 else 'have'}"


def _engine(spool: Spool, where: Any, request: CountRequest) -> Engine:
    """The engine of a log, which has the columns that are asked for."""
    if isinstance(where, str) and "://" in where:
        raise InputError(
            "a database counts its log itself: run cs.logs.counting_sql(…) there, and give its rows to"
            " cs.logs.read_counts; on Spark, count_transitions takes a data frame"
        )
    if is_spark(where):
        return Spark(spool, where, request)
    if is_table(where):
        return Table(spool, where, request)
    files = where if isinstance(where, list | tuple) else [where]
    if not files or not all(isinstance(file, str | Path) and str(file) for file in files):
        raise InputError(
            "a log must be a file, a list of files, a data frame (of pandas, polars or Spark) or an Arrow stream, not"
            f" {shown(where)}; columns of arrays fit into pandas.DataFrame(columns), and walks into"
            " cs.Paths.from_walks(walks)"
        )
    return Files(spool, [str(file) for file in files], request)
