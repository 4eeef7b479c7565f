"""Whole paths of one chain on the GPU, one thread a path, for whoever looks at every transition.

The functions that draw a path and look at it are the caller's own, bound here as a kernel's rule is. Every array has a
column a path, so that neighbouring threads touch neighbouring words wherever their paths agree.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ...chains import MarkovChain
from ...problems import Problem
from ..layout import unbound
from .compiling import GpuKernel, kernel
from .devices import MEMORY_SHARE, argument, arrays, at_home, compiler, free_bytes, is_simulated
from .memory import THREADS
from .tables import tables

#: Paths of one launch.
MOST_PATHS = 1 << 17

# Bound when the kernel is made; these values are never used.
cuda: Any = None
walk = look = unbound
whole: Any = int
signed: Any = int
ZERO = 0


def follow_columns(
    number, seed, first, chain, size, laws, table, matrix, factor, scalars, path, reals, wholes, found,
    counts_end, exits_end, squares_end, terms_end, distance_end, plain_end, seen_end, theta_end,
):  # fmt: skip
    """Draws a path and looks at it, in each lane."""
    lane = cuda.grid(1)
    if lane < number:
        replication = whole(first) + whole(lane)
        size_word = whole(size)
        walk(
            whole(seed), replication, whole(chain), size_word, size_word, laws, ZERO, table, ZERO, path[:, lane]
        )  # fmt: skip
        look(
            path[:, lane], signed(size), matrix, scalars[0], scalars[1], factor, scalars[2],
            reals[:counts_end, lane], reals[counts_end:exits_end, lane], reals[exits_end:squares_end, lane],
            reals[squares_end:terms_end, lane], reals[terms_end:distance_end, lane],
            reals[distance_end:plain_end, lane], reals[plain_end:seen_end, lane], reals[seen_end:theta_end, lane],
            wholes[:size, lane], wholes[size:, lane], found[:, lane],
        )  # fmt: skip


def follow(
    chain: MarkovChain,
    number: int,
    replications: int,
    observations: int,
    seed: int,
    functions: tuple[Callable[..., Any], Callable[..., Any]],
    factor: tuple[float, ...],
    scalars: tuple[float, float, float],
    start: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """What ``functions`` (walk, look) record of every path of chain ``number`` of a problem, from ``start`` on:
    (replication, what is recorded). ``scalars`` are α, β and log(K/δ)."""
    device, size = arrays(), chain.size
    ready = _ready(*functions)
    alone = Problem({"chain": chain})
    _, table, laws, _, _, matrix = tables(alone, np.zeros(0), np.zeros(0))
    state = np.uint8 if size <= 1 << 8 else np.uint32
    ends = np.cumsum([size * size, size, size, 3 * size, size, size, size, size])
    each = observations * np.dtype(state).itemsize + 8 * (int(ends[-1]) + 2 * size + len(start))
    most = max(THREADS, min(MOST_PATHS, int(MEMORY_SHARE * free_bytes()) // each, replications))
    read = [argument(device.asarray(array)) for array in (laws, table, matrix)]
    path = device.empty((observations, most), state)
    reals, wholes = device.empty((int(ends[-1]), most)), device.empty((2 * size, most), np.int64)
    found = device.empty((len(start), most))
    recorded = np.empty((replications, len(start)))
    for first in range(0, replications, most):
        part = min(most, replications - first)
        reals.fill(0)
        wholes.fill(0)
        found[:] = device.asarray(start)[:, None]
        words = (part, np.uint64(seed), np.uint64(first), np.uint64(number), size)
        changed = [argument(array) for array in (path, reals, wholes, found)]
        ready.launch(-(-part // THREADS), THREADS, (*words, *read, factor, scalars, *changed, *ends.tolist()))
        recorded[first : first + part] = at_home(found[:, :part]).T
    return recorded


@lru_cache(maxsize=4)
def _ready(walk: Callable[..., Any], look: Callable[..., Any]) -> GpuKernel:
    simulated = is_simulated()
    names = {
        "cuda": compiler(),
        "walk": walk,
        "look": look,
        "whole": int if simulated else np.uint64,
        "signed": int if simulated else np.int64,
    }
    return kernel(follow_columns, names, np.float64, False)
