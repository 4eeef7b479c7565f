"""The common part of SQLite and PostgreSQL: SQLAlchemy compiles a statement once, and the driver itself runs it."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from operator import itemgetter
from types import TracebackType
from typing import Any, NamedTuple, NoReturn

from sqlalchemy import Dialect
from sqlalchemy.schema import CreateIndex, CreateTable
from sqlalchemy.sql import Executable

from ...errors import Busy, ChainscoutError, InputError
from ...validation import is_unicode, shown
from ..protocol import FORKED
from .schema import metadata
from .statements import Bulk, glance, whole_glance

__all__ = ["PATIENCE", "Begun", "Changes", "Database", "Stale", "Wanted", "places", "taken"]

#: Seconds that a writer waits in the queue before it reports that another writer is stuck.
PATIENCE = 600.0


def taken(where: str) -> InputError:
    """The error for a new study at a place where something already exists."""
    return InputError(
        f"{where} exists already: go on with it (by ask, tell or learn on the command line, by Study.open in Python), "
        "or give the new study another name"
    )


#: A statement and its parameters.
Wanted = tuple[Executable, Mapping[str, Any]]
#: Statements, each with its sets of values. No two of them change the same row.
Changes = Sequence[tuple[Bulk, Sequence[Sequence[Any]]]]


class Stale(Exception):
    """Another writer has changed the study since its row was read."""


class Begun(NamedTuple):
    """The results of the reads that were sent with the beginning of a transaction."""

    #: The result of the first statement: a row, or None.
    first: Any
    #: The other results, by name; empty if reading them early saves no time.
    foreseen: Mapping[str, list[Any]]


class _Compiled(NamedTuple):
    """A statement in the dialect of one database."""

    text: str
    names: list[str]
    #: The values of the parameters that are constants of the statement.
    constants: dict[str, Any]
    #: The values of all parameters in their order, from a set that has them all.
    pick: Callable[[Any], Sequence[Any]]
    #: The values if the caller gives none.
    alone: Sequence[Any]


def places(statement: Executable | Bulk, names: Sequence[str]) -> Sequence[Any]:
    """Where the values of these parameters are: in a dictionary under their names, in a set of values by position."""
    return [statement.columns.index(name) for name in names] if isinstance(statement, Bulk) else names


def _picker(keys: Sequence[Any]) -> Callable[[Any], Sequence[Any]]:
    if len(keys) > 1:
        return itemgetter(*keys)
    return lambda given: [given[key] for key in keys]


class _Transaction:
    """The context manager of one transaction. A generator would take longer, and every observation passes here."""

    __slots__ = ("claim", "database", "first", "wanted", "write")

    def __init__(
        self,
        database: "Database",
        write: bool,
        first: Executable | None,
        wanted: Mapping[str, Wanted],
        claim: Sequence[Any] | None,
    ) -> None:
        self.database, self.write, self.first, self.wanted, self.claim = database, write, first, wanted, claim

    def __enter__(self) -> Begun:
        database = self.database
        if self.write and database.read_only:
            raise InputError(f"the study in {database.where} was opened to be read only")
        if database.process != os.getpid():
            raise InputError(FORKED)
        database.guard.__enter__()
        try:
            database.connect()
            if self.claim is not None:
                return database.postpone(self.claim)
            return database.begin(self.write, self.first, self.wanted)
        except BaseException as error:
            self._fail(error, committing=False)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._fail(error, committing=False)
        try:
            self.database.commit()
        except BaseException as failed:
            self._fail(failed, committing=self.write)  # a reader has changed nothing, whatever happens to the message
        self.database.guard.__exit__(None, None, None)

    def _fail(self, error: BaseException, committing: bool) -> NoReturn:
        """Undoes the transaction and raises the error, or what it means."""
        try:
            self.database.undo()
            if isinstance(error, UnicodeEncodeError):  # the driver could not encode a text
                raise InputError(f"a text that is no UTF-8 cannot be stored: {shown(error.object)}") from None
            if not isinstance(error, ChainscoutError) and isinstance(error, Exception):
                meaning = self.database.meaning(error, committing)
                if meaning is not None:
                    raise meaning from error
            raise error
        finally:
            self.database.guard.__exit__(None, None, None)


#: The compiled statements of SQLite and of PostgreSQL. They are the same for every database.
_COMPILED: dict[type, dict[Executable | Bulk, _Compiled]] = {}


class Database:
    """One connection to one database. SQLite and PostgreSQL each have a subclass for what differs."""

    #: The statements that begin a reading and a writing transaction.
    begin_reading = "BEGIN"
    begin_writing = "BEGIN"
    #: Whether ``SELECT … FOR UPDATE`` is needed to keep other writers out.
    locks_rows = False
    #: Whether reads can be sent together with the beginning of a transaction.
    foresees = False
    #: The errors of the driver.
    failure: type[Exception] = Exception
    #: The context manager around every transaction.
    guard: AbstractContextManager[None] = nullcontext()

    def __init__(self, dialect: Dialect, where: str, read_only: bool, patience: float) -> None:
        self.dialect = dialect
        #: The name of this database in messages.
        self.where = where
        self.read_only = read_only
        #: Seconds that a writer waits for its turn.
        self.patience = patience
        self._known = _COMPILED.setdefault(type(self), {})
        self._connection: Any = None
        #: How many connections were made to a server. A new one may lead to a server that has lost the last changes.
        self.connections = 0
        #: The process that made it.
        self.process = os.getpid()

    # -- statements

    def compiled(self, statement: Executable | Bulk) -> _Compiled:
        """The statement in the dialect of this database; compiled once."""
        known = self._known.get(statement)
        if known is None:
            one: Any = statement.one if isinstance(statement, Bulk) else statement
            made = one.compile(dialect=self.dialect)
            constants = {name: value for name, value in made.params.items() if value is not None}
            names = made.positiontup or list(made.params)
            pick = _picker(places(statement, names))
            alone = pick(constants) if constants.keys() >= set(names) else ()
            known = self._known[statement] = _Compiled(str(made), names, constants, pick, alone)
        return known

    def run(self, statement: Executable | Bulk, parameters: Any = None) -> Any:
        """The cursor after one statement. ``parameters``: a dictionary; for a `Bulk`, one set of values."""
        text, _, constants, *_ = self.compiled(statement)
        if isinstance(statement, Bulk):
            parameters = dict(zip(statement.columns, parameters, strict=True))
        return self.execute(text, {**constants, **(parameters or {})} if constants else parameters or {})

    def run_many(self, statement: Bulk, parameters: Sequence[Sequence[Any]]) -> None:
        """Runs one statement with many sets of values."""
        if len(parameters) == 1:
            self.run(statement, parameters[0])
        elif parameters:
            self._run_all(statement, parameters)

    def _run_all(self, statement: Bulk, parameters: Sequence[Sequence[Any]]) -> None:
        raise NotImplementedError

    def find_many(self, statement: Bulk, parameters: Sequence[Sequence[Any]]) -> list[Any]:
        """The rows that many sets of values find, in any order. Each set finds one row or none."""
        found = (self.run(statement, one).fetchone() for one in parameters)
        return [row for row in found if row is not None]

    def query(self, text: str) -> list[Any]:
        """The rows that a statement in SQL finds."""
        cursor = self.execute(text, {})
        return list(cursor.fetchall()) if cursor.description else []

    def execute(self, text: str, parameters: Mapping[str, Any]) -> Any:
        """The cursor after one statement in SQL."""
        cursor = self._connection.cursor()
        cursor.execute(text, parameters)
        return cursor

    def make_alone(self) -> None:
        """Waits until nobody else creates a study at this place. Others wait until the transaction ends."""

    def make_tables(self) -> None:
        """Makes the tables and indices of a study."""
        for table in metadata.sorted_tables:
            self.query(str(CreateTable(table).compile(dialect=self.dialect)))
            for index in sorted(table.indexes, key=lambda index: str(index.name)):
                self.query(str(CreateIndex(index).compile(dialect=self.dialect)))

    def has_tables(self) -> bool:
        """Whether there is a table of a study."""
        raise NotImplementedError

    def can_store(self, text: str) -> bool:
        """Whether the database can hold this text."""
        return is_unicode(text)

    # -- transactions

    def glance(self, whole: bool) -> Sequence[Any] | None:
        """The stamp of the study and its best chain, by one statement without a transaction.

        The chain is its number or, if ``whole``, all its columns; None if there is no free chain.
        Returns None if there is an obstacle. A transaction finds out what the obstacle is.
        """
        if self._connection is None or self.read_only or self.process != os.getpid():
            return None
        with self.guard:
            try:
                return self._glanced(whole)
            except BaseException as error:  # also an interruption: nobody knows how far the statement came
                self.undo()
                if isinstance(error, self.failure):
                    return None
                raise

    def _glanced(self, whole: bool) -> Sequence[Any] | None:
        found: Sequence[Any] | None = self.run(whole_glance if whole else glance).fetchone()
        return found

    def transaction(
        self,
        write: bool,
        first: Executable | None = None,
        wanted: Mapping[str, Wanted] | None = None,
        claim: Sequence[Any] | None = None,
    ) -> "_Transaction":
        """A transaction that commits unless it raises an error. It gives the row that its ``first`` statement finds.

        ``wanted``: the statements whose results the caller will read next, by name.
        ``claim``: the stamp that the study must have (`postpone`).
        """
        return _Transaction(self, write, first, wanted or {}, claim)

    def begin(self, write: bool, first: Executable | None, wanted: Mapping[str, Wanted]) -> Begun:
        """Begins a transaction, and runs the first statement with it."""
        self.execute(self.begin_writing if write else self.begin_reading, {})
        return Begun(None if first is None else self.run(first).fetchone(), {})

    def is_connected(self) -> bool:
        """Whether there is a connection, and the other side has not ended it, as far as this side can know."""
        return self._connection is not None

    def postpone(self, claim: Sequence[Any]) -> Begun:
        """Begins a writing transaction with the first message that follows.

        That message, or `confirm`, raises `Stale` unless the study has this stamp. Then nothing was changed.
        """
        raise NotImplementedError

    def confirm(self) -> None:
        """Begins the transaction now if it was postponed."""

    def change(self, changes: Changes) -> None:
        """Runs each statement with its sets of values."""
        for statement, parameters in changes:
            self.run_many(statement, parameters)

    def conclude(self, changes: Changes) -> None:
        """Runs the last changes of a transaction: only the commit follows."""
        self.change(changes)

    def commit(self) -> None:
        """Ends the transaction. Its changes are on the disk when this returns."""
        self.execute("COMMIT", {})

    def roll_back(self) -> None:
        """Ends the transaction, if one is open, without any change."""
        if self.in_transaction():
            self.execute("ROLLBACK", {})

    def undo(self) -> None:
        """Ends the transaction without any change, whatever state the connection is in."""
        try:
            if self._connection is not None:
                self.roll_back()
        except Exception:  # the connection is unusable, and the database has rolled back by itself
            self.disconnect()

    def connect(self) -> None:
        """Makes a connection if there is none."""
        raise NotImplementedError

    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        raise NotImplementedError

    def disconnect(self) -> None:
        """Drops the connection. The next transaction makes a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                connection.close()

    def check_whole(self) -> None:
        """Raises `FileError` if the database finds that it is damaged."""

    def notes(self) -> tuple[str, ...]:
        """Sentences about the database that readers of the study should see."""
        return ()

    def now(self) -> float:
        """Seconds since 1970, by one clock for all workers."""
        raise NotImplementedError

    def busy(self) -> Busy:
        """The error for a writer whose turn did not come in time."""
        held = f"another process has held the write lock of {self.where} for {self.patience:g} seconds"
        return Busy(f"{held}: nothing was changed")

    def meaning(self, error: Exception, committing: bool) -> ChainscoutError | None:
        """The driver's error as one of ours, or None if it is not an error of the driver."""
        raise NotImplementedError

    def close(self) -> None:
        """Closes the connection, unless it belongs to the process that this one was forked from."""
        if self.process == os.getpid():
            self.disconnect()
