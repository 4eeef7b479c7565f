"""PostgreSQL, through psycopg. Every writer first locks the study's one row, so writers queue there.

Most of the time goes into waiting for answers. So a transaction usually takes two messages: one begins it and reads
what the caller will need, and one has the changes and the commit. While nobody else writes, it takes one message: a
question is one statement, and a change begins with a claim that the study's row is still the known one
(`Database.postpone`). All messages call statements that were prepared once, with the values written into the message.
So the server plans nothing, and the driver sends and waits once. A change of one row in each of several tables is one
statement. A change of many rows is one statement over arrays.
"""

import re
import select
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from itertools import count
from typing import Any, NamedTuple

from sqlalchemy import literal_column, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.sql import Executable

from ...errors import (
    Cancelled,
    ChainscoutError,
    ConnectionLost,
    FileError,
    InputError,
    MissingExtraError,
    OutcomeUnknown,
)
from ...validation import shown
from .database import PATIENCE, Begun, Changes, Database, Stale, Wanted, places
from .statements import STAMP, Bulk, claim_study, glance, whole_glance

__all__ = ["Postgres", "array", "literal"]

#: How many seconds to keep trying to reach a server that is being restarted, unless a writer has less patience.
_RESTART = 30.0
_NOW = "extract(epoch FROM clock_timestamp())::float8"
_CLOCK = text(f"SELECT {_NOW}")
_GLANCE, _WHOLE_GLANCE = (found.add_columns(literal_column(_NOW)) for found in (glance, whole_glance))
_PLACE = re.compile(r"%\((\w+)\)s")
_NUMBERS = frozenset((int, float))
#: 'chst' in ASCII: distinguishes the locks of chainscout from those of other programs.
_MAKING = 0x63687374


#: Statements that are run as one.
_Together = tuple[Executable | Bulk, ...]


class _Prepared(NamedTuple):
    """One statement, or several as one, as the server knows it."""

    name: str
    #: Where the values of each statement's parameters are, in the order of the parameters.
    keys: list[Sequence[Any]]


