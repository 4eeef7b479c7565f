"""Doubtful places of Theorems 1 and 2: the falling third term, C₀ and the cut-off budget (MATH §5).

Constants are redone from the paper's own derivations: its numbers stand as literals beside ours.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
import reference as paper
from scipy.optimize import brentq

from chainscout.chains import MarkovChain
from chainscout.guarantees import lemma_8

EXACT = {"rel": 1e-12, "abs": 1e-14}


# ---------------------------------------------------------------- Theorem 1


def third_term(T, weights):
    """(1/T) Σ 1{T_x > 0}/(T_x + αS), αS = 1/3: what 28β²S multiplies in the index."""
    return sum(Fraction(1) / (w + Fraction(1, 3)) for w in weights if w > 0) / T


def test_theorem_1_needs_a_third_term_that_falls_but_a_new_state_raises_it():
    before, after = third_term(2, (2, 0)), third_term(3, (2, 1))
    assert (before, after) == (Fraction(3, 14), Fraction(11, 28))
    assert (round(float(before), 3), round(float(after), 3)) == (0.214, 0.393)
    # The same by the reference, visits (path 0 0, then 1) and exits (path 0 0 1, then 0), S = 2.
    for weights, expected in [((2, 0), before), ((2, 1), after)]:
        _, _, third = paper.index_terms(sum(weights), weights, np.full((2, 2), 0.5))
        assert third == pytest.approx(2 * float(expected), **EXACT)
    # The whole index rises with it, in both conventions, so no proof may use that an index decreases.
    level = paper.beta(100, 0.05, 4)
    assert paper.index_visits([0, 0, 1], 2, level) > paper.index_visits([0, 0], 2, level)
    rising = [paper.index(paper.transition_counts(path, 2), level) for path in ([0, 0, 1], [0, 0, 1, 0])]
    assert rising[1] > rising[0]


def test_theorem_1_explicitly():
    # u = K/(n − 2K) ≤ 1/2 for n ≥ 4K: (√(288 + 550u) + √.175)² ≤ 304 + 564u, the proof's last step.
    for u in np.linspace(0, 0.5, 101):
        assert (math.sqrt(288 + 550 * u) + math.sqrt(0.175)) ** 2 <= 304 + 564 * u
    K, S, level, n = 3, 4, 7.0, 50
    u = K / (n - 2 * K)
    expected = S**2 * level**2 * u * (304 + 564 * u)
    assert paper.theorem_1(n, K, S, level) == pytest.approx(expected, **EXACT)


def test_lemmas_10_and_12_use_states_that_were_not_left_yet():
    """Ten deterministic rows 0 → 1 → … → 10, then a fair choice between 10 and 0: an ergodic chain, on its own path."""
    P = np.zeros((11, 11))
    P[np.arange(10), np.arange(1, 11)] = 1.0
    P[10, [0, 10]] = 0.5
    level, path = paper.beta(1_000, 0.05, 2 * 11**2), list(range(11))
    before, after = (np.array(paper.transition_counts(steps, 11)) for steps in (path, [*path, 10]))
    assert (before.sum(), after.sum()) == (10, 11)
    G = paper.gini(P)

    def lower(N):  # Lemma 8, over the states that were left
        return 2 * level / N.sum() * sum(G[x] for x in range(11) if N[x].sum() > 0)

    assert lower(before) == 0
    assert lower(after) == pytest.approx(2 * level * 0.5 / 11, **EXACT)
    # What the proofs write for the bound at t: all states, and T at the end. Nothing at t is as large.
    assert 2 * level / after.sum() * paper.variability(P) == pytest.approx(lower(after), **EXACT)
    chain = MarkovChain(P)
    assert chain.is_ergodic
    for N in (before, after):
        assert lemma_8(chain, N.sum(axis=1), level)[0] == pytest.approx(lower(N), **EXACT)


def test_the_first_term_of_the_index_grows_when_a_state_is_left_for_the_first_time():
    # S = 2, a path that stays in 0 nine times, then 0 → 1 → 1: ΣĜ/T with estimates, as it stands in the index.
    first = []
    for path in ([0] * 10 + [1], [0] * 10 + [1, 1]):
        N = np.array(paper.transition_counts(path, 2))
        first.append(paper.index_terms(N.sum(), N.sum(axis=1), paper.smoothed(N))[0])
    assert first[1] > 1.8 * first[0]


# ---------------------------------------------------------------- Theorem 2: C₀ and n_cutoff


def test_the_two_forms_of_the_excess_constant_always_differ():
    assert 4 / 3 / 2**1.5 <= 0.48  # (a) of the proof: 4/3 · (1/2)^{3/2}
    assert math.sqrt(3) * 0.48 <= 0.84  # Jensen, three terms
    assert 2.37 < 0.84 * 2**1.5 < 2.4  # A₁^{3/2}/ΣG gives 2.376 √(SH_kΛ)/η_k, printed 2.4
    for epsilon in (0.5, 0.1, 0.001):
        P = np.array([[0.5, 0.5], [epsilon, 1 - epsilon]])
        H = paper.inverse_stationary_sum(P)
        first = 150 * math.sqrt(2 * paper.variability(P) * H)
        main, appendix = paper.excess_constant_main([P]) - first, paper.excess_constant_appendix([P]) - first
        # One chain: 3H against 2.4√H. H ≥ S² ≥ 4, so the main text's is 2.5 times the proof's or more.
        assert main / appendix == pytest.approx(1.25 * math.sqrt(H), rel=1e-9)
        assert main / appendix >= 2.5 * (1 - 1e-9)


def least_multiple(variance, linear, target=0.5):
    """The least A with √(variance/A) + linear/A ≤ target: T = A·ε/π_min makes ξ ≤ π/2 (proof of Lemma 11)."""
    return brentq(lambda A: math.sqrt(variance / A) + linear / A - target, 1, 1e6, xtol=1e-12)


def test_the_cutoff_constant_of_reversible_chains():
    least = least_multiple(8, 20)
    root = (math.sqrt(8 + 40) - math.sqrt(8)) / 40  # 20u² + √8·u − ½ = 0, u = 1/√A
    assert least == pytest.approx(root**-2, rel=1e-9)
    assert 95.1 < least < 95.3  # printed 96
    assert 0.327 * 300 > 96 > least  # T ≥ .327√(n/K): 96/.327 = 293.6, printed 300


def test_the_cutoff_constant_of_other_chains_is_about_585():
    least = least_multiple(16, 40)
    assert least == pytest.approx(2 * least_multiple(8, 20), rel=1e-9)
    assert 582 < least / 0.327 < 583
    assert math.sqrt(16 / (0.327 * 300)) + 40 / (0.327 * 300) > 0.8  # 300 is far from enough for ½
    # Paulin's n + 1/γ_ps in place of n: Tγ_ps ≥ A·log((K/δ)√(2/π_min))/π_min ≥ 190·log 2/(1/2) for S ≥ 2.
    inflated = 1 + 1 / (190 * math.log(2) / 0.5)
    assert least_multiple(16 * inflated, 40) / 0.327 < 585


def paulin_tail(t, n, variance, gap, smallest, reversible):
    """Paulin's bound on P(|Σ f(X_i) − nπf| ≥ t) for 0 ≤ f ≤ 1: 2·exp(−exponent) for a chain that starts in π.

    Theorem 3.4 of Paulin 2015 without reversibility, its twin with half the constants under it. From any start the
    probability is at most √(that/π_min), which is where Lemma 5's logarithm comes from.
    """
    if reversible:
        exponent = t**2 * gap / (4 * n * variance + 10 * t)
    else:
        exponent = t**2 * gap / (8 * (n + 1 / gap) * variance + 20 * t)
    return math.sqrt(2 * math.exp(-exponent) / smallest)


def test_lemma_5_is_for_one_state_and_doubles_without_reversibility():
    pi, gap, n, delta = [0.2, 0.3, 0.5], 0.4, 10**9, 0.05
    widths = paper.lemma_5(pi, gap, n, delta)
    tails = [paulin_tail(n * w, n, q * (1 - q), gap, 0.2, True) for w, q in zip(widths, pi, strict=True)]
    # The width solves its quadratic loosely: by a relative .2 % at this n, which is 1 % of the tail. So each state
    # has nearly the whole δ to itself, and "for all x" needs a union over the states, which is missing.
    assert all(0.98 * delta <= tail <= delta for tail in tails)
    assert sum(tails) > 2.9 * delta
    # Theorem 3.4 needs √16 and 40 for √8 and 20: Lemma 5's width is not enough, √2 (and 2) times it is.
    log = math.log(math.sqrt(2 / 0.2) / delta)
    for w, q in zip(widths, pi, strict=True):
        assert paulin_tail(n * w, n, q * (1 - q), gap, 0.2, False) > delta
        inflated = 16 * q * (1 - q) * (1 + 1 / (gap * n)) / (gap * n)
        wider = math.sqrt(inflated * log) + 40 / (gap * n) * log
        assert paulin_tail(n * wider, n, q * (1 - q), gap, 0.2, False) <= delta


def test_a_reversible_chain_needs_its_own_gap_in_the_cutoff():
    # The 300 of reversible chains goes with γ, but the theorem writes γ_ps = γ(2 − γ) for them too.
    P = np.array([[0.95, 0.05], [0.05, 0.95]])
    gap, pseudo = paper.spectral_gap(P), paper.pseudo_spectral_gap(P)
    assert pseudo == pytest.approx(gap * (2 - gap), rel=1e-9)
    assert 0.327 * 300 * gap / pseudo < least_multiple(8, 20)


def test_the_cutoff_needs_every_state_visited():
    # Σ over seen x of 1/(T_x + αS) ≥ S/(T + αS) (proof of Lemma 11) is false for a state never seen, T = 100, S = 2.
    assert third_term(1, (100, 0)) < Fraction(2) / (100 + Fraction(1, 3))
    assert third_term(1, (99, 1)) >= Fraction(2) / (100 + Fraction(1, 3))


def test_the_lower_bound_on_pulls_behind_the_cutoff():
    for ratio in np.geomspace(4, 1e8, 200):  # n/K; √((n−K)/(1.575K)) − 1/3 ≥ .56√(n/K) − 1/3 ≥ .327√(n/K)
        pulls = math.sqrt((ratio - 1) / 1.575) - 1 / 3
        assert pulls >= 0.56 * math.sqrt(ratio) - 1 / 3 >= 0.327 * math.sqrt(ratio)
