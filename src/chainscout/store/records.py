"""The stored records of a study: plain data that the study changes and the store saves."""

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

from ..rows import smoothed_gini

__all__ = [
    "AnswerLine",
    "ChainRecord",
    "Content",
    "Event",
    "HistoryLine",
    "Observation",
    "Outline",
    "PathRecord",
    "Prefix",
    "QuestionRecord",
    "RowRecord",
    "RowView",
    "StudyRecord",
    "Twins",
    "plug_in_variability",
]


@dataclass(slots=True)
class StudyRecord:
    """The whole study: its settings, and its running totals.

    The fields are in the order of the columns.
    """

    #: The fields that never change.
    FIXED: ClassVar = frozenset(
        {"chains", "closed", "closed_pairs", "delta", "method", "policy", "parameters", "key", "shared"}
        | {"least_cost", "largest_cost", "priced", "weighted", "warm"}
    )

    chains: int
    #: Σ_k S_k²; for open chains, over the states known so far.
    pairs: int
    #: How many chains have states that are all known beforehand, and Σ S² over these chains.
    closed: int
    closed_pairs: int
    delta: float
    #: The certificate that the study promises: 'sharp' or 'mixture'.
    method: str
    policy: str
    #: JSON of the policy's parameters.
    parameters: str
    version: int
    #: A random number, which is drawn when the study is made: its own coins differ from those of every other study.
    key: int
    #: Whether a chain is one physical process, which one worker holds at a time.
    shared: bool = False
    #: In observations, or in cost units if the observations are priced; None: open-ended.
    budget: float | None = None
    #: The smallest and the largest of the chains' target losses, `ChainRecord.target`; None: the aim is another one.
    target_loss: float | None = None
    target_most: float | None = None
    #: The aim of the answers, one of three: a width, a limit that each answer is on one side of, or the worst chain
    #: ('highest' or 'lowest').
    target_width: float | None = None
    limit: float | None = None
    worst: str | None = None
    #: Seconds since 1970.
    deadline: float | None = None
    #: The costs of the cheapest and of the most expensive observation.
    least_cost: float = 1.0
    largest_cost: float = 1.0
    #: Whether costs were given, so that the budget is in cost units even if every cost is 1.
    priced: bool = False
    #: Whether some chain's weight is not 1, and how many chains have a warm start.
    weighted: bool = False
    warm: int = 0
    #: Running totals. They are stored, so that opening a study does not count anything.
    observations: int = 0
    #: How many paths have an observation: the first one brings no transition.
    paths: int = 0
    #: The cost of these first observations.
    first_cost: float = 0.0
    #: How many draws were issued: each observation, lost or told, is one of them.
    issues: int = 0
    used: float = 0.0
    leases: int = 0
    reserved: float = 0.0
    lost: int = 0
    aside: int = 0
    #: How many chains have not reached the study's aim: of those that are sampled, and of those that are set aside.
    behind: int = 0
    missed: int = 0
    #: Whether several walkers advanced one chain at a time: what the bounds then assume is said beside them.
    side_by_side: bool = False
    events: int = 0
    #: Λ of the estimates: the sum of `ChainRecord.variability`.
    variability: float = 0.0
    #: How many lines of history there are, and how many observations there were at the last one of the whole study.
    lines: int = 0
    drawn: int = 0
    #: The number of observations at which the checks continue; None: their standing is not stored, or they have ended.
    judge_at: int | None = None
    #: How many questions are registered, how many of them are not answered well enough, and how many lines of answers
    #: there are.
    questions: int = 0
    unmet: int = 0
    answers: int = 0
    #: Whether paths of a chain repeat each other, so that no bound holds, now or later.
    spoilt: bool = False
    stop_reason: str | None = None
    #: How many transactions have changed the study. Records that were read stay valid while this number is the same.
    changes: int = 0

    @property
    def unit(self) -> Literal["observations", "cost units"]:
        """The unit of the budget."""
        return "cost units" if self.priced else "observations"


