"""A log that is a relation ``log`` in the spool's database. Files and streams are counted there."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from .request import CountRequest, Kind
from .spool import Spool, guarded
from .statement import counting, positional, table_named

if TYPE_CHECKING:
    import duckdb

_KINDS = {
    "boolean": Kind.BOOLEAN,
    "float": Kind.FLOAT,
    "double": Kind.FLOAT,
    "decimal": Kind.DECIMAL,
    "varchar": Kind.TEXT,
    "date": Kind.DATE,
    **dict.fromkeys(
        ("tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint", "hugeint"),
        Kind.INTEGER,
    ),
    **dict.fromkeys(
        ("timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "timestamp with time zone"), Kind.MOMENT
    ),
    **dict.fromkeys(("uuid", "enum", "time", "interval", "null"), Kind.OTHER),
}


class Relation:
    """The relation, and the requests about it."""

    #: Column → the kind of its values.
    kinds: dict[str, Kind]

    def __init__(self, spool: Spool, name: str) -> None:
        """``name``: the name of the log in messages."""
        self.spool = spool
        self.name = name
        self.table = table_named("log")

    def count(self, request: CountRequest) -> None:
        """Runs the statement in the spool's database."""
        with guarded(self.name):
            self.spool.count_here(*positional(counting(request, self.table, self.kinds)))

    def rows(self, statement: sa.Select[Any]) -> list[Sequence[Any]]:
        """The answer to a small request about the log."""
        with guarded(self.name):
            return list(self.spool.connection.execute(*positional(statement)).fetchall())

    def streamed(self, statement: sa.Select[Any]) -> Iterator[Sequence[Any]]:
        """The rows of an answer, with one batch in memory at a time."""
        with guarded(self.name):
            yield from self.spool.streamed(*positional(statement))


def relation_kinds(relation: "duckdb.DuckDBPyRelation") -> dict[str, Kind]:
    """The kind of each column of a DuckDB relation."""
    return {
        name: _KINDS.get(kind.id.lower(), Kind.UNUSABLE)
        for name, kind in zip(relation.columns, relation.types, strict=True)
    }
