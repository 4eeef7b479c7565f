"""Whatever is wrong with a log or with where it is: one sentence, and never a part passed off as the whole."""

import datetime
import gzip
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import log_engines
import numpy as np
import pandas as pd
import pytest
from postgres import Server, postgres  # noqa: F401
from reference_logs import Row

import chainscout as cs
from chainscout.errors import ChainscoutError, InputError, LogError

NAMES: dict[str, Any] = {"chain": "id", "time": "at", "state": "what"}
ROWS = [Row(f"c{i % 7}", i, f"s{i * i % 5}") for i in range(5_000)]


def refused(where: Any, kind: type[ChainscoutError] = LogError, **options: Any) -> str:
    with pytest.raises(kind) as caught:
        log_engines.counted(where, **(NAMES | options))
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 600
    return text


@pytest.mark.parametrize(
    ("rows", "options", "text", "told"),
    [
        ([Row("b", 1, 0), Row("a", 4, 0), Row("a", 3, 1), Row("a", 3, 0), Row("b", 1, 0)], {},
         "chain 'a' has two rows at at = 3, and which came first is not known: name the column that says it, "
         "with order= (--order)",
         "chain 'a' has rows at the same time, and which came first is not known: name the column that says it, "
         "with order= (--order); or rows lack a time, a path or an order (1 row)"),
        ([Row("a", 1, 0, 0, 5), Row("a", 1, 1, 0, 5)], {"order": "nth"},
         "chain 'a' has two rows at at, nth = 1 that are equal in the order column too",
         "chain 'a' has rows at the same time, and which came first"),
        ([Row("b", 1, None), Row("a", 2, 0), Row("a", 7, None), Row("a", 6, None)], {},
         "chain 'a' has no state in column 'what' at at = 6; missing='break' (--missing break) begins a new path",
         "chain 'a' has no state in 2 rows; missing='break' (--missing break) begins a new path after such rows"),
        ([Row("a", 1, 0), Row(None, 2, 0)], {}, "every row needs a chain, but 1 row has none in column 'id'",
         "every row needs a chain, but 1 row has none"),
        ([Row("a", 1, 0), Row("a", None, 0), Row("a", None, 1)], {},
         "every row needs a time, but 2 rows have none in column 'at'",
         "or rows lack a time, a path or an order (2 rows)"),
        ([Row("a", 1, 0), Row("a", 2, 0, None)], {"path": "part"},
         "every row needs a path, but 1 row has none in column 'part'",
         "or rows lack a time, a path or an order (1 row)"),
        ([Row("a", 1, 0), Row("a", 2, 0, 0, None)], {"order": "nth"},
         "every row needs an order, but 1 row has none in column 'nth'",
         "or rows lack a time, a path or an order (1 row)"),
    ],
)  # fmt: skip
def test_rows_that_cannot_be_counted(
    rows: list[Row],
    options: dict[str, Any],
    text: str,
    told: str,
    tmp_path: Path,
    postgres: Server,  # noqa: F811
) -> None:
    for what, where in log_engines.places(rows, tmp_path):
        assert text in refused(where, **options), what
    for database in log_engines.databases(rows, tmp_path, postgres.address):
        assert told in refused(database, **options), database.dialect


def test_ties_in_different_paths_are_none(tmp_path: Path) -> None:
    rows = [Row("a", t, t, g) for g in range(2) for t in range(3)]
    path = log_engines.write_parquet(rows, tmp_path / "log.parquet")
    found = cs.count_transitions(path, path="part", **NAMES).counts()["a"]
    assert (found.total, found.paths) == (4, 2)
    refused(path)


FRAME = pd.DataFrame({"id": ["a", "a"], "at": [1, 2], "what": ["x", "y"]})


