"""A study in memory: the records themselves, and a heap where a database has an indexed column."""

import time
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from .listing import small
from .order import Order
from .records import ChainRecord, Event, Observation, Outline, RowRecord, StudyRecord, plug_in_variability
from .undo import Undo


class MemoryStore:
    """The store and, at the same time, its own transaction: there is nothing to commit, and what to roll back is kept.

    Whatever hands out records that may be changed keeps what they were while there is a way back.
    """

    read_only = False
    is_shared = False

    def __init__(
        self,
        study: StudyRecord,
        chains: Iterable[ChainRecord],
        floor: bool,
        rows: Mapping[int, Mapping[int, RowRecord]],
        labels: Mapping[int, Iterable[Hashable]],
    ) -> None:
        self.study = study
        self.chains = list(chains)
        self.numbers = {chain.name: chain.number for chain in self.chains}
        self.known_rows: dict[int, dict[int, RowRecord]] = {k: dict(found) for k, found in rows.items()}
        self._prior = {k: {x: dict(row.counts) for x, row in found.items()} for k, found in rows.items()}
        self._labels: dict[int, list[Hashable]] = {k: list(found) for k, found in labels.items()}
        self._positions = {k: {label: x for x, label in enumerate(found)} for k, found in self._labels.items()}
        self.order = Order([-chain.index for chain in self.chains])
        self.fewest = Order([float(chain.transitions) for chain in self.chains]) if floor else None
        self._held: dict[int, ChainRecord] = {}
        #: The log: each observation's chain, state and time.
        self.log_chains, self.log_states, self.log_times = array("q"), array("q"), array("d")
        #: Chain → the places of its observations in the log, and the steps with which its segments begin.
        self.lines: dict[int, array[int]] = {}
        self._breaks: dict[int, list[int]] = {}
        self._events: list[Event] = []
        self._undo: Undo | None = None
        self.clock = time.time

    @property
    def now(self) -> float:
        """Seconds since 1970."""
        return self.clock()

    @contextmanager
    def reading(self) -> Iterator["MemoryStore"]:
        """The store itself."""
        yield self

    @contextmanager
    def writing(self) -> Iterator["MemoryStore"]:
        """The store itself; an error undoes what was done since."""
        undo = self._undo = Undo(self.study)
        try:
            yield self
        except BaseException:
            self._roll_back(undo)
            raise
        finally:
            self._undo = None

    def _roll_back(self, undo: Undo) -> None:
        changed = undo.back(self.known_rows)
        for column in (self.log_chains, self.log_states, self.log_times):
            del column[self.study.observations :]
        del self._events[self.study.events :]
        for chain in changed:
            number = chain.number
            if number in self.lines:
                del self.lines[number][chain.observations :]
                del self._breaks[number][chain.segments :]
            if chain.open:
                for label in self._labels[number][chain.size :]:
                    del self._positions[number][label]
                del self._labels[number][chain.size :]
            self.save(chain)

    def _given(self, chain: ChainRecord) -> ChainRecord:
        return chain if self._undo is None else self._undo.keep(chain)

    def close(self) -> None:
        """Nothing is held open."""

    # -- reading

    def chain(self, name: str) -> ChainRecord | None:
        """The chain of this name."""
        number = self.numbers.get(name)
        return None if number is None else self._given(self.chains[number])

    def expect(self, names: Iterable[str]) -> None:
        """All of them are here."""

    def expect_rows(self, rows: Iterable[tuple[int, int]]) -> None:
        """All of them are here."""

    def numbered(self, number: int) -> ChainRecord:
        """The chain of this number."""
        return self._given(self.chains[number])

    def every(self) -> Iterator[ChainRecord]:
        """All chains by number."""
        return map(self._given, self.chains)

    def row(self, chain: ChainRecord, position: int) -> RowRecord:
        """N[x,·] of the state at ``position``."""
        rows = self.known_rows.setdefault(chain.number, {})
        known = rows.get(position)
        if self._undo is not None:
            self._undo.keep_row(chain.number, position, known, counts=True)
        return RowRecord() if known is None else known

    def rows(self, chain: ChainRecord) -> Mapping[int, RowRecord]:
        """Every row that was left at least once, by position."""
        found = dict(sorted(self.known_rows.get(chain.number, {}).items()))
        if self._undo is not None:
            for position, row in found.items():
                self._undo.keep_row(chain.number, position, row, counts=False)
        return found

    def position(self, chain: ChainRecord, label: Hashable) -> int | None:
        """The position of a label among a chain's open states."""
        return self._positions[chain.number].get(label)

    def labels(self, chain: ChainRecord) -> tuple[Hashable, ...]:
        """The open states of a chain."""
        return tuple(self._labels[chain.number])

    def prior(self, chain: ChainRecord) -> Mapping[int, Mapping[int, int]]:
        """The counts that the chain was warm-started from."""
        return self._prior.get(chain.number, {})

    def top(self, number: int) -> list[ChainRecord]:
        """The free chains with the largest indices."""
        return [self._given(self.chains[k]) for k in self.order.firsts(number)]

    def least(self, number: int) -> list[ChainRecord]:
        """The free chains with the fewest transitions."""
        return [] if self.fewest is None else [self._given(self.chains[k]) for k in self.fewest.firsts(number)]

    def held(self, until: float | None = None) -> list[ChainRecord]:
        """Chains under a lease."""
        found = [c for c in self._held.values() if until is None or (c.expires is not None and c.expires <= until)]
        return sorted(map(self._given, found), key=lambda chain: (chain.expires, chain.number))

    def worst(self) -> float:
        """The largest stored certificate of the chains that are not set aside."""
        return max((chain.certificate for chain in self.chains if not chain.aside), default=0.0)

    def worst_aside(self) -> float:
        """The largest stored certificate of the chains that are, and have not moved since it was computed."""
        found = (chain.certificate for chain in self.chains if chain.aside and chain.certified >= chain.transitions)
        return max(found, default=0.0)

    def stale(self) -> Iterator[ChainRecord]:
        """Chains that moved since their certificate was computed."""
        return (self._given(chain) for chain in self.chains if chain.certified < chain.transitions)

    def stale_aside(self) -> Iterator[ChainRecord]:
        """Those of them that are set aside."""
        return (self._given(chain) for chain in self.chains if chain.aside and chain.certified < chain.transitions)

    def observation(self, chain: ChainRecord, step: int) -> Observation | None:
        """One line of the log."""
        lines = self.lines.get(chain.number, ())
        return self._line(lines[step - 1], step) if 0 < step <= len(lines) else None

    def log(self, chain: ChainRecord | None, after: int) -> Iterator[Observation]:
        """The log, in order."""
        if chain is not None:
            lines = self.lines.get(chain.number, array("q"))
            return (self._line(lines[step - 1], step) for step in range(after + 1, len(lines) + 1))
        places = range(after, len(self.log_chains))
        return (self._line(place, 1 + bisect_left(self.lines[self.log_chains[place]], place)) for place in places)

    def _line(self, place: int, step: int) -> Observation:
        chain = self.log_chains[place]
        segment = bisect_right(self._breaks[chain], step)
        return Observation(place + 1, chain, step, segment, self.log_states[place], self.log_times[place])

    def events(self, after: int) -> Iterator[Event]:
        """What else happened, in order."""
        return iter(self._events[after:])

    def listed(
        self, search: str, order: str, descending: bool, offset: int, limit: int
    ) -> tuple[int, list[ChainRecord]]:
        """How many chains have ``search`` in their names, and a page of them."""
        field = {"states": "size"}.get(order, order)
        wanted = small(search)
        found = [chain for chain in self.chains if wanted in small(chain.name)]
        found.sort(key=lambda chain: getattr(chain, field), reverse=descending)  # stable: equal ones by number
        return len(found), found[offset : offset + limit]

    def matching(self, search: str) -> list[int]:
        """The numbers of the chains with ``search`` in their names, in order."""
        wanted = small(search)
        return [chain.number for chain in self.chains if wanted in small(chain.name)]

    def outlines(self) -> Iterator[Outline]:
        """What every chain is, by number."""
        return (Outline(c.size, c.open, c.weight, c.transitions > c.observations - c.segments) for c in self.chains)

    def moved(self, after: int, until: int) -> list[int]:
        """The numbers of the chains that made the observations after number ``after``, up to number ``until``."""
        return sorted(set(self.log_chains[after:until]))

    def variability(self) -> float:
        """Λ of the smoothed estimates."""
        return sum(chain.weight * plug_in_variability(chain.size, self.rows(chain)) for chain in self.chains)

    def check_whole(self) -> None:
        """Memory is taken to be sound."""

    # -- changing

    def save(self, chain: ChainRecord) -> None:
        """Puts the chain where it belongs in the order."""
        number = chain.number
        free = chain.token is None and not chain.aside
        self.order.set(number, -chain.index if free else None)
        if self.fewest is not None:
            self.fewest.set(number, float(chain.transitions) if free else None)
        if chain.token is not None:
            self._held[number] = chain
        elif self._held:
            self._held.pop(number, None)

    def save_row(self, chain: ChainRecord, position: int, row: RowRecord) -> None:
        """Keeps the row."""
        self.known_rows.setdefault(chain.number, {})[position] = row

    def discover(self, chain: ChainRecord, position: int, label: Hashable) -> None:
        """A new open state."""
        self._labels[chain.number].append(label)
        self._positions[chain.number][label] = position

    def append(self, observation: Observation) -> None:
        """A new last line of the log."""
        if observation.segment > len(self._breaks.get(observation.chain, ())):
            self.begin_segment(observation.chain, observation.step)
        self.lines[observation.chain].append(len(self.log_chains))
        self.log_chains.append(observation.chain)
        self.log_states.append(observation.state)
        self.log_times.append(observation.time)

    def begin_segment(self, chain: int, step: int) -> None:
        """The observation ``step`` is the first of a segment."""
        if chain in self._breaks:
            self._breaks[chain].append(step)
        else:
            self._breaks[chain] = [step]
            self.lines[chain] = array("q")
            self.known_rows.setdefault(chain, {})

    def happened(self, kind: str, chain: ChainRecord | None = None, **detail: Any) -> None:
        """A new last event."""
        self.study.events += 1
        number = None if chain is None else chain.number
        self._events.append(Event(self.study.events, self.now, kind, number, detail))
