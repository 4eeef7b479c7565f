"""A journal in one schema of a PostgreSQL database (the first schema of the connection's search path).

**An append** takes one round trip while nobody else writes: the command decides by the state that it has, and one
statement takes the lock, checks that the head is still there, and inserts the next numbers. If another writer has taken
a number, this writer takes turns for its next appends, and goes on so while it sees entries of others. Then an append
takes two round trips: one for the lock and the others' entries, one for the new entries and the commit. So a lone
writer is quick, and a crowd is served in turn.

**A lost connection** leaves open whether the last append was stored. Its numbers settle it. If the entries there have
our digests, they are ours. If they have others, nothing of ours was stored, and the command decides anew. If the
numbers are free, the same entries are inserted again with the same numbers: even if the first attempt is still on its
way, only one of the two can have the numbers.
"""

import re
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from typing import Any

import psycopg
from psycopg.errors import DiskFull, LockNotAvailable, QueryCanceled, UndefinedColumn, UndefinedTable, UniqueViolation
from psycopg.pq import TransactionStatus

from ..errors import Busy, Cancelled, ChainscoutError, ConnectionLost, FileError, InputError, OutcomeUnknown
from .entry import Entry, Head
from .files import taken
from .journal import PATIENCE, Command, Journal, Snapshot, other_format

__all__ = ["PostgresJournal", "fill", "holds_study"]

_TABLES = (
    "CREATE TABLE journal (number bigint PRIMARY KEY, time bigint NOT NULL, kind smallint NOT NULL,"
    " chain integer NOT NULL, path integer NOT NULL, value bigint NOT NULL, by bigint NOT NULL, more text NOT NULL,"
    " digest bigint NOT NULL)",
    "CREATE TABLE snapshot (key text NOT NULL, number bigint NOT NULL, time bigint NOT NULL, digest bigint NOT NULL,"
    " content bytea NOT NULL)",
)
_ROWS = (
    "SELECT number, time, kind, chain, path, value, by, more, digest FROM journal WHERE number >= %s"
    " ORDER BY number LIMIT %s"
)
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
_LOCK = "SELECT pg_advisory_xact_lock(%s, %s)"
_INSERT = (
    "INSERT INTO journal SELECT new.* FROM (SELECT pg_advisory_xact_lock(%s, %s)) AS turn,"
    " unnest(%s::bigint[], %s::bigint[], %s::smallint[], %s::integer[], %s::integer[], %s::bigint[], %s::bigint[],"
    " %s::text[], %s::bigint[]) AS new WHERE EXISTS (SELECT 1 FROM journal WHERE number = %s AND digest = %s)"
)
_DIGESTS = "SELECT digest FROM journal WHERE number BETWEEN %s AND %s ORDER BY number"
_SNAPSHOT = "SELECT key, number, time, digest, content FROM snapshot"
_FORGET = "DELETE FROM snapshot"
_KEEP = "INSERT INTO snapshot VALUES (%s, %s, %s, %s, %s)"
_COPY = "COPY journal FROM STDIN"
_FOUND = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename IN ('journal', 'study')"
_CLOCK = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
_SETTINGS = (
    "SELECT set_config('default_transaction_isolation', 'read committed', false),"
    " set_config('default_transaction_read_only', %s, false), set_config('lock_timeout', %s, false),"
    " set_config('idle_in_transaction_session_timeout', %s, false)"
)
_SCHEMA = "SELECT current_schema(), current_setting('search_path'), hashtext(current_schema())"

#: 'chst' in ASCII: distinguishes the locks of chainscout from those of other programs.
_OURS = 0x63687374
#: How the codes of the server's errors begin that end the connection: broken, shut down, idle for too long.
_LOST = ("08", "57P", "25P03")
#: A transaction that a statement can end.
_ENDABLE = (TransactionStatus.INTRANS, TransactionStatus.INERROR)
#: How many appends take turns after another writer was seen.
_CROWD = 16
#: Milliseconds after which the server ends a transaction whose process was stopped, or whose machine is gone, while it
#: held the lock. A command takes far less.
_ASLEEP = 60_000
#: Seconds of trying to reach a server that is being restarted, unless the caller has less patience.
_RESTART = 30.0
#: Seconds after which the server's clock is read again.
_CLOCK_EVERY = 60.0


