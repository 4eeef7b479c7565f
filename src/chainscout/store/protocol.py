"""The interface of a store: transactions over records that the study reads, changes and saves.

**Atomicity.** A transaction that ends without an error has stored all its changes, durably where the store is on disk.
A transaction that ends with an error, whatever the error is, has changed nothing: neither the stored study nor the
records that the store hands out afterwards. (If the connection to a server is lost during the commit, the store raises
`ConnectionLost` and says that the outcome is not known.)

**Threads and processes.** A store runs one transaction at a time and transactions do not nest. A store has no lock of
its own: a `Study` holds one lock around every transaction, so many threads can share a study. Many processes can share
a study on disk, each with its own store. Their writing transactions run one after the other, and a reading transaction
sees the study as it was at one moment.

**Ownership of records.** The records belong to the store. The caller may change a record that a *writing* transaction
handed out, and only until this transaction ends. `transaction.study` is saved with the transaction. Every other changed
record must be given to `save`, `save_row` or `save_path` before the transaction ends; the store decides when to write
it. The caller may read a record until the next transaction begins; after that it may be outdated. The fields that
`FIXED` of a record names never change.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from .records import (
    AnswerLine,
    ChainRecord,
    Event,
    HistoryLine,
    Observation,
    Outline,
    PathRecord,
    Prefix,
    QuestionRecord,
    RowRecord,
    StudyRecord,
    Twins,
)

__all__ = ["FORKED", "ORDERS", "Result", "Store", "Transaction"]

#: What a process is told that uses a study which it got by a fork.
FORKED = "a study cannot be used in a forked process: open it there again"

#: What a function gives that runs in a transaction.
Result = TypeVar("Result")

#: The name of an order of chains → the field of `ChainRecord` that it sorts by.
ORDERS = {
    "number": "number",
    "name": "name",
    "states": "size",
    "observations": "observations",
    "certificate": "certificate",
    "index": "index",
}


class Transaction(Protocol):
    """A consistent view of one study, and the changes that are stored together when the transaction ends.

    What a method returns includes the changes that were saved earlier in the same transaction.
    """

    #: The study's record. A writing transaction may change it; it needs no `save`.
    study: StudyRecord

    #: Seconds since 1970 by the store's clock when the transaction began. A writing transaction begins when its turn
    #: has come. Workers on many machines share the clock of the database server.
    now: float

    # -- reading

    def chain(self, name: str) -> ChainRecord | None:
        """The chain with this name, or None. The same record each time within one transaction."""

    def expect(self, names: Iterable[str]) -> None:
        """Announces the chains that the caller reads next, so that a database can read them at once.

        A name that no chain has is not an error here.
        """

    def expect_rows(self, rows: Iterable[tuple[int, int]]) -> None:
        """Announces the rows (chain number, position) that the caller reads next with `row`."""

    def numbered(self, number: int) -> ChainRecord:
        """The chain with this number, which must exist. The same record that `chain` returns."""

    def every(self) -> Iterator[ChainRecord]:
        """All chains by number. The caller may save a chain while it iterates."""

    def row(self, chain: ChainRecord, position: int) -> RowRecord:
        """N[x,·] of the state at ``position``, empty if the chain never left this state.

        The caller may change everything in this record. An empty row is stored by its first `save_row`, not before.
        """

    def rows(self, chain: ChainRecord) -> Mapping[int, RowRecord]:
        """Every row that the chain left at least once, by position and in this order.

        The caller may change `terms` and `stale` of these records, and must take a row from `row` to change its counts.
        """

    def position(self, chain: ChainRecord, label: Hashable) -> int | None:
        """The position of a label among the open states of a chain, or None if it was not discovered yet."""

    def labels(self, chain: ChainRecord) -> tuple[Hashable, ...]:
        """The open states of a chain, in order of discovery."""

    def prior(self, chain: ChainRecord) -> Mapping[int, Mapping[int, int]]:
        """The counts that the chain was warm-started from. The caller must not change them."""

    def top(self, number: int, below: float | None = None) -> list[ChainRecord]:
        """The ``number`` free chains with the largest indices, largest first, equal ones by chain number.

        A chain is free if it is neither blocked nor resting nor set aside. ``below``: only those with a smaller index.
        """

    def least(self, number: int) -> list[ChainRecord]:
        """The ``number`` free chains with the fewest transitions, pending ones included, fewest first.

        The list is empty unless `Store.floor` is true.
        """

    def path(self, chain: ChainRecord, number: int) -> PathRecord | None:
        """The path with this number in its chain, or None."""

    def open_path(self, chain: ChainRecord, worker: str) -> PathRecord | None:
        """The latest path of a worker on a chain, unless it has ended.

        A path that was given back without an observation is skipped if the one before it can be continued.
        """

    def paths(self, chain: ChainRecord) -> Iterator[PathRecord]:
        """All paths of a chain, by number."""

    def held(self, until: float | None = None) -> list[PathRecord]:
        """The paths under a lease, in the order in which the leases end.

        ``until``: only the paths whose lease ends at this time or earlier.
        """

    def drawing(self) -> Iterator[PathRecord]:
        """The paths whose next draw was issued but neither told nor given up, by chain and number."""

    def twins(self) -> Iterator[Twins]:
        """The stored prefixes that another path of the chain had before, by chain, second path and length."""

    def twin(self, path: PathRecord) -> int | None:
        """The first other path of the chain that had the path's digest after as many states; None if there is none.

        It is found if its states were told in an earlier transaction.
        """

    def prefixes(self, chain: ChainRecord) -> Iterator[Prefix]:
        """The stored prefixes of a chain, in order."""

    def walk(self, chain: ChainRecord, path: int, steps: int) -> Iterator[int]:
        """The first ``steps`` states of a path in their order, by position, if earlier transactions told them."""

    def worst(self, *, aside: bool = False) -> float:
        """The largest stored certificate of the chains that are set aside, or of the others; 0 if there is none."""

    def stale(self) -> Iterator[ChainRecord]:
        """The chains that moved since their certificate was computed, by number."""

    def observation(self, path: PathRecord, step: int) -> Observation | None:
        """The observation with this number in its path, or None. Reads the log of the chain."""

    def log(self, chain: ChainRecord | None, after: int) -> Iterator[Observation]:
        """The observations after number ``after``, in order.

        ``chain``: only this chain.
        """

    def draws(self, chain: ChainRecord | None, after: int) -> npt.NDArray[np.int64]:
        """The same as columns, without teller and time: number, chain, path, step, state, number of issue."""

    def events(self, after: int) -> Iterator[Event]:
        """The events after number ``after``, in order."""

    def history(self, chain: ChainRecord | None, after: int) -> Iterator[HistoryLine]:
        """The lines of history after number ``after``, of a chain or of the whole study, in order."""

    def questions(self, chain: ChainRecord | None = None) -> list[QuestionRecord]:
        """The questions about a chain, or all of them, by number. A changed one must be given to `save_question`."""

    def answer_lines(self, question: int, after: int) -> Iterator[AnswerLine]:
        """The answers to a question at earlier moments, after line ``after``, in order."""

    def listed(
        self, search: str, order: str, descending: bool, offset: int, limit: int
    ) -> tuple[int, list[ChainRecord]]:
        """How many chains have ``search`` in their names, and one page of these chains.

        ``order`` is a key of `ORDERS`. The search ignores the case of the letters A to Z.
        """

    def outlines(self) -> Iterator[Outline]:
        """The fixed facts of every chain, by number."""

    def kept(self, chain: int | None) -> bytes | None:
        """The standing that `keep` stored for a chain by number, or for all chains together; None if there is none."""

    def check_whole(self) -> None:
        """Raises `FileError` if the database itself finds that it is damaged.

        Afterwards the transaction reads from the database and not from a cache.
        """

    # -- changing, in a writing transaction only

    def save(self, chain: ChainRecord) -> None:
        """Stores a chain that the caller changed. From now on `top`, `least` and `held` know its new place."""

    def save_row(self, chain: ChainRecord, position: int, row: RowRecord) -> None:
        """Stores a row that the caller changed."""

    def discover(self, chain: ChainRecord, position: int, label: Hashable) -> None:
        """Stores a new open state. The caller also sets the chain's new size and saves the chain."""

    def save_path(self, path: PathRecord) -> None:
        """Stores a path that the caller made or changed."""

    def keep_prefix(self, path: PathRecord) -> None:
        """Stores the digest of the states that the path has so far."""

    def append(self, path: PathRecord, issued: int) -> None:
        """Adds a last line to the log: the last state of a path, and the number of its draw.

        The records must count the observation already: its number is `study.observations`, its step is `path.steps`,
        its state is `path.last`, its teller is `path.teller`, and its time is `now`.
        """

    def draw(self, chain: ChainRecord | None, certificate: float, variability: float) -> None:
        """Appends a line of history, of a chain or of the whole study, and counts it in `study.lines`."""

    def keep(self, chain: int | None, content: bytes) -> None:
        """Stores the standing of the checks of a chain, or of all chains together. It replaces the old one."""

    def save_question(self, question: QuestionRecord) -> None:
        """Stores a question whose answer changed, adds its answer as a line, and counts the line in `study.answers`."""

    def happened(self, kind: str, chain: ChainRecord | None = None, **detail: Any) -> None:
        """Appends an event and counts it in `study.events`."""


