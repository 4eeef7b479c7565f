"""Keeps a process from being forked while one of its threads is inside SQLite.

A child has only the thread that forked, and all locks as they were. SQLite has locks of its own, for its memory and for
its table of open files, that no child could ever take if another thread held them at that moment. So a fork waits until
every other thread has left SQLite; one that stays inside for long, as in an audit, is not waited for any longer.

Every observation passes here, so there is no lock. A thread first says that it is inside and then looks whether another
one forks; who forks first says so and then looks who is inside. So at least one of them sees the other.
"""

import os
import threading
import time
from types import TracebackType

__all__ = ["INSIDE", "pause"]

#: Seconds that a fork waits, and seconds between two looks.
_PATIENCE = 5.0
_LOOK = 0.001

#: How deep inside each thread is.
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


#: ``with INSIDE:`` is around everything that calls SQLite.
INSIDE = _Inside()


def pause() -> None:
    """Lets another thread fork in the middle; the caller is in no call of SQLite."""
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
