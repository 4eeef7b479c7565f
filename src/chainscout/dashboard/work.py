"""Threads for slow work, so that the server never waits; and answers that are kept for a moment."""

import asyncio
import time
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import pydantic_core

from ..errors import Busy

Answer = TypeVar("Answer")

#: Seconds for which an answer is used again, the most answers that are kept, and seconds that a request may take.
FRESH = 0.2
MOST_KEPT = 200
PATIENCE = 30.0

#: How a request that changes the study uses this time: it waits in the queue for at most `IN_QUEUE` seconds, then for
#: other writers of the study for at most `FOR_WRITERS` seconds. The rest is for the change itself. So a request is
#: refused before its time is over, and a refused change is never made later.
IN_QUEUE = 12.0
FOR_WRITERS = 10.0

#: Few threads are enough, because the study's lock admits one at a time. Readers and writers have their own threads,
#: because a change may wait for other writers.
_readers = ThreadPoolExecutor(4, "chainscout-reader")
_writers = ThreadPoolExecutor(1, "chainscout-writer")


QUEUED = "too many changes wait for other writers of the study: nothing was changed"


class Unknown(Exception):
    """A change began and did not end in time. Nobody knows whether it was stored."""


async def in_thread(work: Callable[[], Answer]) -> Answer:
    """The result of ``work`` that only reads, in a thread. Raises ``TimeoutError`` if it takes too long."""
    async with asyncio.timeout(PATIENCE):
        return await asyncio.get_running_loop().run_in_executor(_readers, work)


async def change(work: Callable[[], Answer]) -> Answer:
    """The result of ``work`` that may change the study.

    Raises ``Busy`` if its turn did not come; then it is never done. Raises ``Unknown`` if it began and did not end in
    time.
    """
    asked = time.monotonic()
    begun = False

    def at_its_turn() -> Answer:
        nonlocal begun
        if time.monotonic() > asked + IN_QUEUE:
            raise Busy(QUEUED)
        begun = True
        return work()

    try:
        async with asyncio.timeout(PATIENCE):
            return await asyncio.get_running_loop().run_in_executor(_writers, at_its_turn)
    except TimeoutError:
        if begun:
            raise Unknown(
                f"the change was begun and did not end within {PATIENCE:g} seconds: whether it was stored is not "
                "known; to tell the same observation again is safe with its path and step"
            ) from None
        raise Busy(QUEUED) from None


def to_json(value: Any) -> bytes:
    """Records of ``report``, one or several, as JSON."""
    return pydantic_core.to_json(value, inf_nan_mode="null")


class Recent:
    """Answers of the last moment, so that a thousand readers cost the study no more than one.

    The caches of ``functools`` forget nothing by time, and do not share an answer that is still being made.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[float, asyncio.Future[bytes]]] = {}

    async def get(self, key: Hashable, work: Callable[[], bytes]) -> bytes:
        """The result of ``work``, from now or from a moment ago."""
        known = self._known.get(key)
        if known is None or (known[1].done() and time.monotonic() > known[0] + FRESH):
            if len(self._known) >= MOST_KEPT:
                self._known = {k: v for k, v in self._known.items() if not v[1].done()}
            known = time.monotonic(), asyncio.ensure_future(self._stamped(key, work))
            self._known[key] = known
        return await asyncio.shield(known[1])

    async def _stamped(self, key: Hashable, work: Callable[[], bytes]) -> bytes:
        answer = await in_thread(work)
        known = self._known.get(key)
        if known is not None:
            self._known[key] = time.monotonic(), known[1]
        return answer
