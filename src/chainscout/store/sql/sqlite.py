"""SQLite: WAL, synchronous FULL, writers that queue, and check points that cannot meet a commit.

SQLite 3.7.0 to 3.51.2 can lose pages when a transaction commits, and so resets the write-ahead log, while another
connection runs a check point right after a first one finished (the 'WAL-reset bug', sqlite.org/wal.html). Most
Pythons link such a version. So no connection here makes automatic check points. Now and then a writer takes the write
lock with one connection and, while it holds the lock, makes a check point with another connection. No transaction can
commit in between, in this process or in any other, so the pattern that triggers the bug cannot arise. (SQLite's own
check point when the last connection closes holds the whole file exclusively.)

**The mark.** A check point also writes two things into the file: that its log is still needed, and a count of such
check points. The log then takes the first one back. So the file alone says 'open', and the file with its log says
'closed'. The file also says 'closed' when SQLite has removed the log. `sqlite_files.check_log` reads both. It refuses a
file that says 'open' and has no log, and a log with another count. (The mark is in ``PRAGMA user_version``, which
SQLite leaves to its users.)
"""

import os
import sqlite3
import stat
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy.dialects import sqlite as dialects
from sqlalchemy.sql import Executable

from ...errors import Busy, ChainscoutError, FileError
from . import sqlite_files as files
from .database import PATIENCE, Begun, Changes, Database, Wanted
from .fork import INSIDE, pause
from .statements import Bulk

__all__ = ["Sqlite", "open_file"]

#: A check point is due after this many transactions of one connection, or after they changed this many rows. Opening a
#: study makes one if its log has at least this size. After a check point the log is written from its beginning again,
#: because overwriting costs about half as much as growing the file.
_CHECKPOINT_EVERY = 400
_CHECKPOINT_ROWS = 100_000
_CHECKPOINT_SIZE = 32 * 2**20
#: Kilobytes of the file that a connection keeps in memory: enough for the upper index levels of a million chains.
_CACHE = 64 * 1024
#: SQLite itself waits for this long (milliseconds) before our loop tries again.
_BUSY = 1_000

#: A note is shown if a log of at least this many bytes cannot be removed because of a reader.
_LARGE_LOG = 4 * _CHECKPOINT_SIZE

#: How many connections this process has to each file. Whoever opens or closes a file holds the gate.
_IN_USE: Counter[Path] = Counter()
_GATE = threading.RLock()

_DAMAGED = ("malformed", "not a database", "database corruption", "disk image", "no such")


