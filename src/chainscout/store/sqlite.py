"""SQLite: WAL, synchronous FULL, writers that queue, and check points that cannot meet a commit.

SQLite 3.7.0 to 3.51.2 can lose pages when a transaction commits, and so resets the write-ahead log, while another
connection runs a check point right after a first one finished (the 'WAL-reset bug', sqlite.org/wal.html). Most
Pythons link such a version. So no connection here makes automatic check points. Now and then a writer takes the write
lock with one connection and, while it holds it, makes a check point with another: no transaction can commit in between,
in this process or in any other, and the pattern that triggers the bug cannot arise. (SQLite's own check point when the
last connection closes holds the whole file exclusively.)
"""

import os
import secrets
import sqlite3
import stat
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool
from sqlalchemy.sql import Executable

from ..errors import ChainscoutError, FileError
from . import frozen, wal
from .database import Database, taken

#: 'chst' in ASCII: marks the file as a study.
APPLICATION = 0x63687374
#: Transactions of one connection between check points, and rows that they changed; the log's size from which an opened
#: study makes one. The log is written over from its beginning after each: writing where the file exists costs about
#: half as much as growing it.
CHECKPOINT_EVERY = 100
CHECKPOINT_ROWS = 100_000
CHECKPOINT_SIZE = 32 * 2**20
#: Kilobytes of the file that a connection keeps in memory: the upper levels of the indices of a million chains.
CACHE = 64 * 1024
#: Seconds that a writer waits in the queue before it says that another one is stuck.
PATIENCE = 600.0
#: SQLite waits by itself for this long (milliseconds) before our loop asks again.
BUSY = 5_000

#: How many connections this process has to each file. What opens or closes a file beside SQLite waits at the gate.
_IN_USE: Counter[Path] = Counter()
_GATE = threading.RLock()

_DAMAGED = ("malformed", "not a database", "database corruption", "disk image")


