"""Replay: recorded cards are read again as independent episodes of a question (MATH §11).

An episode starts where the question starts, takes the next unused card of its present state, and ends by the question's
own rule. If a row has no card left, the replay waits for that row: it never continues with another episode. So the
returns known at any time are a prefix of an independent sequence, whatever rule chose the draws.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from ..paths import HOLE, Paths
from ..random import splitmix
from ._kernels import deal, kernel, walk_costs, walk_cycles, walk_episodes
from ._terms import LAW, ON, Terms
from .question import LongRunShare, PassageTime, Question

__all__ = [
    "AWAITED", "BLOCKED", "DRAWN", "HORIZON", "Cycles", "Decks", "Episodes", "Returns", "cycles", "decks_of",
    "episodes", "most_holes", "returns",
]  # fmt: skip

_Array = npt.NDArray[np.float64]
_IntegerArray = npt.NDArray[np.int64]

#: Why a row has no more cards: no more were drawn; one is pending; one was lost that cannot be skipped.
DRAWN, AWAITED, BLOCKED = 0, 1, 2
#: An answer is the widest one over all values of at most this many holes, in at most so many replays (MATH §15). Other
#: holes end their rows.
_MOST_HOLES, _MOST_REPLAYS = 3, 1000
#: So many replays are kept while cards are added. If there are more, they begin again at each answer.
_MOST_KEPT = 64


class Decks:
    """The cards of each row in the order of issue, as far as they can be read. The last row is for the starts.

    Cards can be added. Each replay continues where it waited. So a replay reads every card once, however often the
    answer is computed.
    """

    __slots__ = ("_capacity", "_kept", "_used", "card", "count", "ends", "first", "holes", "key", "replays", "stops")

    def __init__(
        self, first: _IntegerArray, count: _IntegerArray, card: _IntegerArray, ends: _IntegerArray, key: str
    ) -> None:
        #: The key of our own coins, as in `Paths.key`.
        self.key = key
        #: Row x has the cards card[first[x] : first[x] + count[x]].
        self.first, self.count, self.card = first, count, card
        #: Why it ends there: `DRAWN`, `AWAITED` or `BLOCKED`.
        self.ends = ends
        self._capacity = count.copy()
        self._used = len(card)
        #: What was replayed → the state of the replay.
        self.replays: dict[Any, _Standing] = {}
        #: The cards that are holes, as (row, place in the row). And row → the number of issue of the hole that ends it.
        self.holes: list[tuple[int, int]] = []
        self.stops: dict[int, int] = {}
        #: Values of the holes → their replays.
        self._kept: dict[tuple[int, ...], dict[Any, _Standing]] = {}

    @classmethod
    def empty(cls, size: int, key: str = "") -> "Decks":
        """Decks of ``size`` states without a card. ``key``: as in `Paths.key`."""
        first, count, ends = (np.zeros(size + 1, dtype=np.int64) for _ in range(3))
        return cls(first, count, np.zeros(16, dtype=np.int64), ends, key)

    @property
    def size(self) -> int:
        """How many states there are."""
        return len(self.count) - 1

    @property
    def total(self) -> int:
        """How many cards there are."""
        return int(self.count.sum())

    def seen(self, row: int) -> dict[int, int]:
        """The next states on a row's cards, and on how many cards each is."""
        begin = int(self.first[row])
        cards = self.card[begin : begin + int(self.count[row])]
        found, times = np.unique(cards[cards >= 0], return_counts=True)
        return dict(zip(found.tolist(), times.tolist(), strict=True))

    def completions(self) -> Iterator[None]:
        """Gives the holes each of their possible values, one after the other."""
        for values in product(range(self.size), repeat=len(self.holes)):
            self.replays = self._kept.get(values, {})
            if self.size ** len(self.holes) <= _MOST_KEPT:
                self._kept[values] = self.replays
            self._fill(values)
            yield
        self.replays = {}
        self._fill([HOLE] * len(self.holes))

    def _fill(self, values: Sequence[int]) -> None:
        for (row, place), value in zip(self.holes, values, strict=True):
            self.card[self.first[row] + place] = value

    def open_hole(self, row: int, place: int) -> None:
        """A card that was added is a hole. Replays begin again."""
        self.holes = sorted([*self.holes, (row, place)])
        self.forget()

    def forget(self) -> None:
        """Replays begin again."""
        self.replays.clear()
        self._kept.clear()

    def add(self, row: int, cards: Sequence[int] | _IntegerArray) -> None:
        """Appends cards to a row. A full row moves to a place twice as long: O(1) per card, amortised."""
        needed = int(self.count[row]) + len(cards)
        if needed > self._capacity[row]:
            place, length = self._used, max(8, 2 * needed)
            if place + length > len(self.card):
                self.card = np.concatenate([self.card, np.zeros(max(len(self.card), length), dtype=np.int64)])
            begin = int(self.first[row])
            self.card[place : place + self.count[row]] = self.card[begin : begin + self.count[row]]
            self.first[row], self._capacity[row], self._used = place, length, place + length
        begin = int(self.first[row] + self.count[row])
        self.card[begin : begin + len(cards)] = cards
        self.count[row] = needed

    def grow(self, size: int) -> None:
        """Adds states without a card. Replays start again, because more states may change the meaning of a question."""
        more = np.zeros(size - self.size, dtype=np.int64)
        for name in ("first", "count", "ends", "_capacity"):
            values = getattr(self, name)
            setattr(self, name, np.concatenate([values[: self.size], more, values[self.size : self.size + 1]]))
        self.forget()