@dataclass(slots=True)
class ChainRecord:
    """One chain: its fixed facts, its counts except the rows, and its place in the order.

    The fields are in the order of the columns. The labels come last because they are stored in another table.
    """

    #: The fields that never change.
    FIXED: ClassVar = frozenset({"number", "name", "label_list", "open", "weight", "cost", "prior", "labels"})

    number: int
    name: str
    size: int
    #: The number of its stored list of labels; None for states numbered from 0 and for open states.
    label_list: int | None = None
    open: bool = False
    weight: float = 1.0
    cost: float = 1.0
    #: How many transitions it was warm-started with.
    prior: int = 0
    constants: tuple[float, ...] = ()
    transitions: int = 0
    observations: int = 0
    #: How many paths have a number. A path that was leased and never told has no observation.
    paths: int = 0
    #: Running sums of the policy's terms. They are stored, so that a resumed study continues with the same bits.
    sums: tuple[float, ...] = ()
    #: The number that ``ask`` sorts by: the policy's index, with T + pending instead of T, times ω**power; infinite
    #: before the first transition.
    index: float = math.inf
    #: The T at which the index is computed next (MATH §6, Blocks).
    look: int = 0
    #: ω_k·b_k and ω_k·ΣĜ_k of the estimate, and the T at which both were computed.
    certificate: float = math.inf
    variability: float = 0.0
    certified: int = 0
    #: At that T, the largest error of a probability out of a state that was left 100 times; infinite: no bound.
    error: float = math.inf
    #: ω_k·L_k is to be at most this; 0: the chain has no target loss.
    target: float = 0.0
    #: How far the chain is from the study's aim, in units of transitions (MATH §16), and the T of this look; at most 1:
    #: it has reached the aim. Infinite in a study without an aim.
    ratio: float = math.inf
    looked: int = 0
    #: The T at which the aim is expected to be reached, and the T at which the next look is due.
    enough: float = math.inf
    due: int = 0
    #: Whether nobody advances it: it has reached the aim, or will have when the draws under way are told.
    resting: bool = False
    #: How many leases there are, and how many observations their holders may still tell.
    leases: int = 0
    pending: int = 0
    #: How many paths in a row ended without a transition.
    barren: int = 0
    aside: bool = False
    #: Whether no other worker can have it now, because its only process is held.
    blocked: bool = False
    #: How many pairs of states were discovered (open states only).
    discovered: int = 0
    #: None for states numbered from 0.
    labels: tuple[Hashable, ...] | None = None

    @property
    def done(self) -> bool:
        """Whether it has reached the study's aim."""
        return self.ratio <= 1.0

    @property
    def begun(self) -> int:
        """How many paths have an observation: every other observation is a transition."""
        return self.observations - self.transitions + self.prior


@dataclass(slots=True)
class PathRecord:
    """One path: an unbroken walk of a chain by one worker, and the lease under which it is walked now.

    The fields are in the order of the columns, except the last one, which is not stored.
    """

    #: The fields that never change.
    FIXED: ClassVar = frozenset({"chain", "number"})

    chain: int
    #: The path's number in its chain, from 1.
    number: int
    #: The worker that walks it; if paths are shared, the worker that walked it last.
    worker: str
    #: How many observations it has.
    steps: int = 0
    #: The position of the last state; None before the first observation.
    last: int | None = None
    #: Whether it has ended: nobody continues it.
    ended: bool = False
    token: str | None = None
    expires: float | None = None
    #: How many observations the holder of the lease may still tell.
    promised: int = 0
    #: The number of the draw that its next observation comes from, in the order of issue; 0: none was issued.
    issued: int = 0
    #: The teller of its last observation; 0 before the first one.
    teller: int = 0
    #: A digest of all its states in order. Paths from one seed have the same digest after the same number of steps.
    digest: int = 0
    #: Whether the store has it already.
    stored: bool = False


class RowView(Sequence[float]):
    """N[x,·] as floats with all its zeros, over counts that hold no zeros."""

    __slots__ = ("counts", "size")

    def __init__(self, counts: dict[int, int], size: int) -> None:
        self.counts = counts
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, y):  # type: ignore[no-untyped-def]
        if 0 <= y < self.size:
            return float(self.counts.get(y, 0))
        raise IndexError(y)

    def __iter__(self) -> Iterator[float]:
        return (float(self.counts.get(y, 0)) for y in range(self.size))


@dataclass(slots=True)
class RowRecord:
    """One row N[x,·] of one chain."""

    exits: int = 0
    squares: int = 0
    #: y → N[x,y], for each y that was seen.
    counts: dict[int, int] = field(default_factory=dict)
    terms: tuple[float, ...] = ()
    #: Whether the row changed after its terms were computed. This happens within a block.
    stale: bool = False
    #: y → (the pair's number in order of discovery, N_x and N[x,y] just after the discovery); open states only.
    discoveries: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    #: Whether the database has this row already.
    stored: bool = False
    #: The row as rules see it, made when a rule first needs it.
    view: RowView | None = field(default=None, compare=False, repr=False)


