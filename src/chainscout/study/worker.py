"""Workers and their leases, for a study on a journal: who advances a path for a while."""

import inspect
import math
import re
import sys
import threading
import time
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence, Set
from contextlib import suppress
from enum import Enum
from types import TracebackType
from typing import Any, Self

from ..counts import MOST_TRANSITIONS
from ..errors import Cancelled, ChainscoutError, ConnectionLost, Held, InputError, LeaseLost, NothingFree, StudyFinished
from ..journal.entry import End
from ..markup import html_table
from ..validation import Duration, printable, shown, whole_number
from ..validation import seconds as in_seconds
from . import commands, labels, stop
from .keeper import Keeper
from .state import LEARNER, State
from .walker import Walker

__all__ = ["Lease", "LeaseStatus", "Worker", "check_may_wait", "ending", "is_learners"]

#: Seconds for which a change is tried again while the database is not reachable.
_PATIENCE = 30.0
#: Seconds between two searches for a free chain: at first, and at most.
_POLL = (0.005, 0.25)


def is_learners(name: str) -> bool:
    """Whether only `learn` may call its worker so."""
    return re.fullmatch(rf"{LEARNER}( \d+)?", name) is not None


def check_may_wait(what: str, instead: str) -> None:
    """Raises ``InputError`` in a running event loop: everything that might end the wait would wait too.

    A notebook runs its cells in an event loop of its own, which nothing else needs, so a cell may wait.
    """
    asyncio = sys.modules.get("asyncio")  # it loads slowly, and no loop runs where nobody has loaded it
    frame = None if asyncio is None or asyncio._get_running_loop() is None else sys._getframe(1)
    while frame is not None:
        package = str(frame.f_globals.get("__name__")).partition(".")[0]
        if package in ("IPython", "ipykernel"):
            return
        if package == "asyncio" or frame.f_code.co_flags & inspect.CO_COROUTINE:
            raise InputError(f"{what} would hold up the running event loop: write {instead}")
        frame = frame.f_back


class LeaseStatus(Enum):
    """The state of a lease, as far as its worker knows. Only the study can tell whether its time is over."""

    HELD = "held"
    #: All its observations were told.
    USED = "used"
    #: The worker gave it back, or abandoned it.
    ENDED = "ended"