class Sqlite(Database):
    """One study in one file."""

    begin_writing = "BEGIN IMMEDIATE"

    def __init__(self, path: Path, read_only: bool) -> None:
        self.path = path
        mode = "ro" if read_only else "rw"
        self._uri = f"file:{quote(str(path.absolute()))}?mode={mode}"
        engine = create_engine(
            "sqlite://", creator=self._open, poolclass=NullPool, pool_reset_on_return=None, paramstyle="named"
        )
        super().__init__(engine, str(path), read_only)
        #: Transactions since the last check point, and rows changed before it.
        self._written = self._changes = 0
        #: What the file was when it was opened as one that does not change; None if it was not.
        self._frozen: frozen.Stamp | None = None

    def _open(self) -> sqlite3.Connection:
        uri = self._uri if self._frozen is None else f"{self._uri}&immutable=1"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=BUSY / 1000)
        try:
            for setting in ("wal_autocheckpoint = 0", "synchronous = FULL", f"cache_size = -{CACHE}", "mmap_size = 0"):
                connection.execute(f"PRAGMA {setting}")
            if self.read_only:
                connection.execute("PRAGMA query_only = ON")
        except BaseException:
            connection.close()
            raise
        return connection

    def connect(self) -> None:
        """Opens the file if it is not open, and once more if it was not to change and did."""
        if self._frozen is not None and self._has_changed():
            self.disconnect()
        if self._connection is None:
            with _GATE:
                self._frozen = frozen.stamp(self.path) if self.read_only else None
                self._connection = self.engine.raw_connection()
                _IN_USE[self.path.resolve()] += 1
            self._changes = 0
            if not self.read_only and frozen.log_size(self.path) > CHECKPOINT_SIZE:
                self._checkpoint()

    def disconnect(self) -> None:
        """Drops the connection; the next transaction makes a new one."""
        with _GATE:
            _IN_USE[self.path.resolve()] -= self._connection is not None
            super().disconnect()

    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return bool(self._connection.in_transaction)

    def commit(self) -> None:
        """Ends the transaction; what was read without locks must be of one moment."""
        super().commit()
        if self._frozen is not None and self._has_changed():
            raise FileError(f"{self.path} was written while it was read: read it again")

    def _has_changed(self) -> bool:
        return frozen.stamp(self.path) != self._frozen

    def begin(self, write: bool, first: Executable | None) -> Any:
        """Begins a transaction; a writer waits until it is its turn."""
        if write:
            self._written += 1
            changes = self._connection.total_changes
            if self._written >= CHECKPOINT_EVERY or changes - self._changes >= CHECKPOINT_ROWS:
                self._written, self._changes = 0, changes
                self._checkpoint()
        self._queue(self.begin_writing if write else self.begin_reading)
        return None if first is None else self.run(first).fetchone()

    def _queue(self, statement: str) -> None:
        patience = time.monotonic() + PATIENCE
        while True:
            try:
                self._execute(statement, {})
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > patience:
                    raise

    def _checkpoint(self) -> None:
        """Copies the write-ahead log into the file, while the write lock keeps every commit out."""
        self._queue("BEGIN IMMEDIATE")
        try:
            helper = self._open()
            try:
                helper.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            finally:
                helper.close()
        finally:
            self._execute("ROLLBACK", {})

    def check_whole(self) -> None:
        """Reads every page and compares every index with its table."""
        found = [text for (text,) in self.query("PRAGMA integrity_check")]
        if found != ["ok"]:
            raise FileError(f"{self.path} is damaged: {found[0]}")

    def has_tables(self) -> bool:
        """Whether there is a table of a study."""
        return bool(self.query("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'study'"))

    def now(self) -> float:
        """This machine's clock: a SQLite file is on one machine."""
        return time.time()

    def meaning(self, error: Exception, committing: bool) -> ChainscoutError | None:
        """What an error of SQLite means for the study."""
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
            return FileError(f"another process has held the write lock of {self.path} for {PATIENCE:.0f} seconds")
        if "unable to open" in text:
            return FileError(f"{self.path} could not be opened{self._because_of_its_folder() or f' ({text})'}")
        if "no such" in text:
            return FileError(f"{self.path} is damaged, or is not a study ({text})")
        return None

    def _because_of_its_folder(self) -> str:
        """Why a folder that cannot be written is in the way, if it is."""
        if frozen.can_be_written(self.path):
            return ""
        if not self.read_only:
            return ": its folder cannot be written, and nothing was changed"
        if not frozen.log_size(self.path):
            return ""
        return (
            ": the write-ahead log beside it holds observations that can only be read in a folder that can be written, "
            "and this one cannot; copy both files to one that can"
        )


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A file to fill with a new study; it gets its name when it is complete, and never takes another file's place."""
    if path.exists():
        raise taken(str(path))
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        connection = sqlite3.connect(partial, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
        finally:
            connection.close()
        yield partial
        os.link(partial, path)
    except FileExistsError:
        raise taken(str(path)) from None
    except (OSError, sqlite3.Error) as error:
        raise FileError(f"{path} could not be made: {error}") from None
    finally:
        for suffix in ("", "-wal", "-shm"):
            with suppress(OSError):  # a folder that cannot be written is asked to remove what it does not have
                partial.with_name(partial.name + suffix).unlink(missing_ok=True)


def check_file(path: Path) -> None:
    """Refuses what is not the file of a study.

    SQLite reads it, and nobody else may: POSIX takes all locks on a file from a process that closes it once, whoever
    opened it. Without them another process that closes the study believes that it is the last, and removes the
    write-ahead log under those who still write to it here.
    """
    try:
        if stat.S_ISDIR(path.stat().st_mode):
            raise FileError(f"{path} could not be read: it is a directory")
    except FileNotFoundError:
        raise FileError(f"there is no study at {path}") from None
    except OSError as error:
        raise FileError(f"{path} could not be read: {error.strerror}") from None
    reader = Sqlite(path, read_only=True)
    try:
        with reader.transaction(write=False):
            ((mark,),) = reader.query("PRAGMA application_id")
    finally:
        reader.close()
    if mark != APPLICATION:
        raise FileError(f"{path} is not a study: it is a database of something else")


def check_log(path: Path) -> None:
    """Refuses a study whose write-ahead log is damaged before its end. Where this process has the file open it was
    looked at before, and must not be again: closing the index of the log would take this process's locks away."""
    with _GATE:
        if not _IN_USE[path.resolve()]:
            wal.check_log(path)
