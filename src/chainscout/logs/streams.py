"""Arrow streams: tables and readers of pyarrow, polars frames, DuckDB relations, and others with the protocol."""

from typing import Any

from ..errors import ChainscoutError, InputError
from ..validation import shown
from .relation import Relation, relation_kinds
from .request import CountRequest, is_lazy
from .spool import Spool, guarded, sentence


class Stream(Relation):
    """One log as an Arrow stream. Its columns are copied into the spool, because a stream can be read only once."""

    text_times = False
    untyped = False

    def __init__(self, spool: Spool, where: Any, request: CountRequest) -> None:
        super().__init__(spool, f"the {type(where).__module__.partition('.')[0]} {type(where).__name__}")
        with guarded(self.name):
            try:
                relation = spool.connection.from_arrow(_collected(where, request))
            except ChainscoutError:
                raise
            except Exception as error:  # the library that makes the stream may raise anything
                raise InputError(f"{self.name} cannot be read as a table: {sentence(error)}") from None
            self.kinds = relation_kinds(relation)
            request.check(self.kinds)
            relation.project(", ".join(_quoted(name) for name in request.columns)).create("log")

    def close(self) -> None:
        """Removes the copy."""
        self.spool.connection.execute("DROP TABLE IF EXISTS log")


class _Once:
    """An object that has only the protocol, so that DuckDB reads every library's stream in the same way."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._stream.__arrow_c_stream__(requested_schema)


def _collected(where: Any, request: CountRequest) -> Any:
    if not is_lazy(where):
        return _Once(where)
    names = where.collect_schema().names()
    absent = [name for name in request.columns if name not in names]
    if absent:
        raise InputError(f"the log has no column {shown(absent[0])}: its columns are {shown(list(names))}")
    return _Once(where.select(request.columns).collect())


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
