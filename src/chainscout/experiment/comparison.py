"""``compare``: policies × budgets × replications, on the same paths, cut into tasks of any size."""

import math
import platform
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from .. import engine as engines
from .. import policies as catalogue
from .._version import __version__
from ..engine.gpu import LAUNCH_LANES
from ..errors import InputError
from ..policies import Policy
from ..problems import Problem, find
from ..validation import number_array, quantile_failure, shown, whole_number
from .checkpoint import Checkpoint
from .identity import identity
from .results import Results
from .tasks import Task, run_all

#: The policies that are compared by default.
DEFAULT_POLICIES = ("uniform", "ba-mc", "scout", "oracle")

#: Steps for about a quarter of a second: the progress bar moves by this much, and Ctrl-C loses this much.
TASK_STEPS = {"cpu": 20_000_000, "python": 100_000, "gpu": 10_000_000_000}
#: The engine runs this many replications together. A task of fewer takes just as long.
SIDE_BY_SIDE = {"cpu": 4, "python": 4, "gpu": LAUNCH_LANES}
#: Results stay on the GPU that made them if they take at most this part of its memory.
DEVICE_SHARE = 0.3


class Interrupted(KeyboardInterrupt):
    """Ctrl-C: ``results`` has the replications that every policy had finished, None if there are none."""

    def __init__(self, results: Results | None) -> None:
        super().__init__("interrupted")
        self.results = results


def compare(
    problem: Problem | str,
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
    horizon: bool = True,
    distance: str = "squared",
    row_weights: str = "empirical",
    executor: Executor | None = None,
    progress: bool = False,
    checkpoint: str | Path | None = None,
) -> Results:
    """Every policy on the same paths; losses and pulls at every budget, in increasing order and each once.

    ``problem``: a problem, or what ``problems.find`` finds: the name of a built-in one, a file, a directory.
    A chain's path depends on (seed, replication, chain) alone. So policies are compared in pairs, and the result is the
    same to the bit for every number of threads, every ``executor`` and every cut into tasks. ``delta`` sets the
    quantile that is reported. ``weights``: how much each chain's loss counts for the policies. ``batch``: chains are
    chosen this many at a time. ``restless``: every chain moves at every step. ``horizon``: whether policies know the
    budget; a policy whose rule depends on it is run again for each budget, on the same paths. ``distance`` and
    ``row_weights`` choose another loss, as in :func:`chainscout.losses.loss`. ``checkpoint``: a directory for finished
    tasks; a later run takes them from there. Ctrl-C raises :class:`Interrupted`, a KeyboardInterrupt that carries the
    finished replications.
    """
    if isinstance(problem, str):
        problem = find(problem)
    if not isinstance(problem, Problem):
        raise InputError(f"compare needs a Problem, or the name or file of one, not {shown(problem)}")
    chosen = _policies(policies)
    steps = _budgets(budgets)
    number = whole_number(replications, "replications", meaning="how often each policy is run")
    options = engines.Options(
        seed=seed,
        engine=engines.resolved(engine),
        weights=None if weights is None else number_array(weights, "weights").ravel().tolist(),
        batch=batch,
        restless=restless,
        horizon=horizon,
        distance=distance,
        row_weights=row_weights,
    )
    known = steps if options.horizon else (None,)
    for policy in chosen.values():  # an impossible run is refused before anything is written or sent
        engines.check(problem, policy, steps, options)
    settings: dict[str, Any] = {
        "replications": number,
        "delta": quantile_failure(delta),
        **asdict(options),
        "weights": None if options.weights is None else list(options.weights),
        "policies": [identity(name, policy, problem, known) for name, policy in chosen.items()],
        "versions": versions(),
    }
    shape = (len(chosen), len(steps), number, len(problem))
    alone = executor is None and checkpoint is None
    arrays = _device_arrays(options, shape) if alone else None
    common = {"problem": problem, "budgets": steps, "options": options, "fetch": arrays is None}
    loss, pulls = _empty(arrays or np, shape)
    cuts = _cuts(number, steps[-1], options.engine, 0 if executor else len(steps) * len(problem))
    # All policies of the same replications together: an interrupted run is a comparison of fewer of them.
    lengths = [_length(problem, policy, steps, options) for policy in chosen.values()]
    tasks = [
        Task(p, policy, start, stop, lengths[p]) for start, stop in cuts for p, policy in enumerate(chosen.values())
    ]
    kept = None if checkpoint is None else Checkpoint(Path(checkpoint), problem, steps, settings)
    targets = _targets(problem, chosen, options.weights)
    done = np.zeros((len(chosen), number + 1), dtype=bool)
    try:
        for task, (task_loss, task_pulls) in run_all(tasks, common, executor, kept, progress):
            loss[task.place, :, task.start : task.stop] = task_loss
            pulls[task.place, :, task.start : task.stop] = task_pulls
            done[task.place, task.start : task.stop] = True
    except KeyboardInterrupt:
        upto = int(done.all(axis=0).argmin())  # the last place is never done
        part = (loss[:, :, :upto], pulls[:, :, :upto])
        done_settings = {**settings, "replications": upto}  # they repeat what was done, not what was planned
        results = Results(problem, tuple(chosen), steps, *part, targets, done_settings) if upto else None
        raise Interrupted(results) from None
    return Results(problem, tuple(chosen), steps, loss, pulls, targets, settings)


