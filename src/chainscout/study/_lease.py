"""Workers and their leases: a lease is a worker's right to advance a path of a chain for a while."""

import hashlib
import math
import secrets
import threading
import time
import weakref
from collections.abc import Callable, Hashable, Set
from contextlib import suppress
from enum import Enum
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self

from ..counts import MOST_TRANSITIONS
from ..errors import Cancelled, ChainscoutError, ConnectionLost, Held, InputError, LeaseLost, NothingFree, StudyFinished
from ..markup import html_table
from ..store import ChainRecord, PathRecord, Transaction
from ..validation import Duration, printable, shown, whole_number
from ..validation import seconds as in_seconds
from . import _budget, _selection, _stop, _transitions
from ._index import LiveIndex
from ._program import is_gone
from ._transitions import Walker
from .views import EventKind

if TYPE_CHECKING:
    from .study import Study

#: Seconds for which an observation is told again and again to a database that is not reachable.
PATIENCE = 30.0
#: Seconds between two searches for a free chain: at first, and at most.
POLL = (0.005, 0.25)


class Worker:
    """One worker of a study. It walks its own paths, one per chain, and renews its leases while it lives.

    A worker never continues another worker's path: each worker has its own processes, one per chain. So it holds a
    chain only once at a time. Threads with their own processes need their own workers. (In a study with shared paths,
    a chain is one process, and the next holder continues a path that was given back.)
    """

    def __init__(
        self,
        study: "Study",
        name: str,
        renews: bool = True,
        warns: bool = True,
        alone: bool = False,
        mark: str = "",
    ) -> None:
        self._study = study
        self.name = name
        #: The end of its leases' tokens, which says which program it belongs to (`_program`).
        self.mark = mark
        self._renews = renews
        self._walker = Walker(name, warns=warns, alone=alone)
        self._leases: set[Lease] = set()
        #: Whether it is closed; the event that wakes the renewing thread; and the seconds for which that thread sleeps.
        self._closed = False
        self._waking = threading.Event()
        self._pause = math.inf
        self._renewing: threading.Thread | None = None

    def lease(
        self,
        seconds: Duration = 60.0,
        *,
        steps: int = 1,
        wait: Duration | None = None,
        continuing: bool | Set[str] = False,
        without: Set[str] = frozenset(),
    ) -> "Lease | None":
        """A lease of the best chain, for ``steps`` observations; None when the study is finished.

        ``seconds``: how long the lease lasts if this worker dies. While it lives, it renews its leases by itself.
        ``wait``: how long to wait for a free chain before ``NothingFree`` is raised; None: as long as it takes.
        ``continuing``: this worker's process stands where the latest path of its name was left, in ``lease.state``; or
        the names of the chains for which that is true.
        ``without``: chains that are excluded.
        """
        if self._closed:
            raise InputError(f"the worker {self.name!r} was closed, and takes no leases any more")
        held = in_seconds(seconds, "seconds", meaning="how long the chain is held")
        steps = whole_number(steps, "steps", meaning="how many observations the lease is for", most=MOST_TRANSITIONS)
        if not isinstance(continuing, bool | Set):
            raise InputError(f"continuing must be True, False or a set of names of chains, not {shown(continuing)}")
        limit = None if wait is None else time.monotonic() + in_seconds(wait, "wait", meaning="seconds", zero=True)
        patience = time.monotonic() + PATIENCE
        pause = POLL[0]
        while True:
            try:
                lease = grant_in(self._study, Wanted(self, held, steps, continuing, without))
                break
            except StudyFinished:
                return None
            except (ConnectionLost, Cancelled):  # if a lease was granted after all, it expires by itself
                if time.monotonic() > patience:
                    raise
                time.sleep(POLL[0])
            except NothingFree:
                if limit is not None and time.monotonic() + pause > limit:
                    raise
                time.sleep(pause)
                pause = min(2 * pause, POLL[1])
        self._hold(lease)
        return lease

    def _hold(self, lease: "Lease") -> None:
        """Notes a lease that was granted, and renews it from now on."""
        self._leases.add(lease)
        if self._renews and self._renewing is None:
            reference = weakref.ref(self, lambda _, waking=self._waking: waking.set())  # type: ignore[misc]
            self._renewing = threading.Thread(
                target=_renew, args=(reference, self._waking), name=f"leases of {self.name}", daemon=True
            )
            self._renewing.start()
        self._hurry(lease.seconds)

    def _hurry(self, seconds: float) -> None:
        """Wakes the renewing thread if it would sleep longer than a lease of ``seconds`` lasts."""
        if seconds / 4 < self._pause:
            self._waking.set()

    def _stop(self) -> None:
        """Ends the renewing thread."""
        self._closed = True
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
        """Gives back all leases, and stops renewing."""
        self._stop()
        for lease in tuple(self._leases):
            with suppress(LeaseLost):  # the lease has already ended
                lease.give_back()

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


