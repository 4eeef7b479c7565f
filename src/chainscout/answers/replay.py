"""Replay: recorded cards read again as independent episodes of a question (MATH §11).

An episode starts where the question starts, takes the next unused card of the state that it is in, and ends by the
question's own rule. If a row has no card left, the replay waits for that row: it never goes on with another episode.
So the returns known at any time are a prefix of an independent sequence, whatever chose what was drawn.
"""

from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..paths import Paths
from ..random import splitmix
from ._kernels import deal, kernel, walk_costs, walk_cycles, walk_episodes
from ._terms import LAW, ON, Terms

__all__ = [
    "AWAITED", "BLOCKED", "DRAWN", "HORIZON", "Cycles", "Decks", "Episodes", "Returns", "cycles", "decks_of",
    "episodes", "returns",
]  # fmt: skip

_Array = npt.NDArray[np.float64]
_IntegerArray = npt.NDArray[np.int64]

#: Why a row has no more cards: nobody has drawn one; one is on its way; one was given up after a later one was known.
DRAWN, AWAITED, BLOCKED = 0, 1, 2


class Decks(NamedTuple):
    """The cards of each row in the order of issue, as far as they can be read. The last row is of the starts."""

    #: Row x has the cards card[first[x]:first[x+1]].
    first: _IntegerArray
    card: _IntegerArray
    #: Why it ends there: `DRAWN`, `AWAITED` or `BLOCKED`.
    ends: _IntegerArray


def decks_of(paths: Paths, *, independent_losses: bool = False) -> Decks:
    """The decks of a chain.

    A pending card ends its row. A lost card is skipped, unless a later card of its row was known when it was given up:
    then it ends its row for ever. ``independent_losses``: the user says that no loss depended on what was drawn.
    """
    size = paths.size
    late = np.zeros(len(paths), dtype=np.bool_)
    if not independent_losses and paths.lost:
        late = paths.late_losses(by_row=True)
    count, ends, place = (np.zeros(size + 1, dtype=np.int64) for _ in range(3))
    first = np.zeros(size + 2, dtype=np.int64)
    nothing = np.zeros(0, dtype=np.int64)
    kernel(deal)(paths.source, paths.target, late, count, first, place, ends, nothing)
    first[1:] = np.cumsum(count)
    card = np.empty(int(first[-1]), dtype=np.int64)
    if len(card):
        ends[:] = 0
        kernel(deal)(paths.source, paths.target, late, count, first, place, ends, card)
    return Decks(first, card, ends)


# -- coins of our own: keyed by the question and the episode, and never drawn again


def _coins(terms: Terms, which: int, number: int) -> _Array:
    """The first ``number`` coins of a question, uniform on [0, 1)."""
    key = int.from_bytes(sha256(str(terms.question).encode()).digest()[:8], "big")
    position, gamma = splitmix.stream(key, which, 0)  # type: ignore[no-untyped-call]
    with np.errstate(over="ignore"):
        words = np.uint64(position) + np.arange(1, number + 1, dtype=np.uint64) * np.uint64(gamma)
        scattered = splitmix.mix(words)  # type: ignore[no-untyped-call]
        return np.asarray((scattered >> np.uint64(11)) * 2.0**-53)


def _starts(terms: Terms, number: int) -> _IntegerArray:
    """The start of each episode, where it is drawn from a law."""
    if terms.start != LAW:
        return np.zeros(0, dtype=np.int64)
    return np.minimum(np.searchsorted(np.cumsum(terms.law), _coins(terms, 0, number), side="right"), terms.size - 1)


@dataclass(frozen=True)
class Episodes:
    """The completed episodes of a replay that looks for a target."""

    #: How each one ended: `ARRIVED`, `FAILED`, or `ON` if it was stopped by the cap; and its steps.
    result: _IntegerArray
    length: _IntegerArray
    #: The row that the replay waits for; None if it was told to stop.
    waits: int | None
    #: The steps of the running episode.
    running: int


def episodes(decks: Decks, terms: Terms, cap: int, *, start: int | None = None, most: int | None = None) -> Episodes:
    """Replays a question of reaching, with at most ``cap`` steps an episode.

    ``start``: another start than the question's. ``most``: at most so many episodes.
    """
    number = len(decks.card) + 1 if most is None else min(most, len(decks.card) + 1)
    result, length = np.zeros(number, np.int64), np.zeros(number, np.int64)
    state = np.zeros(2, np.int64)
    first = terms.start if start is None else start
    starts = _starts(terms, number) if start is None else np.zeros(0, np.int64)
    pointer = decks.first.copy()
    done = kernel(walk_episodes)(
        decks.first, decks.card, pointer, terms.kind, first, starts, min(cap, 2**62), result, length, state
    )
    return Episodes(result[:done], length[:done], None if state[0] < 0 else int(state[0]), int(state[1]))


@dataclass(frozen=True)
class Returns:
    """The completed episodes of a cost."""

    value: _Array
    waits: int | None


#: A discounted cost is followed for so many times 1/(1 − γ) steps before a coin says where its tail is looked at.
HORIZON = 2.5


def returns(decks: Decks, terms: Terms, steps: int | None, discount: float | None) -> Returns:
    """Replays a cost over so many states, or a discounted one, as it is (not normalised)."""
    number = len(decks.card) + 1
    shortest = steps if discount is None else int(HORIZON / (1 - discount))
    if not terms.absorbing.any():  # each state of an episode but the last takes a card
        number = len(decks.card) // max(1, (shortest or 1) - 1) + 1
    result, state = np.zeros(number), np.zeros(1, np.int64)
    tails = np.zeros(0, np.int64)
    horizon, factor = steps, 1.0
    if discount is not None:
        horizon, factor = int(np.ceil(HORIZON / (1 - discount))), discount
        coins = _coins(terms, 1, number)
        if discount == 0.0:
            tails = np.zeros(number, np.int64)
        else:  # P(G = k) = (1 − γ)γ^k
            tails = np.floor(np.log1p(-coins) / np.log(discount)).astype(np.int64)
    assert horizon is not None
    pointer = decks.first.copy()
    done = kernel(walk_costs)(
        decks.first, decks.card, pointer, terms.absorbing, terms.cost, terms.start, _starts(terms, number), horizon,
        factor, tails, result, state,
    )  # fmt: skip
    return Returns(result[:done], None if state[0] < 0 else int(state[0]))


@dataclass(frozen=True)
class Cycles:
    """The completed cycles of a replay for a long-run share."""

    inside: _IntegerArray
    outside: _IntegerArray
    early: _IntegerArray
    waits: int | None


def cycles(decks: Decks, terms: Terms, anchor: int, cap: int, *, complement: bool) -> Cycles:
    """Replays cycles from the anchor. ``complement``: for the share of the other states."""
    number = len(decks.card) + 1
    inside, outside, early = (np.zeros(number, np.int64) for _ in range(3))
    state = np.zeros(1, np.int64)
    share = (terms.kind == ON) if complement else (terms.kind != ON)
    done = kernel(walk_cycles)(
        decks.first, decks.card, decks.first.copy(), share, anchor, cap, inside, outside, early, state
    )
    waits = None if state[0] < 0 else int(state[0])
    return Cycles(inside[:done], outside[:done], early[:done], waits)