class Store(Protocol):
    """The store of one study."""

    #: Whether `writing` is refused.
    read_only: bool
    #: Whether other processes can change the study at the same time.
    is_shared: bool
    #: Whether the policy asks for the least sampled chain. It must be set before the first `writing`.
    floor: bool

    def reading(self) -> AbstractContextManager[Transaction]:
        """A consistent view of the study. It must not change a record."""

    def writing(self) -> AbstractContextManager[Transaction]:
        """The exclusive right to change the study; waits until other writers are done.

        Raises `InputError` if the store is read-only.
        """

    def read(self, look: Callable[..., Result], arguments: Sequence[Any]) -> Result:
        """The result of ``look(transaction, *arguments)`` with the view of `reading`. It may be called twice."""

    def write(self, chain: str, path: int | None, change: Callable[..., Result], arguments: Sequence[Any]) -> Result:
        """The result of ``change(transaction, *arguments)`` with the right of `writing`.

        ``chain``, ``path``: the name of a chain and the number of its path that ``change`` reads first, so that a
        database on a server can read them at once. They need not exist.
        ``change`` is called again if another writer was faster. Nothing of the first call is stored then.
        """

    def notes(self) -> tuple[str, ...]:
        """Sentences about the storage that readers of the study should see."""

    def close(self) -> None:
        """Closes the connections of the store. A store on disk connects again in the next transaction."""
