"""Threads for slow work, so that the server never waits; and the moment of the study that all readers share."""

import asyncio
import time
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import pydantic_core

from ..errors import Busy
from ..report.study_data import StudyReport

if TYPE_CHECKING:
    from ..study import Study

Answer = TypeVar("Answer")

#: Seconds for which nobody asks whether the study has changed, and for which a moment of it is shown at most; the most
#: answers that are kept; and seconds that a request may take.
FRESH, STALE = 0.2, 1.0
MOST_KEPT = 200
PATIENCE = 30.0
#: A look that takes long serves for this many times as long, at least: so looks take at most a fifth of the time.
REST = 4.0

#: How a request that changes the study uses this time: it waits in the queue for at most `IN_QUEUE` seconds, then for
#: other writers of the study for at most `FOR_WRITERS` seconds. So a request is refused before its time is over, and a
#: refused change is never made later.
IN_QUEUE = 12.0
FOR_WRITERS = 10.0

#: Few threads are enough, because the study's lock admits one at a time. Readers and writers have their own threads,
#: because a change may wait for other writers.
_readers = ThreadPoolExecutor(4, "chainscout-reader")
_writers = ThreadPoolExecutor(1, "chainscout-writer")


QUEUED = "too many changes wait for other writers of the study: nothing was changed"


async def in_thread(work: Callable[[], Answer]) -> Answer:
    """The result of ``work`` that only reads, in a thread. Raises ``TimeoutError`` if it takes too long."""
    async with asyncio.timeout(PATIENCE):
        return await asyncio.get_running_loop().run_in_executor(_readers, work)


async def change(work: Callable[[], Answer]) -> Answer:
    """The result of ``work`` that may change the study.

    Raises ``Busy`` if its turn did not come; then it is never done. What has begun is awaited to its end.
    """
    asked = time.monotonic()
    begun = False

    def at_its_turn() -> Answer:
        nonlocal begun
        if time.monotonic() > asked + IN_QUEUE:
            raise Busy(QUEUED)
        begun = True
        return work()

    done = asyncio.get_running_loop().run_in_executor(_writers, at_its_turn)
    await asyncio.wait([done], timeout=PATIENCE)
    if not (begun or done.done()):
        raise Busy(QUEUED)
    return await done


def sentence(error: Exception) -> str:
    """What is wrong, in words."""
    return str(error) or "this took too long"


def to_json(value: Any) -> bytes:
    """Records of ``report``, one or several, as JSON."""
    return pydantic_core.to_json(value, inf_nan_mode="null")


@dataclass(frozen=True)
class Moment:
    """The study at one moment, and what was made from it."""

    #: Another one whenever the study has changed.
    mark: Hashable
    #: When it was read, by the monotonic clock, and for how many seconds.
    read: float
    took: float
    report: StudyReport
    #: What was asked → the answer.
    _answers: dict[Hashable, asyncio.Future[bytes]] = field(default_factory=dict)

    def serves(self, seconds: float) -> float:
        """For how many seconds it is shown at least: ``seconds``, or more if the look took long."""
        return max(seconds, REST * self.took)

    async def answer(self, asked: Hashable, work: Callable[[StudyReport], bytes]) -> bytes:
        """What ``work`` makes of this moment. It is made once for all who ask the same."""
        found = self._answers.get(asked)
        if found is None:
            if len(self._answers) >= MOST_KEPT:
                self._answers.clear()
            found = self._answers[asked] = asyncio.ensure_future(in_thread(partial(work, self.report)))
        return await asyncio.shield(found)


class Latest:
    """The moment that all readers share, so that a thousand of them cost the study no more than one.

    A moment is shown until the study changes, and for at most `STALE` seconds, because clocks go on.
    """

    def __init__(self, study: "Study", title: str) -> None:
        self._study, self._title = study, title
        self._known: Moment | None = None
        self._reading: asyncio.Future[Moment] | None = None
        #: Until when nobody asks whether the study has changed.
        self._until = 0.0

    async def moment(self) -> Moment:
        """The study as it is now, or as it was a moment ago."""
        reading = self._reading
        if reading is None or (reading.done() and time.monotonic() > self._until):
            reading = self._reading = asyncio.ensure_future(in_thread(partial(self._read, self._known)))
        self._known = await asyncio.shield(reading)
        return self._known

    def expire(self) -> None:
        """The study was changed here: the next reader sees that."""
        self._reading = None

    def _read(self, known: Moment | None) -> Moment:
        mark, begun = self._study._mark(), time.monotonic()
        if known is None or known.mark != mark or begun > known.read + known.serves(STALE):
            report = StudyReport(self._study, self._title)
            known = Moment(mark, begun, time.monotonic() - begun, report)
        self._until = time.monotonic() + known.serves(FRESH)
        return known
