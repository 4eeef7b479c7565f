"""The result of a check, in numbers and in a sentence; and all checks of a chain or of a study together."""

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, overload

from ..numerals import bound
from ..validation import printable


class Kind(StrEnum):
    """The kinds of checks."""

    #: Whether the next state depends on more than the state.
    ORDER = "order"
    #: Whether the law changes with time.
    CHANGE = "change"
    #: Whether the law is the same for every worker, path or age, or in another set of data.
    SAMENESS = "sameness"
    #: Whether the law is that of a matrix which is known exactly.
    REFERENCE = "reference"


@dataclass(frozen=True, slots=True)
class Place:
    """The place of the evidence. Fields that do not apply are None."""

    #: The state of the row, and the logarithm of the row's own evidence (for *change*: of 1 over its level).
    state: Hashable
    log_evidence: float
    #: The predecessor, worker, path, bin of ages or set of data whose law differs most.
    label: Hashable | None = None
    #: The outcome that became rarer or more frequent.
    outcome: Hashable | None = None
    #: The numbers of issue between which the change is clearest, compared with everything before.
    first: int | None = None
    last: int | None = None
    #: The number of issue at which the change most likely happened, and the outcome's share before and from then on.
    moment: int | None = None
    before: float | None = None
    after: float | None = None

    def to_json(self) -> dict[str, Any]:
        """The place as plain data."""
        names = ("state", "label", "outcome", "first", "last", "moment", "before", "after")
        return {
            **{name: getattr(self, name) for name in names if getattr(self, name) is not None},
            "log_evidence": self.log_evidence,
        }


@dataclass(frozen=True, slots=True)
class Check:
    """One check of one chain, or of all chains together. It may be repeated whenever there are more data.

    If the chain is Markov and does not change, the probability that ``level`` is ever at most δ is at most δ.
    """

    #: The chain; None: all chains together, or the only one.
    chain: str | None
    kind: Kind
    #: What is compared: the predecessor, time, worker, path, age, other data, a known matrix.
    by: str
    #: The e-process now and its largest value so far; infinite if the number is too large for a float.
    e_value: float
    largest: float
    #: The smallest level at which the check rejects; 1 if it does not reject.
    level: float
    sentence: str
    where: tuple[Place, ...] = ()
    #: How many transitions were judged, and how many were left out because their row has too many labels.
    cards: int = 0
    left_out: int = 0
    #: (number of issue, log of the e-value) at up to 200 moments.
    history: tuple[tuple[int, float], ...] = field(default=(), repr=False)

    def rejects(self, delta: float) -> bool:
        """Whether the check alone rejects at level ``delta``."""
        return self.level <= delta

    def to_json(self) -> dict[str, Any]:
        """The check as plain data. An infinite number becomes None."""
        return {
            "chain": self.chain,
            "kind": self.kind.value,
            "by": self.by,
            "e_value": _finite(self.e_value),
            "largest": _finite(self.largest),
            "level": self.level,
            "sentence": self.sentence,
            "where": [place.to_json() for place in self.where],
            "cards": self.cards,
            "left_out": self.left_out,
        }


@dataclass(frozen=True, slots=True)
class LossRate:
    """How many of the draws from a state were lost. This cannot show whether losses depend on the lost value."""

    chain: str | None
    state: Hashable
    lost: int
    draws: int

    @property
    def rate(self) -> float:
        """Lost draws over all draws from the state."""
        return self.lost / self.draws

    def to_json(self) -> dict[str, Any]:
        """The rate as plain data."""
        return {"chain": self.chain, "state": self.state, "lost": self.lost, "draws": self.draws, "rate": self.rate}


#: The limit of what a rate of losses can show.
LOSSES_SAY = "this cannot show whether losses depend on the lost value"
#: The meaning of 'no check rejects'.
NOTHING_FOUND = (
    "Nothing speaks against a Markov chain that does not change. That proves nothing: the data may be too few."
)


#: The share of the transitions that must have been checked before nothing is said to speak against the assumption.
MOST_OF_THEM = 0.9


