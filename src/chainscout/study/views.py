"""The views of a study, as plain records."""

import math
from collections.abc import Hashable
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, Literal, NamedTuple, Self

__all__ = [
    "AnswerLine", "Aside", "ChainLine", "ChainProgress", "EventKind", "EventLine", "HistoryLine", "LeaseLine",
    "LogLine", "Pace", "Progress", "QuestionLine", "Restarted", "Step", "StopReason",
]  # fmt: skip


class _View:
    """A record for display."""

    @classmethod
    def of(cls, record: Any, **others: Any) -> Self:
        """A view with these values; its other fields are the record's fields of the same names."""
        names = (field.name for field in fields(cls) if field.name not in others)  # type: ignore[arg-type]
        return cls(**{name: getattr(record, name) for name in names}, **others)


class EventKind(StrEnum):
    """The events of a study besides observations. The value is shown."""

    CREATED = "created"
    EXTENDED = "extended"
    #: The policy's rule has changed since the study was last open.
    RECOMPUTED = "indices recomputed"
    PATH_ENDED = "path ended"
    OBSERVATION_LOST = "observation lost"
    #: A path's latest observation was taken back, because another state was meant.
    CORRECTED = "observation corrected"
    SET_ASIDE = "set aside"
    TAKEN_UP = "taken up"
    LEASE_EXPIRED = "lease expired"
    LEASE_ABANDONED = "lease abandoned"
    #: A lease was given back before its next observation was told.
    LEASE_GIVEN_BACK = "lease given back"
    #: A path repeats another one of its chain: no bound holds from here on.
    REPEATED = "path repeated"
    FINISHED = "finished"


class StopReason(StrEnum):
    """Why a study stopped. The value is for programs; ``words`` is shown."""

    BUDGET = "budget"
    #: The target loss is certified for every chain.
    TARGET_LOSS = "target_loss"
    #: The target loss is certified for every chain, except chains that were set aside.
    TARGET_LOSS_OF_THE_REST = "target_loss_of_the_rest"
    #: Every answer has the target width; or every answer except those of chains that were set aside.
    TARGET_WIDTH = "target_width"
    TARGET_WIDTH_OF_THE_REST = "target_width_of_the_rest"
    #: Every answer is known to be below the limit, or not to be.
    LIMIT = "limit"
    LIMIT_OF_THE_REST = "limit_of_the_rest"
    #: One chain is known to be the worst.
    WORST = "worst"
    DEADLINE = "deadline"
    ALL_SET_ASIDE = "every chain was set aside"
    #: Every chain was set aside, and of some of them no bound holds, because a check rejects what the bounds assume.
    NO_BOUND = "no_bound"
    #: Which chain is the worst cannot be decided, because of chains that were set aside.
    UNDECIDED = "undecided"
    #: The study has an aim that no bound can reach any more, and neither a budget nor a deadline.
    REPEATED = "paths repeat each other, so no bound can hold"

    @property
    def words(self) -> str:
        """The reason in words."""
        return _WORDS.get(self, self.value)

    @property
    def words_without_bound(self) -> str:
        """The reason in words if paths repeat each other, so that nothing is certified."""
        promises = self in _WORDS and self not in (StopReason.NO_BOUND, StopReason.UNDECIDED)
        return f"{_REACHED.get(self, self.words)}, but no bound holds" if promises else self.words

    @property
    def leaves_out(self) -> bool:
        """Whether the aim was reached for every chain except some that were set aside."""
        return self in _OF_THE_REST


_WORDS = {
    StopReason.BUDGET: "the budget is spent",
    StopReason.DEADLINE: "the deadline has passed",
    StopReason.TARGET_LOSS: "the target loss is certified",
    StopReason.TARGET_LOSS_OF_THE_REST: "the target loss is certified but for the chains set aside",
    StopReason.TARGET_WIDTH: "every answer has the target width",
    StopReason.TARGET_WIDTH_OF_THE_REST: "every answer has the target width but for the chains set aside",
    StopReason.LIMIT: "every answer is on one side of the limit",
    StopReason.LIMIT_OF_THE_REST: "every answer is on one side of the limit but for the chains set aside",
    StopReason.WORST: "one chain is known to be the worst",
    StopReason.NO_BOUND: "no bound holds: a check rejects what the bounds assume",
    StopReason.UNDECIDED: "which chain is the worst cannot be decided without the chains set aside",
}
#: The words of the same reasons that promise nothing, where they differ.
_REACHED = {
    StopReason.TARGET_LOSS: "the target loss was reached",
    StopReason.TARGET_LOSS_OF_THE_REST: "the target loss was reached but for the chains set aside",
    StopReason.WORST: "one chain looks like the worst",
}
#: The reasons that leave out chains which were set aside.
_OF_THE_REST = frozenset(
    {StopReason.TARGET_LOSS_OF_THE_REST, StopReason.TARGET_WIDTH_OF_THE_REST, StopReason.LIMIT_OF_THE_REST}
)


