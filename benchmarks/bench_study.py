"""How fast a study asks and tells: in memory, in SQLite and in PostgreSQL, with ten chains and with a million.

Rates are of ask + tell pairs unless a row says otherwise; ``scout``, no target. The fsync rate is that of the same disk
in the same run: as many bytes as a commit of the study writes, over and over at the same place, as a write-ahead log is
written that is used again. Optuna (if it is installed) asks and tells trials of one float in its own SQLite storage.
"""

import argparse
import itertools
import os
import random
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from recording import record

from chainscout.study import Study

SIZE = 5
SECONDS = 3.0
COMMIT = 32 * 1024  # eight pages, what a tell writes to the log


def rate(step, seconds: float = SECONDS) -> float:
    """Calls a second, the best of three."""
    best = 0.0
    for _ in range(3):
        number, end = 0, time.perf_counter() + seconds / 3
        begun = time.perf_counter()
        while time.perf_counter() < end:
            step()
            number += 1
        best = max(best, number / (time.perf_counter() - begun))
    return best


def chains(number: int) -> dict[str, int]:
    return {f"chain{k}": SIZE for k in range(number)}


def states() -> Iterator[int]:
    return itertools.cycle(random.Random(0).choices(range(SIZE), k=9973))


def pair(study: Study):
    source = states()
    return lambda: study.tell(study.ask(), next(source))


def in_memory(number: int, warm_up: int) -> float:
    """Pairs a second; several pairs a call, so that the clock costs nothing."""
    study, source = Study.create(None, chains(number)), states()
    for _ in range(warm_up):
        study.tell(study.ask(), next(source))

    def many() -> None:
        for _ in range(1000):
            study.tell(study.ask(), next(source))

    return 1000 * rate(many)


def fsync_rate(folder: Path) -> float:
    """Writes of a commit's size that reach the disk, a second."""
    block, places = os.urandom(COMMIT), itertools.cycle(range(64))
    with open(folder / "fsync", "wb+", buffering=0) as file:
        file.write(block * 64)
        os.fsync(file.fileno())

        def write() -> None:
            file.seek(next(places) * COMMIT)
            file.write(block)
            os.fdatasync(file.fileno())

        return rate(write)


def batches(study: Study) -> float:
    source = states()
    return 100 * rate(lambda: study.tell_many([(name, next(source)) for name in study.ask(100)]))


@contextmanager
def postgres() -> Iterator[str]:
    import pgserver

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Path(folder).chmod(0o755)
        server = pgserver.get_server(Path(folder) / "data")
        yield server.get_uri()
        server.cleanup()


def on_disk(where, number: int, observations: int) -> list[tuple[str, str, str]]:
    """A study of ``number`` chains, filled with ``observations``; pairs, batches, opening."""
    study, source = Study.create(where, chains(number)), states()
    todo = observations
    while todo > 0:
        batch = [(name, next(source)) for name in study.ask(min(todo, 20_000))]
        study.tell_many(batch)
        todo -= len(batch)
    study.close()
    begun = time.perf_counter()
    study = Study.open(where)
    study.progress()
    opening = time.perf_counter() - begun
    asking, pairs, hundred = rate(study.ask), rate(pair(study)), batches(study)
    study.close()
    kind = "PostgreSQL" if "://" in str(where) else "SQLite"
    about = f"{kind}, K = {number:,}, {observations:,} observations before"
    return [
        (f"{about}: ask", f"{asking:,.0f}/s", ""),
        (f"{about}: ask + tell", f"{pairs:,.0f}/s", kind),
        (f"{about}: observations in batches of 100", f"{hundred:,.0f}/s", ""),
        (f"{about}: opening", f"{opening * 1000:,.0f} ms", ""),
    ]


def optuna_rate(folder: Path) -> float | None:
    try:
        import optuna
    except ImportError:
        return None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(storage=f"sqlite:///{folder / 'optuna.db'}", sampler=optuna.samplers.RandomSampler())

    def one() -> None:
        trial = study.ask()
        study.tell(trial, trial.suggest_float("x", 0.0, 1.0))

    return rate(one)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chains", type=int, default=1_000_000, help="the many chains")
    parser.add_argument("--observations", type=int, default=10_000_000, help="of the study that is opened")
    many = parser.parse_args()
    rows: list[tuple[str, str, str]] = []
    few = in_memory(5, 1000)
    rows.append(("in memory, K = 5: ask + tell", f"{few:,.0f}/s", ""))
    ten, crowd = in_memory(10, 1000), in_memory(many.chains, 2 * many.chains)
    rows.append(("in memory, K = 10: ask + tell", f"{ten:,.0f}/s", ""))
    rows.append((f"in memory, K = {many.chains:,}: ask + tell", f"{crowd:,.0f}/s", f"{ten / crowd:.2f} × K = 10"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        disk = fsync_rate(folder)
        rows.append((f"fsync of {COMMIT // 1024} KiB", f"{disk:,.0f}/s", ""))
        rows += compared(
            on_disk(folder / "few.db", 10, 1000), on_disk(folder / "many.db", many.chains, many.observations), disk
        )
        with postgres() as address:
            first = on_disk(address + "&options=-csearch_path%3Dpublic", 10, 1000)
            import psycopg

            with psycopg.connect(address, autocommit=True) as connection:
                connection.execute("CREATE SCHEMA many")
            second = on_disk(address + "&options=-csearch_path%3Dmany", many.chains, many.observations // 10)
            rows += compared(first, second, disk)
        other = None
        with suppress(Exception):
            other = optuna_rate(folder)
        rows.append(("Optuna, SQLite: ask + tell", "not installed" if other is None else f"{other:,.0f}/s", ""))
    record("Studies", "python benchmarks/bench_study.py", ("what", "rate", "ratio"), rows, ("sqlalchemy", "psycopg"))


def compared(few, many, disk: float) -> list[tuple[str, str, str]]:
    """The rows of few and of many chains, with their ratios inside this run."""
    found = []
    for place, (line, value, kind) in enumerate(few):
        ratio = f"{disk / number(value):.2f} × the time of an fsync" if kind else ""
        found.append((line, value, ratio))
        slower = number(value) / number(many[place][1])
        found.append((many[place][0], many[place][1], f"{slower:.2f} × K = 10" if "ms" not in value else ""))
    return found


def number(text: str) -> float:
    return float(text.split("/")[0].split(" ")[0].replace(",", ""))


if __name__ == "__main__":
    main()
