"""How many more observations a study needs, and of which chains, predicted from its counts."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..certificates.planning import further_transitions
from ..counts import Counts
from ..errors import InputError
from ..store import ChainRecord, Transaction
from ._repetition import as_sentence, repeated
from .settings import CHECKS

if TYPE_CHECKING:
    from .study import Study

#: The number of chains whose counts are read at a time.
_BATCH = 1_000


@dataclass(frozen=True)
class StudyPlan:
    """The observations that are expected to certify a loss. A prediction from the counts so far, not a bound."""

    target_loss: float
    delta: float
    #: The certificate of closed chains.
    method: str
    #: Observations so far.
    observations: int
    #: Chain → how many more observations it needs: 0 if none, nan before its first transition, infinite if no number
    #: suffices.
    more: Mapping[str, float]
    #: What the observations cost; their number if they have no costs.
    cost: float
    #: Sentences about paths that repeat each other. If there is one, no number of observations helps.
    repeated: tuple[str, ...] = ()

    @property
    def total(self) -> float:
        """How many more observations in all, of the chains that have a transition."""
        return sum(number for number in self.more.values() if not math.isnan(number))

    @property
    def unknown(self) -> int:
        """How many chains have no transition yet."""
        return sum(map(math.isnan, self.more.values()))

    def __str__(self) -> str:
        if self.repeated:
            return _hopeless(self.repeated)
        needed = sum(number > 0 for number in self.more.values())
        number = f"about {self.total:,.0f} more observations"
        if math.isinf(self.total):
            number = "more observations than can be made"
        words = f"{number} of {needed:,} of {_chains(len(self.more))}" if needed else "nothing more"
        if self.unknown:
            words += f"; of {self.unknown:,} without a transition nothing can be said yet"
        return f"For a certified loss ≤ {self.target_loss:g}: {words}."


@dataclass(frozen=True)
class AnswerPlan:
    """The observations that are expected to answer the questions. This is a prediction from the cards so far."""

    #: The aim of the answers, in words.
    aim: str
    #: Observations so far.
    observations: int
    #: (chain, question on one line) → how many more observations of the chain it needs: 0 if none, nan if there are no
    #: data, infinite if the number is too large to predict.
    questions: Mapping[tuple[str, str], float]
    #: What the observations cost, where they have costs; else their number.
    cost: float
    #: Sentences about paths that repeat each other. If there is one, no number of observations helps.
    repeated: tuple[str, ...] = ()

    @property
    def more(self) -> dict[str, float]:
        """Chain → how many more observations it needs for its most demanding question."""
        found: dict[str, float] = {}
        for (chain, _), number in self.questions.items():
            found[chain] = number if math.isnan(number) else max(number, found.get(chain, 0.0))
        return found

    @property
    def total(self) -> float:
        """How many more observations in all, for the chains with a prediction."""
        return sum(number for number in self.more.values() if not math.isnan(number))

    @property
    def unknown(self) -> int:
        """How many chains have no prediction yet."""
        return sum(map(math.isnan, self.more.values()))

    def __str__(self) -> str:
        if self.repeated:
            return _hopeless(self.repeated)
        needed = sum(number > 0 for number in self.more.values())
        words = f"about {self.total:,.0f} more observations of {needed:,} of {_chains(len(self.more))}"
        if math.isinf(self.total):
            words = f"more observations than can be predicted, of {needed:,} of {_chains(len(self.more))}"
        if not needed and not self.unknown:
            words = "nothing more"
        if self.unknown:
            words += f"; of {self.unknown:,} nothing can be said yet"
        return f"For {self.aim}: {words}."


def _hopeless(repeated: tuple[str, ...]) -> str:
    return f"{as_sentence(repeated[0])} More observations do not change this."


def _chains(number: int) -> str:
    return f"{number:,} chain{'s' * (number != 1)}"


def _plan_answers(study: "Study", width: float | None) -> AnswerPlan:
    """The plan for the study's questions: for this width of each answer, or for the study's own aim."""
    with study._lock, study._store.reading() as transaction:
        found = study._answering.growth(transaction, width)
        chains = {name: transaction.chain(name) for name, _ in found.growth}
        more, cost = {}, 0.0
        for (name, line), factor in found.growth.items():
            chain = chains[name]
            assert chain is not None
            more[name, line] = math.ceil((factor - 1) * chain.observations) if math.isfinite(factor) else factor
        made = AnswerPlan(found.aim, transaction.study.observations, more, 0.0, repeated(transaction))
        for name, number in made.more.items():
            chain = chains[name]
            assert chain is not None
            cost += 0.0 if math.isnan(number) else number * chain.cost
    return replace(made, cost=cost)


def plan(study: "Study", target_loss: float | None, target_width: float | None) -> StudyPlan | AnswerPlan:
    """The plan for this loss or width, or for the study's own aim."""
    if target_loss is not None and target_width is not None:
        raise InputError("a plan is for a target loss or for a target width, not for both")
    width = CHECKS["target_width"](target_width)
    state = study.progress()
    if width is not None or (target_loss is None and state.target_loss is None and state.questions):
        return _plan_answers(study, width)
    return _plan_loss(study, target_loss)


def _plan_loss(study: "Study", target_loss: float | None) -> StudyPlan:
    """The plan for this loss, or for the study's own target. The lock is held only while counts are read."""
    state = study.progress()
    target = CHECKS["target_loss"](target_loss)
    if target is None:
        target = state.target_loss
    if target is None:
        raise InputError(
            "a plan needs a target loss (--target-loss; target_loss in Python): none was given, and the study has none"
        )
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
    return StudyPlan(target, state.delta, state.method, state.observations, more, cost, study.repeated_paths())


def _counts(transaction: Transaction, chain: ChainRecord) -> Counts:
    """A copy of the chain's counts."""
    rows = {x: dict(row.counts) for x, row in transaction.rows(chain).items()}
    return Counts.over(rows, max(1, chain.size), chain.open)
