"""Work that would keep the server waiting goes to a thread; what it gives is remembered for a moment."""

import asyncio
import time
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from pydantic import TypeAdapter

Answer = TypeVar("Answer")

#: Seconds that an answer is given again without a new look, how many are kept, and how long a request may work.
FRESH = 0.2
MOST_KEPT = 200
PATIENCE = 30.0

#: The study's lock lets one at it at a time: more threads would only wait.
_threads = ThreadPoolExecutor(4, "chainscout-dashboard")


async def in_thread(work: Callable[[], Answer]) -> Answer:
    """The result of ``work``, done in a thread; TimeoutError if it takes too long."""
    async with asyncio.timeout(PATIENCE):
        return await asyncio.get_running_loop().run_in_executor(_threads, work)


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

    def fresh(self, key: Hashable) -> bytes | None:
        """What was given a moment ago; None if that is longer ago, or is still being worked on."""
        known = self._known.get(key)
        if known is None or not known[1].done() or time.monotonic() > known[0] + FRESH:
            return None
        return None if known[1].cancelled() or known[1].exception() else known[1].result()

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