@dataclass(slots=True)
class QuestionRecord:
    """One question about one chain, and its answer as it was last computed.

    The fields are in the order of the columns.
    """

    #: The fields that never change.
    FIXED: ClassVar = frozenset({"number", "chain", "line", "delta"})

    #: The question's number in the study, from 1.
    number: int
    chain: int
    #: The question on one line.
    line: str
    #: Its share of δ.
    delta: float
    lower: float
    upper: float
    estimate: float | None = None
    #: Completed episodes of the replay; None if there was none.
    episodes: int | None = None
    #: The position of the state whose exit the replay waits for; None: it waits for none, or for the start of a path.
    waits: int | None = None
    #: How many cards that state had when it began to wait, and how many paths of the chain had begun.
    cards: int = 0
    since: int = 0
    #: The chain's T when the answer was computed.
    transitions: int = 0
    #: Whether the answer is good enough.
    met: bool = False
    #: Notes about the answer, one line each.
    notes: str = ""

    @property
    def width(self) -> float:
        """The distance between the ends."""
        return self.upper - self.lower if self.upper < math.inf else math.inf


@dataclass(slots=True)
class Content:
    """A new study, before its first observation."""

    study: StudyRecord
    chains: Iterable[ChainRecord]
    #: Lists of labels by number.
    label_lists: Mapping[int, tuple[Hashable, ...]] = field(default_factory=dict)
    #: Chain number → the open states that are known already.
    open_labels: Mapping[int, tuple[Hashable, ...]] = field(default_factory=dict)
    #: Chain number → the rows that the chain is warm-started from.
    rows: Mapping[int, Mapping[int, RowRecord]] = field(default_factory=dict)
    #: Whether the policy asks for the least sampled chain.
    floor: bool = False
    questions: Sequence[QuestionRecord] = ()


def plug_in_variability(size: int, rows: Mapping[int, RowRecord]) -> float:
    """ΣĜ of the smoothed estimate (r = αS = 1/3). A row that the chain never left counts as uniform."""
    if size < 2:
        return 0.0
    weight = 1 / 3
    known = (smoothed_gini(float(row.exits), float(row.squares), weight / size, weight) for row in rows.values())
    return sum(known) + (size - len(rows)) * (1 - 1 / size)


class Outline(NamedTuple):
    """The fixed facts of a chain, without its observations."""

    #: S; for a chain with open states, the number of states known now.
    size: int
    open: bool
    weight: float
    #: Whether the chain had a warm start.
    warm: bool


class Observation(NamedTuple):
    """One line of the log."""

    #: The observation's number in the study, from 1.
    number: int
    chain: int
    path: int
    #: The observation's number in its path, from 1.
    step: int
    #: The state's position.
    state: int
    #: When it was told, in seconds since 1970.
    time: float
    #: The number of its draw in the order of issue, lost draws included; 0: it is not known, because a plain tell
    #: continued a path of a lease.
    issued: int
    #: Its teller: a unique number of the open study or of the lease.
    teller: int


class Prefix(NamedTuple):
    """The beginning of a path. In the order of the fields, paths that began alike are next to each other."""

    chain: int
    #: How many states it has.
    length: int
    #: `PathRecord.digest` when the path had this many states.
    digest: int
    path: int


class Twins(NamedTuple):
    """Two paths of a chain that began alike: ``first`` is the earliest path with this beginning."""

    chain: int
    first: int
    second: int
    #: How many states they have in common, or more.
    length: int


class HistoryLine(NamedTuple):
    """The certificate and the variability of a chain, or of all chains together, at an earlier moment."""

    #: The line's number in the study, from 1.
    number: int
    #: None: the study as a whole.
    chain: int | None
    #: Of the whole study, when the line was written.
    observations: int
    #: In seconds since 1970.
    time: float
    #: The chain's observations; of the whole study, all of them.
    own: int
    #: The chain's certificate; of the whole study, the largest.
    certificate: float
    #: ω·ΣĜ of the chain's estimate; of the whole study, Λ.
    variability: float


class AnswerLine(NamedTuple):
    """The answer to a question at an earlier moment."""

    #: The line's number in the study, from 1.
    number: int
    question: int
    #: Of the whole study, and when the line was written in seconds since 1970.
    observations: int
    time: float
    lower: float
    upper: float
    estimate: float | None


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a study that is not an observation."""

    number: int
    time: float
    kind: str
    chain: int | None
    detail: dict[str, Any]
