"""How hard the rows of a matrix are to learn: Gini indices and the variance of the loss's limit law (MATH §2, §6)."""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def complements(matrix: Array) -> Array:
    """1 − P(x,y), as the sum of the row's other entries.

    Subtracted from one, an entry close to it would leave rounding errors, and below 1e-16 nothing. The sums of all
    entries before and of all entries after it have every digit; a row that is off by rounding counts as it is.
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

    As the sum of the squares of all entries of diag(p) − ppᵀ, p a row: as written above, nearly deterministic rows
    would leave nothing but rounding errors.
    """
    squares = matrix**2
    before = np.pad(np.cumsum(squares, axis=1)[:, :-1], ((0, 0), (1, 0)))
    return float(2 * ((matrix * complements(matrix)) ** 2 + 2 * squares * before).sum())
