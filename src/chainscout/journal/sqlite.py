"""A journal in one file of SQLite: write-ahead log, synchronous FULL, writers that take turns.

**Check points.** SQLite 3.7.0 to 3.51.2 can lose pages when a transaction commits, and so begins the write-ahead log
again, while another connection makes a check point right after a first one finished (the 'WAL-reset bug',
sqlite.org/wal.html). Most Pythons link such a version. So no connection here makes automatic check points. Now and then
a writer takes the write lock with one connection and, while it holds the lock, makes a check point with another one. No
transaction can commit in between, in this process or in any other. (SQLite's own check point when the last connection
closes holds the whole file exclusively.)

**The mark.** Before a check point ``PRAGMA user_version`` becomes 1, and after it 0 again. The check point carries the
1 into the file, and the log keeps the 0. So the file alone says that it needs its log, until the last process that
closes the study has put the whole log into the file. That finds the commonest accident: a file that was copied without
its log.

**Turns.** SQLite's own way to wait starves processes: under load one of sixteen may get no turn in seconds. A random
pause of our own does not.
"""

import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from random import SystemRandom
from typing import Any, TypeVar
from urllib.parse import quote

from ..errors import Busy, ChainscoutError, FileError
from .entry import Entry, Head
from .files import Stamp, beside, identity, stamp
from .journal import PATIENCE, Command, Journal, Snapshot, other_format

__all__ = ["SqliteJournal", "fill"]

#: What work in a turn gives.
_Result = TypeVar("_Result")

_TABLES = (
    "CREATE TABLE journal (number INTEGER PRIMARY KEY, time INTEGER NOT NULL, kind INTEGER NOT NULL,"
    " chain INTEGER NOT NULL, path INTEGER NOT NULL, value INTEGER NOT NULL, by INTEGER NOT NULL, more TEXT NOT NULL,"
    " digest INTEGER NOT NULL)",
    "CREATE TABLE snapshot (key TEXT NOT NULL, number INTEGER NOT NULL, time INTEGER NOT NULL, digest INTEGER NOT NULL,"
    " content BLOB NOT NULL)",
)
_ROWS = (
    "SELECT number, time, kind, chain, path, value, by, more, digest FROM journal WHERE number >= ?"
    " ORDER BY number LIMIT ?"
)
_INSERT = "INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_SNAPSHOT = "SELECT key, number, time, digest, content FROM snapshot"
_FORGET = "DELETE FROM snapshot"
_KEEP = "INSERT INTO snapshot VALUES (?, ?, ?, ?, ?)"
_BEGIN = "BEGIN IMMEDIATE"

#: 'chst' in ASCII: marks the file as a study.
_APPLICATION = 0x63687374

#: A check point is due after this many appends of one connection; a large batch counts as several. Opening a study
#: makes one if its log has at least this many bytes. After a check point the log is written from its beginning again.
_CHECKPOINT_EVERY = 400
_BATCH = 250
_LARGE_LOG = 32 * 2**20
#: A log of this size or less holds nothing.
_HEADER = 32

#: Nanoseconds that are longer than a tick of any clock of a file system.
_TICK = 3 * 10**9
#: A pause lasts for a random time between these, in seconds. Pauses that grow would serve last who waits longest.
_PAUSE = (0.0002, 0.001)
#: Errors of SQLite that pass.
_WAITING = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_PROTOCOL)
_random = SystemRandom()

_DAMAGED = ("malformed", "not a database", "database corruption", "disk image", "no such")


