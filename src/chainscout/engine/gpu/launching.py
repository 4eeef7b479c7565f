"""Replications on a GPU: memory, launches, results."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import ChainscoutError, InputError, MissingExtraError
from ...policies import Policy, settings
from ...problems import Problem
from .. import alias
from ..specialising import no_entry, no_floor
from . import kernel as code
from .compiling import kernel

Array = npt.NDArray[np.float64]

#: Threads of a block. One warp: blocks are small, so that several share a multiprocessor's memory.
THREADS = 32
#: What a block may take of shared memory without asking for more.
SHARED_BYTES = 48 * 1024
#: The replications of one launch take at most this part of the free device memory.
MEMORY_SHARE = 0.6
#: And at most so many steps, about a second's worth, so that Ctrl-C is heard.
LAUNCH_STEPS = 40_000_000_000

PRECISIONS = {"float64": np.float64, "float32": np.float32}


class NoDeviceError(ChainscoutError):
    """There is no GPU, or its driver does not answer."""

    exit_status = 2


def is_available() -> bool:
    """Whether the engine ``gpu`` can run here."""
    try:
        _cuda()
    except ChainscoutError:
        return False
    return True


def _cuda() -> Any:
    try:
        import numba_cuda  # noqa: F401  # numba's own CUDA target is no longer kept up
        from numba import cuda
    except ImportError:
        raise MissingExtraError("the engine 'gpu'", "gpu") from None
    if not cuda.is_available():
        raise NoDeviceError(
            "the engine 'gpu' needs an NVIDIA GPU and its driver, and none answers; 'cpu' runs everywhere"
        )
    return cuda


def run(
    problem: Problem,
    policy: Policy,
    budgets: Sequence[int],
    replications: range,
    seed: int,
    horizon: int | None,
    weights: Sequence[float],
    precision: str = "float64",
    *,
    kernel_times: list[float] | None = None,
) -> tuple[Array, npt.NDArray[np.int64]]:
    """→ loss and pulls (budget, replication, chain), budgets ascending.

    ``kernel_times`` takes the seconds of each launch by the device's own clock.
    """
    cuda = _cuda()
    real = PRECISIONS[precision]
    chains, states = len(problem), max(problem.sizes)
    constants = np.array([policy.prepare(setting) for setting in settings(problem.sizes, horizon, problem)], real)
    if constants.shape[1] == 0:
        constants = np.zeros((chains, 1), real)
    width = policy.width(problem.sizes[0], constants[0].tolist())
    longest = int(budgets[-1])
    layout = Layout(chains, states, width, longest, real, policy.block > 0, policy.summary is not None)
    ready = _kernel(policy, layout, len(budgets), real)
    scales = np.array([policy.factor(weight) for weight in weights], real)
    tables = [cuda.to_device(array) for array in _tables(problem, states, constants, scales)]
    sizes, table, laws, known, factors, matrices = tables
    ends = cuda.to_device(np.array(budgets, np.uint64))
    loss = np.empty((len(budgets), len(replications), chains))
    pulls = np.empty(loss.shape, np.int64)
    most = layout.most(cuda, len(budgets), longest)
    for begin in range(0, len(replications), most):
        number = min(most, len(replications) - begin)
        rounded = -(-number // THREADS) * THREADS
        device_loss = cuda.device_array((len(budgets), number, chains), np.float64)
        device_pulls = cuda.device_array((len(budgets), number, chains), np.int64)
        scratch = [cuda.device_array((rows, rounded), kind) for rows, kind in layout.scratch()]
        state = [] if layout.fits else [cuda.device_array((rows, rounded), kind) for rows, kind in layout.state()]
        words = (np.uint64(number), np.uint64(seed), np.uint64(replications.start + begin))
        before, after = cuda.event(), cuda.event()
        before.record()
        ready[rounded // THREADS, THREADS](
            *words, ends, sizes, table, laws, known, factors, matrices, device_loss, device_pulls, *scratch, *state
        )
        after.record()
        after.synchronize()
        if kernel_times is not None:
            kernel_times.append(cuda.event_elapsed_time(before, after) / 1000)
        loss[:, begin : begin + number] = device_loss.copy_to_host()
        pulls[:, begin : begin + number] = device_pulls.copy_to_host()
    return loss, pulls


class Layout:
    """The elements of a replication's state, and whether they fit into shared memory."""

    def __init__(
        self, chains: int, states: int, width: int, longest: int, real: type, blocks: bool, summary: bool
    ) -> None:
        self.chains, self.states, self.width, self.real = chains, states, width, real
        self.blocks, self.summary = blocks, summary
        # As wide as n asks for: what is smaller leaves room for more replications at a time.
        self.count = np.uint16 if longest < 1 << 16 else np.uint32 if longest < 1 << 32 else np.uint64
        self.square = np.uint32 if longest < 1 << 16 else np.uint64

    @property
    def looked(self) -> bool:
        """Whether rows keep their exits of the last look."""
        return self.blocks and not self.summary

    @property
    def key(self) -> tuple[Any, ...]:
        """What a kernel is specialised for."""
        return (self.chains, self.states, self.width, self.real, self.blocks, self.summary, self.count, self.square)

    def state(self) -> list[tuple[int, type]]:
        """Rows and type of each array, in the order of the kernel's arguments."""
        cells, rows = self.chains * self.states**2, self.chains * self.states
        looked = rows if self.looked else 1
        return [
            (cells, self.count),
            (rows, self.count),
            (rows, self.square),
            (looked, self.count),
            (rows * self.width, self.real),
            (self.chains * self.width, self.real),
            (self.chains, self.count),
            (self.chains, self.count),
            (self.chains, self.count),
            (self.chains, np.uint64),
            (self.chains, np.uint64),
            (self.chains, self.real),
        ]

    def scratch(self) -> list[tuple[int, type]]:
        """A summary's scratch space, in device memory."""
        return (
            [(4 * self.states, self.real), (2 * self.states, np.int64)]
            if self.summary
            else [(1, self.real), (1, np.int64)]
        )

    @property
    def bytes(self) -> int:
        """What one replication's state takes."""
        return sum(rows * np.dtype(kind).itemsize for rows, kind in self.state())

    @property
    def fits(self) -> bool:
        """Whether a block's replications fit into shared memory."""
        return self.bytes * THREADS <= SHARED_BYTES

    def most(self, cuda: Any, budgets: int, longest: int) -> int:
        """How many replications a launch takes, by memory and by time."""
        free = min(float(cuda.current_context().get_memory_info()[0]), 1e15)  # the simulator's is infinite
        each = budgets * self.chains * 16 + sum(rows * np.dtype(kind).itemsize for rows, kind in self.scratch())
        each += 0 if self.fits else self.bytes
        return max(THREADS, min(int(MEMORY_SHARE * free) // each, LAUNCH_STEPS // max(1, longest)))


def _tables(problem: Problem, states: int, constants: Any, scales: Any) -> list[npt.NDArray[Any]]:
    """Sizes, alias tables of the rows and of the initial laws, constants, weights and matrices, padded to S states."""
    chains = len(problem)
    table, laws = np.zeros(chains * states * states, np.uint64), np.zeros(chains * states, np.uint64)
    matrices = np.zeros((chains, states, states))
    for k, chain in enumerate(problem.chains.values()):
        size = chain.size
        scratch = np.zeros(size, np.uint64), np.zeros(size, np.uint64)
        matrices[k, :size, :size] = chain.matrix
        lists = [table.tolist(), alias.parts(chain.matrix).ravel().tolist(), *(s.tolist() for s in scratch)]
        alias.fill(lists[0], k * states * states, states, size, size, *lists[1:])
        table[:] = lists[0]
        lists = [laws.tolist(), alias.parts(chain.initial[None]).ravel().tolist(), *(s.tolist() for s in scratch)]
        alias.fill(lists[0], k * states, states, 1, size, *lists[1:])
        laws[:] = lists[0]
    return [np.array(problem.sizes, np.uint64), table, laws, constants, scales, matrices.ravel()]


def _kernel(policy: Policy, layout: Layout, budgets: int, real: type) -> Any:
    rules = (policy.terms, policy.index, policy.entry, policy.summary, policy.floor, policy.block)
    return _specialised(rules, layout.key, layout.fits, budgets, real)


@lru_cache(maxsize=64)
def _specialised(rules: Any, key: tuple[Any, ...], fits: bool, budgets: int, real: type) -> Any:
    from numba import config, cuda

    terms, index, entry, summary, floor, block = rules
    chains, states, width, _, blocks, is_summary, count, square = key
    rows, cells = chains * states, chains * states * states
    simulated = bool(getattr(config, "ENABLE_CUDASIM", False))
    names = {
        "cuda": cuda,
        "terms": terms,
        "index": index,
        "entry": entry or no_entry,
        "summary": summary,
        "floor": floor or no_floor,
        "row_terms": code.terms_of_row if entry is None else code.terms_of_entries,
        "whole": int if simulated else np.uint64,
        "signed": int if simulated else np.int64,
        "real": float if simulated else real,
        "count_type": _type(count),
        "square_type": _type(square),
        "real_type": _type(real),
        "word_type": _type(np.uint64),
        "CHAINS": chains,
        "STATES": states,
        "WIDTH": width,
        "BUDGETS": budgets,
        "THREADS": THREADS,
        "CELLS": cells,
        "ROWS": rows,
        "TERMS": rows * width,
        "SUMS": chains * width,
        "SUMMARY": is_summary,
        "FLOOR": floor is not None,
        "BLOCKS": blocks,
        "LOOKED": blocks and not is_summary,
        "BLOCK": float(block),
        "FIRST": math.inf,
        "SHAPE_CELLS": cells,
        "SHAPE_ROWS": rows,
        "SHAPE_LOOKED": rows if blocks and not is_summary else 1,
        "SHAPE_TERMS": rows * width,
        "SHAPE_SUMS": chains * width,
        "SHAPE_CHAINS": chains,
        "SHAPE_THREADS": THREADS,
    }
    return kernel(code.in_shared if fits else code.in_device, names, real)


def _type(kind: type) -> Any:
    from numba import from_dtype

    return from_dtype(np.dtype(kind))


def check(batch: int, restless: bool, distance: str, row_weights: str) -> None:
    """Refuses what this engine does not do."""
    for asked, what in (
        (batch > 1, "batches"),
        (restless, "restless chains"),
        (distance != "squared" or row_weights != "empirical", "other losses than the paper's"),
    ):
        if asked:
            raise InputError(f"the engine 'gpu' does not do {what}: use the engine 'cpu'")
