"""How fast a study asks and tells: in memory, in SQLite and in PostgreSQL, with ten chains and with a million.

Rates are of ask + tell pairs unless a row says otherwise; ``scout``, no target, chains of five states. What is compared
is measured in turn, a tenth of a second each, over and over: a machine or a disk that is busy for a while slows all of
it alike. Rates are medians, by the clock and by the processor time of this process (for PostgreSQL that leaves out the
server); ratios are medians of the ratios within a turn. The fsync rate is that of the same disk: as many bytes as a
commit of the study writes, over and over at the same place, as a write-ahead log is written that is used again. The
floor is the driver alone: a transaction of Python's sqlite3 that changes as many pages as a commit of the study, and a
change of one row by psycopg. No study on that database can be faster. Optuna
asks and tells trials of one float in its own SQLite storage; it comes with the group ``bench``, which ``make bench``
installs (into another environment: ``pip install --group bench``), and a row says so where it is missing.

The study of many chains is made by ``tell_many``, ten observations a chain. Full size takes some GB and about twenty
minutes; ``--chains 10000`` takes a minute.
"""

import argparse
import itertools
import os
import random
import sqlite3
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from recording import record

from chainscout.study import Study

SIZE = 5
PAGES, PAGE = 8, 4096  # what a tell writes to SQLite's log
COMMIT = PAGES * PAGE
LOG = 400 * PAGES  # pages in the log between two check points
FEW = 10
EACH = 10  # observations of a chain in the large study
SLICE = 0.1
Row = tuple[str, str, str, str]
COLUMNS = ("what", "by the clock", "by processor time", "ratio by the clock")


class Timed:
    """Seconds a call, by the clock and by processor time, one figure a turn."""

    def __init__(self, step: Callable[[], object]) -> None:
        self.step = step
        self.clock: list[float] = []
        self.processor: list[float] = []

    def turn(self) -> None:
        number, begun, used = 0, time.perf_counter(), time.process_time()
        while number == 0 or time.perf_counter() - begun < SLICE:
            self.step()
            number += 1
        self.clock.append((time.perf_counter() - begun) / number)
        self.processor.append((time.process_time() - used) / number)

    def row(self, what: str, times: int = 1, than: "Timed | None" = None, than_what: str = "") -> Row:
        """``times``: what one call counts for."""
        ratio = ""
        if than is not None:
            ratio = f"{median(a / b for a, b in zip(self.clock, than.clock, strict=True)):.2f} × the time {than_what}"
        rates = [f"{times / median(seconds):,.0f}/s" for seconds in (self.clock, self.processor)]
        return what, rates[0], rates[1], ratio


def in_turn(*steps: Callable[[], object], turns: int = 30) -> list[Timed]:
    timed = [Timed(step) for step in steps]
    for _ in range(turns):
        for one in timed:
            one.turn()
    return timed


def chains(number: int) -> dict[str, int]:
    return {f"chain{k}": SIZE for k in range(number)}


def states() -> Iterator[int]:
    return itertools.cycle(random.Random(0).choices(range(SIZE), k=9973))


def pairs(study: Study, number: int = 1) -> Callable[[], None]:
    source = states()

    def step() -> None:
        for _ in range(number):
            study.tell(study.ask(), next(source))

    return step


def batch(study: Study) -> Callable[[], None]:
    source = states()
    return lambda: study.tell_many([(name, next(source)) for name in study.ask(100)])


def fill(study: Study, number: int, each: int = EACH) -> None:
    """``each`` observations of every chain, in batches of 10,000 chains."""
    source = states()
    for first in range(0, number, 10_000):
        names = [f"chain{k}" for k in range(first, min(first + 10_000, number))]
        study.tell_many([(name, next(source)) for name in names for _ in range(each)])


def writes(folder: Path) -> Callable[[], None]:
    """A write of a commit's size that reaches the disk."""
    block, places = os.urandom(COMMIT), itertools.cycle(range(64))
    file = open(folder / "fsync", "wb+", buffering=0)  # noqa: SIM115 - open while it is measured
    file.write(block * 64)
    os.fsync(file.fileno())

    def write() -> None:
        file.seek(next(places) * COMMIT)
        file.write(block)
        os.fdatasync(file.fileno())

    return write


