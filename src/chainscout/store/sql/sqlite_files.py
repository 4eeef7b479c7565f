"""The files of a study in SQLite: the work that SQLite does not do itself.

This module makes a new file under a temporary name, reads files in read-only folders, refuses network file systems, and
detects a write-ahead log that is missing, belongs to another study or has lost transactions.
"""

import os
import re
import secrets
import sqlite3
import struct
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from glob import escape
from pathlib import Path
from urllib.parse import quote

from ...errors import FileError
from .database import taken
from .fork import INSIDE

# fmt: off
__all__ = [
    "APPLICATION", "MOUNTS", "Identity", "Stamp", "can_be_written", "check_local", "check_log", "closed", "following",
    "identities", "identity", "is_open", "log_size", "mark_of_the_file", "network_mount", "new_file", "new_mark",
    "stamp",
]
# fmt: on

#: 'chst' in ASCII: marks the file as a study.
APPLICATION = 0x63687374

# -- a new file


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A file to fill with a new study.

    The file gets its name when it is complete, and never takes the place of another file.
    """
    check_local(path)
    try:
        if path.exists():
            raise taken(str(path))
        _remove_leftovers(path)
    except OSError as error:
        raise FileError(f"{path} could not be made: {error.strerror}") from None
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        with INSIDE, closing(sqlite3.connect(partial, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {new_mark()}")
        yield partial
        os.link(partial, path)
        _reach_disk(path.parent)
    except FileExistsError:
        raise taken(str(path)) from None
    except (OSError, sqlite3.Error) as error:
        raise FileError(f"{path} could not be made: {error}") from None
    finally:
        for suffix in ("", "-wal", "-shm"):
            with suppress(OSError):  # in a read-only folder even removing a missing file fails
                partial.with_name(partial.name + suffix).unlink(missing_ok=True)


def _reach_disk(folder: Path) -> None:
    """Waits until the names in a folder are on the disk. Windows has no such function."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


#: Seconds after which an incomplete file counts as left over from a killed process.
_LEFTOVER = 3600.0


def _remove_leftovers(path: Path) -> None:
    """Removes incomplete files of this name from processes that were killed."""
    for found in path.parent.glob(f".{escape(path.name)}.*.partial*"):
        with suppress(OSError):
            if time.time() - found.stat().st_mtime > _LEFTOVER:
                found.unlink()


# -- the file behind a name

#: Device and inode.
Identity = tuple[int, int]

#: The table of mounted file systems, if the system has one, and the kinds that several machines share. SQLite's locks
#: and the index of its log work on one machine only.
MOUNTS = Path("/proc/self/mounts")
_NETWORK = (
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "lustre", "gpfs", "beegfs", "glusterfs", "ncpfs", "davfs",
    "coda", "pvfs2", "orangefs", "fuse.sshfs", "fuse.glusterfs", "fuse.ceph-fuse", "fuse.ceph", "fuse.s3fs",
    "fuse.davfs2", "fuse.rclone", "fuse.gcsfuse", "fuse.smbnetfs", "fuse.moosefs", "fuse.juicefs",
)  # fmt: skip