class SqliteJournal(Journal):
    """The journal in an existing file. Raises `FileError` if the file is not a study."""

    _failure = (sqlite3.Error, UnicodeDecodeError)

    def __init__(
        self, path: Path, read_only: bool = False, patience: float = PATIENCE, *, without_log: bool = False
    ) -> None:
        """``patience``: seconds that a statement waits for other processes before it raises `Busy`.

        ``without_log``: only what the file itself has is read, also if the file says that it needs its log.
        """
        super().__init__(str(path), read_only or without_log)
        self._patience = patience
        self._alone = without_log
        #: The real file, even if links change later.
        self.path = Path(os.path.realpath(path))
        self._names = tuple(str(beside(path, ending)) for ending in ("", "-wal", "-shm"))
        #: The stamp of a file that SQLite must read as one that does not change; None if it need not.
        self._frozen: Stamp | None = None
        #: The folder when these files were looked at last; None if it had changed just before.
        self._folder: Stamp | None = None
        self._appends = 0
        _check_kind(path)
        before = identity(self.path)
        try:
            self._db = self._open()
            try:
                self._check_content()
                #: The files that these names have; the connection has opened them.
                self._files = (before, *map(identity, self._names[1:]))
                self._check_same()
            except BaseException:
                self._db.close()
                raise
        except self._failure as error:
            raise self._meaning(error) from error

    def now(self) -> int:
        """This machine's clock, because all processes that share a file are on one machine."""
        return time.time_ns() // 1_000_000

    def _close(self) -> None:
        with suppress(sqlite3.Error):  # who holds the lock will close the file too
            if not self.read_only:
                self._settle(patience=0.0)
        self._db.close()

    # -- reading

    def _rows(self, first: int, most: int | None) -> Sequence[Sequence[Any]]:
        self._check_same()
        return self._query(_ROWS, (first, -1 if most is None else most))

    def _snapshot(self) -> Snapshot | None:
        found = self._query(_SNAPSHOT)
        return Snapshot(found[0][0], Head(*found[0][1:4]), found[0][4]) if found else None

    def _query(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows that a statement finds. They are of one moment, also if the file is read without any lock."""
        rows = self._run(statement, values).fetchall()
        while self._frozen is not None and self._frozen != self._stamp():
            self._db.close()
            self._db = self._open()
            rows = self._run(statement, values).fetchall()
        return rows

    def _run(
        self,
        statement: str,
        values: Sequence[Any] = (),
        patience: float | None = None,
        db: sqlite3.Connection | None = None,
    ) -> sqlite3.Cursor:
        """Runs a statement as soon as no other process is in the way. ``db``: another connection than its own."""
        end = 0.0
        while True:
            try:
                return (db or self._db).execute(statement, values)
            except sqlite3.OperationalError as error:
                if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _WAITING:
                    raise
                now = time.monotonic()
                end = end or now + (self._patience if patience is None else patience)
                if now >= end:
                    raise
            time.sleep(_random.uniform(*_PAUSE))

    # -- writing

    def _append(self, head: Head, command: Command) -> list[Entry]:
        if self._appends >= _CHECKPOINT_EVERY:
            self._checkpoint()

        def work() -> list[Entry]:
            tail = self._follow(head, self._db.execute(_ROWS, (head.number, -1)).fetchall())
            new = self._seal(head, command, tail)
            self._db.executemany(_INSERT, new)
            return new

        new = self._in_turn(work)
        self._appends += 1 + len(new) // _BATCH
        return new

    def _keep(self, snapshot: Snapshot) -> None:
        def work() -> None:
            self._db.execute(_FORGET)
            self._db.execute(_KEEP, (snapshot.key, *snapshot.head, snapshot.content))

        self._in_turn(work)

    def _in_turn(self, work: Callable[[], _Result]) -> _Result:
        """Does the work with the write lock, and commits it."""
        try:
            self._roll_back()  # what an interruption of an interruption may have left
            self._run(_BEGIN)
            self._check_files()
            result = work()
            self._db.execute("COMMIT")
        except BaseException:
            self._roll_back()
            raise
        return result

    def _roll_back(self) -> None:
        if self._db.in_transaction:
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")

    def _checkpoint(self) -> None:
        """Copies the log into the file. Unless a reader holds a part of it, the next append begins the log again."""
        self._run("PRAGMA user_version = 1")
        try:
            self._run(_BEGIN)
            if self._needs_log():  # else another process has settled it in between, and will make the next one
                with closing(self._open()) as helper:
                    helper.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        finally:
            self._roll_back()
        self._settle()
        self._appends = 0

    def _settle(self, patience: float | None = None) -> None:
        """Takes back the mark of a check point that has ended or was killed. None is running: it holds the lock."""
        if self._needs_log():
            self._run("PRAGMA user_version = 0", patience=patience)

    def _needs_log(self) -> bool:
        ((mark,),) = self._query("PRAGMA user_version")
        return bool(mark)

    # -- the file

    def _open(self) -> sqlite3.Connection:
        self._frozen = self._stamp() if self.read_only else None
        options = f"mode={'ro' if self.read_only else 'rw'}" + "&immutable=1" * (self._frozen is not None)
        uri = f"file:{quote(str(self.path))}?{options}"
        db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=0)
        try:  # who closes the study last holds the whole file for a moment
            self._run("PRAGMA wal_autocheckpoint = 0", db=db)
            self._run("PRAGMA synchronous = FULL", db=db)
        except BaseException:
            db.close()
            raise
        return db

    def _stamp(self) -> Stamp | None:
        """The stamp of a file that SQLite must be told does not change; None if it need not.

        A reader of a file in WAL mode needs the index of the log beside the file, and SQLite makes the index if it is
        missing. In a folder that cannot be written (an archive, another user's folder) it cannot. If there is nothing
        in the log, the file alone can be read instead, without any lock; who reads compares the stamps.
        """
        if not self._alone:
            has_log = os.path.exists(self._names[1]) and os.path.exists(self._names[2])
            if has_log or self._log_size() > 0 or os.access(self.path.parent, os.W_OK):
                return None
        return stamp(self.path)

    def _check_content(self) -> None:
        """Raises `FileError` unless the file is a study of this format, with its log."""
        ((application,),) = self._query("PRAGMA application_id")
        if application != _APPLICATION:
            raise FileError(f"{self.where} is not a study: it is a database of something else")
        if not self._query("SELECT 1 FROM sqlite_master WHERE name = 'journal'"):
            ((found,),) = self._query("SELECT format FROM study")  # every earlier format has this column
            raise other_format(self.where, found)
        if self._needs_log() and not self._alone:
            if self._log_size() <= _HEADER:
                raise FileError(
                    f"{self.where} is damaged: its write-ahead log, which holds the last observations, is missing; put "
                    "back the log, or make a copy of what the file alone has with 'chainscout backup --without-log'"
                )
            if not self.read_only:
                self._settle()
        if not self.read_only and self._log_size() > _LARGE_LOG:
            self._checkpoint()

    def _check_same(self) -> None:
        """Raises `FileError` unless the file is still the one that was opened."""
        if identity(self.path) != self._files[0]:
            raise FileError(
                f"{self.where} was deleted or replaced while the study was open, so nothing was changed: open the "
                "study that is there now"
            )

    def _check_files(self) -> None:
        """Raises `FileError` if the log is not the one that this connection writes to: entries would be lost in it.

        A file cannot be deleted or replaced without a change of its folder. To look at the folder is cheaper: on Linux
        from 6.13 on, a look at the log itself makes the next write to it half as long again.
        """
        seen = stamp(self.path.parent)
        if seen is not None and seen == self._folder:
            return
        found = tuple(map(identity, self._names))
        if found != self._files or None in found:
            self._check_same()
            raise FileError(
                f"the write-ahead log beside {self.where} was deleted or replaced while the study was open, so nothing "
                "was changed: open the study again"
            )
        # Another change in the same tick of the clock would leave the same time.
        self._folder = seen if seen is not None and time.time_ns() - seen.time > _TICK else None

    def _log_size(self) -> int:
        try:
            return os.stat(self._names[1]).st_size
        except OSError:
            return 0

    # -- the whole file

    def notes(self) -> tuple[str, ...]:
        size = self._log_size()
        if size < 4 * _LARGE_LOG:
            return ()
        return (
            f"the write-ahead log beside {self.where} has {size / 2**20:,.0f} MiB: a process that has been reading the "
            "study for long keeps it from being put away, and it grows until that process ends",
        )

    def copy_to(self, path: Path) -> Head:
        """Copies the study as it is at this moment to a new file, and checks the copy. Others may write meanwhile."""
        self._check_open()
        try:
            with closing(sqlite3.connect(path, isolation_level=None)) as target:
                self._db.backup(target)
                target.execute("PRAGMA user_version = 0")
        except self._failure as error:
            raise self._meaning(error) from error
        with closing(SqliteJournal(path, read_only=True)) as copy:
            return copy.check_whole()

    def check_whole(self) -> Head:
        """Reads every page of the file too, and compares the index with its table."""
        self._check_open()
        try:
            found = [text for (text,) in self._query("PRAGMA integrity_check")]
        except self._failure as error:
            raise self._meaning(error) from error
        if found != ["ok"]:
            raise FileError(f"{self.where} is damaged: {found[0]}")
        return super().check_whole()

    def _meaning(self, error: Exception) -> ChainscoutError:
        text = str(error)
        if isinstance(error, UnicodeDecodeError):
            return FileError(f"{self.where} is damaged, or is not a study (a text in it is no UTF-8)")
        if any(sign in text for sign in _DAMAGED):
            return FileError(f"{self.where} is damaged, or is not a study ({text})")
        if "locked" in text:
            held = f"another process has held the write lock of {self.where} for {self._patience:g} seconds"
            return Busy(f"{held}: nothing was changed")
        if "readonly" in text:
            return FileError(f"{self.where} may not be written ({text}): nothing was changed")
        if "unable to open" in text:
            return FileError(f"{self.where} could not be opened{self._obstacle() or f' ({text})'}")
        return FileError(f"{self.where} could not be written ({text}): nothing was changed")

    def _obstacle(self) -> str:
        """Why a folder that cannot be written is in the way; empty if it is not."""
        if os.access(self.path.parent, os.W_OK):
            return ""
        if not self.read_only:
            return ": its folder cannot be written, and nothing was changed"
        return (
            ": the write-ahead log beside it holds observations that can only be read in a folder that can be written, "
            "and this one cannot; copy both files to one that can"
        ) * (self._log_size() > 0)


def fill(path: Path, beginning: Callable[[int], Iterable[Entry]]) -> None:
    """Makes a study in a new file, of the entries that begin it now. The file needs no log afterwards."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(f"PRAGMA application_id = {_APPLICATION}")
        db.execute("BEGIN")
        for statement in _TABLES:
            db.execute(statement)
        db.executemany(_INSERT, beginning(time.time_ns() // 1_000_000))
        db.execute("COMMIT")
        db.execute("PRAGMA journal_mode = WAL")


def _check_kind(path: Path) -> None:
    """Raises `FileError` unless there is a file, which a directory, a pipe and a device are not."""
    try:
        kind = path.stat().st_mode
    except FileNotFoundError:
        raise FileError(f"there is no study at {path}") from None
    except OSError as error:
        raise FileError(f"{path} could not be read: {error.strerror}") from None
    if not stat.S_ISREG(kind):
        raise FileError(f"{path} could not be read: it is {'a directory' if stat.S_ISDIR(kind) else 'no file'}")
