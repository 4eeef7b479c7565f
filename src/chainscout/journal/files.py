"""Files on a disk: a new file gets its name when it is complete, and network file systems are refused."""

import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import NamedTuple

from ..errors import FileError, InputError

__all__ = [
    "MOUNTS",
    "Identity",
    "Stamp",
    "beside",
    "check_local",
    "identity",
    "network_mount",
    "new_file",
    "stamp",
    "taken",
]

#: Device and inode.
Identity = tuple[int, int]


class Stamp(NamedTuple):
    """It changes when the content of a file changes, and when a name in a folder is made, deleted or replaced."""

    identity: Identity
    size: int
    #: Nanoseconds since 1970.
    time: int


#: The table of mounted file systems, if the system has one, and the kinds that several machines share. SQLite's locks
#: and the index of its log work on one machine only.
MOUNTS = Path("/proc/self/mounts")
_NETWORK = frozenset((
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "lustre", "gpfs", "beegfs", "glusterfs", "ncpfs", "davfs",
    "coda", "pvfs2", "orangefs", "fuse.sshfs", "fuse.glusterfs", "fuse.ceph-fuse", "fuse.ceph", "fuse.s3fs",
    "fuse.davfs2", "fuse.rclone", "fuse.gcsfuse", "fuse.smbnetfs", "fuse.moosefs", "fuse.juicefs",
))  # fmt: skip
#: Seconds after which an incomplete file counts as left over from a killed process.
_LEFTOVER = 3600.0


def taken(where: str) -> InputError:
    """The error for a new study at a place where something exists already."""
    return InputError(
        f"{where} exists already: go on with it (by ask, tell or learn on the command line, by Study.open in Python), "
        "or give the new study another name"
    )


def stamp(path: Path | str) -> Stamp | None:
    """What a file or folder looks like from outside; None if it is not there."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return Stamp((found.st_dev, found.st_ino), found.st_size, found.st_mtime_ns)


def identity(path: Path | str) -> Identity | None:
    """The file that a name refers to now; None if there is no such file."""
    found = stamp(path)
    return found and found.identity


def beside(path: Path, ending: str) -> Path:
    """The file of SQLite that belongs to this one. SQLite follows links, and keeps its files beside the real file."""
    real = Path(os.path.realpath(path))
    return real.with_name(real.name + ending)


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A name for a file to be filled. It becomes ``path`` when it is complete, and never replaces another file."""
    try:
        if path.exists():
            raise taken(str(path))
        _remove_leftovers(path)
    except OSError as error:
        raise FileError(f"{path} could not be made: {error.strerror}") from None
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        yield partial
        os.link(partial, path)
        _reach_disk(path.parent)
    except FileExistsError:
        raise taken(str(path)) from None
    except OSError as error:
        raise FileError(f"{path} could not be made: {error.strerror}") from None
    finally:
        for ending in ("", "-wal", "-shm", "-journal"):
            with suppress(OSError):  # in a read-only folder even removing a missing file fails
                partial.with_name(partial.name + ending).unlink(missing_ok=True)


def _reach_disk(folder: Path) -> None:
    """Waits until the names in a folder are on the disk. Windows has no such function."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove_leftovers(path: Path) -> None:
    """Removes incomplete files of this name from processes that were killed."""
    for found in path.parent.glob(f".{escape(path.name)}.*.partial*"):
        with suppress(OSError):
            if time.time() - found.stat().st_mtime > _LEFTOVER:
                found.unlink()


def check_local(path: Path) -> None:
    """Raises `FileError` if the file is, or would be, on a network file system."""
    try:
        table = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return
    found = network_mount(beside(path, ""), table)
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
