"""The options of a run, in one record: ``compare`` makes it, and every engine reads it."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .. import policies
from ..counts import MOST_TRANSITIONS
from ..errors import InputError
from ..losses import DISTANCES, WEIGHTS
from ..policies import Policy, settings
from ..problems import Problem
from ..validation import one_of, real_number, seed_number, shown, truth_value, whole_number

#: ``python`` interprets the loop, ``cpu`` compiles it; both give the same bits. ``gpu`` runs one thread per replication
#: on an NVIDIA GPU, on the same paths: in double precision with the same choices, or faster in single precision.
ENGINES = ("python", "cpu", "gpu", "gpu:float32")

#: The name for the fastest engine of this machine.
AUTO = "auto"

#: In restless mode a chain is observed at least this many times in a row, because every block loses one transition.
RESTLESS_BLOCK = 50


@dataclass(frozen=True)
class Options:
    """The options of a run besides problem, policy, budgets and replications. They are checked on construction.

    ``weights``: how much each chain's loss counts to the policy. ``batch``: chains are chosen this many at a time.
    ``restless``: every chain moves at every step. ``horizon``: whether the policy knows the budget. ``distance`` and
    ``row_weights`` are those of :func:`chainscout.loss`.
    """

    seed: int = 0
    engine: str = "cpu"
    weights: Sequence[float] | None = None
    batch: int = 1
    restless: bool = False
    horizon: bool = True
    distance: str = "squared"
    row_weights: str = "empirical"

    def __post_init__(self) -> None:
        checked = {
            "seed": seed_number(self.seed),
            "engine": one_of(self.engine, "engine", ENGINES),
            "weights": None if self.weights is None else tuple(_weight(value) for value in self.weights),
            "batch": whole_number(self.batch, "batch", meaning="how many observations are planned at a time"),
            "restless": truth_value(self.restless, "restless", meaning="whether every chain moves at every step"),
            "horizon": truth_value(self.horizon, "horizon", meaning="whether policies know the budget"),
            "distance": one_of(self.distance, "distance", DISTANCES),
            "row_weights": one_of(self.row_weights, "row_weights", WEIGHTS),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.restless and self.batch > 1:
            raise InputError("restless chains are observed in blocks, one chain at a time: batch must be 1")

    @property
    def on_gpu(self) -> bool:
        """Whether a GPU runs the replications."""
        return self.engine.startswith("gpu")

    @property
    def precision(self) -> str:
        """The precision that a GPU computes rules in."""
        return self.engine.partition(":")[2] or "float64"

    @property
    def shortest(self) -> int:
        """The least number of observations of a chosen chain."""
        return RESTLESS_BLOCK if self.restless else 1

    def known(self, budget: int) -> int | None:
        """The budget, if the policy knows it."""
        return budget if self.horizon else None

    def weights_of(self, problem: Problem) -> list[float]:
        """How much each chain's loss counts."""
        given = [1.0] * len(problem) if self.weights is None else list(self.weights)
        if len(given) != len(problem):
            raise InputError(f"weights must be one a chain, {len(problem)} in all, not {shown(given)}")
        return given


def _weight(value: Any) -> float:
    return real_number(value, "weights", above=0.0, meaning="how much a chain's loss counts")


#: The default options.
DEFAULT = Options()


def check(problem: Problem, policy: str | Policy, budgets: Sequence[int], options: Options) -> Policy:
    """The policy for these budgets, in increasing order, if it can be run with these options.

    An impossible run is refused here, before anything is simulated, written or sent.
    """
    if not isinstance(problem, Problem):
        raise InputError(f"a run needs a Problem, not {shown(problem)}")
    chosen = policies.get(policy).facing(options.known(budgets[-1]))
    options.weights_of(problem)
    for budget in budgets if options.horizon else budgets[-1:]:
        for setting in settings(problem.sizes, options.known(budget), problem):
            chosen.prepare(setting)
    return chosen


def whole_budget(budget: Any) -> int:
    """A checked budget. Its limit is the largest number up to which floats hold every whole number."""
    return whole_number(budget, "a budget", meaning="a number of observations", most=MOST_TRANSITIONS)


def passes(problem: Problem, policy: Policy, budgets: Sequence[int], horizon: bool) -> list[list[int]]:
    """The budgets, in order, in groups that one pass over a replication can read.

    A policy depends on the budget only through its constants. If they are equal for two budgets, so are the choices.
    """
    if not horizon or len(budgets) == 1:
        return [list(budgets)]
    groups: list[list[int]] = []
    before = None
    for budget in budgets:
        constants = [policy.prepare(setting) for setting in settings(problem.sizes, budget, problem)]
        if constants == before:
            groups[-1].append(budget)
        else:
            groups.append([budget])
        before = constants
    return groups


def resolved(engine: str) -> str:
    """The engine's name, with ``auto`` as ``gpu`` where there is one and as ``cpu`` elsewhere."""
    if engine == AUTO:
        from . import gpu

        return "gpu" if gpu.is_available() else "cpu"
    return one_of(engine, "engine", (*ENGINES, AUTO))


def workers(engine: str) -> tuple[int, Callable[[], None]]:
    """How many threads an engine needs, and what each does first: one per core, or one per GPU, which it selects."""
    if engine.startswith("gpu"):
        from . import gpu

        devices = iter(range(gpu.number()))
        return gpu.number(), lambda: gpu.use(next(devices))
    return os.cpu_count() or 1, lambda: None
