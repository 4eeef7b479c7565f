"""The records that a store keeps between transactions."""

from collections.abc import Hashable
from typing import Any

from ..records import ChainRecord, PathRecord, RowRecord, StudyRecord
from . import codec

__all__ = ["MOST_KEPT", "Cache"]

#: How many records a store keeps between transactions.
MOST_KEPT = 50_000


class Cache:
    """What transactions have read and written. It stays valid while nobody else changes the study."""

    def __init__(self) -> None:
        #: The study's row as it was last read or written, its stamp and its record; None: nothing is known.
        self.known_row: Any = None
        self.stamp: Any = None
        self.study: StudyRecord | None = None
        #: Whether this store wrote that row.
        self.is_own = False
        #: The lists of labels that were read. They never change.
        self.label_lists: dict[int, tuple[Hashable, ...]] = {}
        #: `StudyRecord.changes` when the records were read; −1: nothing is kept.
        self.changes = -1
        self.chains: dict[int, ChainRecord] = {}
        self.numbers: dict[str, int] = {}
        self.rows: dict[tuple[int, int], RowRecord] = {}
        #: Chain → all its rows by position, for chains whose rows were all read.
        self.whole: dict[int, dict[int, RowRecord]] = {}
        self.paths: dict[tuple[int, int], PathRecord] = {}
        #: Chain and label in JSON → position, for open states. Entries are only added.
        self.positions: dict[tuple[int, str], int] = {}
        #: The stored values of the columns that seldom change, as far as they are known.
        self.seldom_of_chains: dict[int, tuple[Any, ...]] = {}
        self.seldom_of_paths: dict[tuple[int, int], tuple[Any, ...]] = {}

    def note(self, row: Any, study: StudyRecord, *, is_own: bool) -> None:
        """Notes the study's row and its record."""
        self.known_row, self.stamp, self.study, self.is_own = row, codec.stamp(row), study, is_own

    def move_to(self, changes: int) -> None:
        """Forgets the records if the study has changed since, or if there are too many."""
        if changes != self.changes or len(self.chains) + len(self.rows) + len(self.paths) > MOST_KEPT:
            self._forget_records()
            self.changes = changes
            if len(self.positions) > MOST_KEPT:
                self.positions.clear()

    def has(self, name: str, path: int | None) -> bool:
        """Whether a chain, this path of it, and the row of the state that the path is in are all here."""
        chain = self.numbers.get(name) if isinstance(name, str) else None
        if chain is None or chain not in self.chains:
            return False
        walked = None if path is None else self.paths.get((chain, path))
        return path is None or (walked is not None and (walked.last is None or (chain, walked.last) in self.rows))

    def forget(self) -> None:
        """The next transaction reads everything again, except lists of labels."""
        self.known_row = self.stamp = self.study = None
        self.is_own = False
        self.positions.clear()
        self._forget_records()

    def _forget_records(self) -> None:
        self.changes = -1
        self.chains.clear()
        self.numbers.clear()
        self.rows.clear()
        self.whole.clear()
        self.paths.clear()
        self.seldom_of_chains.clear()
        self.seldom_of_paths.clear()
