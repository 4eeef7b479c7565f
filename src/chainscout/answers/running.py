"""A question about a growing chain: its answer from the cards so far, without reading them again."""

import math
from collections.abc import Callable, Hashable, Sequence

import numpy as np

from ._terms import check_declarations, need_starts, terms_of
from .answer import Answer, from_decks, vacuous
from .question import Question
from .replay import Decks

__all__ = ["FALLS", "MOST_CARDS", "Running"]

#: A prediction draws at most this many cards.
MOST_CARDS = 4_000_000


#: If a width does not fall by at least this factor when the cards double, it is not expected to fall any more.
FALLS = 0.9


def _grown(decks: Decks, factor: float) -> Decks:
    """The cards so far, and more cards of each row, drawn from the row's own frequencies; the same cards every time."""
    grown = Decks.empty(decks.size, decks.key)
    for row in range(decks.size + 1):
        count, begin = int(decks.count[row]), int(decks.first[row])
        known = decks.card[begin : begin + count]
        known = known[known >= 0]
        if count := len(known):
            more = np.random.default_rng([count, row]).integers(count, size=round(count * (factor - 1)))
            grown.add(row, np.concatenate([known, known[more]]))
    return grown


class Running:
    """A question that was asked before the first draw, over the states that are known now.

    ``states``: their labels. ``open_states``: whether there may be others. ``delta``: the probability that the bounds
    fail. Raises ``InputError`` if the question does not fit the states.
    """

    def __init__(
        self, question: Question, states: Sequence[Hashable], delta: float, *, open_states: bool = False
    ) -> None:
        self._terms = need_starts(terms_of(question, states, open_states=open_states))
        self.question, self.delta, self.states = question, delta, states

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the answer before anything is known."""
        return vacuous(self._terms)

    def answer(self, decks: Decks) -> Answer:
        """The answer now. Each replay continues where it waited."""
        check_declarations(self._terms, decks.seen)
        return from_decks(decks, self._terms, self.delta)

    def growth(self, decks: Decks, good: Callable[[float, float], bool], width: float | None = None) -> float:
        """The factor by which every row's cards must grow until the answer is good: a prediction, not a bound.

        The cards so far are followed by cards drawn from each row's own frequencies. ``good``: (lower, upper) → whether
        the answer is good enough. ``width``: the width at which it is good; needs beyond `MOST_CARDS` cards are then
        predicted from width ∝ 1/√T. Returns 1 if the answer is good now, nan if there are no data (no card at all, or
        none in a row that a replay waits for), and infinite if no number of cards can be predicted.
        """

        def is_good(factor: float) -> bool:
            found = self.answer(_grown(decks, factor))
            return good(found.lower, found.upper)

        now = self.answer(decks)
        if good(now.lower, now.upper):
            return 1.0
        if decks.total == 0 or (now.waiting_for is not None and self._has_no_card(decks, now.waiting_for)):
            return math.nan
        low, high = 1.0, 2.0
        while not is_good(high):
            low, high = high, 2 * high
            if high * decks.total > MOST_CARDS:
                last, before = (self.answer(_grown(decks, factor)).width for factor in (low, low / 2))
                if width is None or math.isinf(last) or last > FALLS * before:
                    return math.inf
                return low * (last / width) ** 2
        for _ in range(4):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if is_good(middle) else (middle, high)
        return math.sqrt(low * high)

    def _has_no_card(self, decks: Decks, state: Hashable) -> bool:
        return state not in self._terms.states or decks.count[list(self._terms.states).index(state)] == 0

    def unknown(self, why: str) -> Answer:
        """The answer if the data contradict the assumptions of the bounds."""
        return Answer(self.question, None, *self.ends, self.delta, True, "replay", notes=(why,))
