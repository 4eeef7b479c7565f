"""Event streams: one look at the study serves all streams.

Starlette has no server-sent events, and packages that add them leave it to their user to share one look.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

from ..errors import ChainscoutError
from ..report.study_data import Happening, StudyReport
from .work import in_thread, to_json

#: The most streams at once.
MOST_STREAMS = 256
#: Seconds between two looks at the study, and between two messages that keep a stream alive.
LOOK = 0.25
ALIVE = 15.0
#: The most events that are kept for streams that are behind.
KEPT = 2_000


class Hub:
    """Looks at the study while any stream is open, and sends what is new to all streams."""

    def __init__(self, report: StudyReport, signature: Callable[[], Any]) -> None:
        self._report = report
        #: Gives a value that is cheap to read and changes whenever the study does.
        self._signature = signature
        #: Set when there is something new, and then replaced, so that streams do not queue for a lock.
        self._changed = asyncio.Event()
        self._version = 0
        self._latest = b""
        self._failed = False
        self._number = 0
        self._events: deque[Happening] = deque(maxlen=KEPT)
        self._looking: asyncio.Task[None] | None = None
        self.open = 0
        self._closed = False

    async def close(self) -> None:
        """Ends every stream."""
        self._closed = True
        if self._looking is not None:
            self._looking.cancel()
        self._changed.set()

    def is_full(self) -> bool:
        """Whether no more streams can open."""
        return self._closed or self.open >= MOST_STREAMS

    async def stream(self, after: int | None) -> AsyncIterator[bytes]:
        """The messages of one stream: all events after the event ``after``, or from now on."""
        self.open += 1
        try:
            if self._looking is None:
                known = await self._look(None)
                if self._looking is None:  # no other stream was faster
                    self._looking = asyncio.create_task(self._go_on_looking(known))
            version, number = -1, self._number if after is None else after
            while not self._closed:
                if version == self._version:
                    try:
                        await self._news(version)
                    except TimeoutError:
                        yield b": alive\n\n"
                        continue
                    if self._closed:
                        return
                version = self._version
                try:
                    news = await self._since(number)
                except ChainscoutError:  # the message below says so; the events follow when the study can be read
                    news = []
                for event in news:
                    number = event.number
                    yield b"event: happened\nid: %d\ndata: %s\n\n" % (number, to_json(event))
                yield self._latest
        finally:
            self.open -= 1
            if self.open == 0 and self._looking is not None:
                self._looking.cancel()
                self._looking = None

    async def _news(self, version: int) -> None:
        """Returns when there is something new. Raises ``TimeoutError`` if nothing comes for long."""
        if self._version == version and not self._closed:
            async with asyncio.timeout(ALIVE):
                await self._changed.wait()

    async def _go_on_looking(self, known: Any) -> None:
        while True:
            await asyncio.sleep(LOOK)
            known = await self._look(known)

    async def _look(self, known: Any) -> Any:
        """Looks once, and sends what is new to all streams."""
        try:
            found = await in_thread(self._signature)
            if found == known and not self._failed:
                return found
            overview = await in_thread(self._report.overview)
            news = await in_thread(lambda: self._report.events(self._number or -1, KEPT))
        except ChainscoutError as error:
            if not self._failed:
                self._failed = True
                text = json.dumps({"error": str(error), "kind": type(error).__name__}).encode()
                self._tell(b"event: failed\ndata: %s\n\n" % text)
            return known
        self._failed = False
        for event in news:
            if event.number > self._number:
                self._events.append(event)
                self._number = event.number
        self._tell(b"event: study\ndata: %s\n\n" % to_json(overview))
        return found

    def _tell(self, message: bytes) -> None:
        self._latest = message
        self._version += 1
        told, self._changed = self._changed, asyncio.Event()
        told.set()

    async def _since(self, number: int) -> list[Happening]:
        """All events after the event ``number``, from those that are kept or from the study."""
        if number >= self._number:
            return []
        if self._events and self._events[0].number <= number + 1:
            return [event for event in self._events if event.number > number]
        found: list[Happening] = []
        while True:
            page = await in_thread(partial(self._report.events, number, 1000))
            found += page
            if len(page) < 1000:
                return found
            number = page[-1].number