def identity(path: Path | str) -> Identity | None:
    """The file that a name refers to now; None if there is no such file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def identities(paths: Sequence[str]) -> list[Identity | None]:
    """The files that these names refer to now. Every change of a study passes here."""
    try:
        return [(found.st_dev, found.st_ino) for found in map(os.stat, paths)]
    except OSError:
        return [identity(path) for path in paths]


def check_local(path: Path) -> None:
    """Raises `FileError` if the file is, or would be, on a network file system."""
    try:
        table = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return
    found = network_mount(_beside(path, ""), table)
    if found is not None:
        place, kind = found
        raise FileError(
            f"{path} is on a network file system ({kind} at {place}), where SQLite cannot keep a study safe: keep it on"
            " a disk of this machine, or in PostgreSQL (postgresql://…), which many machines can share"
        )


def network_mount(path: Path, table: str) -> tuple[str, str] | None:
    """The mount point and the kind of the network file system that holds a path; None if the path is not on one.

    ``table``: in the format of /proc/mounts. The last line of the longest mount point counts.
    """
    best, kind = Path("/"), ""
    for line in table.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        place = Path(re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), fields[1]))
        if path.is_relative_to(place) and len(place.parts) >= len(best.parts):
            best, kind = place, fields[2]
    return (str(best), kind) if kind in _NETWORK else None


# -- a file in a read-only folder: an archive, a read-only mount, another user's folder
#
# A reader of a file in WAL mode needs the index of the log next to the file, and SQLite makes the index if it is
# missing. If SQLite cannot make it, and the write-ahead log holds nothing that is not in the file, SQLite can be told
# that the file does not change ('immutable'). Then it reads the file alone, and locks nothing. Another user may still
# write to the file, so a reader compares the file's stamp before and after each transaction.

#: Inode, size and time of the last change.
Stamp = tuple[int, int, int]


def can_be_written(path: Path) -> bool:
    """Whether a new file can be made in the same folder."""
    return os.access(_beside(path, "").parent, os.W_OK)


def log_size(path: Path) -> int:
    """Bytes of the write-ahead log of a file; 0 if there is none."""
    try:
        return _beside(path, "-wal").stat().st_size
    except OSError:
        return 0


def stamp(path: Path) -> Stamp | None:
    """The stamp of a file that SQLite must read as immutable; None if SQLite can read it as usual."""
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


# -- the mark: whether the file needs a log, and a count of check points that starts at a random number

_MOST_MARKS = 1 << 30


def new_mark() -> int:
    """The mark of a new file, which needs no log. Two files hardly ever have the same."""
    return secrets.randbelow(_MOST_MARKS) << 1


def is_open(mark: int) -> bool:
    """Whether a file with this mark needs its log."""
    return bool(mark & 1)


def following(mark: int) -> int:
    """The mark of the next check point."""
    return (((mark >> 1) + 1) % _MOST_MARKS) << 1 | 1


def closed(mark: int) -> int:
    """The same mark of a file that needs no log."""
    return mark & ~1


def mark_of_the_file(path: Path) -> int | None:
    """The mark of the file alone, without its log; None if it cannot be read, or if the file is not a study."""
    try:
        with closing(_connection(path, "mode=ro&immutable=1")) as reader:
            ((application,),) = reader.execute("PRAGMA application_id")
            ((mark,),) = reader.execute("PRAGMA user_version")
    except (sqlite3.Error, UnicodeDecodeError):
        return None
    return int(mark) if application == APPLICATION else None


def _connection(path: Path, options: str) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(os.path.realpath(path))}?{options}", uri=True)


# -- a write-ahead log that is missing, belongs to another study, or has lost acknowledged transactions
#
# The mark detects the first two. A log that was cut off is shorter than its index says, if the index is still there: a
# commit is in the index only when it is on the disk.
#
# When the first connection opens a file after a crash, SQLite takes the log up to the first frame with a wrong check
# sum and drops the rest. A write that a crash has cut off looks like this. So does a bit that the disk has changed, but
# then the frames after it were acknowledged. The two cases can be distinguished, because a transaction is written to
# the log only when the one before is on the disk: if two or more commits follow the last frame that SQLite accepted,
# the first of these commits was acknowledged. (Damage to the very last transaction looks like a write that was cut
# off.)
#
# The formats are those of sqlite.org/walformat.html.

_HEADER = 32
_FRAME = struct.Struct(">II8s8s")  # page, pages after a commit (else 0), salt, check sum
_INDEX = 48  # the wal-index begins with two copies of its header; a writer changes one after the other


def check_log(path: Path) -> None:
    """Raises `FileError` if the write-ahead log of a study does not belong to it, or is damaged.

    No connection of this process may be open, and nobody may have opened the file since it was closed: SQLite drops the
    parts that it finds cut off.
    """
    for attempt in range(_ATTEMPTS):  # other processes may make check points, or close the file, in between
        mark = mark_of_the_file(path)
        if mark is None:
            return
        what = _misfit(path, mark)
        if not what:
            break
        if attempt == _ATTEMPTS - 1:
            raise FileError(
                f"{path} is damaged: {what}; put back the log that belongs to it, or make a copy of what the file "
                "alone has with 'chainscout backup --without-log'"
            )
    if log_size(path) <= _HEADER:
        return
    try:
        # The last process that closes a file removes its log, and with it the evidence of damage. A reader does not
        # touch the log.
        with closing(_connection(path, "mode=ro")) as reader:
            reader.execute("PRAGMA schema_version").fetchone()  # now SQLite has read the log
            salt, commits = _commits(_beside(path, "-wal"))
            last, accepted_salt = _accepted(_beside(path, "-shm"))
    except (sqlite3.Error, OSError):
        return  # the connection that opens the file next will report the error
    if salt != accepted_salt:
        return  # another process has removed the log and begins a new round
    behind = sum(frame > last for frame in commits)
    if behind > 1:
        raise FileError(
            f"{path} is damaged: {behind} of the {len(commits)} transactions in its write-ahead log cannot be read"
        )


#: How often a file and its log are compared before they count as not matching.
_ATTEMPTS = 5


def _misfit(path: Path, mark: int) -> str:
    """What is wrong with the log of a file with this mark, or nothing."""
    size = log_size(path)
    if size <= _HEADER:
        return "its write-ahead log, which holds the last observations, is missing" if is_open(mark) else ""
    log, index = _beside(path, "-wal"), _beside(path, "-shm")
    try:
        last, salt = _accepted(index)
        with log.open("rb") as file:
            header = file.read(_HEADER)
        page = int.from_bytes(header[8:12], "big")
        if header[16:24] == salt and size < _HEADER + last * (_FRAME.size + page):
            return "its write-ahead log, which holds the last observations, was cut off"
    except OSError:
        pass  # without an index, SQLite decides how much of the log is valid
    try:
        with closing(_connection(path, "mode=ro")) as reader:
            ((with_log,),) = reader.execute("PRAGMA user_version")
    except sqlite3.Error:
        return ""  # the connection that opens the file next will report the error
    ahead = ((with_log >> 1) - (mark >> 1) + 1) % _MOST_MARKS
    return "the write-ahead log beside it is not its own" if ahead > 2 else ""


def _accepted(index: Path) -> tuple[int, bytes]:
    """The last frame of the log that SQLite accepts, and the salt that identifies this round of the log."""
    for _ in range(100):
        with index.open("rb") as file:
            header, copy = file.read(_INDEX), file.read(_INDEX)
        if header == copy:
            return int.from_bytes(header[16:20], sys.byteorder), header[32:40]
    return 0, b""  # its writer was killed between the two copies


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
