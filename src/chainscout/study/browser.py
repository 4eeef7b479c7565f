"""A study for readers from outside: a page of chains, who holds what, how fast it goes.

Nothing here reads all chains or the whole log unless its docstring says so: a page costs the same for ten chains and
for 100,000.
"""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from ..errors import InputError
from ..store import ORDERS, ChainRecord, HistoryLine, Outline, StudyRecord, Transaction, plug_in_variability
from ..validation import one_of, shown
from . import _certificate
from ._certificate import StudyCertificate
from .views import ChainLine, EventKind, LeaseLine, Pace, Progress

if TYPE_CHECKING:
    from .study import Study

__all__ = ["Browser"]

#: Observations over which the pace is taken.
_WINDOW = 1000


class Browser:
    """What a study shows a page at a time."""

    def __init__(self, study: "Study") -> None:
        self.study = study
        self._lock, self._store = study._lock, study._store
        #: Chain → T and S, certificate and variability as last computed, where they are not stored.
        self._known: dict[int, tuple[tuple[int, int], float, float]] = {}

    def notes(self) -> tuple[str, ...]:
        """What must be said of the place where the study is kept."""
        return self._store.notes()

    def progress(self) -> Progress:
        """Where the study stands, with the certificate and Λ of this moment where they are computed for readers."""
        found = self.study.progress()
        if found.target_loss is not None or found.chains > _certificate.FEW:
            return found
        lines = self.page(limit=found.chains)[1]
        largest, whole = max(line.certificate for line in lines), sum(line.variability for line in lines)
        return replace(found, certificate=largest, variability=whole)

    def set_aside(self) -> dict[str, str]:
        """The chains that are set aside, and why. Reads the events, if there are any such chains."""
        reasons: dict[str, str] = {}
        if self.study.progress().aside:
            for event in self.study.events():
                if event.kind is EventKind.SET_ASIDE:
                    reasons[str(event.chain)] = event.detail["reason"]
                elif event.kind is EventKind.TAKEN_UP:
                    reasons.pop(str(event.chain), None)
        return reasons

    # -- chains

    def page(
        self, search: str = "", order: str = "number", descending: bool = False, offset: int = 0, limit: int = 50
    ) -> tuple[int, list[ChainLine]]:
        """How many chains have ``search`` in their names, and those from ``offset`` on.

        Certificates are the stored ones; of few chains without a target they are computed.
        """
        one_of(order, "order", ORDERS)
        if "\0" in search:  # no database can look for it
            return 0, []
        with self._lock, self._store.reading() as transaction:
            if order == "certificate" and _computes(transaction.study):
                number, found = transaction.listed(search, "number", False, 0, _certificate.FEW)
                lines = [self._line(transaction, chain) for chain in found]
                lines.sort(key=lambda line: line.certificate, reverse=descending)
                return number, lines[offset : offset + limit]
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

    def certificate(self, chains: Sequence[int]) -> StudyCertificate:
        """What is known of the chains of these numbers at this moment."""
        with self._lock, self._store.reading() as transaction:
            return _certificate.certificate(transaction, map(transaction.numbered, chains))

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

    def _line(self, transaction: Transaction, chain: ChainRecord) -> ChainLine:
        if not _computes(transaction.study) or chain.certified == chain.transitions:
            return ChainLine.of(chain, paths=chain.begun)
        known = self._known.get(chain.number)
        now = chain.transitions, chain.size  # a new open state changes S and not T
        if known is None or known[0] != now:
            rows = transaction.rows(chain)
            variability = chain.weight * plug_in_variability(chain.size, rows)
            known = self._known[chain.number] = now, _certificate.bound(transaction.study, chain, rows), variability
        _, certificate, variability = known
        return ChainLine.of(
            chain, certificate=certificate, variability=variability, certified=chain.transitions, paths=chain.begun
        )

    # -- over time

    def history(self, chain: int | None, after: int = 0) -> list[HistoryLine]:
        """What was known earlier of a chain, or of the study as a whole: the lines after number ``after``."""
        with self._lock, self._store.reading() as transaction:
            return list(transaction.history(None if chain is None else transaction.numbered(chain), after))

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


def _computes(study: StudyRecord) -> bool:
    """Whether certificates are computed for readers: of few chains in a study that stores them seldom."""
    return study.target_loss is None and study.chains <= _certificate.FEW
