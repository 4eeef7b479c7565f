"""Whatever is wrong with a log or with where it is: one sentence, and never a part passed off as the whole."""

import contextlib
import datetime
import gzip
import re
import resource
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import log_engines
import numpy as np
import pytest
import sqlalchemy as sa
from postgres import Server, postgres  # noqa: F401
from reference_logs import Row

import chainscout as cs
from chainscout.errors import ChainscoutError, InputError, LogError

NAMES: dict[str, Any] = {"chain": "id", "time": "at", "state": "what"}
ROWS = [Row(f"c{i % 7}", i, f"s{i * i % 5}") for i in range(5_000)]


def refused(where: Any, kind: type[ChainscoutError] = LogError, **options: Any) -> str:
    with pytest.raises(kind) as caught:
        cs.count_transitions(where, **(NAMES | options))
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 600
    return text


@pytest.mark.parametrize(
    ("rows", "options", "text"),
    [
        ([Row("b", 1, 0), Row("a", 4, 0), Row("a", 3, 1), Row("a", 3, 0), Row("b", 1, 0)], {},
         "chain 'a' has two rows at at = 3, and which came first is not known: name the column that says it, "
         "with order= (--order)"),
        ([Row("a", 1, 0, 0, 5), Row("a", 1, 1, 0, 5)], {"order": "nth"},
         "chain 'a' has two rows at at, nth = 1 that are equal in the order column too"),
        ([Row("b", 1, None), Row("a", 2, 0), Row("a", 7, None), Row("a", 6, None)], {},
         "chain 'a' has no state in column 'what' at at = 6; missing='break' (--missing break) begins a new path"),
        ([Row("a", 1, 0), Row(None, 2, 0)], {}, "every row needs a chain, but 1 row has none in column 'id'"),
        ([Row("a", 1, 0), Row("a", None, 0), Row("a", None, 1)], {},
         "every row needs a time, but 2 rows have none in column 'at'"),
        ([Row("a", 1, 0), Row("a", 2, 0, None)], {"path": "part"},
         "every row needs a path, but 1 row has none in column 'part'"),
        ([Row("a", 1, 0), Row("a", 2, 0, 0, None)], {"order": "nth"},
         "every row needs an order, but 1 row has none in column 'nth'"),
    ],
)  # fmt: skip
def test_rows_that_cannot_be_counted(
    rows: list[Row],
    options: dict[str, Any],
    text: str,
    tmp_path: Path,
    postgres: Server,  # noqa: F811
) -> None:
    for what, where, table in log_engines.places(rows, tmp_path, postgres.address):
        assert text in refused(where, table=table, **options), what


def test_ties_in_different_paths_are_none(tmp_path: Path) -> None:
    rows = [Row("a", t, t, g) for g in range(2) for t in range(3)]
    path = log_engines.write_parquet(rows, tmp_path / "log.parquet")
    found = cs.count_transitions(path, path="part", **NAMES).counts()["a"]
    assert (found.total, found.paths) == (4, 2)
    refused(path)