@dataclass(frozen=True, slots=True)
class Diagnosis(Sequence[Check]):
    """The checks of the data at one moment: a sequence of `Check`, first all chains together, then chain by chain."""

    checks: tuple[Check, ...]
    #: The probability that any of the checks ever rejects wrongly, and the number of checks that share it.
    delta: float
    kinds: int
    #: The chains responsible for a rejection of all together, by kind and what is compared.
    blamed: Mapping[tuple[Kind, str], tuple[str, ...]]
    #: The number of transitions that wait behind a pending or lost draw, and the reasons, as sentences.
    waiting: int
    remarks: tuple[str, ...]
    #: Paths that repeat each other, as sentences.
    repeated: tuple[str, ...]
    losses: tuple[LossRate, ...]

    @overload
    def __getitem__(self, index: int) -> Check: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Check]: ...
    def __getitem__(self, index: int | slice) -> Check | Sequence[Check]:
        return self.checks[index]

    def __len__(self) -> int:
        return len(self.checks)

    def __iter__(self) -> Iterator[Check]:
        return iter(self.checks)

    @property
    def against(self) -> tuple[Check, ...]:
        """The checks that contradict the assumptions at ``delta``, which all kinds of check share; *order* first.

        With several chains: the checks of all chains together, which account for the number of chains.
        """
        overall = [check for check in self.checks if check.chain is None] or self.checks
        found = [check for check in overall if check.rejects(self.delta / self.kinds)]
        return tuple(sorted(found, key=lambda check: check.kind is not Kind.ORDER))

    @property
    def note(self) -> str | None:
        """One sentence to show with a certificate if the data contradict its assumptions; otherwise None."""
        if not self.against:
            return None
        kinds = ", ".join(dict.fromkeys(f"{check.kind.value} ({check.by})" for check in self.against))
        return (
            "the bound assumes that the next state depends on the state alone and that the law does not change; "
            f"the data speak against it: {kinds}"
        )

    def in_one_line(self) -> str:
        """Whether the data contradict the assumptions, and how many transitions were checked."""
        judged = max((check.cards for check in self), default=0)
        many = f"{judged:,} of {judged + self.waiting:,} transitions"
        if self.against:
            kinds = ", ".join(f"{check.kind.value} ({check.by}), level {bound(check.level)}" for check in self.against)
            return f"the data speak against a Markov chain that does not change: {kinds} ({many})"
        if judged < MOST_OF_THEM * (judged + self.waiting):
            rest = "nothing in these speaks against a Markov chain that does not change"
            return f"only {many} were checked ('chainscout diagnose' checks each chain to its end): {rest}"
        return f"nothing speaks against a Markov chain that does not change ({many})"

    def to_json(self) -> dict[str, Any]:
        """The diagnosis as plain data."""
        return {
            "checks": [check.to_json() for check in self.checks],
            "delta": self.delta,
            "kinds": self.kinds,
            "note": self.note,
            "blamed": [
                {"kind": kind.value, "by": by, "chains": list(names)} for (kind, by), names in self.blamed.items()
            ],
            "waiting": self.waiting,
            "remarks": list(self.remarks),
            "repeated": list(self.repeated),
            "losses": [rate.to_json() for rate in self.losses],
        }

    def __str__(self) -> str:
        return "\n".join(map(printable, self.lines()))

    def lines(self) -> list[str]:
        """The result in sentences: what contradicts the assumptions, or that nothing does."""
        found = [check.sentence for check in self.against]
        for (kind, by), names in self.blamed.items():
            found.append(f"Chains that {kind.value} ({by}) speaks against: {', '.join(names)}.")
        if not found:
            found.append(NOTHING_FOUND)
        found += [*self.remarks, *self.repeated]
        for rate in self.losses:
            owner = "" if rate.chain is None else f" of {rate.chain}"
            found.append(f"{rate.lost} of {rate.draws} draws from {quoted(rate.state)}{owner} were lost: {LOSSES_SAY}.")
        return found


def quoted(state: Hashable) -> str:
    """A state in a sentence."""
    if isinstance(state, tuple):
        return "(" + ", ".join(quoted(part) for part in state) + ")"
    return f'"{state}"' if isinstance(state, str) else f"state {state}"


def exponential(log_value: float) -> float:
    """e^log_value, or infinity."""
    return math.exp(log_value) if log_value < 700 else math.inf


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
