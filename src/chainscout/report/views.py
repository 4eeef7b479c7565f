"""A study as it is shown: its own records, and what is only shown. What does not exist or is infinite is None."""

from dataclasses import dataclass
from typing import Literal

from ..study import ChainLine, LeaseLine, Progress


@dataclass(frozen=True)
class Overview(Progress):
    """The study as a whole."""

    title: str
    #: empty: nothing was observed yet.
    state: Literal["empty", "running", "finished"]
    #: Why it stopped, in words.
    stopped: str | None
    #: Observations a second.
    rate: float | None
    #: Seconds until the budget, the target or the deadline ends the study at this pace; an estimate.
    seconds_left: float | None
    #: Seconds since 1970: now, and when the last observation was told.
    now: float
    last: float | None
    notes: tuple[str, ...]
    #: What the checks of the assumptions say, in one line.
    checks: str
    #: What people read of all this, on every medium: name and text.
    facts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Line(ChainLine):
    """One chain."""

    #: The name as it can be shown.
    label: str
    #: The chain's share of the observations, what plug-in η gives it, and what the policy aims at with the estimates.
    share: float | None
    plug_in: float | None
    aim: float | None


@dataclass(frozen=True)
class Page:
    """Some of the chains."""

    #: Chains found by the search.
    total: int
    page: int
    pages: int
    chains: tuple[Line, ...]


@dataclass(frozen=True)
class State:
    """One state of a chain."""

    label: str
    exits: int
    #: π̂.
    stationary: float | None
    #: How well its row is known: rarely, if an interval of its row is wider than one half.
    left: Literal["never", "rarely", "often"]


@dataclass(frozen=True)
class Window:
    """A part of a chain's matrix: the rows from ``row`` and the columns from ``column`` on."""

    row: int
    column: int
    rows: tuple[State, ...]
    columns: tuple[str, ...]
    transitions: tuple[tuple[int, ...], ...]
    matrix: tuple[tuple[float, ...], ...]
    lower: tuple[tuple[float, ...], ...]
    upper: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Chain:
    """A chain and a window of its matrix."""

    line: Line
    delta: float
    #: States whose rows were never left, and rarely.
    never: int
    rarely: int
    #: What is known of single probabilities, in a sentence.
    words: str
    window: Window


@dataclass(frozen=True)
class Curve:
    """A chain over time; one entry a point in each list, None where there is no such number."""

    number: int
    label: str
    #: The share that the policy aims at with the estimates of now.
    aim: float | None
    #: Observations of the whole study.
    observations: tuple[int, ...]
    #: Seconds since 1970; None for now.
    time: tuple[float | None, ...]
    certificate: tuple[float | None, ...]
    #: The chain's share of the observations, and what plug-in η gave it with the estimates of then.
    share: tuple[float, ...]
    plug_in: tuple[float | None, ...]


@dataclass(frozen=True)
class Curves:
    """Some chains over time."""

    target_loss: float | None
    curves: tuple[Curve, ...]


@dataclass(frozen=True)
class Card:
    """A registered question: its answer now and over time, what it is to become, and what it waits for."""

    number: int
    chain: str
    question: str
    #: Its share of δ.
    delta: float
    estimate: float | None
    lower: float | None
    upper: float | None
    width: float | None
    episodes: int | None
    #: The chain's transitions that the answer was computed from.
    transitions: int
    #: Whether it is answered well enough.
    met: bool
    #: The state whose next exit the replay waits for.
    waits: str | None
    notes: tuple[str, ...]
    #: What the study aims at.
    target_width: float | None
    limit: float | None
    #: Over time: observations of the whole study, and the ends and the estimate then, where they were finite.
    observations: tuple[int, ...]
    lowers: tuple[float, ...]
    uppers: tuple[float, ...]
    estimates: tuple[float | None, ...]


@dataclass(frozen=True)
class Held(LeaseLine):
    """A lease."""

    label: str
    #: Seconds until it runs out; negative if it has.
    seconds_left: float


@dataclass(frozen=True)
class Happening:
    """Something that happened."""

    number: int
    time: float
    kind: str
    chain: str | None
    detail: str
