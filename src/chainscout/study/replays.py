"""The replays of a study's questions, which go on where they waited at the look before (MATH §11 and §15).

What they read is a function of the chain's draws alone: `walked_paths` gives the same cards from the whole journal.
"""

import heapq
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ..answers import Answer, Question, parse
from ..answers.answer import unchecked
from ..answers.replay import AWAITED, BLOCKED, DRAWN, Decks, most_holes
from ..answers.running import Running
from ..diagnostics import Diagnosis, Doubt, diagnose
from ..errors import InputError
from ..paths import HOLE
from . import commands, labels
from .certificate import repeated_paths
from .chain import Chain
from .checks import judged_paths
from .draws import START, UNKNOWN, Card, Status
from .questions import Asked
from .state import State
from .walks import open_cards, source_key, walked_paths

if TYPE_CHECKING:
    from .keeper import Keeper

__all__ = ["Replays", "Reply", "answered"]


class Reply(NamedTuple):
    """The answer to a registered question, and what its replay waits for."""

    #: The question's number, and the number above every slot that was issued then.
    question: int
    cut: int
    #: The chain's transitions then.
    transitions: int
    answer: Answer
    #: The position of the state whose exit the replay waits for, and how many cards of its row can be read.
    waits: int | None = None
    cards: int = 0
    #: The hole that ends this row, as the number of its slot; None: none does.
    stop: int | None = None
    #: Why there is no answer, if the data contradict what the question or its bounds assume.
    refused: str | None = None


class Replays:
    """The decks of every chain with questions, and the questions' replays. One thread at a time may use them."""

    def __init__(self) -> None:
        #: (chain, how many holes get all their values) → its decks.
        self._readings: dict[tuple[int, int], _Reading] = {}
        self._running: dict[int, Running] = {}

    def read(self, state: State, chain: Chain, question: int | None = None) -> Callable[[], list[Reply]]:
        """Reads what is new. The result computes the answers, or this one, outside of the study's lock.

        ``state``: records draws.
        """
        cut, transitions = state.head.number + 1, chain.transitions
        chosen = [asked for asked in chain.questions if question in (None, asked.number)]
        wanted = [(asked, *self._up_to_date(state, chain, asked)) for asked in chosen]
        return lambda: [_reply(asked, one, decks, cut, transitions) for asked, one, decks in wanted]

    def growth(
        self, state: State, chain: Chain, good: Callable[[float, float], bool], width: float | None
    ) -> Callable[[], list[float]]:
        """The factor by which the chain must grow until each of its answers is good, as `Running.growth` says."""
        wanted = [self._up_to_date(state, chain, asked) for asked in chain.questions]
        return lambda: [one.growth(decks, good, width) for one, decks in wanted]

    def _up_to_date(self, state: State, chain: Chain, asked: Asked) -> tuple[Running, Decks]:
        known = labels.states(chain)
        states = range(known) if isinstance(known, int) else tuple(known)
        running = self._running.get(asked.number)
        if running is None or running.states != states:
            running = Running(parse(asked.text), states, asked.delta, open_states=chain.is_open)
            self._running[asked.number] = running
        key = chain.number, most_holes(len(states), chain.is_open, running.question)
        if key not in self._readings:
            self._readings[key] = _Reading(source_key(state, chain), key[1])
        self._readings[key].catch_up(chain)
        return running, self._readings[key].decks


def _reply(asked: Asked, running: Running, decks: Decks, cut: int, transitions: int) -> Reply:
    try:
        found = running.answer(decks)
    except InputError as error:
        return Reply(asked.number, cut, transitions, running.unknown(str(error)), refused=str(error))
    if found.waiting_for is None or found.waiting_for not in running.states:
        return Reply(asked.number, cut, transitions, found)
    row = running.states.index(found.waiting_for)
    stop = decks.stops.get(row) if decks.ends[row] == BLOCKED else None
    return Reply(asked.number, cut, transitions, found, row, int(decks.count[row]), stop)


