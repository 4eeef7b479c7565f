"""A study for outside readers: a page of chains, the leases, the pace.

A function reads all chains or the whole log only if its docstring says so. A page costs the same for ten chains and for
100,000.
"""

import math
import threading
from collections.abc import Hashable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from ..diagnostics import Diagnosis
from ..errors import UnknownChain
from ..store import ORDERS, AnswerLine, ChainRecord, HistoryLine, Outline, StudyRecord
from ..validation import one_of, shown
from . import _certificate, _diagnosis, _evidence, _stop
from ._aim import FEW
from .certificate import StudyCertificate
from .views import Aside, ChainLine, EventKind, LeaseLine, Pace

if TYPE_CHECKING:
    from .study import Study

__all__ = ["Browser"]

#: The number of observations over which the pace is measured.
_WINDOW = 1000
#: The most chains, and entries of their matrices, for which the policy's aim is computed. It needs every estimate.
_MOST_AIMED = 100
_MOST_ENTRIES = 20_000


class Browser:
    """Reads a study page by page."""

    def __init__(self, study: "Study") -> None:
        self.study = study
        self._lock, self._store = study._lock, study._store
        #: The observations at which the policy's aim was computed, and chain → its share in that aim.
        self._aims: tuple[int, dict[int, float]] | None = None
        self._aiming = threading.Lock()

    def notes(self) -> tuple[str, ...]:
        """Notes about the place where the study is stored."""
        return self._store.notes()

    def set_aside(self) -> dict[str, Aside]:
        """The chains that are set aside, and why. Reads the events, if there are any such chains."""
        reasons: dict[str, Aside] = {}
        if self.study.progress().aside:
            for event in self.study.events():
                if event.kind is EventKind.SET_ASIDE:
                    reasons[str(event.chain)] = Aside(**event.detail)
                elif event.kind is EventKind.TAKEN_UP:
                    reasons.pop(str(event.chain), None)
        return reasons

    def ending(self) -> str | None:
        """Why the study has stopped, in words; None while it continues."""
        with self._lock, self._store.reading() as transaction:
            reason = _stop.stop_reason(transaction)
            return None if reason is None else _stop.words(transaction, reason)

    # -- chains

    def page(
        self, search: str = "", order: str = "number", descending: bool = False, offset: int = 0, limit: int = 50
    ) -> tuple[int, list[ChainLine]]:
        """How many chains have ``search`` in their names, and those from ``offset`` on.

        Certificates are the stored ones.
        """
        one_of(order, "order", ORDERS)
        if "\0" in search:  # no database can search for this character
            return 0, []
        with self._lock, self._store.reading() as transaction:
            number, found = transaction.listed(search, order, descending, offset, limit)
            return number, [_line(transaction.study, chain) for chain in found]

    def line(self, chain: int | str) -> ChainLine:
        """The chain of this number or name."""
        with self._lock, self._store.reading() as transaction:
            if isinstance(chain, str):
                return _line(transaction.study, self.study._find(transaction, chain))
            if not 0 <= chain < transaction.study.chains:
                last = transaction.study.chains - 1
                raise UnknownChain(f"the chains have the numbers 0 to {last}, and there is no {shown(chain)}")
            return _line(transaction.study, transaction.numbered(chain))

    def unknown_rows(self, chain: int) -> int:
        """How many states of the chain of this number were never left. Reads the rows of the others."""
        with self._lock, self._store.reading() as transaction:
            record = transaction.numbered(chain)
            return record.size - len(transaction.rows(record))

    def aims(self) -> dict[int, float]:
        """The share that the policy tends to with the current estimates, by chain. Computed when 1 % more is observed.

        Empty if the policy has no aim, and in a study for which it would cost too much.
        """
        with self._aiming:
            observations = self.study.progress().observations
            known = self._aims
            if known is None or observations >= known[0] + max(1, known[0] // 100):
                known = self._aims = observations, self._policy_aims()
            return known[1]

    def _policy_aims(self) -> dict[int, float]:
        from ..chains import MarkovChain  # here, because they load slowly
        from ..problems import Problem

        if self.study.policy.aiming:  # what each chain is expected to need until it reaches the study's aim
            with self._lock, self._store.reading() as transaction:
                few = transaction.study.chains <= _MOST_AIMED
                needed = {c.number: max(c.enough, c.transitions) for c in transaction.every()} if few else {}
            total = sum(needed.values())
            return {number: share / total for number, share in needed.items()} if 0 < total < math.inf else {}
        if self.study.policy.target is None:
            return {}
        number, lines = self.page(limit=_MOST_AIMED)
        states = [line.states for line in lines]
        if number > _MOST_AIMED or 0 in states or sum(size**2 for size in states) > _MOST_ENTRIES:
            return {}
        problem = Problem({str(line.number): MarkovChain(self.study.estimate(line.name).matrix) for line in lines})
        shares = self.study.policy.aim(problem, [line.weight for line in lines])
        if shares is None or not all(map(math.isfinite, shares)):
            return {}
        return dict(zip((line.number for line in lines), shares.tolist(), strict=True))

    def leases(self, limit: int) -> list[LeaseLine]:
        """The leases. The one that ends first comes first."""
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

    def certificate(self, chains: Sequence[int] | None = None) -> StudyCertificate:
        """The stored certificates of these chains, or of all. `ChainLine.certified` says from which moment each is."""
        with self._lock, self._store.reading() as transaction:
            found = transaction.every() if chains is None else map(transaction.numbered, chains)
            return _diagnosis.noted(transaction, _certificate.stored(transaction, found))

    def promise(self) -> str:
        """What the stored bounds of all chains say, in one sentence, and as of when."""
        with self._lock, self._store.reading() as transaction:
            return _certificate.promise(transaction)

    def as_of(self) -> str:
        """As of when the stored bounds of all chains are, in words."""
        with self._lock, self._store.reading() as transaction:
            return _certificate.as_of(_certificate.moments(transaction), transaction.study.chains) or "now"

    def doubts(self) -> dict[str, str]:
        """Chain → why no bound of it holds, by the last stored checks."""
        with self._lock, self._store.reading() as transaction:
            return _evidence.doubts(transaction)

    def checks(self) -> Diagnosis | None:
        """The last stored result of the checks of all chains together; None if there is none.

        `Study.checks` continues from there.
        """
        with self._lock, self._store.reading() as transaction:
            return _evidence.stored(transaction)

    def states(self, chain: str) -> Sequence[Hashable]:
        """The chain's known states. Numbered states are a range, however many there are."""
        with self._lock, self._store.reading() as transaction:
            known = self.study._labels.all(transaction, self.study._find(transaction, chain))
            return range(known) if isinstance(known, int) else known

    def outlines(self) -> list[Outline]:
        """The fixed facts of every chain, by number. Reads all chains."""
        with self._lock, self._store.reading() as transaction:
            return list(transaction.outlines())

    def prior_counts(self, chain: int) -> dict[int, dict[int, int]]:
        """The counts of the chain's warm start: x → y → N[x,y]."""
        with self._lock, self._store.reading() as transaction:
            prior = transaction.prior(transaction.numbered(chain))
            return {x: dict(row) for x, row in prior.items()}

    # -- over time

    def history(self, chain: int | None, after: int = 0) -> list[HistoryLine]:
        """The history of a chain, or of the whole study: the lines after number ``after``."""
        with self._lock, self._store.reading() as transaction:
            return list(transaction.history(None if chain is None else transaction.numbered(chain), after))

    def answers(self, question: int) -> list[AnswerLine]:
        """The answers to a registered question at earlier moments."""
        with self._lock, self._store.reading() as transaction:
            return list(transaction.answer_lines(question, 0))

    def needed(self) -> float:
        """How many more transitions the study's aim is expected to need, from the last looks at its chains.

        Infinite if nobody knows, and in a study of more than `FEW` chains.
        """
        with self._lock, self._store.reading() as transaction:
            if not transaction.study.behind or transaction.study.chains > FEW:
                return math.inf
            left = (chain for chain in transaction.every() if not (chain.aside or chain.done))
            return sum(max(0.0, chain.enough - chain.transitions) for chain in left)

    def pace(self) -> Pace:
        """How fast observations come in. While a study stands still, its pace falls."""
        with self._lock, self._store.reading() as transaction:
            told = transaction.study.observations
            if told == 0:
                return Pace(transaction.now, None)
            last = next(islice(transaction.log(None, told - 1), 1)).time
            span = min(told - 1, _WINDOW)
            if span == 0:
                return Pace(transaction.now, last)
            first = next(islice(transaction.log(None, told - 1 - span), 1)).time
            return Pace(transaction.now, last, span / max(1e-6, transaction.now - first))


def _line(study: StudyRecord, chain: ChainRecord) -> ChainLine:
    certificate = _certificate.bound_of(study, chain)
    return ChainLine.of(
        chain,
        states=chain.size,
        paths=chain.begun,
        certificate=certificate,
        loss=certificate / chain.weight,
        share=chain.observations / study.observations if study.observations else None,
        plug_in=chain.variability / study.variability if study.variability > 0 else None,
    )
