"""Properties of a chain's graph: communicating classes and period. Sparse, O(S²), without powers of a matrix."""

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components


def communicating_classes(matrix: npt.NDArray[np.float64]) -> tuple[int, npt.NDArray[np.int32]]:
    """The number of communicating classes and the class of each state."""
    number, labels = connected_components(csr_array(matrix > 0), directed=True, connection="strong")
    return int(number), labels


def recurrent_classes(matrix: npt.NDArray[np.float64]) -> list[npt.NDArray[np.intp]]:
    """The classes that cannot be left, each as its sorted states."""
    number, labels = communicating_classes(matrix)
    leaving = (matrix > 0) & (labels[:, None] != labels[None, :])
    left = np.zeros(number, dtype=bool)
    left[labels[leaving.any(axis=1)]] = True
    return [np.flatnonzero(labels == label) for label in np.flatnonzero(~left)]


def period(matrix: npt.NDArray[np.float64]) -> int:
    """The period of an irreducible chain: the gcd of level(x) + 1 − level(y) over all edges (breadth-first levels)."""
    graph = csr_array(matrix > 0)
    order, predecessors = breadth_first_order(graph, 0, directed=True)
    level = np.zeros(len(matrix), dtype=np.int64)
    for state in order[1:]:
        level[state] = level[predecessors[state]] + 1
    sources, targets = graph.nonzero()
    return int(np.gcd.reduce(np.abs(level[sources] + 1 - level[targets])))