@pytest.mark.parametrize(
    ("where", "options", "text"),
    [
        (FRAME, {"state": "nowhere"}, "the log has no state column 'nowhere': its columns are ['id', 'at', 'what']"),
        (FRAME, {"state": "waht"}, "the log has no state column 'waht' (did you mean what?): its columns are "),
        (FRAME, {"chain": 3}, "chain must be the name of a column, not 3"),
        (FRAME, {"time": None}, "time must be the name of a column, not None"),
        (FRAME, {"lag": 0}, "lag (how many steps lie between the two states of a transition) must be a whole number"),
        (FRAME, {"missing": "skip"}, "missing must be one of error, break, not 'skip'"),
        (FRAME, {"gap": -1}, "gap (a longer step in time begins a new path) must be a finite number ≥ 0, not -1"),
        (FRAME, {"gap": datetime.timedelta(-1)}, "must not be negative"),
        (FRAME, {"gap": datetime.timedelta(1)}, "must be a number, since the time column 'at' holds whole numbers"),
        (FRAME, {"time": "what"}, "the time column 'what' must hold numbers or times, which have one order everywhere"),
        (FRAME.assign(what=[b"x", b"y"]), {}, "holds nested or binary values; text, numbers or times are needed"),
        (FRAME.assign(what=[["x"], ["y"]]), {}, "holds nested or binary values; text, numbers or times are needed"),
        (FRAME.assign(what=np.array([1, "x"], dtype=object)), {}, "mixes values that have no order"),
        (FRAME.assign(id=[*"ab"], what=[1, "x"]), {}, "mixes values that have no order"),
        ("postgresql://me:secret@host/name", {}, "run cs.logs.counting_sql(…) there, and give its rows to cs.logs."),
        (17, {}, "a log must be a file, a list of files, a data frame (of pandas, polars or Spark) or an Arrow stream"),
        ([], {}, "a log must be a file, a list of files"),
        (FRAME.to_dict("list"), {}, "columns of arrays fit into pandas.DataFrame(columns), and walks into cs.Paths."),
        ([[0, 1, 0]], {}, "and walks into cs.Paths.from_walks(walks)"),
        ("log.xlsx", {}, "a log's file must end in one of .parquet, .pq, .csv"),
        ("logs/", {}, "a directory is given as a pattern such as 'logs/*.parquet'"),
        (["a.csv", "b.parquet"], {}, "all files of a log must have one format"),
        ("a.csv", {"memory_limit": "much"}, "memory_limit must be a size such as '600MB', not 'much'"),
        ("a.csv", {"threads": 0}, "threads (how many threads DuckDB may use) must be a whole number ≥ 1"),
        ("a.csv", {"temp_directory": "/no/such/place"}, "temp_directory must be a directory that can be written to"),
    ],
)  # fmt: skip
def test_arguments(where: Any, options: dict[str, Any], text: str) -> None:
    found = refused(where, InputError, **options)
    assert text in found
    assert "secret" not in found


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"table": ""}, "table must be the name of a table or view, not ''"),
        ({"dialect": "dbase"}, "dialect must be one that SQLAlchemy knows, such as postgresql"),
        ({"dialect": None}, "dialect must be one that SQLAlchemy knows, such as postgresql"),
        ({"types": {"waht": "float"}}, "types names the column 'waht', which is not read (did you mean what?)"),
        ({"types": {"what": "array"}}, "the type of column 'what' must be one of integer, float, decimal, boolean"),
        ({"types": {"at": "text"}}, "the time column 'at' must hold numbers or times"),
        ({"types": {"at": "integer"}, "gap": "1h"}, "gap (a longer step in time begins a new path) must be a number"),
        ({"lag": 0}, "lag (how many steps lie between the two states of a transition) must be a whole number"),
    ],
)
def test_arguments_of_a_statement(options: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError) as caught:
        cs.logs.counting_sql(**({"table": "log", "dialect": "postgresql"} | NAMES | options))
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("rows", "options", "text"),
    [
        ([("a", None, "x", 1)], {}, "rows must be (chain, from, to, count, faults), as the statement of counting_sql"),
        (
            [{"chain": 1, "previous": 2, "state": 3, "number": 4, "faults": 5}],
            {},
            "rows must be (chain, from, to, count",
        ),
        ([1], {}, "rows must be (chain, from, to, count, faults)"),
        ([("a", None, "x", 1, 0), ("a", "x", 1, 1, 0)], {}, "the states mix values that have no order"),
        ([("a", None, "x", 1, 0), (1, "x", "x", 1, 0)], {}, "the chains mix values that have no order"),
        ([], {"missing": "skip"}, "missing must be one of error, break, not 'skip'"),
        ([], {"lag": 0}, "lag (how many steps lie between the two states of a transition) must be a whole number"),
    ],
)
def test_rows_that_no_statement_gave(rows: list[Any], options: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError) as caught:
        cs.logs.read_counts(rows, **options)
    assert text in str(caught.value)


def test_rows_that_break_off_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def rows() -> Iterator[tuple[Any, ...]]:
        yield from ((i, None, 0, 1, 0) for i in range(100_000))
        raise ConnectionError("the server is gone")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(ConnectionError, match="the server is gone"):
        cs.logs.read_counts(rows())
    assert not list(tmp_path.iterdir())


