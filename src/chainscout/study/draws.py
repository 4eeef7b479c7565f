"""Slots, holes and cuts of one chain: which counts a bound may use while draws are pending or lost (MATH §15).

A step of a path has a **slot** from the moment when it is asked for: its place in the chain's order of issue, which is
the number of the entry that asked for it. A slot without a value is a **hole**. A **cut** is a prefix of the order, and
bounds are made of the counts of one cut, with its holes as 'any outcome'.

Only what the holes need is kept. The told draws between two holes are known as counts, not one by one. So a chain with
one walker that lost nothing has one hole, the step that it makes now, and nothing else; and a hole that stays for ever
costs the counts behind it, not the log.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum, unique
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

from ..certificates.mixture import LOG_2, bound_from_exits
from ..logarithm import log, log1p

__all__ = ["START", "UNKNOWN", "Card", "Cut", "Draws", "Exits", "Hole", "Pair", "Status", "bound_with_holes"]

#: The source of a draw that begins a path, and the source of slots whose rows nobody knows.
START, UNKNOWN = -1, -2

#: x, y: the two ends of a transition.
Pair = tuple[int, int]


@unique
class Status(IntEnum):
    """What is known of a hole."""

    #: Somebody makes the step, or may make it.
    PENDING = 1
    #: Its walker said that no step was made, and no later slot had been issued then. The slot is void when another one
    #: is asked for first, and keeps its place when its own path goes on.
    RELEASED = 2
    #: Given up: a step may have been made, or later slots had been issued. A value that comes late closes the hole.
    LOST = 3
    #: Removed from the order: no step was made.
    VOID = 4
    #: No slot at all: the end of a cut whose counts are kept.
    KEPT = 5


#: An attribute of an enum costs as much as the rest of a tell.
_PENDING = Status.PENDING


class Hole:
    """A slot without a value, and the told draws between it and the next hole."""

    __slots__ = (
        "after", "by", "is_early", "is_row_void", "number", "path", "since", "source", "status", "steps",
    )  # fmt: skip

    def __init__(self, number: int, source: int, path: int = 0, by: int = 0, since: int = 0, steps: int = 1) -> None:
        #: The entry that issued the slot.
        self.number = number
        #: The state that the step leaves; `UNKNOWN` if several steps are made before one is told.
        self.source = source
        self.path = path
        #: The lease or session that makes the step, and when it was asked for (milliseconds since 1970).
        self.by = by
        self.since = since
        #: How many slots have this number: more than one only if a lease tells its steps in one go.
        self.steps = steps
        self.status = _PENDING
        #: Whether it was given up, or left by its program, before any later slot of the chain had a value, and no later
        #: one was under way then. Checks skip it, and say so.
        self.is_early = False
        #: Whether answers find the slot elsewhere: a mistold step stands at its own place in its row.
        self.is_row_void = False
        #: The told draws whose slots come after this one and before the next hole.
        self.after: dict[Pair, int] = {}

    @property
    def is_slot(self) -> bool:
        """Whether it is a slot, and not the end of a kept cut."""
        return self.status is not Status.KEPT


class Card(NamedTuple):
    """One draw in the order of issue. The order is (number, step)."""

    number: int
    #: The path's number, and the draw's number in it from 1.
    path: int
    step: int
    #: The state that it left, or `START`; and the state that it went to, or `UNKNOWN` for a hole.
    source: int
    target: int
    #: The entry that told it; 0 for a hole. And the worker or session that walks the path.
    told: int
    walker: int
    #: What a hole is, and who may leave it out (see `Hole`).
    status: Status | None = None
    is_early: bool = False
    is_row_void: bool = False


class Exits(Protocol):
    """A row, as far as cuts need it."""

    exits: int


class Cut(NamedTuple):
    """A prefix of the order of issue."""

    #: How many holes and kept ends come before its end.
    place: int
    #: It has the slots that were issued before the entry with this number.
    number: int
    #: The told draws that it leaves out.
    without: dict[Pair, int]
    #: State → how many holes of this row it has.
    holes: dict[int, int]

    def counts(self, rows: Mapping[int, Any]) -> dict[int, dict[int, int]]:
        """The counts of the cut, given all that was told; rows that it never left are left out."""
        found = {}
        for x, row in rows.items():
            kept = {y: n - self.without.get((x, y), 0) for y, n in row.counts.items()} if self.without else row.counts
            kept = {y: n for y, n in kept.items() if n}
            if kept:
                found[x] = kept
        return found


_number = attrgetter("number")


class Draws:
    """The holes of one chain in the order of issue, and what was told behind the first one."""

    __slots__ = ("cards", "gone", "holes", "latest", "released")

    def __init__(self) -> None:
        self.holes: list[Hole] = []
        #: The last slot with a value.
        self.latest = 0
        #: How many holes are `RELEASED`.
        self.released = 0
        #: Every told draw, for readers who need the order itself; None: nobody does.
        self.cards: list[Card] | None = None
        #: Lost draws that have no hole at their own place: first states that were asked for, will never be told and are
        #: not void, and mistold ones. They are known where draws are recorded.
        self.gone: list[Card] = []

    # -- slots

    def ask(self, number: int, source: int, path: int, by: int, since: int, steps: int = 1) -> Hole:
        """Issues a slot. ``number``: the entry that asks for the step, later than every other slot."""
        if self.released:
            self._void_released(number)
        hole = Hole(number, source, path, by, since, steps)
        self.holes.append(hole)
        return hole

    def ask_again(self, hole: Hole, source: int, by: int, since: int, steps: int = 1) -> None:
        """The step is asked for again, after its walker gave it back: it keeps its slot."""
        if hole.status is Status.RELEASED:
            self.released -= 1
        hole.status = Status.PENDING
        if self.released:
            self._void_released(hole.number)
        hole.source, hole.by, hole.since, hole.steps = source, by, since, steps
        hole.is_early = False

    def fill(self, hole: Hole, source: int, target: int) -> None:
        """The hole's first slot has a value, in time or late."""
        if hole.number > self.latest:
            self.latest = hole.number
        if hole.steps > 1:
            hole.steps -= 1
            place = self._place(hole)
            before = self.holes[place - 1].after if place else None
        else:
            if hole.status is Status.RELEASED:
                self.released -= 1
            before = self._remove(hole)
        if before is not None:
            before[source, target] = before.get((source, target), 0) + 1

    def follow(self, hole: Hole, source: int, target: int, number: int, since: int) -> None:
        """The slot has a value, and its walker goes on: entry ``number`` issues the path's next slot, as this hole."""
        holes = self.holes
        if len(holes) == 1 and hole.status is _PENDING:  # one walker that lost nothing
            if hole.number > self.latest:
                self.latest = hole.number
            if hole.after:
                hole.after = {}
        else:
            self.fill(hole, source, target)
            if self.released:
                self._void_released(number)
            hole.after = {}
            holes.append(hole)
        hole.number, hole.source, hole.since, hole.status, hole.is_early = number, target, since, _PENDING, False

    def is_last(self, hole: Hole) -> bool:
        """Whether no later slot of the chain has been issued, but for those of which no step was made either."""
        if self.latest > hole.number:
            return False
        later = self.holes[self._place(hole) + 1 :]
        return all(other.status in (Status.RELEASED, Status.KEPT) for other in later)

    def release(self, hole: Hole) -> None:
        """The walker says that no step was made. The path stays, and the slot too, until another one is issued."""
        hole.steps = 1
        if self.is_last(hole):
            hole.status = Status.RELEASED
            self.released += 1
        else:
            self.give_up(hole)

    def give_up(self, hole: Hole) -> None:
        """The hole stays."""
        if hole.status is Status.RELEASED:
            self.released -= 1
        hole.status = Status.LOST
        self.note_early()

    def note_early(self) -> None:
        """Notes which of the lost slots are early. Several that are given up together are early together."""
        for hole in reversed(self.holes):
            if hole.number < self.latest or (hole.status is _PENDING and not hole.is_early):
                break
            hole.is_early = hole.is_early or hole.status is Status.LOST

    def leave(self, is_left: Callable[[Hole], bool]) -> None:
        """Another program begins, and nobody knows whether the one before it still makes its steps.

        Whether they are skipped does not depend on their values or on later ones, because there are none.
        """
        for hole in reversed(self.holes):
            if hole.number < self.latest:
                break
            hole.is_early = hole.is_early or (hole.status is _PENDING and is_left(hole))

    def lose_start(self, number: int, path: int, pending: int, *, made: bool) -> None:
        """A lease ended before its path had a state.

        ``pending``: the latest slot of another first state that is pending. ``made``: a state may have been drawn.
        """
        told = (card.number for card in self.cards or () if card.source == START)
        if made or number < max(pending, max(told, default=0)):
            self.gone.append(Card(number, path, 1, START, UNKNOWN, 0, 0, Status.LOST))

    def void(self, hole: Hole) -> None:
        """Removes the slot. The caller knows that MATH §15, rule 1, allows it."""
        if hole.status is Status.RELEASED:
            self.released -= 1
        hole.status = Status.VOID
        self._remove(hole)

    def recall(self, number: int, source: int, target: int, settled: dict[Pair, int]) -> None:
        """Takes back the value of a slot: it was mistold, and the slot is a hole.

        ``settled``: what was told before the first hole. Where in its stretch of told draws the slot lies is not known
        any more. So the hole stands at the beginning of the stretch, and the whole stretch after it: a cut has both or
        neither.
        """
        place = bisect_left(self.holes, number + 1, key=_number)
        before = self.holes[place - 1] if place else None
        stretch = settled if before is None else before.after
        stretch[source, target] -= 1
        if not stretch[source, target]:
            del stretch[source, target]
        hole = Hole(number, source)
        hole.status = Status.LOST
        if number != self.latest:  # else nothing of the stretch was issued later, and the hole stands at its end
            hole.number = 1 if before is None else before.number + (before.path > 0)
            if self.cards is not None:  # rows have the slot at its own place
                hole.is_row_void = True
                self.gone.append(Card(number, 0, 0, source, UNKNOWN, 0, 0, Status.LOST))
            hole.after = stretch
            if before is not None:
                before.after = {}
        self.holes.insert(place, hole)

    def _place(self, hole: Hole) -> int:
        holes = self.holes
        if holes[-1] is hole:
            return len(holes) - 1
        place = bisect_left(holes, hole.number, key=_number)
        while holes[place] is not hole:
            place += 1
        return place

    def _remove(self, hole: Hole) -> dict[Pair, int] | None:
        """Joins the stretches before and after the hole. Returns the joined one; None: nothing is before it."""
        place = self._place(hole)
        del self.holes[place]
        if place == 0:
            return None
        before, after = self.holes[place - 1], hole.after
        if len(after) > len(before.after):
            before.after, after = after, before.after
        joined = before.after
        for pair, times in after.items():
            joined[pair] = joined.get(pair, 0) + times
        return joined

    def _void_released(self, number: int) -> None:
        """Removes the released slots before one that is asked for now."""
        for hole in [other for other in self.holes if other.status is Status.RELEASED and other.number < number]:
            self.void(hole)

    # -- cuts

    def keep(self, cut: Cut) -> Hole:
        """Keeps the end of a cut of this moment, so that its counts can be told from later ones."""
        end = Hole(cut.number, UNKNOWN)  # its path is 0: it belongs to nobody
        end.status = Status.KEPT
        self.holes.insert(cut.place, end)
        return end

    def drop(self, end: Hole) -> None:
        """The end of a cut is not needed any more."""
        self._remove(end)

    def find(self, number: int) -> int | None:
        """The place of the cut with this number, if its counts are still known; else None."""
        place = bisect_left(self.holes, number, key=_number)
        if place < len(self.holes) and self.holes[place].number == number:
            return place
        return place if self.latest < number else None

    def cut(self, place: int, everything: int) -> Cut:
        """The cut that ends at this place. ``everything``: a number above every slot that was issued."""
        without: dict[Pair, int] = {}
        for hole in self.holes[place:]:
            for pair, times in hole.after.items():
                without[pair] = without.get(pair, 0) + times
        number = self.holes[place].number if place < len(self.holes) else everything
        return Cut(place, number, without, self._holes_before(place))

    def _holes_before(self, place: int) -> dict[int, int]:
        found: dict[int, int] = {}
        for hole in self.holes[:place]:
            if hole.is_slot:
                found[hole.source] = found.get(hole.source, 0) + 1
        return found

    def candidates(self, latched: Hole | None = None) -> list[int]:
        """The places of the candidate cuts, in order (MATH §15, rule 3).

        Before the 1st, 2nd, 3rd, 5th, 9th … hole, after the last told draw, and at the latched end. (A cut that goes on
        behind the last told draw has the same counts and more holes.) No cut has a hole whose row is not known.
        """
        holes = self.holes
        counted = [hole.is_slot for hole in holes]
        unknown = (place for place, hole in enumerate(holes) if hole.source == UNKNOWN and counted[place])
        end = next(unknown, len(holes))
        while end > 0 and not holes[end - 1].after:
            end -= 1
        found, rank, wanted = {end}, 0, 0
        for place, hole in enumerate(holes):
            if hole is latched:
                found.add(place)
            if counted[place] and place < end:
                if rank == wanted:
                    found.add(place)
                    wanted = 2 * wanted or 1
                rank += 1
        return sorted(found)

    def chosen(
        self, rows: Mapping[int, Exits], size: int, log_inverse: float, everything: int, *,
        open_states: bool = False, latched: Hole | None = None,
    ) -> Cut:  # fmt: skip
        """The candidate cut with the smallest closed bound; of equal ones the earliest.

        It is a function of the state alone, so every process chooses alike. ``log_inverse``: log(K/δ).
        """
        places = self.candidates(latched)
        if len(places) == 1:
            return self.cut(places[0], everything)
        exits = {x: row.exits for x, row in rows.items()}
        best, smallest, end = places[-1], math.inf, len(self.holes)
        for place in reversed(places):
            for hole in self.holes[place:end]:
                for (x, _), times in hole.after.items():
                    exits[x] -= times
            end = place
            holes = self._holes_before(place)
            found = bound_with_holes(exits, holes, size, log_inverse, open_states=open_states)
            if found <= smallest:
                best, smallest = place, found
        return self.cut(best, everything)

    def ordered(self) -> list[Card]:
        """Every draw that has a place: told ones if they are recorded, and holes. Warm starts have no order."""
        open_ones = []
        for hole in self.holes:
            if hole.is_slot:
                facts = hole.status, hole.is_early, hole.is_row_void
                open_ones.append(Card(hole.number, hole.path, 0, hole.source, UNKNOWN, 0, 0, *facts))
        return sorted([*(self.cards or ()), *open_ones], key=lambda card: (card.number, card.step or math.inf))