def _policies(policies: Sequence[str | Policy]) -> dict[str, Policy]:
    """The policies by the names under which they were given."""
    if isinstance(policies, (str, Policy)):
        policies = [policies]
    named: dict[str, Policy] = {}
    for policy in _iterated(policies, "policies must be names or Policy objects"):
        made = catalogue.get(policy)
        name = policy.strip() if isinstance(policy, str) else made.name
        if name in named:
            raise InputError(f"each policy can be compared once, and {shown(name)} is given twice")
        named[name] = made
    if not named:
        raise InputError("compare needs at least one policy, and none was given")
    return named


def _budgets(budgets: Iterable[int]) -> tuple[int, ...]:
    given = _iterated(budgets, "budgets must be numbers of observations")
    if not given:
        raise InputError("compare needs at least one budget, and none was given")
    return tuple(sorted({engines.whole_budget(budget) for budget in given}))


def _iterated(values: Any, wanted: str) -> list[Any]:
    try:
        return list(values)
    except TypeError:
        raise InputError(f"{wanted}, in a list, not {shown(values)}") from None


def _cuts(replications: int, longest: int, engine: str, results: int = 0) -> list[tuple[int, int]]:
    """Ranges of replications: about TASK_STEPS each, and at least eight if there are enough replications.

    A GPU of this machine must have room for the ``results`` of each, a loss and a number of pulls.
    """
    kind = engine.partition(":")[0]
    together = SIDE_BY_SIDE[kind]
    size = min(TASK_STEPS[kind] // longest, -(-replications // 8))
    size = max(together, size // together * together)
    if kind == "gpu" and results:
        from ..engine import gpu

        size = min(size, max(1, int(DEVICE_SHARE * gpu.free_bytes()) // (32 * results)))
    return [(start, min(start + size, replications)) for start in range(0, replications, size)]


def _length(problem: Problem, policy: Policy, budgets: tuple[int, ...], options: engines.Options) -> int:
    """The observations of one replication of a policy, over all its passes."""
    rule = policy.facing(options.known(budgets[-1]))
    return sum(group[-1] for group in engines.passes(problem, rule, budgets, options.horizon))


def _device_arrays(options: engines.Options, shape: tuple[int, ...]) -> Any:
    """The module for arrays on the GPU, if all results are made on one and it has room for them; else None."""
    if not options.on_gpu or engines.workers(options.engine)[0] > 1:
        return None
    from ..engine import gpu

    return gpu.arrays() if 16 * math.prod(shape) <= DEVICE_SHARE * gpu.free_bytes() else None


def _empty(arrays: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Empty arrays for losses and pulls."""
    try:
        return arrays.full(shape, np.nan), arrays.zeros(shape, dtype=np.int64)
    except (MemoryError, ValueError):  # ValueError: larger than any array can be
        raise InputError(
            f"the results of {shape[2]:,} replications take {16 * math.prod(shape):,} bytes, and there is no room for"
            " them: choose fewer replications, policies or budgets"
        ) from None


def _targets(problem: Problem, policies: dict[str, Policy], weights: Sequence[float] | None) -> Any:
    aims = [policy.aim(problem, weights) for policy in policies.values()]
    return np.array([np.full(len(problem), np.nan) if aim is None else aim for aim in aims])


def versions() -> dict[str, str]:
    """What an experiment is made with: name → version."""
    found = {name: version(name) for name in ("numpy", "numba")}
    machine = f"{sys.platform} {platform.machine()}"
    return {"chainscout": __version__, "python": platform.python_version(), "platform": machine, **found}
