"""A question about a chain that grows: its answer from the cards so far, without reading them again."""

from collections.abc import Hashable, Sequence

from ._terms import terms_of
from .answer import Answer, from_decks, vacuous
from .question import Question
from .replay import Decks

__all__ = ["LEAST", "Running", "next_look"]

#: Answers are computed again when T has grown by so many transitions at least.
LEAST = 10


def next_look(transitions: int) -> int:
    """The T at which the answers about a chain are computed again: when it has grown by 1 %."""
    return transitions + max(LEAST, transitions // 100)


class Running:
    """A question that was asked before the first draw, over the states that are known now.

    ``states``: their labels. ``open_states``: whether there may be others. ``delta``: the probability that the bounds
    fail. Raises ``InputError`` if the question does not fit the states.
    """

    def __init__(
        self, question: Question, states: Sequence[Hashable], delta: float, *, open_states: bool = False
    ) -> None:
        self._terms = terms_of(question, states, open_states=open_states)
        self.question, self.delta = question, delta

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the answer before anything is known."""
        return vacuous(self._terms)

    def answer(self, decks: Decks, lost: int = 0) -> Answer:
        """What is known now. Each replay goes on where it waited. ``lost``: how many draws were lost."""
        return from_decks(decks, self._terms, self.delta, lost=lost)

    def unknown(self, why: str) -> Answer:
        """The answer where the data contradict what the bounds assume."""
        return Answer(self.question, None, *self.ends, self.delta, True, "replay", notes=(why,))