@dataclass(frozen=True)
class Progress(_View):
    """The progress of a study. Every number is stored, so reading it is cheap."""

    #: All chains, and those whose states were declared.
    chains: int
    closed: int
    observations: int
    #: The spent amount and the amount that can be spent, in ``unit``: observations, or cost units if they have costs.
    used: float
    budget: float | None
    unit: Literal["observations", "cost units"]
    #: The smallest and the largest of the chains' target losses.
    target_loss: float | None
    target_most: float | None
    #: The aim of the answers: a width, a limit, or the worst chain ('highest' or 'lowest').
    target_width: float | None
    limit: float | None
    worst: str | None
    deadline: float | None
    delta: float
    #: The certificate that the study promises: 'sharp' or 'mixture'.
    method: str
    policy: str
    #: Whether a chain is one physical process, which one worker holds at a time.
    shared: bool
    #: Whether some chain's weight is not 1, so that certificates bound weighted losses.
    weighted: bool
    #: Paths begun: the first observation of each brings no transition.
    paths: int
    #: The cost of these first observations: their number, unless observations have costs.
    first_cost: float
    #: Leases that workers hold now.
    leases: int
    #: Observations lost with a worker or a source that died.
    lost: int
    #: Chains set aside: their paths brought no transition, or their sources ended.
    aside: int
    #: Chains that have not reached the aim: of those that are sampled, and of those that are set aside.
    behind: int
    missed: int
    #: Events so far.
    events: int
    #: Questions registered, and those that are not answered well enough.
    questions: int
    unmet: int
    #: Whether paths repeat each other, so that no bound holds, now or later.
    spoilt: bool
    #: The largest certificate of all chains, as stored; infinite while a chain has none, and if no bound holds. It
    #: bounds the largest weighted loss as of the transitions `ChainLine.certified`; ``Study.certificate()`` computes
    #: the bounds of this moment.
    certificate: float
    #: Λ of the estimates, as stored.
    variability: float
    stop_reason: StopReason | None

    @property
    def finished(self) -> bool:
        """Whether there is nothing more to ask."""
        return self.stop_reason is not None


@dataclass(frozen=True)
class ChainProgress(_View):
    """The progress of one chain."""

    #: States known.
    states: int
    #: Whether others may appear.
    open: bool
    observations: int
    transitions: int
    #: Paths begun.
    paths: int
    #: The place of this open study's next plain tell: the path's number, and its own number in the path, from 1.
    path: int
    step: int
    #: The state that this path is in; None if the next plain tell begins it.
    last: Hashable | None
    index: float
    #: Leases that workers hold now.
    leases: int
    aside: bool


class Step(NamedTuple):
    """The place of an observation."""

    #: The number of its path in the chain, and its own number in the path, from 1.
    path: int
    step: int


class Restarted(NamedTuple):
    """The place of the observation with which the process of a lease begins again."""

    path: int
    step: int
    #: The token that the lease has from now on.
    token: int


class Aside(NamedTuple):
    """Why a chain is set aside."""

    reason: str
    #: Whether its source works, and has no more states to give.
    ended: bool


@dataclass(frozen=True)
class LogLine:
    """One observation, with the user's labels."""

    #: The observation's number in the study, from 1.
    number: int
    chain: str
    #: The number of its path in the chain, and its own number in the path, from 1.
    path: int
    step: int
    state: Hashable
    #: Seconds since 1970.
    time: float
    #: The entry of the journal that asked for its step: its place in the order of issue.
    issued: int


@dataclass(frozen=True)
class EventLine:
    """One event. Several events can follow from one entry."""

    #: The number of the entry of the journal.
    number: int
    time: float
    kind: EventKind
    chain: str | None
    detail: dict[str, Any]


