"""What all replications read: sizes, alias tables, constants, weights, matrices, padded to the largest S."""

from typing import Any

import numpy as np
import numpy.typing as npt

from ...problems import Problem
from ...random import alias
from ..specialising import common


def tables(problem: Problem, constants: npt.NDArray[Any], factors: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    """In the order of the kernel's arguments; matrix (k, x, y) stands at (k·S + x)·S + y."""
    chains, states = len(problem), max(problem.sizes)
    rows, laws = np.zeros((chains, states * states), np.uint64), np.zeros((chains, states), np.uint64)
    matrices = np.zeros((chains, states, states))
    fill = common("fill", "python")
    for k, chain in enumerate(problem.chains.values()):
        size = chain.size
        matrices[k, :size, :size] = chain.matrix
        for table, law, number in ((rows[k], chain.matrix, size), (laws[k], chain.initial[None], 1)):
            words, scratch = table.tolist(), [0] * size
            fill(words, 0, states, number, size, alias.parts(law).ravel().tolist(), scratch, scratch.copy())
            table[:] = words
    sizes = np.array(problem.sizes, np.uint64)
    return [sizes, rows.ravel(), laws.ravel(), constants.ravel(), factors, matrices.ravel()]
