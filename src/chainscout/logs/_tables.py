"""Logs that DuckDB counts: a relation in the spool's database, and tables in memory, which become one."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import duckdb

from ..errors import ChainscoutError, InputError
from ..validation import shown
from ._spool import Spool, guarded, sentence
from .request import CountRequest, Kind, kind_named


class Relation:
    """A relation ``log`` in the spool's database; ``name``: the name of the log in messages."""

    table, dialect = "log", "duckdb"
    #: Whether the columns have no types, so that '12' may be a number or a text.
    untyped = False
    #: Column → the kind of its values.
    kinds: dict[str, Kind]

    def __init__(self, spool: Spool, name: str) -> None:
        self.spool, self.name = spool, name

    def count(self, text: str) -> None:
        """Runs the statement in the spool's database."""
        self.spool.count_here(text)

    def streamed(self, text: str) -> Iterator[Sequence[Any]]:
        """The rows of an answer, with one batch in memory at a time."""
        return self.spool.streamed(text)

    def close(self) -> None:
        """Does nothing, because the spool holds everything."""


class Table(Relation):
    """A frame or a stream. Its columns are copied into the spool, because a stream can be read only once."""

    def __init__(self, spool: Spool, where: Any, request: CountRequest) -> None:
        super().__init__(spool, f"the {type(where).__module__.partition('.')[0]} {type(where).__name__}")
        with guarded(self.name):
            try:
                if is_pandas(where):
                    request.need_columns(list(where.columns))
                    where = where[request.columns]
                    relation = spool.connection.from_df(where)
                else:
                    if is_lazy(where):
                        request.need_columns(where.collect_schema().names())
                        where = where.select(request.columns).collect()
                    relation = spool.connection.from_arrow(_Once(where))
            except ChainscoutError:
                raise
            except Exception as error:  # the library that makes the stream may raise anything
                raise InputError(f"{self.name} cannot be read as a table: {sentence(error)}") from None
            self.kinds = relation_kinds(relation)
            request.check(self.kinds)
            if is_pandas(where):
                _need_one_type(where, self.kinds)
            relation.project(", ".join(_quoted(name) for name in request.columns)).create("log")

    def close(self) -> None:
        """Removes the copy, because the counts may be kept for long."""
        with contextlib.suppress(duckdb.Error):  # a failed spool is removed as a whole
            self.spool.connection.execute("DROP TABLE IF EXISTS log")


class _Once:
    """An object that has only the protocol, so that DuckDB reads every library's stream in the same way."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._stream.__arrow_c_stream__(requested_schema)


def is_table(where: Any) -> bool:
    """Whether this is a frame of pandas or polars, or anything else with the Arrow C stream protocol."""
    return is_pandas(where) or is_lazy(where) or hasattr(where, "__arrow_c_stream__")


def is_pandas(where: Any) -> bool:
    """Whether this is a pandas frame. DuckDB reads its arrays; its Arrow stream would need pyarrow."""
    return hasattr(where, "iloc") and hasattr(where, "columns")


def is_lazy(where: Any) -> bool:
    """Whether this is a lazy frame of polars, which is computed when it is collected."""
    return hasattr(where, "collect_schema") and hasattr(where, "collect") and hasattr(where, "select")


def _need_one_type(frame: Any, kinds: dict[str, Kind]) -> None:
    """Raises ``InputError`` for a column in which 1 and '1' would become one text."""
    from pandas.api.types import infer_dtype

    for name, kind in kinds.items():
        if kind is Kind.TEXT and infer_dtype(frame[name]).startswith("mixed"):
            raise InputError(f"the column {shown(name)} mixes values that have no order, such as text and numbers")


def relation_kinds(relation: duckdb.DuckDBPyRelation) -> dict[str, Kind]:
    """The kind of each column of a DuckDB relation."""
    return {name: kind_named(kind.id) for name, kind in zip(relation.columns, relation.types, strict=True)}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
