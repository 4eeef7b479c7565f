"""Replications on a GPU: the kernel for a policy and a shape of problem, in as many launches as memory requires."""

import dis
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...policies import Policy, settings
from ...problems import Problem
from ...random import alias
from ..options import Options
from ..rule import RuleParts, of_length
from . import kernel
from .compile import GpuKernel, specialised_kernel
from .devices import MEMORY_SHARE, argument, arrays, compiler, free_bytes, is_simulated, scalars
from .layout import THREADS, WORD_BITS, Lanes, Layout, Outcome, Tables, count_type

#: A launch takes at most this many steps, about one second, so that Ctrl-C works; but it has at least as many
#: replications as keep the device busy.
LAUNCH_STEPS, LAUNCH_LANES = 40_000_000_000, 65_536

#: The precisions that rules are computed in.
PRECISIONS: dict[str, type] = {"float64": np.float64, "float32": np.float32}


@dataclass(frozen=True)
class KernelOptions:
    """The parameters, besides the layout, for which a kernel is specialised: a policy's functions and others."""

    parts: RuleParts
    #: Observations of a plan: max(``shortest``, ⌊block·T⌋), or those of a batch.
    block: float
    shortest: int
    batch: int
    budgets: int
    keep_counts: bool

    @property
    def reads_row(self) -> bool:
        """Whether ``terms`` reads its row. Most rules need only N_x and Σ_y N[x,y]²."""
        terms = self.parts.terms
        if terms is None or self.parts.entry is not None:
            return False
        row = terms.__code__.co_varnames[0]
        return any(row == step.argval or row in _several(step.argval) for step in dis.get_instructions(terms))

    @property
    def looks_last(self) -> bool:
        """Whether there are plans of more than one observation."""
        return self.block > 0 or self.shortest > 1

    @property
    def holds(self) -> bool:
        """Whether there are blocks in batches: a chain's index is then held until the end of its block."""
        return self.block > 0 and self.batch > 1


def _several(argument: Any) -> tuple[Any, ...]:
    """The names of an instruction that loads two variables at once."""
    return argument if isinstance(argument, tuple) else ()


@lru_cache(maxsize=64)
def specialised(rule: KernelOptions, layout: Layout, shared: frozenset[str]) -> GpuKernel:
    """The kernel, ready to be launched."""
    from numba import from_dtype

    simulated = is_simulated()

    def kind(of: type) -> Any:
        return from_dtype(np.dtype(of))

    parts = rule.parts
    packed = parts.entry is not None and "rows" not in shared
    of_entries = kernel.terms_of_words if packed else kernel.terms_of_entries
    bits = 8 * np.dtype(layout.count).itemsize
    names = parts.names | {
        "cuda": compiler(),
        "row_terms": of_entries if parts.entry else kernel.terms_of_row if rule.reads_row else kernel.terms_of_totals,
        **{name: of_length(layout.width)[name] for name in ("take_lane", "put_lane", "replace_all")},
        **scalars(),
        "real": float if simulated else layout.real,
        "counted": int if simulated else np.uint64 if layout.count is np.uint64 else np.uint32,
        "squared": float if layout.square is np.float64 else int if simulated else layout.square,
        "wide": float if layout.square is np.float64 else int if simulated else np.uint64,
        "count_type": kind(layout.count),
        "square_type": kind(layout.square),
        "real_type": kind(layout.real),
        "word_type": kind(np.uint64),
        "CHAINS": layout.chains,
        "STATES": layout.states,
        "WIDTH": layout.width,
        "BUDGETS": rule.budgets,
        "CLEARED": layout.chains * layout.states if "rows" in shared else 0,
        "THREADS": THREADS,
        "BATCH": rule.batch,
        "BLOCKS": rule.looks_last and rule.batch == 1,
        "HELD": rule.holds,
        "LOOKED": layout.looked,
        "KEEP_COUNTS": rule.keep_counts,
        "BLOCK": float(rule.block),
        "SHORTEST": rule.shortest,
        **{f"{group.upper()}_SHARED": group in shared for group in layout.groups},
        "PACKED": packed,
        "PER_WORD": WORD_BITS // bits,
        "COUNT_BITS": bits,
        "COUNT_MASK": (1 << bits) - 1,
        "NONE": int(np.iinfo(layout.count).max),
        "SHAPE_CHAINS": layout.chains,
        "SHAPE_STATES": layout.states,
        "SHAPE_ROWS": layout.chains * layout.states,
        "SHAPE_LOOKED": layout.groups["rows"]["looked"][0][0],
        "SHAPE_TERMS": layout.width,
        "SHAPE_THREADS": THREADS,
    }
    return specialised_kernel(kernel.run, names, layout.real, "rows" in shared)


