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

from ..errors import ChainscoutError, NothingFree, SourceEnded, SourceError
from ..sources import Place, Repeating, Source
from ..study import Lease, Study, Worker
from ._position import Positions

#: The worker of a program that learns. Its paths are continued by the next program, if their sources repeat themselves.
NAME = "learn"
#: Seconds that a lease lasts if this program dies; while it lives, the worker renews its leases.
SECONDS = 60.0
#: Seconds between two looks for a chain that other workers hold.
PAUSE = 0.05


class Crew:
    """Sources at work on an executor, each under a lease of its own path."""

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
        self._positions = Positions(study, self._sources)
        self._working: dict[Future[Any], Lease] = {}

    def run(self) -> None:
        """Keeps the workers busy until the study is finished and all of them are back."""
        with self._study.worker(NAME) as worker:
            try:
                while self._hire(worker) or self._working:
                    if not self._working:  # other workers were promised what there is
                        time.sleep(PAUSE)
                    done, _ = wait(self._working, timeout=SECONDS / 2, return_when=FIRST_COMPLETED)
                    for future in done:
                        self._back(self._working.pop(future), future)
                        self._told()
            except BaseException:
                for lease in self._working.values():
                    lease.abandon()
                raise

    def _hire(self, worker: Worker) -> bool:
        """Gives leases to idle workers. Gives whether there will be more to do."""
        while len(self._working) < self._workers:
            busy = {lease.chain for lease in self._working.values()}
            try:
                lease = worker.lease(SECONDS, wait=0, continuing=True, without=busy)
            except NothingFree:
                return True
            if lease is None:
                return False
            try:
                self._place(lease)
            except BaseException:  # nothing was asked of the source, so nothing is lost
                lease.give_back()
                raise
            try:
                self._working[self._send(self._sources[lease.chain], lease.token)] = lease
            except BrokenExecutor as error:  # another worker has broken it, and that worker's answer is not read yet
                lease.abandon()
                raise _broke(error) from None
            except BaseException:
                lease.abandon()
                raise
        return True

    def _place(self, lease: Lease) -> None:
        """Brings the source of a lease to where its path stands, or begins a path where the source stands."""
        name = lease.chain
        place = Place(lease.path, lease.step, lease.state, self._study.chain(name).observations)
        known = self._positions.known(name)
        if known is None or (known.path, known.step) != (place.path, place.step):
            if lease.state is not None and not isinstance(self._sources[name], Repeating):
                lease.restart()  # an earlier program's path, which this source cannot continue
                place = Place(lease.path, 1, None, place.observations)
            self._positions.put(name, place)

    def _send(self, source: Source, token: str) -> Future[Any]:
        if isinstance(self._executor, ThreadPoolExecutor):
            return self._executor.submit(_advance_here, source)
        import cloudpickle

        # The token makes each call unlike any other, because Dask takes equal calls for one and would draw once.
        return self._executor.submit(_advance_there, cloudpickle.dumps(source), token)

    def _back(self, lease: Lease, future: "Future[Any]") -> None:
        name = lease.chain
        try:
            state, fresh, moved = self._result(future)
            if moved is not None:
                import cloudpickle

                self._sources[name] = cloudpickle.loads(moved)
            if self._positions.is_broken(name, fresh):
                lease.restart()
                self._positions.put_aside(name, Place(lease.path, 1, None, self._study.chain(name).observations))
            self._positions.tell(name, state, lease.tell)
        except SourceEnded as end:
            self._study.set_aside(name, str(end), token=lease.token)
        except (SourceError, _WorkerLost) as error:
            lease.abandon()
            if isinstance(error, _WorkerLost):
                self._sources[name].restart()
            if self._positions.fail(name):
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


def _advance_there(packed: bytes, token: str) -> tuple[Hashable, bool, bytes]:
    """On another process or machine: the source moves there, advances, and comes back."""
    import cloudpickle

    source = cloudpickle.loads(packed)
    state, fresh = source.advance()
    return state, fresh, cloudpickle.dumps(source)
