"""How difficult the rows of a matrix are to learn: Gini indices, and the variance of the limit law (MATH §2, §6)."""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def complements(matrix: Array) -> Array:
    """1 − P(x,y), as the sum of the row's other entries.

    If an entry is close to one, subtracting it from one leaves only rounding errors. The sum of all entries before it
    and all entries after it keeps every digit. A row whose sum is off by rounding is used as it is.
    """
    others = np.zeros_like(matrix)
    others[:, 1:] = np.cumsum(matrix[:, :-1], axis=1)
    others[:, :-1] += np.cumsum(matrix[:, :0:-1], axis=1)[:, ::-1]
    return others


def gini(matrix: Array) -> Array:
    """G(x) = Σ_y P(x,y)(1 − P(x,y)) for each row."""
    return np.asarray((matrix * complements(matrix)).sum(axis=1))


def loss_variance(matrix: Array) -> float:
    """v = 2Σ_x(s₂ − 2s₃ + s₂²), s_j = Σ_y P(x,y)^j.

    It is computed as the sum of the squared entries of diag(p) − ppᵀ, p a row. The formula above would leave nothing
    but rounding errors for nearly deterministic rows.
    """
    squares = matrix**2
    before = np.pad(np.cumsum(squares, axis=1)[:, :-1], ((0, 0), (1, 0)))
    return float(2 * ((matrix * complements(matrix)) ** 2 + 2 * squares * before).sum())
