"""Event streams: one look at the study serves all streams.

Starlette has no server-sent events, and packages that add them leave it to their user to share one look.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from functools import partial
from itertools import zip_longest

from ..errors import ChainscoutError
from ..report.study_data import StudyReport
from .work import Latest, Moment, sentence, to_json

#: The most streams at once.
MOST_STREAMS = 256
#: Seconds between two looks at the study, and between two messages that keep a stream alive.
LOOK = 0.25
ALIVE = 15.0


class Hub:
    """Looks at the study while any stream is open, and sends what is new to all streams."""

    def __init__(self, latest: Latest) -> None:
        self._latest = latest
        #: The moment that was sent last; None while the study cannot be read.
        self._moment: Moment | None = None
        #: Set when there is something new, and then replaced, so that streams do not queue for a lock.
        self._changed = asyncio.Event()
        self._version = 0
        self._message = b""
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
                await self._look()
                if self._looking is None:  # no other stream was faster
                    self._looking = asyncio.create_task(self._go_on_looking())
            version, number = -1, after
            if number is None:
                number = 0 if self._moment is None else _last(self._moment)
            while not self._closed:
                if version == self._version:
                    try:
                        await self._news(version)
                    except TimeoutError:
                        yield b": alive\n\n"
                        continue
                    if self._closed:
                        return
                version, message, moment = self._version, self._message, self._moment
                if moment is not None and number < (last := _last(moment)):
                    try:
                        yield await moment.answer(("happened", number), partial(_messages, after=number, last=last))
                        number = last
                    except (ChainscoutError, TimeoutError):  # the events follow when they can be read
                        pass
                yield message
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

    async def _go_on_looking(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            await self._look()

    async def _look(self) -> None:
        """Looks once, and sends what is new to all streams."""
        try:
            moment = await self._latest.moment()
            if self._moment is not None and self._moment.mark == moment.mark:
                return
            overview = await moment.answer("overview", lambda report: to_json(report.overview()))
        except (ChainscoutError, TimeoutError) as error:
            if self._moment is not None or not self._message:
                self._moment = None
                text = json.dumps({"error": sentence(error), "kind": type(error).__name__}).encode()
                self._tell(b"event: failed\ndata: %s\n\n" % text)
            return
        self._moment = moment
        self._tell(b"event: study\ndata: %s\n\n" % overview)

    def _tell(self, message: bytes) -> None:
        self._message = message
        self._version += 1
        told, self._changed = self._changed, asyncio.Event()
        told.set()


def _last(moment: Moment) -> int:
    """The number of the last event."""
    return moment.report.look.events[-1].number


def _messages(report: StudyReport, after: int, last: int) -> bytes:
    """A message for each event after the entry ``after``, up to the entry ``last``."""
    events = [event for event in report.events(after) if event.number <= last]
    found = []
    for event, following in zip_longest(events, events[1:]):
        is_split = following is not None and following.number == event.number  # events of one entry stay together
        place = b"" if is_split else b"id: %d\n" % event.number
        found.append(b"event: happened\n%sdata: %s\n\n" % (place, to_json(event)))
    return b"".join(found)
