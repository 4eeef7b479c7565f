"""Prevents a fork of the process while one of its threads is inside SQLite.

A child process has only the thread that forked, and all locks as they were. SQLite has its own locks, for its memory
and for its table of open files. If another thread held them during the fork, the child could never take them. So a fork
waits until every other thread has left SQLite, but not longer than a limit: an audit stays inside for long.

Every observation passes here, so there is no lock. A thread first notes that it is inside, and then checks whether
another thread forks. A forking thread first notes that it forks, and then checks which threads are inside. So at least
one of them sees the other.
"""

import os
import threading
import time
from types import TracebackType

__all__ = ["INSIDE", "pause"]

#: Seconds that a fork waits, and seconds between two checks.
_PATIENCE = 5.0
_LOOK = 0.001

#: Thread → how many times it has entered.
_threads: dict[int, int] = {}
_forking = False


class _Inside:
    """While this lasts, another thread that forks waits. It may be entered more than once."""

    def __enter__(self) -> None:
        me = threading.get_ident()
        depth = _threads.get(me, 0)
        _threads[me] = depth + 1
        while _forking and depth == 0:
            del _threads[me]
            time.sleep(_LOOK)
            _threads[me] = 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        me = threading.get_ident()
        depth = _threads[me]
        if depth == 1:
            del _threads[me]
        else:
            _threads[me] = depth - 1


#: ``with INSIDE:`` surrounds everything that calls SQLite.
INSIDE = _Inside()


def pause() -> None:
    """Lets another thread fork now. The caller must not be in a call of SQLite."""
    me = threading.get_ident()
    depth = _threads.pop(me)
    with INSIDE:
        _threads[me] = depth + 1


def _before() -> None:
    global _forking
    me = threading.get_ident()
    end = time.monotonic() + _PATIENCE
    _forking = True
    while any(thread != me for thread in list(_threads)) and time.monotonic() < end:
        time.sleep(_LOOK)


def _after_in_parent() -> None:
    global _forking
    _forking = False


def _after_in_child() -> None:
    global _forking
    _forking = False
    me = threading.get_ident()
    for thread in [thread for thread in _threads if thread != me]:
        del _threads[thread]


if hasattr(os, "register_at_fork"):  # Windows has no forks
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
