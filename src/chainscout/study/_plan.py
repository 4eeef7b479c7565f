"""How many more observations a study needs, and of which chains, going by what it has seen."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..certificates.planning import further_transitions
from ..counts import Counts
from ..errors import InputError
from ..store import ChainRecord, Transaction
from .settings import CHECKS

if TYPE_CHECKING:
    from .study import Study

#: Chains whose counts are read at a time.
_BATCH = 1_000


@dataclass(frozen=True)
class StudyPlan:
    """What is expected to be needed until a loss is certified. It is a prediction from the counts so far, no bound."""

    target_loss: float
    delta: float
    #: The certificate of closed chains.
    method: str
    #: Observations so far.
    observations: int
    #: Chain → how many more observations of it; 0 if it needs none, nan before its first transition, when there is
    #: nothing to go by, and infinite if no number will do.
    more: Mapping[str, float]
    #: What the observations cost, where they have costs; else their number.
    cost: float

    @property
    def total(self) -> float:
        """How many more observations in all, of the chains that have a transition."""
        return sum(number for number in self.more.values() if not math.isnan(number))

    @property
    def unknown(self) -> int:
        """How many chains have no transition yet."""
        return sum(map(math.isnan, self.more.values()))

    def __str__(self) -> str:
        needed = sum(number > 0 for number in self.more.values())
        chains = f"{len(self.more):,} chain{'s' * (len(self.more) != 1)}"
        number = f"about {self.total:,.0f} more observations"
        if math.isinf(self.total):
            number = "more observations than can be made"
        words = f"{number} of {needed:,} of {chains}" if needed else "nothing more"
        if self.unknown:
            words += f"; of {self.unknown:,} without a transition nothing can be said yet"
        return f"For a certified loss ≤ {self.target_loss:g}: {words}."


def plan(study: "Study", target_loss: float | None) -> StudyPlan:
    """What the study needs for this loss, or for its own target. Its lock is held only while counts are read."""
    state = study.progress()
    target = CHECKS["target_loss"](target_loss)
    if target is None:
        target = state.target_loss
    if target is None:
        raise InputError("a plan needs a target loss: none was given, and the study has none")
    log_inverse = math.log(state.chains / state.delta)
    more: dict[str, float] = {}
    cost = 0.0
    for first in range(0, state.chains, _BATCH):
        with study._lock, study._store.reading() as transaction:
            chains = [transaction.numbered(k) for k in range(first, min(first + _BATCH, state.chains))]
            found = [(chain.name, chain.weight, chain.cost, _counts(transaction, chain)) for chain in chains]
        for name, weight, price, counts in found:
            more[name] = further_transitions(counts, target / weight, state.method, log_inverse)
            cost += 0.0 if math.isnan(more[name]) else more[name] * price
    return StudyPlan(target, state.delta, state.method, state.observations, more, cost)


def _counts(transaction: Transaction, chain: ChainRecord) -> Counts:
    """A copy of the chain's counts."""
    rows = {x: dict(row.counts) for x, row in transaction.rows(chain).items()}
    return Counts.over(rows, max(1, chain.size), chain.open)
