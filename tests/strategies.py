"""What the tests draw: stochastic matrices with small rational entries, and observed paths."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

SIZES = st.integers(1, 5)


def tables(size, least=0):
    """Square tables of small whole numbers."""
    return arrays(np.int64, (size, size), elements=st.integers(least, 6))


def as_rows(table):
    """Each row of a table divided by its sum; an empty row becomes uniform."""
    weights = np.where(table.sum(axis=1, keepdims=True) == 0, 1, table).astype(float)
    return weights / weights.sum(axis=1, keepdims=True)


#: Any stochastic matrix: zeros, periods, absorbing states and all.
MATRICES = SIZES.flatmap(tables).map(as_rows)

#: Stochastic matrices without a zero: ergodic chains.
POSITIVE = SIZES.flatmap(lambda size: tables(size, least=1)).map(as_rows)

#: The number of states, and paths of observations.
PATHS = SIZES.flatmap(
    lambda size: st.tuples(st.just(size), st.lists(st.lists(st.integers(0, size - 1), max_size=8), max_size=4))
)


def cycle_with_jump(size, jump):
    """Round and round, but past the first state with probability ``jump``: ℓ = 1 gives no pseudo-spectral gap."""
    matrix = np.roll(np.eye(size), 1, axis=1)
    matrix[-1, 0] -= jump
    matrix[-1, 1] += jump
    return matrix


def birth_and_death(size, up, down):
    """One state up or down, or stay."""
    matrix = up * np.eye(size, k=1) + down * np.eye(size, k=-1)
    return matrix + np.diag(1 - matrix.sum(axis=1))
