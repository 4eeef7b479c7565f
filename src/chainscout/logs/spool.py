"""Counts on disk: a table in a private DuckDB database. It is complete and checked before a caller sees it.

Memory stays under DuckDB's limit, however large the log or its table of counts is. A log that breaks off leaves nothing
behind.
"""

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError, LogError, MissingExtraError
from ..validation import shown, whole_number
from .request import Kind

Pair = tuple[Any, Any, Any, int]

#: Rows in one batch.
BATCH = 50_000

#: The SQL type of labels of each kind; all other kinds are already text.
_TYPES = {Kind.INTEGER: "BIGINT", Kind.FLOAT: "DOUBLE", Kind.BOOLEAN: "BOOLEAN"}

#: Whether every label is a whole number in its usual form, so that reading it as a number loses nothing.
_WHOLE = r"bool_and(regexp_full_match({column}, '0|-?[1-9][0-9]{{0,17}}'))"


class Spool:
    """A private DuckDB database. The statement runs in it, and then it holds the sorted table ``counts``."""

    def __init__(
        self,
        memory_limit: str | None = None,
        threads: int | None = None,
        temp_directory: str | os.PathLike[str] | None = None,
    ) -> None:
        try:
            import duckdb
            import sqlalchemy  # noqa: F401 - the statements that run in DuckDB, databases and Spark
        except ImportError:
            raise MissingExtraError("DuckDB, which reads files and keeps tables of counts,", "logs") from None
        if threads is not None:
            whole_number(threads, "threads", meaning="how many threads DuckDB may use")
        try:
            self.directory = Path(tempfile.mkdtemp(prefix="chainscout-", dir=temp_directory))
        except (OSError, TypeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InputError(
                f"temp_directory must be a directory that can be written to, not {shown(temp_directory)}: {reason}"
            ) from None
        self._remove = weakref.finalize(self, shutil.rmtree, self.directory, ignore_errors=True)
        settings: dict[str, Any] = {"temp_directory": str(self.directory), "preserve_insertion_order": True}
        # DuckDB must not download an extension while it reads a log.
        settings |= {"autoinstall_known_extensions": False}
        settings |= {} if memory_limit is None else {"memory_limit": memory_limit}
        settings |= {} if threads is None else {"threads": threads}
        try:
            self.connection: duckdb.DuckDBPyConnection = duckdb.connect(
                str(self.directory / "counts.duckdb"), config=settings
            )
        except duckdb.Error as error:
            self._remove()
            if memory_limit is None:
                raise LogError(
                    f"there is no room for the counts in {self.directory.parent}: {sentence(error)}"
                ) from None
            raise InputError(
                f"memory_limit must be a size such as '600MB', not {shown(memory_limit)}: {sentence(error)}"
            ) from None
        # The bar would appear in the output of a command.
        self.connection.execute("SET enable_progress_bar = false")

    def close(self) -> None:
        """Removes everything."""
        self.connection.close()
        self._remove()

    def fill(self, chain: Kind, state: Kind, rows: Iterable[Sequence[Any]]) -> None:
        """Stores the rows (chain, from, to, count, faults) of an engine that runs elsewhere."""
        kinds = (chain, state, state)
        columns = ", ".join(f"c{i} {_TYPES.get(kind, 'VARCHAR')}" for i, kind in enumerate(kinds))
        self.connection.execute(f"CREATE TABLE found ({columns}, c3 BIGINT, c4 BIGINT)")
        batch: list[Sequence[Any]] = []
        for row in rows:
            batch.append(row)
            if len(batch) == BATCH:
                self._insert(batch)
                batch = []
        self._insert(batch)

    def _insert(self, rows: list[Sequence[Any]]) -> None:
        if not rows:
            return
        batch = {f"c{i}": _objects(column) for i, column in enumerate(zip(*rows, strict=True))}
        self.connection.register("batch", batch)
        self.connection.execute("INSERT INTO found SELECT * FROM batch")
        self.connection.unregister("batch")

    def count_here(self, text: str, values: Sequence[Any]) -> None:
        """Runs the statement in this database."""
        self.connection.execute(f"CREATE TABLE found(c0, c1, c2, c3, c4) AS {text}", values)

    def streamed(self, text: str, values: Sequence[Any]) -> Iterator[Sequence[Any]]:
        """The rows of an answer, with one batch in memory at a time."""
        answer = self.connection.execute(text, values)
        while rows := answer.fetchmany(BATCH):
            yield from rows

    def faults(self) -> tuple[int, int]:
        """How many rows are tied or lack a value, and how many lack a state."""
        wrong, stateless = self._row(
            "SELECT coalesce(sum(CASE WHEN c0 IS NULL THEN c3 ELSE c4 END), 0),"
            " coalesce(sum(c3) FILTER (c2 IS NULL), 0) FROM found"
        )
        return int(wrong), int(stateless)

    def finish(self, untyped: bool = False) -> None:
        """Sorts the counts by chain. ``untyped``: the labels come from text, where '12' may mean a number."""
        chain, source, target = "c0", "c1", "c2"
        if untyped:
            chains, states = self._row(f"SELECT {_WHOLE.format(column='c0')}, {_WHOLE.format(column='c2')} FROM found")
            chain = "c0::BIGINT" if chains else chain
            source, target = ("c1::BIGINT", "c2::BIGINT") if states else (source, target)
        self.connection.execute(
            f'CREATE TABLE counts AS SELECT {chain} AS "chain", {source} AS "from", {target} AS "to",'
            ' c3::BIGINT AS "count" FROM found WHERE c2 IS NOT NULL AND c3 > 0 ORDER BY 1, 2 NULLS FIRST, 3'
        )
        self.connection.execute("DROP TABLE found")

    # -- the counts, sorted

    def __len__(self) -> int:
        return int(self._row('SELECT count(DISTINCT "chain") FROM counts')[0])

    def _row(self, text: str) -> tuple[Any, ...]:
        """The only row of an answer. The answer is read to its end, because an open answer blocks the connection."""
        [row] = self.connection.execute(text).fetchall()
        return tuple(row)

    def pairs(self) -> Iterator[Pair]:
        """The rows (chain, from, to, count), with one batch in memory at a time."""
        cursor, begin = self.connection.cursor(), 0
        while rows := cursor.execute(
            "SELECT * FROM counts WHERE rowid >= ? AND rowid < ?", [begin, begin + BATCH]
        ).fetchall():
            yield from rows
            begin += BATCH

    def write_parquet(self, path: str) -> None:
        """The rows (chain, from, to, count) as a Parquet file."""
        self.connection.table("counts").write_parquet(path)


def _objects(values: Sequence[Any]) -> npt.NDArray[np.object_]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


@contextmanager
def guarded(what: str) -> Iterator[None]:
    """Raises DuckDB's errors as a ``LogError`` of one sentence about ``what``."""
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise LogError(
            f"{what}: there was not enough room to count, and nothing was counted; give more memory_limit, or a"
            f" temp_directory with more space: {sentence(error)}"
        ) from None
    except duckdb.Error as error:
        raise LogError(f"{what}: this cannot be counted, and nothing was: {sentence(error)}") from None


def sentence(error: BaseException) -> str:
    """An engine's message on one line, without its hints."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    kept: list[str] = []
    for line in lines[:4]:
        if line.endswith(":") or line.startswith(("Possible", "*", "LINE", "file =", "JVM")):
            break
        kept.append(line)
    return _cut(" ".join(kept or lines[:1]) or type(error).__name__)


def _cut(text: str, length: int = 300) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
