"""SQLite: WAL, synchronous FULL, writers that queue, and check points that cannot meet a commit.

SQLite 3.7.0 to 3.51.2 can lose pages when a transaction commits, and so resets the write-ahead log, while another
connection runs a check point right after a first one finished (the 'WAL-reset bug', sqlite.org/wal.html). Most
Pythons link such a version. So no connection here makes automatic check points. Now and then a writer takes the write
lock with one connection and, while it holds the lock, makes a check point with another connection. No transaction can
commit in between, in this process or in any other, so the pattern that triggers the bug cannot arise. (SQLite's own
check point when the last connection closes holds the whole file exclusively.)
"""

import sqlite3
import stat
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy.dialects import sqlite as dialects
from sqlalchemy.sql import Executable

from ...errors import ChainscoutError, FileError
from . import sqlite_files as files
from .database import PATIENCE, Database

__all__ = ["Sqlite", "open_file"]

#: A check point is due after this many transactions of one connection, or after they changed this many rows; an opened
#: study makes one if its log has at least this size. After a check point the log is written again from its beginning,
#: because writing where the file exists costs about half as much as growing it.
_CHECKPOINT_EVERY = 100
_CHECKPOINT_ROWS = 100_000
_CHECKPOINT_SIZE = 32 * 2**20
#: Kilobytes of the file that a connection keeps in memory: the upper levels of the indices of a million chains.
_CACHE = 64 * 1024
#: SQLite waits by itself for this long (milliseconds) before our loop asks again.
_BUSY = 1_000

#: How many connections this process has to each file. Whoever opens or closes a file without SQLite holds the gate.
_IN_USE: Counter[Path] = Counter()
_GATE = threading.RLock()

_DAMAGED = ("malformed", "not a database", "database corruption", "disk image", "no such")


class Sqlite(Database):
    """One study in one file."""

    begin_writing = "BEGIN IMMEDIATE"

    def __init__(self, path: Path, read_only: bool, patience: float = PATIENCE) -> None:
        super().__init__(dialects.dialect(paramstyle="named"), str(path), read_only, patience)
        self.path = path
        self._uri = f"file:{quote(str(path.absolute()))}?mode={'ro' if read_only else 'rw'}"
        #: Transactions since the last check point, and rows changed before it.
        self._written = self._changes = 0
        #: The stamp of a file that was opened as immutable; None if it was not.
        self._frozen: files.Stamp | None = None

    def _open(self) -> sqlite3.Connection:
        uri = self._uri if self._frozen is None else f"{self._uri}&immutable=1"
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
                self._connection = self._open()
                _IN_USE[self.path.resolve()] += 1
            self._changes = 0
            if not self.read_only and files.log_size(self.path) > _CHECKPOINT_SIZE:
                self._checkpoint(time.monotonic() + self.patience)

    def disconnect(self) -> None:
        with _GATE:
            _IN_USE[self.path.resolve()] -= self._connection is not None
            super().disconnect()

    def in_transaction(self) -> bool:
        return bool(self._connection.in_transaction)

    def commit(self) -> None:
        """Ends the transaction. What was read without locks must be of one moment."""
        super().commit()
        if self._frozen is not None and self._has_changed():
            raise FileError(f"{self.path} was written while it was read: read it again")

    def _has_changed(self) -> bool:
        return files.stamp(self.path) != self._frozen

    def begin(self, write: bool, first: Executable | None) -> Any:
        """Begins a transaction. A writer waits for its turn."""
        end = time.monotonic() + self.patience
        if write:
            self._written += 1
            changes = self._connection.total_changes
            if self._written >= _CHECKPOINT_EVERY or changes - self._changes >= _CHECKPOINT_ROWS:
                self._written, self._changes = 0, changes
                self._checkpoint(end)
        self._queue(self.begin_writing if write else self.begin_reading, end)
        return None if first is None else self.run(first).fetchone()

    def _queue(self, statement: str, end: float) -> None:
        """Runs a statement that may have to wait, until the moment ``end`` of the monotonic clock."""
        while True:
            try:
                self.execute(statement, {})
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error):
                    raise
                if time.monotonic() > end:
                    raise self.busy() from None

    def _checkpoint(self, end: float) -> None:
        """Copies the write-ahead log into the file, while the write lock keeps every commit out."""
        self._queue("BEGIN IMMEDIATE", end)
        try:
            with closing(self._open()) as helper:
                helper.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        finally:
            self.execute("ROLLBACK", {})

    def check_whole(self) -> None:
        """Reads every page and compares every index with its table."""
        found = [text for (text,) in self.query("PRAGMA integrity_check")]
        if found != ["ok"]:
            raise FileError(f"{self.path} is damaged: {found[0]}")

    def has_tables(self) -> bool:
        return bool(self.query("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'study'"))

    def now(self) -> float:
        """This machine's clock, because all processes that share a SQLite file are on one machine."""
        return time.time()

    def meaning(self, error: Exception, committing: bool) -> ChainscoutError | None:
        if isinstance(error, UnicodeDecodeError):  # the driver cannot even say what is wrong with the schema
            return FileError(f"{self.path} is damaged, or is not a study (a text in it is no UTF-8)")
        if not isinstance(error, sqlite3.Error):
            return None
        text = str(error)
        if any(sign in text for sign in _DAMAGED):
            return FileError(f"{self.path} is damaged, or is not a study ({text})")
        if "full" in text or "I/O" in text:
            return FileError(f"{self.path} could not be written ({text}): nothing was changed")
        if "readonly" in text:
            return FileError(f"{self.path} may not be written ({text}): nothing was changed")
        if "locked" in text:
            return self.busy()
        if "unable to open" in text:
            return FileError(f"{self.path} could not be opened{self._because_of_its_folder() or f' ({text})'}")
        return None

    def _because_of_its_folder(self) -> str:
        """Why a folder that cannot be written is the obstacle, or nothing if it is not."""
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
    _check_file(path)
    # Where this process has the file open, the log was checked before. It must not be checked again, because closing
    # the index of the log would take away this process's locks.
    with _GATE:
        if not _IN_USE[path.resolve()]:
            files.check_log(path)
    return Sqlite(path, read_only, patience)


def _check_file(path: Path) -> None:
    """Raises `FileError` if this is not the file of a study.

    Only SQLite may open the file. When a process closes a file, POSIX takes away all locks that this process has on the
    file, whoever opened it. Without the locks, another process that closes the study takes itself for the last one and
    removes the write-ahead log, while this process still writes to it.
    """
    try:
        if stat.S_ISDIR(path.stat().st_mode):
            raise FileError(f"{path} could not be read: it is a directory")
    except FileNotFoundError:
        raise FileError(f"there is no study at {path}") from None
    except OSError as error:
        raise FileError(f"{path} could not be read: {error.strerror}") from None
    with closing(Sqlite(path, read_only=True)) as reader, reader.transaction(write=False):
        ((mark,),) = reader.query("PRAGMA application_id")
    if mark != files.APPLICATION:
        raise FileError(f"{path} is not a study: it is a database of something else")
