"""Counts on disk: a table in a private DuckDB database. It is complete and checked before a caller sees it.

Memory stays under DuckDB's limit, however large the log or its table of counts is. A log that breaks off leaves nothing
behind.
"""

import itertools
import os
import secrets
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from ..errors import InputError, LogError
from ..validation import shown, whole_number

#: Rows in one batch.
BATCH = 50_000

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
        limits = {"memory_limit": memory_limit, "threads": threads}
        settings: dict[str, Any] = {name: value for name, value in limits.items() if value is not None}
        # DuckDB must not download an extension while it reads a log.
        settings |= {"temp_directory": str(self.directory), "autoinstall_known_extensions": False}
        # A frame's column of Python objects has the type of all its values, not of a sample.
        settings |= {"pandas_analyze_sample": 2**63 - 1}
        try:
            self.connection = duckdb.connect(str(self.directory / "counts.duckdb"), config=settings)
        except duckdb.Error as error:
            self._remove()
            if memory_limit is None:
                raise LogError(f"{self.directory.parent} has no room for the counts: {sentence(error)}") from None
            raise InputError(
                f"memory_limit must be a size such as '600MB', not {shown(memory_limit)}: {sentence(error)}"
            ) from None
        # The bar would appear in the output of a command.
        self.connection.execute("SET enable_progress_bar = false")

    def close(self) -> None:
        """Removes everything."""
        self.connection.close()
        self._remove()

    def fill(self, rows: Iterable[Sequence[Any]]) -> None:
        """Stores the rows (chain, from, to, count, faults) of a statement that ran elsewhere."""
        # Labels are stored as text, and get their type when all of them have been seen.
        self.connection.execute("CREATE TABLE found (c0 VARCHAR, c1 VARCHAR, c2 VARCHAR, c3 BIGINT, c4 BIGINT)")
        kinds: dict[str, set[type]] = {"chain": set(), "state": set()}
        rows = iter(rows)
        while batch := list(itertools.islice(rows, BATCH)):
            try:
                chain, source, target, *numbers = zip(*batch, strict=True)
                count, faults = ([int(number) for number in column] for column in numbers)
                # A frame's NaN is a missing label, too.
                labels = [[None if x is None or x != x else x for x in column] for column in (chain, source, target)]
            except (TypeError, ValueError):
                raise InputError(
                    "rows must be (chain, from, to, count, faults), as the statement of counting_sql gives them, not"
                    f" such as {shown(batch[0])}"
                ) from None
            for name, column in zip(("chain", "state", "state"), labels, strict=True):
                kinds[name].update(type(label) for label in column if label is not None)
            text = [[None if label is None else str(label) for label in column] for column in labels]
            columns: list[list[Any]] = [*text, count, faults]
            self.connection.register("batch", {f"c{i}": _objects(column) for i, column in enumerate(columns)})
            self.connection.execute("INSERT INTO found SELECT * FROM batch")
            self.connection.unregister("batch")
        self._retype(_label_type("chain", kinds["chain"]), "c0")
        self._retype(_label_type("state", kinds["state"]), "c1", "c2")

    def _retype(self, kind: str, *columns: str) -> None:
        for column in columns:
            self.connection.execute(f"ALTER TABLE found ALTER {column} TYPE {kind}")

    def count_here(self, text: str) -> None:
        """Runs the statement in this database."""
        self.connection.execute(f"CREATE TABLE found(c0, c1, c2, c3, c4) AS {text}")

    def streamed(self, text: str) -> Iterator[Sequence[Any]]:
        """The rows of an answer, with one batch in memory at a time."""
        answer = self.connection.execute(text)
        while rows := answer.fetchmany(BATCH):
            yield from rows

    def faults(self) -> list[tuple[Any, int, int]]:
        """The first chain with faults, if any: how many of its rows are tied or lack a value, and lack a state."""
        return self.connection.execute(
            "SELECT c0, coalesce(sum(CASE WHEN c0 IS NULL THEN c3 ELSE c4 END), 0)::BIGINT AS wrong,"
            " coalesce(sum(c3) FILTER (c2 IS NULL), 0)::BIGINT AS stateless FROM found GROUP BY c0"
            " HAVING wrong > 0 OR stateless > 0 ORDER BY wrong = 0, c0 NULLS FIRST LIMIT 1"
        ).fetchall()

    def finish(self, untyped: bool = False) -> None:
        """Sorts the counts by chain. ``untyped``: the labels come from text, where '12' may mean a number."""
        if untyped:
            chains, states = self._row(f"SELECT {_WHOLE.format(column='c0')}, {_WHOLE.format(column='c2')} FROM found")
            self._retype("BIGINT" if chains else "VARCHAR", "c0")
            self._retype("BIGINT" if states else "VARCHAR", "c1", "c2")
        self.connection.execute(
            'CREATE TABLE counts AS SELECT c0 AS "chain", c1 AS "from", c2 AS "to", c3::BIGINT AS "count" FROM found'
            " WHERE c2 IS NOT NULL AND c3 > 0 ORDER BY 1, 2 NULLS FIRST, 3"
        )
        self.connection.execute("DROP TABLE found")

    # -- the counts, sorted

    def __len__(self) -> int:
        return int(self._row('SELECT count(DISTINCT "chain") FROM counts')[0])

    def _row(self, text: str) -> tuple[Any, ...]:
        """The only row of an answer. The answer is read to its end, because an open answer blocks the connection."""
        [row] = self.connection.execute(text).fetchall()
        return tuple(row)

    def pairs(self) -> Iterator[tuple[Any, Any, Any, int]]:
        """The rows (chain, from, to, count), with one batch in memory at a time."""
        cursor, begin = self.connection.cursor(), 0
        while rows := cursor.execute(
            "SELECT * FROM counts WHERE rowid >= ? AND rowid < ?", [begin, begin + BATCH]
        ).fetchall():
            yield from rows
            begin += BATCH

    def write_parquet(self, path: str | os.PathLike[str]) -> None:
        """The rows (chain, from, to, count) as a Parquet file, which is complete or not there."""
        target = Path(os.path.realpath(path))
        temporary = target.with_name(f".{target.name[:50]}.{secrets.token_hex(4)}")
        try:
            self.connection.table("counts").write_parquet(str(temporary))
            os.replace(temporary, target)
        except (OSError, duckdb.Error) as error:
            raise LogError(f"{path}: the counts cannot be written here: {sentence(error)}") from None
        finally:
            with suppress(OSError):  # after a failure
                temporary.unlink()


def _label_type(what: str, kinds: set[type]) -> str:
    """The SQL type of labels that have these types. Labels of other types are kept as text."""
    known = (("BOOLEAN", (bool, np.bool_)), ("BIGINT", (int, np.integer)), ("DOUBLE", (float, np.floating)))
    found = {next((name for name, types in known if issubclass(kind, types)), kind.__name__) for kind in kinds}
    if found and found <= {"BIGINT", "DOUBLE"}:
        return max(found)
    if len(found) > 1:
        raise InputError(f"the {what}s mix values that have no order, such as text and numbers")
    return "BOOLEAN" if found == {"BOOLEAN"} else "VARCHAR"


def _objects(values: Sequence[Any]) -> npt.NDArray[np.object_]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


@contextmanager
def guarded(what: str) -> Iterator[None]:
    """Raises DuckDB's errors as a ``LogError`` of one sentence about ``what``."""
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
