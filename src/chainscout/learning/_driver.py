"""The driver of sources: it gives each idle source a lease, lets it make the step, and tells what came.

Every step is under a lease of a worker of this program. Plain driving is one source at a time in the calling thread; an
executor or an event loop has several at work at once.
"""

import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
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
    OverBudget,
    SourceEnded,
    SourceError,
    SourceNotStarted,
    StudyFinished,
)
from ..sources import Factory, Place, Program, Repeating, Source
from ..study import Lease, Study, Worker
from ..study.state import LEARNER
from ._steps import Steps

__all__ = ["Driver"]

#: Seconds that a lease lasts if this program dies. While it lives, its workers renew their leases.
SECONDS = 60.0
#: Seconds between two attempts to get a chain that other workers hold.
PAUSE = 0.05
#: A chain is set aside after this many consecutive failures of its source.
MOST_FAILURES = 10


class _StepLost(Exception):
    """A step took longer than it may, or the executor lost the workers that it was sent to."""


class _Meaning(NamedTuple):
    """What it means that a step did not end with a state that was told."""

    #: Whether a step may have been made whose state is lost; None: the study knows already.
    lost: bool | None
    #: Whether the source has failed, has no more states, or ends the whole call of ``learn``.
    failed: bool = False
    ended: bool = False
    raised: bool = False


def _meaning(error: BaseException, begins: bool) -> _Meaning:
    """What the end, error, lost worker or bad state of a source means.

    ``begins``: the path has no state, and the source has given none: then no step was made.
    """
    match error:
        case LeaseLost():
            return _Meaning(None)
        case OutOfStep():  # somebody else has told this state of a recording
            return _Meaning(True)
        case SourceEnded():
            return _Meaning(False, ended=True)
        case SourceNotStarted():
            return _Meaning(False, failed=True)
        case SourceError():
            return _Meaning(not begins, failed=True)
        case _StepLost():
            return _Meaning(True, failed=True)
        case Exception() if not isinstance(error, ChainscoutError):  # the user's own
            return _Meaning(not begins, raised=True)
    return _Meaning(True, raised=True)


@dataclass(slots=True)
class _Copy:
    """One source of a chain, the worker that walks its paths, and where it stands."""

    source: Source
    worker: Worker
    #: Its consecutive failures.
    failures: int = 0
    #: The place of the source's next observation; None if it is not known.
    place: Place | None = None


class _Work(NamedTuple):
    """A step under way: since when, and under which lease."""

    copy: _Copy
    lease: Lease
    since: float