class Postgres(Database):
    """One study in one schema of a database (the first of the connection's search path)."""

    begin_reading = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    begin_writing = "BEGIN ISOLATION LEVEL READ COMMITTED"
    locks_rows = True
    foresees = True

    def __init__(self, address: str, read_only: bool, patience: float = PATIENCE) -> None:
        try:
            import psycopg
        except ImportError:
            raise MissingExtraError("a study in PostgreSQL", "postgres") from None
        try:
            url = make_url(address).set(drivername="postgresql+psycopg")
        except (ArgumentError, ValueError):  # for example a port that is not a number
            raise InputError("an address of PostgreSQL must be of the form postgresql://user@host/database") from None
        make_dialect: Any = url.get_dialect()
        dialect = make_dialect(dbapi=psycopg)
        super().__init__(
            dialect, url.set(drivername="postgresql").render_as_string(hide_password=True), read_only, patience
        )
        self._psycopg = psycopg
        self.failure = psycopg.Error
        self._arguments = dialect.create_connect_args(url)
        self._reached = False
        #: The statements that are prepared on this connection, those still to be prepared, and the number of requests.
        self._prepared: dict[_Together, _Prepared] = {}
        self._new: list[_Together] = []
        self._asked = 0
        #: The message that ends the transaction, and the pipeline in which a batch is sent.
        self._last = ""
        self._sending = ExitStack()
        #: The stamp that the study must have when a postponed transaction begins.
        self._claim: Sequence[Any] | None = None
        #: The server's clock when the transaction began, and how far it was ahead of this machine's clock then.
        self._now = self._ahead = 0.0

    def connect(self) -> None:
        """Connects if there is no connection, and waits for a server that is starting."""
        if self._connection is not None and not self._connection.closed:
            return
        self._connection = None
        patience = time.monotonic() + (min(_RESTART, self.patience) if self._reached else 0.0)
        positional, named = self._arguments
        while self._connection is None:
            try:
                # Statements begin and end transactions, as with SQLite. The driver's own way would wait for the server
                # to prepare a statement, and would drop it after each rollback.
                self._connection = self._psycopg.connect(*positional, **named, autocommit=True, prepare_threshold=None)
            except self._psycopg.Error as error:
                if time.monotonic() > patience or not _may_pass(error):
                    raise ConnectionLost(f"no connection to {self.where}: {_line(error)}") from None
                time.sleep(0.2)
        self._reached = True
        self.connections += 1
        self._prepared.clear()
        self._claim = None
        self.query("SET standard_conforming_strings = on")
        self.query("SET default_transaction_isolation = 'read committed'")
        if not self.read_only:
            self.query(f"SET lock_timeout = {max(1, round(1000 * self.patience))}")

    def begin(self, write: bool, first: Executable | None, wanted: Mapping[str, Wanted]) -> Begun:
        """Begins a transaction. The clock comes after a writer has waited for its turn."""
        begins = self.begin_writing if write else self.begin_reading
        if first is None:
            self.query(begins)
            ((now,),) = self.run(_CLOCK).fetchall()
            self._set_clock(now)
            return Begun(None, {})
        calls = ((first, {}), (_CLOCK, {}), *wanted.values())
        texts = [self._call((statement,), [parameters]) for statement, parameters in calls]
        before = [begins, *self._preparations()]
        cursor = self._connection.cursor()
        cursor.execute("; ".join([*before, *texts]), prepare=False)
        self._new.clear()
        for _ in before:
            cursor.nextset()
        answers = [cursor.fetchall()]
        while cursor.nextset():
            answers.append(cursor.fetchall())
        found, ((now,),) = answers[:2]
        self._set_clock(now)
        return Begun(found[0] if found else None, dict(zip(wanted, answers[2:], strict=True)))

    def _set_clock(self, now: float) -> None:
        self._now, self._ahead = now, now - time.time()

    def _glanced(self, whole: bool) -> Sequence[Any] | None:
        found = self.run(_WHOLE_GLANCE if whole else _GLANCE).fetchone()
        if found is None:
            return None
        self._set_clock(found[-1])
        return tuple(found[:-1])

    def is_connected(self) -> bool:
        """A server that ends a connection says so. Between two transactions it says nothing else."""
        return self._connection is not None and not self._connection.closed and not _can_be_read(self._connection)

    def postpone(self, claim: Sequence[Any]) -> Begun:
        self._claim = claim
        self._now = time.time() + self._ahead
        return Begun(claim, {})

    def confirm(self) -> None:
        if self._claim is not None:
            self._send("")

    def _beginning(self, is_whole: bool) -> list[str]:
        """The statements that begin a postponed transaction; none if it has begun.

        ``is_whole``: the message has the whole transaction. Then the server itself begins and commits it.
        """
        claim, self._claim = self._claim, None
        if claim is None:
            return []
        call = self._call((claim_study,), [dict(zip(STAMP, claim, strict=True))])
        return [call] if is_whole else [self.begin_writing, call]

    def _call(self, together: _Together, parameters: Sequence[Any]) -> str:
        """A call of a prepared statement: of several changes as one, or of one statement."""
        known = self._prepared.get(together)
        if known is None:
            self._asked += 1
            known = _Prepared(f"chainscout{self._asked}", list(map(self._keys, together)))
            self._new.append(together)  # first, because an interruption may come in between, and then it is forgotten
            self._prepared[together] = known
        values = [literal(given[key]) for keys, given in zip(known.keys, parameters, strict=True) for key in keys]
        return f"EXECUTE {known.name}({', '.join(values)})" if values else f"EXECUTE {known.name}"

    def _keys(self, statement: Executable | Bulk) -> Sequence[Any]:
        return places(statement, _PLACE.findall(self.compiled(statement).text))

    def _preparations(self) -> list[str]:
        """The commands that prepare the statements which were called but are not prepared yet."""
        return [f"PREPARE {self._prepared[together].name} AS {self._joined(together)}" for together in self._new]

    def _joined(self, together: _Together) -> str:
        """Several changes as one statement, with numbered places for all values."""
        *others, main = (self.compiled(statement).text for statement in together)
        parts = ", ".join(f"change{number} AS ({part})" for number, part in enumerate(others))
        places = count(1)
        return _PLACE.sub(lambda _: f"${next(places)}", f"WITH {parts} {main}" if parts else main).replace("%%", "%")

    def change(self, changes: Changes) -> None:
        """Runs each statement with its sets of values: those with one set together."""
        single = [change for change in changes if len(change[1]) == 1]
        if single:
            self._send(self._one_call(single))
        super().change([change for change in changes if len(change[1]) > 1])

    def _one_call(self, single: Changes) -> str:
        return self._call(tuple([statement for statement, _ in single]), [values for _, (values,) in single])

    def _send(self, message: str, *, is_whole: bool = False) -> Any:
        """The cursor after a message, with the answer to its last statement."""
        beginning = self._beginning(is_whole)
        cursor = self._connection.cursor()
        try:
            cursor.execute("; ".join([*self._preparations(), *beginning, message]), prepare=False)
        except self._psycopg.errors.InvalidTextRepresentation:
            if beginning:
                raise Stale from None
            raise
        self._new.clear()
        while cursor.nextset():
            pass
        return cursor

    def execute(self, text: str, parameters: Mapping[str, Any]) -> Any:
        """The cursor after one statement in SQL."""
        self.confirm()
        return super().execute(text, parameters)

    def run(self, statement: Executable | Bulk, parameters: Any = None) -> Any:
        """The cursor after one statement."""
        if self._connection.pgconn.pipeline_status:
            return super().run(statement, parameters)
        if not isinstance(statement, Bulk):
            parameters = {**self.compiled(statement).constants, **(parameters or {})}
        return self._send(self._call((statement,), [parameters]))

    def conclude(self, changes: Changes) -> None:
        """Sends the last changes. From here on, no answer is awaited before the commit."""
        if changes and all(len(parameters) == 1 for _, parameters in changes):
            self._last = self._one_call(changes)
        else:
            self.confirm()
            self._sending.enter_context(self._connection.pipeline())
            for statement, parameters in changes:
                self.run_many(statement, parameters)

    def commit(self) -> None:
        """Waits until the server has done everything that was sent."""
        if self._connection.pgconn.pipeline_status:
            super().commit()
            self._sending.close()
            return
        last, self._last = self._last, ""
        if self._claim is not None and last:
            self._send(last, is_whole=True)
        else:
            self._send(f"{last}; COMMIT" if last else "COMMIT")

    def roll_back(self) -> None:
        """Undoes the transaction, whatever state it is in."""
        for together in self._new:  # the server may not have prepared them: they get other names next time
            self._prepared.pop(together, None)
        self._new.clear()
        self._last, self._claim = "", None
        with suppress(self._psycopg.Error):  # the error of a statement in the pipeline was reported before
            self._sending.close()
        super().roll_back()

    def _run_all(self, statement: Bulk, parameters: Sequence[Sequence[Any]]) -> None:
        self._run_arrays(statement, parameters)

    def find_many(self, statement: Bulk, parameters: Sequence[Sequence[Any]]) -> list[Any]:
        """The rows that many sets of values find, with one statement."""
        return list(self._run_arrays(statement, parameters).fetchall()) if parameters else []

    def _run_arrays(self, statement: Bulk, parameters: Sequence[Sequence[Any]]) -> Any:
        text, names, *_ = self.compiled(statement.many)
        found = zip(names, places(statement, names), strict=True)
        given = {name: array([one[place] for one in parameters]) for name, place in found}
        return self.execute(text, given)

    def in_transaction(self) -> bool:
        idle = self._psycopg.pq.TransactionStatus.IDLE
        return bool(self._connection.info.transaction_status != idle)

    def make_alone(self) -> None:
        """Takes a lock of the server for creating a study in this schema: two at once would be an error."""
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
        """Whether PostgreSQL can hold this text: a text with the character NUL cannot be stored."""
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
        if isinstance(error, self._psycopg.errors.QueryCanceled):  # the server has rolled back; the connection stays
            cancelled = f"{self.where} cancelled a statement ({_line(error)})"
            return Cancelled(f"{cancelled}: nothing was changed, and the call can be made again")
        if isinstance(error, self._psycopg.OperationalError):
            self.disconnect()
            lost = f"the connection to {self.where} was lost ({_line(error)})"
            if committing:
                return OutcomeUnknown(f"{lost}: whether the last change was stored is not known")
            return ConnectionLost(f"{lost}: nothing was changed")
        return FileError(f"{self.where} refused a statement: {_line(error)}")


def literal(value: float | str | bytes | None) -> str:
    """An exact literal for a value in a PostgreSQL statement. Its type follows from its position."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"'\\x{value.hex()}'"
    if isinstance(value, str):
        if "\0" in value:
            raise InputError(f"PostgreSQL cannot store a text with the character NUL in it, as in {shown(value)}")
        return "'" + value.replace("'", "''") + "'"
    return str(int(value)) if isinstance(value, int) else f"'{float(value)!r}'"


def array(values: Sequence[float | str | bytes | None]) -> str:
    """An array as PostgreSQL reads it.

    psycopg's own function also allows arrays of arrays. It takes five times longer, which is most of a batch's time.
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


def _can_be_read(connection: Any) -> bool:
    """Whether the server has sent something that was not read yet."""
    if not hasattr(select, "poll"):  # Windows
        return bool(select.select([connection], [], [], 0.0)[0])
    poll = select.poll()  # `select.select` knows only small file numbers
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))


def _may_pass(error: Exception) -> bool:
    """Whether the server may answer a little later, because it is starting, stopping or not there yet."""
    text = str(error)
    return any(sign in text for sign in ("starting up", "shutting down", "refused", "No such file", "recovery"))


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
