"""Replications of one policy on one problem: a pure function of its arguments, whatever the engine."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import policies
from ..counts import MOST_TRANSITIONS, smoothing
from ..errors import InputError
from ..losses import DISTANCES, WEIGHTS, of_transitions
from ..policies import Policy, settings
from ..problems import Problem
from ..validation import one_of, real_number, replication_number, seed_number, shown, whole_number
from .state import Block, State, alike_neighbours, prepare

#: ``python`` interprets the loop, ``cpu`` compiles it; both give the same bits. ``gpu`` runs one thread a replication
#: on an NVIDIA GPU, on the same paths: in double precision with the same choices, or faster in single precision.
ENGINES = ("python", "cpu", "gpu", "gpu:float32")

#: Stands for the fastest engine that this machine has.
AUTO = "auto"

Array = npt.NDArray[np.float64]

#: Losses of about this many probabilities are computed at a time.
SLAB = 1 << 20


def resolved(engine: str) -> str:
    """The engine's name, with ``auto`` as ``gpu`` where there is one and as ``cpu`` elsewhere."""
    if engine == AUTO:
        from . import gpu

        return "gpu" if gpu.is_available() else "cpu"
    return one_of(engine, "engine", (*ENGINES, AUTO))


def workers(engine: str) -> tuple[int, Callable[[], None]]:
    """How many threads an engine wants, and what each of them does first: one a core, or one a GPU, which it uses."""
    if engine.startswith("gpu"):
        from . import gpu

        devices = iter(range(gpu.number()))
        return gpu.number(), lambda: gpu.use(next(devices))
    return os.cpu_count() or 1, lambda: None


def run(
    problem: Problem,
    policy: str | Policy,
    budgets: Sequence[int],
    replications: range,
    seed: int = 0,
    engine: str = "cpu",
    *,
    weights: Sequence[float] | None = None,
    batch: int = 1,
    restless: bool = False,
    horizon: bool = True,
    distance: str = "squared",
    row_weights: str = "empirical",
    fetch: bool = True,
) -> tuple[Array, npt.NDArray[np.int64]]:
    """→ loss[budget, replication, chain] and pulls[budget, replication, chain].

    ``budgets`` may come in any order, repeated too. A replication depends on (seed, its number) alone, so that a range
    can be cut anywhere. ``horizon``: whether the policy knows the budget. Every budget gives what it would give alone:
    a policy whose constants depend on n begins anew for each, on the same paths; all others read every budget in one
    pass. A loss is NaN while a chain has shown no transition. ``distance`` and ``row_weights`` are those of
    :func:`chainscout.loss`. Without ``fetch`` the arrays stay in the memory of the device that made them (CuPy's).
    """
    if not isinstance(replications, range) or replications.step != 1 or replications.start < 0:
        raise InputError(f"replications must be a range of whole numbers ≥ 0, not {shown(replications)}")
    if replications:
        replication_number(replications[-1])
    one_of(distance, "distance", DISTANCES)
    one_of(row_weights, "row_weights", WEIGHTS)
    ordered, place = np.unique(_budgets(budgets), return_inverse=True)
    seed = seed_number(seed)
    known, chosen, factors = _checked(problem, policy, int(ordered[-1]), engine, weights, batch, restless, horizon)
    separate = passes(problem, chosen, ordered.tolist(), horizon)
    if len(separate) > 1:
        modes: dict[str, Any] = {"weights": weights, "batch": batch, "restless": restless, "fetch": fetch}
        modes.update(distance=distance, row_weights=row_weights)
        parts = [run(problem, policy, some, replications, seed, engine, **modes) for some in separate]
        loss, pulls = (_joined(arrays) for arrays in zip(*parts, strict=True))
        return loss[place], pulls[place]
    if engine.startswith("gpu"):
        if not replications:  # to be checked; whoever runs them has the device
            for setting in settings(problem.sizes, known, problem):
                chosen.prepare(setting)
            shape = (len(place), 0, len(problem))
            return np.empty(shape), np.empty(shape, np.int64)
        given = {
            "seed": seed,
            "horizon": known,
            "weights": factors,
            "precision": engine.partition(":")[2] or "float64",
            "batch": batch,
            "restless": restless,
        }
        loss, pulls = _on_gpu(problem, chosen, ordered.tolist(), replications, given, distance, row_weights, fetch)
        return loss[place], pulls[place]
    prepared = prepare(problem, chosen, known, engine, factors, batch, restless)
    stationary = _stationary(problem, prepared.blocks) if row_weights == "stationary" else None
    loss = np.zeros((len(ordered), len(replications), len(problem)))
    pulls = np.zeros(loss.shape, np.int64)
    for first in range(0, len(replications), lanes := prepared.lanes(len(replications) or 1)):
        state = State(prepared, seed, replications.start + first, lanes)
        wanted = min(lanes, len(replications) - first)
        for b, budget in enumerate(ordered):
            state.run(int(budget))
            _check(state)
            pulls[b, first : first + wanted] = state.pulls()[:wanted]
            _read(state, wanted, distance, row_weights, stationary, loss[b, first : first + wanted])
    return loss[place], pulls[place]


