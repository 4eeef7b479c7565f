"""Sources that work on an executor, each under a lease; and the handling of failed sources and workers."""

import time
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from contextlib import ExitStack, suppress
from typing import Any, NamedTuple

from ..errors import (
    Cancelled,
    ChainscoutError,
    ConnectionLost,
    Held,
    InputError,
    LeaseLost,
    NothingFree,
    OutOfStep,
    SourceEnded,
    SourceError,
    SourceNotStarted,
    StudyFinished,
)
from ..sources import Factory, Place, Repeating, Source
from ..study import Lease, Study, Worker
from ._position import Position, named, noted_in

#: The walker of the paths of plain tells. So a path of plain tells can be continued by a source that repeats itself.
NAME = "main"
#: Seconds that a lease lasts if this program dies. While it lives, the worker renews its leases.
SECONDS = 60.0
#: Seconds between two attempts to get a chain that other workers hold.
PAUSE = 0.05


class Here(Executor):
    """An executor that runs each call at once, in the calling thread."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """The result or the error of ``fn``, as a completed future."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class _Copy(NamedTuple):
    """One source of a chain, and the worker that walks its paths."""

    position: Position
    worker: Worker


class Crew:
    """Sources that work on an executor, each under a lease of its own path."""

    def __init__(
        self,
        study: Study,
        sources: Mapping[str, Source],
        factories: Mapping[str, Factory],
        executor: Executor,
        workers: int,
        told: Callable[[], None],
    ) -> None:
        self._study = study
        self._sources = sources
        self._factories = factories
        self._executor = executor
        self._workers = workers
        self._told = told
        self._shared = study.progress().shared
        #: The chains whose sources can continue the path of an earlier program.
        self._repeating = frozenset(name for name, source in sources.items() if isinstance(source, Repeating))
        #: The sources of each chain, and the idle ones among them.
        self._copies: dict[str, list[_Copy]] = {}
        self._idle: dict[str, list[_Copy]] = {}
        self._working: dict[Future[Any], tuple[_Copy, Lease]] = {}
        #: A single worker's next lease, granted with its last tell; or why there is none.
        self._granted: Lease | Exception | None = None

    def run(self) -> None:
        """Keeps the workers busy until the study is finished and all of them have returned."""
        with ExitStack() as self._stack:
            self._mark = self._stack.enter_context(self._study._program(self._repeating))
            main = self._worker(NAME)
            for name, source in self._sources.items():
                self._copies[name] = [_Copy(Position(self._study, name, source), main)]
                self._idle[name] = self._copies[name].copy()
            try:
                while self._hire(main) or self._working:
                    if not self._working:  # the rest of the budget is promised to other workers
                        time.sleep(PAUSE)
                    done, _ = wait(self._working, timeout=SECONDS / 2, return_when=FIRST_COMPLETED)
                    for future in [future for future in self._working if future in done]:  # in the order of issue
                        copy, lease = self._working.pop(future)
                        self._back(copy, lease, future)
                        self._idle[lease.chain].append(copy)
                        self._told()
            except BaseException as error:
                if isinstance(error, Exception) and not isinstance(error, ChainscoutError):
                    self._finish(error)
                for copy, lease in self._working.values():
                    self._drop(copy, lease)
                if isinstance(self._granted, Lease):  # its source has not begun
                    with suppress(LeaseLost, ConnectionLost, Cancelled):
                        self._granted.give_back()
                raise

    def _finish(self, error: Exception) -> None:
        """After an exception of one source: tells what the other sources at work bring, and asks for nothing more."""
        for future in [future for future in self._working if future.cancel()]:  # it has not begun
            _, lease = self._working.pop(future)
            with noted_in(error):
                lease.give_back()
        while self._working:
            done, _ = wait(self._working, return_when=FIRST_COMPLETED)
            for future in done:
                copy, lease = self._working.pop(future)
                try:
                    self._back(copy, lease, future)
                except Exception as further:
                    error.add_note(f"The chain {lease.chain!r} ended with an error too: {further!r}")

    def _hire(self, main: Worker) -> bool:
        """Gives leases to idle workers. Returns whether there will be more to do."""
        while len(self._working) < self._workers:
            try:
                found = self._lease(main)
            except (NothingFree, Held):
                return True
            if found is None:
                return False
            copy, lease = found
            try:
                self._place(copy.position, lease)
                work = self._work(copy.position.source, lease)
            except BaseException:  # the source made no observation, so nothing is lost
                lease.give_back()
                raise
            try:
                self._working[self._executor.submit(*work)] = found
            except BaseException as error:
                self._drop(copy, lease)
                if isinstance(error, BrokenExecutor):  # another worker broke it, and its answer is not read yet
                    raise _broke(error) from None
                raise
        return True

    def _lease(self, main: Worker) -> tuple[_Copy, Lease] | None:
        """A lease for an idle source; None when the study is finished."""
        granted, self._granted = self._granted, None
        if isinstance(granted, StudyFinished):
            return None
        if isinstance(granted, Exception):
            raise granted
        if granted is not None:
            return self._idle[granted.chain].pop(), granted
        busy = {lease.chain for _, lease in self._working.values()}
        if not self._factories:
            lease = main.lease(SECONDS, wait=0, continuing=self._repeating, without=busy)
            return None if lease is None else (self._idle[lease.chain].pop(), lease)
        try:
            name = self._study.ask(without=busy - self._factories.keys())
        except StudyFinished:
            return None
        if not self._idle[name]:
            self._idle[name].append(self._copy(name))
        copy = self._idle[name][-1]
        others = self._sources.keys() - {name}
        lease = copy.worker.lease(SECONDS, wait=0, continuing=self._repeating, without=others)
        return None if lease is None else (self._idle[name].pop(), lease)

    def _worker(self, name: str) -> Worker:
        alone = self._workers == 1
        return self._stack.enter_context(Worker(self._study, name, warns=False, alone=alone, mark=self._mark))

    def _copy(self, name: str) -> _Copy:
        """One more source of a chain."""
        number = len(self._copies[name]) + 1
        with named(name):
            source = self._factories[name].source()
        self._stack.callback(source.close)
        worker = self._worker(f"{NAME} {number}")
        self._copies[name].append(_Copy(Position(self._study, name, source), worker))
        return self._copies[name][-1]

    def _place(self, position: Position, lease: Lease) -> None:
        """Brings a source to the position of its lease's path."""
        known = position.place
        if known is None or (known.path, known.step) != (lease.path, lease.step):
            observations = self._study.chain(lease.chain).observations
            position.put(Place(lease.path, lease.step, lease.state, observations), same_process=self._shared)

    def _work(self, source: Source, lease: Lease) -> tuple[Any, ...]:
        """The function that advances a source where the executor runs it, and its arguments."""
        if isinstance(self._executor, ThreadPoolExecutor | Here):
            return _advance_here, source
        # The token makes each call unique, because Dask treats equal calls as one and would draw only once.
        return _advance_there, _packed(source, lease.chain), lease.chain, lease.token

    def _back(self, copy: _Copy, lease: Lease, future: "Future[Any]") -> None:
        position, drawn = copy.position, False
        try:
            with named(lease.chain):
                state, fresh, moved = self._result(future)
            drawn = True
            if moved is not None:
                import cloudpickle

                position.source = cloudpickle.loads(moved)
            if fresh and lease.state is not None:
                lease.restart()
                position.move(lease.path)
            position.tell(state, lambda told: self._tell(lease, told, position.used))
        except OutOfStep:  # somebody else has told this state of a recording
            self._drop(copy, lease)
        except LeaseLost:  # the study has noted that an observation may be lost
            position.place = None
        except SourceEnded as end:  # it gave no state, so nothing is lost
            lease.give_back()
            self._set_aside(lease.chain, end)
        except (SourceError, _WorkerLost) as error:
            given_up = position.fail()
            if given_up:  # before the path ends, because its end may set the chain aside with a less exact reason
                self._set_aside(lease.chain, error)
            begins = isinstance(error, SourceError) and lease.state is None and not drawn
            if begins or isinstance(error, SourceNotStarted):
                lease.give_back()  # a path without a state has lost none
            else:
                self._drop(copy, lease)
            if isinstance(error, _WorkerLost):
                position.source.restart()
            if given_up:  # if paths are shared, a chain that is held cannot be set aside
                self._set_aside(lease.chain, error)
        except Exception as error:
            raised = not isinstance(error, ChainscoutError)
            with noted_in(error):
                if raised and lease.state is None and not drawn:
                    lease.give_back()  # a path without a state has lost none
                else:
                    self._drop(copy, lease)
            raise
        except BaseException:
            self._drop(copy, lease)
            raise

    def _tell(self, lease: Lease, state: Hashable, observations: int | None) -> None:
        """Tells a state. A single worker takes its next lease in the same transaction: one commit an observation."""
        if self._workers == 1 and not self._factories:
            self._granted = lease.tell_and_lease(state, continuing=self._repeating, observations=observations)
        else:
            lease.tell(state, observations=observations)

    def _drop(self, copy: _Copy, lease: Lease) -> None:
        """Ends a lease whose state is not told. A source that repeats itself gives it again; for another it is lost."""
        copy.position.place = None
        with suppress(LeaseLost, ConnectionLost, Cancelled):  # then the lease ends by itself
            if isinstance(copy.position.source, Repeating):
                lease.give_back()
            else:
                lease.abandon()

    def _set_aside(self, name: str, reason: Exception) -> None:
        with suppress(Held):  # a worker with a working process holds it
            self._study.set_aside(name, str(reason), ended=isinstance(reason, SourceEnded))

    def _result(self, future: "Future[Any]") -> Any:
        try:
            return future.result()
        except (BrokenExecutor, CancelledError) as error:
            raise _broke(error) from None
        except Exception as error:
            # Dask says this after it has started the task again elsewhere, several times.
            if type(error).__name__ == "KilledWorker":
                raise _WorkerLost("the workers that its source was sent to were lost") from error
            raise


class _WorkerLost(Exception):
    pass


def _broke(error: BaseException) -> ChainscoutError:
    return ChainscoutError(f"the executor broke while a study ran on it: {str(error) or type(error).__name__}")


def _advance_here(source: Source) -> tuple[Hashable, bool, None]:
    state, fresh = source.advance()
    return state, fresh, None


def _advance_there(packed: bytes, chain: str, token: str) -> tuple[Hashable, bool, bytes]:
    """Runs in another process or on another machine: the source is sent there, advances, and is sent back."""
    import cloudpickle

    source = cloudpickle.loads(packed)
    state, fresh = source.advance()
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
