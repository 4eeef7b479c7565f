"""Whole paths of one chain on a GPU, one thread for each path: as ``paths``, for millions of them.

Every array has one column for each path, so that neighbouring threads use neighbouring words where their paths agree.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from chainscout.chains import MarkovChain
from chainscout.engine import gpu
from chainscout.random import alias

from .paths import Known, Laws, Space, follow, walk

#: Paths of one launch.
MOST_PATHS = 1 << 17

# These are set when there is a device (``_ready``).
cuda: Any = None
whole: Any = int
signed: Any = int


class Columns(NamedTuple):
    """The arrays that the paths of a launch change, one column for each path."""

    path: Any
    reals: Any
    wholes: Any
    found: Any


def follow_columns(number, words, known, laws, table, columns, ends):  # type: ignore[no-untyped-def]
    """Draws a path and looks at it, in each lane. ``words``: seed, first replication, chain. ``ends``: where each of
    ``Space``'s real arrays ends in a column."""
    lane = cuda.grid(1)
    if lane < number:
        size = whole(known.size)
        path = columns.path[:, lane]
        laws_of = Laws(size, size, laws, whole(0), table, whole(0))
        replication = whole(words[1]) + whole(lane)
        walk(whole(words[0]), replication, whole(words[2]), laws_of, path)  # type: ignore[no-untyped-call]
        reals, wholes = columns.reals, columns.wholes
        space = Space(
            reals[: ends[0], lane], reals[ends[0] : ends[1], lane], reals[ends[1] : ends[2], lane],
            reals[ends[2] : ends[3], lane], reals[ends[3] : ends[4], lane], reals[ends[4] : ends[5], lane],
            reals[ends[5] : ends[6], lane], reals[ends[6] : ends[7], lane],
            wholes[: known.size, lane], wholes[known.size :, lane],
        )  # fmt: skip
        follow(path, known, space, columns.found[:, lane])  # type: ignore[no-untyped-call]


def followed(
    chain: MarkovChain,
    number: int,
    replications: int,
    observations: int,
    seed: int,
    known: Known,
    start: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """What ``follow`` records of every path of chain ``number`` of a problem, from ``start`` on: (replication, what is
    recorded)."""
    device, size, ready = gpu.arrays(), chain.size, _ready()
    read = (alias.table(chain.initial[None]), alias.table(chain.matrix), known.matrix)
    laws, table, matrix = (gpu.argument(device.asarray(array)) for array in read)
    state = np.uint8 if size <= 1 << 8 else np.uint32
    ends = tuple(np.cumsum([size * size, size, size, 3 * size, size, size, size, size]).tolist())
    each = observations * np.dtype(state).itemsize + 8 * (ends[-1] + 2 * size + len(start))
    most = max(gpu.THREADS, min(MOST_PATHS, int(gpu.MEMORY_SHARE * gpu.free_bytes()) // each, replications))
    path = device.empty((observations, most), state)
    reals, wholes = device.empty((ends[-1], most)), device.empty((2 * size, most), np.int64)
    found = device.empty((len(start), most))
    columns = Columns._make(gpu.argument(array) for array in (path, reals, wholes, found))
    recorded = np.empty((replications, len(start)))
    for first in range(0, replications, most):
        part = min(most, replications - first)
        reals.fill(0)
        wholes.fill(0)
        found[:] = device.asarray(start)[:, None]
        words = (np.uint64(seed), np.uint64(first), np.uint64(number))
        arguments = (part, words, known._replace(matrix=matrix), laws, table, columns, ends)
        ready.launch(-(-part // gpu.THREADS), gpu.THREADS, arguments)
        recorded[first : first + part] = gpu.at_home(found[:, :part]).T
    return recorded


@lru_cache(maxsize=1)
def _ready() -> gpu.GpuKernel:
    globals().update(cuda=gpu.compiler(), **gpu.scalars())
    return gpu.specialised_kernel(follow_columns, {}, np.float64)
