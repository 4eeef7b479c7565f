"""What it costs to show a study: `status` and `report` of 100,000 chains, what history adds to a pair, file sizes.

`python benchmarks/bench_shown.py pairs` (or `times`, `bytes`) makes one part alone.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import numpy as np
from recording import record

from chainscout.study import Study
from chainscout.study.keeper import Keeper

Row = tuple[str, str]
#: Chains and observations of each, of the study that is shown; as many chains with `LONG` observations are certified.
CHAINS, EACH = 100_000, 12
CERTIFIED, LONG = 500, 250
STATES = 5
#: Pairs of asking and telling in one turn, and turns.
PAIRS, TURNS = 50, 400


def filled(where: Path, chains: int, each: int) -> Study:
    """A study without a target, each of whose chains has observations."""
    study = Study.create(where, dict.fromkeys((f"chain {k}" for k in range(chains)), STATES), budget=None)
    rng = np.random.default_rng(0)
    names = study.names
    for first in range(0, chains, 10_000):
        some = names[first : first + 10_000]
        states = rng.integers(0, STATES, (each, len(some))).tolist()
        study.tell_many([(name, x) for row in states for name, x in zip(some, row, strict=True)])
    return study


def times(folder: Path) -> Iterator[Row]:
    """`status` and `report` as a user waits for them: a new process, the best of five."""
    where = folder / "large.db"
    with filled(where, CHAINS, EACH) as study:
        rng = np.random.default_rng(1)
        for name in study.names[:CERTIFIED]:
            study.tell_many([(name, int(x)) for x in rng.integers(0, STATES, LONG)])
    for what, words in (
        ("status", ["status", str(where)]),
        ("status --json", ["status", str(where), "--json"]),
        ("report", ["report", str(where), "--out", str(folder / "report.html")]),
    ):
        found = []
        for _ in range(5):
            begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, "-m", "chainscout", *words], check=True, capture_output=True)
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            work = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
            found.append((time.perf_counter() - begun, work))
        yield (
            f"`{what}` of {CHAINS:,} chains with {CHAINS * EACH + CERTIFIED * LONG:,} observations",
            f"{min(found)[0]:.2f} s ({min(w for _, w in found):.2f} s of work)",
        )


def turn(study: Study, rng: np.random.Generator) -> tuple[float, float]:
    """Seconds that so many pairs of asking and telling take: by the clock, and of work, without the disk's."""
    states = rng.integers(0, STATES, PAIRS).tolist()
    begun, used = time.perf_counter(), time.process_time()
    for state in states:
        study.tell(study.ask(), state)
    return time.perf_counter() - begun, time.process_time() - used


def nothing(keeper: Keeper) -> bool:
    """Takes the place of what is left out: a mock's call would cost a tenth of a pair."""
    return False


def pairs(folder: Path) -> Iterator[Row]:
    """Ask and tell on SQLite, K = 10, with the bounds and checks that are shown and without them, in turn."""
    rng = np.random.default_rng(2)
    shown, bare = (Study.create(folder / name, {f"c{k}": STATES for k in range(10)}) for name in ("a.db", "b.db"))
    with_all, without = [], []
    for _ in range(TURNS):
        with_all.append(turn(shown, rng))
        with mock.patch.object(Keeper, "settle", nothing):
            without.append(turn(bare, rng))
    (clock, work), (clock_without, work_without) = (np.sum(turns, axis=0) for turns in (with_all, without))
    each = 1e3 / TURNS / PAIRS
    alone = f"{each * clock_without:.3f} ms by the clock, {each * work_without:.3f} ms of work"
    yield "ask + tell on SQLite, K = 10, without bounds and checks", alone
    both = f"{clock / clock_without:.3f} × by the clock, {work / work_without:.3f} × of work"
    yield f"the same with them, over {TURNS} turns of {PAIRS} pairs in turn", both


def sizes(folder: Path) -> Iterator[Row]:
    """Bytes of the file for each observation."""
    for chains, told in ((10, 100_000), (CHAINS, 3)):
        where = folder / f"{chains}.db"
        if chains == 10:
            study = Study.create(where, {f"c{k}": STATES for k in range(chains)}, budget=None)
            study.close()
            before = os.path.getsize(where)
            with Study.open(where) as study:
                rng = np.random.default_rng(3)
                for _ in range(told // 100):
                    study.tell_many([(f"c{k}", int(x)) for k, x in enumerate(rng.integers(0, STATES, 10))] * 10)
        else:
            filled(folder / "empty.db", chains, 0).close()
            before = os.path.getsize(folder / "empty.db")
            filled(where, chains, told).close()
        with Study.open(where, read_only=True) as study:
            observations, lines = study.progress().observations, len(study.look().history(None))
        size = os.path.getsize(where)
        yield (
            f"K = {chains:,}, {observations:,} observations: bytes an observation; lines of history",
            f"{(size - before) / observations:.0f}; {lines:,} ({before / chains:,.0f} bytes a chain before the first)",
        )
        where.unlink()


PARTS = {"times": times, "pairs": pairs, "bytes": sizes}


def main() -> None:
    rows: list[Row] = []
    for part in sys.argv[1:] or PARTS:
        with tempfile.TemporaryDirectory() as folder:
            rows += PARTS[part](Path(folder))
            print(*rows[-3:], sep="\n", flush=True)
    record("What showing a study costs", "python benchmarks/bench_shown.py", ("what", "measured"), rows, ())


if __name__ == "__main__":
    main()
