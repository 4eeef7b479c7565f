"""A live, durable study: one budget, many chains, one worker or many."""

import secrets
import threading
import time
import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import TracebackType
from typing import Any, Self, overload

from ..certificates import Estimate
from ..certificates.open_states import OpenEstimate
from ..counts import Counts
from ..errors import ConnectionLost, InputError, NothingFree, RecomputedWarning, StudyFinished
from ..policies import Policy
from ..store import ChainRecord, Store, StudyRecord, Transaction, Where, find, make
from ..validation import did_you_mean, real_number, shown, unicode_text, whole_number
from . import _audit, _budget, _certificate, _selection, _transitions, lease, settings, stop
from ._certificate import StudyCertificate
from ._index import AbsentPolicy, LiveIndex, not_built_in, stored_policy
from ._labels import Labels
from .lease import Lease
from .settings import StudySettings
from .stop import StopReason
from .views import ChainProgress, EventKind, EventLine, LogLine, Progress, view_of

__all__ = ["Study"]

#: Seconds between two looks for a free chain, at first and at most.
POLL = (0.005, 0.25)
#: Lines of the log that are read at a time.
PAGE = 1000
#: A name that no chain has is compared with those of at most so many chains.
MOST_COMPARED = 1000


class Study:
    """One budget, many chains. ``create`` makes a study, ``open`` goes on with one; several workers can share it.

    Every method may be called from any thread. What changes the study is durable before the method returns, and a
    method that raises has changed nothing.
    """

    # -- beginning, opening, ending

    def __init__(self, store: Store, policy: Policy) -> None:
        """Use ``create`` or ``open``."""
        self._store = store
        self._policy = policy
        self._labels = Labels()
        self._lock = threading.RLock()
        # A rule may need other functions when no end is in sight, and a budget can be added while the study is open.
        self._with_budget, self._without_budget = (LiveIndex(policy.facing(end)) for end in (1, None))

    @classmethod
    def create(
        cls,
        where: Where,
        chains: Mapping[str, int | Sequence[Hashable]],
        budget: float | None = None,
        policy: str | Policy | None = None,
        delta: float | None = None,
        *,
        target_loss: float | None = None,
        deadline: Any = None,
        weights: Mapping[str, float] | None = None,
        costs: Mapping[str, float] | None = None,
        on_lost_lease: str | None = None,
        open_states: bool | Sequence[str] | None = None,
        warm_start: Mapping[str, Counts] | None = None,
    ) -> Self:
        """A new study.

        ``where``: a path (SQLite), a postgresql:// address, or None (in memory).
        ``chains``: name → how many states there are, or their labels.
        The other parameters are the fields of ``StudySettings``, with their defaults.
        """
        given = StudySettings(
            budget=budget,
            policy=policy,
            delta=delta,
            target_loss=target_loss,
            deadline=deadline,
            weights=weights,
            costs=costs,
            on_lost_lease=on_lost_lease,
            open_states=open_states,
            warm_start=warm_start,
        ).checked()
        rule = given.policy
        assert isinstance(rule, Policy)
        study = cls(make(where, settings.new_content(chains, given)), rule)
        with study._store.writing() as transaction:
            transaction.happened(EventKind.CREATED.value, policy=rule.name)
            if given.target_loss is not None:
                _certificate.refresh_all(transaction)
        return study

    @classmethod
    def open(cls, where: Where, policy: str | Policy | None = None, *, read_only: bool = False) -> Self:
        """The study that exists at ``where``.

        ``policy``: needed if the study's policy is not built in; it must be the one that the study was created with.
        ``read_only``: the study cannot be changed through this object; a policy that is not built in may be left out.
        """
        store = find(where, read_only)
        try:
            with store.reading() as transaction:
                stored = transaction.study
            rule, changed = stored_policy(stored, policy, read_only)
            store.floor = rule.floor is not None
            study = cls(store, rule)
            if changed and not read_only:
                study._recompute()
        except BaseException:
            store.close()
            raise
        return study

    def close(self) -> None:
        """Gives up the connection to the database. The study can be opened again."""
        with self._lock:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def extend(self, *, budget: float | None = None, target_loss: float | None = None, deadline: Any = None) -> None:
        """Gives the study another budget (the whole, not what is added), target or deadline. A finished one goes on."""
        given = StudySettings(budget=budget, target_loss=target_loss, deadline=deadline)
        if not given.given():
            raise InputError("a study is extended by a budget, a target loss or a deadline, and none was given")
        target, end = given.checked().target_loss, given.checked().deadline
        with self._lock, self._store.writing() as transaction:
            study = transaction.study
            limit = _budget.checked_budget(budget, priced=(study.least_cost, study.largest_cost) != (1.0, 1.0))
            _budget.check_affordable(limit, study.least_cost)
            if limit is not None:
                _budget.check_lowered(transaction, limit)
            study.stop_reason = None
            if end is not None:
                study.deadline = end
            if target is not None:
                study.target_loss = target
                _certificate.refresh_all(transaction)
            if limit is not None:
                endless, study.budget = study.budget is None, limit
                self._renew(transaction, always=endless)
            transaction.happened(
                EventKind.EXTENDED.value, budget=study.budget, target_loss=study.target_loss, deadline=study.deadline
            )
            stop.settle(transaction, self._live(study))

    def _renew(self, transaction: Transaction, *, always: bool) -> None:
        """Computes constants again, because they may depend on the budget; and indices, where constants changed."""
        live = self._live(transaction.study)
        for chain in transaction.every():
            fresh = live.constants(transaction.study, chain)
            if always or fresh != chain.constants:
                chain.constants = fresh
                rows = transaction.rows(chain)
                live.begin(chain, rows)
                for position, row in rows.items():
                    transaction.save_row(chain, position, row)
                transaction.save(chain)

    def _recompute(self) -> None:
        """Computes all indices again, because the built-in rule has changed since the study was last open."""
        policy = self._policy
        with self._store.writing() as transaction:
            study = transaction.study
            old, study.version = study.version, policy.version
            self._renew(transaction, always=True)
            transaction.happened(EventKind.RECOMPUTED.value, policy=policy.name, old=old, new=policy.version)
        warnings.warn(
            f"the rule {policy.name!r} has changed from version {old} to {policy.version} since this study was last "
            "open: its indices were computed anew",
            RecomputedWarning,
            stacklevel=3,
        )

    def _live(self, study: StudyRecord) -> LiveIndex:
        return self._without_budget if study.budget is None else self._with_budget

    def _find(self, transaction: Transaction, name: str) -> ChainRecord:
        chain = transaction.chain(name) if isinstance(name, str) else None
        if chain is None:
            few = transaction.study.chains <= MOST_COMPARED
            hint = did_you_mean(name, (known.name for known in transaction.every())) if few else ""
            raise InputError(
                f"the study has no chain {shown(name)}{hint}; chains cannot be added, because delta is split "
                "over those there are"
            )
        return chain

    # -- asking and telling

    @overload
    def ask(self) -> str: ...

    @overload
    def ask(self, number: int) -> list[str]: ...

    def ask(self, number: int | None = None) -> str | list[str]:
        """The chain to advance next, or the next ``number`` of them. Pure: asking twice gives the same answer."""
        if number is not None:
            number = whole_number(number, "number", meaning="how many observations are to be made")
        if not self.knows_policy:
            raise not_built_in(self._policy.name)
        with self._lock, self._store.reading() as transaction:
            stop.check_going(transaction)
            live = self._live(transaction.study)
            if number is None:
                chain = _selection.first(transaction, live)
                if chain is None or chain.cost > _budget.remaining(transaction):
                    raise stop.nothing_free(transaction)
                return chain.name
            chosen = _selection.batch(transaction, live, number)
            if not chosen:
                raise stop.nothing_free(transaction)
            return [chain.name for chain in chosen]

    def tell(self, chain: str, state: Hashable, step: int | None = None, *, token: str | None = None) -> None:
        """Adds one observation: the state that ``chain`` is in now. It is durable before this returns.

        ``step``: the observation's number in its chain, from 1. The same observation again changes nothing, another
        state at a step that was told is an error.
        ``token``: of the lease under which the chain is held.
        """
        with self._lock, self._store.writing() as transaction:
            record = self._find(transaction, chain)
            position = self._labels.position(transaction, record, state)
            if step is not None:
                step = whole_number(step, "step", meaning="the observation's number in its chain")
                if _transitions.is_repeated(transaction, record, step, position):
                    return
            if token is None:
                self._check_not_stopped(transaction.study)
            if token is not None or record.token is not None:
                lease.check_holder(transaction, record, token)
            if token is None:  # what a holder tells was promised
                _budget.check_price(transaction, record.cost, "the observation")
            if position is None:
                position = self._labels.discover(transaction, record, state)
            live = self._live(transaction.study)
            _transitions.observe(transaction, live, record, position)
            if token is not None:
                lease.spend(transaction, record)
            stop.settle(transaction, live, (record,))

    def tell_many(self, observations: Iterable[tuple[str, Hashable]]) -> None:
        """Adds observations in order, (chain, state) each: all of them, or none."""
        pairs = _pairs(observations)
        with self._lock, self._store.writing() as transaction:
            live = self._live(transaction.study)
            moved: dict[int, ChainRecord] = {}
            for chain, state, position in self._checked(transaction, pairs):
                if position is None:
                    position = self._labels.position(transaction, chain, state)  # a state can be new twice in a batch
                if position is None:
                    position = self._labels.discover(transaction, chain, state)
                _transitions.observe(transaction, live, chain, position)
                moved[chain.number] = chain
            stop.settle(transaction, live, moved.values())

    def _checked(
        self, transaction: Transaction, pairs: list[tuple[str, Hashable]]
    ) -> list[tuple[ChainRecord, Hashable, int | None]]:
        """A batch with the positions of the states that are known. What the batch needs is read together."""
        self._check_not_stopped(transaction.study)
        transaction.expect({name: None for name, _ in pairs if isinstance(name, str)})
        found: list[tuple[ChainRecord, Hashable, int | None]] = []
        chains: dict[str, ChainRecord] = {}
        last: dict[int, int | None] = {}
        rows: dict[tuple[int, int], None] = {}
        price = 0.0
        for name, state in pairs:
            chain = chains.get(name) if isinstance(name, str) else None
            if chain is None:
                chain = chains[name] = self._find(transaction, name)
                lease.check_holder(transaction, chain, None)
                last[chain.number] = chain.last
            position = self._labels.position(transaction, chain, state)
            x = last[chain.number]
            if x is not None:
                rows[chain.number, x] = None
            last[chain.number] = position
            price += chain.cost
            found.append((chain, state, position))
        _budget.check_price(transaction, price, "the batch")
        transaction.expect_rows(rows)
        return found

    def _check_not_stopped(self, study: StudyRecord) -> None:
        """Refuses to add to a study that was stopped. A deadline that has passed stops who asks, not who tells."""
        if study.stop_reason is not None:
            raise stop.finished(StopReason(study.stop_reason))

    def restart(self, chain: str, *, lost: bool = False, token: str | None = None) -> None:
        """Begins a new segment: no transition is counted from the last state of the chain to the next one told.

        ``lost``: an observation was lost with the old segment; the certificate will say so.
        """
        with self._lock, self._store.writing() as transaction:
            record = self._find(transaction, chain)
            lease.check_holder(transaction, record, token)
            transaction.happened(EventKind.RESTARTED.value, record, lost=bool(lost))
            transaction.study.lost += bool(lost)
            _transitions.restart(transaction, record)
            stop.settle(transaction, self._live(transaction.study))

    def lose(self, chain: str) -> None:
        """Notes that an observation was made and can never be told, because others advanced or hold the chain.

        Their path goes on; the certificate will say that an observation was lost.
        """
        with self._lock, self._store.writing() as transaction:
            transaction.happened(EventKind.OBSERVATION_LOST.value, self._find(transaction, chain))
            transaction.study.lost += 1

    def set_aside(self, chain: str, reason: str, *, token: str | None = None) -> None:
        """Asks for the chain no more: its source has ended, or does not work. The certificate will say so."""
        with self._lock, self._store.writing() as transaction:
            record = self._find(transaction, chain)
            lease.check_holder(transaction, record, token)
            _transitions.set_aside(transaction, record, str(reason))
            stop.settle(transaction, self._live(transaction.study))

    # -- leases

    def lease(self, worker: str, seconds: float = 60.0, *, steps: int = 1, wait: float | None = None) -> Lease:
        """The best chain that nobody holds, for ``steps`` observations within ``seconds``.

        ``wait``: seconds to wait for a chain to become free; None: until there is one or the study is finished.
        """
        if not isinstance(worker, str) or not worker:
            raise InputError(f"a worker's name must be a string that is not empty, not {shown(worker)}")
        unicode_text(worker, "a worker's name")
        real_number(seconds, "seconds", above=0.0, meaning="how long the chain is held")
        steps = whole_number(steps, "steps", meaning="how many observations the lease is for")
        end = None if wait is None else time.monotonic() + real_number(wait, "wait", least=0.0, meaning="seconds")
        patience = time.monotonic() + lease.PATIENCE
        pause = POLL[0]
        while True:
            try:
                return self._lease(worker, seconds, steps)
            except ConnectionLost:  # a lease that was granted without our knowledge expires by itself
                if time.monotonic() > patience:
                    raise
            except NothingFree:
                if end is not None and time.monotonic() + pause > end:
                    raise
                time.sleep(pause)
                pause = min(2 * pause, POLL[1])

    def _lease(self, worker: str, seconds: float, steps: int) -> Lease:
        with self._lock, self._store.writing() as transaction:
            live = self._live(transaction.study)
            # Expired leases end and stops are recorded even if there is nothing to give.
            lease.sweep(transaction)
            stop.settle(transaction, live)
            try:
                stop.check_going(transaction)
                chain = _selection.first(transaction, live)
                affordable = 0 if chain is None else int(min(steps, _budget.remaining(transaction) / chain.cost))
                if chain is None or affordable < 1:
                    raise stop.nothing_free(transaction)
            except (StudyFinished, NothingFree) as error:
                refusal: Exception = error
            else:
                token = secrets.token_hex(16)
                lease.grant(transaction, chain, worker, token, seconds, affordable)
                return Lease(self, chain.name, token, chain.observations + 1, affordable, chain.last is None)
        raise refusal

    def renew(self, chain: str, token: str, seconds: float = 60.0) -> None:
        """Holds a leased chain for ``seconds`` from now on."""
        real_number(seconds, "seconds", above=0.0, meaning="how long the chain is held")
        with self._lock, self._store.writing() as transaction:
            record = self._find(transaction, chain)
            lease.check_holder(transaction, record, token)
            record.expires = transaction.now + seconds
            transaction.save(record)

    def give_back(self, chain: str, token: str, *, lost: bool = False) -> None:
        """Ends a lease. ``lost``: its worker cannot go on, as when a lease expires."""
        with self._lock, self._store.writing() as transaction:
            record = self._find(transaction, chain)
            lease.check_holder(transaction, record, token)
            if lost:
                lease.lapse(transaction, record, EventKind.LEASE_ABANDONED)
            else:
                lease.free(transaction, record)
            stop.settle(transaction, self._live(transaction.study))

    # -- what is known

    def estimate(self, chain: str) -> Estimate | OpenEstimate:
        """The estimated matrix of a chain, with intervals that hold for all chains at once with probability 1 − δ."""
        with self._lock, self._store.reading() as transaction:
            record, study = self._find(transaction, chain), transaction.study
            if record.open:
                rows = transaction.rows(record)
                return OpenEstimate(
                    transaction.labels(record),
                    {x: row.counts for x, row in rows.items()},
                    {x: row.discoveries for x, row in rows.items()},
                    study.delta,
                    study.chains,
                )
            # An open chain has δ/K to itself, because its pairs are numbered as they are discovered. The closed chains
            # share what is left, δ·(their number)/K, equally over their entries: Σ S² entries if no chain is open.
            entries = -(-study.closed_pairs * study.chains // study.closed)
            return Estimate(self._labels.counts(transaction, record), study.delta, entries=entries)

    def certificate(self) -> StudyCertificate:
        """What is known of each chain's loss, times its weight, at this moment."""
        with self._lock, self._store.reading() as transaction:
            return _certificate.certificate(transaction)

    def counts(self, chain: str) -> Counts:
        """The transitions of a chain, warm start included."""
        with self._lock, self._store.reading() as transaction:
            return self._labels.counts(transaction, self._find(transaction, chain))

    def chain(self, name: str) -> ChainProgress:
        """Where one chain stands."""
        with self._lock, self._store.reading() as transaction:
            record = self._find(transaction, name)
            last = None if record.last is None else self._labels.label(transaction, record, record.last)
            return view_of(ChainProgress, record, states=record.size, last=last)

    def progress(self) -> Progress:
        """Where the study stands."""
        with self._lock, self._store.reading() as transaction:
            certificate = None if transaction.study.target_loss is None else _certificate.largest(transaction)
            stopped = stop.stop_reason(transaction)
            return view_of(Progress, transaction.study, certificate=certificate, stop_reason=stopped)

    @property
    def stop_reason(self) -> StopReason | None:
        """Why the study stopped; None while it goes on."""
        with self._lock, self._store.reading() as transaction:
            return stop.stop_reason(transaction)

    @property
    def finished(self) -> bool:
        """Whether there is nothing more to ask."""
        return self.stop_reason is not None

    @property
    def names(self) -> list[str]:
        """The chains, by number."""
        with self._lock, self._store.reading() as transaction:
            return [chain.name for chain in transaction.every()]

    def states(self, chain: str) -> list[Hashable]:
        """The chain's states, as far as they are known."""
        with self._lock, self._store.reading() as transaction:
            known = self._labels.all(transaction, self._find(transaction, chain))
            return list(range(known) if isinstance(known, int) else known)

    def state_from_text(self, chain: str, text: str) -> Hashable:
        """The state that a text means: a label of the chain as it is written, or else a whole number."""
        with self._lock, self._store.reading() as transaction:
            return self._labels.from_text(self._find(transaction, chain), text)

    def next_step(self, chain: str) -> int:
        """The number of the chain's next observation, from 1."""
        return self.chain(chain).observations + 1

    def indices(self) -> dict[str, float]:
        """Each chain's index, as the policy sees it now."""
        with self._lock, self._store.reading() as transaction:
            return {chain.name: chain.index for chain in transaction.every()}

    def allocation(self) -> dict[str, int]:
        """Each chain's observations so far."""
        with self._lock, self._store.reading() as transaction:
            return {chain.name: chain.observations for chain in transaction.every()}

    @property
    def policy(self) -> Policy:
        """The policy that chooses the chains."""
        return self._policy

    @property
    def knows_policy(self) -> bool:
        """Whether the policy's rule is here. It need not be where a study is only read."""
        return not isinstance(self._policy, AbsentPolicy)

    @property
    def is_shared(self) -> bool:
        """Whether other processes can advance the study at the same time."""
        return self._store.is_shared

    # -- what happened

    def log(self, chain: str | None = None, after: int = 0) -> Iterator[LogLine]:
        """Every observation in order, or a chain's.

        ``after``: begins after the observation of this number, or of this step of the chain.
        """
        while True:
            with self._lock, self._store.reading() as transaction:
                record = None if chain is None else self._find(transaction, chain)
                lines = []
                for line in islice(transaction.log(record, after), PAGE):
                    owner = transaction.numbered(line.chain)
                    state = self._labels.label(transaction, owner, line.state)
                    lines.append(LogLine(line.number, owner.name, line.step, line.segment, state, line.time))
            yield from lines
            if len(lines) < PAGE:
                return
            after = lines[-1].number if chain is None else lines[-1].step

    def events(self, after: int = 0, limit: int | None = None) -> list[EventLine]:
        """What happened besides observations, in order.

        ``after``: begins after the event of this number; a negative number counts from the end.
        ``limit``: at most so many events.
        """
        with self._lock, self._store.reading() as transaction:
            after = after if after >= 0 else max(0, transaction.study.events + after)
            found = []
            for event in islice(transaction.events(after), limit):
                name = None if event.chain is None else transaction.numbered(event.chain).name
                found.append(EventLine(event.number, event.time, EventKind(event.kind), name, event.detail))
            return found

    def audit(self) -> None:
        """Reads the whole log and raises ``FileError`` if anything that the study keeps is not what the log says."""
        with self._lock, self._store.reading() as transaction:
            _audit.audit(transaction)


def _pairs(observations: Any) -> list[tuple[str, Hashable]]:
    """A batch as a list of pairs. A text of two letters is not a pair."""
    if not isinstance(observations, Iterable):
        raise InputError(f"observations must be pairs (chain, state), not {shown(observations)}")
    found = []
    for number, thing in enumerate(observations, start=1):
        pair: Any = None if isinstance(thing, str) else thing
        try:
            chain, state = pair
        except (TypeError, ValueError):
            what = f"observation {number} of the batch"
            raise InputError(f"{what} must be a pair (chain, state), not {shown(thing)}: nothing was changed") from None
        found.append((chain, state))
    return found
