"""Studies that stop at a certified target: how many observations they need, what plans say, what certificates cost.

``python benchmarks/bench_stopping.py`` does all; ``… aims``, ``… plans``, ``… workers`` or ``… costs`` does a part. The
first three use nothing that a commit before lacks, so ``PYTHONPATH`` shows the same figures of another commit.

*Aims.* Each chain's path is the same whatever is advanced. So T*, the first number of transitions at which its own
``sharp`` bound meets the target, does not depend on the rule, and no rule needs fewer than Σ(T* + 1) observations. The
figures are the observations of the default rule over that least number; of taking turns until the last chain has T*;
and of the default rule if the states are not declared.

*Plans.* A study with a fifth of the budget that its target needs is asked how many more observations it needs.

*Workers.* Three machines, of which one has a question: what each gets with and without an executor.

*Costs.* A study with a target that is never met makes 10,000 observations in SQLite. The processor time of its
certificates is measured inside the study. The rest, asking and durable writes, also waits for the disk. The first tell
of a process is measured in separate processes, with machine code on disk.
"""

import math
import random
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import mean, median

from recording import record

import chainscout as cs
from chainscout import problems
from chainscout.certificates.certificate import loss_bound
from chainscout.cli.demonstration import demonstrated
from chainscout.sources import simulated
from chainscout.study import bounds

DELTA = 0.05
REPLICATIONS = 5
#: Of the problems of the table; each random problem is run this many times.
RANDOM_REPLICATIONS = 2
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
#: Random problems: families and seeds. Their targets are a fixed part of the mean variability.
RANDOM = tuple(
    f"{family},seed={seed}"
    for family in (
        "dirichlet:chains=3,states=2",
        "dirichlet:chains=4,states=5",
        "dirichlet:chains=3,states=4,concentration=0.1",
        "dirichlet:chains=8,states=3,concentration=0.3",
        "reversible:chains=4,states=4",
        "sparse:chains=3,states=8,exits_per_state=2",
    )
    for seed in (101, 102, 103, 104)
)
PART = 0.006
#: Plans are made with this many seeds of each problem of the table.
SEEDS = 10
#: A plan is made after this part of the whole, and counts as good within these limits of actual ÷ predicted.
PILOT, GOOD = 0.2, (0.8, 1.25)
OBSERVATIONS = 10_000
COMMAND = "python benchmarks/bench_stopping.py"


def problem_of(name: str) -> tuple[cs.Problem, float]:
    """A problem and its target loss."""
    problem = demonstrated() if name == "demo" else problems.get(name)
    return problem, TARGETS.get(name) or PART * problem.variability / len(problem)


def first_met(source, states, target: float, log_inverse: float) -> int:
    """T*, the first T at which the chain's own ``sharp`` bound meets the target.

    It is looked for after every transition from half-way on: the bound falls, but not smoothly.
    """
    counts = cs.Counts(states)
    counts.record(source.advance()[0])
    while True:
        counts.record(source.advance()[0])
        ratio = loss_bound(counts, "sharp", log_inverse) / target
        if ratio <= 1:
            return counts.total
        for _ in range(int(counts.total * (ratio - 2) / 10)):
            counts.record(source.advance()[0])


def needed(problem: cs.Problem, target: float, replication: int, **settings) -> int:
    """How many observations a study needs for its target."""
    with cs.learn(
        simulated(problem, seed=1, replication=replication), target_loss=target, delta=DELTA, progress=False, **settings
    ) as study:
        assert study.stop_reason == "target_loss"
        return study.progress().observations