class Worker:
    """One worker of a study. It walks its own paths, one per chain, and renews its leases while it lives.

    ``for lease in worker: lease.tell(…)`` takes one lease after the other until the study is finished. Each tell but
    the first takes the next lease in the same append.
    """

    def __init__(
        self,
        keeper: Keeper,
        name: str,
        *,
        renews: bool = True,
        warns: bool = True,
        alone: bool = False,
        program: str = "",
    ) -> None:
        self._keeper = keeper
        self.name = name
        self._renews, self._warns = renews, warns
        self._walker = Walker(name, is_worker=True, opened=keeper.state().head.number, alone=alone)
        self._walker.program = program
        self._leases: set[Lease] = set()
        #: The lease that `__iter__` gave last takes the next one when it is told.
        self._next: Lease | None = None
        self._closed = False
        #: The event that wakes the renewing thread, and the seconds for which that thread sleeps.
        self._waking = threading.Event()
        self._pause = math.inf
        self._renewing: threading.Thread | None = None

    def lease(
        self,
        seconds: Duration = 60.0,
        *,
        steps: int = 1,
        at_once: bool = False,
        chain: str | None = None,
        wait: Duration | None = None,
        continuing: bool | Set[str] = False,
        without: Set[str] = frozenset(),
    ) -> "Lease | None":
        """A lease of the best chain, for ``steps`` observations; None when the study is finished.

        ``seconds``: how long the lease lasts if this worker dies. While it lives, it renews its leases by itself.
        ``at_once``: all steps are made before any of them is told, with `Lease.tell_walk`.
        ``chain``: the chain, whatever its place in the order.
        ``wait``: how long to wait for a free chain before ``NothingFree`` is raised; None: as long as it takes.
        ``continuing``: this worker's process stands where the latest path of its name was left, in ``lease.state``; or
        the names of the chains for which that is true.
        ``without``: chains that are left out.
        """
        if self._closed:
            raise InputError(f"the worker {self.name!r} was closed, and takes no leases any more")
        lasts = in_seconds(seconds, "seconds", meaning="how long the chain is held")
        steps = whole_number(steps, "steps", meaning="how many observations the lease is for", most=MOST_TRANSITIONS)
        if not isinstance(continuing, bool | Set):
            raise InputError(f"continuing must be True, False or a set of names of chains, not {shown(continuing)}")
        limit = None if wait is None else time.monotonic() + in_seconds(wait, "wait", meaning="seconds", zero=True)
        patience, pause = time.monotonic() + _PATIENCE, _POLL[0]
        while True:
            try:
                granted = self._keeper.do(
                    commands.lease, self._walker, int(lasts * 1000), steps=steps, at_once=at_once, chain=chain,
                    without=without, continuing=continuing,
                )  # fmt: skip
                return self._hold(granted)
            except StudyFinished:
                return None
            except (ConnectionLost, Cancelled):  # if a lease was granted after all, it expires by itself
                if time.monotonic() > patience:
                    raise
            except NothingFree:
                self._keeper.do(commands.expire)
                looked = self._keeper.settle()  # a look that is due may free a chain
                if limit is not None and time.monotonic() + pause > limit:
                    raise
                if self._renews and not looked:
                    self._check_others_work()
                check_may_wait("a worker that waits for a lease", "await asyncio.to_thread(worker.lease)")
            time.sleep(pause)
            pause = min(2 * pause, _POLL[1])

    def _check_others_work(self) -> None:
        """Raises ``Held`` if all leases are the worker's own, because it renews them and would wait for ever."""
        with self._keeper.lock():
            held = self._keeper.state().leases.values()
            alone = held and all(lease.worker == self._walker.number for lease in held)
        if alone:
            raise Held(f"the worker {self.name!r} has the only leases of the study: it must tell them, not wait")

    def __iter__(self) -> "Iterator[Lease]":
        """One lease after the other, until the study is finished.

        Who leaves the loop keeps the last lease: nobody says whether its step was made. ``close`` gives it back.
        """
        lease = self.lease()
        while lease is not None:
            lease._follows = True
            yield lease
            following, self._next = self._next, None
            lease = self.lease() if following is None else following

    def _hold(self, granted: commands.Granted) -> "Lease":
        """A lease that was granted. It is renewed from now on."""
        self._walker.number = granted.worker
        with self._keeper.lock():
            chain = self._keeper.state().chains[granted.chain]
            state = None if granted.last < 0 else labels.label(chain, granted.last)
            if self._warns and granted.steps == 0 and not self._walker.walks(chain):
                self._walker.warn_of_bare_paths(chain, granted.path)
        lease = Lease(self._keeper, self, chain.name, granted, state)
        self._leases.add(lease)
        if self._renews and self._renewing is None:
            reference = weakref.ref(self, lambda _, waking=self._waking: waking.set())  # type: ignore[misc]
            self._renewing = threading.Thread(
                target=_renew, args=(reference, self._waking), name=f"leases of {self.name}", daemon=True
            )
            self._renewing.start()
        self._hurry(lease.seconds)
        return lease

    def _hurry(self, seconds: float) -> None:
        """Wakes the renewing thread if it would sleep longer than a lease of ``seconds`` lasts."""
        if seconds / 4 < self._pause:
            self._waking.set()

    def _renew_due(self) -> float:
        """Renews every lease after half of its time. Returns the seconds until the next check."""
        for lease in tuple(self._leases):
            if lease.status is LeaseStatus.HELD and time.monotonic() > lease.renewed + lease.seconds / 2:
                # If the lease is lost, or the database is not reachable, the next tell will say so.
                with suppress(ChainscoutError):
                    lease.renew(lease.seconds)
        self._pause = min((lease.seconds for lease in tuple(self._leases)), default=60.0) / 4
        return self._pause

    def close(self) -> None:
        """Ends in good order: no step of its leases was made."""
        self._stop()
        for lease in tuple(self._leases):
            lease._is_over(LeaseStatus.ENDED)
        self._keeper.do(commands.give_back_all, self._walker.number)

    def _stop(self) -> None:
        self._closed = True
        self._waking.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
            return
        self._stop()
        for lease in tuple(self._leases):
            lease.__exit__(kind, error, trace)


