"""What a journal does, whatever keeps it, and the journal in memory.

A journal has no position of its own. Who reads it brings a head (the entry that they read last), and gets what follows.
So a state knows how far it has come, and nothing can be out of step with it.

`Journal.append` is the only way to change a study: the command gets the entries that others wrote since the head, and
returns drafts; the journal stores them right behind, all or none. **A command may be called more than once**, each time
with the entries that are new since the call before. So it must change nothing but the state that it folds those entries
into, and it must decide anew each time.
"""

import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ..errors import ChainscoutError, FileError, InputError
from .entry import FORMAT, KINDS, START, Draft, Entry, Head, digest_of, sealed

__all__ = ["PAGE", "PATIENCE", "Command", "Journal", "MemoryJournal", "Snapshot", "check_row", "other_format"]

#: Gets the entries that are new since the head or since the call before, and returns what follows them. It raises an
#: error if it refuses; then nothing is stored.
Command = Callable[[Sequence[Entry]], Sequence[Draft]]

#: Seconds that a writer waits for its turn before it reports that another writer is stuck.
PATIENCE = 600.0
#: After this many seconds without an append, a writer first reads what others wrote.
_IDLE = 1.0
#: The number of entries that are read at a time where a whole journal is read.
PAGE = 10_000


class Snapshot(NamedTuple):
    """A state that somebody has folded. It is a cache: without it, everything is folded again."""

    #: What folded it: the format, the rule and its version. Another reader ignores the snapshot.
    key: str
    #: The last entry that it contains.
    head: Head
    content: bytes


def check_row(where: str, number: int, before: int, row: Sequence[Any]) -> Entry:
    """The entry of a stored row. Raises `FileError` if the row is not the one that was written.

    It must have this number, and its digest must be right after an entry with the digest ``before``.
    """
    try:
        is_whole = row[0] == number and row[8] == digest_of(before, row)
    except (TypeError, IndexError):  # a column is missing, or is something else than a number or a text
        is_whole = False
    if not is_whole:
        what = "is missing" if row and row[0] != number else "is not what was written"
        raise FileError(f"{where} is damaged: entry {number} {what}; the {number - 1} entries before it are whole")
    kind = KINDS.get(row[2])
    if kind is None:
        raise FileError(f"{where} was written by a later version of chainscout: entry {number} has the kind {row[2]}")
    return Entry(number, row[1], kind, *row[3:])


def other_format(where: str, found: object) -> FileError:
    """The error for a study of another format than the one that is read."""
    return FileError(
        f"{where} has the format {found}, and this version of chainscout reads only the format {FORMAT}: no version "
        "with another format was released, and nothing was changed"
    )