class Sqlite(Database):
    """One study in one file."""

    begin_writing = "BEGIN IMMEDIATE"
    guard = INSIDE
    failure = sqlite3.Error

    def __init__(self, path: Path, read_only: bool, patience: float = PATIENCE, *, alone: bool = False) -> None:
        """``alone``: the file is read without its log."""
        super().__init__(dialects.dialect(paramstyle="qmark"), str(path), read_only, patience)
        self._alone = alone
        #: The real file, even if links change later.
        self.path = Path(os.path.realpath(path))
        self._uri = f"file:{quote(str(self.path))}?mode={'ro' if read_only else 'rw'}"
        self._names = tuple(f"{self.path}{ending}" for ending in ("", "-wal", "-shm"))
        #: The file that this object writes to, and the files of its connection.
        self._file: files.Identity | None = None
        self._files: tuple[files.Identity | None, ...] = ()
        #: Transactions since the last check point, and rows changed before it.
        self._written = self._changes = 0
        #: The cursor of all statements that give no rows.
        self._cursor: Any = None
        #: The stamp of a file that was opened as immutable; None if it was not.
        self._frozen: files.Stamp | None = None

    def _open(self) -> sqlite3.Connection:
        uri = f"{self._uri}&immutable=1" if self._frozen is not None or self._alone else self._uri
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=_BUSY / 1000)
        try:
            for setting in ("wal_autocheckpoint = 0", "synchronous = FULL", f"cache_size = -{_CACHE}", "mmap_size = 0"):
                connection.execute(f"PRAGMA {setting}")
            if self.read_only:
                connection.execute("PRAGMA query_only = ON")
        except BaseException:
            connection.close()
            raise
        return connection

    def connect(self) -> None:
        """Opens the file if it is not open, and opens it again if it is immutable and has changed."""
        if self._frozen is not None and self._has_changed():
            self.disconnect()
        if self._connection is None:
            with _GATE:
                self._frozen = files.stamp(self.path) if self.read_only else None
                before = files.identity(self.path)
                if self._file is not None:
                    self._check_same(before)
                connection = self._open()
                self._connection, self._cursor = connection, connection.cursor()
                _IN_USE[self.path] += 1
            if not self.read_only:
                self._file = self._file or before
                self._files = ()
                self._check_same(before)
                self._settle(time.monotonic() + self.patience)
            self._changes = 0
            if not self.read_only and files.log_size(self.path) > _CHECKPOINT_SIZE:
                self._checkpoint(time.monotonic() + self.patience)

    def close(self) -> None:
        """Closes the connection, unless it belongs to the process that this one was forked from."""
        with INSIDE:
            super().close()

    def disconnect(self) -> None:
        if self._connection is not None and not self.read_only:
            with suppress(sqlite3.Error, Busy):  # the holder of the lock will close the file too
                self._settle(time.monotonic())
        with _GATE:
            _IN_USE[self.path] -= self._connection is not None
            self._cursor = None
            super().disconnect()

    def _check_same(self, found: "files.Identity | None") -> None:
        """Raises `FileError` unless this is the file that was opened first."""
        if found is None or found != self._file:
            raise FileError(
                f"{self.where} was deleted or replaced while the study was open, so nothing was changed: open the "
                "study that is there now"
            )

    def _check_files(self) -> None:
        """Raises `FileError` if the names of the study's files now belong to other files, or to none."""
        found = files.identities(self._names)
        if found == self._files:
            return
        self._check_same(found[0])
        if found != (self._files or found) or None in found:
            raise FileError(
                f"the write-ahead log beside {self.where} was deleted or replaced while the study was open, so nothing "
                "was changed: open the study again"
            )
        self._files = found

    def in_transaction(self) -> bool:
        return bool(self._connection.in_transaction)

    def execute(self, text: str, parameters: Mapping[str, Any] | Sequence[Any]) -> Any:
        """The cursor after one statement in SQL."""
        return self._connection.execute(text, parameters)

    def run(self, statement: Executable | Bulk, parameters: Any = None) -> Any:
        """The cursor after one statement. Values are bound by position, which takes half as long as by name."""
        known = self._known.get(statement) or self.compiled(statement)
        if not parameters:
            return self._connection.execute(known.text, known.alone)
        given = {**known.constants, **parameters} if known.constants else parameters
        return self._connection.execute(known.text, known.pick(given))

    def _run_all(self, statement: Bulk, parameters: Sequence[Sequence[Any]]) -> None:
        self.change([(statement, parameters)])

    def change(self, changes: Changes) -> None:
        """Runs each statement with its sets of values."""
        cursor = self._cursor
        for statement, parameters in changes:
            known = self._known.get(statement) or self.compiled(statement)
            if len(parameters) == 1:
                cursor.execute(known.text, known.pick(parameters[0]))
            else:
                cursor.executemany(known.text, map(known.pick, parameters))

    def commit(self) -> None:
        """Ends the transaction. Data that were read without locks must belong to one moment."""
        self._cursor.execute("COMMIT")
        if self._frozen is not None and self._has_changed():
            raise FileError(f"{self.where} was written while it was read: read it again")

    def _has_changed(self) -> bool:
        return files.stamp(self.path) != self._frozen

    def begin(self, write: bool, first: Executable | None, wanted: Mapping[str, Wanted]) -> Begun:
        """Begins a transaction. A writer waits for its turn."""
        end = time.monotonic() + self.patience
        if write:
            self._written += 1
            changes = self._connection.total_changes
            if self._written >= _CHECKPOINT_EVERY or changes - self._changes >= _CHECKPOINT_ROWS or self._needs_mark():
                self._written, self._changes = 0, changes
                self._checkpoint(end)
        self._queue(self.begin_writing if write else self.begin_reading, end)
        if write:
            self._check_files()
        return Begun(None if first is None else self.run(first).fetchone(), {})

    def _queue(self, statement: str, end: float) -> None:
        """Runs a statement that may have to wait, until the moment ``end`` of the monotonic clock."""
        while True:
            try:
                self._cursor.execute(statement)
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error):
                    raise
                if time.monotonic() > end:
                    raise self.busy() from None
                pause()

    def _checkpoint(self, end: float) -> None:
        """Copies the write-ahead log into the file, while the write lock keeps every commit out, and marks the file."""
        self._queue("BEGIN IMMEDIATE", end)
        self._check_files()
        mark = files.following(self._mark_of_the_file())
        self._set_mark(mark)
        self._queue("BEGIN IMMEDIATE", end)
        try:
            if self._mark() != mark:
                return  # another process has made one in between
            with _GATE:
                helper = self._open()
            with closing(helper):
                helper.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        finally:
            self.execute("ROLLBACK", {})
        # Unless a reader holds a part of it, the whole log is in the file now, and the next commit starts a new log.
        self._settle(end)

    def _needs_mark(self) -> bool:
        """Whether this is the first change of a connection, and the file does not say that its log is needed."""
        return not self._files and not files.is_open(files.mark_of_the_file(self.path) or 0)

    def _mark(self) -> int:
        ((mark,),) = self.query("PRAGMA user_version")
        return int(mark)

    def _mark_of_the_file(self) -> int:
        """The mark of the file without its log. It cannot change while the write lock is held."""
        mark = files.mark_of_the_file(self.path)
        return self._mark() if mark is None else mark

    def _set_mark(self, mark: int) -> None:
        """Commits the present transaction with this mark."""
        try:
            self.query(f"PRAGMA user_version = {mark}")
            self.execute("COMMIT", {})
        except BaseException:
            self.roll_back()
            raise

    def _settle(self, end: float) -> None:
        """Takes back the mark of a check point that has ended or was cut off.

        Then the log has the count of the file, whatever happened to the check point, and however many were cut off. So
        the two counts never differ by more than one, and only during a check point. It waits for its turn until the
        moment ``end`` of the monotonic clock.
        """
        if not self.in_transaction() and files.is_open(self._mark()):
            self._queue("BEGIN IMMEDIATE", end)
            if not files.is_open(self._mark()):  # another process has done it
                self.roll_back()
                return
            self._set_mark(files.closed(self._mark_of_the_file()))

    def notes(self) -> tuple[str, ...]:
        """A note if a reader prevents the removal of the write-ahead log."""
        size = files.log_size(self.path)
        if size < _LARGE_LOG:
            return ()
        return (
            f"the write-ahead log beside {self.where} has {size / 2**20:,.0f} MiB: a process that has been reading the "
            "study for long keeps it from being put away, and it grows until that process ends",
        )

    def check_whole(self) -> None:
        """Reads every page and compares every index with its table."""
        found = [text for (text,) in self.query("PRAGMA integrity_check")]
        if found != ["ok"]:
            raise FileError(f"{self.where} is damaged: {found[0]}")

    def copy_to(self, path: Path) -> None:
        """Makes a new file with the study as it is at this moment. Others may write to the study meanwhile."""
        with files.new_file(path) as partial:
            copy = Sqlite(partial, read_only=False)
            with closing(copy), self.transaction(write=False):
                copy.connect()
                self._connection.backup(copy._connection)
                copy.check_whole()
                copy.query(f"PRAGMA user_version = {files.new_mark()}")  # no log of the original fits the copy

    def has_tables(self) -> bool:
        return bool(self.query("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'study'"))

    def now(self) -> float:
        """This machine's clock, because all processes that share a SQLite file are on one machine."""
        return time.time()

    def meaning(self, error: Exception, committing: bool) -> ChainscoutError | None:
        if isinstance(error, UnicodeDecodeError):  # the driver cannot even say what is wrong with the schema
            return FileError(f"{self.where} is damaged, or is not a study (a text in it is no UTF-8)")
        if not isinstance(error, sqlite3.Error):
            return None
        text = str(error)
        if any(sign in text for sign in _DAMAGED):
            return FileError(f"{self.where} is damaged, or is not a study ({text})")
        if "full" in text or "I/O" in text:
            return FileError(f"{self.where} could not be written ({text}): nothing was changed")
        if "readonly" in text:
            return FileError(f"{self.where} may not be written ({text}): nothing was changed")
        if "locked" in text:
            return self.busy()
        if "unable to open" in text:
            return FileError(f"{self.where} could not be opened{self._because_of_its_folder() or f' ({text})'}")
        return None

    def _because_of_its_folder(self) -> str:
        """Why a read-only folder is the obstacle; empty if it is not."""
        if files.can_be_written(self.path):
            return ""
        if not self.read_only:
            return ": its folder cannot be written, and nothing was changed"
        if not files.log_size(self.path):
            return ""
        return (
            ": the write-ahead log beside it holds observations that can only be read in a folder that can be written, "
            "and this one cannot; copy both files to one that can"
        )


def open_file(path: Path, read_only: bool, patience: float) -> Sqlite:
    """The study in an existing file. Raises `FileError` if it is not a study, or if its log is damaged."""
    _check_kind(path)
    files.check_local(path)
    # If this process has the file open already, the log was checked before. It must not be checked again, because
    # closing the index of the log would release this process's locks.
    real = Path(os.path.realpath(path))
    with INSIDE, _GATE:
        if not _IN_USE[real]:
            files.check_log(path)
    _check_file(path)
    return Sqlite(path, read_only, patience)


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


def _check_file(path: Path) -> None:
    """Raises `FileError` if this is not the file of a study.

    Only SQLite may open the file. When a process closes a file, POSIX releases all locks that this process has on the
    file, no matter which part of the process opened it. Without the locks, another process that closes the study
    believes that it is the last one, and removes the write-ahead log while this process still writes to it.
    """
    with closing(Sqlite(path, read_only=True)) as reader, reader.transaction(write=False):
        ((mark,),) = reader.query("PRAGMA application_id")
    if mark != files.APPLICATION:
        raise FileError(f"{path} is not a study: it is a database of something else")
