"""A study for those who look at it from outside: a page of chains, who holds what, how fast it goes.

Nothing here reads all chains or the whole log, so that a page costs the same for ten chains and for 100,000.
"""

import math
import threading
from collections.abc import Sequence
from itertools import islice

from ..errors import InputError
from ..policies import Policy
from ..store import ORDERS, ChainRecord, Event, Observation, Outline, Store, Transaction, plug_in_variability
from ..validation import did_you_mean, one_of, shown
from . import certifying
from .absent import AbsentPolicy
from .views import ChainLine, EventLine, Pace

#: Chains whose certificate is remembered until they move.
REMEMBERED = 20_000
#: Observations over which the pace is taken.
WINDOW = 1000
#: A name that no chain has is compared with those of so many chains at most.
MOST_COMPARED = 1000


def event_line(transaction: Transaction, event: Event) -> EventLine:
    """An event in the user's words."""
    name = None if event.chain is None else transaction.numbered(event.chain).name
    return EventLine(event.number, event.time, event.kind, name, event.detail)


class Browsing:
    """What a study shows a page at a time; ``Reading`` has the rest."""

    _store: Store
    _policy: Policy
    _lock: threading.RLock

    def __init__(self) -> None:
        #: Chain → T, certificate and variability as last computed.
        self._fresh: dict[int, tuple[int, float, float]] = {}

    @property
    def policy(self) -> Policy:
        """The policy that chooses the chains."""
        return self._policy

    @property
    def knows_policy(self) -> bool:
        """Whether the policy's rule is here; it need not be where a study is only read."""
        return not isinstance(self._policy, AbsentPolicy)

    def browse(
        self, search: str = "", order: str = "number", descending: bool = False, offset: int = 0, limit: int = 50
    ) -> tuple[int, list[ChainLine]]:
        """How many chains have ``search`` in their names, and those from ``offset`` on.

        In the order 'certificate' stored certificates count: those of a study with a target, less than 1 % old.
        """
        one_of(order, "order", ORDERS)
        if "\0" in search:  # no database looks for that in a text
            return 0, []
        with self._lock, self._store.reading() as transaction:
            number, found = transaction.listed(search, order, descending, offset, limit)
            return number, [self._line(transaction, chain) for chain in found]

    def line(self, chain: int) -> ChainLine:
        """The chain of this number."""
        with self._lock, self._store.reading() as transaction:
            if not 0 <= chain < transaction.study.chains:
                last = transaction.study.chains - 1
                raise InputError(f"the chains have the numbers 0 to {last}, and there is no {shown(chain)}")
            return self._line(transaction, transaction.numbered(chain))

    def number_of(self, name: str) -> int:
        """The number of the chain of this name."""
        with self._lock, self._store.reading() as transaction:
            return self._find(transaction, name).number

    def _find(self, transaction: Transaction, name: str) -> ChainRecord:
        chain = transaction.chain(name) if isinstance(name, str) else None
        if chain is None:
            few = transaction.study.chains <= MOST_COMPARED
            hint = did_you_mean(name, (known.name for known in transaction.every())) if few else ""
            raise InputError(
                f"the study has no chain {shown(name)}{hint}; chains cannot be added, for delta is split over those "
                "there are"
            )
        return chain

    def held(self, limit: int) -> list[ChainLine]:
        """Chains under a lease, those first whose lease ends first."""
        with self._lock, self._store.reading() as transaction:
            return [self._line(transaction, chain) for chain in transaction.held()[:limit]]

    def matching(self, search: str) -> list[int]:
        """The numbers of the chains with ``search`` in their names, in order."""
        if "\0" in search:
            return []
        with self._lock, self._store.reading() as transaction:
            return transaction.matching(search)

    def bounds(self, chains: Sequence[int]) -> list[float]:
        """ω·b of the chains of these numbers, from the counts as they are now."""
        with self._lock, self._store.reading() as transaction:
            found = (transaction.numbered(chain) for chain in chains)
            return [
                certifying.bound(transaction.study, chain, transaction.rows(chain)) if chain.transitions else math.inf
                for chain in found
            ]

    def moved(self, after: int, until: int) -> list[int]:
        """The numbers of the chains that made the study's observations after number ``after``, up to ``until``."""
        with self._lock, self._store.reading() as transaction:
            return transaction.moved(after, until)

    def path(self, chain: int | None, after: int, limit: int) -> list[Observation]:
        """Observations after number ``after``, of all chains or of one by its own numbers; states are positions."""
        with self._lock, self._store.reading() as transaction:
            owner = None if chain is None else transaction.numbered(chain)
            return list(islice(transaction.log(owner, after), limit))

    def prior_counts(self, chain: int) -> dict[int, dict[int, int]]:
        """The counts that the chain was warm-started from: x → y → N[x,y]."""
        with self._lock, self._store.reading() as transaction:
            prior = transaction.prior(transaction.numbered(chain))
            return {x: dict(row) for x, row in prior.items()}

    def outlines(self) -> list[Outline]:
        """What every chain is, by number. Reads all chains."""
        with self._lock, self._store.reading() as transaction:
            return list(transaction.outlines())

    def events_after(self, number: int, limit: int) -> list[EventLine]:
        """What happened after the event of this number; a negative number counts from the end."""
        with self._lock, self._store.reading() as transaction:
            after = number if number >= 0 else max(0, transaction.study.events + number)
            return [event_line(transaction, event) for event in islice(transaction.events(after), limit)]

    def pace(self) -> Pace:
        """How fast observations come in; a study that stands still slows down."""
        with self._lock, self._store.reading() as transaction:
            told = transaction.study.observations
            if told == 0:
                return Pace(transaction.now, None, None)
            last = next(islice(transaction.log(None, told - 1), 1)).time
            span = min(told - 1, WINDOW)
            if span == 0:
                return Pace(transaction.now, last, None)
            first = next(islice(transaction.log(None, told - 1 - span), 1)).time
            return Pace(transaction.now, last, span / max(1e-6, transaction.now - first))

    def variability(self) -> float:
        """Λ of the smoothed estimates, each chain's part times its weight. Reads every row."""
        with self._lock, self._store.reading() as transaction:
            return transaction.variability()

    def _line(self, transaction: Transaction, chain: ChainRecord) -> ChainLine:
        known = self._fresh.get(chain.number)
        if known is None or known[0] != chain.transitions:
            rows = transaction.rows(chain)
            bound = certifying.bound(transaction.study, chain, rows)
            known = chain.transitions, bound, chain.weight * plug_in_variability(chain.size, rows)
            if len(self._fresh) >= REMEMBERED:
                self._fresh.clear()
            self._fresh[chain.number] = known
        return ChainLine(
            number=chain.number,
            name=chain.name,
            size=chain.size,
            open=chain.open,
            weight=chain.weight,
            cost=chain.cost,
            observations=chain.observations,
            transitions=chain.transitions,
            segments=chain.segments,
            certificate=known[1],
            variability=known[2],
            index=chain.index,
            worker=chain.worker,
            expires=chain.expires,
            promised=chain.promised,
            aside=chain.aside,
        )
