"""A question in terms of positions: the meaning of its labels for a chain with known states."""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..validation import did_you_mean, shown
from .question import Cost, LongRunShare, PassageTime, Question, Reach

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

#: The meaning of a state for a walk towards a target: continue, arrived, failed (avoided, or never left again).
ON, ARRIVED, FAILED = 0, 1, 2
#: Starts that are not a position: where paths start, a law over states, and a state that was not discovered yet.
WHERE_PATHS_START, LAW, UNKNOWN = -1, -2, -3


@dataclass(frozen=True)
class Terms:
    """A question in terms of positions."""

    question: Question
    states: Sequence[Hashable]
    #: Whether the chain may have other states.
    open: bool
    #: The meaning of each state: `ON`, `ARRIVED` or `FAILED`. For a share, `ARRIVED` marks the states of the share.
    kind: npt.NDArray[np.int64]
    #: A position, or one of the three others.
    start: int
    #: The law of the start; empty unless there is one.
    law: Array
    #: Each state's cost, and the least and the largest cost that a state can have.
    cost: Array
    least: float
    largest: float
    #: The position of the anchor; None: none was named.
    anchor: int | None
    absorbing: Mask
    impossible: tuple[tuple[int, int], ...]
    #: The question's states that the chain has not shown yet.
    unseen: tuple[Hashable, ...] = ()

    @property
    def size(self) -> int:
        """How many states are known."""
        return len(self.states)

    def label(self, position: int) -> Hashable:
        """The user's label of a state."""
        return self.states[position]

    def notes(self) -> tuple[str, ...]:
        """Sentences about states of the question that were never seen. Such a label may be a typing error."""
        return tuple(
            f"the state {shown(label)} has never been seen{did_you_mean(label, self.states)}" for label in self.unseen
        )

    def reachable(self) -> Mask:
        """The states that a walk from the start can reach before it ends, if every possible transition may happen."""
        step = np.ones((self.size, self.size), dtype=bool)
        for x, y in self.impossible:
            step[x, y] = False
        step[(self.kind != ON) | self.absorbing] = False
        reached = np.zeros(self.size, dtype=bool)
        if self.start >= 0:
            reached[self.start] = True
        elif self.start == LAW:
            reached |= self.law > 0
        else:
            reached[:] = True
        while True:
            more = reached | step[reached].any(axis=0)
            if (more == reached).all():
                return reached
            reached = more


def need_starts(terms: Terms) -> Terms:
    """The same terms. Raises ``InputError`` if the question leaves its start to data, and does not declare starts."""
    if terms.start == WHERE_PATHS_START and not (
        terms.question.starts_alike or isinstance(terms.question, LongRunShare)
    ):
        raise InputError(
            "a question without a start assumes that paths start alike and independently of what was seen: name the"
            " start (start=STATE, 'from STATE'), or declare this (starts_alike=True, 'given starts alike')"
        )
    return terms


def check_declarations(
    terms: Terms, seen: Callable[[int], Mapping[int, float]], later: Sequence[Hashable] = ()
) -> None:
    """Raises ``InputError`` if the data refute what the question declares. Every method begins with this.

    ``seen``: a state → its next states, with how often each was seen or, of a known matrix, its probability.
    ``later``: the states that were first seen after the question was asked.
    """

    rows = {x: seen(x) for x in {*np.flatnonzero(terms.absorbing).tolist(), *(x for x, _ in terms.impossible)}}

    def said(x: int, y: int, declared: str = "") -> str:
        number = rows[x][y]
        often = f"has probability {number:g}" if isinstance(number, float) else f"was seen {number:,} times"
        return f"{shown(terms.label(x))} -> {shown(terms.label(y))} {declared}{often}"

    for x, y in terms.impossible:
        if rows[x].get(y):
            raise InputError(f"the transition {said(x, y, 'is declared impossible, and ')}")
    for x in np.flatnonzero(terms.absorbing).tolist():
        for y, number in rows[x].items():
            if y != x and number:
                raise InputError(f"the state {shown(terms.label(x))} is declared absorbing, and {said(x, y)}")
    for x, ways in Counter(x for x, _ in terms.impossible).items():
        if ways == terms.size and not terms.open:
            raise InputError(f"every transition out of {shown(terms.label(x))} is declared impossible")
    if terms.question.complete and later:
        late = f"the state {shown(later[0])} was first seen after the question was asked"
        raise InputError(f"the states are declared complete, and {late}")