def bare_sqlite(folder: Path) -> Callable[[], None]:
    """A durable transaction that changes as many pages as a tell, by Python's sqlite3 alone."""
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    for setting in ("journal_mode = WAL", "synchronous = FULL", f"wal_autocheckpoint = {LOG}"):
        connection.execute(f"PRAGMA {setting}")
    connection.execute("CREATE TABLE page (number INTEGER PRIMARY KEY, content BLOB)")
    connection.executemany("INSERT INTO page VALUES (?, ?)", [(k, bytes(PAGE // 4 * 3)) for k in range(PAGES)])
    content = itertools.cycle([os.urandom(PAGE // 4 * 3) for _ in range(16)])

    def change() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE page SET content = ?", [next(content)])
        connection.execute("COMMIT")

    return change


def bare_postgres(address: str) -> Callable[[], object]:
    """A durable change of one row, by psycopg alone."""
    import psycopg

    connection = psycopg.connect(address, autocommit=True, prepare_threshold=0)
    connection.execute("CREATE TABLE bare (number bigint)")
    connection.execute("INSERT INTO bare VALUES (0)")
    return lambda: connection.execute("UPDATE bare SET number = number + 1")


def in_memory(number: int) -> list[Row]:
    sizes = (5, FEW, number)
    steps = []
    for size in sizes:
        study = Study.create(None, chains(size))
        fill(study, size, 3)
        steps.append(pairs(study, 1000))
    five, few, many = in_turn(*steps, turns=15)
    return [
        five.row("in memory, K = 5", 1000),
        few.row(f"in memory, K = {FEW}", 1000),
        many.row(f"in memory, K = {number:,}", 1000, few, f"of K = {FEW}"),
    ]


@contextmanager
def postgres() -> Iterator[Callable[[str], str]]:
    """A server; gives the address of a new schema."""
    import pgserver
    import psycopg

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Path(folder).chmod(0o755)
        server = pgserver.get_server(Path(folder) / "data")

        def schema(name: str) -> str:
            with psycopg.connect(server.get_uri(), autocommit=True) as connection:
                connection.execute(f"CREATE SCHEMA {name}")
            return f"{server.get_uri()}&options=-csearch_path%3D{name}"

        yield schema
        server.cleanup()


def on_disk(
    kind: str, where: Callable[[str], object], number: int, write: Callable[[], None], bare: Callable[[], object]
) -> list[Row]:
    """A study of few chains and one of many, in turn with the disk itself and with the driver alone."""
    few = Study.create(where("few"), chains(FEW))
    fill(few, FEW, 100)
    place = where("many")
    study = Study.create(place, chains(number))
    begun = time.perf_counter()
    fill(study, number)
    seconds = time.perf_counter() - begun
    study.close()
    opening = []
    for _ in range(3):
        begun = time.perf_counter()
        many = Study.open(place)
        many.progress()
        opening.append(time.perf_counter() - begun)
        if len(opening) < 3:
            many.close()
    about = f"{kind}, K = {number:,}"
    asked = in_turn(few.ask, many.ask, turns=15)
    disk, floor, one, other = in_turn(write, bare, pairs(few), pairs(many))
    batches = in_turn(batch(few), batch(many))
    for study in (few, many):
        study.close()
    total = EACH * number
    slower = f"of K = {FEW}"
    return [
        disk.row(f"{COMMIT // 1024} KiB and fdatasync, in turn with {kind}"),
        floor.row(f"{kind}: the driver alone", 1, disk, "of an fdatasync"),
        asked[0].row(f"{kind}, K = {FEW}: ask"),
        asked[1].row(f"{about}: ask", 1, asked[0], slower),
        one.row(f"{kind}, K = {FEW}: ask + tell", 1, disk, "of an fdatasync"),
        other.row(f"{about}: ask + tell", 1, one, slower),
        batches[0].row(f"{kind}, K = {FEW}: observations, 100 a batch", 100),
        batches[1].row(f"{about}: observations, 100 a batch", 100, batches[0], slower),
        (f"{about}: {total:,} observations, {10_000 * EACH:,} a batch", f"{total / seconds:,.0f}/s", "", ""),
        (f"{about}: opening with {total:,} observations", f"{1000 * max(opening):,.0f} ms", "", "the slowest of 3"),
    ]


def optuna_row(folder: Path, write: Callable[[], None]) -> Row:
    try:
        import optuna
    except ImportError:
        return "Optuna", "not installed", "", ""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(storage=f"sqlite:///{folder / 'optuna.db'}", sampler=optuna.samplers.RandomSampler())

    def one() -> None:
        trial = study.ask()
        study.tell(trial, trial.suggest_float("x", 0.0, 1.0))

    disk, trial = in_turn(write, one, turns=15)
    return trial.row(f"Optuna {optuna.__version__}, SQLite: ask + tell", 1, disk, "of an fdatasync")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chains", type=int, default=1_000_000, help="how many the many are (default: %(default)s)")
    parser.add_argument("--only", choices=("memory", "sqlite", "postgres"), help="measure one kind of study")
    options = parser.parse_args()
    command = "python benchmarks/bench_study.py"
    if options.chains != parser.get_default("chains"):
        command += f" --chains {options.chains}"

    def section(kind: str, rows: list[Row], packages: tuple[str, ...]) -> None:
        load = " ".join(f"{value:.1f}" for value in os.getloadavg())
        rows.append((f"(the machine's load over 1, 5 and 15 minutes at the end: {load})", "", "", ""))
        record(f"Studies: {kind}", command, COLUMNS, rows, packages)

    if options.only in (None, "memory"):
        section("in memory", in_memory(options.chains), ())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write = writes(folder)
        if options.only in (None, "sqlite"):
            rows = on_disk("SQLite", lambda name: folder / f"{name}.db", options.chains, write, bare_sqlite(folder))
            section("SQLite", [*rows, optuna_row(folder, write)], ("sqlalchemy",))
        if options.only in (None, "postgres"):
            with postgres() as schema:
                rows = on_disk("PostgreSQL", schema, options.chains, write, bare_postgres(schema("bare")))
            section("PostgreSQL", rows, ("sqlalchemy", "psycopg", "pgserver"))


if __name__ == "__main__":
    main()
