"""What a study in SQLite needs of its files beyond what SQLite does itself.

This module makes a new file under a temporary name, reads files in folders that cannot be written, and finds a
write-ahead log that has lost transactions.
"""

import os
import secrets
import sqlite3
import struct
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from ...errors import FileError
from .database import taken

__all__ = ["APPLICATION", "Stamp", "can_be_written", "check_log", "log_size", "new_file", "stamp"]

#: 'chst' in ASCII: marks the file as a study.
APPLICATION = 0x63687374

# -- a new file


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A file to fill with a new study.

    The file gets its name when it is complete, and never takes the place of another file.
    """
    if path.exists():
        raise taken(str(path))
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        with closing(sqlite3.connect(partial, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
        yield partial
        os.link(partial, path)
    except FileExistsError:
        raise taken(str(path)) from None
    except (OSError, sqlite3.Error) as error:
        raise FileError(f"{path} could not be made: {error}") from None
    finally:
        for suffix in ("", "-wal", "-shm"):
            with suppress(OSError):  # in a folder that cannot be written even a missing file cannot be removed
                partial.with_name(partial.name + suffix).unlink(missing_ok=True)


# -- a file in a folder that cannot be written: an archive, a mount that is read-only, another user's folder
#
# A reader of a file in WAL mode needs the index of the log beside the file, and SQLite makes the index if it is
# missing. Where SQLite cannot make it, and no write-ahead log holds anything that is not in the file yet, SQLite can be
# told that the file does not change ('immutable'). Then it reads the file alone, and locks nothing. Another user may
# still write to the file, so a reader compares the file's stamp before and after each transaction.

#: Inode, size and time of the last change.
Stamp = tuple[int, int, int]


def can_be_written(path: Path) -> bool:
    """Whether a new file can be made beside this one."""
    return os.access(_beside(path, "").parent, os.W_OK)


def log_size(path: Path) -> int:
    """Bytes of the write-ahead log beside a file; 0 if there is none."""
    try:
        return _beside(path, "-wal").stat().st_size
    except OSError:
        return 0


def stamp(path: Path) -> Stamp | None:
    """What identifies the content of a file that SQLite must read as immutable; None if SQLite can read it as usual."""
    if can_be_written(path) or log_size(path) > 0:
        return None
    if _beside(path, "-wal").exists() and _beside(path, "-shm").exists():
        return None  # another process has the file open, so a reader finds what it needs
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _beside(path: Path, ending: str) -> Path:
    real = Path(os.path.realpath(path))  # SQLite follows links and keeps its other files beside the real file
    return real.with_name(real.name + ending)


# -- a write-ahead log that has lost transactions which were acknowledged
#
# When the first connection opens a file after a crash, SQLite takes the log up to the first frame whose check sum is
# wrong and forgets the rest. A write that a crash has cut off looks like this. So does a bit that the disk has changed,
# but then the frames behind it were acknowledged. The two cases can be told apart, because a transaction is written to
# the log only when the one before is on the disk: if two or more commits stand behind the last frame that SQLite
# accepted, the first of these commits was acknowledged. (Damage to the very last transaction cannot be told from a
# write that was cut off.)
#
# The formats are those of sqlite.org/walformat.html.

_HEADER = 32
_FRAME = struct.Struct(">II8s8s")  # page, pages after a commit (else 0), salt, check sum
_INDEX = 48  # the wal-index begins with two copies of its header; a writer changes one after the other


def check_log(path: Path) -> None:
    """Raises `FileError` if the write-ahead log of a study is damaged before its end."""
    if log_size(path) <= _HEADER:
        return
    try:
        # The last process that closes a file puts its log away, and the damage would be gone with it. A reader leaves
        # the log alone.
        with closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True)) as reader:
            reader.execute("PRAGMA schema_version").fetchone()  # now SQLite has read the log
            salt, commits = _commits(_beside(path, "-wal"))
            last, accepted_salt = _accepted(_beside(path, "-shm"))
    except (sqlite3.Error, OSError):
        return  # the connection that opens the file next will report the error
    if salt != accepted_salt:
        return  # another process has put the log away and begins a new round
    behind = sum(frame > last for frame in commits)
    if behind > 1:
        raise FileError(
            f"{path} is damaged: {behind} of the {len(commits)} transactions in its write-ahead log cannot be read"
        )


def _accepted(index: Path) -> tuple[int, bytes]:
    """The last frame of the log that SQLite accepts, and the salt that identifies this round of the log."""
    while True:
        with index.open("rb") as file:
            header, copy = file.read(_INDEX), file.read(_INDEX)
        if header == copy:
            return int.from_bytes(header[16:20], sys.byteorder), header[32:40]


def _commits(log: Path) -> tuple[bytes, list[int]]:
    """The salt of the log's present round, and the numbers, from 1, of the frames that end its transactions."""
    found = []
    with log.open("rb") as file:
        header = file.read(_HEADER)
        size, salt = int.from_bytes(header[8:12], "big"), header[16:24]
        number = 0
        while len(frame := file.read(_FRAME.size)) == _FRAME.size:
            _, pages, own, _ = _FRAME.unpack(frame)
            number += 1
            if own == salt and pages:
                found.append(number)
            file.seek(size, 1)
    return salt, found