def ending(*, lost: bool, due: bool) -> End:
    """Why a path ends whose process was started again."""
    if lost and due:
        raise InputError("a path that was due to end has lost no observation: say lost or due, not both")
    return End.LOST if lost else End.DUE if due else End.UNKNOWN


def _is_over(state: State, now: int, chain: int) -> bool:
    return state.chains[chain].done or stop.reason(state, now) is not None


def _renew(reference: "weakref.ref[Worker]", waking: threading.Event) -> None:
    """Renews the leases of a worker until it is closed or garbage-collected."""
    while (worker := reference()) is not None and not worker._closed:
        pause = worker._renew_due()
        del worker  # this thread must not keep the worker alive while it sleeps
        waking.wait(pause)
        waking.clear()


class Lease:
    """A worker's right to advance a path. It may be used from any thread."""

    def __init__(
        self, keeper: Keeper, worker: Worker, chain: str, granted: commands.Granted, state: Hashable | None
    ) -> None:
        self._keeper, self._worker = keeper, worker
        self.status = LeaseStatus.HELD
        self.chain = chain
        self._number = granted.chain
        #: The number of the path in its chain, and the state that it stands in; None: the next observation begins it.
        self.path = granted.path
        self.state = state
        #: The number of its entry in the journal: the proof that the path is held.
        self.token = granted.token
        #: The number of the next observation in its path, and how many can still be told.
        self.step = granted.steps + 1
        self.steps = granted.number
        #: How long it lasts, and when it was last renewed by this process's clock.
        self.seconds = granted.lasts / 1000
        self.renewed = time.monotonic()
        #: Whether its last tell takes the worker's next lease in the same append.
        self._follows = False

    def __repr__(self) -> str:
        return printable(f"Lease({', '.join(f'{name} {value}' for name, value in self._facts())})")

    def _repr_html_(self) -> str:
        """The lease as a table for a notebook."""
        names, values = zip(*self._facts(), strict=True)
        return html_table("Lease", names, [values])

    def _facts(self) -> list[tuple[str, str]]:
        state = "its beginning" if self.state is None else shown(self.state)
        return [
            ("of", shown(self.chain)), ("to", shown(self._worker.name)), ("path", str(self.path)), ("at", state),
            ("to tell", str(self.steps)), ("is", self.status.value),
        ]  # fmt: skip

    def tell(self, state: Hashable, *, ends: bool = False, late: bool = False, observations: int | None = None) -> None:
        """Tells one observation. It is durable on return. After a lost connection it is told again, but counted once.

        ``ends``: the path ends with it, because the process itself has ended.
        ``late``: also after the lease has run out. Then the state closes the gap that was left in the data, and the
        lease has ended.
        ``observations``: raises ``OutOfStep`` unless the chain has this many observations. A recording needs this
        check, because it gives each of its states once.
        """
        if self._follows and self.steps == 1 and not (ends or late):
            following = self.tell_and_lease(state, observations=observations)
            if isinstance(following, Lease):
                self._worker._next = following
            return
        self._check_held()
        told = self._patiently(
            commands.tell_leased, self.token, self.chain, state, path=self.path, step=self.step, ends=ends, late=late,
            observations=observations, recall=self._keeper.recall,
        )  # fmt: skip
        self._told(state, told)
        self._keeper.settle()
        if told.late:
            self._is_over(LeaseStatus.ENDED)

    def tell_and_lease(
        self, state: Hashable, *, continuing: bool | Set[str] = False, observations: int | None = None
    ) -> "Lease | Exception | None":
        """Tells one observation, and takes the worker's next lease in the same append.

        Returns the lease, or the error that says why there is none; None if that must be asked again.
        """
        self._check_held()
        try:
            told, following = self._patiently(
                commands.tell_and_lease, self._worker._walker, self.token, self.chain, state,
                int(self.seconds * 1000), path=self.path, step=self.step, continuing=continuing,
                observations=observations, recall=self._keeper.recall,
            )  # fmt: skip
        except LeaseLost:  # perhaps it was told before, and the answer was lost
            self._follows = False
            self.tell(state, observations=observations)
            return None
        self._told(state, told)
        if isinstance(following, commands.Granted):
            lease = self._worker._hold(following)
            if self._keeper.settle() and self._keeper.read(_is_over, lease._number):
                lease.give_back()  # the look that this tell made due says that no step is needed
                return None
            return lease
        looked = self._keeper.settle()
        return None if looked and isinstance(following, NothingFree) else following

    def tell_walk(self, states: Sequence[Hashable]) -> None:
        """Tells the next observations together, after all of them were made."""
        self._check_held()
        told = self._keeper.do(commands.tell_walk, self.token, self.chain, states, path=self.path)
        self.steps -= len(states) - 1
        self._told(states[-1], told)
        self._keeper.settle()

    def _patiently(self, command: Callable[..., Any], *given: Any, **options: Any) -> Any:
        patience = time.monotonic() + _PATIENCE
        while True:
            try:
                return self._keeper.do(command, *given, **options)
            except (ConnectionLost, Cancelled):
                if time.monotonic() > patience:
                    raise
                time.sleep(_POLL[0])

    def _told(self, state: Hashable, told: commands.Told) -> None:
        self.state, self.step = state, told.steps + 1
        self.steps -= 1
        self._worker._walker.remember(self._worker._walker.number, told.chain, told.path, told.steps)
        if self.steps == 0:
            self._is_over(LeaseStatus.USED)

    def _check_held(self) -> None:
        if self.status is not LeaseStatus.HELD:
            what = "its observations have been told" if self.status is LeaseStatus.USED else "it was given back"
            raise LeaseLost(f"the lease of the chain {self.chain!r} has ended: {what}")

    def restart(self, *, lost: bool = False, due: bool = False) -> None:
        """Ends the path: the next observation begins another one, under the same lease with a new token.

        The step that was asked for last is a hole, because it may have been made.
        ``lost``: an observation was lost with it. ``due``: the path ended by a rule that looks at this path alone.
        """
        end = ending(lost=lost, due=due)
        following = self._keeper.do(commands.end_path, self._worker._walker, self.chain, end, token=self.token)
        self.path, self.token, self.state, self.step = following.path, following.token, None, 1

    def renew(self, seconds: Duration = 60.0) -> None:
        """Holds the chain for ``seconds`` from now on."""
        held = in_seconds(seconds, "seconds", meaning="how long the chain is held")
        self._keeper.do(commands.renew, self.token, self.chain, int(held * 1000))
        self.seconds, self.renewed = held, time.monotonic()
        self._worker._hurry(held)

    def give_back(self) -> None:
        """Frees the chain: no further step was made. The worker's path stays where it is."""
        self._end(lost=False)

    def abandon(self) -> None:
        """Frees the chain as if the worker had died: the path ends, and an observation may be lost."""
        self._end(lost=True)

    def _end(self, lost: bool) -> None:
        if self.status is LeaseStatus.HELD:
            self._keeper.do(commands.give_back, self.token, self.chain, lost=lost)
            self.steps = 0
            self._is_over(LeaseStatus.ENDED)

    def _is_over(self, status: LeaseStatus) -> None:
        self.status = status
        self._worker._leases.discard(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._end(lost=kind is not None)
        except ChainscoutError:  # it ends by itself, and the original error says more
            if kind is None:
                raise
