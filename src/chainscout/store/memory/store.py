"""A study in memory: the records themselves, and a heap where a database has an indexed column.

This is the inner loop of every study without a file, so it allocates as little as possible for each transaction.
"""

import string
import time
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields
from operator import attrgetter
from typing import Any

from ..protocol import ORDERS
from ..records import ChainRecord, Content, Event, Observation, Outline, RowRecord, StudyRecord, plug_in_variability
from .heap import Heap

__all__ = ["MemoryStore"]

_STUDY = [field.name for field in fields(StudyRecord) if field.name not in StudyRecord.FIXED]
_CHAIN = [field.name for field in fields(ChainRecord) if field.name not in ChainRecord.FIXED]
_study_values, _chain_values = attrgetter(*_STUDY), attrgetter(*_CHAIN)

# SQLite ignores the case of ASCII letters and of no others, so the search in memory does the same.
_LOWER = {ord(letter): letter.lower() for letter in string.ascii_uppercase}


class MemoryStore:
    """The store, which is also its own transaction: there is nothing to commit.

    A writing transaction keeps a copy of each record before it hands the record out, and puts it back after an error.
    """

    read_only = False
    is_shared = False

    def __init__(self, content: Content) -> None:
        self.study = content.study
        self.floor = content.floor
        self.clock = time.time
        self.now = self.clock()
        self.chains = list(content.chains)
        self._numbers = {chain.name: chain.number for chain in self.chains}
        self._rows: dict[int, dict[int, RowRecord]] = {k: dict(found) for k, found in content.rows.items()}
        self._prior = {k: {x: dict(row.counts) for x, row in found.items()} for k, found in content.rows.items()}
        self._labels: dict[int, list[Hashable]] = {k: list(found) for k, found in content.open_labels.items()}
        self._positions = {k: {label: x for x, label in enumerate(found)} for k, found in self._labels.items()}
        self._order = Heap([-chain.index for chain in self.chains])
        self._fewest = Heap([float(chain.transitions) for chain in self.chains]) if self.floor else None
        #: The certificates of the chains that are not set aside; made when a study with a target first asks.
        self._certificates: Heap | None = None
        self._held: dict[int, ChainRecord] = {}
        #: The log: the chain, the state and the time of each observation.
        self._log_chains, self._log_states, self._log_times = array("q"), array("q"), array("d")
        #: Chain → the places of its observations in the log, and the steps at which its segments begin.
        self._paths: dict[int, tuple[array[int], list[int]]] = {}
        self._events: list[Event] = []
        self._reading, self._writing = nullcontext(self), _Writing(self)
        #: The copies of the running writing transaction.
        self._undo: _Writing | None = None

    def reading(self) -> AbstractContextManager["MemoryStore"]:
        self.now = self.clock()
        return self._reading

    def writing(self) -> AbstractContextManager["MemoryStore"]:
        self.now = self.clock()
        return self._writing

    def close(self) -> None:
        """Does nothing: a study in memory holds nothing open."""

    # -- reading

    def chain(self, name: str) -> ChainRecord | None:
        number = self._numbers.get(name)
        return None if number is None else self.numbered(number)

    def expect(self, names: Iterable[str]) -> None:
        """Does nothing: every chain is in memory."""

    def expect_rows(self, rows: Iterable[tuple[int, int]]) -> None:
        """Does nothing: every row is in memory."""

    def numbered(self, number: int) -> ChainRecord:
        chain = self.chains[number]
        undo = self._undo
        if undo is not None and number not in undo.chains:
            undo.chains[number] = _chain_values(chain)
        return chain

    def every(self) -> Iterator[ChainRecord]:
        return map(self.numbered, range(len(self.chains)))

    def row(self, chain: ChainRecord, position: int) -> RowRecord:
        rows = self._rows.get(chain.number)
        row = None if rows is None else rows.get(position)
        if row is None:
            return RowRecord()
        undo = self._undo
        if undo is not None and id(row) not in undo.counts:
            undo.counts[id(row)] = row, row.counts.copy(), row.discoveries.copy() if chain.open else None
            undo.keep_row(row)
        return row

    def rows(self, chain: ChainRecord) -> Mapping[int, RowRecord]:
        found = dict(sorted(self._rows.get(chain.number, {}).items()))
        if self._undo is not None:
            for row in found.values():
                self._undo.keep_row(row)
        return found

    def position(self, chain: ChainRecord, label: Hashable) -> int | None:
        return self._positions[chain.number].get(label)

    def labels(self, chain: ChainRecord) -> tuple[Hashable, ...]:
        return tuple(self._labels[chain.number])

    def prior(self, chain: ChainRecord) -> Mapping[int, Mapping[int, int]]:
        return self._prior.get(chain.number, {})

    def top(self, number: int) -> list[ChainRecord]:
        return self._firsts(self._order, number)

    def least(self, number: int) -> list[ChainRecord]:
        return [] if self._fewest is None else self._firsts(self._fewest, number)

    def _firsts(self, heap: Heap, number: int) -> list[ChainRecord]:
        if number == 1:
            first = heap.first()
            return [] if first is None else [self.numbered(first)]
        return [self.numbered(k) for k in heap.firsts(number)]

    def held(self, until: float | None = None) -> list[ChainRecord]:
        if not self._held:
            return []
        found = [c for c in self._held.values() if until is None or (c.expires is not None and c.expires <= until)]
        found.sort(key=lambda chain: (chain.expires, chain.number))
        return [self.numbered(chain.number) for chain in found]

    def worst(self, *, aside: bool = False) -> float:
        if aside:
            return max((chain.certificate for chain in self.chains if chain.aside), default=0.0)
        if self._certificates is None:
            self._certificates = Heap([None if chain.aside else -chain.certificate for chain in self.chains])
        first = self._certificates.first()
        return 0.0 if first is None else self.chains[first].certificate

    def stale(self) -> Iterator[ChainRecord]:
        return (self.numbered(chain.number) for chain in self.chains if chain.certified < chain.transitions)

    def observation(self, chain: ChainRecord, step: int) -> Observation | None:
        places = self._places(chain.number)
        return self._line(places[step - 1], step) if 0 < step <= len(places) else None

    def log(self, chain: ChainRecord | None, after: int) -> Iterator[Observation]:
        if chain is not None:
            places = self._places(chain.number)
            return (self._line(places[step - 1], step) for step in range(after + 1, len(places) + 1))
        lines = range(after, len(self._log_chains))
        return (self._line(place, 1 + bisect_left(self._places(self._log_chains[place]), place)) for place in lines)

    def _places(self, chain: int) -> Sequence[int]:
        return self._paths[chain][0] if chain in self._paths else ()

    def _line(self, place: int, step: int) -> Observation:
        chain = self._log_chains[place]
        segment = bisect_right(self._paths[chain][1], step)
        return Observation(place + 1, chain, step, segment, self._log_states[place], self._log_times[place])

    def events(self, after: int) -> Iterator[Event]:
        return iter(self._events[after:])

    def listed(
        self, search: str, order: str, descending: bool, offset: int, limit: int
    ) -> tuple[int, list[ChainRecord]]:
        found = [self.chains[number] for number in self.matching(search)]
        found.sort(key=attrgetter(ORDERS[order]), reverse=descending)  # stable: equal ones stay in order of number
        return len(found), found[offset : offset + limit]

    def matching(self, search: str) -> list[int]:
        wanted = search.translate(_LOWER)
        return [chain.number for chain in self.chains if wanted in chain.name.translate(_LOWER)]

    def outlines(self) -> Iterator[Outline]:
        return (Outline(c.size, c.open, c.weight, c.transitions > c.observations - c.segments) for c in self.chains)

    def moved(self, after: int, until: int) -> list[int]:
        return sorted(set(self._log_chains[after:until]))

    def variability(self) -> float:
        return sum(chain.weight * plug_in_variability(chain.size, self.rows(chain)) for chain in self.chains)

    def check_whole(self) -> None:
        """Does nothing: memory is taken to be sound."""

    # -- changing

    def save(self, chain: ChainRecord) -> None:
        number = chain.number
        free = chain.token is None and not chain.aside
        self._order.set(number, -chain.index if free else None)
        if self._fewest is not None:
            self._fewest.set(number, float(chain.transitions) if free else None)
        if self._certificates is not None:
            self._certificates.set(number, None if chain.aside else -chain.certificate)
        if chain.token is not None:
            self._held[number] = chain
        elif self._held:
            self._held.pop(number, None)

    def save_row(self, chain: ChainRecord, position: int, row: RowRecord) -> None:
        rows = self._rows.get(chain.number)
        if rows is None:
            rows = self._rows[chain.number] = {}
        before = rows.get(position)
        if before is not row:
            if self._undo is not None:
                self._undo.replaced.append((rows, position, before))
            rows[position] = row

    def discover(self, chain: ChainRecord, position: int, label: Hashable) -> None:
        self._labels[chain.number].append(label)
        self._positions[chain.number][label] = position

    def append(self, chain: ChainRecord, state: int) -> None:
        number = chain.number
        path = self._paths.get(number)
        if path is None:
            path = self._paths[number] = array("q"), []
        places, breaks = path
        places.append(len(self._log_chains))
        if len(breaks) < chain.segments:
            breaks.append(chain.observations)
        self._log_chains.append(number)
        self._log_states.append(state)
        self._log_times.append(self.now)

    def happened(self, kind: str, chain: ChainRecord | None = None, **detail: Any) -> None:
        self.study.events += 1
        number = None if chain is None else chain.number
        self._events.append(Event(self.study.events, self.now, kind, number, detail))

    def _shorten(self, changed: Iterable[int]) -> None:
        """Cuts off what a transaction added: the totals in the records say how long everything was before."""
        for column in (self._log_chains, self._log_states, self._log_times):
            del column[self.study.observations :]
        del self._events[self.study.events :]
        for number in changed:
            chain = self.chains[number]
            if number in self._paths:
                places, breaks = self._paths[number]
                del places[chain.observations :]
                del breaks[chain.segments :]
            if chain.open:
                for label in self._labels[number][chain.size :]:
                    self._positions[number].pop(label, None)
                del self._labels[number][chain.size :]
            self.save(chain)


