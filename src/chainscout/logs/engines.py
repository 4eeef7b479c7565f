"""Finds the engine for a log that is not in memory, lets it count or walk, and checks its rows."""

from pathlib import Path
from typing import Any

import sqlalchemy as sa

from ..errors import InputError
from ..validation import shown
from . import faults, statement, walks
from .database import Database
from .files import Files
from .request import CountRequest, is_session, is_stream
from .spark import Spark
from .spool import Spool, guarded
from .streams import Stream

#: The engines that run the statement where the log is.
Engine = Files | Database | Spark | Stream


def count(spool: Spool, where: Any, table: str | None, request: CountRequest) -> None:
    """Runs the statement where the log is, and checks its rows."""
    engine = _engine(spool, where, table, request)
    try:
        _check(engine, request)
        with guarded(engine.name):
            engine.count(request)
            wrong, stateless = spool.faults()
        _check_rows(engine, request, wrong, stateless)
        with guarded(engine.name):
            spool.finish(engine.untyped)
    finally:
        engine.close()


def walk(spool: Spool, where: Any, table: str | None, request: CountRequest) -> tuple[walks.Found, bool]:
    """The rows of the log in their order, checked, and whether its columns have no types."""
    engine = _engine(spool, where, table, request)
    try:
        _check(engine, request)
        found = walks.gathered(engine.streamed(statement.walking(request, engine.table, engine.kinds)))
        _check_rows(engine, request, found.faults, found.stateless)
        return found, engine.untyped
    finally:
        engine.close()


def _check(engine: Engine, request: CountRequest) -> None:
    """Raises ``InputError`` for columns that the engine cannot use."""
    request.check(engine.kinds, engine.text_times)
    if isinstance(engine, Database):
        engine.check_gap(request)


def _check_rows(engine: Engine, request: CountRequest, wrong: int, stateless: int) -> None:
    """Raises ``LogError`` for the first row that cannot be used."""
    if wrong:
        _explain(engine, request)
    if stateless and request.missing == "error":
        for row in engine.rows(statement.first_without_state(request, engine.table, engine.kinds)):
            raise faults.without_state(request, *row)


def _explain(engine: Engine, request: CountRequest) -> None:
    for row in engine.rows(statement.lacking(request, engine.table, engine.kinds)):
        faults.need_complete(request, row)
    for row in engine.rows(statement.first_tie(request, engine.table, engine.kinds)):
        raise faults.tie(request, *row)
    raise faults.changed(engine.name)


def _engine(spool: Spool, where: Any, table: str | None, request: CountRequest) -> Engine:
    address = isinstance(where, str) and "://" in where
    if address or is_session(where) or isinstance(where, sa.URL | sa.Engine):
        if not isinstance(table, str) or not table:
            raise InputError(f"a log in a database or on Spark needs the name of its table, not {shown(table)}")
        if is_session(where) or (address and where.startswith("spark://")):
            return Spark(spool, where, table)
        return Database(spool, where, table)
    if table is not None:
        raise InputError(f"only a log in a database or on Spark has a table, and {shown(where)} is neither")
    if is_stream(where):
        return Stream(spool, where, request)
    return Files(spool, _files(where), request)


def _files(where: Any) -> list[str]:
    files = where if isinstance(where, list | tuple) else [where]
    if not files or not all(isinstance(file, str | Path) and str(file) for file in files):
        raise InputError(
            "a log must be a file, a list of files, a database's address, a Spark session, an Arrow stream, or columns"
            f" of arrays, not {shown(where)}"
        )
    return [str(file) for file in files]
