"""The stationary law: hand-solved chains, exact fractions, and chains that defeat other methods."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from strategies import MATRICES, birth_and_death

from chainscout.chains import MarkovChain
from chainscout.chains.stationary import PANEL, stationary_law
from chainscout.errors import NotErgodicError

UNIT = 2.0**-53  # the rounding error of one operation


def exact_law(matrix):
    """π in fractions: GTH elimination, which takes every diagonal from the rest of its row as we do."""
    rows = [[Fraction(entry) for entry in row] for row in np.asarray(matrix).tolist()]
    for n in range(len(rows) - 1, 0, -1):
        leaving = sum(rows[n][:n])
        for x in range(n):
            rows[x][n] /= leaving
            for y in range(n):
                rows[x][y] += rows[x][n] * rows[n][y]
    law = [Fraction(1)]
    for n in range(1, len(rows)):
        law.append(sum(law[x] * rows[x][n] for x in range(n)))
    return [weight / sum(law) for weight in law]


def eigenvector_law(matrix):
    values, vectors = np.linalg.eig(np.asarray(matrix).T)
    leading = np.abs(vectors[:, np.argmax(values.real)])
    return leading / leading.sum()


def relative_error(law, exact):
    return max(abs(float(Fraction(found) / true - 1)) for found, true in zip(law.tolist(), exact, strict=True))


def nearly_decomposable(epsilon):
    """Two blocks, of two and of three states, that exchange probabilities of the order of epsilon."""
    return np.array(
        [
            [0.5, 0.5 - epsilon, epsilon, 0, 0],
            [0.25, 0.75, 0, 0, 0],
            [0, 0, 0.1, 0.5, 0.4],
            [0, 0, 0.3, 0.7, 0],
            [0, 2 * epsilon, 0.6, 0, 0.4 - 2 * epsilon],
        ]
    )


@pytest.mark.parametrize(
    ("matrix", "law"),
    [
        ([[1.0]], [1]),
        ([[0.9, 0.1], [0.4, 0.6]], [0.8, 0.2]),
        ([[0, 1], [1, 0]], [1 / 2, 1 / 2]),
        ([[0, 1, 0], [0, 0, 1], [0.5, 0.5, 0]], [0.2, 0.4, 0.4]),
        (birth_and_death(4, 0.4, 0.2), np.array([1, 2, 4, 8]) / 15),  # π(x+1)/π(x) = up/down
        ([[0.5, 0.5, 0], [0, 0.2, 0.8], [0, 0.6, 0.4]], [0, 3 / 7, 4 / 7]),  # state 0 is left for ever
        ([[0, 0.5, 0.5], [0, 1, 0], [0, 1, 0]], [0, 1, 0]),
    ],
)
def test_hand_solved(matrix, law):
    assert MarkovChain(matrix).stationary == pytest.approx(law, rel=1e-14)


@pytest.mark.parametrize(("a", "b"), [(0.1, 0.4), (1.0, 1.0), (1e-300, 0.5), (1e-14, 3e-15)])
def test_two_states_in_closed_form(a, b):
    law = MarkovChain([[1 - a, a], [b, 1 - b]]).stationary
    assert law == pytest.approx([b / (a + b), a / (a + b)], rel=4 * UNIT)


@pytest.mark.parametrize("epsilon", [10.0**-k for k in range(2, 15)])
def test_nearly_decomposable_chains_keep_every_digit(epsilon):
    matrix = nearly_decomposable(epsilon)
    exact = exact_law(matrix)
    assert sum(exact) == 1
    # O'Cinneide: about 2S² roundings at worst, whatever epsilon is.
    assert relative_error(MarkovChain(matrix).stationary, exact) < 2 * 25 * UNIT


def test_eigenvectors_lose_what_gth_keeps():
    matrix = nearly_decomposable(1e-14)
    # The second eigenvalue lies of the order of 1e-14 below one, so that the vector is off by some UNIT/1e-14 ≈ 0.01.
    assert relative_error(eigenvector_law(matrix), exact_law(matrix)) > 1e-4


@given(MATRICES.filter(lambda matrix: MarkovChain(matrix).is_irreducible))
def test_agrees_with_exact_fractions(matrix):
    assert relative_error(stationary_law(matrix), exact_law(matrix)) < 2 * len(matrix) ** 2 * UNIT


@pytest.mark.parametrize("size", [PANEL - 1, PANEL, PANEL + 1, PANEL + 2, 3 * PANEL + 5])
def test_panels_do_not_change_the_law(size):
    up, down = 0.3, 0.31
    ratio = (up / down) ** np.arange(size)
    order = np.random.default_rng(size).permutation(size)
    matrix = birth_and_death(size, up, down)[np.ix_(order, order)]
    assert MarkovChain(matrix).stationary == pytest.approx((ratio / ratio.sum())[order], rel=1e-12)
    dense = np.random.default_rng(size).dirichlet(np.full(size, 0.1), size)
    law = MarkovChain(dense).stationary
    assert law @ dense == pytest.approx(law, rel=1e-12)


@pytest.mark.parametrize("order", [1, -1], ids=["upwards", "downwards"])
def test_a_strong_drift_neither_overflows_nor_loses_digits(order):
    matrix = birth_and_death(500, 0.9, 0.1)[::order, ::order]  # π spans 476 powers of ten
    law = MarkovChain(matrix).stationary[::order]
    assert law[:-120:-1] == pytest.approx(8 / 9 / 9.0 ** np.arange(119), rel=1e-12)
    assert law[0] == 0


@pytest.mark.parametrize("quantity", ["reversal", "spectral_gap", "pseudo_spectral_gap", "inverse_stationary_sum"])
def test_what_divides_by_a_vanishing_probability_says_so(quantity):
    chain = MarkovChain(birth_and_death(500, 0.9, 0.1), states=[f"s{x}" for x in range(500)])
    with pytest.raises(NotErgodicError, match=r"needs stationary probabilities ≥ 1e-150 .* that of 's0' is 0$"):
        getattr(chain, quantity)


def test_a_law_that_no_float_can_hold_is_refused():
    with pytest.raises(NotErgodicError, match=r"some of its states are left with a probability of 1e-200 only$"):
        _ = MarkovChain([[0.5, 0.5], [1e-200, 1]]).stationary


def test_several_recurrent_classes_have_no_single_law():
    chain = MarkovChain([[1, 0, 0], [0.3, 0.4, 0.3], [0, 0, 1]], states=["low", "middle", "high"])
    with pytest.raises(NotErgodicError, match=r"2 sets of states that cannot be left \(one state of each: \['low', 'h"):
        _ = chain.stationary
