"""A study for readers from outside: a page of chains, who holds what, how fast it goes.

Nothing here reads all chains or the whole log unless its docstring says so: a page costs the same for ten chains and
for 100,000.
"""

import math
from collections.abc import Hashable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from ..errors import InputError
from ..store import ORDERS, ChainRecord, Observation, Outline, Transaction, plug_in_variability
from ..validation import one_of, shown
from . import _certificate
from .views import ChainLine, LeaseLine, Pace

if TYPE_CHECKING:
    from .study import Study

__all__ = ["Browser"]

#: Chains whose certificate is remembered until they move.
_REMEMBERED = 20_000
#: Observations over which the pace is taken.
_WINDOW = 1000


class Browser:
    """What a study shows a page at a time. One browser serves a study for long: it remembers certificates."""

    def __init__(self, study: "Study") -> None:
        self.study = study
        self._lock, self._store = study._lock, study._store
        #: Chain → T and S, certificate and variability as last computed.
        self._known: dict[int, tuple[tuple[int, int], float, float]] = {}

    def notes(self) -> tuple[str, ...]:
        """What must be said of the place where the study is kept."""
        return self._store.notes()

    # -- chains

    def page(
        self, search: str = "", order: str = "number", descending: bool = False, offset: int = 0, limit: int = 50
    ) -> tuple[int, list[ChainLine]]:
        """How many chains have ``search`` in their names, and those from ``offset`` on.

        The order 'certificate' is that of the stored certificates, which a study with a target has.
        """
        one_of(order, "order", ORDERS)
        if "\0" in search:  # no database can look for it
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
            return self.study._find(transaction, name).number

    def leases(self, limit: int) -> list[LeaseLine]:
        """Who holds what; the lease that ends first comes first."""
        with self._lock, self._store.reading() as transaction:
            return [
                LeaseLine(
                    path.chain,
                    transaction.numbered(path.chain).name,
                    path.number,
                    path.worker,
                    path.expires or 0.0,
                    path.promised,
                )
                for path in transaction.held()[:limit]
            ]

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
                _certificate.bound(transaction.study, chain, transaction.rows(chain)) if chain.transitions else math.inf
                for chain in found
            ]

    def states(self, chain: str) -> Sequence[Hashable]:
        """The chain's states as far as they are known; numbered ones as a range, however many there are."""
        with self._lock, self._store.reading() as transaction:
            known = self.study._labels.all(transaction, self.study._find(transaction, chain))
            return range(known) if isinstance(known, int) else known

    def outlines(self) -> list[Outline]:
        """What every chain is, by number. Reads all chains."""
        with self._lock, self._store.reading() as transaction:
            return list(transaction.outlines())

    def prior_counts(self, chain: int) -> dict[int, dict[int, int]]:
        """The counts that the chain was warm-started from: x → y → N[x,y]."""
        with self._lock, self._store.reading() as transaction:
            prior = transaction.prior(transaction.numbered(chain))
            return {x: dict(row) for x, row in prior.items()}

    def variability(self) -> float:
        """Λ of the smoothed estimates, each chain's part times its weight. Reads every row."""
        with self._lock, self._store.reading() as transaction:
            return transaction.variability()

    def _line(self, transaction: Transaction, chain: ChainRecord) -> ChainLine:
        known = self._known.get(chain.number)
        now = chain.transitions, chain.size  # a new open state changes S and not T
        if known is None or known[0] != now:
            rows = transaction.rows(chain)
            bound = _certificate.bound(transaction.study, chain, rows)
            known = now, bound, chain.weight * plug_in_variability(chain.size, rows)
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[chain.number] = known
        return ChainLine.of(chain, certificate=known[1], variability=known[2], paths=chain.begun)

    # -- observations

    def moved(self, after: int, until: int) -> list[int]:
        """The numbers of the chains that made the study's observations after number ``after``, up to ``until``."""
        with self._lock, self._store.reading() as transaction:
            return transaction.moved(after, until)

    def observations(self, chain: int | None, after: int, limit: int) -> list[Observation]:
        """Observations after number ``after``, of all chains or of one; states are positions."""
        with self._lock, self._store.reading() as transaction:
            owner = None if chain is None else transaction.numbered(chain)
            return list(islice(transaction.log(owner, after), limit))

    def pace(self) -> Pace:
        """How fast observations come in. The pace of a study that stands still falls."""
        with self._lock, self._store.reading() as transaction:
            told = transaction.study.observations
            if told == 0:
                return Pace(transaction.now, None, None)
            last = next(islice(transaction.log(None, told - 1), 1)).time
            span = min(told - 1, _WINDOW)
            if span == 0:
                return Pace(transaction.now, last, None)
            first = next(islice(transaction.log(None, told - 1 - span), 1)).time
            return Pace(transaction.now, last, span / max(1e-6, transaction.now - first))