# -- the closed bound

#: r = αS, the weight of the smoothing.
_WEIGHT = 1 / 3


def bound_with_holes(
    exits: Mapping[int, int], holes: Mapping[int, int], size: int, log_inverse: float, *,
    open_states: bool = False,
) -> float:  # fmt: skip
    """b of ``mixture`` for the known counts, whatever the values of the holes are (MATH §15, T3).

    It chooses cuts, and every process must choose alike. So its bits are the same on every platform.

    ``exits``: state → N_x with a known value. ``holes``: state → h_x. Without holes it is ``mixture`` itself.
    """
    rows = [(float(exits.get(x, 0)), float(holes.get(x, 0))) for x in sorted({*exits, *holes})]
    rows = [(n, h) for n, h in rows if n + h > 0.0]
    if not any(h for _, h in rows) or (size == 1 and not open_states):
        return bound_from_exits([n for n, _ in rows], size, log_inverse, open_states=open_states)
    transitions = unknown = smoothing = 0.0
    for n, h in rows:  # `sum` rounds differently in different versions of Python
        if n:
            transitions += n
            unknown += 2.0 * h * h / n
            smoothing += n / ((n + _WEIGHT) * (n + _WEIGHT))
    if not transitions:
        return math.inf
    smoothing *= _WEIGHT * _WEIGHT * (1 + 1 / size if open_states else 1 - 1 / size)
    excess = _largest_excess([(n, n + h) for n, h in rows], None if open_states else size, log_inverse)
    root = math.sqrt(excess) + math.sqrt(unknown) + math.sqrt(smoothing)
    return root * root / transitions


