"""What a study shows: estimates, certificates, its log. Nothing here changes anything."""

import threading
from collections.abc import Hashable, Iterator, Sequence
from itertools import islice
from types import TracebackType
from typing import Self

from ..certificates import Estimate
from ..certificates.open_states import OpenEstimate
from ..counts import Counts
from ..policies import Policy
from ..store import MemoryStore, Store, StudyRecord
from . import audit, certifying, telling
from .browsing import Browsing, event_line
from .certifying import StudyCertificate
from .quick import Quick
from .rule import Rule
from .states import States
from .views import ChainProgress, EventLine, LogLine, Progress

#: Lines of the log that are read at a time.
PAGE = 1000


class Reading(Browsing):
    """A study as far as it can be read."""

    def __init__(self, store: Store, policy: Policy) -> None:
        super().__init__()
        self._store = store
        self._policy = policy
        # A rule may need other functions when no end is in sight; which it is can change while the study is open.
        self._rules = {bounded: Rule(policy.facing(1 if bounded else None)) for bounded in (True, False)}
        self._states = States()
        self._lock = threading.RLock()
        self._quick = self._make_quick()

    def _rule(self, study: StudyRecord) -> Rule:
        return self._rules[study.budget is not None]

    def _make_quick(self) -> Quick | None:
        store = self._store
        if not isinstance(store, MemoryStore):
            return None
        return Quick(store, self._rule(store.study), self._states, self._lock)

    def close(self) -> None:
        """Gives up the database connection; the study can be opened again."""
        with self._lock:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def counts(self, chain: str) -> Counts:
        """The transitions seen, warm start included."""
        with self._lock, self._store.reading() as transaction:
            record = self._find(transaction, chain)
            return self._states.counts(transaction, record)

    def chain(self, name: str) -> ChainProgress:
        """Where one chain stands."""
        with self._lock, self._store.reading() as transaction:
            record = self._find(transaction, name)
            last = None if record.last is None else self._states.label(transaction, record, record.last)
            return ChainProgress(
                states=record.size,
                open=record.open,
                observations=record.observations,
                transitions=record.transitions,
                segments=record.segments,
                last=last,
                index=record.index,
                worker=record.worker,
                aside=record.aside,
            )

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
            return Estimate(self._states.counts(transaction, record), study.delta, entries=_entries(study))

    def certificate(self) -> StudyCertificate:
        """What is known of each chain's loss, times its weight, at this moment."""
        with self._lock, self._store.reading() as transaction:
            study = transaction.study
            losses: dict[str, float] = {}
            aside = []
            for chain in transaction.every():
                fresh = 0 < chain.transitions == chain.certified
                losses[chain.name] = (
                    chain.certificate if fresh else certifying.bound(study, chain, transaction.rows(chain))
                )
                if chain.aside:
                    aside.append(chain.name)
            return StudyCertificate(losses, study.delta, "mixture", study.lost, tuple(aside))

    def indices(self) -> dict[str, float]:
        """Each chain's index, as the policy sees it now."""
        with self._lock, self._store.reading() as transaction:
            return {chain.name: chain.index for chain in transaction.every()}

    def allocation(self) -> dict[str, int]:
        """Each chain's observations so far."""
        with self._lock, self._store.reading() as transaction:
            return {chain.name: chain.observations for chain in transaction.every()}

    def state_from_text(self, chain: str, text: str) -> Hashable:
        """The state that a text means: a label of the chain as it is written, or else a whole number."""
        with self._lock, self._store.reading() as transaction:
            return self._states.from_text(self._find(transaction, chain), text)

    def states(self, chain: str) -> list[Hashable]:
        """The chain's states, as far as they are known."""
        return list(self.known_states(chain))

    def known_states(self, chain: str) -> Sequence[Hashable]:
        """The same; numbered states as a range, however many there are."""
        with self._lock, self._store.reading() as transaction:
            known = self._states.all(transaction, self._find(transaction, chain))
            return range(known) if isinstance(known, int) else known

    def next_step(self, chain: str) -> int:
        """The number of the chain's next observation, from 1."""
        with self._lock, self._store.reading() as transaction:
            return self._find(transaction, chain).observations + 1

    @property
    def is_shared(self) -> bool:
        """Whether others can advance the study at the same time; one in memory is its process's own."""
        return self._store.is_shared

    @property
    def names(self) -> list[str]:
        """The chains, by number."""
        with self._lock, self._store.reading() as transaction:
            return [chain.name for chain in transaction.every()]

    def progress(self) -> Progress:
        """Where the study stands."""
        with self._lock, self._store.reading() as transaction:
            study = transaction.study
            return Progress(
                chains=study.chains,
                observations=study.observations,
                used=study.used,
                budget=study.budget,
                target_loss=study.target_loss,
                deadline=study.deadline,
                delta=study.delta,
                policy=study.policy,
                on_lost_lease=study.on_lost_lease,
                leases=study.leases,
                lost=study.lost,
                aside=study.aside,
                events=study.events,
                certificate=None if study.target_loss is None else certifying.largest(transaction),
                stop_reason=telling.stopped(transaction),
            )

    def log(self, chain: str | None = None, after: int = 0) -> Iterator[LogLine]:
        """Every observation in order, or a chain's; ``after``: beginning after this number (or step of the chain)."""
        while True:
            with self._lock, self._store.reading() as transaction:
                record = None if chain is None else self._find(transaction, chain)
                lines = []
                for line in islice(transaction.log(record, after), PAGE):
                    owner = transaction.numbered(line.chain)
                    state = self._states.label(transaction, owner, line.state)
                    lines.append(LogLine(line.number, owner.name, line.step, line.segment, state, line.time))
            yield from lines
            if len(lines) < PAGE:
                return
            after = lines[-1].number if chain is None else lines[-1].step

    def events(self) -> list[EventLine]:
        """What else happened, in order."""
        with self._lock, self._store.reading() as transaction:
            return [event_line(transaction, event) for event in transaction.events(0)]

    def verify(self) -> None:
        """Reads the whole log and raises FileError if anything that is kept of it is not what it says."""
        with self._lock, self._store.reading() as transaction:
            transaction.check_whole()
            audit.verify(transaction)

    @property
    def finished(self) -> bool:
        """Whether there is nothing more to ask."""
        return self.stop_reason is not None

    @property
    def stop_reason(self) -> str | None:
        """Why the study stopped: 'budget', 'target_loss', 'deadline', …; None while it goes on.

        'target_loss_of_the_rest': the target is certified for all chains but some that were set aside.
        """
        if self._quick is not None and self._quick.study.deadline is None:
            return self._quick.study.stop_reason
        with self._lock, self._store.reading() as transaction:
            return telling.stopped(transaction)


def _entries(study: StudyRecord) -> int:
    """Over how many entries δ is split where states are known beforehand.

    An open chain has δ/K to itself, for its pairs are numbered as they are discovered. The others share what is left,
    δ·(how many they are)/K, equally over their entries. A study without open chains has Σ S².
    """
    return -(-study.closed_pairs * study.chains // study.closed)
