"""Apache Spark: the same statement on a cluster, for logs that are too large for one machine."""

import contextlib
import secrets
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from ..errors import ChainscoutError, InputError, LogError, MissingExtraError
from ..validation import shown
from .files import FORMATS, file_format
from .request import CountRequest, Kind
from .spool import Spool, sentence
from .statement import counting, named, table_named

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_KINDS = {
    "boolean": Kind.BOOLEAN,
    "float": Kind.FLOAT,
    "double": Kind.FLOAT,
    "string": Kind.TEXT,
    "timestamp": Kind.MOMENT,
    "timestamp_ntz": Kind.MOMENT,
    "date": Kind.DATE,
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), Kind.INTEGER),
}


class Spark:
    """One table, view or set of files that a Spark cluster can read."""

    text_times = False
    untyped = False

    def __init__(self, spool: Spool, where: Any, table: str) -> None:
        self.spool = spool
        self._owned = isinstance(where, str)
        self.session: SparkSession = _connect(where) if self._owned else where
        self.name = f"Spark at {self.session.conf.get('spark.master', 'a remote server')}, {shown(table)}"
        self._view = f"log_{secrets.token_hex(8)}"
        with self._guarded():
            frame = self._frame(table)
            self.kinds = {name: _kind(text) for name, text in frame.dtypes}
            frame.createOrReplaceTempView(self._view)
        self.table = table_named(self._view)

    def _frame(self, table: str) -> "DataFrame":
        if "/" not in table and not any(table.lower().endswith(ending) for ending in FORMATS):
            return self.session.table(table)
        match file_format(table):
            case "parquet":
                return self.session.read.parquet(table)
            case "json":
                # A row that is not JSON is an error.
                return self.session.read.json(table, mode="FAILFAST")
            case _:
                raise InputError(
                    f"a log on Spark must be Parquet, JSON lines, a table or a view, not {shown(table)}: CSV has no"
                    " types, and a view says which they are"
                )

    def count(self, request: CountRequest) -> None:
        """Runs the statement on the cluster and stores its rows as they arrive."""
        statement = counting(request, self.table, self.kinds)
        self.spool.fill(self.kinds[request.chain], self.kinds[request.state], self.streamed(statement))

    def rows(self, statement: sa.Select[Any]) -> list[Sequence[Any]]:
        """The answer to a small request about the log."""
        return list(self.streamed(statement))

    def streamed(self, statement: sa.Select[Any]) -> Iterator[Sequence[Any]]:
        """The rows of an answer, with one partition in memory at a time."""
        text, values = named(statement)
        with self._guarded():
            yield from self.session.sql(text, args=values).toLocalIterator()

    def close(self) -> None:
        """Removes the view, and ends the session if this object started it."""
        with contextlib.suppress(Exception):  # the cluster may be gone
            self.session.catalog.dropTempView(self._view)
        if self._owned:
            self.session.stop()

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            yield
        except ChainscoutError:
            raise
        except (PySparkException, Py4JError, OSError) as error:
            raise LogError(f"{self.name}: Spark failed, and nothing was counted: {sentence(error)}") from None


def _connect(address: str) -> "SparkSession":
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtraError("counting on Spark", "spark") from None
    if SparkSession.getActiveSession() is not None:
        raise InputError(f"this process has a Spark session already: give it instead of the address {shown(address)}")
    try:
        return SparkSession.builder.master(address).appName("chainscout").getOrCreate()
    except Exception as error:  # the Java side raises many kinds
        raise LogError(f"{address}: the Spark cluster cannot be reached: {sentence(error)}") from None


def _kind(text: str) -> Kind:
    if text in _KINDS:
        return _KINDS[text]
    if text.startswith("decimal"):
        return Kind.DECIMAL
    if text.startswith(("varchar", "char")):
        return Kind.TEXT
    return Kind.UNUSABLE
