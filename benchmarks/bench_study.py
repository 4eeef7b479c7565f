"""How fast a study asks, tells and opens: in memory, in SQLite and in PostgreSQL, with ten chains and with many.

``--beside PATH`` measures the package of another source tree (its folder ``src``) in the same run. What is compared is
measured in turn, a quarter of a second each, over and over, in processes of its own: a machine or a disk that is busy
for a while slows all of it alike. Rates are medians, by the clock and by the processor time of the process (for
PostgreSQL that leaves out the server); ratios are medians of the ratios within a turn. ``scout``, no target, chains of
five states. The fsync rate is that of the same disk: as many bytes as a tell writes to SQLite's log, over and over at
the same place. The floor is the driver alone: a transaction that inserts one row. No study on that database can be
faster. Optuna asks and tells trials of one float in its own SQLite storage; it comes with the group ``bench``, which
``make bench`` installs (into another environment: ``pip install --group bench``), and a row says so where it is
missing.

``--only large`` is about what a process pays for folding a journal when it opens it, and about what it shows: a million
observations with and without a snapshot, a hundred thousand chains, a look, ``chainscout status``.
"""

import argparse
import itertools
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median

from recording import record
from study_steps import Crowd, Turn, chains, make, states

__all__ = ["HERE", "WRITTEN", "Row", "beside_option", "chains", "postgres", "states", "synchronised"]

HERE = Path(__file__).resolve().parent.parent / "src"
WRITTEN = 2 * (4096 + 24)  # what a tell writes to SQLite's log: two pages of the table with their headers
LOG = 400 * 2  # pages in the log between two check points
#: The few chains have so many observations each that looks at their bounds, which cost milliseconds, are rare.
FEW, EACH = 10, 20_000
SLICE, TURNS = 0.25, 12
MANY, THREE, OBSERVATIONS = 100_000, 3, 1_000_000
#: A step of `study_steps`, its name in the table, and how many observations it makes.
STEPS = (("ask", "ask", 1), ("pairs", "ask + tell", 1), ("batches", "observations, 100 a batch", 100))
Row = tuple[str, ...]
Step = Callable[[float], Turn]
COLUMNS = (
    "what",
    "by the clock",
    "by processor time",
    "ratio by the clock",
    "the other tree",
    "times as quick (by processor time)",
)


def repeated(do: Callable[[], object]) -> Step:
    """A step of this process."""

    def turn(seconds: float) -> Turn:
        number, begun, used = 0, time.perf_counter(), time.process_time()
        while number == 0 or time.perf_counter() - begun < seconds:
            do()
            number += 1
        return Turn(number, time.perf_counter() - begun, time.process_time() - used, 0.0)

    return turn


class Measured:
    """The turns of one step: calls a second by the clock (``rate``) and by processor time (``work``)."""

    def __init__(self, step: Step) -> None:
        self.step = step
        self.turns: list[Turn] = []

    def rate(self, turn: int) -> float:
        return self.turns[turn].number / self.turns[turn].clock

    def work(self, turn: int) -> float:
        return self.turns[turn].number / max(self.turns[turn].processor, 1e-9)

    def row(
        self, what: str, times: int = 1, than: "Measured | None" = None, than_what: str = "",
        beside: "Measured | None" = None,
    ) -> Row:  # fmt: skip
        """``times``: what one call counts for."""
        every = range(len(self.turns))
        clock = median(map(self.rate, every))
        processor = median(map(self.work, every))
        ratio = other = quicker = ""
        if than is not None:
            ratio = f"{median(than.rate(k) / self.rate(k) for k in every):.2f} × the time {than_what}"
        if beside is not None:
            other = f"{times * median(map(beside.rate, every)):,.0f}/s"
            work = median(self.work(k) / beside.work(k) for k in every)
            quicker = f"{median(self.rate(k) / beside.rate(k) for k in every):.2f} ({work:.2f})"
        return what, f"{times * clock:,.0f}/s", f"{times * processor:,.0f}/s", ratio, other, quicker


def in_turn(*steps: Step | None, turns: int = TURNS) -> list[Measured | None]:
    measured = [step and Measured(step) for step in steps]
    for turn in range(turns + 1):
        for one in filter(None, measured):
            found = one.step(SLICE)
            one.turns += [found] * (turn > 0)  # the first one is for caches
    return measured


@contextmanager
def crowds(trees: list[Path], step: str, where: Callable[[Path], object], number: int = 0, each: int = 0
           ) -> Iterator[list[Step | None]]:  # fmt: skip
    """One process of each tree that does the step; None instead of the tree beside if there is none."""
    found = [Crowd(tree, step, where(tree), number, each) for tree in trees]
    try:
        yield [*(lambda seconds, crowd=crowd: crowd.turn(seconds)[0] for crowd in found), *[None] * (2 - len(found))]
    finally:
        for crowd in found:
            crowd.close()


