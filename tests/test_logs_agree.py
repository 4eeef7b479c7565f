"""The same log gives the same counts everywhere, and they are the reference's."""

import datetime
import tempfile
import warnings
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import log_engines
import numpy as np
import pandas as pd
import psycopg
import pytest
import reference_logs
from hypothesis import HealthCheck, Phase, example, given, settings
from postgres import Server, postgres  # noqa: F401
from reference_logs import Row

import chainscout as cs
from chainscout.errors import CorrelatedCountsWarning


def count(where: Any, **options: Any) -> dict[str, cs.Counts]:
    names = {"chain": "id", "time": "at", "state": "what", "path": "part", "order": "nth"} | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CorrelatedCountsWarning)
        with log_engines.counted(where, missing="break", **names) as found:
            return found.counts()


@st.composite
def logs(draw: st.DrawFn) -> list[Row]:
    """Rows in any order; chains and states are numbers or text, throughout."""
    chain = draw(st.sampled_from([st.integers(-2, 3), st.sampled_from(["a", "b'", 'c"', "d;--"])]))
    state = draw(st.sampled_from([st.integers(-1, 3), st.sampled_from(["x", "7th", "it's", "ü"])]))
    keys = st.tuples(chain, st.integers(0, 1), st.integers(0, 12), st.integers(0, 1))
    found = draw(st.lists(keys, unique=True, min_size=1, max_size=40))
    states = draw(st.lists(st.none() | state, min_size=len(found), max_size=len(found)))
    return [Row(k, t, s, g, o) for (k, g, t, o), s in zip(found, states, strict=True)]


options = st.fixed_dictionaries(
    {"lag": st.integers(1, 4), "sliding": st.booleans(), "gap": st.none() | st.integers(0, 4)}
)


