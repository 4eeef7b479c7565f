"""What a transaction reads from a database."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any

from sqlalchemy.sql import Executable

from ..errors import FileError
from . import encoding, listing, mapping, statements
from .cache import Cache
from .database import Database
from .records import ChainRecord, Event, Observation, Outline, RowRecord, StudyRecord

#: Rows fetched at a time where all of them are read.
PAGE = 1000


class Queries:
    """The reading half of a transaction: each record is read once, whatever is done with it."""

    def __init__(
        self,
        database: Database,
        label_list: Callable[[int | None], Any],
        cache: Cache,
        study: StudyRecord,
        now: float,
    ) -> None:
        self._database = database
        self._label_list = label_list
        self.study = study
        self.now = now
        self._cache = cache.at(study.changes)
        self._chains, self._numbers, self._rows = cache.chains, cache.numbers, cache.rows
        self._changed: dict[int, ChainRecord] = {}

    def _flush(self) -> None:
        """Writes what was changed, so that the database's own order can be asked."""
        raise NotImplementedError

    # -- chains and rows

    def chain(self, name: str) -> ChainRecord | None:
        """The chain of this name."""
        number = self._numbers.get(name)
        if number is not None and number in self._chains:
            return self._chains[number]
        if not self._database.can_store(name):
            return None
        found = self._database.run(statements.chain_by_name, {"name": name}).fetchone()
        return None if found is None else self._known(found)

    def expect(self, names: Iterable[str]) -> None:
        """Reads the chains that are looked at next."""
        new = (name for name in names if self._numbers.get(name) not in self._chains)
        wanted = [{"name": name} for name in new if self._database.can_store(name)]
        for values in self._database.find_many(statements.chain_by_name, wanted):
            self._known(values)

    def numbered(self, number: int) -> ChainRecord:
        """The chain of this number."""
        if number in self._chains:
            return self._chains[number]
        found = self._database.run(statements.chain_by_number, {"number": number}).fetchone()
        if found is None:
            raise FileError(f"the study is damaged: chain {number} is missing")
        return self._known(found)

    def _known(self, values: Any) -> ChainRecord:
        """One record a chain and transaction, however often its row is read."""
        number = values[0]
        known = self._chains.get(number)
        if known is None:
            known = mapping.chain_record(values)
            known.labels = self._label_list(known.label_list)
            self._chains[number] = known
            self._numbers[known.name] = number
        return known

    def every(self) -> Iterator[ChainRecord]:
        """All chains by number."""
        return self._paged(statements.chains_after)

    def stale(self) -> Iterator[ChainRecord]:
        """Chains that moved since their certificate was computed."""
        self._flush()
        yield from self._paged(statements.stale_after, aside=0)
        yield from self.stale_aside()

    def stale_aside(self) -> Iterator[ChainRecord]:
        """Those of them that are set aside."""
        self._flush()
        return self._paged(statements.stale_after, aside=1)

    def _paged(self, statement: Executable, **parameters: int) -> Iterator[ChainRecord]:
        after = -1
        while True:
            found = self._database.run(statement, {**parameters, "after": after, "limit": PAGE}).fetchall()
            for values in found:
                yield self._known(values)
            if len(found) < PAGE:
                return
            after = found[-1][0]
            if not self._changed:  # a pass over a million chains keeps none of them
                self._chains.clear()

    def row(self, chain: ChainRecord, position: int) -> RowRecord:
        """N[x,·] of the state at ``position``."""
        key = chain.number, position
        known = self._rows.get(key)
        if known is None:
            found = self._database.run(statements.get_row, {"chain": key[0], "state": key[1]}).fetchone()
            known = self._rows[key] = RowRecord() if found is None else mapping.row_record(found)
        return known

    def expect_rows(self, rows: Iterable[tuple[int, int]]) -> None:
        """Reads the rows that are looked at next; those that are not there are empty."""
        wanted = [key for key in rows if key not in self._rows]
        self._rows.update((key, RowRecord()) for key in wanted)
        parameters = [{"chain": chain, "state": state} for chain, state in wanted]
        for values in self._database.find_many(statements.get_row, parameters):
            self._rows[values[0], values[1]] = mapping.row_record(values)

    def rows(self, chain: ChainRecord) -> Mapping[int, RowRecord]:
        """Every row that was left at least once, by position."""
        self._flush()
        found = self._database.run(statements.get_rows, {"chain": chain.number}).fetchall()
        return {values[1]: mapping.row_record(values) for values in found}

    def position(self, chain: ChainRecord, label: Hashable) -> int | None:
        """The position of a label among a chain's open states."""
        key = {"chain": chain.number, "label": encoding.pack_label(label)}
        found = self._database.run(statements.get_position, key).fetchone()
        return None if found is None else int(found[0])

    def labels(self, chain: ChainRecord) -> tuple[Hashable, ...]:
        """The open states of a chain."""
        found = self._database.run(statements.get_states, {"chain": chain.number}).fetchall()
        return tuple(encoding.unpack_json(text) for (text,) in found)

    def prior(self, chain: ChainRecord) -> Mapping[int, Mapping[int, int]]:
        """The counts that the chain was warm-started from."""
        found = self._database.run(statements.get_prior, {"chain": chain.number}).fetchall()
        return {state: encoding.unpack_counts(counts) for state, counts in found}

    def top(self, number: int) -> list[ChainRecord]:
        """The free chains with the largest indices."""
        return self._chosen(statements.top, {"limit": number})

    def least(self, number: int) -> list[ChainRecord]:
        """The free chains with the fewest transitions."""
        return self._chosen(statements.least, {"limit": number})

    def held(self, until: float | None = None) -> list[ChainRecord]:
        """Chains under a lease."""
        if not self.study.leases:
            return []
        if until is None:
            return self._chosen(statements.held, {})
        return self._chosen(statements.expired, {"until": until})

    def _chosen(self, statement: Executable, parameters: Mapping[str, Any]) -> list[ChainRecord]:
        self._flush()
        return [self._known(values) for values in self._database.run(statement, parameters).fetchall()]

    def worst(self) -> float:
        """The largest stored certificate of the chains that are not set aside."""
        return self._largest(statements.worst)

    def worst_aside(self) -> float:
        """The largest stored certificate of the chains that are, and have not moved since it was computed."""
        return self._largest(statements.worst_aside)

    def _largest(self, statement: Executable) -> float:
        self._flush()
        found = self._database.run(statement).fetchone()
        return 0.0 if found is None else float(found[0])

    def observation(self, chain: ChainRecord, step: int) -> Observation | None:
        """One line of the log."""
        self._flush()
        found = self._database.run(statements.get_observation, {"chain": chain.number, "step": step}).fetchone()
        return None if found is None else Observation(*found)

    def log(self, chain: ChainRecord | None, after: int) -> Iterator[Observation]:
        """The log, in order."""
        if chain is None:
            return self._lines_after(statements.log_after, {}, after, 0, Observation)
        return self._lines_after(statements.chain_log_after, {"chain": chain.number}, after, 2, Observation)

    def events(self, after: int) -> Iterator[Event]:
        """What else happened, in order."""
        return self._lines_after(statements.events_after, {}, after, 0, lambda *v: mapping.event_record(v))

    def _lines_after(
        self, statement: Executable, parameters: Mapping[str, Any], after: int, key: int, make: Callable[..., Any]
    ) -> Iterator[Any]:
        while True:
            found = self._database.run(statement, {**parameters, "after": after, "limit": PAGE}).fetchall()
            for values in found:
                yield make(*values)
            if len(found) < PAGE:
                return
            after = found[-1][key]

    def listed(
        self, search: str, order: str, descending: bool, offset: int, limit: int
    ) -> tuple[int, list[ChainRecord]]:
        """How many chains have ``search`` in their names, and a page of them."""
        self._flush()
        dialect = self._database.engine.dialect.name
        parameters: dict[str, Any] = {"limit": limit, "offset": offset}
        if search:
            parameters["pattern"] = listing.pattern(search)
        found = self._database.run(
            listing.LISTINGS[order, descending, dialect if search else None], parameters
        ).fetchall()
        number = self.study.chains
        if search:
            number = offset + len(found)
            if len(found) == limit or (offset and not found):
                counting = listing.NUMBER_FOUND[dialect]
                number = self._database.run(counting, {"pattern": parameters["pattern"]}).fetchone()[0]
        return number, [self._known(values) for values in found]

    def matching(self, search: str) -> list[int]:
        """The numbers of the chains with ``search`` in their names, in order."""
        self._flush()
        statement = listing.MATCHING[self._database.engine.dialect.name]
        return [number for (number,) in self._database.run(statement, {"pattern": listing.pattern(search)}).fetchall()]

    def outlines(self) -> Iterator[Outline]:
        """What every chain is, by number."""
        self._flush()
        found = self._database.run(listing.outlines).fetchall()
        return (Outline(size, bool(is_open), weight, bool(warm)) for size, is_open, weight, warm in found)

    def moved(self, after: int, until: int) -> list[int]:
        """The numbers of the chains that made the observations after number ``after``, up to number ``until``."""
        self._flush()
        found = self._database.run(listing.moved, {"after": after, "until": until}).fetchall()
        return [number for (number,) in found]

    def variability(self) -> float:
        """Λ of the smoothed estimates, each chain's part times its weight."""
        self._flush()
        parts = (listing.unvisited_variability, listing.visited_variability)
        return sum(float(self._database.run(part).fetchone()[0] or 0.0) for part in parts)

    def check_whole(self) -> None:
        """Asks the database itself whether it is sound; what is looked at then is read anew."""
        self._cache.forget()
        self._database.check_whole()