FRAME = {"id": ["a", "a"], "at": [1, 2], "what": ["x", "y"]}


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
        (FRAME, {"table": "events"}, "only a log in a database or on Spark has a table"),
        (FRAME | {"at": [1]}, {}, "the columns of a log must be equally long, not {'id': 2, 'at': 1, 'what': 2}"),
        (FRAME | {"what": [b"x", b"y"]}, {}, "must hold text, numbers or times, not values of type"),
        (FRAME | {"what": [["x"], ["y"]]}, {}, "must hold text, numbers or times, not ['x']"),
        (FRAME | {"what": np.array([1, "x"], dtype=object)}, {}, "mixes values that have no order"),
        (FRAME | {"what": [1, "x"]}, {}, "mixes values that have no order"),
        ("postgresql://host/name", {}, "needs the name of its table, not None"),
        ("nonsense://host/name", {"table": "t"}, "a database's address looks like"),
        (17, {}, "a log must be a file, a list of files, a database's address, a Spark session, an Arrow stream"),
        ([], {}, "a log must be a file, a list of files"),
        ("log.xlsx", {}, "a log's file must end in one of .parquet, .pq, .csv"),
        ("logs/", {}, "a directory is given as a pattern such as 'logs/*.parquet'"),
        (["a.csv", "b.parquet"], {}, "all files of a log must have one format"),
        ("a.csv", {"memory_limit": "much"}, "memory_limit must be a size such as '600MB', not 'much'"),
        ("a.csv", {"threads": 0}, "threads (how many threads DuckDB may use) must be a whole number ≥ 1"),
        ("a.csv", {"temp_directory": "/no/such/place"}, "temp_directory must be a directory that can be written to"),
    ],
)  # fmt: skip
def test_arguments(where: Any, options: dict[str, Any], text: str) -> None:
    if isinstance(where, dict):
        options = {"table": None} | options
    if options.get("table") and isinstance(where, dict):
        assert text in refused("a.csv", InputError, **options)
        return
    assert text in refused(where, InputError, **options)


def test_columns_need_names_and_paths_have_none(tmp_path: Path) -> None:
    for where in ("log.csv", tmp_path):
        with pytest.raises(InputError, match="needs their names: chain=, time= and state="):
            cs.count_transitions(where)
    with pytest.raises(InputError, match="arrays of states have neither gap, path, order nor table"):
        cs.count_transitions([[0, 1]], gap=3)
    for where in (5, ["ab", [0]], [[[0, 1]]], {}):
        with pytest.raises(InputError):
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


def test_a_database_that_cannot_be_used(tmp_path: Path, postgres: Server) -> None:  # noqa: F811
    assert "cannot be reached" in refused("postgresql://nobody@127.0.0.1:1/x", table="log")
    assert "no such table or view" in refused(postgres.address, InputError, table="nowhere")
    assert "no such table or view" in refused(f"sqlite:///{tmp_path / 'new.db'}", InputError, table="nowhere")
    (tmp_path / "text.db").write_text("this is not a database" * 100)
    assert "not a database" in refused(f"sqlite:///{tmp_path / 'text.db'}", table="log")
    secret = refused("postgresql://me:secret@127.0.0.1:1/x", table="log")
    assert "secret" not in secret


@contextlib.contextmanager
def cutting_proxy(path: str, after: int) -> Iterator[int]:
    """A port that leads to the server's socket and goes dead after so many bytes from it."""
    listener = socket.create_server(("127.0.0.1", 0))

    def pump(source: socket.socket, sink: socket.socket, limit: float) -> None:
        passed = 0
        with contextlib.suppress(OSError):
            while data := source.recv(4096):
                passed += len(data)
                if passed > limit:
                    break
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(path)
                for ends in ((client, server, np.inf), (server, client, after)):
                    threading.Thread(target=pump, args=ends, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
def test_a_database_that_goes_away_half_way(postgres: Server) -> None:  # noqa: F811
    """The connection dies while the rows of the answer travel: there are a hundred thousand."""
    engine = sa.create_engine(postgres.address.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.execute(sa.text("DROP TABLE IF EXISTS large"))
        connection.execute(
            sa.text(
                "CREATE TABLE large AS SELECT i % 50000 AS id, i AS at, i % 3 AS what"
                " FROM generate_series(1, 150000) AS i"
            )
        )
    engine.dispose()
    with cutting_proxy(postgres.socket, 10**9) as port:
        assert (
            len(cs.count_transitions(f"postgresql://postgres@127.0.0.1:{port}/postgres", table="large", **NAMES))
            == 50_000
        )
    with cutting_proxy(postgres.socket, 1_000_000) as port:
        text = refused(f"postgresql://postgres@127.0.0.1:{port}/postgres", table="large")
    assert "the database failed, and nothing was counted" in text


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
