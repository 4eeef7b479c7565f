"""What the tests of certificates draw: tables of transition counts, exits and failure probabilities."""

import numpy as np
from hypothesis import strategies as st

DELTAS = st.floats(1e-12, 0.5)
#: Exits of the states left at least once.
EXITS = st.lists(st.integers(1, 10**6), min_size=1, max_size=12)


@st.composite
def count_tables(draw, least=1, most=5, largest=10**4):
    """A matrix of transition counts with at least one transition; some rows and entries are empty."""
    size = draw(st.integers(least, most))
    entry = st.one_of(st.just(0), st.integers(0, 5), st.integers(0, largest))
    table = np.array(draw(st.lists(entry, min_size=size**2, max_size=size**2))).reshape(size, size)
    table[draw(st.integers(0, size - 1)), draw(st.integers(0, size - 1))] += 1
    return table
