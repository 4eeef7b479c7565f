"""The rules of MATH §15 once more, slowly: every slot of a chain as a record of its own, from the entries alone."""

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from chainscout.journal.entry import End, Entry, Kind, unpacked

START, UNKNOWN = -1, -2


@dataclass
class Slot:
    """A place in the order of issue."""

    number: int
    path: int
    step: int
    source: int
    target: int | None = None
    #: Its walker said that no step was made, and nothing came after it then.
    released: bool = False
    void: bool = False


@dataclass
class Walk:
    """A path."""

    plain: bool
    owner: int
    states: list[int] = field(default_factory=list)
    told: list[Slot | None] = field(default_factory=list)
    #: The slots that were asked for and not told, in order.
    open: list[Slot] = field(default_factory=list)
    ended: bool = False
    lease: int = 0


class Reference:
    """The slots of one chain."""

    def __init__(self, entries: list[Entry], chain: int, shared: bool = False) -> None:
        self.slots: list[Slot] = []
        self.walks: dict[int, Walk] = {}
        #: Lease → its path, its steps left, and whether they are told at once.
        self.leases: dict[int, list[Any]] = {}
        self.shared = shared
        for entry in entries:
            if entry.kind is Kind.CLOSED:
                for number, paths in unpacked(entry.more)["paths"]:
                    if number == chain:
                        self.close(paths)
            elif entry.kind in (Kind.EXPIRED, Kind.ABANDONED, Kind.GIVEN_BACK):
                if entry.by in self.leases:
                    self.leave_lease(entry)
            elif entry.chain == chain:
                self.read(entry)

    def read(self, entry: Entry) -> None:
        walk = self.walks.get(entry.path)
        if entry.kind in (Kind.TOLD, Kind.LEASE) and walk is None:
            if self.shared:
                for other in self.walks.values():
                    self.end(other, End.UNKNOWN)
            walk = self.walks[entry.path] = Walk(entry.kind is Kind.TOLD, entry.by)
        if entry.kind is Kind.LEASE:
            assert walk is not None
            given = unpacked(entry.more)
            steps, at_once = given.get("steps", 1), given.get("at_once", False)
            self.leases[entry.number] = [entry.path, steps, at_once]
            walk.lease, walk.owner = entry.number, entry.by
            self.ask(walk, entry, entry.number, steps if at_once else 1, begins=not walk.states)
        elif entry.kind is Kind.TOLD:
            assert walk is not None
            self.tell(walk, entry)
        elif entry.kind is Kind.CONTINUED:
            assert walk is not None
            walk.owner = entry.by
            for slot in walk.open:  # asked for again
                slot.released = False
        elif entry.kind is Kind.PATH_ENDED:
            assert walk is not None
            self.end(walk, End(entry.value))
        elif entry.kind is Kind.CORRECTED:
            assert walk is not None
            walk.states.pop()
            slot = walk.told.pop()
            if slot is not None:
                slot.target = None
            for later in walk.open:
                later.source = UNKNOWN
            self.end(walk, End.UNKNOWN)

    def ask(self, walk: Walk, entry: Entry, number: int, slots: int, *, begins: bool) -> None:
        walk.open = [slot for slot in walk.open if not slot.void]
        if walk.open:  # asked for again: the slot keeps its place
            for slot in walk.open:
                slot.released = False
            number = walk.open[0].number
        elif slots == begins:
            return  # a path's first state is no draw of a row
        for slot in self.slots:
            if slot.released and slot.number < number:
                slot.void = True
        step = len(walk.states) + 1
        for k in range(len(walk.open), slots - begins):
            source = walk.states[-1] if walk.states and k == 0 else UNKNOWN
            slot = Slot(number, entry.path, step + begins + k, source)
            self.slots.append(slot)
            walk.open.append(slot)

    def tell(self, walk: Walk, entry: Entry) -> None:
        lease = self.leases.get(walk.lease)
        walk.open = [slot for slot in walk.open if not slot.void]
        begins = not walk.states
        if not begins:
            slot = walk.open.pop(0)
            assert slot.source in (walk.states[-1], UNKNOWN)
            slot.source, slot.target, slot.released = walk.states[-1], entry.value, False
            walk.told.append(slot)
        else:
            walk.told.append(None)
        walk.states.append(entry.value)
        if walk.open and walk.open[0].source == UNKNOWN:
            walk.open[0].source = entry.value
        goes_on = walk.plain and not walk.ended
        if lease is not None:
            lease[1] -= 1
            goes_on = lease[1] > 0 and not lease[2]
            if not lease[1]:
                walk.lease = 0
        if goes_on:
            self.ask(walk, entry, entry.number, 1, begins=False)

    def is_last(self, slot: Slot) -> bool:
        later = [other for other in self.slots if other.number > slot.number and not other.void]
        return all(other.released for other in later)

    def hand_back(self, walk: Walk) -> None:
        walk.lease = 0
        walk.open = [slot for slot in walk.open if not slot.void]
        if not walk.states:
            walk.ended = not self.shared
            self.drop(walk, End.UNKNOWN, unmade=True)
        elif walk.open:
            slot, *others = walk.open
            for other in others:  # no step was made: only the next one can be asked for again
                self.slots.remove(other)
            walk.open = [slot]
            slot.source = walk.states[-1] if walk.states else UNKNOWN
            slot.released = self.is_last(slot)

    def leave_lease(self, entry: Entry) -> None:
        path = self.leases[entry.by][0]
        walk = self.walks[path]
        if walk.lease == entry.by:
            if entry.kind is Kind.GIVEN_BACK:
                self.hand_back(walk)
            else:
                self.end(walk, End.LOST)

    def end(self, walk: Walk, end: End) -> None:
        if not walk.ended:
            walk.ended, walk.lease = True, 0
            self.drop(walk, end)

    def drop(self, walk: Walk, end: End, *, unmade: bool = False) -> None:
        walk.open = [slot for slot in walk.open if not slot.void]
        due = end in (End.TERMINATED, End.TRUNCATED, End.DUE)
        if walk.open and (due or (unmade and self.is_last(walk.open[-1]))):
            for slot in walk.open:
                slot.void = True
        for slot in walk.open:
            slot.released = False

    def close(self, paths: list[int]) -> None:
        own = [self.walks[path] for path in paths if not self.walks[path].ended]
        for walk in sorted(own, key=lambda walk: walk.open[0].number if walk.open else 0, reverse=True):
            open_slots = [slot for slot in walk.open if not slot.void]
            if open_slots and not walk.lease and (open_slots[0].released or not walk.plain):
                continue  # it was given back before
            self.hand_back(walk)

    # -- what follows

    def prefix(self, number: int, *, hole: bool = False) -> tuple[dict[int, dict[int, int]], Counter[int]]:
        """The counts and the holes of the slots that were issued before this entry.

        ``hole``: before the hole that this entry issued; told slots that it issued come before that one.
        """
        counts: dict[int, dict[int, int]] = {}
        holes: Counter[int] = Counter()
        for slot in self.slots:
            told_before = hole and slot.number == number and slot.target is not None
            if slot.void or (slot.number >= number and not told_before):
                continue
            if slot.target is None:
                holes[slot.source] += 1
            else:
                row = counts.setdefault(slot.source, {})
                row[slot.target] = row.get(slot.target, 0) + 1
        return counts, holes

    def told(self) -> list[tuple[int, int, int, int]]:
        """The told draws of rows, in the order of issue."""
        known = [slot for slot in self.slots if slot.target is not None]
        known.sort(key=lambda slot: (slot.number, slot.step))
        return [(slot.path, slot.step, slot.source, slot.target or 0) for slot in known]


