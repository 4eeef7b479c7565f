"""A study in a database: the transactions of one store, and what it remembers between them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from sqlalchemy.sql import Executable

from ...errors import FileError
from ..protocol import Result
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
        #: Whether the study had leases, a target and questions when it was last read.
        self._has_leases = self._has_target = self._has_questions = False
        #: Whether it has so many chains that the cache hardly ever has the best one.
        self._is_large = False

    @contextmanager
    def reading(self) -> Iterator[SqlTransaction]:
        try:
            with self.database.transaction(False, self._first(), self._wanted(best=True)) as begun:
                yield self._begun(begun)
        except FileError:
            self.cache.forget()  # the records may have been read at two different moments
            raise

    @contextmanager
    def writing(self) -> Iterator[SqlTransaction]:
        try:
            with self.database.transaction(True, self._first(write=True), self._wanted(best=True)) as begun:
                transaction = self._begun(begun)
                self._is_alone = self.cache.known_row is self.cache.own_row
                yield transaction
                transaction.finish()
        except BaseException:
            self.cache.forget()  # the records were changed, but the stored study was not
            raise

    def read(self, look: Callable[..., Result], arguments: Sequence[Any]) -> Result:
        if self._can_glance():
            found = self.database.glance(self._is_large)
            if found is not None and tuple(found[:_STAMP]) == codec.stamp(self.cache.known_row):
                best = [] if found[_STAMP] is None else [found[_STAMP:]]
                try:
                    return look(self._transaction(_NO_DATABASE, self.cache.known_row, {"best": best}), *arguments)
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
                return self._written({}, codec.stamp(self.cache.known_row), change, arguments)
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
                self._is_alone = self.cache.known_row is self.cache.own_row
                try:
                    found = change(transaction, *arguments)
                except Exception:
                    database.confirm()
                    raise
                transaction.finish()
        except BaseException:
            self.cache.forget()
            raise
        return found

    def _can_glance(self) -> bool:
        """Whether one statement is likely to be enough for a reader. If it is not, a server costs a wait more."""
        if self.cache.known_row is None or self._has_leases or self.floor:
            return False
        return self._is_alone or not self.database.foresees

    def _can_claim(self) -> bool:
        """Whether a change of one chain is likely to need nothing from the server first.

        If the connection is lost after a message with a whole transaction, nobody knows whether it was stored. So such
        a message is not sent over a connection that has ended already.
        """
        if not (self._is_alone and self.database.foresees and self.database.is_connected()):
            return False
        return not (self._has_leases or self._has_target or self._has_questions)

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
            if self._has_leases:
                wanted["expired"] = statements.expired_now, {}
            if self._has_target:
                wanted["worst"] = statements.worst, {"limit": statements.WORST}
        return wanted

    def _begun(self, begun: Begun) -> SqlTransaction:
        if begun.first is None:
            raise FileError(f"there is no study in {self.database.where}")
        row = begun.first
        if self._connection != self.database.connections:
            # Whoever takes over from a server may lack its last changes. Then others count the same numbers again.
            self._connection = self.database.connections
            self.cache.forget()
        if len(row) == _STAMP:
            known = row == codec.stamp(self.cache.known_row)
            row = self.cache.known_row if known else self.database.run(statements.get_study).fetchone()
        return self._transaction(self.database, row, begun.foreseen)

    def _transaction(self, database: Any, row: Any, foreseen: Mapping[str, list[Any]]) -> SqlTransaction:
        """A transaction that begins with this row of the study."""
        is_known = row == self.cache.known_row
        study = codec.study_record(row, checked=is_known)
        if not is_known:
            self.cache.known_row = row
        self._is_alone = self._is_alone and self.cache.known_row is self.cache.own_row
        self._has_leases, self._has_target = study.leases > 0, study.target_loss is not None
        self._has_questions, self._is_large = study.questions > 0, study.chains > _MANY
        now, fields = self.database.now(), codec.study_fields(row)
        return SqlTransaction(database, self.cache, self.floor, now, study, fields, foreseen)

    def notes(self) -> tuple[str, ...]:
        return self.database.notes()

    def close(self) -> None:
        self.database.close()
