"""PostgreSQL, through psycopg. Every writer first locks the study's one row, so writers queue there.

Waiting for answers is what costs time. So the changes of a transaction are sent at its end together with the commit,
in a pipeline that waits once, and a change of many rows is one statement over arrays.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.sql import Executable

from ...errors import ChainscoutError, ConnectionLost, FileError, InputError, MissingExtraError, OutcomeUnknown
from . import statements
from .database import PATIENCE, Database
from .statements import Bulk

__all__ = ["Postgres", "array"]

#: How many seconds to keep trying to reach a server that is being restarted, unless a writer has less patience.
_RESTART = 30.0
_CLOCK = "SELECT extract(epoch FROM clock_timestamp())::float8"
_NUMBERS = frozenset((int, float))
#: 'chst' in ASCII: tells the locks of chainscout from those of other programs.
_MAKING = 0x63687374


class Postgres(Database):
    """One study in one schema of a database (the first of the connection's search path)."""

    begin_reading = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    begin_writing = "BEGIN ISOLATION LEVEL READ COMMITTED"
    locks_rows = True

    def __init__(self, address: str, read_only: bool, patience: float = PATIENCE) -> None:
        try:
            import psycopg
        except ImportError:
            raise MissingExtraError("a study in PostgreSQL", "postgres") from None
        try:
            url = make_url(address).set(drivername="postgresql+psycopg")
        except (ArgumentError, ValueError):  # a port that is no number
            raise InputError("an address of PostgreSQL must be of the form postgresql://user@host/database") from None
        make_dialect: Any = url.get_dialect()
        dialect = make_dialect(dbapi=psycopg)
        super().__init__(
            dialect, url.set(drivername="postgresql").render_as_string(hide_password=True), read_only, patience
        )
        self._psycopg = psycopg
        self._arguments = dialect.create_connect_args(url)
        self._reached = False
        self._sending = ExitStack()
        self._now = 0.0

    def connect(self) -> None:
        """Connects if there is no connection, and waits for a server that is starting."""
        if self._connection is not None and not self._connection.closed:
            return
        self._connection = None
        patience = time.monotonic() + (min(_RESTART, self.patience) if self._reached else 0.0)
        positional, named = self._arguments
        while self._connection is None:
            try:
                # Transactions are begun and ended by statements, as with SQLite.
                self._connection = self._psycopg.connect(*positional, **named, autocommit=True)
            except self._psycopg.Error as error:
                if time.monotonic() > patience or not _may_pass(error):
                    raise ConnectionLost(f"no connection to {self.where}: {_line(error)}") from None
                time.sleep(0.2)
        self._reached = True
        if not self.read_only:
            self.query(f"SET lock_timeout = {max(1, round(1000 * self.patience))}")

    def begin(self, write: bool, first: Executable | None) -> Any:
        """Begins a transaction. The clock comes last, when a writer has waited for its turn."""
        texts = [self.begin_writing if write else self.begin_reading, _CLOCK]
        if first is not None:
            texts.insert(1, self.compiled(first).text)
            if not write:  # who reads a study most often asks which chain is next
                texts.append(self.compiled(statements.best).text)
        cursor = self._connection.cursor()
        cursor.execute("; ".join(texts), prepare=False)  # one message, one answer
        found, self.foreseen = None, None
        if first is not None:
            cursor.nextset()
            found = cursor.fetchone()
        cursor.nextset()
        (self._now,) = cursor.fetchone()
        if first is not None and not write:
            cursor.nextset()
            self.foreseen = cursor.fetchall()
        return found

    def read_no_more(self) -> None:
        """From here on, nothing that is sent is waited for before the commit."""
        self._sending.enter_context(self._connection.pipeline())

    def commit(self) -> None:
        """Waits until the server has done everything that was sent."""
        super().commit()
        self._sending.close()

    def roll_back(self) -> None:
        """Undoes the transaction, whatever state it is in."""
        with suppress(self._psycopg.Error):  # the error of a statement in the pipeline was reported before
            self._sending.close()
        super().roll_back()

    def _run_all(self, statement: Bulk, parameters: Sequence[Mapping[str, Any]]) -> None:
        self._run_arrays(statement, parameters)

    def find_many(self, statement: Bulk, parameters: Sequence[Mapping[str, Any]]) -> list[Any]:
        """The rows that many sets of parameters find, with one statement."""
        return list(self._run_arrays(statement, parameters).fetchall()) if parameters else []

    def _run_arrays(self, statement: Bulk, parameters: Sequence[Mapping[str, Any]]) -> Any:
        text, names, _ = self.compiled(statement.many)
        return self.execute(text, {name: array([one[name] for one in parameters]) for name in names})

    def in_transaction(self) -> bool:
        idle = self._psycopg.pq.TransactionStatus.IDLE
        return bool(self._connection.info.transaction_status != idle)

    def make_alone(self) -> None:
        """Takes a lock of the server for making a study in this schema: tables made at once would be an error."""
        [(schema, path)] = self.query("SELECT current_schema(), current_setting('search_path')")
        if schema is None:
            raise InputError(
                f"{self.where} has no schema {path}, in which the study was to be made: create it first, as in"
                f" 'CREATE SCHEMA {path}'"
            )
        self.query(f"SELECT pg_advisory_xact_lock({_MAKING}, hashtext(current_schema()))")

    def has_tables(self) -> bool:
        """Whether there is a table of a study in the first schema of the search path."""
        return bool(self.query("SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = 'study'"))

    def can_store(self, text: str) -> bool:
        """Whether PostgreSQL can hold this text: it has no texts with a zero in them."""
        return super().can_store(text) and "\0" not in text

    def now(self) -> float:
        """The server's clock when the transaction began, because workers may be on many machines."""
        return self._now

    def meaning(self, error: Exception, committing: bool) -> ChainscoutError | None:
        if not isinstance(error, self._psycopg.Error):
            return None
        if isinstance(error, (self._psycopg.errors.UndefinedTable, self._psycopg.errors.UndefinedColumn)):
            return FileError(f"there is no study in {self.where}, or it is damaged: {_line(error)}")
        if isinstance(error, self._psycopg.errors.DiskFull):
            return FileError(f"{self.where} could not be written ({_line(error)}): nothing was changed")
        if isinstance(error, self._psycopg.errors.LockNotAvailable):
            return self.busy()
        if isinstance(error, self._psycopg.OperationalError):
            self.disconnect()
            lost = f"the connection to {self.where} was lost ({_line(error)})"
            if committing:
                return OutcomeUnknown(f"{lost}: whether the last change was stored is not known")
            return ConnectionLost(f"{lost}: nothing was changed")
        return FileError(f"{self.where} refused a statement: {_line(error)}")


def array(values: Sequence[float | str | bytes | None]) -> str:
    """An array as PostgreSQL reads it.

    psycopg's own way also allows arrays of arrays. It takes five times longer, which is most of the time of a batch.
    """
    if _NUMBERS.issuperset(map(type, values)):
        return "{" + repr(list(values))[1:-1] + "}"  # exact, for doubles too
    return "{" + ",".join([_element(value) for value in values]) + "}"


def _element(value: float | str | bytes | None) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f'"\\\\x{value.hex()}"'
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return repr(value)


def _may_pass(error: Exception) -> bool:
    """Whether the server may answer a little later: it is starting, stopping or not there yet."""
    text = str(error)
    return any(sign in text for sign in ("starting up", "shutting down", "refused", "No such file", "recovery"))


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