class _Writing:
    """A writing transaction: copies of the records as they were when the transaction first handed them out."""

    __slots__ = ("_rows", "_store", "_study", "chains", "counts", "replaced")

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def __enter__(self) -> MemoryStore:
        store = self._store
        self._study = _study_values(store.study)
        #: Chain number → the fields of its record.
        self.chains: dict[int, tuple[Any, ...]] = {}
        #: id of a row → the row and the fields that are replaced when it changes.
        self._rows: dict[int, tuple[RowRecord, tuple[Any, ...]]] = {}
        #: id of a row → the row and its dictionaries, which are changed in place.
        self.counts: dict[int, tuple[RowRecord, dict[int, int], dict[int, tuple[int, int, int]] | None]] = {}
        #: Rows that were added or replaced: where, at which position, and what was there.
        self.replaced: list[tuple[dict[int, RowRecord], int, RowRecord | None]] = []
        store._undo = self
        return store

    def keep_row(self, row: RowRecord) -> None:
        if id(row) not in self._rows:
            self._rows[id(row)] = row, (row.exits, row.squares, row.terms, row.stale)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._store._undo = None
        if kind is not None:
            self._roll_back()

    def _roll_back(self) -> None:
        store = self._store
        _put_back(store.study, _STUDY, self._study)
        for rows, position, before in reversed(self.replaced):
            if before is None:
                rows.pop(position, None)
            else:
                rows[position] = before
        for row, values in self._rows.values():
            row.exits, row.squares, row.terms, row.stale = values
        for row, counts, discoveries in self.counts.values():
            row.counts.clear()  # in place, because the row's view reads the same dictionary
            row.counts.update(counts)
            if discoveries is not None:
                row.discoveries = discoveries
        for number, values in self.chains.items():
            _put_back(store.chains[number], _CHAIN, values)
        store._shorten(self.chains)


def _put_back(record: Any, names: list[str], values: tuple[Any, ...]) -> None:
    for name, value in zip(names, values, strict=True):
        setattr(record, name, value)
