"""A study in a database: the transactions of one store, and what it remembers between them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from sqlalchemy.sql import Executable

from ...errors import FileError
from ..protocol import Result
from ..records import StudyRecord
from . import codec, statements
from .cache import MOST_KEPT, Cache
from .database import Begun, Database, Stale, Wanted
from .transaction import SqlTransaction

__all__ = ["SqlStore"]

_STAMP = len(statements.STAMP)
#: A chain has a record of its own and some of its paths and rows.
_MANY = MOST_KEPT // 10


class _Unforeseen(Exception):
    """A glance at the study needs something that only a transaction can read."""


class _NoDatabase:
    """Stands for the database where there is no transaction."""

    def __getattr__(self, name: str) -> Any:
        raise _Unforeseen


_NO_DATABASE = _NoDatabase()


class SqlStore:
    """A study in SQLite or PostgreSQL."""

    is_shared = True

    def __init__(self, database: Database, *, floor: bool = False) -> None:
        self.database = database
        self.read_only = database.read_only
        self.floor = floor
        self.cache = Cache()
        #: The connection through which the records of the cache came.
        self._connection = 0
        #: Whether nobody else wrote between the last two changes by this store, nor after them, as far as it knows.
        self._is_alone = False
        #: The study as it was when a transaction last began. It may be outdated.
        self._last: StudyRecord | None = None

    @contextmanager
    def reading(self) -> Iterator[SqlTransaction]:
        try:
            with self.database.transaction(False, self._first(), self._wanted(best=True)) as begun:
                yield self._begun(begun)
        except BaseException as error:
            self.database.undo()  # an interruption may come before the transaction's own end
            if isinstance(error, FileError):
                self.cache.forget()  # the records may have been read at two different moments
            raise

    @contextmanager
    def writing(self) -> Iterator[SqlTransaction]:
        try:
            with self.database.transaction(True, self._first(write=True), self._wanted(best=True)) as begun:
                transaction = self._begun(begun)
                self._is_alone = self.cache.is_own
                yield transaction
                transaction.finish()
        except BaseException:
            self.database.undo()  # an interruption may come before the transaction's own end
            self.cache.forget()  # the records were changed, but the stored study was not
            raise

    def read(self, look: Callable[..., Result], arguments: Sequence[Any]) -> Result:
        study = self.cache.study
        if study is not None and self._can_glance(study):
            found = self.database.glance(study.chains > _MANY)
            if found is not None and found[:_STAMP] == self.cache.stamp:
                best = [] if found[_STAMP] is None else [found[_STAMP:]]
                try:
                    return look(self._transaction(_NO_DATABASE, {"best": best}), *arguments)
                except _Unforeseen:  # for example if only the best chain's number is known
                    pass
        with self.reading() as transaction:
            return look(transaction, *arguments)

    def write(self, chain: str, path: int | None, change: Callable[..., Result], arguments: Sequence[Any]) -> Result:
        """On a server whose study nobody else changes, the changes are sent before the server was asked anything.

        The message begins with a claim: the study's row is still the known one. If it is not, nothing is changed, and
        ``change`` is called again. If ``change`` reads more, or raises an error, the claim is sent at that moment.
        """
        if self._can_claim() and self.cache.has(chain, path):
            with suppress(Stale):
                return self._written({}, self.cache.stamp, change, arguments)
        return self._written(self._wanted(chain, path, best=False), None, change, arguments)

    def _written(
        self,
        wanted: Mapping[str, Wanted],
        claim: Sequence[Any] | None,
        change: Callable[..., Result],
        arguments: Sequence[Any],
    ) -> Result:
        # This is `writing` without a generator, because every observation passes here.
        database = self.database
        try:
            with database.transaction(True, self._first(write=True), wanted, claim) as begun:
                transaction = self._begun(begun)
                self._is_alone = self.cache.is_own
                try:
                    found = change(transaction, *arguments)
                except Exception:
                    database.confirm()
                    raise
                transaction.finish()
        except BaseException:
            database.undo()
            self.cache.forget()
            raise
        return found

    def _can_glance(self, study: StudyRecord) -> bool:
        """Whether one statement is likely to be enough for a reader. If it is not, a server costs a wait more."""
        return not (study.leases or self.floor) and (self._is_alone or not self.database.foresees)

    def _can_claim(self) -> bool:
        """Whether a change of one chain is likely to need nothing from the server first.

        If the connection is lost after a message with a whole transaction, nobody knows whether it was stored. So such
        a message is not sent over a connection that has ended already.
        """
        study = self.cache.study
        if study is None or study.leases:
            return False
        return self._is_alone and self.database.foresees and self.database.is_connected()

    def _first(self, *, write: bool = False) -> Executable:
        """The first read of a transaction: the study's row, or a check whether it is still the known one."""
        if write and self.database.locks_rows:
            return statements.lock_study  # a transaction does not lock other writers out by itself: they queue here
        return statements.get_study if self.database.foresees or self.cache.known_row is None else statements.get_stamp

    def _wanted(self, chain: str | None = None, path: int | None = None, *, best: bool) -> dict[str, Wanted]:
        """The reads that a transaction is likely to need and that can be sent with its beginning."""
        wanted: dict[str, Wanted] = {}
        if self.database.foresees:
            if isinstance(chain, str) and self.database.can_store(chain):
                changes = self.cache.changes if self.cache.has(chain, path) else -1
                wanted["needed"] = statements.needed, {"name": chain, "path": path, "changes": changes}
            if best:
                wanted["best"] = statements.best, {}
            if self._last is not None and self._last.leases:
                wanted["expired"] = statements.expired_now, {}
        return wanted

    def _begun(self, begun: Begun) -> SqlTransaction:
        if begun.first is None:
            raise FileError(f"there is no study in {self.database.where}")
        row = begun.first
        if self._connection != self.database.connections:
            # Whoever takes over from a server may lack its last changes. Then others count the same numbers again.
            self._connection = self.database.connections
            self.cache.forget()
        cache = self.cache
        if len(row) == _STAMP and row != cache.stamp:
            row = self.database.run(statements.get_study).fetchone()
        if row != cache.stamp and row != cache.known_row:
            cache.note(row, codec.study_record(row), is_own=False)
        return self._transaction(self.database, begun.foreseen)

    def _transaction(self, database: Any, foreseen: Mapping[str, list[Any]]) -> SqlTransaction:
        """A transaction that begins with the known row of the study."""
        cache = self.cache
        assert cache.study is not None
        self._last = cache.study
        self._is_alone = self._is_alone and cache.is_own
        return SqlTransaction(database, cache, self.floor, self.database.now(), cache.study, foreseen)

    def notes(self) -> tuple[str, ...]:
        return self.database.notes()

    def close(self) -> None:
        self.database.close()
