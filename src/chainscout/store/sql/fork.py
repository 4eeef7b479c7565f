"""Keeps a process from being forked while one of its threads is inside SQLite.

A child has only the thread that forked, and all locks as they were. SQLite has locks of its own, for its memory and for
its table of open files, that no child could ever take if another thread held them at that moment. So a fork waits until
every other thread has left SQLite; one that stays inside for long, as in an audit, is not waited for any longer.
"""

import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["inside", "pause"]

#: Seconds that a fork waits.
_PATIENCE = 5.0

_condition = threading.Condition()
#: How deep inside each thread is.
_threads: Counter[int] = Counter()
_forking = False


@contextmanager
def inside() -> Iterator[None]:
    """While this lasts, another thread that forks waits."""
    _enter()
    try:
        yield
    finally:
        _leave()


def pause() -> None:
    """Lets another thread fork in the middle; the caller is in no call of SQLite."""
    _leave()
    _enter()


def _enter() -> None:
    me = threading.get_ident()
    with _condition:
        while _forking and not _threads[me]:
            _condition.wait()
        _threads[me] += 1


def _leave() -> None:
    me = threading.get_ident()
    with _condition:
        _threads[me] -= 1
        if not _threads[me]:
            del _threads[me]
            if _forking:
                _condition.notify_all()


def _before() -> None:
    global _forking
    me = threading.get_ident()
    _condition.acquire()
    _forking = True
    _condition.wait_for(lambda: all(thread == me for thread in _threads), _PATIENCE)


def _after_in_parent() -> None:
    global _forking
    _forking = False
    _condition.notify_all()
    _condition.release()


def _after_in_child() -> None:
    global _condition, _forking
    me = threading.get_ident()
    _condition, _forking = threading.Condition(), False
    for thread in [thread for thread in _threads if thread != me]:
        del _threads[thread]


os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
