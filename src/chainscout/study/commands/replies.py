"""The answers to registered questions, as the journal keeps them."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...journal.entry import METHODS, Draft, Kind, packed
from ...validation import shown
from .. import labels
from ..state import State
from .changes import bound

if TYPE_CHECKING:
    from ..bounds import Due, Found
    from ..replays import Reply

__all__ = ["MOST_WAITED", "MOST_WAITED_SHARE", "answer", "look", "waited_in_vain"]

#: A chain is set aside if the state that its replay waits for was not left during this many transitions, or during this
#: share of all transitions of the chain, whichever is more.
MOST_WAITED, MOST_WAITED_SHARE = 1_000, 0.5


def look(
    state: State, now: int, due: "Due", found: "Found | None", replies: "Sequence[Reply]"
) -> tuple[list[Draft], None]:
    """What was due at a look at a chain: its bound, and the answers to its questions.

    ``found``: None: the bound was not due. ``replies``: empty: the chain has no questions.
    """
    first, _ = answer(state, now, due.name, replies)
    second: list[Draft] = []
    if found is not None:
        second, _ = bound(
            state, now, due.name, due.cut, transitions=found.transitions, value=found.bound, ratio=found.ratio,
            method=found.method, error=found.error, aim=due.aim,
        )  # fmt: skip
    # What says that the chain is done comes last: nothing is said of a chain that is done.
    return (second + first if state.aim.is_answered(labels.find(state, due.name)) else first + second), None


def answer(state: State, now: int, name: str, replies: "Sequence[Reply]") -> tuple[list[Draft], None]:
    """The answers to all questions of a chain. Nothing, if another process has newer ones, or if they are known.

    A chain is set aside with them if more of its draws settle no question.
    """
    chain = labels.find(state, name)
    if not replies or any(reply.cut <= state.questions[reply.question - 1].cut for reply in replies):
        return [], None
    if chain.done and state.aim.is_about_answers:
        return [], None
    drafts = [
        Draft(Kind.ANSWERED, chain.number, value=reply.cut, by=state.aim.number, more=_more(reply)) for reply in replies
    ]
    if state.aim.is_about_answers and chain.aside is None:
        why = next((why for reply in replies if (why := _why_aside(state, reply)) is not None), None)
        if why is not None:
            drafts.append(Draft(Kind.SET_ASIDE, chain.number, more=packed(reason=why)))
    return drafts, None


def _more(reply: "Reply") -> str:
    found = reply.answer
    numbers = {"lower": found.lower, "upper": found.upper, "estimate": found.estimate}
    known = {name: float(number) for name, number in numbers.items() if number is not None}
    finite = {name: number if math.isfinite(number) else None for name, number in known.items()}
    return packed(
        question=reply.question, transitions=reply.transitions, **finite, episodes=found.episodes, waits=reply.waits,
        cards=reply.cards, notes=found.notes, version=METHODS,
    )  # fmt: skip


def _why_aside(state: State, reply: "Reply") -> str | None:
    """Why more draws of the chain do not settle the question; None if they may."""
    asked = state.questions[reply.question - 1]
    if reply.refused is not None:
        return reply.refused
    if reply.waits is None or state.aim.is_met(asked, reply.answer.lower, reply.answer.upper):
        return None
    left = shown(labels.label(state.chains[asked.chain], reply.waits))
    if reply.stop is not None:
        return f"a question waits for an exit of {left}, whose draw {reply.stop} was lost"
    since = asked.since if (asked.waits, asked.cards) == (reply.waits, reply.cards) else reply.transitions
    if not waited_in_vain(reply.transitions, since):
        return None
    return (
        f"a question waits for an exit of {left}, and the last {reply.transitions - since:,} transitions brought none"
    )


def waited_in_vain(transitions: int, since: int) -> bool:
    """Whether no exit of an awaited state is expected any more. ``since``: the transitions when the wait began."""
    return transitions - since >= max(MOST_WAITED, MOST_WAITED_SHARE * transitions)
