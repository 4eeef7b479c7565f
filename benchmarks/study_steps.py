"""One process of a benchmark of studies: does one thing over and over, for as long as each line of its input says.

``python study_steps.py STEP WHERE CHAINS EACH``. It uses nothing that an earlier commit lacks, so ``PYTHONPATH`` shows
the same figures of another source tree. An answer is a line of JSON: calls, seconds by the clock and by processor time,
and the longest call.
"""

import itertools
import json
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from chainscout.study import Study

SIZE = 5
FOLDER = Path(__file__).parent


class Turn(NamedTuple):
    """What one process did in one turn."""

    number: int
    clock: float
    processor: float
    longest: float


def chains(number: int) -> dict[str, int]:
    return {f"chain{k}": SIZE for k in range(number)}


def states() -> Iterator[int]:
    return itertools.cycle(random.Random(0).choices(range(SIZE), k=9973))


def fill(study: Study, number: int, each: int) -> None:
    """``each`` observations of every chain, in batches of 10,000 chains."""
    source = states()
    for first in range(0, number, 10_000):
        names = [f"chain{k}" for k in range(first, min(first + 10_000, number))]
        study.tell_many([(name, next(source)) for name in names for _ in range(each)])


def made(where: str, number: int, each: int) -> Study:
    """A study in memory, or a new one at ``where``."""
    study = Study.create(None if where == "memory" else where, chains(number))
    fill(study, number, each)
    return study


def pairs(study: Study) -> Callable[[], object]:
    source = states()
    return lambda: study.tell(study.ask(), next(source))


def batches(study: Study) -> Callable[[], object]:
    source = states()
    return lambda: study.tell_many([(name, next(source)) for name in study.ask(100)])


def leases(study: Study) -> Callable[[], object]:
    """A lease, then a tell: two changes."""
    worker, source = study.worker(f"worker {os.getpid()}", renews=False), states()

    def step() -> None:
        lease = worker.lease()
        assert lease is not None
        lease.tell(next(source))

    return step


def walks(study: Study) -> Callable[[], object]:
    """A tell and the next lease in one change."""
    worker, source = study.worker(f"worker {os.getpid()}", renews=False), states()
    following = iter(worker)
    return lambda: next(following).tell(next(source))


def opening(where: str) -> Callable[[], object]:
    def step() -> None:
        with Study.open(where, read_only=True) as study:
            study.progress()

    return step


STEPS: dict[str, Callable[[Study], Callable[[], object]]] = {
    "ask": lambda study: study.ask,
    "pairs": pairs,
    "batches": batches,
    "leases": leases,
    "walks": walks,
    "look": lambda study: study.look,
}


def main(step: str, where: str, number: int, each: int) -> None:
    if step == "make":
        made(where, number, each).close()
        print(json.dumps(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))
        return
    if step == "open":
        do = opening(where)
    else:
        do = STEPS[step](made(where, number, each) if where == "memory" else Study.open(where))
    print("ready", flush=True)
    for line in sys.stdin:
        end, count, longest, begun, used = float(line), 0, 0.0, time.perf_counter(), time.process_time()
        now = begun
        while count == 0 or now - begun < end:
            do()
            count, before, now = count + 1, now, time.perf_counter()
            longest = max(longest, now - before)
        print(json.dumps((count, now - begun, time.process_time() - used, longest)), flush=True)
    print(json.dumps(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


def command(tree: Path, *words: object) -> dict[str, Any]:
    """What `subprocess` needs to run this file on a source tree."""
    return {
        "args": [sys.executable, str(FOLDER / "study_steps.py"), *map(str, words)],
        "env": {**os.environ, "PYTHONPATH": str(tree)},
        "text": True,
        "stdout": subprocess.PIPE,
    }


def make(tree: Path, where: object, number: int, each: int = 0) -> float:
    """Makes a study. Returns the seconds that it took, the start of Python left out."""
    begun = time.perf_counter()
    subprocess.run(**command(tree, "make", where, number, each), check=True)
    return time.perf_counter() - begun


class Crowd:
    """Processes that do the same step of one study at the same time, each of its own."""

    def __init__(self, tree: Path, step: str, where: object, number: int = 0, each: int = 0, size: int = 1) -> None:
        words = step, where, number, each
        self._processes = [subprocess.Popen(stdin=subprocess.PIPE, **command(tree, *words)) for _ in range(size)]
        for process in self._processes:
            assert process.stdout.readline() == "ready\n"

    def turn(self, seconds: float) -> list[Turn]:
        """What each process did in so many seconds, or in one call if that takes longer."""
        for process in self._processes:
            print(seconds, file=process.stdin, flush=True)
        return [Turn(*json.loads(process.stdout.readline())) for process in self._processes]

    def close(self) -> float:
        """Ends the processes. Returns the most memory that one of them had, in MiB."""
        most = 0.0
        for process in self._processes:
            process.stdin.close()
        for process in self._processes:
            most = max(most, json.loads(process.stdout.readline()))
            process.wait()
        return most


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