def _renew(reference: "weakref.ref[Worker]", waking: threading.Event) -> None:
    """Renews the leases of a worker until it is closed or garbage-collected."""
    while (worker := reference()) is not None and not worker._closed:
        pause = worker._renew_due()
        del worker  # this thread must not keep the worker alive while it sleeps
        waking.wait(pause)
        waking.clear()


class LeaseStatus(Enum):
    """The state of a lease, as far as its worker knows. Only the study can tell whether its time is over."""

    HELD = "held"
    #: All its observations were told.
    USED = "used"
    #: The worker gave it back, or abandoned it.
    ENDED = "ended"


class Lease:
    """A worker's right to advance a path. It ends when its observations are told, or it is given back or expires."""

    def __init__(
        self,
        study: "Study",
        worker: Worker | None,
        chain: str,
        path: PathRecord,
        state: Hashable | None,
        seconds: float,
    ) -> None:
        assert path.token is not None
        self._study, self._worker = study, worker
        self.status = LeaseStatus.HELD
        self.chain = chain
        self._number = path.chain
        #: The number of the path in its chain, and the state that it stands in; None: the next observation begins it.
        self.path = path.number
        self.state = state
        #: The proof that the path is held.
        self.token = path.token
        #: The number of the next observation in its path.
        self.step = path.steps + 1
        #: Observations that can still be told.
        self.steps = path.promised
        #: How long it lasts, and when it was last renewed by this process's clock.
        self.seconds = seconds
        self.renewed = time.monotonic()

    def __repr__(self) -> str:
        return printable(f"Lease({', '.join(f'{name} {value}' for name, value in self._facts())})")

    def _repr_html_(self) -> str:
        """The lease as a table for a notebook."""
        names, values = zip(*self._facts(), strict=True)
        return html_table("Lease", names, [values])

    def _facts(self) -> list[tuple[str, str]]:
        worker = "nobody here" if self._worker is None else shown(self._worker.name)
        state = "its beginning" if self.state is None else shown(self.state)
        return [
            ("of", shown(self.chain)), ("to", worker), ("path", str(self.path)), ("at", state),
            ("to tell", str(self.steps)), ("is", self.status.value),
        ]  # fmt: skip

    def tell(self, state: Hashable, *, observations: int | None = None) -> None:
        """Tells one observation. It is durable on return. After a lost connection it is told again, but counted once.

        ``observations``: raises ``OutOfStep`` unless the chain has this many observations. A recording needs this
        check, because it gives each of its states once.
        """
        self._tell(state, observations, None)

    def tell_and_lease(
        self, state: Hashable, *, continuing: bool | Set[str] = False, observations: int | None = None
    ) -> "Granted | None":
        """Tells one observation, and takes the worker's next lease in the same transaction.

        Returns the lease, or the error that says why there is none; None if that must be asked again.
        """
        assert self._worker is not None
        granted = self._tell(state, observations, Wanted(self._worker, self.seconds, 1, continuing, frozenset()))
        if isinstance(granted, Lease):
            self._worker._hold(granted)
        return granted

    def _tell(self, state: Hashable, observations: int | None, wanted: "Wanted | None") -> "Granted | None":
        """``wanted``: the lease that is granted in the same transaction."""
        found: list[Granted] = []

        def then(transaction: Transaction, path: PathRecord) -> None:
            assert wanted is not None
            wanted.worker._walker.remember(self.chain, path)  # the lease may be of this path again
            found[:] = [granted(self._study, transaction, wanted)]

        if self.status is not LeaseStatus.HELD:
            what = "its observations have been told" if self.status is LeaseStatus.USED else "it was given back"
            raise LeaseLost(f"the lease of the chain {self.chain!r} has ended: {what}")
        patience = time.monotonic() + PATIENCE
        while True:
            try:
                given = self.chain, state, self.path, self.step, self.token
                after = None if wanted is None else then
                with self._study._lock:
                    told, _ = self._study._tell(*given, observations=observations, then=after)
                break
            except (ConnectionLost, Cancelled):
                if time.monotonic() > patience:
                    raise
                time.sleep(POLL[0])
        if self._worker is not None:
            self._worker._walker.remember(self.chain, told)
        self.state = state
        self.step += 1
        self.steps -= 1
        if self.steps == 0:
            self._is_over(LeaseStatus.USED)
        return found[0] if found else None

    def restart(self, lost: bool = False) -> None:
        """Ends the path: the next observation begins another path. ``lost``: an observation was lost with it."""
        following = self._study._restart(self.chain, self.token, lost)
        assert following is not None
        self.path, self.state, self.step = following.number, None, 1

    def renew(self, seconds: Duration = 60.0) -> None:
        """Holds the chain for ``seconds`` from now on."""
        held = in_seconds(seconds, "seconds", meaning="how long the chain is held")
        self._study.renew(self.chain, self.token, held)
        self.seconds, self.renewed = held, time.monotonic()
        if self._worker is not None:
            self._worker._hurry(held)

    def give_back(self) -> None:
        """Frees the chain. The worker's path stays where it is."""
        self._end(lost=False)

    def abandon(self) -> None:
        """Frees the chain as if the worker had died: the path ends, and an observation may be lost."""
        self._end(lost=True)

    def _end(self, lost: bool) -> None:
        if self.status is LeaseStatus.HELD:
            self._study.give_back(self.chain, self.token, lost=lost)
            self.steps = 0
            self._is_over(LeaseStatus.ENDED)

    def _is_over(self, status: LeaseStatus) -> None:
        self.status = status
        if self._worker is not None:
            self._worker._leases.discard(self)
            tokens = self._worker._walker.tokens
            if tokens.get(self._number) == self.token:  # and not that of the next lease of the chain
                del tokens[self._number]

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


