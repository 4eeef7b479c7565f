"""The result of a check, in numbers and in a sentence; and all checks of a chain or of a study together."""

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, overload

import numpy as np

from ..numerals import bound
from ..validation import failure_probability, printable


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
    #: The number of issue of the draw since which it rejects, where it is known.
    since: int | None = None
    #: (number of issue, log of the e-value) at up to 200 moments.
    history: tuple[tuple[int, float], ...] = field(default=(), repr=False)

    @property
    def code(self) -> str:
        """Its name in `Doubt.code`."""
        return "age" if self.by == "age" else self.kind.value

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
            "since": self.since,
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


class Doubt(NamedTuple):
    """Why no bound of a chain holds."""

    #: For programs: the check that rejects ('order', 'change', 'sameness' or 'age'), or 'repeated' for repeated paths.
    code: str
    sentence: str


#: The compared things, in words.
WORDS = {"worker": "worker", "path": "path", "age": "age of a path", "other data": "set of data"}


def denied(kind: Kind, by: str) -> str:
    """What a rejection says of the process."""
    if kind is Kind.ORDER:
        return "the next state depends on what came before the state"
    if kind is Kind.CHANGE:
        return "the law changes"
    if kind is Kind.REFERENCE:
        return "the law is not that of the known matrix"
    return f"the law is not the same for every {WORDS.get(by, by)}"


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

    def doubt(self, chain: str | None = None) -> Doubt | None:
        """Why no bound of this chain holds; None if no check speaks against the chain.

        ``chain``: its name; None: the only chain. Of several chains, those in ``blamed`` are meant, and no other.
        """
        several = any(check.chain is None for check in self.checks) and chain is not None
        found = [check for check in self.against if not several or chain in self.blamed.get((check.kind, check.by), ())]
        if not found:
            return None
        first, also = found[0], ", ".join(f"{check.kind.value} ({check.by})" for check in found[1:])
        key = chain, first.kind, first.by
        place = next(
            (check.where[0] for check in self if (check.chain, check.kind, check.by) == key and check.where), None
        )
        since = "" if first.since is None else f" since draw {first.since:,}"
        moment = "" if place is None or place.moment is None else f", most likely at draw {place.moment:,}"
        return Doubt(
            first.code,
            f"no bound holds: the check of {first.kind.value} ({first.by}) rejects{since}:"
            f" {denied(first.kind, first.by)}{moment}{f'; so does {also}' if also else ''}",
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


def rejected_chains(e_values: Mapping[str, float], delta: float) -> tuple[str, ...]:
    """The chains that are not Markov, with all statements at level δ at once, from the current e-value of each.

    Chain k is named if, for every m, the mean of its e-value and the m smallest others reaches 1/δ: then every mean of
    chains that includes k rejects (closed testing).
    """
    delta = failure_probability(delta)
    names, found = list(e_values), []
    values = np.array([e_values[name] for name in names])
    order = np.argsort(values, kind="stable")
    for k, name in enumerate(names):
        others = values[order[order != k]]
        means = (values[k] + np.concatenate([[0.0], np.cumsum(others)])) / np.arange(1, len(names) + 1)
        if (means >= 1 / delta).all():
            found.append(name)
    return tuple(found)


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
