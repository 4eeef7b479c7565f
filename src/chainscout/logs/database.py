"""A database: the statement runs there, and only the table of counts is sent."""

from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from ..errors import InputError, LogError, MissingExtraError
from ..validation import shown
from .request import MOMENTS, CountRequest, Kind
from .spool import BATCH, Spool, sentence
from .statement import counting, table_named


class Database:
    """One table or view of a database."""

    text_times = False
    untyped = False

    def __init__(self, spool: Spool, where: "str | sa.URL | sa.Engine", table: str) -> None:
        self.spool = spool
        if isinstance(where, sa.Engine):
            self.engine, self._owned = where, False
        else:
            self.engine, self._owned = _engine(where), True
        # The address without its password.
        self.name = f"{self.engine.url.render_as_string(hide_password=True)}, table {shown(table)}"
        schema, dot, name = table.rpartition(".")
        self.table = table_named(name, schema if dot else None)
        try:
            self.connection = self.engine.connect()
        except sa.exc.DBAPIError as error:
            self._dispose()
            raise LogError(f"{self.name}: the database cannot be reached: {_said(error)}") from None
        try:
            columns = sa.inspect(self.connection).get_columns(name, schema=schema if dot else None)
        except sa.exc.NoSuchTableError:
            self.close()
            raise InputError(f"{self.name}: the database has no such table or view") from None
        except sa.exc.SQLAlchemyError as error:
            self.close()
            raise LogError(f"{self.name}: the table cannot be looked at: {_said(error)}") from None
        sqlite = self.engine.dialect.name == "sqlite"
        self.kinds = {column["name"]: _kind(column["type"], sqlite) for column in columns}

    def check_gap(self, request: CountRequest) -> None:
        """Raises ``InputError`` for times that this database cannot subtract."""
        sqlite = self.engine.dialect.name == "sqlite"
        if sqlite and request.gap is not None and self.kinds[request.time] in MOMENTS:
            raise InputError(
                "SQLite keeps times as text and cannot subtract them: a gap needs a time column of numbers"
            )

    def count(self, request: CountRequest) -> None:
        """Runs the statement there and stores its rows as they arrive."""
        statement = counting(request, self.table, self.kinds)
        self.spool.fill(self.kinds[request.chain], self.kinds[request.state], self.streamed(statement))

    def rows(self, statement: sa.Select[Any]) -> list[Sequence[Any]]:
        """The answer to a small request about the log."""
        return list(self.streamed(statement))

    def streamed(self, statement: sa.Select[Any]) -> Iterator[Sequence[Any]]:
        """The rows of an answer. The driver holds one batch of them."""
        streamed = self.connection.execution_options(stream_results=True, yield_per=BATCH)
        try:
            with streamed.execute(statement) as answer:
                yield from answer
        except sa.exc.SQLAlchemyError as error:
            raise LogError(f"{self.name}: the database failed, and nothing was counted: {_said(error)}") from None

    def close(self) -> None:
        """Closes the connection."""
        try:
            self.connection.close()
        except sa.exc.SQLAlchemyError:
            self.connection.invalidate()
        self._dispose()

    def _dispose(self) -> None:
        if self._owned:
            self.engine.dispose()


def _engine(where: "str | sa.URL") -> sa.Engine:
    try:
        url = sa.make_url(where)
        if url.drivername == "postgresql":
            url = url.set(drivername="postgresql+psycopg")
        return sa.create_engine(url)
    except sa.exc.ArgumentError as error:
        raise InputError(f"a database's address looks like 'postgresql://user@host/name': {_said(error)}") from None
    except ImportError as error:
        if str(where).startswith("postgresql"):
            raise MissingExtraError("a PostgreSQL database", "postgres") from None
        raise InputError(f"this database's driver is not installed: {error}") from None


def _kind(kind: Any, sqlite: bool) -> Kind:
    if isinstance(kind, sa.Boolean):
        return Kind.INTEGER if sqlite else Kind.BOOLEAN
    if isinstance(kind, sa.Integer):
        return Kind.INTEGER
    if isinstance(kind, sa.Float):
        # SQLite has no NaN: it stores null.
        return Kind.DECIMAL if sqlite else Kind.FLOAT
    if isinstance(kind, sa.Numeric):
        return Kind.DECIMAL
    if isinstance(kind, sa.Enum):
        return Kind.OTHER
    if isinstance(kind, sa.String):
        return Kind.TEXT
    if isinstance(kind, sa.DateTime):
        return Kind.MOMENT
    if isinstance(kind, sa.Date):
        return Kind.DATE
    if isinstance(kind, sa.LargeBinary | sa.ARRAY | sa.JSON):
        return Kind.UNUSABLE
    return Kind.OTHER


def _said(error: sa.exc.SQLAlchemyError) -> str:
    """The driver's message, without the statement."""
    return sentence(getattr(error, "orig", None) or error)
