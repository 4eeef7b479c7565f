"""Replications on a GPU, in as many launches as its memory asks for."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...policies import Policy, settings
from ...problems import Problem
from ..specialising import Parts
from ..state import RESTLESS_BLOCK
from .devices import MEMORY_SHARE, argument, arrays, compiler, free_bytes
from .memory import THREADS, Layout, count_type
from .specialising import Rule, specialised
from .tables import tables

#: A launch takes at most so many steps, about a second's worth, so that Ctrl-C is heard; but not fewer replications
#: than keep the device busy.
LAUNCH_STEPS, LAUNCH_LANES = 40_000_000_000, 65_536

#: The precisions that rules are computed in.
PRECISIONS: dict[str, type] = {"float64": np.float64, "float32": np.float32}


def run(
    problem: Problem,
    policy: Policy,
    budgets: Sequence[int],
    replications: range,
    seed: int,
    horizon: int | None,
    weights: Sequence[float],
    precision: str = "float64",
    batch: int = 1,
    restless: bool = False,
    keep_counts: bool = False,
    *,
    kernel_times: list[float] | None = None,
) -> tuple[Any, Any]:
    """→ loss and pulls (budget, replication, chain) in the device's memory, budgets ascending; or, if counts are to be
    kept, N (budget, replication, chain, x, y) instead of the loss.

    ``kernel_times`` takes the seconds of each launch by the device's own clock.
    """
    cuda, device = compiler(), arrays()
    rule, layout, tables = _prepared(
        problem, policy, budgets, horizon, weights, PRECISIONS[precision], batch, restless, keep_counts
    )
    ready = specialised(rule, layout, layout.shared)
    read = [device.asarray(array) for array in tables]
    shape = (len(budgets), len(replications), layout.chains)
    counted = (*shape, layout.states, layout.states)
    kind = np.uint32 if layout.count is np.uint16 else layout.count
    loss = device.zeros(counted, kind) if keep_counts else device.empty(shape, np.float64)
    pulls = device.empty(shape, np.int64)
    if not replications:
        return loss, pulls
    most = _most(layout, rule, int(budgets[-1]))
    # Some threads have nothing to do; what they are given must exist, and is not looked at.
    lanes = -(-min(most, len(replications)) // THREADS) * THREADS
    state, to_clear = layout.allocate(device, lanes)
    work = [*(device.empty((number, lanes), kind) for number, kind in _scratch(layout, rule)), *state]
    nothing = device.empty((1,) * 5, kind), device.empty((1,) * 3, np.float64)
    for begin in range(0, len(replications), most):
        part = slice(begin, min(begin + most, len(replications)))
        size = part.stop - part.start
        words = (np.uint64(size), np.uint64(seed), np.uint64(replications.start + begin))
        outcome = (nothing[1], pulls[:, part], loss[:, part])
        if not keep_counts:
            outcome = (loss[:, part], pulls[:, part], nothing[0])
        before, after = cuda.event(), cuda.event()
        before.record()
        for memory in to_clear:
            memory.fill(0)
        given = [argument(array) for array in (*read, *outcome, *work)]
        ready.launch(-(-size // THREADS), THREADS, (*words, *given))
        after.record()
        after.synchronize()
        if kernel_times is not None:
            kernel_times.append(cuda.event_elapsed_time(before, after) / 1000)
    if int(pulls.min()) < 0:
        raise InputError(
            f"the policy {policy.name!r} gave an index that is not a number, and indices must be comparable"
        )
    return loss, pulls


def _prepared(
    problem: Problem,
    policy: Policy,
    budgets: Sequence[int],
    horizon: int | None,
    weights: Sequence[float],
    real: type,
    batch: int,
    restless: bool,
    keep_counts: bool,
) -> tuple[Rule, Layout, list[npt.NDArray[Any]]]:
    """What the kernel is specialised for, and what it is given."""
    known = [policy.prepare(setting) for setting in settings(problem.sizes, horizon, problem)]
    factors = [policy.factor(weight) for weight in weights]
    rule = Rule(
        Parts.of(policy, problem.sizes, known, factors, restless),
        policy.block,
        RESTLESS_BLOCK if restless else 1,
        batch,
        len(budgets),
        keep_counts,
    )
    width = policy.width(problem.sizes[0], known[0])
    looked = rule.looks_last and policy.summary is None
    states = max(problem.sizes)
    layout = Layout(len(problem), states, width, count_type(int(budgets[-1]), states), real, looked)
    return (
        rule,
        layout,
        [np.array(budgets, np.uint64), *tables(problem, np.array(known, real), np.array(factors, real))],
    )


def _scratch(layout: Layout, rule: Rule) -> list[tuple[int, type]]:
    """Space of a replication for a summary or a row, for a batch's plan and for blocks in batches: how many words of
    which type; one word where there is no such thing."""
    states = layout.states if rule.parts.summary or rule.reads_row else 0
    in_batches = layout.chains if rule.batch > 1 else 1
    held = layout.chains if rule.holds else 1
    return [
        (max(1, 4 * states), layout.real),
        (max(1, 2 * states), np.int64),
        (in_batches, np.uint32),
        (rule.batch, np.uint32),
        (held, np.uint64),
        (held, layout.real),
    ]


def _most(layout: Layout, rule: Rule, longest: int) -> int:
    """How many replications a launch takes, by memory and by time."""
    scratch = sum(number * np.dtype(kind).itemsize for number, kind in _scratch(layout, rule))
    in_time = max(LAUNCH_LANES, LAUNCH_STEPS // longest)
    return max(THREADS, min(int(MEMORY_SHARE * free_bytes()) // (layout.bytes + scratch + 64), in_time))
