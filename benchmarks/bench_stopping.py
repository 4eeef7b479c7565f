"""Studies that stop at a certified target: which policy needs the fewest observations, and what certificates cost.

``python benchmarks/bench_stopping.py`` does all; ``… policies`` and ``… costs`` do one part.

*Policies.* Each chain's path is the same under every policy. So T*, the number of transitions after which its ``sharp``
certificate meets the target, is found once. Then each policy runs until every chain has T* transitions. No policy can
need fewer than Σ(T* + 1) observations. The figures are the observations over that least number, in the mean over
replications.

*Costs.* A study with a target that is never met makes 10,000 observations in SQLite. The processor time of its
certificates is measured inside the study. The rest, asking and durable writes, also waits for the disk. The first tell
of a process is measured in separate processes, with machine code on disk.
"""

import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import mean, median

from recording import record

import chainscout as cs
from chainscout import problems
from chainscout.certificates.certificate import loss_bound
from chainscout.cli.demonstration import demonstrated
from chainscout.sources import simulated
from chainscout.study import _certificate

DELTA = 0.05
REPLICATIONS = 10
#: Problems of several chains, and targets that take a few thousand observations.
TARGETS = {
    "two-state": 0.01,
    "gilbert-elliott": 0.01,
    "unlike": 0.01,
    "birth-death": 0.03,
    "nearly-decomposable": 0.03,
    "equal": 0.02,
    "cpg-islands": 0.02,
    "frozen-lake": 0.1,
    "dirichlet": 0.03,
    "reversible": 0.03,
    "sparse": 0.1,
    "demo": 0.03,  # the processes of 'chainscout demo'
}
POLICIES = ("certifier", "scout", "gini-ucb", "bayes", "ba-mc-tight", "uniform")
OBSERVATIONS = 10_000
COMMAND = "python benchmarks/bench_stopping.py"


class Walked:
    """One chain's path, drawn as far as it is needed, and its bound at any place."""

    def __init__(self, source) -> None:
        self.source, self.states = source, []

    def __getitem__(self, place: int) -> int:
        while len(self.states) <= place:
            self.states.append(self.source.advance()[0])
        return self.states[place]

    def bound(self, transitions: int, states, log_inverse: float) -> float:
        self[transitions]
        return loss_bound(cs.Counts.from_path(self.states[: transitions + 1], states), "sharp", log_inverse)


