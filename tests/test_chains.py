"""MarkovChain: what it holds, what it is equal to, its structure, and laws that hold for every chain."""

import copy
import pickle
import warnings
from fractions import Fraction

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from strategies import MATRICES, POSITIVE, birth_and_death

from chainscout.chains import MarkovChain
from chainscout.chains.structure import communicating_classes, recurrent_classes
from chainscout.errors import NotErgodicError, RenormalisedWarning

WEATHER = [[0.9, 0.1], [0.4, 0.6]]
CLOSE = {"rel": 1e-9, "abs": 1e-12, "nan_ok": True}


def ring(size):
    return np.roll(np.eye(size), 1, axis=1)


# ---------------------------------------------------------------- what it holds


def test_holds_what_was_given():
    chain = MarkovChain(WEATHER, initial=[0, 1], states=["dry", "wet"])
    assert chain.matrix.tolist() == WEATHER
    assert chain.matrix.dtype == np.float64
    assert chain.initial.tolist() == [0, 1]
    assert chain.states == ("dry", "wet")
    assert (chain.size, len(chain), chain.index_of("wet")) == (2, 2, 1)
    assert repr(chain) == "MarkovChain(2 states: ['dry', 'wet'])"


def test_defaults_are_numbered_states_and_a_uniform_start():
    chain = MarkovChain(np.eye(4))
    assert chain.states == (0, 1, 2, 3)
    assert chain.initial.tolist() == [0.25] * 4


@pytest.mark.parametrize(
    "matrix",
    [
        tuple(map(tuple, WEATHER)),
        np.asfortranarray(WEATHER),
        np.matrix(WEATHER),
        np.array(WEATHER, dtype=object),
        [[Fraction(9, 10), Fraction(1, 10)], [0.4, 0.6]],
    ],
    ids=["tuples", "fortran", "matrix", "objects", "fractions"],
)
def test_takes_any_array_of_numbers(matrix):
    assert MarkovChain(matrix) == MarkovChain(WEATHER)


def test_does_not_share_the_callers_arrays():
    matrix, initial, states = np.array(WEATHER), np.array([0.5, 0.5]), ["dry", "wet"]
    chain = MarkovChain(matrix, initial, states)
    matrix[0], initial[0], states[0] = [0, 1], 9, "storm"
    assert chain == MarkovChain(WEATHER, [0.5, 0.5], ["dry", "wet"])
    assert matrix.flags.writeable


def test_rows_may_be_off_by_a_billionth():
    chain = MarkovChain([[1 + 9e-10]])
    assert chain.variability == 0  # and not −9e-10
    assert chain.loss_variance == pytest.approx(0, abs=1e-17)


@pytest.mark.parametrize(
    "again",
    [lambda chain: chain, copy.copy, copy.deepcopy, lambda chain: pickle.loads(pickle.dumps(chain))],
    ids=["itself", "copy", "deepcopy", "pickle"],
)
def test_never_changes(again):
    chain = MarkovChain(WEATHER, states=["dry", "wet"])
    derived = chain.stationary, chain.reversal  # kept, and not in the way of a copy
    twin = again(chain)
    assert twin == chain
    assert hash(twin) == hash(chain)
    for array in (twin.matrix, twin.initial, twin.stationary, twin.gini, twin.reversal.matrix):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.5
    for name in ("matrix", "states", "stationary", "anything"):
        with pytest.raises(AttributeError, match=f"does not change: '{name}'"):
            setattr(twin, name, None)
        with pytest.raises(AttributeError, match=f"does not change: '{name}'"):
            delattr(twin, name)
    assert (twin.stationary.tolist(), twin.reversal) == (derived[0].tolist(), derived[1])


def test_equality_looks_at_matrix_initial_law_and_labels():
    chain = MarkovChain(WEATHER)
    unlike = [
        MarkovChain([[0.8, 0.2], [0.4, 0.6]]),
        MarkovChain(WEATHER, initial=[1, 0]),
        MarkovChain(WEATHER, states=["dry", "wet"]),
        MarkovChain([[1.0]]),
    ]
    assert len({chain, *unlike}) == 5
    assert all(chain != other for other in [*unlike, WEATHER, None])
    assert chain == MarkovChain(WEATHER, initial=[0.5, 0.5], states=[0.0, 1.0])
    negative_zero, zero = MarkovChain([[1, -0.0], [0, 1]]), MarkovChain(np.eye(2))
    assert (negative_zero, hash(negative_zero)) == (zero, hash(zero))


# ---------------------------------------------------------------- tables that are off by rounding


def test_a_published_table_is_renormalised_and_says_so():
    table = [[0.33, 0.33, 0.33], [0.5, 0.5, 0], [0.335, 0.335, 0.335]]
    with pytest.warns(RenormalisedWarning, match=r"divided by their sums, which are off by up to 0\.01$"):
        chain = MarkovChain.from_table(table, tolerance=0.011, initial=[1, 0, 0], states=["a", "b", "c"])
    assert chain.matrix == pytest.approx(np.array([[1 / 3] * 3, [0.5, 0.5, 0], [1 / 3] * 3]))
    assert (chain.states, chain.initial.tolist()) == (("a", "b", "c"), [1, 0, 0])


