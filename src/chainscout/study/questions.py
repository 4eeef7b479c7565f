"""Registered questions: a study gets them before its first draw, and keeps their answers up to date (MATH §11)."""

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..answers import Question, parse
from ..answers.running import Running
from ..diagnostics import Doubt
from ..errors import InputError, MixedUnitsWarning, PolicyWarning
from ..policies import Policy
from ..validation import did_you_mean, one_of, real_number, shown
from .repetition import sentence
from .views import QuestionLine

if TYPE_CHECKING:
    from .settings import StudySettings
    from .state import State

__all__ = [
    "WORST", "Asked", "Registered", "check_goals", "checked_limit", "checked_questions", "checked_width",
    "checked_worst", "doubt", "registered", "shares",
]  # fmt: skip

#: Which answer is the worst.
WORST = ("highest", "lowest")


class Registered(NamedTuple):
    """A question of a study, as its first entry has it."""

    #: The chain's number, and the question on one line.
    chain: int
    line: str
    #: Its share of δ, and the ends of its answer before the first draw (None: infinite).
    delta: float
    low: float | None
    high: float | None


class Asked:
    """A registered question, and its answer at the last look at its chain."""

    __slots__ = (
        "cards", "chain", "cut", "delta", "episodes", "estimate", "lower", "met", "notes", "number", "since", "text",
        "transitions", "upper", "waits",
    )  # fmt: skip

    def __init__(self, number: int, given: Registered) -> None:
        #: From 1, in the order of registration; its chain's number; the question on one line; and its share of δ.
        self.number = number
        self.chain, self.text, self.delta = given.chain, given.line, given.delta
        self.lower = -math.inf if given.low is None else given.low
        self.upper = math.inf if given.high is None else given.high
        self.estimate: float | None = None
        #: Completed episodes of the replay; None: the answer is from no replay.
        self.episodes: int | None = 0
        self.notes: tuple[str, ...] = ()
        #: The number above every slot that was issued at the look, and the chain's transitions then.
        self.cut = self.transitions = 0
        #: The position of the state whose exit the replay waits for; how many cards its row has; and the chain's
        #: transitions when this was so for the first time.
        self.waits: int | None = None
        self.cards = self.since = 0
        #: Whether the answer is good enough for the study to stop.
        self.met = False

    @property
    def width(self) -> float:
        """The distance between the ends."""
        return self.upper - self.lower if self.upper < math.inf else math.inf

    def hear(self, cut: int, given: Mapping[str, Any]) -> None:
        """Takes the answer that an entry has."""
        self.cut, self.transitions, self.episodes = cut, given["transitions"], given["episodes"]
        ends = (math.inf if given[name] is None else given[name] for name in ("lower", "upper"))
        self.lower, self.upper = ends
        self.estimate = math.inf if given.get("estimate", 0.0) is None else given.get("estimate")
        self.notes = tuple(given["notes"])
        waits, cards = given["waits"], given["cards"]
        if (waits, cards) != (self.waits, self.cards):
            self.waits, self.cards, self.since = waits, cards, self.transitions

    def line(self, state: "State") -> QuestionLine:
        """The question with its answer, as it is shown."""
        chain, why = state.chains[self.chain], doubt(state, self.chain)
        waits = self.waits if self.waits is None or chain.labels is None else chain.labels[self.waits]
        return QuestionLine(
            self.number, chain.name, self.text, self.delta, self.lower, self.upper, self.estimate, self.episodes,
            waits, self.transitions, self.met and why is None, self.notes if why is None else (why.sentence,),
            None if why is None else why.code, why is None,
        )  # fmt: skip


def doubt(state: "State", chain: int) -> Doubt | None:
    """Why no bound about a chain holds, as far as the entries say so; None: the bounds hold."""
    name = state.chains[chain].name
    for pair in state.repeated:
        if pair.chain == chain:
            return Doubt("repeated", sentence(name, pair.first, pair.second, pair.length))
    doubts = () if state.checked is None else state.checked["doubts"]
    return next((Doubt(code, words) for number, code, words in doubts if number == chain), None)