# -- leases in a transaction

#: What is done in the transaction of a tell, after it: the lease that comes next.
Then = Callable[[Transaction, PathRecord], None]
#: A lease, or the error that says why there is none.
Granted = Lease | StudyFinished | NothingFree | Held


class Wanted(NamedTuple):
    """The lease that a worker wants."""

    worker: Worker
    seconds: float
    steps: int
    continuing: bool | Set[str]
    without: Set[str]


def grant_in(study: "Study", wanted: Wanted) -> Lease:
    """A lease of the best chain. Raises ``StudyFinished``, ``NothingFree`` or ``Held`` if there is none."""
    with study._lock, study._store.writing() as transaction:
        found = granted(study, transaction, wanted)
    if isinstance(found, Lease):
        return found
    raise found


def granted(study: "Study", transaction: Transaction, wanted: Wanted) -> Granted:
    """A lease of the best chain, or why there is none. Expired leases end and stops are recorded in any case."""
    live, worker, continuing = study._live(transaction.study), wanted.worker, wanted.continuing
    walker = worker._walker
    sweep(transaction, live)
    study._settle(transaction, live)
    excluded = frozenset(study._find(transaction, name).number for name in wanted.without)
    try:
        chain, affordable = choose(transaction, live, walker, wanted.steps, excluded, bool(continuing))
    except (StudyFinished, NothingFree, Held) as error:
        return error
    stays = continuing if isinstance(continuing, bool) else chain.name in continuing
    path = path_for(transaction, chain, walker, stays)
    token = secrets.token_hex(16) + worker.mark
    grant(transaction, live, chain, path, token, wanted.seconds, affordable)
    walker.note(chain)
    walker.tokens[chain.number] = token
    state = None if path.last is None else study._labels.label(transaction, chain, path.last)
    return Lease(study, worker, chain.name, path, state, wanted.seconds)


def choose(
    transaction: Transaction, live: LiveIndex, walker: Walker, steps: int, without: Set[int], continuing: bool
) -> tuple[ChainRecord, int]:
    """The chain for a worker, and how many of its ``steps`` the budget pays for.

    Raises ``StudyFinished`` or ``NothingFree`` if there is none, and ``Held`` if the worker itself holds the free
    chain.
    """
    _stop.check_going(transaction)
    own = []
    while (chain := _selection.preferred(transaction, live, walker, without, continuing)) is not None:
        if not walker.holds(transaction, chain):
            break
        without = without | {chain.number}  # a worker has one process per chain
        own.append(chain.name)
    if chain is None and own:
        raise Held(f"the worker {walker.name!r} holds the chain {own[0]!r} already, and has one process a chain")
    affordable = 0 if chain is None else int(min(steps, _budget.remaining(transaction) / chain.cost))
    if chain is None or affordable < 1:
        raise _stop.nothing_free(transaction, len(without))
    if first := _selection.ahead(transaction, live, chain, without):
        named = ", ".join(repr(other.name) for other in first[: _budget.MOST_NAMED])
        if all(walker.holds(transaction, other) for other in first):
            raise Held(
                f"the worker {walker.name!r} holds {named}, which come first: it must tell them before {chain.name!r}"
            )
        come, are = ("comes", "is") if len(first) == 1 else ("come", "are")
        raise NothingFree(f"nothing is free: {named} {come} before {chain.name!r}, and {are} at work")
    return chain, affordable