def test_a_table_that_is_no_further_off_than_a_matrix_may_be_needs_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chain = MarkovChain.from_table([[1 - 2**-53, 0], [0.5, 0.5]])
    assert chain == MarkovChain([[1, 0], [0.5, 0.5]])


# ---------------------------------------------------------------- structure

UNICHAIN = [[0.5, 0.5, 0, 0], [0, 0.2, 0.8, 0], [0, 0.6, 0.4, 0], [0.1, 0, 0, 0.9]]  # 1 and 2 are recurrent
TWO_ENDS = [[1, 0, 0], [0.3, 0.4, 0.3], [0, 0, 1]]


@pytest.mark.parametrize(
    ("matrix", "classes", "recurrent", "period"),
    [
        ([[1.0]], 1, [[0]], 1),
        (WEATHER, 1, [[0, 1]], 1),
        (np.eye(3), 3, [[0], [1], [2]], None),
        (ring(2), 1, [[0, 1]], 2),
        (ring(7), 1, [list(range(7))], 7),
        (0.5 * ring(6) + 0.5 * ring(6).T, 1, [list(range(6))], 2),
        (0.5 * ring(5) + 0.5 * ring(5).T, 1, [list(range(5))], 1),
        (0.5 * ring(6) + 0.5 * np.linalg.matrix_power(ring(6), 4), 1, [list(range(6))], 3),  # gcd(6, 3)
        (birth_and_death(9, 0.5, 0.5), 1, [list(range(9))], 1),  # both ends hold
        (UNICHAIN, 3, [[1, 2]], None),
        (TWO_ENDS, 3, [[0], [2]], None),
        ([[0, 0, 1], [0, 0, 1], [0, 1, 0]], 2, [[1, 2]], None),
    ],
)
def test_structure_of_hand_made_chains(matrix, classes, recurrent, period):
    chain = MarkovChain(matrix)
    assert communicating_classes(chain.matrix)[0] == classes
    assert sorted(states.tolist() for states in recurrent_classes(chain.matrix)) == recurrent
    assert chain.is_irreducible == (classes == 1)
    assert chain.is_aperiodic == chain.is_ergodic == (period == 1)
    if period is None:
        with pytest.raises(NotErgodicError, match="only an irreducible chain has a period"):
            _ = chain.period
    else:
        assert chain.period == period


def test_a_tiny_probability_is_still_a_way_out():
    assert MarkovChain([[1, 5e-324], [0.5, 0.5]]).is_irreducible


@pytest.mark.parametrize("matrix", [UNICHAIN, TWO_ENDS, np.eye(2)], ids=["unichain", "two ends", "identity"])
@pytest.mark.parametrize(
    "quantity",
    ["period", "reversal", "is_reversible", "spectral_gap", "pseudo_spectral_gap", "inverse_stationary_sum"],
)
def test_what_a_reducible_chain_does_not_have(matrix, quantity):
    chain = MarkovChain(matrix)
    with pytest.raises(NotErgodicError, match="only an irreducible chain has"):
        getattr(chain, quantity)
    with pytest.raises(NotErgodicError, match="only an ergodic chain forgets its start"):
        chain.mixing_time_bounds()


@pytest.mark.parametrize("matrix", [ring(2), ring(5)])
def test_what_a_periodic_chain_does_not_have(matrix):
    chain = MarkovChain(matrix)
    assert (chain.pseudo_spectral_gap, chain.variability, chain.inverse_stationary_sum) == (0, 0, len(matrix) ** 2)
    with pytest.raises(NotErgodicError, match="periodic or not irreducible"):
        chain.mixing_time_bounds()


# ---------------------------------------------------------------- Gini, variability, limit variance


@pytest.mark.parametrize(
    ("matrix", "gini", "variance"),
    [
        ([[1.0]], [0], 0),
        (ring(3), [0, 0, 0], 0),
        (np.full((4, 4), 1 / 4), [3 / 4] * 4, 4 * 2 * 3 / 16),  # three eigenvalues ¼ a row
        ([[0.5, 0.5], [0.1, 0.9]], [0.5, 0.18], 2 * 0.25 + 2 * 0.18**2),  # one eigenvalue 2p(1−p) a row
    ],
)
def test_gini_and_variance_by_hand(matrix, gini, variance):
    chain = MarkovChain(matrix)
    assert chain.gini == pytest.approx(gini, **CLOSE)
    assert chain.variability == pytest.approx(sum(gini), **CLOSE)
    assert chain.loss_variance == pytest.approx(variance, **CLOSE)