def run(
    problem: Problem,
    policy: Policy,
    budgets: Sequence[int],
    replications: range,
    options: Options,
    *,
    keep_counts: bool = False,
    kernel_times: list[float] | None = None,
) -> tuple[Any, Any]:
    """→ loss and pulls (budget, replication, chain) in the device's memory, budgets ascending; or, if counts are to be
    kept, N (budget, replication, chain, x, y) instead of the loss.

    ``kernel_times`` takes the seconds of each launch by the device's own clock.
    """
    cuda, device = compiler(), arrays()
    rule, layout, read = _prepared(problem, policy, budgets, options, keep_counts)
    ready = specialised(rule, layout, layout.shared)
    tables = Tables._make(argument(device.asarray(array)) for array in read)
    shape = (len(budgets), len(replications), layout.chains)
    counted = (*shape, layout.states, layout.states)
    kind = np.uint32 if layout.count is np.uint16 else layout.count
    loss = device.zeros(counted, kind) if keep_counts else device.empty(shape, np.float64)
    pulls = device.empty(shape, np.int64)
    if not replications:
        return loss, pulls
    most = _most(layout, rule, int(budgets[-1]))
    # Some threads have nothing to do. Their arguments must exist, but are not read.
    lanes = -(-min(most, len(replications)) // THREADS) * THREADS
    state, to_clear = layout.allocate(device, lanes)
    work = [device.empty((number, lanes), kind) for number, kind in _scratch(layout, rule)]
    given = Lanes._make(argument(array) for array in (*state, *work))
    nothing = device.empty((1,) * 5, kind), device.empty((1,) * 3, np.float64)
    for begin in range(0, len(replications), most):
        part = slice(begin, min(begin + most, len(replications)))
        size = part.stop - part.start
        words = (np.uint64(size), np.uint64(options.seed), np.uint64(replications.start + begin))
        filled = (nothing[1], pulls[:, part], loss[:, part])
        if not keep_counts:
            filled = (loss[:, part], pulls[:, part], nothing[0])
        before, after = cuda.event(), cuda.event()
        before.record()
        for memory in to_clear:
            memory.fill(0)
        outcome = Outcome._make(argument(array) for array in filled)
        ready.launch(-(-size // THREADS), THREADS, (*words, tables, given, outcome))
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
    problem: Problem, policy: Policy, budgets: Sequence[int], options: Options, keep_counts: bool
) -> tuple[KernelOptions, Layout, list[npt.NDArray[Any]]]:
    """The options for which the kernel is specialised, and the data that it reads."""
    horizon, real = options.known(budgets[-1]), PRECISIONS[options.precision]
    known = [policy.prepare(setting) for setting in settings(problem.sizes, horizon, problem)]
    factors = [policy.factor(weight) for weight in options.weights_of(problem)]
    parts = RuleParts.of(policy, problem.sizes, known, factors, options.restless)
    rule = KernelOptions(parts, policy.block, options.shortest, options.batch, len(budgets), keep_counts)
    width = policy.width(problem.sizes[0], known[0])
    looked = rule.looks_last and policy.summary is None
    states = max(problem.sizes)
    layout = Layout(len(problem), states, width, count_type(int(budgets[-1]), states), real, looked)
    read = _padded(problem)
    constants: list[npt.NDArray[Any]] = [np.array(known, real).ravel(), np.array(factors, real)]
    return rule, layout, [np.array(budgets, np.uint64), *read[:3], *constants, read[3]]


def _padded(problem: Problem) -> list[npt.NDArray[Any]]:
    """Sizes, alias tables of the matrices and of the initial laws, and the matrices, padded to the largest S."""
    chains, states = len(problem), max(problem.sizes)
    rows, laws = np.zeros((chains, states, states), np.uint64), np.zeros((chains, states), np.uint64)
    matrices = np.zeros((chains, states, states))
    for k, chain in enumerate(problem.chains.values()):
        size = chain.size
        matrices[k, :size, :size] = chain.matrix
        rows[k, :size, :size] = alias.table(chain.matrix).reshape(size, size)
        laws[k, :size] = alias.table(chain.initial[None])
    return [np.array(problem.sizes, np.uint64), rows.ravel(), laws.ravel(), matrices.ravel()]


def _scratch(layout: Layout, rule: KernelOptions) -> list[tuple[int, type]]:
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


def _most(layout: Layout, rule: KernelOptions, longest: int) -> int:
    """The number of replications in a launch, limited by memory and by time."""
    scratch = sum(number * np.dtype(kind).itemsize for number, kind in _scratch(layout, rule))
    in_time = max(LAUNCH_LANES, LAUNCH_STEPS // longest)
    return max(THREADS, min(int(MEMORY_SHARE * free_bytes()) // (layout.bytes + scratch + 64), in_time))
