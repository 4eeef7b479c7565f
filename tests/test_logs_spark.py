"""Counting on a real Spark cluster: a master, two workers, two executor processes."""

import datetime
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import log_engines
import numpy as np
import pytest
import reference_logs
from reference_logs import Row
from spark_cluster import WORKERS, spark_cluster  # noqa: F401

import chainscout as cs
from chainscout.errors import CorrelatedCountsWarning, LogError

pytestmark = [
    pytest.mark.system,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # py4j leaves its sockets to the garbage collector
]

COLUMNS = {"chain": "id", "time": "at", "state": "what", "path": "part", "order": "nth"}


@pytest.fixture(scope="module")
def session(spark_cluster: str) -> Iterator[Any]:  # noqa: F811
    from pyspark.sql import SparkSession

    found = (
        SparkSession.builder.master(spark_cluster)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.executor.memory", "600m")
        .config("spark.executor.cores", "1")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    yield found
    found.stop()


def rows_of(seed: int, number: int = 400) -> list[Row]:
    """Unordered rows of five chains with paths, orders and missing states."""
    random = np.random.default_rng(seed)
    keys = {tuple(random.integers(0, [5, 2, 60, 2]).tolist()) for _ in range(number)}
    states = random.integers(-1, 4, len(keys)).tolist()
    return [Row(f"c'{k}", t, None if s < 0 else f"s{s}", g, o) for (k, g, t, o), s in zip(keys, states, strict=True)]


def count(frame: Any, **options: Any) -> dict[str, cs.Counts]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CorrelatedCountsWarning)
        with cs.count_transitions(frame, **(COLUMNS | {"missing": "break"} | options)) as found:
            return found.counts()


def test_two_executors_work_and_agree_with_the_reference(session: Any, tmp_path: Path) -> None:
    rows = rows_of(1)
    log_engines.write_parquet(rows[::2], tmp_path / "a.parquet")
    log_engines.write_parquet(rows[1::2], tmp_path / "b.parquet")
    frame = session.read.parquet(str(tmp_path / "*.parquet"))
    for options in ({}, {"gap": 3}, {"lag": 3}, {"lag": 2, "sliding": True, "gap": 2}):
        expected = reference_logs.counts(rows, **options)
        assert count(frame, **options) == expected, options
    # The driver is one of the hosts that hold blocks; the executors are the others.
    assert session.sparkContext._jsc.sc().getExecutorMemoryStatus().size() == WORKERS + 1


def test_a_table_that_spark_counts_itself_agrees(session: Any, tmp_path: Path) -> None:
    rows = rows_of(2)
    session.read.parquet(log_engines.write_parquet(rows, tmp_path / "log.parquet")).createOrReplaceTempView("`the log`")
    for options in ({"gap": 3}, {"lag": 2}):
        statement = cs.logs.counting_sql("the log", dialect="spark", **COLUMNS, **options)
        lag = options.get("lag", 1)
        answer = session.sql(statement).toLocalIterator()
        with cs.logs.read_counts(answer, lag=lag, missing="break") as found:
            assert found.counts() == reference_logs.counts(rows, **options)
    assert {table.name for table in session.catalog.listTables()} == {"the log"}  # no other view is left behind


def test_paths_agree(session: Any, tmp_path: Path) -> None:
    rows = [Row(k, t, s, g, o) for k, t, s, g, o in rows_of(2) if s is not None]
    path = log_engines.write_json(rows, tmp_path / "log.jsonl")
    found = cs.logs.read_paths(session.read.json(path), **COLUMNS)
    expected = cs.logs.read_paths(path, **COLUMNS)
    assert {name: paths.issued.tolist() for name, paths in found.items()} == {
        name: paths.issued.tolist() for name, paths in expected.items()
    }
    assert {name: paths.counts() for name, paths in found.items()} == reference_logs.counts(rows)


def test_moments_dates_and_numbers_that_are_none(session: Any, tmp_path: Path) -> None:
    begin = datetime.datetime(2024, 3, 30, 22, 0)
    hours = [0, 1, 2, 3, 30, 31, 32, 33, 100, 101]
    moments = [Row("a", begin + datetime.timedelta(hours=h), h % 3) for h in reversed(hours)]
    days = [Row("a", datetime.date(2024, 1, 1) + datetime.timedelta(days=h), h % 3) for h in hours]
    for log, gap in ((moments, datetime.timedelta(hours=1)), (days, datetime.timedelta(days=1))):
        path = log_engines.write_parquet(log, tmp_path / "moments.parquet")
        assert count(session.read.parquet(path), gap=gap) == reference_logs.counts(log, gap=gap)
    floats = [Row(1, float(t), s) for t, s in enumerate([0.5, 1.5, float("nan"), 0.5, 0.5])]
    path = log_engines.write_parquet(floats, tmp_path / "floats.parquet")
    cleaned = [row._replace(state=None) if row.state != row.state else row for row in floats]
    assert count(session.read.parquet(path)) == reference_logs.counts(cleaned)


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([Row("a", 1, "x"), Row("a", 1, "y")], "chain 'a' has two rows at at, nth = 1"),
        ([Row("a", 1, "x"), Row("a", 2, None)], "chain 'a' has no state in column 'what' at at = 2"),
        ([Row("a", 1, "x"), Row(None, 2, "y")], "every row needs a chain, but 1 row has none in column 'id'"),
    ],
)
def test_bad_rows_are_one_sentence(session: Any, tmp_path: Path, rows: list[Row], text: str) -> None:
    path = log_engines.write_parquet(rows, tmp_path / "bad.parquet")
    with pytest.raises(LogError) as caught:
        count(session.read.parquet(path), missing="error")
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


def test_damaged_files_and_wrong_names_are_one_sentence(session: Any, tmp_path: Path) -> None:
    """Spark reads a file whose columns it knows when the statement runs."""
    path = log_engines.write_parquet(rows_of(3), tmp_path / "log.parquet")
    frame = session.read.parquet(path)
    whole = Path(path).read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "bad.jsonl").write_text('{"id": "a", "at": 1, "what": "x", "part": 0, "nth": 0}\n{"id": \n')
    reader = session.read.schema(frame.schema)
    for damaged in (
        reader.parquet(str(tmp_path / "cut.parquet")),
        reader.json(str(tmp_path / "bad.jsonl"), mode="FAILFAST"),
    ):
        with pytest.raises(LogError, match="Spark failed, and nothing was counted: ") as caught:
            count(damaged)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 500
    with pytest.raises(cs.ChainscoutError, match="no state column 'nowhere': its columns are"):
        count(frame, state="nowhere")
    with pytest.raises(cs.ChainscoutError, match="on Spark, count_transitions takes a data frame"):
        count("spark://host:7077")