def aims() -> None:
    """The default rule beside the least, taking turns, and states that are not declared."""
    rows: list[tuple[object, ...]] = []
    all_ratios: list[list[float]] = []
    for name in (*TARGETS, *RANDOM):
        problem, target = problem_of(name)
        log_inverse = math.log(len(problem) / DELTA)
        found = []
        for replication in range(REPLICATIONS if name in TARGETS else RANDOM_REPLICATIONS):
            sources = simulated(problem, seed=1, replication=replication)
            enough = [first_met(sources[c], known.states, target, log_inverse) for c, known in problem.chains.items()]
            least, turns = sum(enough) + len(enough), len(enough) * (max(enough) + 1)
            given = needed(problem, target, replication)
            unknown = needed(problem, target, replication, open_states=True)
            found.append((least, given, turns, unknown))
        least, *others = (mean(column) for column in zip(*found, strict=True))
        all_ratios.append([other / least for other in others])
        rows.append((name, f"{target:.3g}", f"{least:,.0f}", *(f"{ratio:.3f}" for ratio in all_ratios[-1])))
        print(*rows[-1], flush=True)
    for what, summary in (("geometric mean", geometric_mean), ("largest", max)):
        rows.append((what, "", "", *(f"{summary(column):.3f}" for column in zip(*all_ratios, strict=True))))
    columns = ("problem", "target loss", "least Σ(T* + 1)", "default", "taking turns", "states not declared")
    title = "Observations to a certified loss, over the least that any rule can need"
    record(title, f"{COMMAND} aims", columns, rows, packages=("numpy", "numba"))


def geometric_mean(values) -> float:
    return math.exp(mean(map(math.log, values)))


def plans() -> None:
    """What a plan after a fifth of the observations says, and what is then spent."""
    rows, pooled = [], []
    for name in TARGETS:
        problem, target = problem_of(name)
        quotients = []
        for replication in range(SEEDS):
            whole = needed(problem, target, replication)
            pilot = max(2 * len(problem) + 1, int(PILOT * whole))
            sources = simulated(problem, seed=1, replication=replication)
            with cs.learn(sources, pilot, target_loss=target, delta=DELTA, progress=False) as study:
                plan = study.plan()
                quotients.append((whole - study.progress().observations) / plan.total)
        pooled += quotients
        rows.append((name, target, *_spread(quotients)))
        print(*rows[-1], flush=True)
    rows.append(("all", "", *_spread(pooled)))
    columns = ("problem", "target loss", "median", "smallest", "largest", f"within {GOOD[0]} to {GOOD[1]}")
    title = "Observations that were needed, over what a plan after a fifth of them said"
    record(title, f"{COMMAND} plans", columns, rows, packages=("numpy", "numba"))


def _spread(quotients: list[float]) -> tuple[str, ...]:
    good = mean(GOOD[0] <= quotient <= GOOD[1] for quotient in quotients)
    return *(f"{summary(quotients):.2f}" for summary in (median, min, max)), f"{good:.0%}"


class Machine:
    """A machine that fails now and then; it goes to another process and back."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def __call__(self) -> int:
        return int(self.rng.random() < 0.3)


def workers() -> None:
    """One question about 'press' alone, with a budget of 6,000."""
    names, rows = ("press", "robot", "oven"), []
    with ProcessPoolExecutor(3) as pool:
        for what, given in (("none", {}), ("three processes", {"executor": pool, "workers": 3})):
            study = cs.learn(
                {name: Machine(seed) for seed, name in enumerate(names)}, 6_000, states=dict.fromkeys(names, 2),
                questions={"press": "reach 1 from 0 within 1"}, target_width=0.08, progress=False, **given,
            )  # fmt: skip
            told = study.allocation()
            reached = "yes" if study.stop_reason == "target_width" else "no"
            rows.append((what, *(f"{told[name]:,}" for name in names), reached))
            study.close()
    columns = ("executor", *names, "target width 0.08 reached")
    title = "Observations of three machines, of which only 'press' has a question (budget 6,000)"
    record(title, f"{COMMAND} workers", columns, rows)


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
    spent, number, compute = 0.0, 0, bounds.found
    clock = time.process_time

    def timed(asked):
        nonlocal spent, number
        began = clock()
        found = compute(asked)
        spent, number = spent + clock() - began, number + len(asked)
        return found

    states = {name: chain.states for name, chain in problem.chains.items()}
    with cs.Study.create(folder / f"{chains}-{size}.db", states, target_loss=1e-6) as study:
        for name in states:  # so that the kernels are loaded before the measurement
            study.tell(name, sources[name].advance()[0])
            study.tell(name, sources[name].advance()[0])
        bounds.found = timed
        began, used = time.perf_counter(), clock()
        try:
            for _ in range(OBSERVATIONS):
                name = study.ask()
                study.tell(name, sources[name].advance()[0])
        finally:
            bounds.found = compute
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
    parts = {"aims": aims, "plans": plans, "workers": workers, "costs": costs}
    for part in sys.argv[1:] or parts:
        parts[part]()
