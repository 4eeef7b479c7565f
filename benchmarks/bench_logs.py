"""Counting a log: against DuckDB's bare window query, deeptime and pandas; peak memory; growth with the log.

Each measurement is a separate process, so that it has its own peak memory: VmHWM, because ru_maxrss is inherited from
the process that starts it. ``python benchmarks/bench_logs.py 5 50 200`` names the sizes, in millions of rows.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import duckdb
from recording import record

THREADS, LIMIT = 2, "600MB"
#: pandas and deeptime hold everything in memory, so they run only up to this number of million rows.
FITS = 5
HAND = "DuckDB, written by hand"

BEGIN = f"""
import time
path, threads, limit = {{path!r}}, {THREADS}, {LIMIT!r}
"""
END = """
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(seconds, cpu, int(peak.split()[1]) / 1024, total)
"""

#: The programs that are compared. Imports are not timed; all end with the number of transitions.
PROGRAMS = {
    "chainscout": """
import chainscout as cs
import chainscout.logs, duckdb
start, cpu = time.perf_counter(), time.process_time()
found = cs.count_transitions(path, chain="id", time="t", state="s", memory_limit=limit, threads=threads)
seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
total = sum(counts.total for _, counts in found)
""",
    HAND: """
import duckdb, tempfile
start, cpu = time.perf_counter(), time.process_time()
with tempfile.TemporaryDirectory() as directory:
    settings = {"threads": threads, "memory_limit": limit, "temp_directory": directory}
    connection = duckdb.connect(config=settings)
    connection.execute("SET enable_progress_bar = false")
    rows = connection.execute(
        "SELECT id, earlier, s, count(*) FROM"
        " (SELECT id, lag(s) OVER (PARTITION BY id ORDER BY t) AS earlier, s FROM read_parquet(?)) GROUP BY ALL", [path]
    ).fetchall()
    connection.close()
seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
total = sum(row[3] for row in rows if row[1] is not None)
""",
    "pandas group-by": """
import duckdb, pandas
start, cpu = time.perf_counter(), time.process_time()
log = duckdb.read_parquet(path).df().sort_values(["id", "t"])
log["earlier"] = log.groupby("id")["s"].shift()
counts = log.dropna().groupby(["id", "earlier", "s"]).size()
seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
total = int(counts.sum())
""",
    "deeptime, a chain at a time": """
import duckdb, numpy
from deeptime.markov import TransitionCountEstimator
start, cpu = time.perf_counter(), time.process_time()
log = duckdb.read_parquet(path).fetchnumpy()
order = numpy.lexsort((log["t"], log["id"]))
ids, states = log["id"][order], log["s"][order]
paths = numpy.split(states, numpy.flatnonzero(numpy.diff(ids)) + 1)
matrices = [TransitionCountEstimator(1, "sliding").fit_fetch(path).count_matrix for path in paths]
seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
total = int(sum(matrix.sum() for matrix in matrices))
""",
}


def generate(path: Path, millions: int) -> None:
    """Shuffled rows of a thousand chains of five states."""
    with duckdb.connect(config={"threads": THREADS}) as connection:
        connection.execute("SET preserve_insertion_order = false")
        connection.sql(
            "SELECT (i % 1000)::INTEGER AS id, (i // 1000)::BIGINT AS t, (hash(i) % 5)::INTEGER AS s"
            # Multiplication by a number without a common divisor visits every row once, in another order.
            f" FROM (SELECT k * 999_983 % {millions * 1_000_000} AS i FROM range({millions * 1_000_000}) r(k))"
        ).write_parquet(str(path))


class Run(NamedTuple):
    """One measurement. ``cpu`` is the processor time; a busy machine lengthens only ``seconds``."""

    seconds: float
    cpu: float
    peak: float
    transitions: int


def measure(program: str, path: Path) -> Run:
    """Wall seconds, CPU seconds, peak memory in MiB, transitions."""
    text = BEGIN.format(path=str(path)) + PROGRAMS[program] + END
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    seconds, cpu, peak, total = done.stdout.split()
    return Run(float(seconds), float(cpu), float(peak), int(total))


def main() -> None:
    sizes = [int(word) for word in sys.argv[1:]] or [5, 50]
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        for millions in sizes:
            path = Path(directory) / f"log-{millions}.parquet"
            generate(path, millions)
            repetitions = 3 if millions <= 50 else 1
            programs = [name for name in PROGRAMS if millions <= FITS or name in ("chainscout", HAND)]
            found: dict[str, list[Run]] = {name: [] for name in programs}
            for _ in range(repetitions):  # in turn, so that a busy moment of the machine affects all of them
                for name in programs:
                    found[name].append(measure(name, path))
                    print(f"{millions} million, {name}: {found[name][-1]}, load {os.getloadavg()[0]:.1f}", flush=True)
            for name, runs in found.items():
                assert {run.transitions for run in runs} == {(millions * 1_000 - 1) * 1_000}
                ratio = statistics.median(a.seconds / b.seconds for a, b in zip(runs, found[HAND], strict=True))
                seconds, cpu = statistics.median(r.seconds for r in runs), statistics.median(r.cpu for r in runs)
                peak = max(run.peak for run in runs)
                figures = (f"{seconds:.1f}", f"{cpu:.1f}", f"{ratio:.2f}", f"{peak:.0f}")
                rates = (f"{seconds / millions:.2f}", f"{cpu / millions:.2f}", repetitions)
                rows.append((f"{millions} million", name, *figures, *rates))
            path.unlink()
    columns = ("rows", "what counts", "seconds", "CPU seconds", "ratio to DuckDB by hand", "peak memory, MiB")
    columns += ("seconds a million", "CPU seconds a million", "runs")
    command = f"python benchmarks/bench_logs.py {' '.join(map(str, sizes))}"
    about = f"Counting logs ({THREADS} threads, DuckDB's limit {LIMIT}, medians of runs in turn)"
    record(about, command, columns, rows, ("duckdb", "pandas", "deeptime"))


if __name__ == "__main__":
    main()