def checked_questions(given: Any, chains: Sequence[str]) -> dict[str, list[Question]]:
    """Chain → its questions. ``given``: a mapping from names of chains, or one question or list for all chains."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        given = dict.fromkeys(chains, given)
    unknown = [name for name in given if name not in chains]
    if unknown:
        hint = did_you_mean(unknown[0], chains)
        raise InputError(f"questions names chains that the study does not have: {shown(unknown)}{hint}")
    found = {}
    for name in chains:
        asked = given.get(name, [])
        listed = [asked] if isinstance(asked, str | Question) else asked
        if not isinstance(listed, Sequence):
            raise InputError(
                f"the questions of chain {name!r} must be a question, a line or a list of them, not {shown(asked)}"
            )
        questions = [parse(one) if isinstance(one, str) else one for one in listed]
        for question in questions:
            if not isinstance(question, Question):
                raise InputError(
                    f"a question must be a Reach, PassageTime, Cost or LongRunShare, or a line of text, not "
                    f"{shown(question)}"
                )
        if len({str(question) for question in questions}) < len(questions):
            raise InputError(f"a question of chain {name!r} is given twice")
        if questions:
            found[name] = questions
    return found


def checked_width(value: Any) -> float | None:
    """A target width."""
    meaning = "how wide every answer may be at the end"
    return None if value is None else real_number(value, "target_width", above=0.0, meaning=meaning)


def checked_limit(value: Any) -> float | None:
    """A limit."""
    meaning = "the number of which every answer is to be known to be below it or not"
    return None if value is None else real_number(value, "limit", meaning=meaning)


def checked_worst(value: Any) -> str | None:
    """Which answer is the worst."""
    return None if value is None else one_of(value, "worst", WORST)


def check_goals(settings: "StudySettings", asked: Mapping[str, Sequence[Question]]) -> None:
    """Raises ``InputError`` for aims that contradict each other or do not fit the questions."""
    aims = [name for name in ("target_loss", "target_width", "limit", "worst") if getattr(settings, name) is not None]
    if len(aims) > 1:
        raise InputError(f"a study aims at one thing, and {' and '.join(aims)} are given")
    if not asked and aims and aims != ["target_loss"]:
        raise InputError(f"{aims[0]} is about the answers to questions, and the study has none")
    policy = settings.policy
    assert isinstance(policy, Policy)
    if policy.aiming and not aims:
        raise InputError(
            f"the policy {policy.name!r} advances the chain that is furthest from a target, and the study has none:"
            " give a target, or another policy"
        )
    if aims and aims != ["target_loss"] and not policy.aiming:
        warnings.warn(
            f"the policy {policy.name!r} chooses chains by their counts, and not by how far their answers are from the"
            " aim: if the budget ends first, some may be far from it; without policy=, the furthest goes first",
            PolicyWarning,
            stacklevel=2,
        )
    if aims == ["worst"] and (len(asked) < 2 or any(len(questions) != 1 for questions in asked.values())):
        raise InputError("worst compares chains: at least two of them must have one question each")
    units = {question.unit: None for questions in asked.values() for question in questions}
    if aims == ["target_width"] and len(units) > 1:
        warnings.warn(
            f"a study has one target width, and its answers are in different units ({', '.join(units)}): the width"
            f" {settings.target_width:g} may be narrow for one unit and wide for another, and the narrow one takes most"
            " observations; make one study for each unit",
            MixedUnitsWarning,
            stacklevel=2,
        )


def shares(delta: float, chains: int, number: int) -> list[float]:
    """The share of δ for each of a chain's questions: δ/K for the chain, of which the j-th question has 1/(j(j+1)).

    The last question has the rest, because no question is registered later.
    """
    part = delta / chains
    return [part / (j * (j + 1)) for j in range(1, number)] + [part / number]


def registered(
    asked: Mapping[str, Sequence[Question]], delta: float, chains: Sequence[str], states: Mapping[str, tuple[Any, bool]]
) -> list[Registered]:
    """The questions of a new study. ``states``: chain → its states, and whether there may be others."""
    found: list[Registered] = []
    for number, name in enumerate(chains):
        questions = asked.get(name)
        if questions is None:
            continue
        known, is_open = states[name]
        for question, share in zip(questions, shares(delta, len(asked), len(questions)), strict=True):
            if is_open and question.complete:
                raise InputError(
                    f"'complete' in the question {str(question)!r} says that no other states than those seen will come,"
                    f" and chain {name!r} has shown none yet: give the chain its states instead of opening it"
                )
            try:
                vacuous = Running(question, known, share, open_states=is_open).ends
            except InputError as error:
                raise InputError(f"the question {str(question)!r} cannot be put to chain {name!r}: {error}") from None
            low, high = (None if math.isinf(end) else float(end) for end in vacuous)
            found.append(Registered(number, str(question), share, low, high))
    return found