@given(rows=logs(), options=options)
@settings(  # not shrunk: an example takes half a second, and shrinking takes hundreds of them
    max_examples=25,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@example(rows=[Row("a", 0, None)], options={})
@example(rows=[Row(7, 0, 1), Row(7, 1, 1), Row(7, 2, 0)], options={"lag": 5, "sliding": True})
def test_every_engine_agrees_with_the_reference(rows: list[Row], options: dict[str, Any], postgres: Server) -> None:  # noqa: F811
    expected = reference_logs.counts(rows, **options)
    with tempfile.TemporaryDirectory() as directory:
        for what, where in log_engines.places(rows, Path(directory)):
            assert count(where, **options) == expected, what
        for database in log_engines.databases(rows, Path(directory), postgres.address):
            assert count(database, **options) == expected, database.dialect


@pytest.mark.parametrize("lag", [1, 2])
def test_moments_and_dates_and_gaps_between_them(tmp_path: Path, postgres: Server, lag: int) -> None:  # noqa: F811
    begin = datetime.datetime(2024, 3, 30, 22, 0)
    hours = [0, 1, 2, 3, 30, 31, 32, 33, 100, 101]
    rows = [Row("a", begin + datetime.timedelta(hours=h), h % 3) for h in reversed(hours)]
    days = [
        Row(row.chain, datetime.date(2024, 1, 1) + datetime.timedelta(days=h), row.state)
        for h, row in zip(hours, rows, strict=True)
    ]
    for log, gap in ((rows, datetime.timedelta(hours=1)), (days, datetime.timedelta(days=1))):
        expected = reference_logs.counts(log, gap=gap, lag=lag)
        assert expected["a"].paths == 3
        for what, where in log_engines.places(log, tmp_path):
            assert count(where, gap=gap, lag=lag) == expected, what
        sqlite, server = log_engines.databases(log, tmp_path, postgres.address)
        assert count(server, gap=gap, lag=lag) == expected
        with pytest.raises(cs.ChainscoutError, match="SQLite keeps times as text"):
            count(sqlite, gap=gap, lag=lag)
        assert count(sqlite, lag=lag) == reference_logs.counts(log, lag=lag)


def test_numbers_that_are_not_numbers_are_missing(tmp_path: Path, postgres: Server) -> None:  # noqa: F811
    rows = [Row(1.5, float(t), s) for t, s in enumerate([0.5, 1.5, float("nan"), 0.5, 0.5])]
    expected = reference_logs.counts(
        [Row(row.chain, row.time, None if row.state != row.state else row.state) for row in rows]
    )
    assert count(log_engines.write_parquet(rows, tmp_path / "f.parquet")) == expected
    assert count(log_engines.write_table(rows, "postgresql", postgres.address)) == expected
    assert count(log_engines.write_table(rows, "sqlite", str(tmp_path / "f.db"))) == expected
    assert count(pd.DataFrame(log_engines.columns(rows))) == expected


def test_text_of_a_csv_file_stays_what_it_is(tmp_path: Path) -> None:
    zeros = [Row("007", 0, "01"), Row("007", 1, "1"), Row("7", 0, "01"), Row("7", 1, "01")]
    found = count(log_engines.write_csv(zeros, tmp_path / "zeros.csv"))
    assert found.keys() == {"007", "7"}
    assert found["007"].states == ("01", "1")
    # The first quoted field stands beyond the part of the file that is looked at to guess its form.
    rows = [Row(k, t, "calm") for k in range(3) for t in range(10_000)] + [Row(3, 0, 'a "quoted", one'), Row(3, 1, "b")]
    found = count(log_engines.write_csv(rows, tmp_path / "quotes.csv"))
    assert list(found) == ["0", "1", "2", "3"]
    assert found["3"].states == ('a "quoted", one', "b")


def test_json_text_that_looks_like_a_date_or_a_number_stays_text(tmp_path: Path) -> None:
    rows = [Row("12", 0, "2024-01-01"), Row("12", 1, "2024-1-2"), Row("12", 2, "00000000-0000-0000-0000-000000000000")]
    assert count(log_engines.write_json(rows, tmp_path / "l.jsonl")) == reference_logs.counts(rows)


def test_text_times_of_files_are_moments(tmp_path: Path) -> None:
    times = ["2024-01-02T00:00:00", "2024-01-10T00:00:00", "2023-12-31T00:00:00"]
    rows = [Row("a", text, place) for place, text in enumerate(times)]
    found = count(log_engines.write_parquet(rows, tmp_path / "t.parquet"))
    assert found["a"].rows() == {2: {0: 1}, 0: {1: 1}}


def test_names_that_need_quoting(tmp_path: Path, postgres: Server) -> None:  # noqa: F811
    """Column and table names are quoted, never pasted: this one would end the statement, or the log."""
    rows = [Row("x", t, t % 2) for t in range(5)]
    evil = '"; DROP TABLE "log"; --%s :x ?'
    expected = reference_logs.counts(rows)
    frame = pd.DataFrame({"id": ["x"] * 5, "at": range(5), evil: [row.state for row in rows]})
    import duckdb

    with duckdb.connect() as connection:
        connection.from_df(frame).write_parquet(str(tmp_path / "evil.parquet"))
    names = {"state": evil, "path": None, "order": None}
    assert count(str(tmp_path / "evil.parquet"), **names) == expected
    assert count(frame, **names) == expected
    for dialect, address, schema in (
        ("sqlite", str(tmp_path / "evil.db"), "main"),
        ("postgresql", postgres.address, "public"),
    ):
        database = log_engines.write_table([row[:3] for row in rows], dialect, address, ["id", "at", evil], evil)
        assert database.table == evil
        for lag in (1, 2):  # also with the sign % in the statement
            expected = reference_logs.counts(rows, lag=lag)
            assert count(database, lag=lag, **names) == expected
            assert count(database._replace(table=f"{schema}.{evil}"), lag=lag, **names) == expected


def test_columns_of_many_types(tmp_path: Path) -> None:
    """Enumerations, decimals and large numbers as labels; times with a zone; what pandas makes of them."""
    import duckdb

    path = str(tmp_path / "types.parquet")
    with duckdb.connect() as connection:
        connection.sql(
            "SELECT 18446744073709551615::UBIGINT AS id, ['a', 'b'][i % 2 + 1]::ENUM('b', 'a') AS what,"
            " (i % 2)::DECIMAL(5, 2) AS price, i % 2 = 0 AS even, [i] AS nested,"
            " (TIMESTAMP '2024-03-31 00:00:00' + INTERVAL (i * i) MINUTE)::TIMESTAMPTZ AS at FROM range(10) r(i)"
        ).write_parquet(path)
        moments = [row[0] for row in connection.read_parquet(path).project('epoch_us("at")').fetchall()]
    frame = pd.DataFrame(
        {
            "id": np.full(10, 2**64 - 1, dtype=np.uint64),
            "what": pd.Categorical(["a", "b"] * 5),
            "even": [True, False] * 5,
            "at": pd.to_datetime(moments, unit="us", utc=True),
        }
    )
    names: dict[str, Any] = {"path": None, "order": None, "gap": datetime.timedelta(minutes=5)}
    for column, labels in (("what", ("a", "b")), ("price", ("0.00", "1.00")), ("even", (False, True))):
        found = count(path, state=column, **names)
        assert found["18446744073709551615"].states == labels
        assert (found["18446744073709551615"].paths, found["18446744073709551615"].total) == (7, 3)
        if column in frame:
            assert count(frame, state=column, **names) == found
    assert count(frame.assign(at=frame["at"].dt.tz_localize(None)), **names) == count(path, **names)
    whole = frame.assign(what=pd.Series([0, 1] * 5, dtype="Int64").where(frame.index != 3), at=range(10))
    assert count(whole, path=None, order=None)["18446744073709551615"].paths == 2
    with pytest.raises(cs.ChainscoutError, match="holds nested or binary values"):
        count(path, state="nested", **names)


def test_labels_become_text_in_a_database_or_here(postgres: Server) -> None:  # noqa: F811
    """A UUID and a decimal, with the types that the statement is told, and without."""
    with psycopg.connect(postgres.address) as connection:
        connection.execute("DROP TABLE IF EXISTS typed")
        connection.execute(
            "CREATE TABLE typed AS SELECT '00000000-0000-0000-0000-000000000001'::uuid AS id, (i % 2)::numeric(5, 2) AS"
            " price, timestamptz '2024-03-31 00:00Z' + i * i * interval '1 minute' AS at FROM generate_series(0, 9) i"
        )
    names: dict[str, Any] = {"state": "price", "path": None, "order": None, "gap": "5min"}
    found = count(log_engines.Database("postgresql", postgres.address, "typed", {}), **names)
    told = log_engines.Database("postgresql", postgres.address, "typed", {"id": "other", "price": "decimal"})
    assert count(told, **names) == found
    counts = found["00000000-0000-0000-0000-000000000001"]
    assert (counts.states, counts.paths, counts.total) == (("0.00", "1.00"), 7, 3)


def test_a_log_without_rows(tmp_path: Path) -> None:
    (tmp_path / "none.csv").write_text("id,at,what,part,nth\n")
    assert count(str(tmp_path / "none.csv")) == {}
    assert count(pd.DataFrame({name: np.zeros(0, dtype=int) for name in log_engines.NAMES})) == {}
    assert cs.logs.read_counts([]).counts() == {}
    with pytest.raises(cs.ChainscoutError, match="has no chains to certify"):
        cs.count_transitions(str(tmp_path / "none.csv"), chain="id", time="at", state="what").certificate()
