"""What a study shows of itself, as plain records."""

from collections.abc import Hashable
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from .stop import StopReason

View = TypeVar("View")

__all__ = ["ChainLine", "ChainProgress", "EventKind", "EventLine", "LogLine", "Pace", "Progress"]


class EventKind(StrEnum):
    """What can happen to a study besides an observation. The value is what is stored and shown."""

    CREATED = "created"
    EXTENDED = "extended"
    #: The policy's rule has changed since the study was last open.
    RECOMPUTED = "indices recomputed"
    RESTARTED = "restarted"
    OBSERVATION_LOST = "observation lost"
    SET_ASIDE = "set aside"
    LEASE_EXPIRED = "lease expired"
    LEASE_ABANDONED = "lease abandoned"
    FINISHED = "finished"


@dataclass(frozen=True)
class Progress:
    """Where a study stands. Every number is read from the study; none is counted."""

    chains: int
    observations: int
    #: What was spent and what can be spent: observations, or cost units where observations have costs.
    used: float
    budget: float | None
    target_loss: float | None
    deadline: float | None
    delta: float
    policy: str
    #: What happens to a chain whose worker was lost: restart or continue.
    on_lost_lease: str
    #: Chains held by workers now.
    leases: int
    #: Observations lost with a worker or a source that died.
    lost: int
    #: Chains set aside because their segments brought no transition.
    aside: int
    #: Events so far.
    events: int
    #: The largest certificate of all chains, as stored: that of ``Study.certificate().max`` when the study stops, and
    #: of chains with less than 1 % fewer transitions before; None without a target, where certificates are computed
    #: when they are asked for.
    certificate: float | None
    stop_reason: "StopReason | None"

    @property
    def finished(self) -> bool:
        """Whether there is nothing more to ask."""
        return self.stop_reason is not None


@dataclass(frozen=True)
class ChainProgress:
    """Where one chain stands."""

    #: States known.
    states: int
    #: Whether others may appear.
    open: bool
    observations: int
    transitions: int
    segments: int
    #: The state that it is in; None at the beginning of a segment.
    last: Hashable | None
    index: float
    #: Who holds it.
    worker: str | None
    aside: bool


@dataclass(frozen=True)
class LogLine:
    """One observation, in the user's words."""

    #: The observation's number in the study, from 1.
    number: int
    chain: str
    #: The observation's number in its chain, from 1.
    step: int
    #: The unbroken path that it belongs to, from 1.
    segment: int
    state: Hashable
    #: Seconds since 1970.
    time: float


@dataclass(frozen=True)
class EventLine:
    """Something else that happened."""

    number: int
    time: float
    kind: EventKind
    chain: str | None
    detail: dict[str, Any]


@dataclass(frozen=True)
class ChainLine:
    """One chain among many."""

    number: int
    name: str
    size: int
    open: bool
    weight: float
    cost: float
    observations: int
    transitions: int
    segments: int
    #: ω·b from the counts as they are now; infinite before the first transition.
    certificate: float
    #: ω·ΣĜ of the smoothed estimate.
    variability: float
    index: float
    worker: str | None
    #: When the lease ends, in seconds since 1970.
    expires: float | None
    #: Observations that the lease's holder may still tell.
    promised: int
    aside: bool


@dataclass(frozen=True)
class Pace:
    """How fast observations come in."""

    #: Seconds since 1970: now, and when the last observation was told.
    now: float
    last: float | None
    #: Observations a second over the last thousand; None before the second one.
    rate: float | None


def view_of(kind: type[View], record: Any, **others: Any) -> View:
    """A view with these values; its other fields are the record's fields of the same names."""
    names = (field.name for field in fields(kind) if field.name not in others)  # type: ignore[arg-type]
    return kind(**{name: getattr(record, name) for name in names}, **others)
