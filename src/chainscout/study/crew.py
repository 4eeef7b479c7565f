"""Sources at work on an executor, each under a lease; and what happens when a source or its worker fails."""

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
from typing import Any

from ..errors import ChainscoutError, Held, InputError, NothingFree, OutOfStep, SourceEnded, SourceError, StudyFinished
from ..sources import Program, Source
from .lease import Lease
from .study import Study

#: A chain whose source failed so often in a row is set aside.
FAILURES = 10
#: Seconds that a lease lasts; leases in flight are renewed when half of that is over.
SECONDS = 60.0
#: Seconds between two looks for a chain that other workers hold.
PAUSE = 0.05


class Paths:
    """Which chains are in the middle of a path, and how often their sources have failed in a row."""

    def __init__(self, study: Study, sources: Mapping[str, Source]) -> None:
        self._going: dict[str, bool] = {}
        self._next: dict[str, int] = {}
        self._failures = dict.fromkeys(sources, 0)
        self._study = study
        self._sources = sources

    def is_broken(self, name: str, fresh: bool) -> bool:
        """Whether the study must be told of a new segment before the source's next state."""
        return fresh and self._going.get(name, False)

    def has_told(self, name: str) -> None:
        """Notes a state that was told."""
        self._going[name] = True
        self._next[name] += 1
        self._failures[name] = 0

    def lose(self, name: str) -> None:
        """Notes that somebody else advanced the chain: the source is not where the study is."""
        self._next.pop(name, None)

    def find(self, name: str, step: int | None = None) -> int:
        """Brings a source to where the study is; if it cannot be, its next state is a fresh start.

        A chain whose path was broken has no last state. Its source is brought behind its observations all the same:
        what was counted before must not be counted again. ``step``: the number of the chain's next observation, if it
        was just read; where it is not the one that this source is to give, somebody else has advanced the chain. What
        comes back is the number of the observation that the source gives next.
        """
        if step is not None and step != self._next.get(name):
            self.lose(name)
        if name not in self._next:
            chain, source = self._study.chain(name), self._sources[name]
            try:
                # A source that was found before may have given a state that nobody took, the very first one too.
                moved = chain.observations > 0 or name in self._going
                resumed = moved and source.resume(chain.observations, chain.last)
            except InputError as error:
                raise InputError(f"the source of the chain {name!r} cannot go on where the study is: {error}") from None
            if chain.last is not None and not resumed:
                source.restart()
            self._going[name] = chain.last is not None
            self._next[name] = chain.observations + 1
        return self._next[name]

    def has_failed(self, name: str, going: bool = False) -> bool:
        """Notes a failure, and whether the path goes on all the same; whether the source is to be given up."""
        self._failures[name] += 1
        self._going[name] = going
        return self._failures[name] >= FAILURES


def tell_from(study: Study, name: str, source: Source, state: Hashable, tell: Callable[[str, Hashable], None]) -> None:
    """Tells a state. What a program writes is a text, and one that is no state is its fault, nobody's slip."""
    if not isinstance(source, Program):
        tell(name, state)
        return
    try:
        tell(name, study.state_from_text(name, str(state)))
    except (OutOfStep, Held):  # somebody else was there first: no fault of the program's
        raise
    except InputError:
        raise source.reject(state) from None


class Crew:
    """Sources at work on an executor, each under a lease."""

    def __init__(
        self,
        study: Study,
        sources: Mapping[str, Source],
        executor: Executor,
        workers: int,
        told: Callable[[], None],
    ) -> None:
        self._study = study
        self._sources = dict(sources)
        self._executor = executor
        self._workers = workers
        self._told = told
        self._paths = Paths(study, self._sources)
        self._working: dict[Future[Any], Lease] = {}

    def run(self) -> None:
        """Keeps the workers busy until the study is finished and all are back."""
        try:
            while self._hire() or self._working:
                if not self._working:  # other workers hold what there is
                    time.sleep(PAUSE)
                done, _ = wait(self._working, timeout=SECONDS / 2, return_when=FIRST_COMPLETED)
                for future in done:
                    self._back(self._working.pop(future), future)
                    self._told()
                if not done:
                    for lease in self._working.values():
                        lease.renew(SECONDS)
        except BaseException:
            for lease in self._working.values():
                lease.abandon()
            raise

    def _hire(self) -> bool:
        """Gives leases to idle workers; whether there will be more to do."""
        while len(self._working) < self._workers:
            try:
                lease = self._study.lease(f"worker {len(self._working)}", SECONDS, wait=0)
            except NothingFree:
                return True
            except StudyFinished:
                return False
            try:
                self._paths.find(lease.chain, lease.step)
            except BaseException:  # nothing was asked of the source, so that nothing can be lost
                lease.give_back()
                raise
            try:
                self._working[self._send(self._sources[lease.chain], lease.token)] = lease
            except BrokenExecutor as error:  # another worker has broken it, and its answer is not read yet
                lease.abandon()
                raise _broke(error) from None
            except BaseException:
                lease.abandon()
                raise
        return True

    def _send(self, source: Source, token: str) -> Future[Any]:
        if isinstance(self._executor, ThreadPoolExecutor):
            return self._executor.submit(_advance_here, source)
        import cloudpickle

        # The token makes each call unlike any other: Dask takes equal ones for one, and a coin would fall only once.
        return self._executor.submit(_advance_there, cloudpickle.dumps(source), token)

    def _back(self, lease: Lease, future: "Future[Any]") -> None:
        name = lease.chain
        try:
            state, fresh, moved = self._result(future)
            if moved is not None:
                import cloudpickle

                self._sources[name] = cloudpickle.loads(moved)
            if self._paths.is_broken(name, fresh):
                lease.restart()
            tell_from(self._study, name, self._sources[name], state, lambda _, known: lease.tell(known))
            self._paths.has_told(name)
        except SourceEnded as end:
            self._study.set_aside(name, str(end), token=lease.token)
            lease.give_back()
        except SourceError as error:
            if self._paths.has_failed(name):
                self._study.set_aside(name, str(error), token=lease.token)
            lease.restart(lost=True)
            lease.give_back()
        except _WorkerLost as error:
            lease.abandon()
            # The source is still here as it was before it was sent: it can go on, if that is what the study does.
            going = self._study.chain(name).last is not None
            if not going:
                self._sources[name].restart()
            if self._paths.has_failed(name, going):
                self._study.set_aside(name, str(error))
        except BaseException:
            lease.abandon()
            raise

    def _result(self, future: "Future[Any]") -> Any:
        try:
            return future.result()
        except (BrokenExecutor, CancelledError) as error:
            raise _broke(error) from None
        except Exception as error:
            # Dask has started the task again elsewhere, several times, before it says this.
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


def _advance_there(packed: bytes, token: str) -> tuple[Hashable, bool, bytes]:
    """On another process or machine: the source moves there, advances, and comes back."""
    import cloudpickle

    source = cloudpickle.loads(packed)
    state, fresh = source.advance()
    return state, fresh, cloudpickle.dumps(source)