def path_for(transaction: Transaction, chain: ChainRecord, walker: Walker, continuing: bool) -> PathRecord:
    """The path that a worker continues under a lease, or a new one."""
    if transaction.study.shared:  # the chain's only process is where its last holder gave it back
        path = transaction.path(chain, chain.paths)
        if path is not None and not path.ended:
            path.worker = walker.name
            return path
    else:
        path = walker.path(transaction, chain)
        if path is None and continuing and not walker.walks(chain):
            path = transaction.open_path(chain, walker.name)
        if path is not None and path.token is None:
            return path
        if walker.warns:
            _transitions.warn_of_bare_paths(transaction, chain, walker)
    return _transitions.begin(transaction, chain, walker.name)


def grant(
    transaction: Transaction,
    live: LiveIndex,
    chain: ChainRecord,
    path: PathRecord,
    token: str,
    seconds: float,
    steps: int,
) -> None:
    """Grants a path of the chain to its worker, for ``steps`` observations within ``seconds``."""
    study = transaction.study
    study.side_by_side = study.side_by_side or chain.leases > 0
    path.token, path.expires, path.promised = token, transaction.now + seconds, steps
    _transitions.issue(transaction, path)
    chain.leases += 1
    chain.pending += steps
    chain.blocked = study.shared
    study.leases += 1
    study.reserved += steps * chain.cost
    live.reindex(chain)
    transaction.save(chain)
    transaction.save_path(path)


def move(transaction: Transaction, chain: ChainRecord, path: PathRecord) -> PathRecord:
    """Ends the path of a lease, and moves the lease to a new path of the same worker."""
    held = path.token, path.expires, path.promised
    path.token, path.expires, path.promised = None, None, 0
    _transitions.end(transaction, chain, path)
    following = _transitions.begin(transaction, chain, path.worker)
    following.token, following.expires, following.promised = held
    _transitions.issue(transaction, following)
    transaction.save_path(following)
    transaction.save(chain)
    return following


def _teller(token: str) -> int:
    """The number that is stored with an observation told under a lease."""
    digest = hashlib.blake2b(token.encode(errors="replace"), digest_size=8).digest()
    return 1 + (int.from_bytes(digest) >> 2)


def path_to_tell(
    transaction: Transaction, chain: ChainRecord, number: int | None, step: int | None, state: int | None, token: str
) -> tuple[PathRecord, bool]:
    """The path that a token's holder walks, and whether this same observation was told under the token before.

    Raises ``LeaseLost`` if the lease has ended, or if the observation was told under another one.
    """
    path = None if number is None else transaction.path(chain, number)
    if path is None or not _has_told(transaction, path, step, token):
        path = held_path(transaction, chain, token, number)
    repeated = _transitions.is_repeated(transaction, chain, path, step, state)
    if repeated and not _has_told(transaction, path, step, token):
        what = f"observation {step} of path {path.number} of the chain {chain.name!r}"
        raise LeaseLost(f"{what} was told before, under another lease: nothing was changed")
    return path, repeated


def _has_told(transaction: Transaction, path: PathRecord, step: int | None, token: str) -> bool:
    """Whether this observation of the path was told under this token."""
    if step is None or step > path.steps:
        return False
    return _transitions.teller_of(transaction, path, step) == _teller(token)


def leave(
    transaction: Transaction,
    live: LiveIndex,
    chain: ChainRecord,
    walker: Walker,
    token: str | None,
    lost: bool = False,
) -> PathRecord | None:
    """Ends the path of a process that was started again. Returns the next path of the lease; None without a lease."""
    transaction.study.lost += bool(lost)
    if token is None:
        sweep(transaction, live)
        check_not_held(transaction, chain)
        path = _transitions.left_path(transaction, chain, walker)
    else:
        path = held_path(transaction, chain, token)
    if path is None:
        if lost:
            transaction.happened(EventKind.OBSERVATION_LOST.value, chain)
        return None
    detail = _transitions.next_draw(transaction, path)
    transaction.happened(EventKind.PATH_ENDED.value, chain, **detail, lost=bool(lost))
    if token is not None:
        return move(transaction, chain, path)
    _transitions.end(transaction, chain, path)
    return None


