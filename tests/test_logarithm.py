"""The logarithm that has the same bits everywhere: how near it is to the true one, and that compiled code agrees."""

import itertools
import math

import numpy as np
import pytest
import simulation
from hypothesis import given
from hypothesis import strategies as st

from chainscout import logarithm

POSITIVE = st.floats(min_value=1e-300, max_value=1e300)


@given(POSITIVE)
def test_log_is_within_two_units_of_the_last_place(x: float) -> None:
    assert abs(logarithm.log(x) - math.log(x)) <= 2 * math.ulp(math.log(x))


@given(st.floats(min_value=0.0, max_value=1e300))
def test_log1p_too(x: float) -> None:
    assert abs(logarithm.log1p(x) - math.log1p(x)) <= 2 * math.ulp(math.log1p(x))


@given(POSITIVE)
def test_compiled_and_interpreted_have_the_same_bits(x: float) -> None:
    assert simulation.log(x) == logarithm.log(x)
    assert simulation.log1p(x) == logarithm.log1p(x)


def test_it_is_exact_where_it_must_be() -> None:
    assert logarithm.log(1.0) == 0.0
    assert logarithm.log1p(0.0) == 0.0
    assert logarithm.log1p(1e-300) == 1e-300


@pytest.mark.parametrize("digit", range(6))
def test_it_never_falls(digit: int) -> None:
    """Neighbouring numbers near a power of two, where the exponent changes."""
    start = 2.0**digit
    near = start * (1 + np.arange(-200, 200) * 2.0**-50)
    values = [logarithm.log(float(x)) for x in near]
    assert all(low <= high + 2 * math.ulp(high) for low, high in itertools.pairwise(values))