def answered(
    keeper: "Keeper", chain: str, question: Question | str, checks: Diagnosis | None, *, delta: float | None = None,
    method: str | None = None, asked: int | None = None, losses: str = "checked",
) -> Answer:  # fmt: skip
    """The answer to a question about a chain. That to a registered question counts for the aim.

    ``checks``: of all chains at this moment; None: there are too many.
    """
    question = parse(question) if isinstance(question, str) else question
    found = None
    if (delta, method, asked, losses) == (None, None, None, "checked"):
        found = _registered(keeper, chain, str(question))
    with keeper.lock():
        state = keeper.recorded() if found is None or checks is None else keeper.state()
        known = labels.find(state, chain)
        level, repeated = state.delta, repeated_paths(state, known.number)
        paths = walked_paths(state, known) if found is None else None
        judged = judged_paths(state, known) if checks is None else None
        share = level / len(state.chains)
    if found is None:
        level = level if delta is None else delta
        found = unchecked(paths, question, delta=level, method=method, asked=asked, losses=losses)
    if repeated:
        return found.without_bounds(Doubt("repeated", repeated[0]), *repeated[1:])
    if judged is not None:
        return found.without_bounds(diagnose(judged, delta=share).doubt())
    return found if checks is None else found.without_bounds(checks.doubt(chain))


def _registered(keeper: "Keeper", chain: str, text: str) -> Answer | None:
    """The answer to a registered question; None if the question is not registered."""
    with keeper.lock():
        questions = labels.find(keeper.state(), chain).questions
        asked = next((one for one in questions if one.text == text), None)
        if asked is None:
            return None
        number, transitions = asked.number, asked.transitions
    (found,) = keeper.replies(chain, number)
    if found.transitions != transitions and not keeper.journal.read_only:
        keeper.do(commands.answer, chain, [found])
        with keeper.lock():
            state = keeper.state()
            asked, aim = state.questions[number - 1], state.aim
            met = aim.is_met(asked, asked.lower, asked.upper)
            # Perhaps the chain has reached the aim, if the other questions are answered well enough too.
            is_news = aim.is_about_answers and not state.names[chain].done and met != asked.met
        keeper.look_at([chain] if is_news else [])
    return found.answer


class _Reading:
    """The decks of one chain, and how far its draws were read to make them."""

    def __init__(self, key: str, most: int) -> None:
        self._key, self._most = key, most
        self._begin(None)

    def _begin(self, cards: list[Card] | None) -> None:
        self.decks = Decks.empty(1, self._key)
        #: The draws that are read, in the order of tells, and how many were read.
        self._cards, self._read = cards, 0
        #: State, or `START` → its cards that wait for an earlier one: (number, step, target), the earliest first.
        self._rows: dict[int, list[tuple[int, float, int]]] = {}
        #: The holes that are cards: (number, state).
        self._holes: list[tuple[int, int]] = []

    def catch_up(self, chain: Chain) -> None:
        """Deals the cards that can be read now."""
        cards, waiting = chain.draws.cards, open_cards(chain)
        assert cards is not None
        unknown = next((place for place, card in enumerate(waiting) if card.source == UNKNOWN), None)
        last = math.inf if unknown is None else waiting[unknown].number
        del waiting[len(waiting) if unknown is None else unknown :]
        lost = [(card.number, card.source) for card in waiting if card.status is not Status.PENDING]
        size = max(1, chain.size)
        holes = lost[: self._most]
        if cards is not self._cards or holes[: len(self._holes)] != self._holes:
            self._begin(cards)
        if size > self.decks.size:
            self.decks.grow(size)
        new = [(number, math.inf, source, HOLE) for number, source in holes[len(self._holes) :]]
        new += [(card.number, card.step, card.source, card.target) for card in cards[self._read :]]
        self._holes, self._read = holes, len(cards)
        for number, step, source, target in new:
            heapq.heappush(self._rows.setdefault(source, []), (number, step, target))
        ends: dict[int, Card] = {}
        for card in waiting:
            if (card.number, card.source) not in holes:
                ends.setdefault(card.source, card)
        self.decks.stops.clear()
        for source in self._rows.keys() | ends.keys():
            self._deal(source, ends.get(source), last)

    def _deal(self, source: int, end: Card | None, last: float) -> None:
        """Puts the cards of a row into the decks, up to its first draw without a value."""
        row, waiting = self.decks.size if source == START else source, self._rows.get(source, [])
        until = (last if end is None else end.number, math.inf)
        found = []
        while waiting and waiting[0][:2] < until:
            found.append(heapq.heappop(waiting)[2])
        if found:
            first = int(self.decks.count[row])
            self.decks.add(row, found)
            for place, target in enumerate(found, first):
                if target == HOLE:
                    self.decks.open_hole(row, place)
        if end is None:
            self.decks.ends[row] = DRAWN
        elif end.status is Status.PENDING:
            self.decks.ends[row] = AWAITED
        else:
            self.decks.ends[row] = BLOCKED
            self.decks.stops[row] = end.number