def plain_bound(exits: dict[int, int], holes: dict[int, int], size: int, log_inverse: float) -> float:
    """MATH §15, T3, written out once more: every offset family and level, W⁺ by the greedy knapsack."""
    rows = [(exits.get(x, 0), exits.get(x, 0) + holes.get(x, 0)) for x in {*exits, *holes}]
    rows = [row for row in rows if row[1]]
    total = sum(n for n, _ in rows)
    if not total:
        return math.inf
    top = max(full for _, full in rows)
    best = sum(2 * full * full / n for n, full in rows if n)
    for m in range(math.floor(math.log(top + 1, 4)) + 2):
        deep = [round(math.log(top / full, 4)) for _, full in rows]
        options = [
            ([0] * len(rows), 0.0),
            (deep, sum(o + 1 for o in deep) * math.log(2)),
            ([min(o, m) for o in deep], len(rows) * math.log(m + 1)),
        ]
        for offsets, price in options:
            scales = [4.0 ** (m - o) for o in offsets]
            budget = log_inverse + math.log(3 * (m + 1) * (m + 2)) + price
            budget += sum(
                (size - 1) / 2 * math.log1p(full / s / size) for (_, full), s in zip(rows, scales, strict=True)
            )
            items = [(full / n, full / (full + 2 * s), 2 * full)
                     for (n, full), s in zip(rows, scales, strict=True) if n]  # fmt: skip
            gain = 0.0
            for c, theta, room in sorted(items, key=lambda item: -item[0] / item[1]):
                amount = min(room, budget / theta)
                gain += c * amount
                budget -= theta * amount
            best = min(best, gain)
    r = 1 / 3
    lost = sum(2 * (full - n) ** 2 / n for n, full in rows if n)
    smoothing = r * r * (1 - 1 / size) * sum(n / (n + r) ** 2 for n, _ in rows)
    return (math.sqrt(best) + math.sqrt(lost) + math.sqrt(smoothing)) ** 2 / total
