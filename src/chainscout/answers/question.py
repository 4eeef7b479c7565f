"""Questions about one chain. They are immutable, and name states by their labels.

``str(question)`` is the question on one line, and ``parse`` reads that line.
"""

import math
import re
from collections.abc import Hashable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, ClassVar, TypeAlias

from ..errors import InputError
from ..validation import label_from_text, real_number, shown, truth_value, whole_number

__all__ = ["KEYWORDS", "Cost", "LongRunShare", "PassageTime", "Question", "Reach"]

#: A start: a state, a law over states (a mapping, kept as pairs), or None for where paths start.
_Start: TypeAlias = Hashable | Mapping[Hashable, float] | None
#: One state, or several.
_States: TypeAlias = Hashable | Iterable[Hashable]

#: The unit of probabilities and of shares.
_PROBABILITY = "probabilities or shares"

#: Words of the grammar. A state with such a label is written in quotes.
KEYWORDS = frozenset(
    {
        "absorbing", "anchor", "before", "complete", "cost", "discounted", "ever", "from", "given", "impossible", "of",
        "over", "reach", "share", "steps", "time", "to", "within",
    }
)  # fmt: skip

_BARE = re.compile(r"[^\s\",=>]+")


@dataclass(frozen=True)
class Question:
    """The base of all questions: facts about the chain that its user knows and that data cannot show.

    ``absorbing``: states that are never left. An episode that arrives there ends.
    ``impossible``: pairs (from, to) of transitions that cannot happen.
    ``complete``: there are no states other than those seen so far. This matters if states are open.
    ``starts_alike``: all paths start by one law and independently of everything seen before, for a question that names
    no start. Restarts that depend on what was seen falsify this.
    """

    #: The unit of the answer.
    unit: ClassVar[str]

    _: KW_ONLY
    absorbing: tuple[Hashable, ...] = ()
    impossible: tuple[tuple[Hashable, Hashable], ...] = ()
    complete: bool = False
    starts_alike: bool = False

    def __post_init__(self) -> None:
        self._set("absorbing", _states(self.absorbing, "absorbing", least=0))
        self._set("impossible", _pairs(self.impossible))
        self._set("complete", truth_value(self.complete, "complete", "whether these are all states"))
        meaning = "whether paths start alike and independently"
        self._set("starts_alike", truth_value(self.starts_alike, "starts_alike", meaning))
        if self.starts_alike and getattr(self, "start", self) is not None:
            raise InputError("starts_alike is for a question that names no start, and this one does not need it")

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _facts(self) -> str:
        facts = [f"{_label(state)} absorbing" for state in self.absorbing]
        facts += [f"{_label(x)} -> {_label(y)} impossible" for x, y in self.impossible]
        facts += ["complete"] * self.complete + ["starts alike"] * self.starts_alike
        return f" given {', '.join(facts)}" if facts else ""

    def __repr__(self) -> str:
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "_"}
        defaults = {field.name: field.default for field in fields(self)}
        said = [f"{name}={value!r}" for name, value in values.items() if value != defaults[name]]
        return f"{type(self).__name__}({', '.join(said)})"


def _start(start: _Start) -> Any:
    """The stored form of a start: None, a label, or a law as a tuple of pairs (label, probability)."""
    if start is None:
        return None
    if isinstance(start, Mapping):
        start = _Law(start.items())
    if isinstance(start, _Law):
        pairs = [
            (_hashable(state, "start"), real_number(p, "a probability of start", least=0.0, most=1.0))
            for state, p in start
        ]
        if not pairs or len({state for state, _ in pairs}) != len(pairs) or abs(sum(p for _, p in pairs) - 1) > 1e-9:
            raise InputError(f"start (a law over states) must have probabilities that sum to 1, not {shown(start)}")
        return _Law(pairs)
    return _hashable(start, "start")


class _Law(tuple[tuple[Hashable, float], ...]):
    """A law over states. It has its own type, because a tuple can be a label."""

    __slots__ = ()


def _hashable(value: Any, name: str) -> Hashable:
    try:
        hash(value)
    except TypeError:
        raise InputError(f"{name} must be a state's label, not {shown(value)}") from None
    return value  # type: ignore[no-any-return]


def _states(states: _States, name: str, least: int = 1) -> tuple[Hashable, ...]:
    """Labels as a tuple, from one label or a list, tuple or set of them. A label that is a tuple is given in a list."""
    several = isinstance(states, list | tuple | AbstractSet | range)
    listed = list(states) if several else [states]  # type: ignore[arg-type]
    if isinstance(states, AbstractSet):  # a set has no order of its own
        listed.sort(key=lambda label: (type(label).__name__, str(label)))
    labels = tuple(dict.fromkeys(_hashable(label, name) for label in listed))
    if len(labels) < least:
        raise InputError(f"{name} must name at least one state, not {shown(states)}")
    return labels