def test_columns_need_names() -> None:
    for where in ("log.csv", FRAME, [[0, 1]]):
        with pytest.raises(InputError, match=r"needs their names: chain=, time= and state=; walks in memory are count"):
            cs.count_transitions(where)


def test_files_that_are_not_there_or_damaged(tmp_path: Path) -> None:
    assert "there is no file" in refused(str(tmp_path / "none-*.parquet"))
    whole = Path(log_engines.write_parquet(ROWS, tmp_path / "log.parquet")).read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    assert "cut.parquet" in refused(str(tmp_path / "cut.parquet"))
    refused([str(tmp_path / "log.parquet"), str(tmp_path / "cut.parquet")])
    # A flipped bit is noticed where the file has a checksum; where it has none, whatever is read is what it says.
    (tmp_path / "text.parquet").write_text("not Parquet")
    refused(str(tmp_path / "text.parquet"))
    packed = gzip.compress(Path(log_engines.write_csv(ROWS, tmp_path / "log.csv")).read_bytes())
    (tmp_path / "cut.csv.gz").write_bytes(packed[: len(packed) // 2])
    refused(str(tmp_path / "cut.csv.gz"))
    spoiled = bytearray(packed)
    spoiled[len(packed) // 2] ^= 0x10
    (tmp_path / "spoiled.csv.gz").write_bytes(bytes(spoiled))
    refused(str(tmp_path / "spoiled.csv.gz"))


@pytest.mark.parametrize(
    ("line", "text"),
    [("c1,77,s1,0\n", "Expected Number of Columns: 5 Found: 4"), ("c1,soon,s1,0,0\n", "Could not convert"),
     ("c1,77,\x80\x81,0,0\n", ""), ('c1,77,"s1,0,0\n', "")],
)  # fmt: skip
def test_a_bad_line_deep_in_a_csv_file(line: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    rows = [Row(f"c{i % 7}", i, f"s{i * i % 5}") for i in range(60_000)]
    data = Path(log_engines.write_csv(rows, path)).read_bytes()
    path.write_bytes(data + line.encode("latin-1"))
    assert text in refused(str(path))


def test_a_bad_line_of_json(tmp_path: Path) -> None:
    path = Path(log_engines.write_json(ROWS, tmp_path / "log.jsonl"))
    path.write_text(path.read_text() + '{"id": "c1", "at": 5')
    assert "Malformed JSON" in refused(str(path))


CHILD = """
import resource, signal, sys
import chainscout as cs
path, directory, limit, file_limit = sys.argv[1:]
if int(file_limit):  # a write beyond it fails, as on a full disk
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(file_limit), int(file_limit)))
try:
    found = cs.count_transitions(path, chain="id", time="at", state="what", memory_limit=limit, threads=2,
                                 temp_directory=directory)
except cs.ChainscoutError as error:
    print("refused:", error)
else:
    total = sum(counts.total for _, counts in found)
    # Not ru_maxrss: a process inherits that from the one that started it.
    peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    print("counted:", len(found), total, int(peak.split()[1]) // 1024)
"""


def child(*arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four million shuffled rows, with wide labels: far more than the memory limits below."""
    import duckdb

    path = tmp_path_factory.mktemp("large") / "log.parquet"
    with duckdb.connect() as connection:
        connection.sql(
            "SELECT 'chain number ' || (i % 1000) AS id, i AS at, 'a state with a long name ' || hash(i) % 5 AS what"
            " FROM range(4_000_000) r(i) ORDER BY hash(i)"
        ).write_parquet(str(path))
    return path


def test_memory_follows_the_limit_and_not_the_log(large: Path, tmp_path: Path) -> None:
    [word, chains, total, peak] = child(large, tmp_path, "200MB", 0).split()
    assert (word, chains, total) == ("counted:", "1000", "3999000")
    assert int(peak) < 200 + 250  # the interpreter, its libraries and DuckDB's own code take the rest
    assert not list(tmp_path.iterdir())  # nothing is left behind


def test_a_full_disk_while_spilling(large: Path, tmp_path: Path) -> None:
    text = child(large, tmp_path, "100MB", 5_000_000)
    assert text.startswith("refused: ")
    assert text.count("\n") == 1
    assert re.search("nothing was( counted)?[:;]", text), text
    assert not list(tmp_path.iterdir())


def test_the_limits_of_this_process_are_untouched() -> None:
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
