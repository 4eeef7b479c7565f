"""The losses of simulated counts, for many replications and chains at a time."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..counts import smoothing
from ..losses import of_transitions
from ..problems import Problem
from .cpu import Block, State, alike_neighbours
from .options import Options

Array = npt.NDArray[np.float64]

#: The number of probabilities whose losses are computed at a time.
SLAB = 1 << 20


def stationary_laws(problem: Problem, blocks: Sequence[Block], options: Options) -> list[Array] | None:
    """The stationary laws of every block of chains, if rows are weighted by them."""
    if options.row_weights != "stationary":
        return None
    chains = list(problem.chains.values())
    return [
        np.array([chain.stationary for chain in chains[block.first : block.first + block.number]]) for block in blocks
    ]


def of_state(state: State, options: Options, stationary: list[Array] | None, out: Array) -> None:
    """The loss of every lane and chain, a slab of chains at a time, into ``out``, which may have fewer lanes."""
    lanes = len(out)
    for number, block in enumerate(state.prepared.blocks):
        step = max(1, SLAB // (lanes * block.size * block.size))
        for first in range(0, block.number, step):
            part = slice(first, first + step)
            counts = state.counts(block)[:lanes, part]
            laws = None if stationary is None else stationary[number][part]
            chains = slice(block.first + first, block.first + min(first + step, block.number))
            out[:, chains] = _losses(counts, block, part, options, laws)


def of_counts(problem: Problem, counts: npt.NDArray[Any], options: Options) -> Array:
    """The losses (budget, replication, chain) from N (budget, replication, chain, x, y), padded to the largest S."""
    blocks = alike_neighbours(problem)
    stationary = stationary_laws(problem, blocks, options)
    loss = np.empty(counts.shape[:3])
    for number, block in enumerate(blocks):
        chains = slice(block.first, block.first + block.number)
        laws = None if stationary is None else stationary[number]
        step = max(1, SLAB // (block.number * block.size**2))
        for b in range(len(counts)):
            for first in range(0, counts.shape[1], step):
                lanes = slice(first, first + step)
                part = counts[b, lanes, chains, : block.size, : block.size].astype(np.float64)
                loss[b, lanes, chains] = _losses(part, block, slice(None), options, laws)
    return loss


def _losses(counts: Array, block: Block, part: slice, options: Options, laws: Array | None) -> Array:
    counts = np.ascontiguousarray(counts)
    if options.row_weights == "empirical":
        exits = counts.sum(axis=-1)
        with np.errstate(invalid="ignore"):  # T = 0 has no loss yet: NaN
            weight = exits / exits.sum(axis=-1, keepdims=True)
    else:
        weight = np.broadcast_to(np.ones(block.size) if laws is None else laws, counts.shape[:-1])
    return of_transitions(block.matrices[part], counts, weight, options.distance, smoothing(None, block.size))
