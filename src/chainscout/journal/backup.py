"""Copies of a journal: a file beside the original, and lines that a person can read.

A line is a JSON list, ``[number,time,kind,chain,path,value,by,more,digest]``, and the lines together are the journal.
A line that is changed, moved, removed or added makes a digest wrong. Lines that are missing at the end leave a journal
that is valid and shorter: every prefix of a journal is one.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from ..errors import FileError, InputError
from .entry import START, Entry, Head, line_of
from .files import check_local, new_file
from .journal import Journal, check_row
from .opening import Where, check_format, is_address, make, open_journal, path_of
from .sqlite import SqliteJournal

__all__ = ["backup", "first_entry", "lines", "read_lines", "restore", "write_lines"]

_LINE = re.compile(r'\[(\d+),(\d+),(\d+),(\d+),(\d+),(-?\d+),(\d+),(null|\{.*\}),"([0-9a-f]{16})"\]')
_SIGN, _ALL = 1 << 63, (1 << 64) - 1


def backup(where: Where, copy: Where, *, without_log: bool = False) -> Head:
    """Copies a study to a new file and returns its last entry. Other processes may write to the study meanwhile.

    ``without_log``: copies the file without its write-ahead log, for the case that the log is lost.
    """
    if is_address(where) or is_address(copy):
        raise InputError("a study in PostgreSQL is copied by pg_dump and pg_restore, which come with PostgreSQL")
    if where is None or copy is None:
        raise InputError("a backup is made from one file to another, and a study in memory has none")
    path = path_of(copy)
    with closing(open_journal(where, read_only=True, without_log=without_log)) as journal:
        assert isinstance(journal, SqliteJournal)
        check_local(path)
        with new_file(path) as partial:
            return journal.copy_to(partial)


def write_lines(pages: Iterable[Sequence[Entry]], path: Path) -> Head:
    """Writes the pages of a journal to a new file, a line for each entry, and returns the last entry."""
    head = START
    with new_file(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as file:
        for page in pages:
            file.writelines(map(_line, page))
            head = page[-1].head
    return head


def lines(pages: Iterable[Sequence[Entry]]) -> Iterator[str]:
    """The lines of the pages of a journal, with their ends."""
    for page in pages:
        yield from map(_line, page)


def read_lines(path: Path) -> Iterator[Entry]:
    """The entries of a file of lines. A last line that was cut off is left out.

    Raises `FileError` with the entry's number if a line is not what was written.
    """
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            digest = START.digest
            for number, line in enumerate(file, 1):
                found = _LINE.fullmatch(line.rstrip("\n"))
                if found is None and not line.endswith("\n"):
                    return
                row = _row(found) if found else ()
                entry = check_row(str(path), number, digest, row)
                digest = entry.digest
                yield entry
    except OSError as error:
        raise FileError(f"{path} could not be read: {error.strerror}") from None


def restore(path: Path, where: Where) -> Journal:
    """A new journal with the entries of a file of lines."""
    first_entry(path)
    return make(where, lambda now: read_lines(path))


def first_entry(path: Path) -> Entry:
    """The entry that creates the study of a file of lines. Raises `FileError` if the file begins with another one."""
    first = next(read_lines(path), None)
    check_format(str(path), first)
    assert first is not None
    return first


def _line(entry: Entry) -> str:
    return f'{line_of(*entry)[:-1]},"{entry.digest & _ALL:016x}"]\n'


def _row(found: "re.Match[str]") -> tuple[int | str, ...]:
    *numbers, more, digest = found.groups()
    signed = (int(digest, 16) ^ _SIGN) - _SIGN
    return (*map(int, numbers), "" if more == "null" else more, signed)
