"""Doubtful places of Lemma 1 and Theorem 3: what the loss tends to, and what smoothing does to it (MATH §5)."""

import math

import numpy as np
import pytest
import reference as paper

EXACT = {"rel": 1e-12, "abs": 1e-14}
DENSE = np.array([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.3, 0.2, 0.5]])
STICKY = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.05, 0.05, 0.9]])
RUNS = 4_000


def simulated_counts(P, T, seed):
    """Counts after T transitions from state 0, for RUNS independent paths at once."""
    rng, S, runs = np.random.default_rng(seed), len(P), np.arange(RUNS)
    upper = np.cumsum(P, axis=1)
    upper[:, -1] = 1.0
    states, N = np.zeros(RUNS, dtype=int), np.zeros((RUNS, S, S), dtype=int)
    for u in rng.random((T, RUNS)):
        after = np.sum(u[:, None] >= upper[states], axis=1)
        N[runs, states, after] += 1
        states = after
    return N


def losses(P, N, alpha):
    """L of §2.3 for many paths at once. Rows never left weigh nothing, whatever their estimate."""
    exits = N.sum(axis=2, keepdims=True)
    estimate = (N + alpha) / np.where(exits > 0, exits + alpha * len(P), 1)
    return np.sum(exits[:, :, 0] * np.sum((estimate - P) ** 2, axis=2), axis=1) / N.sum(axis=(1, 2))


def test_the_vectorised_loss_is_the_reference():
    tables = simulated_counts(DENSE, 9, 0)[:5]
    assert losses(DENSE, tables, 1 / 9) == pytest.approx([paper.loss(DENSE, N) for N in tables], **EXACT)


def test_lemma_1_on_uniform_chains_the_smoothed_loss_is_always_smaller():
    # Smoothing moves every row towards 1/S: P̂ − P = N/(N + 1/3)·(P̃ − P), so L < L̃ on every path, with certainty.
    P = np.full((3, 3), 1 / 3)
    N = simulated_counts(P, 50, 1)
    assert np.all(losses(P, N, 1 / 9) < losses(P, N, 0.0))


@pytest.mark.parametrize(("P", "T"), [(DENSE, 50), (DENSE, 1_000), (np.array([[0.9, 0.1], [0.4, 0.6]]), 200)])
def test_lemma_1_the_smoothed_loss_is_smaller_in_most_runs(P, T):
    N = simulated_counts(P, T, 1)
    smaller = np.mean(losses(P, N, 1 / (3 * len(P))) < losses(P, N, 0.0))
    assert smaller > 0.5 + 4 * math.sqrt(0.25 / RUNS)  # four standard errors above a half


def test_lemma_1_fails_often_on_a_sticky_chain_too():
    # Not in most runs everywhere: here in somewhat less than half of them, which refutes L ≥ L̃ all the same.
    N = simulated_counts(STICKY, 200, 1)
    smaller = np.mean(losses(STICKY, N, 1 / 9) < losses(STICKY, N, 0.0))
    assert 0.4 < smaller < 0.5 - 4 * math.sqrt(0.25 / RUNS)


def test_the_loss_times_t_does_not_tend_to_a_constant():
    # Lemma 1 says T·L → ΣG. In law it tends to W = Σ λ_i χ²₁, λ the eigenvalues of diag(p) − ppᵀ over all rows, with
    # mean Σλ = ΣG and variance v = 2Σλ². A sample variance has standard error √((κ₄ + 2v²)/RUNS), κ₄ = 48 Σλ⁴.
    T = 2_000
    scaled = T * losses(DENSE, simulated_counts(DENSE, T, 2), 0.0)
    eigenvalues = np.concatenate([np.linalg.eigvalsh(np.diag(p) - np.outer(p, p)) for p in DENSE])
    v = paper.loss_variance(DENSE)
    assert v == pytest.approx(2 * np.sum(eigenvalues**2), **EXACT)
    assert np.sum(eigenvalues) == pytest.approx(paper.variability(DENSE), **EXACT)
    # Four standard errors, and 1 % for the finite T (relative bias of order 1/N_x ≈ 3/T).
    error = 4 * math.sqrt((48 * np.sum(eigenvalues**4) + 2 * v**2) / RUNS)
    assert abs(np.var(scaled, ddof=1) - v) <= error + 0.01 * v
    assert error < v / 4  # so that the test tells v from 0
    assert abs(np.mean(scaled) - paper.variability(DENSE)) <= 4 * math.sqrt(v / RUNS) + 0.01 * paper.variability(DENSE)


def test_theorem_3_the_mean_of_the_largest_loss_stays_above_lambda_over_n():
    # Two fair coins: W = ½χ²₁ + ½χ²₁ is exponential with mean 1 = ΣG, so n·max L/Λ tends in law to the larger of two
    # exponentials: mean 3/2 and variance 5/4, not 1 and 0.
    P, T = np.full((2, 2), 0.5), 500
    ratio = T * np.maximum(*(losses(P, simulated_counts(P, T, seed), 0.0) for seed in (3, 4)))
    # Four standard errors of the mean, and 2/T for the finite T.
    assert abs(np.mean(ratio) - 1.5) <= 4 * math.sqrt(1.25 / RUNS) + 2 / T


def test_theorem_3_step_2_is_a_minimum_over_shares():
    # max_k G_k/x_k is least at x = η (value Λ/n) and has no maximum: it grows without bound as a share vanishes.
    G, shares = np.array([1.0, 3.0]), np.linspace(0.001, 0.999, 999)
    worst = np.maximum(G[0] / shares, G[1] / (1 - shares))
    assert shares[np.argmin(worst)] == pytest.approx(0.25, **EXACT)
    assert worst.min() == pytest.approx(4.0, **EXACT)
    assert worst.max() > 900