class Driver:
    """Drives the sources of a study.

    ``factories``: make further sources of these chains, if there is an executor or an event loop for them.
    ``told``: is called after every step. ``workers``: how many sources are at work at once.
    ``step_limit``: seconds after which a step is given up.
    """

    def __init__(
        self, study: Study, sources: Mapping[str, Source], factories: Mapping[str, Factory], executor: Executor | None,
        told: Callable[[], None], *, workers: int, step_limit: float | None,
    ) -> None:  # fmt: skip
        self._study = study
        self._sources = sources
        #: One source at a time needs no copies.
        self._factories = factories if workers > 1 else {}
        self._executor = executor
        self._at_once = workers
        self._limit = step_limit
        self._told = told
        self._shared = study.progress().shared
        #: The chains whose sources can continue the path of an earlier program.
        self._repeating = frozenset(name for name, source in sources.items() if isinstance(source, Repeating))
        #: The n-th worker walks with the n-th source of every chain.
        self._workers: list[Worker] = []
        #: Each chain's idle sources, and how many sources it has.
        self._idle: dict[str, list[_Copy]] = {}
        self._copies = dict.fromkeys(sources, 0)
        self._working: dict[Future[Any], _Work] = {}
        #: Steps that were given up and still run: their sources cannot begin anew yet.
        self._stuck: dict[Future[Any], _Work] = {}
        #: Leases that were taken with a tell.
        self._granted: list[Lease] = []

    def run(self) -> None:
        """Keeps the sources busy until the study is finished and all of them have returned. Closes them."""
        with ExitStack() as self._stack:
            for source in self._sources.values():
                self._stack.callback(self._close, source)
            self._steps = self._stack.enter_context(closing(Steps(self._executor, self._limit is not None)))
            self._make_worker = self._stack.enter_context(self._study._program(self._repeating))
            for name, source in self._sources.items():
                self._idle[name] = [self._copy(name, source)]
            try:
                while self._hire() or self._working:
                    self._wait()
            except BaseException as error:
                if isinstance(error, Exception) and not isinstance(error, ChainscoutError):
                    self._finish(error)
                for copy, lease, _ in self._working.values():
                    self._end(copy, lease, lost=True)
                for lease in self._granted:  # their sources have not begun
                    with suppress(ChainscoutError):
                        lease.give_back()
                raise

    def _close(self, source: Source) -> None:
        if all(work.copy.source is not source for work in self._stuck.values()):
            source.close()

    def _copy(self, name: str, source: Source) -> _Copy:
        """One more source of a chain, and its worker."""
        number = self._copies[name]
        self._copies[name] += 1
        if number == len(self._workers):
            called = f"{LEARNER} {number + 1}" if number else LEARNER
            self._workers.append(self._stack.enter_context(self._make_worker(called, alone=self._at_once == 1)))
        return _Copy(source, self._workers[number])

    def _new_source(self, name: str) -> Source:
        with _named(name):
            source = self._factories[name].source()
        self._stack.callback(self._close, source)
        return source

    def _finish(self, error: Exception) -> None:
        """After an exception of one source: tells what the other sources at work bring, and asks for nothing more."""
        for future in [future for future in self._working if future.cancel()]:  # it has not begun
            with _noted_in(error):
                self._working.pop(future).lease.give_back()
        while self._working:
            done, _ = wait(self._working, return_when=FIRST_COMPLETED)
            for future in done:
                work = self._working.pop(future)
                try:
                    self._back(work, future)
                except Exception as further:
                    error.add_note(f"The chain {work.lease.chain!r} ended with an error too: {further!r}")

    # -- what begins

    def _hire(self) -> bool:
        """Gives leases to idle sources. Returns whether there will be more to do."""
        while len(self._working) < self._at_once:
            try:
                found = self._lease()
            except (NothingFree, Held):
                return True
            if found is None:
                return False
            copy, lease = found
            try:
                self._place(copy, lease)
                future = self._steps.begin(copy.source, lease.chain)
            except BaseException as error:
                self._end(copy, lease, lost=not isinstance(error, Exception))  # an error says that no step began
                if isinstance(error, BrokenExecutor):  # another step broke it, and its answer is not read yet
                    raise _broke(error) from None
                raise
            self._working[future] = _Work(copy, lease, time.monotonic())
        return True

    def _lease(self) -> tuple[_Copy, Lease] | None:
        """A lease for an idle source; None when the study is finished."""
        if self._granted:
            lease = self._granted.pop()
            return self._idle[lease.chain].pop(), lease
        busy = {work.lease.chain for works in (self._working, self._stuck) for work in works.values()}
        worker, without = self._workers[0], frozenset(busy)
        if self._factories:
            try:
                name = self._study.ask(without=busy - self._factories.keys())
            except StudyFinished:
                return None
            if not self._idle[name]:
                self._idle[name].append(self._copy(name, self._new_source(name)))
            worker, without = self._idle[name][-1].worker, frozenset(self._sources.keys() - {name})
        found = worker.lease(SECONDS, wait=0, continuing=self._repeating, without=without)
        return None if found is None else (self._idle[found.chain].pop(), found)

    def _place(self, copy: _Copy, lease: Lease) -> None:
        """Brings a source to where its lease's path stands. If that is impossible, the source begins anew."""
        known, source, name = copy.place, copy.source, lease.chain
        if known is not None and (known.path, known.step) == (lease.path, lease.step):
            return
        place = Place(lease.path, lease.step, lease.state, self._study.chain(name).observations)
        try:
            with _named(name):
                resumed = source.resume(place)
        except InputError as error:
            what = f"the source of the chain {name!r} cannot go on where the study is"
            raise InputError(f"{what}: {error}") from None
        if place.last is not None and not resumed and not self._shared:  # a shared process stands there already
            self._restart(copy, name)
        copy.place = place

    # -- what comes back

    def _wait(self) -> None:
        """Waits for a step, and tells what it brought."""
        if not self._working:  # others hold what is left, or a step that was given up still runs
            time.sleep(PAUSE)
        now, limit = time.monotonic(), self._limit
        begun = [work.since for works in (self._working, self._stuck) for work in works.values()]
        longest = SECONDS / 2 if limit is None else max(0.0, min(begun, default=now) + limit - now)
        done, _ = wait([*self._working, *self._stuck], longest, FIRST_COMPLETED)
        for future in [future for future in self._working if future in done]:  # in the order of issue
            work = self._working.pop(future)
            self._back(work, future)
            self._idle[work.lease.chain].append(work.copy)
            self._told()
        for future in [future for future in self._stuck if future in done]:
            copy, lease, _ = self._stuck.pop(future)
            if lease.chain not in self._factories:
                self._restart(copy, lease.chain)
                self._idle[lease.chain].append(copy)
        if limit is not None:
            self._give_up(time.monotonic() - limit)

    def _back(self, work: _Work, future: "Future[Any]") -> None:
        copy, lease, _ = work
        drawn = False
        try:
            with _named(lease.chain):
                state, fresh, moved = _result(future)
            drawn = True
            if moved is not None:
                import cloudpickle

                copy.source = cloudpickle.loads(moved)
            if fresh and lease.state is not None:  # the source began anew by itself
                lease.restart(due=True)
            self._tell(copy, lease, state)
        except BaseException as error:
            self._fail(copy, lease, error, begins=lease.state is None and not drawn)

    def _tell(self, copy: _Copy, lease: Lease, given: Hashable) -> None:
        """Tells a state. Programs write texts; an invalid text is an error of the program."""
        path, step, source = lease.path, lease.step, copy.source
        observations = 0 if copy.place is None else copy.place.observations
        used = observations if isinstance(source, Repeating) and source.is_used_up else None
        try:
            state = self._study.state_from_text(lease.chain, str(given)) if isinstance(source, Program) else given
            if self._factories or self._stuck:
                lease.tell(state, observations=used)
            else:  # with the worker's next lease: one append an observation
                following = lease.tell_and_lease(state, continuing=self._repeating, observations=used)
                if isinstance(following, Lease):
                    self._granted.append(following)
        except (Held, OutOfStep, OverBudget):  # a program is not to blame
            raise
        except InputError:
            if isinstance(source, Program):
                raise source.reject(given) from None
            raise
        copy.place = Place(path, step + 1, state, observations + 1)
        copy.failures = 0

    def _fail(self, copy: _Copy, lease: Lease, error: BaseException, *, begins: bool) -> None:
        """Does what the end or the error of a source means. Raises the error if it ends everything."""
        meaning = _meaning(error, begins)
        copy.place = None
        copy.failures += meaning.failed
        gives_up = meaning.ended or copy.failures >= MOST_FAILURES
        with _noted_in(error) if meaning.raised else ExitStack():
            if gives_up:  # before the path ends, because its end may set the chain aside with a less exact reason
                self._set_aside(lease.chain, error)
            if meaning.lost is not None:
                self._end(copy, lease, lost=meaning.lost)
            if gives_up:  # if paths are shared, a chain that is held cannot be set aside
                self._set_aside(lease.chain, error)
        if meaning.raised:
            raise error
        if isinstance(error, _StepLost) and not self._steps.are_made_here(copy.source):  # a copy made the step
            self._restart(copy, lease.chain)

    def _end(self, copy: _Copy, lease: Lease, *, lost: bool) -> None:
        """Ends a lease whose state is not told. A source that repeats itself gives it again; for another it is lost."""
        copy.place = None
        with suppress(LeaseLost, ConnectionLost, Cancelled):  # then the lease ends by itself
            if lost and not isinstance(copy.source, Repeating):
                lease.abandon()
            else:
                lease.give_back()

    def _set_aside(self, name: str, reason: BaseException) -> None:
        with suppress(Held):  # a worker with a working process holds it
            self._study.set_aside(name, str(reason), ended=isinstance(reason, SourceEnded))

    # -- steps that take too long

    def _give_up(self, latest: float) -> None:
        """Gives up the steps that began before ``latest``. Their slots are holes, and their sources begin anew."""
        for future, work in [*self._working.items(), *self._stuck.items()]:
            copy, lease, since = work
            if since > latest or future.done():
                continue
            if future in self._stuck:  # it still runs: one more failure
                self._stuck[future] = work._replace(since=time.monotonic())
                copy.failures += 1
                if copy.failures == MOST_FAILURES and lease.chain not in self._factories:
                    self._set_aside(lease.chain, self._too_long())
                continue
            del self._working[future]
            if future.cancel():  # it has not begun
                self._end(copy, lease, lost=False)
                self._idle[lease.chain].append(copy)
                continue
            self._fail(copy, lease, self._too_long(), begins=False)
            if self._steps.are_made_here(copy.source):
                self._steps.break_off(future)
                self._stuck[future] = work._replace(since=time.monotonic())
            if lease.chain in self._factories:  # another source has its place
                copy = _Copy(self._new_source(lease.chain), copy.worker, failures=copy.failures)
            if future not in self._stuck or lease.chain in self._factories:
                self._idle[lease.chain].append(copy)
            self._told()

    def _too_long(self) -> _StepLost:
        return _StepLost(f"a step of its source took longer than {self._limit:g} seconds")

    def _restart(self, copy: _Copy, name: str) -> None:
        with _named(name):
            copy.source.restart()


@contextmanager
def _named(chain: str) -> Iterator[None]:
    """Adds a note with the chain's name to an exception of the user's own source. Errors on purpose stay unchanged."""
    try:
        yield
    except ChainscoutError:
        raise
    except Exception as error:
        error.add_note(f"The source of the chain {chain!r} raised this.")
        raise


@contextmanager
def _noted_in(error: BaseException) -> Iterator[None]:
    """For what is stored because of an exception of a source: if that fails, the exception gets a note instead."""
    try:
        yield
    except ChainscoutError as further:
        error.add_note(f"The study could not be told: {further}")


def _result(future: "Future[Any]") -> Any:
    try:
        return future.result()
    except (BrokenExecutor, CancelledError) as error:
        raise _broke(error) from None
    except Exception as error:
        # Dask says this after it has started the task again elsewhere, several times.
        if type(error).__name__ == "KilledWorker":
            raise _StepLost("the workers that its source was sent to were lost") from error
        raise


def _broke(error: BaseException) -> ChainscoutError:
    return ChainscoutError(f"the executor broke while a study ran on it: {str(error) or type(error).__name__}")
