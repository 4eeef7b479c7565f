"""Workers that share a study: how many leased observations they make, and what first observations cost.

``python benchmarks/bench_workers.py`` does both; ``… rates`` or ``… stay`` does one.

*Rates.* 1, 4 and 16 processes on ten chains in SQLite and in PostgreSQL, in turn. A worker takes a
lease and then tells, which are two changes; or it goes through its leases (``for lease in worker``), and then a tell
takes the next lease with it, in one change. A crowd is served fairly if the fewest observations of one process are
close to the most. ``--beside PATH`` measures another source tree in the same run, with leases and tells.

*Stay.* Sixteen workers on a thousand chains, each with its own processes and paths. A worker that changes chains begins
a path there, and its first observation brings no transition. So a worker stays with a chain whose index is nearly the
largest: at least 95 % of it. The table shows, for several meanings of 'nearly', how many of the observations were first
ones, and the largest loss at the end, over that of one worker with the same budget (means of the seeds; the workers
take turns, and every lease is for one observation).
"""

import argparse
import tempfile
from pathlib import Path
from statistics import mean, median

from bench_study import EACH, FEW, HERE, beside_option, postgres
from recording import record
from study_steps import Crowd, make

import chainscout as cs
from chainscout.sources import Place
from chainscout.study import Study, order

CHAINS, WORKERS, BUDGET, SEEDS = 1_000, 16, 40_000, 2
CLOSE = (1.0, 0.95, 0.8, 0.65, 0.5, 0.3)
CROWDS = (1, 4, 16)


def trial(problem: cs.Problem, workers: int, close: float, seed: int) -> tuple[int, float]:
    """First observations, and the largest loss of all chains."""
    order.CLOSE = close
    study = Study.create(None, {name: problem[name].size for name in problem.names}, budget=BUDGET)
    crew = [(study.worker(f"worker {w}", renews=False), {}) for w in range(workers)]
    turn = 0
    while True:
        worker, sources = crew[turn % workers]
        lease = worker.lease()
        if lease is None:
            break
        key = lease.chain, lease.path
        if key not in sources:
            sources[key] = cs.sources.Simulated(problem[lease.chain], problem.names.index(lease.chain), seed=seed)
            sources[key].resume(Place(lease.path))
        lease.tell(sources[key].advance()[0])
        turn += 1
    losses = [cs.loss(problem[name], study.counts(name)) for name in problem.names]
    return study.progress().paths, max(losses)


def stay() -> None:
    problem = cs.problems.get(f"dirichlet:chains={CHAINS},states=3,seed=0")
    alone = [trial(problem, 1, 1.0, seed) for seed in range(SEEDS)]
    rows = [("one worker alone", f"{mean(first for first, _ in alone):,.0f}", "1.00")]
    for close in CLOSE:
        found = [trial(problem, WORKERS, close, seed) for seed in range(SEEDS)]
        ratio = mean(loss for _, loss in found) / mean(loss for _, loss in alone)
        rows.append((f"{close:.0%} of the largest", f"{mean(first for first, _ in found):,.0f}", f"{ratio:.2f}"))
    title = f"Workers: {WORKERS} on {CHAINS:,} chains, {BUDGET:,} observations"
    columns = (
        "a worker stays with a chain whose index is at least",
        "first observations",
        "largest loss, over one worker's",
    )
    record(title, "python benchmarks/bench_workers.py stay", columns, rows)


def rates(beside: Path | None, seconds: float, number: int) -> None:
    ways = {"lease, then tell": (HERE, "leases"), "for lease in worker": (HERE, "walks")}
    if beside is not None:
        ways["the other tree: lease, then tell"] = beside, "leases"
    rows = []
    with tempfile.TemporaryDirectory() as folder, postgres() as schema:
        for kind, place in (("SQLite", (folder + "/{}.db").format), ("PostgreSQL", schema)):
            places = [place(f"crowd{column}") for column in range(len(ways))]
            for where, (tree, _) in zip(places, ways.values(), strict=True):
                make(tree, where, FEW, EACH)
            for size in CROWDS:
                crowds = [
                    Crowd(tree, step, where, size=size)
                    for where, (tree, step) in zip(places, ways.values(), strict=True)
                ]
                turns = [[crowd.turn(seconds) for crowd in crowds] for _ in range(number + 1)]
                for crowd in crowds:
                    crowd.close()
                found = [[sum(one.number / one.clock for one in way) for way in turn] for turn in turns[1:]]
                for column, way in enumerate(ways):
                    counts = [sum(turn[column][k].number for turn in turns[1:]) for k in range(size)]
                    longest = max(one.longest for turn in turns[1:] for one in turn[column])
                    quicker = median(turn[column] / turn[-1] for turn in found)
                    rows.append((
                        f"{kind}, {size} process{'es' * (size > 1)}: {way}",
                        f"{median(turn[column] for turn in found):,.0f}/s",
                        f"{quicker:.2f}" if beside is not None else "",
                        f"{min(counts):,} and {max(counts):,}" if size > 1 else "",
                        f"{1000 * longest:,.0f} ms",
                    ))  # fmt: skip
    columns = ("what", "observations", "how often as quick as the other tree", "fewest and most of one process",
               "longest wait")  # fmt: skip
    command = f"python benchmarks/bench_workers.py rates --seconds {seconds:g} --turns {number}"
    command += " --beside PATH" * (beside is not None)
    record("Workers: leased observations", command, columns, rows, ("psycopg", "pgserver"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="?", choices=("rates", "stay"), help="measure one part")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each turn of the rates (default: %(default)s)")
    parser.add_argument("--turns", type=int, default=5, help="of the rates (default: %(default)s)")
    beside_option(parser)
    options = parser.parse_args()
    if options.part != "stay":
        rates(options.beside, options.seconds, options.turns)
    if options.part != "rates":
        stay()


if __name__ == "__main__":
    main()
