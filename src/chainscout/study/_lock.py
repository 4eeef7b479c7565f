"""The lock that lets one thread at a time use a study, and that a forked process never waits for."""

import os
import threading
from types import TracebackType

from ..errors import InputError
from ..store.protocol import FORKED


class StudyLock:
    """A lock that the same thread may take again.

    A forked process has only the thread that forked. If another thread held the lock at that moment, nobody in the new
    process can release it, and what it protects may be half changed: the study is refused there.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._process = os.getpid()

    def __enter__(self) -> None:
        if self._process == os.getpid():
            self._lock.acquire()
        elif self._lock.acquire(blocking=False):
            self._process = os.getpid()
        else:
            raise InputError(FORKED)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()
