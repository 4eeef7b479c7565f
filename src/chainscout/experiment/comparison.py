"""``compare``: policies × budgets × replications, in one pass over each replication, cut into tasks of any size."""

import platform
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from .. import policies as catalogue
from .._version import __version__
from ..checks import failure_probability, shown, whole_number
from ..engine import ENGINES
from ..errors import InputError
from ..policies import Policy
from ..problems import Problem
from .checkpoint import Checkpoint
from .results import Results
from .tasks import Interrupted, Task, run_all

__all__ = ["Interrupted", "compare"]

#: What is compared if nothing else is asked for.
DEFAULT_POLICIES = ("uniform", "ba-mc", "scout", "oracle")


def compare(
    problem: Problem,
    policies: Sequence[str | Policy] = DEFAULT_POLICIES,
    budgets: Iterable[int] = (1_000, 10_000),
    replications: int = 1_000,
    *,
    seed: int = 0,
    engine: str = "cpu",
    delta: float = 0.05,
    weights: Sequence[float] | None = None,
    batch: int = 1,
    restless: bool = False,
    executor: Executor | None = None,
    progress: bool = False,
    checkpoint: str | Path | None = None,
) -> Results:
    """Every policy on the same paths; losses and pulls at every budget.

    A chain's path depends on (seed, replication, chain) alone, so that policies are compared in pairs, and the result
    is the same to the bit for every number of threads, every ``executor`` and every cut into tasks. ``delta`` sets
    the quantile that is reported. ``batch``: chains are chosen this many at a time. ``restless``: every chain moves at
    every step. ``checkpoint``: a directory that finished tasks are kept in, and taken from.
    """
    if not isinstance(problem, Problem):
        raise InputError(f"compare needs a Problem, not {shown(problem)}")
    chosen = _policies(policies)
    targets = [whole_number(budget, "a budget", meaning="a number of observations") for budget in budgets]
    if not targets:
        raise InputError("compare needs at least one budget, and none was given")
    steps = tuple(sorted(set(targets)))
    number = whole_number(replications, "replications", meaning="how often each policy is run")
    whole_number(seed, "seed", least=0)
    if engine not in ENGINES:
        raise InputError(f"engine must be one of {', '.join(ENGINES)}, not {shown(engine)}")
    options = {
        "weights": None if weights is None else tuple(float(w) for w in weights),
        "batch": batch,
        "restless": restless,
    }
    settings: dict[str, Any] = {
        "seed": seed,
        "engine": engine,
        "replications": number,
        "delta": failure_probability(delta),
        **options,
        "versions": _versions(),
    }
    tasks = [
        Task(p, policy, start, stop)
        for p, policy in enumerate(chosen.values())
        for start, stop in _cuts(number, steps[-1], engine)
    ]
    kept = None if checkpoint is None else Checkpoint(Path(checkpoint), problem, tuple(chosen), steps, settings)
    common = {"problem": problem, "budgets": steps, "seed": seed, "engine": engine, **options}
    loss = np.full((len(chosen), len(steps), number, len(problem)), np.nan)
    pulls = np.zeros(loss.shape, dtype=np.int64)
    done = np.zeros((len(chosen), number), dtype=bool)

    def results(upto: int) -> Results:
        aims = np.full((len(chosen), len(problem)), np.nan)
        for place, policy in enumerate(chosen.values()):
            aim = policy.aim(problem, weights)
            if aim is not None:
                aims[place] = aim
        return Results(problem, tuple(chosen), steps, loss[:, :, :upto], pulls[:, :, :upto], aims, settings)

    try:
        for task, (task_loss, task_pulls) in run_all(tasks, common, executor, kept, progress):
            loss[task.place, :, task.start : task.stop] = task_loss
            pulls[task.place, :, task.start : task.stop] = task_pulls
            done[task.place, task.start : task.stop] = True
    except KeyboardInterrupt:
        raise Interrupted(results(int(np.append(done.all(axis=0), False).argmin()))) from None
    return results(number)


def _policies(policies: Sequence[str | Policy]) -> dict[str, Policy]:
    """The policies under the names that they were asked for."""
    if isinstance(policies, (str, Policy)):
        policies = [policies]
    named: dict[str, Policy] = {}
    for policy in policies:
        name = policy.name if isinstance(policy, Policy) else policy
        if name in named:
            raise InputError(f"each policy can be compared once, and {shown(name)} is given twice")
        named[name] = catalogue.get(policy)
    if not named:
        raise InputError("compare needs at least one policy, and none was given")
    return named


def _cuts(replications: int, longest: int, engine: str) -> list[tuple[int, int]]:
    """Ranges of replications of about a quarter of a second each: Ctrl-C waits for one, the bar moves by one."""
    steps = 20_000_000 if engine == "cpu" else 100_000
    size = max(1, min(steps // max(longest, 1), -(-replications // 8)))
    return [(start, min(start + size, replications)) for start in range(0, replications, size)]


def _versions() -> dict[str, str]:
    found = {name: version(name) for name in ("numpy", "numba")}
    return {"chainscout": __version__, "python": platform.python_version(), "platform": sys.platform, **found}