@dataclass(frozen=True)
class ChainLine(_View):
    """One chain among many."""

    number: int
    name: str
    states: int
    open: bool
    weight: float
    cost: float
    observations: int
    transitions: int
    #: Paths begun.
    paths: int
    #: The bound on the loss itself, as stored: b.
    loss: float
    #: ω·b and ω·ΣĜ of the estimate, as stored, and the transitions that all three were computed from.
    certificate: float
    variability: float
    certified: int
    #: The chain's target loss (0: none); how far the chain is from the study's aim, in units of transitions (at most 1:
    #: it has reached the aim); and the T of this look.
    target: float
    ratio: float
    looked: int
    #: The T at which the aim is expected to be reached.
    enough: float
    index: float
    #: Leases that workers hold now, and observations that they may still tell.
    leases: int
    pending: int
    aside: bool
    #: The chain's share of the observations, and its plug-in share η̂ by the stored variabilities; None before both.
    share: float | None
    plug_in: float | None
    #: How many states were never left.
    unknown_rows: int
    #: How many slots are open or lost in the cut whose counts are the chain's, and the transitions beyond that cut.
    holes: int
    beyond: int


@dataclass(frozen=True)
class QuestionLine(_View):
    """A registered question, and its answer as stored at the last look at its chain."""

    number: int
    chain: str
    #: The question on one line.
    question: str
    #: Its share of δ.
    delta: float
    lower: float
    upper: float
    estimate: float | None
    #: Completed episodes of the replay; None if the answer is not from a replay.
    episodes: int | None
    #: The state whose next exit the replay waits for; None: it does not wait, or it waits for the start of a path.
    waiting_for: Hashable | None
    #: The chain's transitions that the answer was computed from.
    transitions: int
    #: Whether the answer is good enough for the study to stop.
    met: bool
    #: Notes about the answer; if it does not hold, the first one says why.
    notes: tuple[str, ...]
    #: Why the bounds do not hold by the last stored checks, as in `Answer.code`; None: no check speaks against them.
    code: str | None
    #: Whether no check speaks against what the bounds assume.
    holds: bool

    @property
    def width(self) -> float:
        """The distance between the ends."""
        return self.upper - self.lower if self.upper < math.inf else math.inf


class HistoryLine(NamedTuple):
    """The certificate and the variability of a chain, or of all chains together, at an earlier moment."""

    #: The number of the entry of the journal.
    number: int
    #: None: the study as a whole.
    chain: int | None
    #: Of the whole study, at that moment.
    observations: int
    #: Seconds since 1970.
    time: float
    #: The chain's observations; of the whole study, all of them.
    own: int
    #: The chain's certificate; of the whole study, the largest.
    certificate: float
    #: ω·ΣĜ of the chain's estimate; of the whole study, Λ.
    variability: float


class AnswerLine(NamedTuple):
    """The answer to a question at an earlier moment."""

    #: The number of the entry of the journal.
    number: int
    question: int
    #: Of the whole study, at that moment, and the time in seconds since 1970.
    observations: int
    time: float
    lower: float
    upper: float
    estimate: float | None


@dataclass(frozen=True)
class LeaseLine(_View):
    """One lease among many."""

    number: int
    chain: str
    path: int
    worker: str
    #: When the lease ends, in seconds since 1970.
    expires: float
    #: Observations that its holder may still tell.
    promised: int


@dataclass(frozen=True)
class Pace:
    """How fast observations come in."""

    #: Seconds since 1970: now, and when the last observation was told.
    now: float
    last: float | None
    #: Observations a second over the last thousand; None before the second one.
    rate: float | None = None

    def seconds_left(self, progress: Progress, needed: float = math.inf) -> float | None:
        """An estimate of the seconds until budget, aim or deadline ends the study, if one of them does.

        ``needed``: how many more observations the aim is expected to need.
        """
        found = []
        if progress.deadline is not None:
            found.append(max(0.0, progress.deadline - self.now))
        if self.rate and progress.observations:
            if progress.budget is not None:
                cost = progress.used / progress.observations
                found.append((progress.budget - progress.used) / cost / self.rate)
            if math.isfinite(needed):
                found.append(needed / self.rate)
        return None if progress.finished else min(found, default=None)
