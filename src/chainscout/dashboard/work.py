"""Work that would keep the server waiting goes to a thread; what it gives is remembered for a moment."""

import asyncio
import time
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from pydantic import TypeAdapter

from ..errors import Busy

Answer = TypeVar("Answer")

#: Seconds that an answer is given again without a new look, how many are kept, and how long a request may work.
FRESH = 0.2
MOST_KEPT = 200
PATIENCE = 30.0

#: What a request that changes the study does with this time: it waits in the queue for at most `IN_QUEUE` seconds,
#: then for other writers of the study for at most `FOR_WRITERS`, and has what is left for the change itself. So it is
#: refused before its own time is over, and nothing is done afterwards that was refused.
IN_QUEUE = 12.0
FOR_WRITERS = 10.0

#: The study's lock lets one at it at a time: more threads would only wait. What is read and what is changed have
#: threads of their own, because a change may wait for other writers.
_readers = ThreadPoolExecutor(4, "chainscout-reader")
_writers = ThreadPoolExecutor(1, "chainscout-writer")


class Unknown(Exception):
    """A change was begun and its end did not come in time: whether it was stored is not known."""


async def in_thread(work: Callable[[], Answer]) -> Answer:
    """The result of ``work`` that only reads, done in a thread; TimeoutError if it takes too long."""
    async with asyncio.timeout(PATIENCE):
        return await asyncio.get_running_loop().run_in_executor(_readers, work)


async def change(work: Callable[[], Answer]) -> Answer:
    """The result of ``work`` that may change the study.

    Raises ``Busy`` if its turn did not come, and then it is not done later either; ``Unknown`` if it was begun and its
    end did not come in time.
    """
    asked = time.monotonic()
    begun = False

    def at_its_turn() -> Answer:
        nonlocal begun
        if time.monotonic() > asked + IN_QUEUE:
            raise Busy("too many changes wait for other writers of the study: nothing was changed")
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
        raise Busy("too many changes wait for other writers of the study: nothing was changed") from None


_adapters: dict[Any, TypeAdapter[Any]] = {}


def adapter(kind: Any) -> TypeAdapter[Any]:
    """How values of this type become JSON; made once a type."""
    if kind not in _adapters:
        _adapters[kind] = TypeAdapter(kind)
    return _adapters[kind]


def to_json(value: Any) -> bytes:
    """A dataclass of ``report.views``, or several, as JSON."""
    if isinstance(value, tuple):
        return adapter(list[Any]).dump_json(list(value))
    return adapter(type(value)).dump_json(value)


class Recent:
    """Answers of the last moment: a thousand readers cost the study no more than one."""

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[float, asyncio.Future[bytes]]] = {}

    async def get(self, key: Hashable, work: Callable[[], bytes]) -> bytes:
        """What ``work`` gives, now or a moment ago."""
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