class PostgresJournal(Journal):
    """The journal at an address. Raises `FileError` if there is no study."""

    _failure = psycopg.Error

    def __init__(self, address: str, read_only: bool = False, patience: float = PATIENCE) -> None:
        """``patience``: seconds that a writer waits for its turn before it raises `Busy`."""
        super().__init__(_without_password(address), read_only)
        self._address = address
        self._patience = patience
        #: How many of the next appends take turns.
        self._crowd = 0
        #: The server's clock minus this machine's monotonic one, in milliseconds, and when that was measured.
        self._ahead = self._measured = 0.0
        try:
            self._db = self._open()
        except self._failure as error:
            raise self._meaning(error) from error

    def now(self) -> int:
        """The server's clock, because workers may be on many machines."""
        return int(time.monotonic() * 1000 + self._ahead)

    def _close(self) -> None:
        self._db.close()

    # -- reading

    def _rows(self, first: int, most: int | None) -> Sequence[Sequence[Any]]:
        return self._query(_ROWS, (first, most))

    def _snapshot(self) -> Snapshot | None:
        found = self._query(_SNAPSHOT)
        return Snapshot(found[0][0], Head(*found[0][1:4]), found[0][4]) if found else None

    def _query(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows that a statement finds; a lost connection is made again."""
        while True:
            try:
                self._connect_again()
                return self._db.execute(statement, values).fetchall()
            except psycopg.Error as error:
                if not self._is_lost(error):
                    raise

    # -- writing

    def _append(self, head: Head, command: Command) -> list[Entry]:
        while True:
            new: list[Entry] = []
            try:
                self._connect_again()
                if head.number and not self._crowd:
                    with suppress(Exception):  # a refusal, perhaps only by an old state: look again in turn
                        new = self._seal(head, command, ())
                    if new:
                        self._insert(head, new)
                        return new
                tail = self._take_turn(head)
                new = self._seal(head, command, tail)
                head = tail[-1].head if tail else head
                with self._db.pipeline():
                    if new:
                        self._insert(head, new)
                    self._db.execute("COMMIT")
                return new
            except BaseException as error:
                if isinstance(error, psycopg.Error) and self._is_lost(error):
                    if new and self._is_stored(head, new):
                        return new
                    continue
                self._undo()
                if not isinstance(error, UniqueViolation):
                    raise
                self._crowd = _CROWD  # another writer has taken the number

    def _take_turn(self, head: Head) -> list[Entry]:
        """Begins a transaction, waits for the lock, and reads what others wrote."""
        # One message, which the driver fills in. After a pipeline the server would not count for how long we sleep.
        with psycopg.ClientCursor(self._db) as cursor:
            cursor.execute(f"{_BEGIN}; {_LOCK}; {_ROWS}", (_OURS, self._schema, head.number, None))
            while cursor.nextset():
                pass
            tail = self._follow(head, cursor.fetchall())
        self._crowd = _CROWD if tail else max(0, self._crowd - 1)
        return tail

    def _insert(self, head: Head, new: Sequence[Entry]) -> None:
        """Inserts the entries behind this head, which must be there. Raises `UniqueViolation` if others are there."""
        number, moment, kind, chain, path, value, by, more, digest = zip(*new, strict=True)
        columns = (number, moment, map(int, kind), chain, path, value, by)
        given = [_OURS, self._schema, *map(_array, columns), list(more), _array(digest), head.number, head.digest]
        inserted = self._db.execute(_INSERT, given)
        if not self._db.pgconn.pipeline_status and inserted.rowcount == 0:
            raise self._gone(head)

    def _is_stored(self, head: Head, new: Sequence[Entry]) -> bool:
        """Settles after a lost connection whether these entries are stored; stores them if their numbers are free."""
        while True:
            try:
                self._connect_again(OutcomeUnknown)
                found = self._db.execute(_DIGESTS, (new[0].number, new[-1].number)).fetchall()
                if found:
                    return [digest for (digest,) in found] == [entry.digest for entry in new]
                self._insert(head, new)
                return True
            except UniqueViolation:
                pass  # the first attempt came through late, or another writer's entries did: look again
            except psycopg.Error as error:
                if not self._is_lost(error):
                    raise self._lost(error, OutcomeUnknown) from error

    def _undo(self) -> None:
        """Ends the transaction without any change, whatever state it is in."""
        with suppress(psycopg.Error):
            status = self._db.info.transaction_status
            if status in _ENDABLE and not self._db.pgconn.pipeline_status:
                self._db.execute("ROLLBACK")
            elif status != TransactionStatus.IDLE:
                self._db.close()  # the server rolls back, and the next statement finds a lost connection

    def _keep(self, snapshot: Snapshot) -> None:
        with self._db.transaction():
            self._db.execute(_FORGET)
            self._db.execute(_KEEP, (snapshot.key, *snapshot.head, snapshot.content))

    # -- the connection

    def _open(self) -> "psycopg.Connection[Any]":
        """A connection. Raises `FileError` unless the schema has a study of this format."""
        db = _connect(self._address, self.read_only, self._patience)
        try:
            found = {name for (name,) in db.execute(_FOUND)}
            if "journal" not in found:
                if "study" in found:  # every earlier format has this column
                    raise other_format(self.where, *db.execute("SELECT format FROM study").fetchall()[0])
                raise FileError(f"there is no study in {self.where}")
            ((_, _, self._schema),) = db.execute(_SCHEMA).fetchall()
            self._read_clock(db)
        except BaseException:
            db.close()
            raise
        return db

    def _read_clock(self, db: "psycopg.Connection[Any]") -> None:
        before = time.monotonic()
        ((now,),) = db.execute(_CLOCK).fetchall()
        self._ahead = now - 500 * (before + time.monotonic())  # halfway between the question and the answer
        self._measured = time.time()

    def _connect_again(self, failure: type[ConnectionLost] = ConnectionLost) -> None:
        """Makes a lost connection again, and waits for a server that is being restarted.

        Reads the server's clock now and then. (The monotonic clock of a machine that sleeps may sleep too.)
        """
        end = time.monotonic() + min(_RESTART, self._patience)
        while self._db.closed:
            try:
                self._db = self._open()
            except (psycopg.Error, ConnectionLost) as error:
                if time.monotonic() > end or not _may_pass(error):
                    raise self._lost(error, failure) from None
                time.sleep(0.1)
        if not 0 <= time.time() - self._measured < _CLOCK_EVERY:
            self._read_clock(self._db)

    def _is_lost(self, error: psycopg.Error) -> bool:
        """Whether the error means that the connection is lost. Then it is closed."""
        state = error.sqlstate  # None: the error comes from this side, which cannot speak to the server
        broken = isinstance(error, psycopg.OperationalError) and (state is None or state.startswith(_LOST))
        if broken:
            self._db.close()
        return self._db.closed

    def _lost(self, error: Exception, failure: type[ConnectionLost]) -> ConnectionLost:
        unknown = "whether the last change was stored will be seen when the study is read again"
        outcome = unknown if failure is OutcomeUnknown else "nothing was changed"
        return failure(f"the connection to {self.where} was lost ({_one_line(error)}): {outcome}")

    def _meaning(self, error: Exception) -> ChainscoutError:
        return _meaning(self.where, self._patience, error)


def fill(address: str, beginning: Callable[[int], Iterable[Entry]]) -> None:
    """Makes a study in the schema of the address, of the entries that begin it now."""
    where = _without_password(address)
    try:
        with closing(_connect(address)) as db, db.transaction():
            ((schema, path, turn),) = db.execute(_SCHEMA).fetchall()
            if schema is None:
                raise InputError(
                    f"{where} has no schema {path}, in which the study was to be made: create it first, as in"
                    f" 'CREATE SCHEMA {path}'"
                )
            db.execute(_LOCK, (_OURS, turn))
            if db.execute(_FOUND).fetchall():
                raise taken(f"a study in {where}")
            for statement in _TABLES:
                db.execute(statement)
            ((now,),) = db.execute(_CLOCK).fetchall()
            with db.cursor() as cursor, cursor.copy(_COPY) as copy:
                for entry in beginning(now):
                    copy.write_row((*entry[:2], int(entry.kind), *entry[3:]))
    except psycopg.Error as error:
        raise _meaning(where, PATIENCE, error) from error


def holds_study(address: str) -> bool:
    """Whether there is a study, of any format, in the schema of the address."""
    with closing(_connect(address, read_only=True)) as db:
        return bool(db.execute(_FOUND).fetchall())


def _connect(address: str, read_only: bool = False, patience: float = PATIENCE) -> "psycopg.Connection[Any]":
    try:
        db = psycopg.connect(address, autocommit=True, prepare_threshold=2, client_encoding="utf8")
    except psycopg.ProgrammingError:  # for example a word that is no parameter
        raise InputError("an address of PostgreSQL must be of the form postgresql://user@host/database") from None
    except psycopg.Error as error:
        raise ConnectionLost(f"no connection to {_without_password(address)}: {_one_line(error)}") from None
    try:
        db.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        milliseconds = max(1, round(1000 * patience))
        db.execute(_SETTINGS, ("on" if read_only else "off", str(milliseconds), str(_ASLEEP)))
    except BaseException:
        db.close()
        raise
    return db


def _without_password(address: str) -> str:
    """The address as messages show it."""
    shown = re.sub(r"(?<=//)([^:/@]*):[^/]*@", r"\1:***@", address)
    return re.sub(r"([?&]password=)[^&]*", r"\1***", shown)


def _array(numbers: Iterable[int]) -> str:
    """An array of whole numbers as PostgreSQL reads it. The driver's own way takes several times as long."""
    return f"{{{','.join(map(str, numbers))}}}"


def _may_pass(error: Exception) -> bool:
    """Whether the server may answer a little later, because it is starting, stopping or not there yet."""
    signs = ("starting up", "shutting down", "refused", "No such file", "recovery", "terminat", "closed")
    return any(sign in str(error) for sign in signs)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _meaning(where: str, patience: float, error: Exception) -> ChainscoutError:
    """What an error of the driver means."""
    line = _one_line(error)
    if isinstance(error, UndefinedTable | UndefinedColumn):
        return FileError(f"there is no study in {where}, or it is damaged: {line}")
    if isinstance(error, DiskFull):
        return FileError(f"{where} could not be written ({line}): nothing was changed")
    if isinstance(error, LockNotAvailable):
        return Busy(f"another process has held the write lock of {where} for {patience:g} seconds: nothing was changed")
    if isinstance(error, QueryCanceled):  # the server has rolled back; the connection stays
        return Cancelled(f"{where} cancelled a statement ({line}): nothing was changed, and the call can be made again")
    if isinstance(error, psycopg.OperationalError):
        return ConnectionLost(f"the connection to {where} was lost ({line}): nothing was changed")
    return FileError(f"{where} refused a statement: {line}")
