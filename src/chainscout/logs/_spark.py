"""Apache Spark: the same statement on a cluster, for logs that are too large for one machine."""

import contextlib
import secrets
from collections.abc import Iterator, Sequence
from typing import Any

from ..errors import ChainscoutError, LogError
from ._spool import Spool, sentence
from .request import CountRequest, kind_named


def is_spark(where: Any) -> bool:
    """Whether this is a Spark data frame, without importing Spark."""
    return type(where).__name__ == "DataFrame" and type(where).__module__.startswith("pyspark.sql.")


class Spark:
    """A data frame of a Spark session, as a temporary view."""

    dialect, untyped = "spark", False

    def __init__(self, spool: Spool, frame: Any, request: CountRequest) -> None:
        self.spool, self.session = spool, frame.sparkSession
        self.name = f"Spark at {self.session.conf.get('spark.master', 'a remote server')}"
        self.table = f"log_{secrets.token_hex(8)}"
        with self._guarded():
            # decimal(10,2) is a decimal.
            self.kinds = {name: kind_named(kind.partition("(")[0]) for name, kind in frame.dtypes}
            request.check(self.kinds)
            frame.createOrReplaceTempView(self.table)

    def count(self, text: str) -> None:
        """Runs the statement on the cluster and stores its rows as they arrive."""
        self.spool.fill(self.streamed(text))

    def streamed(self, text: str) -> Iterator[Sequence[Any]]:
        """The rows of an answer, with one partition in memory at a time."""
        with self._guarded():
            yield from self.session.sql(text).toLocalIterator()

    def close(self) -> None:
        """Removes the view."""
        with contextlib.suppress(Exception):  # the cluster may be gone
            self.session.catalog.dropTempView(self.table)

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
