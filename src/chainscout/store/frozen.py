"""A study in a folder that cannot be written: an archive, a mount that is read only, another user's folder.

A reader of a file in WAL mode wants the log's index beside it, and SQLite makes it where it is not there. Where that is
impossible, and no write-ahead log holds anything that is not in the file yet, SQLite can be told that the file does not
change ('immutable'): then it reads the file alone, and locks nothing. Somebody else may be allowed to write there all
the same, so whoever reads like this looks before and after each transaction whether the file is still what it was.
"""

import os
from pathlib import Path

#: Inode, size and time of the last change.
Stamp = tuple[int, int, int]


def can_be_written(path: Path) -> bool:
    """Whether a file can be made beside this one."""
    return os.access(_real(path).parent, os.W_OK)


def log_size(path: Path) -> int:
    """Bytes of the write-ahead log beside a file; 0 if there is none."""
    try:
        return _beside(path, "-wal").stat().st_size
    except OSError:
        return 0


def stamp(path: Path) -> Stamp | None:
    """What a file that is to be read alone can be known by; None for one that is to be read in the ordinary way."""
    if can_be_written(path) or log_size(path) > 0:
        return None
    if _beside(path, "-wal").exists() and _beside(path, "-shm").exists():
        return None  # somebody has it open, and what a reader needs is there
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _beside(path: Path, ending: str) -> Path:
    real = _real(path)
    return real.with_name(real.name + ending)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))  # SQLite follows links, and has its other files where they lead