def first_met(path: Walked, states, target: float, log_inverse: float) -> int:
    """T*, on a grid of 1 %. The bound falls, but not smoothly."""
    grid = [1]
    while path.bound(grid[-1], states, log_inverse) > target:
        last = grid[-1]
        grid = [last]
        while grid[-1] < 1.5 * last + 1:
            grid.append(grid[-1] + max(1, grid[-1] // 100))
    low, high = 0, len(grid) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if path.bound(grid[middle], states, log_inverse) <= target else (middle, high)
    return grid[high]


def observations(policy: str, problem: cs.Problem, paths: dict[str, Walked], enough: dict[str, int]) -> int:
    """How many observations a policy makes until every chain has enough transitions."""
    states = {name: chain.states for name, chain in problem.chains.items()}
    told = dict.fromkeys(states, 0)
    left = set(states)
    with cs.Study.create(None, states, policy=policy, delta=DELTA) as study:
        while left:
            name = study.ask()
            study.tell(name, paths[name][told[name]])
            told[name] += 1
            if told[name] > enough[name]:
                left.discard(name)
    return sum(told.values())


def policies() -> None:
    rows, logarithms = [], {policy: [] for policy in POLICIES}
    for name, target in TARGETS.items():
        problem = demonstrated() if name == "demo" else problems.get(name)
        log_inverse = math.log(len(problem) / DELTA)
        quotients = {policy: [] for policy in POLICIES}
        least = []
        for replication in range(REPLICATIONS):
            sources = simulated(problem, seed=1, replication=replication)
            paths = {chain: Walked(source) for chain, source in sources.items()}
            enough = {
                chain: first_met(paths[chain], known.states, target, log_inverse)
                for chain, known in problem.chains.items()
            }
            least.append(sum(enough.values()) + len(enough))
            for policy in POLICIES:
                quotients[policy].append(observations(policy, problem, paths, enough) / least[-1])
        for policy in POLICIES:
            logarithms[policy].append(math.log(mean(quotients[policy])))
        rows.append((name, target, f"{mean(least):,.0f}", *(f"{mean(quotients[policy]):.2f}" for policy in POLICIES)))
        print(*rows[-1], flush=True)
    rows.append(("geometric mean", "", "", *(f"{math.exp(mean(logarithms[policy])):.2f}" for policy in POLICIES)))
    columns = ("problem", "target loss", "least Σ(T* + 1)", *(f"`{policy}`" for policy in POLICIES))
    title = "Observations to a loss that `sharp` certifies, over the least number"
    record(title, f"{COMMAND} policies", columns, rows, packages=("numpy", "numba"))


FIRST_TELL = """
import sys, time
start = time.perf_counter()
from chainscout.study import Study
with Study.open(sys.argv[1], continuing=True) as study:
    opened = time.perf_counter()
    study.tell("0", int(sys.argv[2]))
    told = time.perf_counter()
    study.tell("0", 1)
    again = time.perf_counter()
print(opened - start, told - opened, again - told)
"""


def costs() -> None:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for chains, size in ((1, 5), (5, 2), (5, 5), (5, 20), (20, 5), (20, 20), (100, 5)):
            rows.append(_share(Path(folder), chains, size))
            print(*rows[-1], flush=True)
        columns = (
            *("chains × states", "certificates", "mean", "all of them"),
            *("asks and durable tells, processor time", "the same, by the clock"),
        )
        title = f"Certificates of a study of {OBSERVATIONS:,} observations with a target, in SQLite"
        record(title, f"{COMMAND} costs", columns, rows, packages=("numpy", "numba"))
        record(
            "The first tell of a process, with machine code on disk",
            f"{COMMAND} costs",
            ("study", "import and open", "first tell", "second tell"),
            [_first_tell(Path(folder), target) for target in (None, 1e-6)],
            packages=("numpy", "numba"),
        )


def _share(folder: Path, chains: int, size: int) -> tuple[str, ...]:
    """How long a study takes, and how much of that its certificates take."""
    problem = problems.get(f"dirichlet:chains={chains},states={size}")
    sources = simulated(problem, seed=1)
    spent, number, refresh = 0.0, 0, _certificate.refresh
    clock = time.process_time

    def timed(*arguments) -> None:
        nonlocal spent, number
        began = clock()
        refresh(*arguments)
        spent, number = spent + clock() - began, number + 1

    states = {name: chain.states for name, chain in problem.chains.items()}
    with cs.Study.create(folder / f"{chains}-{size}.db", states, target_loss=1e-6) as study:
        for name in states:  # so that the kernels are loaded before the measurement
            study.tell(name, sources[name].advance()[0])
            study.tell(name, sources[name].advance()[0])
        _certificate.refresh = timed
        began, used = time.perf_counter(), clock()
        try:
            for _ in range(OBSERVATIONS):
                name = study.ask()
                study.tell(name, sources[name].advance()[0])
        finally:
            _certificate.refresh = refresh
        whole, used = time.perf_counter() - began, clock() - used
    each = f"{1000 * spent / number:.2f} ms"
    rest = (f"{used - spent:.1f} s", f"{whole - spent:.1f} s")
    return f"{chains} × {size}", f"{number:,}", each, f"{spent:.1f} s", *rest


def _first_tell(folder: Path, target: float | None) -> tuple[str, ...]:
    where = folder / f"first-{target}.db"
    with cs.Study.create(where, {"0": 5}, target_loss=target) as study:
        for place in range(60):
            study.tell("0", place % 5)
    times = []
    for place in range(6):
        done = subprocess.run(
            [sys.executable, "-c", FIRST_TELL, where, str(place % 5)], capture_output=True, text=True, check=True
        )
        times.append([float(value) for value in done.stdout.split()])
    what = "without a target" if target is None else "with a target"
    return what, *(
        f"{median(column):.2f} s" if k < 2 else f"{1000 * median(column):.1f} ms"
        for k, column in enumerate(zip(*times, strict=True))
    )


if __name__ == "__main__":
    chosen = sys.argv[1:] or ["costs", "policies"]
    for part in chosen:
        {"policies": policies, "costs": costs}[part]()