def passes(problem: Problem, policy: Policy, budgets: Sequence[int], horizon: bool) -> list[list[int]]:
    """The budgets, in order, in groups that one pass over a replication can read.

    A budget reaches a policy through its constants alone. Where they are the same for two budgets, so are the choices.
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


def _joined(parts: Sequence[Any]) -> Any:
    """Arrays one after the other, where they are."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    from . import gpu

    return gpu.arrays().concatenate(parts)


def trace(
    problem: Problem,
    policy: str | Policy,
    budget: int,
    replication: int = 0,
    seed: int = 0,
    engine: str = "cpu",
    *,
    weights: Sequence[float] | None = None,
    batch: int = 1,
    restless: bool = False,
    horizon: bool = True,
) -> tuple[npt.NDArray[np.int64], Array]:
    """The chain observed at each step of one replication, and the index that it was observed for."""
    budget = int(_budgets([budget])[0])
    seed, replication = seed_number(seed), replication_number(replication)
    known, chosen, factors = _checked(problem, policy, budget, engine, weights, batch, restless, horizon)
    if engine.startswith("gpu"):
        raise InputError(
            "a trace is made by the engine 'python' or 'cpu': the engine 'gpu' keeps no record of its steps"
        )
    prepared = prepare(problem, chosen, known, engine, factors, batch, restless)
    lanes = prepared.lanes(1)
    state = State(prepared, seed, replication, lanes)
    choices, values = np.zeros(budget * lanes, np.uint64), np.zeros(budget * lanes)
    state.run(budget, (choices, values))
    return choices.reshape(budget, lanes)[:, 0].astype(np.int64), values.reshape(budget, lanes)[:, 0]


def _budgets(budgets: Sequence[int]) -> list[int]:
    checked = [whole_budget(budget) for budget in budgets]
    if not checked:
        raise InputError("a run needs at least one budget, and none was given")
    return checked


def whole_budget(budget: Any) -> int:
    """A budget that can be counted: counts are floats, which hold every whole number up to there."""
    return whole_number(budget, "a budget", meaning="a number of observations", most=MOST_TRANSITIONS)


def _checked(
    problem: Problem,
    policy: str | Policy,
    budget: int,
    engine: str,
    weights: Sequence[float] | None,
    batch: int,
    restless: bool,
    horizon: bool,
) -> tuple[int | None, Policy, list[float]]:
    """The horizon that the policy knows, the policy for it, and the chains' weights."""
    if not isinstance(problem, Problem):
        raise InputError(f"a run needs a Problem, not {shown(problem)}")
    one_of(engine, "engine", ENGINES)
    whole_number(batch, "batch", meaning="how many observations are planned at a time")
    if restless and batch > 1:
        raise InputError("restless chains are observed in blocks, one chain at a time: batch must be 1")
    known = budget if horizon else None
    chosen = policies.get(policy).facing(known)
    factors = [1.0] * len(problem) if weights is None else [_weight(value) for value in weights]
    if len(factors) != len(problem):
        raise InputError(f"weights must be one a chain, {len(problem)} in all, not {shown(list(factors))}")
    return known, chosen, factors


