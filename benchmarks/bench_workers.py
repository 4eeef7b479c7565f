"""The cost of first observations: sixteen workers on a thousand chains, each with its own processes and paths.

A worker that changes chains begins a path there, and its first observation brings no transition. So a worker stays
with a chain whose index is nearly the largest: at least 95 % of it. The table shows, for several meanings of
'nearly', how many of the observations were first ones, and the largest loss at the end, over that of one worker with
the same budget (means of the seeds; the workers take turns, and every lease is for one observation).
"""

from statistics import mean

from recording import record

import chainscout as cs
from chainscout.sources import Place
from chainscout.study import Study, _selection

CHAINS, WORKERS, BUDGET, SEEDS = 1_000, 16, 40_000, 2
CLOSE = (1.0, 0.95, 0.8, 0.65, 0.5, 0.3)
COLUMNS = (
    "a worker stays with a chain whose index is at least",
    "first observations",
    "largest loss, over one worker's",
)


def trial(problem: cs.Problem, workers: int, close: float, seed: int) -> tuple[int, float]:
    """First observations, and the largest loss of all chains."""
    _selection.CLOSE = close
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


def main() -> None:
    problem = cs.problems.get(f"dirichlet:chains={CHAINS},states=3,seed=0")
    alone = [trial(problem, 1, 1.0, seed) for seed in range(SEEDS)]
    rows = [("one worker alone", f"{mean(first for first, _ in alone):,.0f}", "1.00")]
    for close in CLOSE:
        found = [trial(problem, WORKERS, close, seed) for seed in range(SEEDS)]
        ratio = mean(loss for _, loss in found) / mean(loss for _, loss in alone)
        rows.append((f"{close:.0%} of the largest", f"{mean(first for first, _ in found):,.0f}", f"{ratio:.2f}"))
    title = f"Workers: {WORKERS} on {CHAINS:,} chains, {BUDGET:,} observations"
    record(title, "python benchmarks/bench_workers.py", COLUMNS, rows)


if __name__ == "__main__":
    main()
