"""Whether SQLite's write-ahead log has lost transactions that were acknowledged.

When the first connection opens a file after a crash, SQLite takes the log up to the first frame whose check sum is
wrong and forgets the rest: a write that a crash has cut off looks like that. So does a bit that the disk has changed,
but then what follows it was acknowledged. The two can be told apart: a transaction is only written to the log when the
one before is on the disk. If two or more commits stand behind the last frame that SQLite accepted, the first of them
had been acknowledged. (Damage to the very last transaction cannot be told from a write that was cut off.)

The formats are those of sqlite.org/walformat.html.
"""

import sqlite3
import struct
import sys
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from ..errors import FileError

_HEADER = 32
_FRAME = struct.Struct(">II8s8s")  # page, pages after a commit (else 0), salt, check sum
_INDEX = 48  # the wal-index begins with two copies of its header, of which a writer changes one after the other


def check_log(path: Path) -> None:
    """Refuses a study whose write-ahead log is damaged before its end."""
    log, index = (path.with_name(path.name + ending) for ending in ("-wal", "-shm"))
    if not log.exists() or log.stat().st_size <= _HEADER:
        return
    try:
        # Whoever closes a file last puts its log away, and the damage would be gone with it; a reader leaves it alone.
        with closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True)) as reader:
            reader.execute("PRAGMA schema_version").fetchone()  # the log is read now
            salt, commits = _commits(log)
            last, accepted_salt = _accepted(index)
    except (sqlite3.Error, OSError):
        return  # whatever it is, the one who opens the file next will say so
    if salt != accepted_salt:
        return  # another process has put the log away and begins it anew
    behind = sum(frame > last for frame in commits)
    if behind > 1:
        raise FileError(
            f"{path} is damaged: {behind} of the {len(commits)} transactions in its write-ahead log cannot be read"
        )


def _accepted(index: Path) -> tuple[int, bytes]:
    """The last frame of the log that SQLite accepts, and the salt that tells this round of the log from others."""
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