def _pairs(pairs: Any) -> tuple[tuple[Hashable, Hashable], ...]:
    try:
        if isinstance(pairs, str | bytes):
            raise TypeError
        found = []
        for pair in pairs:
            if isinstance(pair, str | bytes):
                raise TypeError
            x, y = pair
            found.append((_hashable(x, "impossible"), _hashable(y, "impossible")))
    except (TypeError, ValueError):
        raise InputError(f"impossible must be pairs (from, to) of states, not {shown(pairs)}") from None
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True, repr=False)
class Reach(Question):
    """The probability to reach a state of ``target``. A start in the target has probability 1.

    ``target``: a state, or several.
    ``start``: a state, a law over states as a mapping, or None: where paths start, with ``starts_alike``.
    ``within``: the largest number of steps; None: no limit.
    ``before``: a state, or several, that must not be reached first.
    """

    unit: ClassVar[str] = _PROBABILITY

    target: Any
    start: Any = None
    within: int | None = None
    before: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("target", _states(self.target, "target"))
        self._set("start", _start(self.start))
        if self.within is not None:
            self._set("within", whole_number(self.within, "within", least=0, meaning="steps"))
        if self.before is not None:
            self._set("before", _states(self.before, "before"))
            both = [state for state in self.target if state in self.before]
            if both:
                raise InputError(f"before must not name a state of the target, and names {shown(both[0])}")

    def __str__(self) -> str:
        before = "" if self.before is None else f" before {_listed(self.before)}"
        end = " ever" if self.within is None else f" within {self.within}"
        return f"reach {_listed(self.target)}{before}{_from(self.start)}{end}{self._facts()}"


@dataclass(frozen=True, repr=False)
class PassageTime(Question):
    """The expected number of steps until a state of ``target`` is reached. A start in the target has time 0.

    ``target``: a state, or several.
    ``start``: a state, a law over states as a mapping, or None: where paths start, with ``starts_alike``.
    """

    unit: ClassVar[str] = "steps"

    target: Any
    start: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("target", _states(self.target, "target"))
        self._set("start", _start(self.start))

    def __str__(self) -> str:
        return f"time to {_listed(self.target)}{_from(self.start)}{self._facts()}"


@dataclass(frozen=True, repr=False)
class Cost(Question):
    """The expected cost Σ c(x_k) of the states x_0, x_1, … of a walk: of the first ``steps`` states, or discounted.

    ``costs``: state → its cost. States without a given cost cost nothing.
    ``start``: a state, a law over states as a mapping, or None: where paths start, with ``starts_alike``.
    ``steps``: how many states count, including the start.
    ``discount``: γ < 1, for Σ γ^k c(x_k) without an end. One of the two must be given.
    """

    unit: ClassVar[str] = "costs"

    costs: Any
    start: Any = None
    steps: int | None = None
    discount: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        pairs = self.costs.items() if isinstance(self.costs, Mapping) else self.costs
        try:
            listed = [(_hashable(state, "costs"), cost) for state, cost in pairs]
        except (TypeError, ValueError):
            raise InputError(f"costs must map states to numbers, not {shown(self.costs)}") from None
        self._set("costs", tuple((state, real_number(cost, f"the cost of {shown(state)}")) for state, cost in listed))
        if not listed or len({state for state, _ in listed}) != len(listed):
            raise InputError(f"costs must name at least one state, and each state once, not {shown(self.costs)}")
        self._set("start", _start(self.start))
        if (self.steps is None) == (self.discount is None):
            raise InputError("a cost needs steps (how many states count) or discount (below 1), and not both")
        if self.steps is not None:
            self._set("steps", whole_number(self.steps, "steps", meaning="how many states count"))
        if self.discount is not None:
            meaning = "what a cost one step later is worth"
            self._set("discount", real_number(self.discount, "discount", least=0.0, below=1.0, meaning=meaning))

    def __str__(self) -> str:
        costs = ", ".join(f"{_label(state)}={_number(cost)}" for state, cost in self.costs)
        end = f" over {self.steps} steps" if self.steps is not None else f" discounted {_number(self.discount)}"
        return f"cost {costs}{_from(self.start)}{end}{self._facts()}"


@dataclass(frozen=True, repr=False)
class LongRunShare(Question):
    """The share of time that the chain spends in ``states`` in the long run.

    ``states``: a state, or several.
    ``anchor``: a state that the chain visits often, chosen before the data were seen. A cycle lasts from one visit to
    the next. None: every state is tried, and δ is split over them.
    """

    unit: ClassVar[str] = _PROBABILITY

    states: Any
    anchor: Hashable | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("states", _states(self.states, "states"))
        if self.anchor is not None:
            self._set("anchor", _hashable(self.anchor, "anchor"))

    def __str__(self) -> str:
        anchor = "" if self.anchor is None else f" anchor {_label(self.anchor)}"
        return f"share of {_listed(self.states)}{anchor}{self._facts()}"


def _label(label: Hashable) -> str:
    """A label in the grammar: without quotes if it can be read back, otherwise in quotes."""
    if isinstance(label, str):
        bare = _BARE.fullmatch(label) and label not in KEYWORDS and label != "->" and label_from_text(label) == label
        return label if bare else '"' + label.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(label, int) and not isinstance(label, bool):
        return str(label)
    raise InputError(
        f"a question can be written on a line if its states are texts or whole numbers, not {shown(label)}"
    )


def _listed(labels: tuple[Hashable, ...]) -> str:
    return ", ".join(map(_label, labels))


def _number(value: float | None) -> str:
    assert value is not None
    return repr(int(value)) if math.isfinite(value) and value == int(value) and abs(value) < 1e15 else repr(value)


def _from(start: Any) -> str:
    if start is None:
        return ""
    if isinstance(start, _Law):
        return " from " + ", ".join(f"{_label(state)}={_number(p)}" for state, p in start)
    return f" from {_label(start)}"
