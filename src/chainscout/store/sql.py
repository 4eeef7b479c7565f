"""A study in a database. Every transaction touches what it must and nothing else."""

import json
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from typing import Any

from sqlalchemy.sql import Executable

from ..errors import FileError
from . import encoding, listing, mapping, statements
from .database import Database
from .records import ChainRecord, Event, Observation, Outline, RowRecord, StudyRecord

#: Rows fetched at a time where all of them are read.
PAGE = 1000


class SqlTransaction:
    """One transaction: records are read once, changed in memory, and written together before the commit."""

    def __init__(self, store: "SqlStore", study: StudyRecord, now: float) -> None:
        self._store = store
        self._database = store.database
        self.study = study
        self.now = now
        self._before = copy(study)
        self._chains: dict[int, ChainRecord] = {}
        self._numbers: dict[str, int] = {}
        self._changed: dict[int, ChainRecord] = {}
        self._rows: dict[tuple[int, int], RowRecord] = {}
        self._changed_rows: dict[tuple[int, int], RowRecord] = {}
        self._lines: list[dict[str, Any]] = []

    # -- reading

    def chain(self, name: str) -> ChainRecord | None:
        """The chain of this name."""
        number = self._numbers.get(name)
        if number is not None and number in self._chains:
            return self._chains[number]
        if "\0" in name and self._database.engine.dialect.name == "postgresql":  # which cannot store such a name
            return None
        found = self._database.run(statements.chain_by_name, {"name": name}).fetchone()
        return None if found is None else self._known(found)

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
            known.labels = self._store.label_list(known.label_list)
            self._chains[number] = known
            self._numbers[known.name] = number
        return known

    def every(self) -> Iterator[ChainRecord]:
        """All chains by number."""
        return self._paged(statements.chains_after)

    def stale(self) -> Iterator[ChainRecord]:
        """Chains that moved since their certificate was computed."""
        self._flush()
        return self._paged(statements.stale_after)

    def _paged(self, statement: Executable) -> Iterator[ChainRecord]:
        after = -1
        while True:
            found = self._database.run(statement, {"after": after, "limit": PAGE}).fetchall()
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
        """The largest stored certificate."""
        self._flush()
        found = self._database.run(statements.worst).fetchone()
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
        """Asks the database itself whether it is sound."""
        self._database.check_whole()

    # -- changing

    def save(self, chain: ChainRecord) -> None:
        """The chain was changed."""
        self._changed[chain.number] = chain

    def save_row(self, chain: ChainRecord, position: int, row: RowRecord) -> None:
        """The row was changed."""
        self._changed_rows[chain.number, position] = row
        self._rows[chain.number, position] = row

    def discover(self, chain: ChainRecord, position: int, label: Hashable) -> None:
        """A new open state."""
        values = {"chain": chain.number, "position": position, "label": encoding.pack_label(label)}
        self._database.run(statements.add_state, values)

    def append(self, observation: Observation) -> None:
        """A new last line of the log."""
        self._lines.append(mapping.observation_columns(observation))

    def happened(self, kind: str, chain: ChainRecord | None = None, **detail: Any) -> None:
        """A new last event."""
        self.study.events += 1
        values = {
            "number": self.study.events,
            "time": self.now,
            "kind": kind,
            "chain": None if chain is None else chain.number,
            "detail": json.dumps(detail, ensure_ascii=False),
        }
        self._database.run(statements.add_event, values)

    def _flush(self) -> None:
        """Writes what was changed, so that the database's own order can be asked."""
        database = self._database
        if self._changed:
            found = [
                {f"at_{k}" if k == "number" else k: v for k, v in self._columns(chain).items()}
                for chain in self._changed.values()
            ]
            _run(database, statements.set_chain, found)
            self._changed.clear()
        if self._changed_rows:
            new, old = [], []
            for (chain, state), row in self._changed_rows.items():
                values = mapping.row_columns(chain, state, row)
                if row.stored:
                    old.append({f"at_{k}" if k in ("chain", "state") else k: v for k, v in values.items()})
                else:
                    new.append(values)
                    row.stored = True
            _run(database, statements.add_row, new)
            _run(database, statements.set_row, old)
            self._changed_rows.clear()
        _run(database, statements.add_observation, self._lines)
        self._lines.clear()

    def _columns(self, chain: ChainRecord) -> dict[str, Any]:
        return mapping.chain_columns(chain, self._store.floor)

    def finish(self) -> None:
        """Writes everything; the commit follows."""
        self._flush()
        if self.study != self._before:
            after = mapping.study_columns(self.study)
            self._database.run(statements.set_study, {"at_id" if k == "id" else k: v for k, v in after.items()})


def _run(database: Database, statement: Executable, parameters: list[dict[str, Any]]) -> None:
    if len(parameters) == 1:
        database.run(statement, parameters[0])
    elif parameters:
        database.run_many(statement, parameters)


class SqlStore:
    """A study in SQLite or PostgreSQL."""

    rolls_back = True

    def __init__(self, database: Database) -> None:
        self.database = database
        self.read_only = database.read_only
        #: Whether the policy looks at the least sampled chain; the study says so when it has its policy.
        self.floor = False
        self._label_lists: dict[int, tuple[Hashable, ...]] = {}

    @contextmanager
    def reading(self) -> Iterator[SqlTransaction]:
        """A consistent view."""
        with self.database.transaction(write=False):
            yield self._begin(statements.get_study)

    @contextmanager
    def writing(self) -> Iterator[SqlTransaction]:
        """The right to change the study, exclusively."""
        with self.database.transaction(write=True):
            # Where a transaction does not lock out other writers by itself, the study's row is what they queue for.
            transaction = self._begin(statements.lock_study if self.database.locks_rows else statements.get_study)
            yield transaction
            transaction.finish()

    def _begin(self, statement: Executable) -> SqlTransaction:
        found = self.database.run(statement).fetchone()
        if found is None:
            raise FileError(f"there is no study in {self.database.where}")
        return SqlTransaction(self, mapping.study_record(found), self.database.now())

    def label_list(self, number: int | None) -> tuple[Hashable, ...] | None:
        """A list of labels; it never changes, so it is read once."""
        if number is None:
            return None
        if number not in self._label_lists:
            found = self.database.run(statements.get_label_list, {"number": number}).fetchone()
            if found is None:
                raise FileError(f"the study is damaged: the list of labels {number} is missing")
            self._label_lists[number] = mapping.label_tuple(found[0])
        return self._label_lists[number]

    def close(self) -> None:
        """Closes the connection."""
        self.database.close()
