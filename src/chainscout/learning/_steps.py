"""Where the steps of sources run: in the calling thread, on threads, on an executor, or on an event loop."""

import asyncio
import secrets
import threading
from collections.abc import Awaitable, Hashable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress

from ..errors import InputError
from ..sources import Source

__all__ = ["Steps"]

#: A step's state, whether it begins a path, and the source if the step was made in another process.
Outcome = tuple[Hashable, bool, bytes | None]
#: Seconds for which cancelled coroutines may clean up at the end.
_PATIENCE = 5.0


class Steps:
    """Runs each step of a source where it belongs.

    ``executor``: None: in the calling thread, or, if steps are ``limited``, in a thread for each step.
    """

    def __init__(self, executor: Executor | None, limited: bool) -> None:
        self._executor = executor
        self._limited = limited
        self._loop: _EventLoop | None = None

    def close(self) -> None:
        """Cancels what is still awaited."""
        if self._loop is not None:
            self._loop.close()

    def are_made_here(self, source: Source) -> bool:
        """Whether the steps of a source are made by the very object, and not by a copy in another process."""
        return source.is_awaited or self._executor is None or isinstance(self._executor, ThreadPoolExecutor)

    def begin(self, source: Source, chain: str) -> "Future[Outcome]":
        """Begins the next step of a source."""
        if source.is_awaited:
            self._loop = self._loop or _EventLoop()
            return self._loop.submit(source)
        if self._executor is None:
            future: Future[Outcome] = Future()
            future.set_running_or_notify_cancel()
            if self._limited:  # a step that is given up may never end, and must not hold up the end of the program
                threading.Thread(target=_fill, args=(future, source), name="step of a source", daemon=True).start()
            else:
                _fill(future, source)
            return future
        if self.are_made_here(source):
            return self._executor.submit(_advance_here, source)
        # The mark makes each call unique, because Dask treats equal calls as one and would draw only once.
        return self._executor.submit(_advance_there, _packed(source, chain), chain, secrets.token_hex(8))

    def break_off(self, future: "Future[Outcome]") -> None:
        """Cancels a coroutine. A thread cannot be broken off: its step goes on until it ends by itself."""
        if self._loop is not None:
            self._loop.break_off(future)


class _EventLoop:
    """An event loop in a thread of its own, on which many coroutines wait at once."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._tasks: dict[Future[Outcome], asyncio.Task[Outcome]] = {}
        self._over = False
        self._thread = threading.Thread(target=self._run, name="event loop of sources", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._over:  # a source that raises these ends its step, and not the loop
            with suppress(KeyboardInterrupt, SystemExit):
                self._loop.run_forever()

    def submit(self, source: Source) -> "Future[Outcome]":
        """Begins to await the next step of a source."""
        future: Future[Outcome] = Future()
        future.set_running_or_notify_cancel()
        self._loop.call_soon_threadsafe(self._begin, source, future)
        return future

    def _begin(self, source: Source, future: "Future[Outcome]") -> None:
        self._tasks[future] = task = self._loop.create_task(_advance_awaited(source))
        task.add_done_callback(lambda _: self._end(future))

    def _end(self, future: "Future[Outcome]") -> None:
        task = self._tasks.pop(future)
        error = asyncio.CancelledError("the step was cancelled") if task.cancelled() else task.exception()
        if error is None:
            future.set_result(task.result())
        else:
            future.set_exception(error)

    def break_off(self, future: "Future[Outcome]") -> None:
        """Cancels the step. Its future is done when the coroutine has cleaned up."""
        self._loop.call_soon_threadsafe(lambda: future in self._tasks and self._tasks[future].cancel())

    def close(self) -> None:
        """Cancels what is still awaited, and ends the thread."""
        with suppress(TimeoutError):  # a coroutine that does not let go keeps its thread, which nobody waits for
            asyncio.run_coroutine_threadsafe(self._leave(), self._loop).result(_PATIENCE)
            self._over = True
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    async def _leave(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._loop.shutdown_asyncgens()


def _fill(future: "Future[Outcome]", source: Source) -> None:
    try:
        future.set_result(_advance_here(source))
    except BaseException as error:  # the driver raises it again
        future.set_exception(error)


async def _advance_awaited(source: Source) -> Outcome:
    step = source.advance()
    assert isinstance(step, Awaitable)
    state, fresh = await step
    return state, fresh, None


def _advance_here(source: Source) -> Outcome:
    step = source.advance()
    assert isinstance(step, tuple)
    state, fresh = step
    return state, fresh, None


def _advance_there(packed: bytes, chain: str, mark: str) -> Outcome:
    """Runs in another process or on another machine: the source is sent there, advances, and is sent back."""
    import cloudpickle

    source: Source = cloudpickle.loads(packed)
    state, fresh, _ = _advance_here(source)
    return state, fresh, _packed(source, chain)


def _packed(source: Source, chain: str) -> bytes:
    """A source as it is sent to another process. A generator, for example, cannot be sent."""
    import cloudpickle

    try:
        return bytes(cloudpickle.dumps(source))
    except Exception as error:
        raise InputError(
            f"the source of the chain {chain!r} cannot be sent to another process ({error}): run it on threads, or "
            "give a source that can be pickled"
        ) from None