def synchronised(folder: Path) -> Callable[[], None]:
    """A write of a tell's size that reaches the disk."""
    block, places = os.urandom(WRITTEN), itertools.cycle(range(64))
    file = open(folder / "fdatasync", "wb+", buffering=0)  # noqa: SIM115 - open while it is measured
    file.write(block * 64)
    os.fsync(file.fileno())

    def write() -> None:
        file.seek(next(places) * WRITTEN)
        file.write(block)
        os.fdatasync(file.fileno())

    return write


def bare_sqlite(folder: Path) -> Callable[[], object]:
    """A durable transaction that inserts one row, by Python's sqlite3 alone."""
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    for setting in ("journal_mode = WAL", "synchronous = FULL", f"wal_autocheckpoint = {LOG}"):
        connection.execute(f"PRAGMA {setting}")
    connection.execute("CREATE TABLE bare (number INTEGER PRIMARY KEY, content BLOB)")
    return lambda: connection.execute("INSERT INTO bare (content) VALUES (?)", [bytes(30)])


def bare_postgres(address: str) -> Callable[[], object]:
    """A durable insertion of one row, by psycopg alone."""
    import psycopg

    connection = psycopg.connect(address, autocommit=True, prepare_threshold=0)
    connection.execute("CREATE TABLE bare (number bigint)")
    return lambda: connection.execute("INSERT INTO bare VALUES (0)")


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


def in_memory(trees: list[Path], number: int) -> Iterator[Row]:
    with crowds(trees, "pairs", lambda tree: "memory", FEW, EACH) as few:
        here, other = in_turn(*few)
        yield here.row(f"in memory, K = {FEW}: ask + tell", beside=other)
    with (
        crowds(trees[:1], "pairs", lambda tree: "memory", FEW, EACH) as few,
        crowds(trees, "pairs", lambda tree: "memory", number, THREE) as many,
    ):
        one, here, other = in_turn(few[0], *many)
        yield here.row(f"in memory, K = {number:,}: ask + tell", 1, one, f"of K = {FEW}", beside=other)


def on_disk(
    kind: str, trees: list[Path], where: Callable[[str], str], number: int, write: Callable[[], object],
    bare: Callable[[], object],
) -> Iterator[Row]:  # fmt: skip
    """A study of few chains and one of many, in turn with the disk itself, with the driver alone, and with the tree
    beside."""
    few = {tree: where(f"few{place}") for place, tree in enumerate(trees)}
    many = {tree: where(f"many{place}") for place, tree in enumerate(trees)}
    for tree in trees:
        make(tree, few[tree], FEW, EACH)
        make(tree, many[tree], number, THREE)
    for step, what, times in STEPS:
        floors = [repeated(write), repeated(bare)] if step == "pairs" else [None, None]
        with crowds(trees, step, few.__getitem__) as one, crowds(trees, step, many.__getitem__) as other:
            disk, floor, ours, theirs, large, their_large = in_turn(*floors, *one, *other)
        if step == "pairs":
            yield disk.row(f"{WRITTEN:,} bytes and fdatasync, in turn with {kind}")
            yield floor.row(f"{kind}: the driver alone", 1, disk, "of an fdatasync")
        than = (disk, "of an fdatasync") if step == "pairs" else (None, "")
        yield ours.row(f"{kind}, K = {FEW}: {what}", times, *than, beside=theirs)
        yield large.row(f"{kind}, K = {number:,}: {what}", times, ours, f"of K = {FEW}", beside=their_large)


def optuna_row(folder: Path, write: Callable[[], None]) -> Row:
    try:
        import optuna
    except ImportError:
        return "Optuna", "not installed", "", "", "", ""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(storage=f"sqlite:///{folder / 'optuna.db'}", sampler=optuna.samplers.RandomSampler())

    def one() -> None:
        trial = study.ask()
        study.tell(trial, trial.suggest_float("x", 0.0, 1.0))

    disk, trial = in_turn(repeated(write), repeated(one))
    return trial.row(f"Optuna {optuna.__version__}, SQLite: ask + tell", 1, disk, "of an fdatasync")


def opened(tree: Path, where: Path) -> tuple[float, float, float]:
    """Seconds by the clock and by processor time, and MiB, of a new process that opens a study: the best of three.

    The seconds are those after the imports.
    """
    found = []
    for _ in range(3):
        crowd = Crowd(tree, "open", where)
        ((_, clock, processor, _),) = crowd.turn(0.0)
        found.append((clock, processor, crowd.close()))
    return min(found)


