"""A study in a database. Every transaction touches what it must and nothing else."""

import json
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import FileError
from . import encoding, mapping, statements
from .cache import Cache
from .database import Database
from .querying import Queries
from .records import ChainRecord, Observation, RowRecord, StudyRecord


class SqlTransaction(Queries):
    """One transaction: records are read once, changed in memory, and written together before the commit."""

    def __init__(self, store: "SqlStore", study: StudyRecord, now: float) -> None:
        super().__init__(store.database, store.label_list, store.cache, study, now)
        self._floor = store.floor
        self._before = mapping.study_values(self.study)
        self._saved = False
        self._changed_rows: dict[tuple[int, int], RowRecord] = {}
        self._lines: list[dict[str, Any]] = []

    def save(self, chain: ChainRecord) -> None:
        """The chain was changed."""
        self._changed[chain.number] = chain
        self._saved = True

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
            floor = self._floor
            database.run_many(
                statements.set_chain, [mapping.chain_columns(chain, floor) for chain in self._changed.values()]
            )
            self._changed.clear()
        if self._changed_rows:
            new: list[dict[str, Any]] = []
            old: list[dict[str, Any]] = []
            for (chain, state), row in self._changed_rows.items():
                (old if row.stored else new).append(mapping.row_columns(chain, state, row))
                row.stored = True
            database.run_many(statements.add_row, new)
            database.run_many(statements.set_row, old)
            self._changed_rows.clear()
        database.run_many(statements.add_observation, self._lines)
        self._lines = []

    def finish(self) -> None:
        """Writes everything; the commit follows."""
        self._database.read_no_more()
        self._flush()
        if self._saved or mapping.study_values(self.study) != self._before:
            self.study.changes += 1
            self._database.run(statements.set_study, mapping.study_columns(self.study))


class SqlStore:
    """A study in SQLite or PostgreSQL."""

    is_shared = True

    def __init__(self, database: Database) -> None:
        self.database = database
        self.read_only = database.read_only
        #: Whether the policy looks at the least sampled chain; the study says so when it has its policy.
        self.floor = False
        self._label_lists: dict[int, tuple[Hashable, ...]] = {}
        self.cache = Cache()

    @contextmanager
    def reading(self) -> Iterator[SqlTransaction]:
        """A consistent view."""
        try:
            with self.database.transaction(False, statements.get_study) as found:
                yield self._begun(found)
        except FileError:
            self.cache.forget()  # what was read may be of two moments
            raise

    @contextmanager
    def writing(self) -> Iterator[SqlTransaction]:
        """The right to change the study, exclusively."""
        # Where a transaction does not lock out other writers by itself, the study's row is what they queue for.
        first = statements.lock_study if self.database.locks_rows else statements.get_study
        try:
            with self.database.transaction(True, first) as found:
                transaction = self._begun(found)
                yield transaction
                transaction.finish()
        except BaseException:
            self.cache.forget()  # its records were changed, and the study was not
            raise
        self.cache.changes = transaction.study.changes

    def _begun(self, found: Any) -> SqlTransaction:
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