class _Standing:
    """The state of a replay: the next card of each row, the running episode, and the completed ones."""

    __slots__ = ("columns", "done", "pointer", "reals", "state")

    def __init__(self, rows: int, kinds: Sequence[Any]) -> None:
        self.pointer = np.zeros(rows, dtype=np.int64)
        self.state = np.array([-1, 0, 0, 0], dtype=np.int64)
        self.reals = np.zeros(2)
        self.columns = [np.zeros(64, dtype=kind) for kind in kinds]
        self.done = 0

    def advance(self, limit: int, walk: Callable[[int, list[Any]], int]) -> None:
        """Completes at most ``limit`` episodes in all. ``walk``: (how many are done, columns with room) → how many."""
        while self.done < limit:
            if self.done == len(self.columns[0]):
                self.columns = [np.concatenate([column, np.zeros_like(column)]) for column in self.columns]
            room = min(limit, len(self.columns[0]))
            self.done = walk(self.done, [column[:room] for column in self.columns])
            if self.done < room:
                return

    @property
    def found(self) -> list[Any]:
        """The completed episodes."""
        return [column[: self.done] for column in self.columns]

    def waits(self, limit: int) -> int | None:
        """The row that it waits for; None if it reached its limit."""
        return None if self.done >= limit or self.state[0] < 0 else int(self.state[0])


def decks_of(paths: Paths, *, independent_losses: bool = False, holes: int = 0) -> Decks:
    """The decks of a chain.

    A pending card ends its row. The first ``holes`` holes are cards without a value; a later one ends its row. A card
    that is `LOST` is skipped, unless a later card of its row was known when it was given up: then it ends its row. This
    assumes that giving up a card depended on no later card that was issued and not known (MATH §11: the rule that is
    valid asks what was issued). ``independent_losses``: the user declares that no loss depended on the values drawn.
    """
    size = paths.size
    late = np.zeros(len(paths), dtype=np.int64)
    if not independent_losses and paths.lost:
        late[paths.late_losses(by_row=True) | (paths.target == HOLE)] = 2
        late[np.flatnonzero(paths.target == HOLE)[:holes]] = 1
    count, ends, place = (np.zeros(size + 1, dtype=np.int64) for _ in range(3))
    first = np.zeros(size + 2, dtype=np.int64)
    nothing = np.zeros(0, dtype=np.int64)
    kernel(deal)(paths.source, paths.target, late, count, first, place, ends, nothing)
    first[1:] = np.cumsum(count)
    card = np.empty(int(first[-1]), dtype=np.int64)
    if len(card):
        ends[:] = 0
        kernel(deal)(paths.source, paths.target, late, count, first, place, ends, card)
    decks = Decks(first, count, card, ends, paths.key)
    for at in np.flatnonzero(card < 0).tolist():
        row = int(np.searchsorted(first, at, side="right")) - 1
        decks.open_hole(row, at - int(first[row]))
    for at in np.flatnonzero((paths.target == HOLE) & (late == 2)).tolist():
        decks.stops.setdefault(int(paths.source[at]) % (size + 1), int(paths.issued[at]))
    return decks


def most_holes(size: int, is_open: bool, question: Question) -> int:
    """How many holes of a chain get all their values; none if nobody knows all values.

    Passage times and long-run shares are replayed from every state.
    """
    each = size if isinstance(question, PassageTime | LongRunShare) else 1
    fitting = (holes for holes in range(_MOST_HOLES, 0, -1) if size**holes * each <= _MOST_REPLAYS)
    return 0 if is_open else next(fitting, 0)


# -- our own coins: they depend on the data's key, the question and the episode, and are never drawn again


def _coins(terms: Terms, key: str, which: int, begin: int, end: int) -> _Array:
    """The coins ``begin`` … ``end`` − 1 of a question, uniform on [0, 1). ``key``: that of the decks."""
    seed = int.from_bytes(sha256(f"{key}\n{terms.question}".encode()).digest()[:8], "big")
    position, gamma = splitmix.stream(seed, which, 0)  # type: ignore[no-untyped-call]
    with np.errstate(over="ignore"):
        words = np.uint64(position) + np.arange(begin + 1, end + 1, dtype=np.uint64) * np.uint64(gamma)
        scattered = splitmix.mix(words)  # type: ignore[no-untyped-call]
        return np.asarray((scattered >> np.uint64(11)) * 2.0**-53)


