"""A connection to a database: statements compiled once by SQLAlchemy and then run by the driver itself."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.schema import CreateIndex, CreateTable
from sqlalchemy.sql import Executable

from ..errors import ChainscoutError, InputError
from ..validation import is_unicode, shown
from . import schema
from .statements import Bulk


def taken(where: str) -> InputError:
    """The one error of those who want to make a study where something is already."""
    return InputError(
        f"{where} exists already: go on with it (by ask, tell or learn on the command line, by Study.open in Python), "
        "or give the new study another name"
    )


class _Compiled:
    """A statement's text; the statement itself is kept beside it so that its id stays its own."""

    def __init__(self, statement: Executable, engine: Engine) -> None:
        compiled = statement.compile(dialect=engine.dialect)  # type: ignore[attr-defined]
        self.statement = statement
        self.text = str(compiled)
        self.names = list(compiled.params)
        self.defaults = {name: value for name, value in compiled.params.items() if value is not None}


class Database:
    """What SQLite and PostgreSQL have in common; each has a subclass for what they do not."""

    #: What begins a transaction that reads, and one that writes.
    begin_reading = "BEGIN"
    begin_writing = "BEGIN"
    #: Whether ``SELECT … FOR UPDATE`` is needed to keep other writers out.
    locks_rows = False

    def __init__(self, engine: Engine, where: str, read_only: bool) -> None:
        self.engine = engine
        self.where = where
        self.read_only = read_only
        self._compiled: dict[int, _Compiled] = {}
        self._connection: Any = None
        self._process = os.getpid()

    # -- statements

    def _known(self, statement: Executable) -> "_Compiled":
        """The statement in the database's own words."""
        known = self._compiled.get(id(statement))
        if known is None:
            known = self._compiled[id(statement)] = _Compiled(statement, self.engine)
        return known

    def run(self, statement: Executable | Bulk, parameters: Mapping[str, Any] | None = None) -> Any:
        """The cursor after one statement."""
        known = self._known(statement.one if isinstance(statement, Bulk) else statement)
        return self._execute(
            known.text, {**known.defaults, **(parameters or {})} if known.defaults else parameters or {}
        )

    def run_many(self, statement: Bulk, parameters: Sequence[Mapping[str, Any]]) -> None:
        """One statement for many sets of parameters."""
        if len(parameters) == 1:
            self.run(statement, parameters[0])
        elif parameters:
            self._run_all(statement, parameters)

    def _run_all(self, statement: Bulk, parameters: Sequence[Mapping[str, Any]]) -> None:
        self._connection.cursor().executemany(self._known(statement.one).text, parameters)

    def find_many(self, statement: Bulk, parameters: Sequence[Mapping[str, Any]]) -> list[Any]:
        """What is found by many sets of parameters, each of which finds one row or none; in any order."""
        found = (self.run(statement, one).fetchone() for one in parameters)
        return [row for row in found if row is not None]

    def query(self, text: str) -> list[Any]:
        """The rows of a statement that is the same in both databases, or that has none."""
        cursor = self._execute(text, {})
        return list(cursor.fetchall()) if cursor.description else []

    def definitions(self) -> list[str]:
        """The statements that make the schema."""
        dialect = self.engine.dialect
        made = []
        for table in schema.metadata.sorted_tables:
            made.append(str(CreateTable(table).compile(dialect=dialect)))
            indices = sorted(table.indexes, key=lambda index: str(index.name))
            made.extend(str(CreateIndex(index).compile(dialect=dialect)) for index in indices)
        return made

    def has_tables(self) -> bool:
        """Whether there is a table of a study."""
        raise NotImplementedError

    def can_store(self, text: str) -> bool:
        """Whether this text can be in the database at all."""
        return is_unicode(text)

    def _execute(self, text: str, parameters: Mapping[str, Any]) -> Any:
        cursor = self._connection.cursor()
        cursor.execute(text, parameters)
        return cursor

    # -- transactions

    @contextmanager
    def transaction(self, write: bool, first: Executable | None = None) -> Iterator[Any]:
        """A transaction that commits unless an error leaves it; gives the row that its ``first`` statement finds."""
        if write and self.read_only:
            raise InputError(f"the study in {self.where} was opened to be read only")
        if self._process != os.getpid():
            raise InputError("a study cannot be used in a forked process: open it there again")
        committing = False
        try:
            self.connect()
            yield self.begin(write, first)
            committing = True
            self.commit()
        except BaseException as error:
            self._undo()
            if isinstance(error, UnicodeEncodeError):  # by the driver, of whatever text was to be written
                raise InputError(f"a text that is no UTF-8 cannot be stored: {shown(error.object)}") from None
            if not isinstance(error, ChainscoutError) and isinstance(error, Exception):
                meaning = self.meaning(error, committing)
                if meaning is not None:
                    raise meaning from error
            raise

    def begin(self, write: bool, first: Executable | None) -> Any:
        """Begins a transaction, and gives the row that its first statement finds."""
        self._execute(self.begin_writing if write else self.begin_reading, {})
        return None if first is None else self.run(first).fetchone()

    def read_no_more(self) -> None:
        """Only changes are still to come, and the commit."""

    def commit(self) -> None:
        """Ends the transaction; what it changed is on the disk when this returns."""
        self._execute("COMMIT", {})

    def roll_back(self) -> None:
        """Ends the transaction, if one is open; nothing was changed."""
        if self.in_transaction():
            self._execute("ROLLBACK", {})

    def _undo(self) -> None:
        try:
            if self._connection is not None:
                self.roll_back()
        except Exception:  # the connection is of no use any more; the database has rolled back by itself
            self.disconnect()

    def connect(self) -> None:
        """Makes a connection if there is none."""
        raise NotImplementedError

    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        raise NotImplementedError

    def disconnect(self) -> None:
        """Drops the connection; the next transaction makes a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except Exception:
                connection.detach()

    def check_whole(self) -> None:
        """Raises FileError if the database finds that it is damaged."""

    def now(self) -> float:
        """Seconds since 1970, by one clock for all workers."""
        raise NotImplementedError

    def meaning(self, error: Exception, committing: bool) -> ChainscoutError | None:
        """The driver's error in our words, or None if it is not the driver's."""
        raise NotImplementedError

    def close(self) -> None:
        """Closes the connection."""
        if self._process == os.getpid():
            self.disconnect()
            self.engine.dispose()