def terms_of(question: Question, states: Sequence[Hashable], *, open_states: bool = False) -> Terms:
    """The question for a chain with these states. A state that a closed chain does not have is an error."""
    if not isinstance(question, Question):
        raise InputError(f"a question must be a Reach, PassageTime, Cost or LongRunShare, not {shown(question)}")
    is_open = open_states and not question.complete
    places: dict[Hashable, int] = {label: position for position, label in enumerate(states)}
    size = len(states)
    unseen: dict[Hashable, None] = {}

    def place(label: Hashable) -> int | None:
        found = _place(places, states, label)
        if found is None:
            unseen[label] = None
        if found is None and not open_states:
            hint = did_you_mean(label, states)
            raise InputError(f"unknown state {shown(label)}{hint}: the states are {shown(list(states))}")
        return found

    def mask(labels: Sequence[Hashable]) -> Mask:
        found = np.zeros(size, dtype=bool)
        for label in labels:
            position = place(label)
            if position is not None:
                found[position] = True
        return found

    absorbing = mask(question.absorbing)
    pairs = [(place(x), place(y)) for x, y in question.impossible]
    impossible = tuple((x, y) for x, y in pairs if x is not None and y is not None)
    kind = np.full(size, ON, dtype=np.int64)
    cost, least, largest = np.zeros(size), 0.0, 0.0
    start, law, anchor = WHERE_PATHS_START, np.zeros(0), None
    if isinstance(question, Reach | PassageTime):
        kind[absorbing] = FAILED
        if isinstance(question, Reach) and question.before is not None:
            kind[mask(question.before)] = FAILED
        kind[mask(question.target)] = ARRIVED
    if isinstance(question, Cost):
        for label, value in question.costs:
            position = place(label)
            if position is not None:
                cost[position] = value
        named = [value for _, value in question.costs]
        others = [0.0] * (is_open or len(named) < size)  # a state without a given cost costs nothing
        least, largest = min(named + others), max(named + others)
    if isinstance(question, LongRunShare):
        kind[mask(question.states)] = ARRIVED
        anchor = None if question.anchor is None else place(question.anchor)
        if question.anchor is not None and anchor is None:
            raise InputError(f"the anchor {shown(question.anchor)} is a state that was not seen yet")
    else:
        start, law = _start(question.start, place, size)  # type: ignore[attr-defined]
    return Terms(
        question, states, is_open, kind, start, law, cost, least, largest, anchor, absorbing, impossible, tuple(unseen)
    )  # fmt: skip


def _place(places: Mapping[Hashable, int], states: Sequence[Hashable], label: Hashable) -> int | None:
    if isinstance(states, range) and isinstance(label, bool):
        return None
    return places.get(label)


def _start(start: Any, place: Any, size: int) -> tuple[int, Array]:
    from .question import _Law

    if start is None:
        return WHERE_PATHS_START, np.zeros(0)
    if not isinstance(start, _Law):
        position = place(start)
        return (UNKNOWN if position is None else position), np.zeros(0)
    law = np.zeros(size)
    for label, probability in start:
        position = place(label)
        if position is None and probability > 0:
            return UNKNOWN, np.zeros(0)
        if position is not None:
            law[position] += probability
    only = np.flatnonzero(law)
    if len(only) == 1:
        return int(only[0]), np.zeros(0)
    return LAW, law / law.sum()