@pytest.mark.parametrize("epsilon", [1e-3, 1e-9, 1e-15, 1e-16, 1e-17, 1e-20, 1e-100])
@pytest.mark.parametrize("mirrored", [False, True])
def test_nearly_deterministic_rows_keep_their_digits(epsilon, mirrored):
    leave = Fraction(epsilon)
    gini = 2 * leave * (1 - leave)
    rows = np.array([[1 - epsilon, epsilon], [0, 1]])
    chain = MarkovChain(rows[::-1, ::-1] if mirrored else rows)
    assert chain.variability == pytest.approx(float(gini), rel=1e-14, abs=0)
    assert chain.loss_variance == pytest.approx(float(2 * gini**2), rel=1e-14, abs=0)


@pytest.mark.parametrize("concentration", [0.02, 0.1])
def test_gini_and_variance_of_random_sparse_rows_in_exact_arithmetic(concentration):
    """The limit law's covariance is diag(p) − ppᵀ with 1 − p the sum of the others: v is at most 2μ², in floats too."""
    for matrix in np.random.default_rng(0).dirichlet(np.full(3, concentration), size=(200, 3)):
        chain = MarkovChain(matrix)
        rows = [[Fraction(p) for p in row] for row in matrix.tolist()]
        diagonal = [[p * (sum(row[:y]) + sum(row[y + 1 :])) for y, p in enumerate(row)] for row in rows]
        off = sum(2 * (p * q) ** 2 for row in rows for y, p in enumerate(row) for q in row[:y])
        variance = 2 * (sum(d * d for row in diagonal for d in row) + off)
        assert chain.gini == pytest.approx([float(sum(row)) for row in diagonal], rel=1e-14, abs=0)
        assert chain.loss_variance == pytest.approx(float(variance), rel=1e-14, abs=0)
        assert chain.loss_variance <= 2 * chain.variability**2 * (1 + 1e-14)


@given(POSITIVE)
def test_agrees_with_the_reference(matrix):
    chain = MarkovChain(matrix)
    for name in ("stationary", "gini", "variability", "inverse_stationary_sum", "loss_variance", "pseudo_spectral_gap"):
        assert getattr(chain, name) == pytest.approx(getattr(reference, name)(matrix), **CLOSE)
    assert chain.reversal.matrix == pytest.approx(reference.reversal(matrix), **CLOSE)
    assert chain.is_reversible == reference.is_reversible(matrix)
    if chain.is_reversible:
        assert chain.spectral_gap == pytest.approx(reference.spectral_gap(matrix), **CLOSE)


# ---------------------------------------------------------------- laws

VECTORS = ("gini", "stationary")
SCALARS = ("is_irreducible", "is_aperiodic", "period", "is_reversible", "variability", "loss_variance")
SCALARS += ("inverse_stationary_sum", "spectral_gap", "pseudo_spectral_gap")


def value(chain, name):
    try:
        return getattr(chain, name)
    except NotErgodicError:
        return np.nan


@given(MATRICES, st.randoms(use_true_random=False))
def test_relabelling_permutes_vectors_and_leaves_scalars(matrix, random):
    order = random.sample(range(len(matrix)), len(matrix))
    chain = MarkovChain(matrix)
    other = MarkovChain(matrix[np.ix_(order, order)], states=order)
    for name in VECTORS:
        before, after = (np.broadcast_to(value(which, name), len(matrix)) for which in (chain, other))
        assert after == pytest.approx(before[order], **CLOSE)
    for name in SCALARS:
        assert value(other, name) == pytest.approx(value(chain, name), **CLOSE)


@given(POSITIVE)
def test_reversing_twice_gives_the_chain_back(matrix):
    chain = MarkovChain(matrix)
    assert chain.reversal.stationary == pytest.approx(chain.stationary, **CLOSE)
    assert chain.reversal.reversal.matrix == pytest.approx(chain.matrix, **CLOSE)
    assert chain.reversal.pseudo_spectral_gap == pytest.approx(chain.pseudo_spectral_gap, **CLOSE)
    assert chain.reversal.states == chain.states


@given(MATRICES.filter(lambda matrix: MarkovChain(matrix).is_irreducible), st.sampled_from([0.25, 0.5, 0.875]))
def test_two_equal_states_can_be_lumped(matrix, share):
    """The last state is split in two that nobody can tell apart: P has the same eigenvalues and another 0."""
    chain = MarkovChain(matrix)
    split = np.vstack([matrix, matrix[-1:]])
    split = np.hstack([split[:, :-1], share * split[:, -1:], (1 - share) * split[:, -1:]])
    other = MarkovChain(split)
    merged = np.append(other.stationary[:-2], other.stationary[-2:].sum())
    assert merged == pytest.approx(chain.stationary, **CLOSE)
    assert other.stationary[-2] == pytest.approx(share * merged[-1], **CLOSE)
    for name in ("is_irreducible", "period", "is_reversible", "pseudo_spectral_gap", "spectral_gap"):
        assert value(other, name) == pytest.approx(value(chain, name), **CLOSE)