def large(folder: Path, trees: list[Path]) -> Iterator[Row]:
    """What the fold of a journal costs when it is opened, and what a look costs."""

    def rows(what: str, where: Callable[[int], Path]) -> Row:
        found = [opened(tree, where(place)) for place, tree in enumerate(trees)]
        clock, processor, memory = found[0]
        other = f"{1000 * found[1][0]:,.0f} ms, {found[1][2]:,.0f} MiB" if len(found) > 1 else ""
        return what, f"{1000 * clock:,.0f} ms", f"{1000 * processor:,.0f} ms", f"{memory:,.0f} MiB", other, ""

    for place, tree in enumerate(trees):
        make(tree, folder / f"long{place}.db", FEW, OBSERVATIONS // FEW)
        make(tree, folder / f"wide{place}.db", MANY, THREE)
        make(tree, folder / f"dozen{place}.db", 12, 100)
    make(trees[0], folder / "thousand0.db", 1_000, 100)
    what = f"opening K = {FEW}, {OBSERVATIONS:,} observations"
    yield rows(f"{what}, with a snapshot", lambda place: folder / f"long{place}.db")
    with closing(sqlite3.connect(folder / "long0.db")) as connection, connection:
        connection.execute("DELETE FROM snapshot")
    yield rows(f"{what}, without a snapshot", lambda place: folder / f"long{place}.db")
    yield rows(f"opening K = {MANY:,}, {THREE} observations each", lambda place: folder / f"wide{place}.db")
    for number, name in ((1_000, "thousand"), (MANY, "wide")):
        crowd = Crowd(trees[0], "look", folder / f"{name}0.db")
        turns = [crowd.turn(SLICE)[0] for _ in range(4)][1:]
        crowd.close()
        clock, processor = (min(getattr(turn, kind) / turn.number for turn in turns) for kind in ("clock", "processor"))
        yield f"a look at {number:,} chains", f"{1000 * clock:,.1f} ms", f"{1000 * processor:,.1f} ms", "", "", ""
    seconds: list[list[float]] = [[] for _ in trees]
    for _ in range(5):
        for place, tree in enumerate(trees):
            begun = time.perf_counter()
            words = [sys.executable, "-m", "chainscout", "status", str(folder / f"dozen{place}.db")]
            env = {**os.environ, "PYTHONPATH": str(tree)}
            subprocess.run(words, check=True, capture_output=True, env=env)
            seconds[place].append(time.perf_counter() - begun)
    said = [f"{min(times):.2f} s" for times in seconds]
    yield "`chainscout status` of 12 chains, a new process", said[0], "", "", *said[1:], *[""] * (2 - len(said[1:]))


def beside_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--beside", type=Path, help="the folder src of another source tree, measured in the same run")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chains", type=int, default=MANY, help="how many the many are (default: %(default)s)")
    parser.add_argument("--only", choices=("memory", "sqlite", "postgres", "large"), help="measure one part")
    beside_option(parser)
    options = parser.parse_args()
    trees = [HERE] if options.beside is None else [HERE, options.beside]
    command = "python benchmarks/bench_study.py" + " --beside PATH" * (len(trees) > 1)
    if options.chains != parser.get_default("chains"):
        command += f" --chains {options.chains}"
    width = 4 if len(trees) == 1 else 6

    def section(kind: str, rows: list[Row], packages: tuple[str, ...] = ()) -> None:
        load = " ".join(f"{value:.1f}" for value in os.getloadavg())
        rows.append((f"(the machine's load over 1, 5 and 15 minutes at the end: {load})", *[""] * 5))
        record(f"Studies: {kind}", command, COLUMNS[:width], [row[:width] for row in rows], packages)

    if options.only in (None, "memory"):
        section("in memory", list(in_memory(trees, options.chains)))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write = synchronised(folder)
        if options.only in (None, "sqlite"):
            place = (str(folder) + "/{}.db").format
            rows = list(on_disk("SQLite", trees, place, options.chains, write, bare_sqlite(folder)))
            section("SQLite", [*rows, optuna_row(folder, write)])
        if options.only in (None, "postgres"):
            with postgres() as schema:
                rows = list(on_disk("PostgreSQL", trees, schema, options.chains, write, bare_postgres(schema("bare"))))
            section("PostgreSQL", rows, ("psycopg", "pgserver"))
        if options.only in (None, "large"):
            section("opening and looking", list(large(folder, trees)))


if __name__ == "__main__":
    main()
