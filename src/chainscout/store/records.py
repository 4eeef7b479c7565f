"""What is stored of a study: plain records that the study changes and a store keeps."""

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..rows import smoothed_gini


@dataclass(slots=True)
class StudyRecord:
    """The study as a whole: what it was created with, and its running totals; fields in the order of its columns."""

    chains: int
    #: Σ_k S_k², over the states known so far where they are open.
    pairs: int
    #: How many chains have states that are all known beforehand, and Σ S² over them: fixed for ever.
    closed: int
    closed_pairs: int
    delta: float
    policy: str
    #: JSON of the policy's parameters.
    parameters: str
    version: int
    on_lost_lease: str
    #: In observations, or in cost units if there are costs; None: open-ended.
    budget: float | None = None
    target_loss: float | None = None
    #: Seconds since 1970.
    deadline: float | None = None
    #: The cheapest and the dearest observation.
    least_cost: float = 1.0
    largest_cost: float = 1.0
    #: Running totals: kept, so that nothing has to be counted when a study is opened.
    observations: int = 0
    used: float = 0.0
    leases: int = 0
    reserved: float = 0.0
    lost: int = 0
    aside: int = 0
    events: int = 0
    stop_reason: str | None = None
    #: Transactions that have changed anything: what was read of the study is still so while this has not moved.
    changes: int = 0


@dataclass(slots=True)
class ChainRecord:
    """One chain: what it is, its sufficient statistic less the rows, and its place in the order.

    Its fields are in the order of its columns, and the labels, which are kept elsewhere, come last.
    """

    number: int
    name: str
    size: int
    #: Which stored list of labels it has; None for states numbered from 0 and for open ones.
    label_list: int | None = None
    open: bool = False
    weight: float = 1.0
    cost: float = 1.0
    constants: tuple[float, ...] = ()
    transitions: int = 0
    observations: int = 0
    segments: int = 0
    last: int | None = None
    #: Running sums of the policy's terms; part of the state, so that a resumed study goes on with the same bits.
    sums: tuple[float, ...] = ()
    #: What ``ask`` orders by: the policy's index times ω**power; infinite before the first transition.
    index: float = math.inf
    #: T from which on the index is looked at again (MATH §6, Blocks).
    look: int = 0
    #: ω_k·b_k, and the T at which it was computed.
    certificate: float = math.inf
    certified: int = 0
    token: str | None = None
    worker: str | None = None
    expires: float | None = None
    #: Observations that the lease's holder may still tell.
    promised: int = 0
    #: Segments in a row that brought no transition so far, the present one included.
    barren: int = 0
    aside: bool = False
    #: Pairs of states discovered (open states only).
    discovered: int = 0
    #: None for states numbered from 0.
    labels: tuple[Hashable, ...] | None = None

    @property
    def segment(self) -> int:
        """The number of the segment that the next observation belongs to, from 1."""
        return self.segments + (self.last is None)


class RowView(Sequence[float]):
    """N[x,·] with all its zeros, as floats, over counts that have none."""

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
    #: y → N[x,y], of those seen.
    counts: dict[int, int] = field(default_factory=dict)
    terms: tuple[float, ...] = ()
    #: Whether it has changed since its terms were computed: within a block.
    stale: bool = False
    #: y → (the pair's number in order of discovery, N_x and N[x,y] just after it was discovered); open states only.
    discoveries: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    #: Whether the store has it already.
    stored: bool = False
    #: The row as rules see it, made when it is first needed.
    view: RowView | None = field(default=None, compare=False, repr=False)


def plug_in_variability(size: int, rows: Mapping[int, RowRecord]) -> float:
    """ΣĜ of the smoothed estimate (r = αS = 1/3), in which a row that was never left is uniform."""
    if size < 2:
        return 0.0
    weight = 1 / 3
    known = (smoothed_gini(float(row.exits), float(row.squares), weight / size, weight) for row in rows.values())
    return sum(known) + (size - len(rows)) * (1 - 1 / size)


class Outline(NamedTuple):
    """What a chain is, less what was seen of it."""

    #: S, or the states that are known now of a chain with open states.
    size: int
    open: bool
    weight: float
    #: Whether it began with counts from before.
    warm: bool


class Observation(NamedTuple):
    """One line of the log."""

    #: The observation's number in the study, from 1.
    number: int
    chain: int
    #: The observation's number in its chain, from 1.
    step: int
    segment: int
    #: The state's position.
    state: int
    time: float


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a study other than an observation."""

    number: int
    time: float
    kind: str
    chain: int | None
    detail: dict[str, Any]
