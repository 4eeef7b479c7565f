"""What a study needs of a store: one transaction at a time, over records that it reads, changes and saves.

A transaction that ends without an error is durable; one that ends with an error has changed nothing.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from .records import ChainRecord, Event, Observation, Outline, RowRecord, StudyRecord


class Transaction(Protocol):
    """A consistent view of one study, and the changes to be made to it at once."""

    study: StudyRecord

    @property
    def now(self) -> float:
        """Seconds since 1970 by the store's clock."""

    # -- reading
    def chain(self, name: str) -> ChainRecord | None:
        """The chain of this name."""

    def expect(self, names: Iterable[str]) -> None:
        """These chains are looked at next: a database can read them at once. There may be none of such a name."""

    def expect_rows(self, rows: Iterable[tuple[int, int]]) -> None:
        """These rows (chain, position) are looked at next."""

    def numbered(self, number: int) -> ChainRecord:
        """The chain of this number."""

    def every(self) -> Iterator[ChainRecord]:
        """All chains by number. Saving them while they are read is allowed."""

    def row(self, chain: ChainRecord, position: int) -> RowRecord:
        """N[x,·] of the state at ``position``; empty if it was never left."""

    def rows(self, chain: ChainRecord) -> Mapping[int, RowRecord]:
        """Every row that was left at least once, by position. To change the counts of one, take it by ``row``."""

    def position(self, chain: ChainRecord, label: Hashable) -> int | None:
        """The position of a label among a chain's open states."""

    def labels(self, chain: ChainRecord) -> tuple[Hashable, ...]:
        """The open states of a chain, in order of discovery."""

    def prior(self, chain: ChainRecord) -> Mapping[int, Mapping[int, int]]:
        """The counts that the chain was warm-started from."""

    def top(self, number: int) -> list[ChainRecord]:
        """The ``number`` free chains with the largest indices, the largest first, equal ones by chain number."""

    def least(self, number: int) -> list[ChainRecord]:
        """The ``number`` free chains with the fewest transitions, the fewest first, equal ones by chain number."""

    def held(self, until: float | None = None) -> list[ChainRecord]:
        """Chains under a lease; those whose lease ends by ``until``, if that is given."""

    def worst(self) -> float:
        """The largest stored certificate of the chains that are not set aside; 0 if all are."""

    def worst_aside(self) -> float:
        """The largest stored certificate of the chains that are set aside and not stale; 0 if none is."""

    def stale(self) -> Iterator[ChainRecord]:
        """Chains that moved since their certificate was computed, set aside or not. They may be saved meanwhile."""

    def stale_aside(self) -> Iterator[ChainRecord]:
        """Those of them that are set aside: such as an older chainscout did not look at again."""

    def observation(self, chain: ChainRecord, step: int) -> Observation | None:
        """One line of the log."""

    def log(self, chain: ChainRecord | None, after: int) -> Iterator[Observation]:
        """The log from the observation after number ``after`` on, in order."""

    def events(self, after: int) -> Iterator[Event]:
        """What else happened, in order."""

    def listed(
        self, search: str, order: str, descending: bool, offset: int, limit: int
    ) -> tuple[int, list[ChainRecord]]:
        """How many chains have ``search`` in their names, and a page of them in an order of ``listing.ORDERS``."""

    def matching(self, search: str) -> list[int]:
        """The numbers of the chains with ``search`` in their names, in order."""

    def outlines(self) -> Iterator[Outline]:
        """What every chain is, by number."""

    def moved(self, after: int, until: int) -> list[int]:
        """The numbers of the chains that made the observations after number ``after``, up to number ``until``."""

    def variability(self) -> float:
        """Λ of the smoothed estimates, each chain's part times its weight."""

    def check_whole(self) -> None:
        """Asks the database itself whether it is sound."""

    # -- changing
    def save(self, chain: ChainRecord) -> None:
        """The chain was changed."""

    def save_row(self, chain: ChainRecord, position: int, row: RowRecord) -> None:
        """The row was changed."""

    def discover(self, chain: ChainRecord, position: int, label: Hashable) -> None:
        """A new open state."""

    def append(self, observation: Observation) -> None:
        """A new last line of the log."""

    def happened(self, kind: str, chain: ChainRecord | None = None, **detail: Any) -> None:
        """A new last event."""


class Store(Protocol):
    """Where a study is kept."""

    read_only: bool
    #: Whether other processes can write to it at the same time.
    is_shared: bool

    def reading(self) -> AbstractContextManager[Transaction]:
        """A consistent view."""

    def writing(self) -> AbstractContextManager[Transaction]:
        """The right to change the study, exclusively."""

    def close(self) -> None:
        """Gives up what the store holds open."""
