"""Spectral gaps and mixing times: closed forms, brute force over ℓ, and powers of the matrix."""

import math
import time

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from strategies import POSITIVE, birth_and_death, cycle_with_jump

from chainscout.chains import MarkovChain, spectral
from chainscout.errors import NotErgodicError


def ring(size, step):
    """One state on with probability step, else stay."""
    return (1 - step) * np.eye(size) + step * np.roll(np.eye(size), 1, axis=1)


def mixing_time(chain, epsilon):
    """The first t with max_x TV(P^t(x,·), π) ≤ ε, by powers of the matrix."""
    power, t = np.eye(chain.size), 0
    while np.abs(power - chain.stationary).sum(axis=1).max() / 2 > epsilon:
        power, t = power @ chain.matrix, t + 1
    return t


# ---------------------------------------------------------------- closed forms


@pytest.mark.parametrize(("a", "b"), [(0.1, 0.4), (0.5, 0.5), (0.9, 0.7), (1.0, 0.3), (1e-6, 1e-5)])
def test_two_states(a, b):
    chain = MarkovChain([[1 - a, a], [b, 1 - b]])
    assert chain.is_reversible
    assert chain.reversal.matrix == pytest.approx(chain.matrix)
    assert chain.spectral_gap == pytest.approx(1 - abs(1 - a - b), abs=1e-14)
    assert chain.pseudo_spectral_gap == pytest.approx(1 - (1 - a - b) ** 2, abs=1e-14)
    assert chain.inverse_stationary_sum == pytest.approx((a + b) ** 2 / (a * b))


def test_a_single_state_and_equal_rows_forget_at_once():
    single, equal = MarkovChain([[1.0]]), MarkovChain([[0.2, 0.3, 0.5]] * 3)
    for chain in (single, equal):
        assert (chain.spectral_gap, chain.pseudo_spectral_gap) == (pytest.approx(1), pytest.approx(1))
    assert single.mixing_time_bounds() == (0, 0)
    assert equal.mixing_time_bounds(0.01) == (1, 1)


@pytest.mark.parametrize(
    ("size", "step"),
    [(3, 0.2), (3, 0.5), (3, 0.9), (7, 0.5), (300, 0.5)],  # 300: only the largest singular value, and it is double
)
def test_a_lazy_ring(size, step):
    """Circulant, so normal: γ_ps = 1 − |1 − q + qω|² at ℓ = 1. Not reversible."""
    chain = MarkovChain(ring(size, step))
    assert not chain.is_reversible
    assert chain.reversal.matrix == pytest.approx(chain.matrix.T)
    expected = 2 * step * (1 - step) * (1 - math.cos(2 * math.pi / size))
    assert chain.pseudo_spectral_gap == pytest.approx(expected, rel=1e-9, abs=1e-12)
    with pytest.raises(NotErgodicError, match="only a reversible chain has an absolute spectral gap"):
        _ = chain.spectral_gap


@pytest.mark.parametrize("size", [2, 10, 300])
def test_a_random_walk_between_two_walls(size):
    """λ_j = cos(jπ/S), by the method of images."""
    chain = MarkovChain(birth_and_death(size, 0.5, 0.5))
    assert chain.spectral_gap == pytest.approx(1 - math.cos(math.pi / size), abs=1e-13)
    assert chain.pseudo_spectral_gap == pytest.approx(math.sin(math.pi / size) ** 2, abs=1e-12)


def test_periodic_chains_have_no_gap():
    assert MarkovChain([[0, 1], [1, 0]]).spectral_gap == 0
    assert MarkovChain(ring(4, 1.0)).pseudo_spectral_gap == 0


# ---------------------------------------------------------------- brute force over ℓ


@pytest.mark.parametrize(("size", "jump"), [(3, 0.5), (4, 0.5), (5, 0.1), (6, 0.9), (8, 0.5), (12, 0.5)])
def test_a_gap_that_needs_several_steps(size, jump):
    matrix = cycle_with_jump(size, jump)
    gap = MarkovChain(matrix).pseudo_spectral_gap
    assert reference.pseudo_spectral_gap(matrix, longest=size - 2) == pytest.approx(0, abs=1e-9)
    # No ℓ > 1/γ_ps can be better, so brute force up to there is the truth.
    assert gap == pytest.approx(reference.pseudo_spectral_gap(matrix, longest=math.ceil(1 / gap)), rel=1e-6)


@settings(max_examples=25)
@given(POSITIVE.filter(lambda matrix: len(matrix) > 1))
def test_no_number_of_steps_is_better(matrix):
    """Mixed with a cycle, so that ℓ = 1 is often not the best."""
    mixed = 0.1 * matrix + 0.9 * cycle_with_jump(len(matrix), 0.5)
    gap = MarkovChain(mixed).pseudo_spectral_gap
    assert gap == pytest.approx(reference.pseudo_spectral_gap(mixed, longest=math.ceil(1 / gap)), rel=1e-7, abs=1e-12)


