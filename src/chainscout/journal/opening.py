"""Makes and opens journals: at a path (SQLite), at a postgresql:// address, or in memory."""

import os
import sqlite3
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import FileError, InputError, MissingExtraError
from ..validation import shown, unicode_text
from . import sqlite
from .entry import FORMAT, START, Draft, Entry, Kind, sealed, unpacked
from .files import check_local, new_file
from .journal import PATIENCE, Journal, MemoryJournal, other_format

# fmt: off
__all__ = [
    "Where", "check_format", "check_place", "create", "exists", "holds_database", "is_address", "make", "open_journal",
    "path_of",
]
# fmt: on

#: The first bytes of every file of SQLite.
_SQLITE = b"SQLite format 3\0"

#: A path, a postgresql:// address, or None for memory.
Where = str | os.PathLike[str] | None


def create(where: Where, *drafts: Draft) -> Journal:
    """A new journal that begins with these drafts. Raises `InputError` if something exists at ``where`` already."""
    return make(where, lambda now: sealed(START, now, drafts))


def make(where: Where, beginning: Callable[[int], Iterable[Entry]]) -> Journal:
    """A new journal with the entries that ``beginning`` gives for the present time: it is made whole, or not at all."""
    if where is None:
        return MemoryJournal(beginning(time.time_ns() // 1_000_000))
    if is_address(where):
        _postgres().fill(str(where), beginning)
    else:
        path = path_of(where)
        check_local(path)
        with new_file(path) as partial:
            try:
                sqlite.fill(partial, beginning)
            except sqlite3.Error as error:
                raise FileError(f"{path} could not be made: {error}") from None
    return open_journal(where)


def open_journal(
    where: Where, read_only: bool = False, patience: float = PATIENCE, *, without_log: bool = False
) -> Journal:
    """The journal of an existing study. Raises `FileError` if there is none, or if it has another format.

    ``patience``: seconds that a writer waits for its turn before it raises `Busy`.
    ``without_log``: only what a file has without its write-ahead log is read, for the case that the log is lost.
    """
    if where is None:
        raise InputError("a study in memory cannot be opened again: create it with a path or an address")
    journal: Journal
    if is_address(where):
        journal = _postgres().PostgresJournal(str(where), read_only, patience)
    else:
        path = path_of(where)
        check_local(path)
        journal = sqlite.SqliteJournal(path, read_only, patience, without_log=without_log)
    try:
        check_format(journal.where, *journal.read(START, 1))
    except BaseException:
        journal.close()
        raise
    return journal


def check_format(where: str, first: Entry | None = None) -> None:
    """Raises `FileError` unless this is the first entry of a study in the format that is read."""
    if first is None or first.kind is not Kind.CREATED:
        raise FileError(f"there is no study in {where}, or it is damaged: its first entry does not create one")
    found = unpacked(first.more).get("format")
    if found != FORMAT:
        raise other_format(where, found)


def exists(where: Where) -> bool:
    """Whether there is something at ``where`` that could be opened."""
    if where is None:
        return False
    if is_address(where):
        return bool(_postgres().holds_study(str(where)))
    try:
        return path_of(where).exists()
    except OSError as error:
        raise FileError(f"{where} could not be read: {error.strerror}") from None


def holds_database(where: Where) -> bool:
    """Whether ``where`` is the address of a database, or a file of SQLite. Not for a file that is open here."""
    if where is None or is_address(where):
        return where is not None
    try:
        if not Path(where).is_file():  # a pipe would make the reader wait
            return False
        with open(where, "rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except (OSError, ValueError):
        return False


def check_place(where: Where) -> None:
    """Raises `InputError` if ``where`` is neither a path nor an address. It does not check what is there."""
    if where is not None and not is_address(where):
        path_of(where)


def is_address(where: Any) -> bool:
    """Whether ``where`` is an address of PostgreSQL."""
    if isinstance(where, str) and where.startswith(("postgresql://", "postgres://")):
        unicode_text(where, "where")
        return True
    return False


def path_of(where: Any) -> Path:
    """The path of a study in a file. Raises `InputError` if ``where`` is none."""
    if isinstance(where, str) and "://" in where:
        raise InputError(f"a study is kept at a path or at postgresql://…, not at {shown(where)}")
    if not isinstance(where, (str, os.PathLike)) or not str(where):
        raise InputError(f"where must be a path, a postgresql:// address or None, not {shown(where)}")
    if "\0" in str(where):
        raise InputError(f"where must be a path, and no path has a zero in it: {shown(where)}")
    return Path(unicode_text(str(where), "where"))


def _postgres() -> ModuleType:
    """The journal in PostgreSQL, whose driver is an optional dependency."""
    try:
        from . import postgres
    except ImportError as error:
        if error.name is None or not error.name.startswith("psycopg"):
            raise
        raise MissingExtraError("a study in PostgreSQL", "postgres") from None
    return postgres