def _largest_excess(rows: list[tuple[float, float]], size: int | None, log_inverse: float) -> float:
    """W⁺: the largest Σ_x (N⁺/N)·W⁺_x that the mixture allows, over rows (N, N⁺). ``size``: None for open states."""
    largest = max(full for _, full in rows)
    best = 0.0
    for n, full in rows:
        best += 2.0 * full * full / n if n else 0.0
    depths = [_quarterings(largest / full) for _, full in rows]
    level, scale = 0, 1.0
    while scale <= 4.0 * (largest + 1.0):  # m = 0 … ⌊log₄(N_max + 1)⌋ + 1
        prior = log_inverse + log(3.0 * (level + 1.0) * (level + 2.0))
        families = [(prior, [0] * len(rows))]
        if any(depths):
            families.append((prior + (sum(depths) + len(rows)) * LOG_2, depths))
            families.append((prior + len(rows) * log(level + 1.0), [min(depth, level) for depth in depths]))
        for bound, offsets in families:
            best = min(best, _knapsack(rows, offsets, scale, size, bound, best))
        level, scale = level + 1, 4.0 * scale
    return best


def _quarterings(ratio: float) -> int:
    """round(log₄ ratio), exactly: a division by four has no rounding error."""
    steps = 0
    while ratio >= 2.0:
        ratio *= 0.25
        steps += 1
    return steps


def _knapsack(
    rows: list[tuple[float, float]], offsets: Iterable[int], scale: float, size: int | None, bound: float, least: float
) -> float:
    """max Σ (N⁺/N)·W under Σ θ·W ≤ B, 0 ≤ W ≤ 2N⁺; at least ``least`` if that is exceeded."""
    items = []
    for (n, full), offset in zip(rows, offsets, strict=True):
        u = math.ldexp(full, 2 * offset) / scale  # N⁺/ρ
        bound += u / 2.0 if size is None else (size - 1.0) / 2.0 * log1p(u / size)
        if n:
            items.append((full / n * (u + 2.0) / u, u / (u + 2.0), 2.0 * full))
    items.sort(reverse=True)
    total = 0.0
    for gain, theta, room in items:
        if theta * room > bound:
            return total + gain * bound
        total += gain * theta * room
        bound -= theta * room
        if total > least:
            return total
    return total