class Journal(ABC):
    """The entries of one study. One thread uses it at a time."""

    #: Whether the entries are there when the process has ended.
    lasts = True
    #: Errors of the database's driver. `_meaning` says what they mean.
    _failure: type[Exception] | tuple[type[Exception], ...] = ()
    #: Whether other processes can write to it.
    is_shared = True

    def __init__(self, where: str, read_only: bool = False) -> None:
        #: The name of this journal in messages.
        self.where = where
        self.read_only = read_only
        self._process = os.getpid()
        self._is_closed = False
        #: When this journal was appended to last, by the monotonic clock.
        self._latest = time.monotonic()

    def read(self, head: Head = START, most: int | None = None) -> list[Entry]:
        """The entries after the head, at most ``most`` of them.

        Raises `FileError` if one of them is not what was written, or if the journal does not have the head any more.
        """
        self._check_open()
        try:
            return self._follow(head, self._rows(head.number, most and most + bool(head.number)))
        except self._failure as error:
            raise self._meaning(error) from error

    def append(self, head: Head, command: Command) -> list[Entry]:
        """Stores what the command returns, and returns the new entries. They are on the disk then.

        ``head``: the last entry that the caller's state has.
        Raises what the command raises. Then, and after every other error except `OutcomeUnknown`, nothing is stored.
        """
        self._check_writing()
        behind: Sequence[Entry] = ()
        if time.monotonic() - self._latest > _IDLE:
            behind = self.read(head)  # perhaps many: better before this writer holds the lock
            head = behind[-1].head if behind else head

        def decide(tail: Sequence[Entry]) -> Sequence[Draft]:
            nonlocal behind
            given, behind = [*behind, *tail], ()
            return command(given)

        try:
            return self._append(head, decide if behind else command)
        except self._failure as error:
            raise self._meaning(error) from error
        finally:
            self._latest = time.monotonic()

    def pages(self, head: Head = START) -> Iterator[list[Entry]]:
        """The entries after the head, some thousands at a time."""
        page = self.read(head, PAGE)
        while page:
            yield page
            page = self.read(page[-1].head, PAGE) if len(page) == PAGE else []

    def snapshot(self) -> Snapshot | None:
        """The snapshot that was kept last, if there is one. Raises `FileError` if the journal lacks its last entry."""
        self._check_open()
        try:
            found = self._snapshot()
            if found is not None:
                self._follow(found.head, self._rows(found.head.number, 1))
            return found
        except self._failure as error:
            raise self._meaning(error) from error

    def keep(self, snapshot: Snapshot) -> bool:
        """Keeps the snapshot instead of the one before. Returns whether that was possible."""
        self._check_writing()
        try:
            self._keep(snapshot)
        except self._failure:
            return False
        return True

    def check_whole(self) -> Head:
        """The last entry, after every entry was read and found to be what was written."""
        head = START
        for page in self.pages():
            head = page[-1].head
        return head

    def notes(self) -> tuple[str, ...]:
        """Sentences about the database that readers of the study should see."""
        return ()

    @abstractmethod
    def now(self) -> int:
        """Milliseconds since 1970, by one clock for all who write to this journal."""

    def close(self) -> None:
        """Lets go of the database. A forked child process leaves its parent's connection alone."""
        if not self._is_closed and self._process == os.getpid():
            self._is_closed = True
            self._close()

    @abstractmethod
    def _rows(self, first: int, most: int | None) -> Sequence[Sequence[Any]]:
        """The rows from this number on, in their order."""

    @abstractmethod
    def _append(self, head: Head, command: Command) -> list[Entry]: ...

    def _close(self) -> None:  # noqa: B027
        """A list has nothing to let go of."""

    def _snapshot(self) -> Snapshot | None:
        return None

    def _keep(self, snapshot: Snapshot) -> None:  # noqa: B027
        """Keeps nothing where the entries themselves do not last."""

    def _meaning(self, error: Exception) -> ChainscoutError:
        raise error

    def _follow(self, head: Head, rows: Sequence[Sequence[Any]]) -> list[Entry]:
        """The entries of rows, which begin with the head's own one.

        A journal that went back (a file that was restored, a server that failed over) has no such entry. To write to it
        would leave a gap.
        """
        if head.number:
            if not rows or (rows[0][0], rows[0][8]) != (head.number, head.digest):
                raise self._gone(head)
            rows = rows[1:]
        entries, digest = [], head.digest
        for number, row in enumerate(rows, head.number + 1):
            entries.append(check_row(self.where, number, digest, row))
            digest = row[8]
        return entries

    def _gone(self, head: Head) -> FileError:
        return FileError(
            f"{self.where} no longer has entry {head.number}, which was read from it: it was cut off or replaced by an "
            "older copy, so nothing was changed; open the study again to go on from there"
        )

    def _seal(self, head: Head, command: Command, tail: Sequence[Entry]) -> list[Entry]:
        """The new entries of a command, after it has got the tail."""
        drafts = command(tail)
        return sealed(tail[-1].head if tail else head, self.now(), drafts) if drafts else []

    def _check_open(self) -> None:
        if self._is_closed:
            raise InputError(f"{self.where} was closed: open it again")
        if self._process != os.getpid():
            raise InputError(f"{self.where} was opened before this process was forked: open it again in the child")

    def _check_writing(self) -> None:
        self._check_open()
        if self.read_only:
            raise InputError(f"{self.where} was opened to be read only")


class MemoryJournal(Journal):
    """A list. Several threads may use it, each with a state of its own."""

    lasts = False

    is_shared = False

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        super().__init__("the study in memory")
        self._entries = list(entries)
        self._lock = threading.RLock()

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def read(self, head: Head = START, most: int | None = None) -> list[Entry]:
        if self._is_last(head):  # who reads has written last
            self._check_open()
            return []
        return super().read(head, most)

    def append(self, head: Head, command: Command) -> list[Entry]:
        self._check_writing()
        return self._append(head, command)

    def _is_last(self, head: Head) -> bool:
        return head[0] == len(self._entries) > 0 and head[2] == self._entries[-1][8]

    def _rows(self, first: int, most: int | None) -> list[Entry]:
        begin = max(0, first - 1)
        return self._entries[begin:] if most is None else self._entries[begin : begin + most]

    def _append(self, head: Head, command: Command) -> list[Entry]:
        with self._lock:
            tail = [] if self._is_last(head) else self._follow(head, self._rows(head.number, None))
            new = self._seal(head, command, tail)
            self._entries += new
            return new
