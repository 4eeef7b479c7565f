"""Replications of one policy on one problem: a pure function of its arguments, with every engine."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..policies import Policy
from ..problems import Problem
from ..validation import replication_number, shown
from . import losses
from .cpu import State, prepare
from .options import DEFAULT, Options, check, passes, whole_budget

Array = npt.NDArray[np.float64]


def run(
    problem: Problem,
    policy: str | Policy,
    budgets: Sequence[int],
    replications: range,
    options: Options = DEFAULT,
    *,
    fetch: bool = True,
) -> tuple[Array, npt.NDArray[np.int64]]:
    """→ loss[budget, replication, chain] and pulls[budget, replication, chain].

    ``budgets`` may come in any order, and may repeat. A replication depends on (seed, its number) alone, so a range can
    be cut anywhere. Every budget gives the same result as alone: a policy whose constants depend on n starts again for
    each budget, on the same paths; all others read every budget in one pass. A loss is NaN while a chain has no
    transition. Without ``fetch`` the arrays stay in the memory of the device that made them (CuPy's).
    """
    if not isinstance(replications, range) or replications.step != 1 or replications.start < 0:
        raise InputError(f"replications must be a range of whole numbers ≥ 0, not {shown(replications)}")
    if replications:
        replication_number(replications[-1])
    ordered, place = np.unique(_budgets(budgets), return_inverse=True)
    chosen = check(problem, policy, ordered.tolist(), options)
    engine = _on_gpu if options.on_gpu else _on_cpu
    parts = [
        engine(problem, chosen, some, replications, options, fetch)
        for some in passes(problem, chosen, ordered.tolist(), options.horizon)
    ]
    loss, pulls = (arrays[0] if len(parts) == 1 else _joined(arrays) for arrays in zip(*parts, strict=True))
    return loss[place], pulls[place]


def _on_cpu(
    problem: Problem, policy: Policy, budgets: list[int], replications: range, options: Options, fetch: bool
) -> tuple[Array, npt.NDArray[np.int64]]:
    """Losses and pulls, some lanes at a time. They are in the host's memory already: nothing to ``fetch``."""
    prepared = prepare(problem, policy, options.known(budgets[-1]), options)
    stationary = losses.stationary_laws(problem, prepared.blocks, options)
    loss = np.zeros((len(budgets), len(replications), len(problem)))
    pulls = np.zeros(loss.shape, np.int64)
    for first in range(0, len(replications), lanes := prepared.lanes(len(replications) or 1)):
        state = State(prepared, options.seed, replications.start + first, lanes)
        wanted = min(lanes, len(replications) - first)
        for b, budget in enumerate(budgets):
            state.run(budget)
            if np.isnan(state.indices()).any():
                raise InputError(
                    f"the policy {policy.name!r} gave an index that is not a number, and indices must be comparable"
                )
            pulls[b, first : first + wanted] = state.pulls()[:wanted]
            losses.of_state(state, options, stationary, loss[b, first : first + wanted])
    return loss, pulls


def _on_gpu(
    problem: Problem, policy: Policy, budgets: list[int], replications: range, options: Options, fetch: bool
) -> tuple[Any, Any]:
    """Losses and pulls. The kernel computes the paper's loss. For other losses it returns counts, as memory allows."""
    from . import gpu

    if (options.distance, options.row_weights) == ("squared", "empirical"):
        loss, pulls = gpu.run(problem, policy, budgets, replications, options)
    else:
        loss = np.empty((len(budgets), len(replications), len(problem)))
        each = len(budgets) * len(problem) * max(problem.sizes) ** 2 * 8
        most = max(1, int(gpu.MEMORY_SHARE * gpu.free_bytes()) // (2 * each))
        parts = []
        for first in range(0, len(replications), most):
            some = replications[first : first + most]
            counts, pulled = gpu.run(problem, policy, budgets, some, options, keep_counts=True)
            loss[:, first : first + most] = losses.of_counts(problem, gpu.at_home(counts), options)
            parts.append(pulled)
        pulls = gpu.arrays().concatenate(parts, axis=1)
    if fetch:
        return gpu.at_home(loss), gpu.at_home(pulls)
    return gpu.arrays().asarray(loss), pulls


def _joined(parts: Sequence[Any]) -> Any:
    """Arrays one after the other, where they are."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    from . import gpu

    return gpu.arrays().concatenate(parts)


def trace(
    problem: Problem, policy: str | Policy, budget: int, replication: int = 0, options: Options = DEFAULT
) -> tuple[npt.NDArray[np.int64], Array]:
    """The chain observed at each step of one replication, and its index at that step."""
    budget = int(_budgets([budget])[0])
    replication = replication_number(replication)
    chosen = check(problem, policy, [budget], options)
    if options.on_gpu:
        raise InputError(
            "a trace is made by the engine 'python' or 'cpu': the engine 'gpu' keeps no record of its steps"
        )
    prepared = prepare(problem, chosen, options.known(budget), options)
    lanes = prepared.lanes(1)
    state = State(prepared, options.seed, replication, lanes)
    choices, values = np.zeros(budget * lanes, np.uint64), np.zeros(budget * lanes)
    state.run(budget, (choices, values))
    return choices.reshape(budget, lanes)[:, 0].astype(np.int64), values.reshape(budget, lanes)[:, 0]


def _budgets(budgets: Sequence[int]) -> list[int]:
    checked = [whole_budget(budget) for budget in budgets]
    if not checked:
        raise InputError("a run needs at least one budget, and none was given")
    return checked