def _starts(terms: Terms, key: str, begin: int, end: int) -> _IntegerArray:
    """The start of each episode from ``begin`` on, where it is drawn from a law."""
    if terms.start != LAW:
        return np.zeros(0, dtype=np.int64)
    coins = _coins(terms, key, 0, begin, end)
    return np.minimum(np.searchsorted(np.cumsum(terms.law), coins, side="right"), terms.size - 1)


@dataclass(frozen=True)
class Episodes:
    """The completed episodes of a replay that looks for a target."""

    #: How each one ended: `ARRIVED`, `FAILED`, or `ON` if the cap stopped it; and its steps.
    result: _IntegerArray
    length: _IntegerArray
    #: The row that the replay waits for; None if it reached its limit.
    waits: int | None
    #: The steps of the running episode.
    running: int


def episodes(decks: Decks, terms: Terms, cap: int, *, start: int | None = None, most: int | None = None) -> Episodes:
    """Replays a question of reaching, with at most ``cap`` steps per episode.

    ``start``: a start other than the question's. ``most``: the largest number of episodes.
    """
    limit = decks.total + 1 if most is None else min(most, decks.total + 1)
    first = terms.start if start is None else start
    key = "episodes", terms.question, terms.kind.tobytes(), first, cap, most
    standing = decks.replays.setdefault(key, _Standing(decks.size + 1, (np.int64, np.int64)))

    def walk(done: int, columns: list[Any]) -> int:
        starts = _starts(terms, decks.key, done, len(columns[0])) if start is None else np.zeros(0, np.int64)
        found: int = kernel(walk_episodes)(
            decks.first, decks.count, decks.card, standing.pointer, terms.kind, first, starts, done, min(cap, 2**62),
            done, *columns, standing.state,
        )  # fmt: skip
        return found

    standing.advance(limit, walk)
    waits = standing.waits(limit)
    result, length = standing.found
    return Episodes(result, length, waits, 0 if waits is None else int(standing.state[1]))


@dataclass(frozen=True)
class Returns:
    """The completed episodes of a cost."""

    value: _Array
    waits: int | None


#: A discounted cost is followed for this many times 1/(1 − γ) steps. Then a coin chooses the step at which its tail is
#: sampled.
HORIZON = 2.5


def returns(decks: Decks, terms: Terms, steps: int | None, discount: float | None) -> Returns:
    """Replays a cost over ``steps`` states, or a discounted cost, not normalised."""
    limit = decks.total + 1
    shortest = steps if discount is None else int(HORIZON / (1 - discount))
    if not terms.absorbing.any():  # each state of an episode except the last takes a card
        limit = decks.total // max(1, (shortest or 1) - 1) + 1
    horizon = steps if discount is None else int(np.ceil(HORIZON / (1 - discount)))
    assert horizon is not None
    key = "costs", terms.question, terms.kind.tobytes()
    standing = decks.replays.setdefault(key, _Standing(decks.size + 1, (np.float64,)))

    def walk(done: int, columns: list[Any]) -> int:
        end = len(columns[0])
        found: int = kernel(walk_costs)(
            decks.first, decks.count, decks.card, standing.pointer, terms.absorbing, terms.cost, terms.start,
            _starts(terms, decks.key, done, end), _tails(terms, decks.key, discount, done, end), done, horizon,
            1.0 if discount is None else discount, done, *columns, standing.state, standing.reals,
        )  # fmt: skip
        return found

    standing.advance(limit, walk)
    return Returns(standing.found[0], standing.waits(limit))


def _tails(terms: Terms, key: str, discount: float | None, begin: int, end: int) -> _IntegerArray:
    """How far after its horizon the tail of each episode from ``begin`` on is sampled: P(G = k) = (1 − γ)γ^k."""
    if discount is None:
        return np.zeros(0, np.int64)
    if discount == 0.0:
        return np.zeros(end - begin, np.int64)
    tails = np.floor(np.log1p(-_coins(terms, key, 1, begin, end)) / np.log(discount))
    return np.asarray(tails, dtype=np.int64)


@dataclass(frozen=True)
class Cycles:
    """The completed cycles of a replay for a long-run share."""

    inside: _IntegerArray
    outside: _IntegerArray
    early: _IntegerArray
    waits: int | None


def cycles(decks: Decks, terms: Terms, anchor: int, cap: int, *, complement: bool) -> Cycles:
    """Replays cycles from the anchor. ``complement``: for the share of the other states."""
    limit = decks.total + 1
    share = (terms.kind == ON) if complement else (terms.kind != ON)
    key = "cycles", share.tobytes(), anchor, cap
    standing = decks.replays.setdefault(key, _Standing(decks.size + 1, (np.int64, np.int64, np.int64)))

    def walk(done: int, columns: list[Any]) -> int:
        found: int = kernel(walk_cycles)(
            decks.first, decks.count, decks.card, standing.pointer, share, anchor, cap, done, *columns, standing.state
        )
        return found

    standing.advance(limit, walk)
    inside, outside, early = standing.found
    return Cycles(inside, outside, early, standing.waits(limit))