def test_a_slow_chain_is_not_followed_step_by_step(monkeypatch):
    """Slow steps round a triangle: ℓ of the order of 1/ε is best, and the bound |λ₂|^{2ℓ} excludes only ℓ > 1/ε."""
    looks, norm = [], spectral._norm
    monkeypatch.setattr(spectral, "_norm", lambda a: looks.append(1) or norm(a))

    def scaled_gap(epsilon):
        slow = np.array([[-1, 1, 0], [0, -2, 2], [5, 0, -5]])
        return MarkovChain(np.eye(3) + epsilon * slow).pseudo_spectral_gap / epsilon

    assert scaled_gap(1e-7) == pytest.approx(scaled_gap(1e-5), rel=1e-4)  # it is proportional to ε, but for O(ε²)
    assert scaled_gap(1e-11) == pytest.approx(scaled_gap(1e-5), rel=0.03)  # rounding: 1e-12 of some 4e-11
    assert len(looks) < 10_000  # of some 10⁷ and 10¹¹


def test_a_missed_singular_value_is_noticed(monkeypatch):
    """Lanczos iterations that stop at a smaller value would make the gap too wide."""
    matrix = np.random.default_rng(0).dirichlet(np.full(300, 0.05), 300)
    truth = MarkovChain(matrix).pseudo_spectral_gap
    monkeypatch.setattr(spectral, "DENSE", 300)
    assert MarkovChain(matrix).pseudo_spectral_gap == pytest.approx(truth, rel=1e-9)
    monkeypatch.setattr(spectral, "DENSE", 256)
    monkeypatch.setattr(spectral, "svds", lambda *_, **__: [0.1])
    assert MarkovChain(matrix).pseudo_spectral_gap == pytest.approx(truth, rel=1e-9)


# ---------------------------------------------------------------- mixing times

SLOW_AND_FAST = {
    "two states": [[0.9, 0.1], [0.4, 0.6]],
    "symmetric": [[0.75, 0.25], [0.25, 0.75]],  # ½·2^{−t}: the lower bound is met exactly
    "nearly periodic": [[0.05, 0.95], [0.9, 0.1]],
    "walls": birth_and_death(12, 0.5, 0.5),
    "drift": birth_and_death(12, 0.6, 0.1),
    "ring": ring(9, 0.5),
    "jump": cycle_with_jump(6, 0.5),
    "nearly decomposable": 0.999 * np.kron(np.eye(2), np.full((2, 2), 0.5)) + 0.001 * np.full((4, 4), 0.25),
}


@pytest.mark.parametrize("epsilon", [0.4, 0.25, 0.01])
@pytest.mark.parametrize("name", SLOW_AND_FAST)
def test_bounds_bracket_the_mixing_time(name, epsilon):
    chain = MarkovChain(SLOW_AND_FAST[name])
    lower, upper = chain.mixing_time_bounds(epsilon)
    assert 1 <= lower <= mixing_time(chain, epsilon) <= upper
    if name == "symmetric":
        assert lower == mixing_time(chain, epsilon)


@given(POSITIVE.filter(lambda matrix: len(matrix) > 1))
def test_bounds_bracket_every_mixing_time(matrix):
    chain = MarkovChain(matrix)
    lower, upper = chain.mixing_time_bounds()
    assert 1 <= lower <= mixing_time(chain, 0.25) <= upper


def test_a_gap_lost_in_rounding_bounds_nothing():
    chain = MarkovChain([[1 - 1e-13, 1e-13], [1e-13, 1 - 1e-13]])
    with pytest.raises(NotErgodicError, match=r"a spectral gap of 2.*e-13 cannot be told from zero"):
        chain.mixing_time_bounds()


# ---------------------------------------------------------------- size


def test_two_thousand_states_in_seconds():
    generator = np.random.default_rng(1)
    matrix = generator.dirichlet(np.ones(2_000), 2_000)
    begin = time.perf_counter()
    chain = MarkovChain(matrix)
    assert chain.is_ergodic
    assert not chain.is_reversible
    assert chain.stationary @ matrix == pytest.approx(chain.stationary, rel=1e-12)
    assert chain.reversal.size == 2_000
    # Random Dirichlet rows: ‖A‖² is of the order of 4/S (twice the standard deviation 1/S of an entry, times √S).
    assert 1 - 8 / 2_000 < chain.pseudo_spectral_gap < 1
    assert chain.inverse_stationary_sum >= 2_000**2
    assert chain.variability == pytest.approx(2_000 - 2, abs=0.1)  # each row has G ≈ 1 − 2/S
    assert chain.loss_variance > 0
    assert chain.mixing_time_bounds()[0] == 1
    assert time.perf_counter() - begin < 60  # it takes about four; this is no benchmark
