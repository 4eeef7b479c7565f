"""How many entries a journal takes a second: SQLite and PostgreSQL, with 1, 4 and 16 processes, beside an fdatasync.

Each append is one entry that is on the disk when it returns: what a study pays for a `tell`. Every process has its own
connection and reads what the others append. All is measured in turn, over and over: a disk that is busy for a while
slows all of it alike. The fdatasync is that of the same disk, of as many bytes as an append writes to SQLite's log.
Rates and ratios are medians over the turns. A crowd is served fairly if the fewest appends of one process are close to
the most. ``--seconds 0.3 --turns 3`` takes half a minute.
"""

import argparse
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

from bench_study import WRITTEN, postgres, synchronised
from recording import record

from chainscout.journal.entry import FORMAT, START, Draft, Kind, packed
from chainscout.journal.opening import create, open_journal

CROWDS = (1, 4, 16)
COLUMNS = (
    "what",
    "appends a second",
    "time of an append ÷ of an fdatasync",
    "fewest and most of one process",
    "longest wait",
)
Found = tuple[int, float]


def append_when_told(where: str, orders: Connection) -> None:
    """Appends for as long as each order says, and answers with the number of appends and the longest of them."""
    with closing(open_journal(where)) as journal:
        head = START
        for page in journal.pages():
            head = page[-1].head
        draft = Draft(Kind.TOLD, path=1, value=1, by=os.getpid())
        while seconds := orders.recv():
            number, longest, begun = 0, 0.0, time.perf_counter()
            now = begun
            while now - begun < seconds:
                head = journal.append(head, lambda tail: [draft])[-1].head
                number, before, now = number + 1, now, time.perf_counter()
                longest = max(longest, now - before)
            orders.send((number, longest))


class Crowd:
    """Processes that append to one journal."""

    def __init__(self, where: str) -> None:
        create(where, Draft(Kind.CREATED, more=packed(format=FORMAT, id="benchmark"))).close()
        context = multiprocessing.get_context("spawn")
        self.orders = []
        for _ in range(max(CROWDS)):
            mine, theirs = context.Pipe()
            context.Process(target=append_when_told, args=(where, theirs), daemon=True).start()
            self.orders.append(mine)

    def turn(self, number: int, seconds: float) -> list[Found]:
        for order in self.orders[:number]:
            order.send(seconds)
        return [order.recv() for order in self.orders[:number]]

    def close(self) -> None:
        for order in self.orders:
            order.send(0)


def writes(write: Callable[[], None], seconds: float) -> float:
    """Writes a second that reach the disk."""
    number, begun = 0, time.perf_counter()
    while time.perf_counter() - begun < seconds:
        write()
        number += 1
    return number / (time.perf_counter() - begun)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=2.0, help="of each turn (default: %(default)s)")
    parser.add_argument("--turns", type=int, default=7, help="(default: %(default)s)")
    options = parser.parse_args()
    disk: list[float] = []
    found: dict[tuple[str, int], list[list[Found]]] = {}
    with tempfile.TemporaryDirectory() as folder, postgres() as schema:
        crowds = {"SQLite": Crowd(f"{folder}/study.db"), "PostgreSQL": Crowd(schema("journal"))}
        for name, crowd in crowds.items():
            crowd.turn(max(CROWDS), 0.1)  # they have started, and read what is there
            found |= {(name, number): [] for number in CROWDS}
        write = synchronised(Path(folder))
        for _ in range(options.turns):
            disk.append(writes(write, options.seconds))
            for (name, number), turns in found.items():
                turns.append(crowds[name].turn(number, options.seconds))
        for crowd in crowds.values():
            crowd.close()
    rows = [(f"{WRITTEN:,} bytes and fdatasync", f"{median(disk):,.0f}", "1", "", "")]
    for (name, number), turns in found.items():
        rates = [sum(count for count, _ in turn) / options.seconds for turn in turns]
        ratio = median(one / rate for one, rate in zip(disk, rates, strict=True))
        counts = [sum(turn[process][0] for turn in turns) for process in range(number)]
        longest = max(wait for turn in turns for _, wait in turn)
        fair = f"{min(counts):,} and {max(counts):,}" if number > 1 else ""
        what = f"{name}, {number} process{'es' * (number > 1)}"
        rows.append((what, f"{median(rates):,.0f}", f"{ratio:.2f}", fair, f"{1000 * longest:,.0f} ms"))
    command = f"python benchmarks/bench_journal.py --seconds {options.seconds:g} --turns {options.turns}"
    record("Journal", command, COLUMNS, rows, ("psycopg", "pgserver"))


if __name__ == "__main__":
    main()