def spend(transaction: Transaction, chain: ChainRecord, path: PathRecord) -> None:
    """Subtracts one observation from the lease, before it is counted."""
    path.promised -= 1
    path.teller = _teller(path.token or "")
    chain.pending -= 1
    transaction.study.reserved -= chain.cost


def free(transaction: Transaction, live: LiveIndex, chain: ChainRecord, path: PathRecord) -> None:
    """Ends the lease. Its unused part goes back to the budget."""
    study = transaction.study
    study.leases -= 1
    study.reserved -= path.promised * chain.cost
    if study.leases == 0:
        study.reserved = 0.0  # removes rounding errors of the sums of costs
    chain.leases -= 1
    chain.pending -= path.promised
    chain.blocked = False
    live.reindex(chain)
    path.token = path.expires = None
    path.promised = path.issued = 0
    transaction.save(chain)
    transaction.save_path(path)


def lapse(
    transaction: Transaction, live: LiveIndex, path: PathRecord, kind: EventKind = EventKind.LEASE_EXPIRED
) -> None:
    """Ends the lease of a worker that is gone, and its path. The worker's last observation may be lost."""
    chain = transaction.numbered(path.chain)
    _note(transaction, kind, chain, path)
    free(transaction, live, chain, path)
    transaction.study.lost += 1
    _transitions.end(transaction, chain, path)


def give_back(transaction: Transaction, live: LiveIndex, chain: ChainRecord, path: PathRecord) -> None:
    """Ends the lease of a worker that makes no further observation. The path stays where it is."""
    _note(transaction, EventKind.LEASE_GIVEN_BACK, chain, path)
    free(transaction, live, chain, path)


def give_up_old(transaction: Transaction, live: LiveIndex, repeating: Set[str]) -> None:
    """Ends the leases of programs that are gone, as those programs would have if they had not been killed.

    ``repeating``: the chains whose sources give the same state again, so that nothing is lost.
    """
    for path in transaction.held():
        if is_gone(path.token or ""):
            chain = transaction.numbered(path.chain)
            if chain.name in repeating:
                give_back(transaction, live, chain, path)
            else:
                lapse(transaction, live, path, EventKind.LEASE_ABANDONED)


def _note(transaction: Transaction, kind: EventKind, chain: ChainRecord, path: PathRecord) -> None:
    """Records the end of a draw that was issued but not told."""
    transaction.happened(kind.value, chain, **_transitions.next_draw(transaction, path))


def sweep(transaction: Transaction, live: LiveIndex) -> None:
    """Ends every expired lease."""
    if transaction.study.leases == 0:
        return
    for path in transaction.held(until=transaction.now):
        lapse(transaction, live, path)


def check_plain(transaction: Transaction, chain: ChainRecord) -> None:
    """Raises ``Held`` if the chain is one shared process: a plain tell cannot know that nobody else moved it."""
    if transaction.study.shared:
        raise Held(
            f"the chain {chain.name!r} is one process that workers share (paths='shared'), and only the holder of a "
            "lease can say where it is: take one with worker.lease() or 'ask --lease WORKER', and tell under it"
        )


def check_not_held(transaction: Transaction, chain: ChainRecord) -> None:
    """Raises ``Held`` if the chain is one process and a worker holds it. The caller has ended expired leases."""
    if chain.blocked:
        worker = next(path.worker for path in transaction.held() if path.chain == chain.number)
        raise Held(f"the chain {chain.name!r} is held by {worker!r}: only its lease can advance it")


def held_path(transaction: Transaction, chain: ChainRecord, token: str, number: int | None = None) -> PathRecord:
    """The path that the holder of this token walks. Raises ``LeaseLost`` if the lease has ended or expired."""
    paths = transaction.held() if number is None else [transaction.path(chain, number)]
    for path in paths:
        if path is not None and path.chain == chain.number and path.token == token:
            if path.expires is not None and path.expires <= transaction.now:
                late = transaction.now - path.expires
                what = f"the lease of the chain {chain.name!r} ran out {late:.3g} seconds ago"
                raise LeaseLost(f"{what}: nothing was changed")
            return path
    raise LeaseLost(f"the lease of the chain {chain.name!r} has ended, if there was one: nothing was changed")