def _weight(value: Any) -> float:
    return real_number(value, "weights", above=0.0, meaning="how much a chain's loss counts")


def _check(state: State) -> None:
    if np.isnan(state.indices()).any():
        name = state.prepared.policy.name
        raise InputError(f"the policy {name!r} gave an index that is not a number, and indices must be comparable")


def _on_gpu(
    problem: Problem,
    policy: Policy,
    budgets: list[int],
    replications: range,
    given: Mapping[str, Any],
    distance: str,
    row_weights: str,
    fetch: bool,
) -> tuple[Any, Any]:
    """Losses and pulls. The kernel computes the paper's loss; for others it gives the counts, as many as have room."""
    from . import gpu

    if (distance, row_weights) == ("squared", "empirical"):
        loss, pulls = gpu.run(problem, policy, budgets, replications, **given)
    else:
        loss = np.empty((len(budgets), len(replications), len(problem)))
        each = len(budgets) * len(problem) * max(problem.sizes) ** 2 * 8
        most = max(1, int(gpu.MEMORY_SHARE * gpu.free_bytes()) // (2 * each))
        parts = []
        for first in range(0, len(replications), most):
            counts, some = gpu.run(
                problem, policy, budgets, replications[first : first + most], **given, keep_counts=True
            )
            loss[:, first : first + most] = _of_counts(problem, gpu.at_home(counts), distance, row_weights)
            parts.append(some)
        pulls = gpu.arrays().concatenate(parts, axis=1)
    if fetch:
        return gpu.at_home(loss), gpu.at_home(pulls)
    return gpu.arrays().asarray(loss), pulls


def _stationary(problem: Problem, blocks: Sequence[Block]) -> list[Array]:
    chains = list(problem.chains.values())
    return [
        np.array([chain.stationary for chain in chains[block.first : block.first + block.number]]) for block in blocks
    ]


def _read(
    state: State, lanes: int, distance: str, row_weights: str, stationary: list[Array] | None, out: Array
) -> None:
    """The loss of every lane and chain, a slab of chains at a time."""
    for number, block in enumerate(state.prepared.blocks):
        step = max(1, SLAB // (lanes * block.size * block.size))
        for first in range(0, block.number, step):
            part = slice(first, first + step)
            counts = state.counts(block)[:lanes, part]
            laws = None if stationary is None else stationary[number][part]
            chains = slice(block.first + first, block.first + min(first + step, block.number))
            out[:, chains] = _losses(counts, block, part, distance, row_weights, laws)


def _of_counts(problem: Problem, counts: npt.NDArray[Any], distance: str, row_weights: str) -> Array:
    """The losses (budget, replication, chain) from N (budget, replication, chain, x, y), padded to the largest S."""
    blocks = alike_neighbours(problem)
    stationary = _stationary(problem, blocks) if row_weights == "stationary" else None
    loss = np.empty(counts.shape[:3])
    for number, block in enumerate(blocks):
        chains = slice(block.first, block.first + block.number)
        laws = None if stationary is None else stationary[number]
        step = max(1, SLAB // (block.number * block.size**2))
        for b in range(len(counts)):
            for first in range(0, counts.shape[1], step):
                lanes = slice(first, first + step)
                part = counts[b, lanes, chains, : block.size, : block.size].astype(np.float64)
                loss[b, lanes, chains] = _losses(part, block, slice(None), distance, row_weights, laws)
    return loss


def _losses(counts: Array, block: Block, part: slice, distance: str, row_weights: str, laws: Array | None) -> Array:
    counts = np.ascontiguousarray(counts)
    if row_weights == "empirical":
        exits = counts.sum(axis=-1)
        with np.errstate(invalid="ignore"):  # T = 0 has no loss yet: NaN
            weight = exits / exits.sum(axis=-1, keepdims=True)
    else:
        weight = np.broadcast_to(np.ones(block.size) if laws is None else laws, counts.shape[:-1])
    return of_transitions(block.matrices[part], counts, weight, distance, smoothing(None, block.size))
