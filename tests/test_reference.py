"""Hand-solved examples that show that the reference itself is right."""

import itertools
import math

import numpy as np
import pytest
import reference as paper
import reference_policies as rules
from scipy.optimize import linprog

EXACT = {"rel": 1e-12, "abs": 1e-14}  # a few dozen roundings of double precision, no more


def cycle(q):
    """Three states in a ring: on with probability q, else stay."""
    return np.array([[1 - q, q, 0], [0, 1 - q, q], [q, 0, 1 - q]])


# ---------------------------------------------------------------- quantities of a chain


@pytest.mark.parametrize(("a", "b"), [(0.1, 0.4), (0.5, 0.01), (0.9, 0.7)])
def test_two_states_in_closed_form(a, b):
    P = np.array([[1 - a, a], [b, 1 - b]])
    assert paper.stationary(P) == pytest.approx([b / (a + b), a / (a + b)], **EXACT)
    assert paper.is_reversible(P)
    assert paper.reversal(P) == pytest.approx(P, **EXACT)
    assert paper.spectral_gap(P) == pytest.approx(1 - abs(1 - a - b), **EXACT)
    assert paper.pseudo_spectral_gap(P) == pytest.approx(1 - (1 - a - b) ** 2, **EXACT)
    assert paper.gini(P) == pytest.approx([2 * a * (1 - a), 2 * b * (1 - b)], **EXACT)
    assert paper.inverse_stationary_sum(P) == pytest.approx((a + b) * (1 / a + 1 / b), **EXACT)
    # Rows of two entries have λ = 2p(1−p) alone, and the variance of λχ² is 2λ².
    assert paper.loss_variance(P) == pytest.approx(sum(2 * g**2 for g in paper.gini(P)), **EXACT)


@pytest.mark.parametrize("q", [0.2, 0.5, 0.9])
def test_a_lazy_ring_of_three(q):
    P = cycle(q)
    assert paper.stationary(P) == pytest.approx([1 / 3] * 3, **EXACT)
    assert not paper.is_reversible(P)
    assert paper.reversal(P) == pytest.approx(P.T, **EXACT)
    # A circulant matrix is normal: P*P has the eigenvalues |1 − q + qω|² = 1 − 3q + 3q².
    assert paper.pseudo_spectral_gap(P) == pytest.approx(3 * q * (1 - q), rel=1e-9)
    assert paper.variability(P) == pytest.approx(6 * q * (1 - q), **EXACT)
    assert paper.inverse_stationary_sum(P) == pytest.approx(9, **EXACT)


def test_a_pseudo_spectral_gap_that_needs_two_steps():
    P = np.array([[0, 1, 0], [0, 0, 1], [0.5, 0.5, 0]])
    assert paper.stationary(P) == pytest.approx([0.2, 0.4, 0.4], **EXACT)
    # P*P joins only states with a common predecessor, {0, 1} and {2}: a double eigenvalue 1.
    assert paper.pseudo_spectral_gap(P, longest=1) == pytest.approx(0, abs=1e-12)
    # (P*)²P² = [[½,½,0],[¼,½,¼],[0,¼,¾]]: trace 7/4, determinant 1/16, so λ² − ¾λ + 1/16 = 0 for the other two.
    second = (0.75 + math.sqrt(0.75**2 - 0.25)) / 2
    assert paper.pseudo_spectral_gap(P, longest=2) == pytest.approx((1 - second) / 2, rel=1e-9)


def test_shares_of_a_problem():
    matrices = [np.full((2, 2), 0.5), cycle(0.5)]  # ΣG = 1 and 3/2
    assert paper.total_variability(matrices) == pytest.approx(2.5, **EXACT)
    assert paper.allocation(matrices) == pytest.approx([0.4, 0.6], **EXACT)


def test_one_state():
    P = np.ones((1, 1))
    assert (paper.spectral_gap(P), paper.pseudo_spectral_gap(P), paper.variability(P)) == (1.0, 1.0, 0.0)


# ---------------------------------------------------------------- estimators and losses


def test_counts_exits_and_visits_of_a_path():
    path = [0, 0, 1, 0, 2]
    assert paper.transition_counts(path, 3).tolist() == [[1, 1, 1], [1, 0, 0], [0, 0, 0]]
    assert paper.visits(path, 3).tolist() == [3, 1, 1]
    assert paper.occupancy(paper.transition_counts(path, 3)) == pytest.approx([3 / 4, 1 / 4, 0], **EXACT)
    assert paper.occupancy_visits(path, 3) == pytest.approx([3 / 5, 1 / 5, 1 / 5], **EXACT)


HALF = [[0.5, 0.5], [0.25, 0.75]]
ONE_LOOP = np.array([[1, 0], [0, 0]])  # α = 1/6: P̂ = ((7/8, 1/8), (1/2, 1/2)), π̂ = (1, 0)


@pytest.mark.parametrize(
    ("divergence", "expected"),
    [
        ("squared", 9 / 32),
        ("total-variation", 3 / 8),
        ("kl", math.log(16 / 7) / 2),
        ("chi-squared", 9 / 7),
        ("hellinger", 1 - (math.sqrt(7) + 1) / 4),
    ],
)
def test_losses_by_hand(divergence, expected):
    assert paper.loss(HALF, ONE_LOOP, divergence=divergence) == pytest.approx(expected, **EXACT)


def test_weights_of_the_three_losses():
    # Row 0 is off by 9/32, row 1 by 2·(1/4)² = 1/8; π = (1/3, 2/3).
    assert paper.loss(HALF, ONE_LOOP, weights="one") == pytest.approx(9 / 32 + 1 / 8, **EXACT)
    assert paper.loss(HALF, ONE_LOOP, weights="stationary") == pytest.approx(3 / 32 + 1 / 12, **EXACT)


# ---------------------------------------------------------------- levels, index, conventions


def test_levels_by_hand():
    # log 100 / log 1.1 = 48.3, rounded up to 49.
    assert paper.zeta_corollary(100, 0.1) == pytest.approx(1.1 * math.log(490), **EXACT)
    assert paper.zeta(100, 0.1, S=3) == pytest.approx(1.1 * math.log(49 * 180), **EXACT)
    assert paper.beta(100, 0.1, pairs=2 * 9) == pytest.approx(1.1 * math.log(49 * 1080), **EXACT)


@pytest.mark.parametrize("level", [1.0, 13.0])
def test_an_index_by_hand(level):
    # Ĝ = 2·7/64; N^{3/2}/(N + 1/3)² = 9/16 times 2·√7/8; S/(N + 1/3) = 3/2; T = 1.
    expected = level * 7 / 16 + 6.6 * level**1.5 * 9 * math.sqrt(7) / 64 + 28 * level**2 * 3 / 2
    assert paper.index(ONE_LOOP, level) == pytest.approx(expected, **EXACT)
    tight = level * 7 / 16 + 3.78 * level**1.5 * 9 * math.sqrt(7) / 64 + 8.76 * level**2 * 3 / 2
    assert paper.index(ONE_LOOP, level, paper.TIGHT_CONSTANTS) == pytest.approx(tight, **EXACT)
    assert paper.index(np.zeros((2, 2)), level) == math.inf


def test_a_general_alpha_meets_the_default():
    # With ζ = β and ζ′ = β/3 + α(S−1) the general constants exceed Lemma 8's ζ′ = β/3 by that α(S−1) alone.
    N, level = np.array([[3, 1], [2, 5]]), 10.0
    c1, c2 = paper.lemma_4_constants(level, level / 3 + 1 / 6)
    constants = (c1 / level**1.5, c2 / level**2)
    assert paper.index_general(N, level, 1 / 6) == pytest.approx(paper.index(N, level, constants), **EXACT)


def test_the_row_of_a_state_just_discovered_sums_to_a_quarter():
    literal, exits = paper.smoothed_visits([0, 1], 2), paper.smoothed(paper.transition_counts([0, 1], 2))
    assert literal.sum(axis=1) == pytest.approx([1, 1 / 4], **EXACT)
    assert exits.sum(axis=1) == pytest.approx([1, 1], **EXACT)
    # After N exits the current row sums to (N + 1/3)/(N + 4/3).
    assert paper.smoothed_visits([0] * 10, 2).sum(axis=1)[0] == pytest.approx((9 + 1 / 3) / (9 + 4 / 3), **EXACT)


def test_visits_and_exits_part_at_the_start_and_meet_along_a_path():
    P = np.array([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.3, 0.2, 0.5]])
    path, level = paper.draw_path(P, 10_000, np.random.default_rng(7)), paper.beta(10_000, 0.05, 9)

    def gap(t):
        exits = paper.index(paper.transition_counts(path[:t], 3), level)
        return abs(paper.index_visits(path[:t], 3, level) / exits - 1)

    # Only T (by one) and the current row (its m exits by one) differ. With P̂ ≤ 4/5, a variance P̂(1−P̂) changes by a
    # relative 1/(m(1−P̂)) ≤ 5/m at most, each quotient of N by ≤ 1/m, T by 1/t ≤ 1/m: for m ≥ 15 their product stays
    # within (1 + 5/m)(1 + 1/m)² − 1 < 8/m.
    for t in (100, 1_000, 10_000):
        N = paper.transition_counts(path[:t], 3)
        assert paper.smoothed(N).max() <= 0.8
        fewest = N.sum(axis=1).min()
        assert fewest >= 15
        assert 0 < gap(t) <= 8 / fewest
    assert max(gap(t) for t in range(2, 12)) > 0.3
    assert gap(10_000) < 0.003


# ---------------------------------------------------------------- lemmas: what they claim, on counts that allow it


def random_cases(number, S):
    rng = np.random.default_rng(11)
    for _ in range(number):
        P = rng.dirichlet(np.full(S, rng.choice([0.2, 1.0, 5.0])), size=S)
        exits = rng.integers(0, rng.choice([3, 30, 300]), size=S)
        exits[0] += 1
        yield P, np.array([rng.multinomial(m, row) for m, row in zip(exits, P, strict=True)])


@pytest.mark.parametrize("level", [2.0, 12.0])
def test_on_the_event_c_the_lemmas_hold(level):
    held = 0
    for P, N in random_cases(150, 3):
        if paper.event_c_holds(P, N, level):
            held += 1
            lower, upper = paper.lemma_8(P, N, level)
            error = paper.loss(P, N)
            assert error <= paper.lemma_7(P, N, level)
            assert lower <= paper.index(N, level) <= upper
            assert lower <= paper.index(N, level, paper.TIGHT_CONSTANTS)
            assert error <= paper.index(N, level, paper.TIGHT_CONSTANTS) <= paper.index(N, level)
    assert held > 75


@pytest.mark.parametrize("alpha", [1 / 9, 1 / 3, 1.0])
def test_lemma_3_implies_lemma_4(alpha):
    held, level = 0, 3.0
    for P, N in random_cases(150, 3):
        error = abs(paper.smoothed(N, alpha) - P)
        if np.all(error <= paper.lemma_3(P, N, level, alpha)):
            held += 1
            assert np.all(error <= paper.lemma_4(N, level, alpha))
            assert paper.loss(P, N, alpha) <= paper.index_general(N, level, alpha)
    assert held > 75


def test_lemma_5_by_hand():
    # log((1/δ)√(2/π_min)) = log 20 for δ = .1, π_min = 1/2; γn = 100.
    width = math.sqrt(8 * 0.25 / 100 * math.log(20)) + 20 / 100 * math.log(20)
    assert paper.lemma_5([0.5, 0.5], 0.5, 200, 0.1) == pytest.approx([width, width], **EXACT)


def test_event_c_looks_at_every_time_of_a_path():
    P, loop = np.array([[0.5, 0.5], [0.5, 0.5]]), [0] * 200
    level = paper.beta(300, 0.5, 4)  # 1.1·log(60·24/.5) = 8.8
    # m loops at a fair coin: the error is m/2 over m + 1/3, the bound √(m·level/2) + level/3 over the same.
    last = max(m for m in range(200) if m / 2 <= math.sqrt(m * level / 2) + level / 3)
    assert paper.event_c(P, loop[: last + 1], 300, 0.5, 4)
    assert not paper.event_c(P, loop[: last + 2], 300, 0.5, 4)
    repaired = loop[: last + 2] + [1, 1, 0, 0] * 50  # its end is typical again, its past is not
    assert paper.event_c_holds(P, paper.transition_counts(repaired, 2), level)
    assert not paper.event_c(P, repaired, 300, 0.5, 4)


def test_theorems_by_hand():
    # Two fair coins: S = 2, ΣG = 1 each, Λ = 2, η = ½, H = 4, π_min = ½, γ_ps = 1.
    coins = [np.full((2, 2), 0.5)] * 2
    assert paper.theorem_1(100, 2, 2, 3.0) == pytest.approx(72 * (304 / 96 + 1128 / 96**2), **EXACT)
    assert paper.excess_constant_main(coins) == pytest.approx(300 * 4 + 3 * 2 * 8, **EXACT)
    assert paper.excess_constant_appendix(coins) == pytest.approx(300 * 4 + 2.4 * 4 * 2, **EXACT)
    assert paper.cutoff_budget(coins, 0.1) == pytest.approx(2 * (600 * math.log(40 * math.sqrt(2))) ** 2, rel=1e-9)
    level = paper.beta(10**6, 0.1, 8)
    expected = 4 * level / 10**6 + 1219.2 * level**1.5 / 10**9
    assert paper.theorem_2(coins, 10**6, 0.1) == pytest.approx(expected, **EXACT)


# ---------------------------------------------------------------- Algorithm 1


def test_ba_mc_warms_up_and_breaks_ties_by_number():
    # Equal constant paths have equal indices, and a constant path's index falls: the chains take turns.
    assert paper.ba_mc([[0] * 9] * 3, [2] * 3, 12, 0.05) == [0, 0, 1, 1, 2, 2, 0, 1, 2, 0, 1, 2]


def test_ba_mc_takes_states_from_a_function():
    assert paper.ba_mc([iter(lambda: 0, None), itertools.repeat(0)], [2, 2], 6, 0.05) == [0, 0, 1, 1, 0, 1]


@pytest.mark.parametrize("literal", [False, True])
def test_ba_mc_prefers_the_chain_with_more_states_in_use(literal):
    rng = np.random.default_rng(3)
    paths = [[0] * 60, paper.draw_path(np.full((3, 3), 1 / 3), 60, rng)]
    choices = paper.ba_mc(paths, [3, 3], 60, 0.05, literal=literal)
    assert choices[:4] == [0, 0, 1, 1]
    assert choices.count(1) > 2 * choices.count(0)


def test_ba_mc_is_the_rule_of_its_index():
    rng = np.random.default_rng(5)
    matrices = [cycle(0.3), np.full((2, 2), 0.5)]
    paths = [paper.draw_path(P, 80, rng) for P in matrices]
    level = paper.beta(80, 0.05, 9 + 4)
    chosen = rules.allocate(paths, [3, 2], 80, lambda tables, _: [paper.index(N, level) for N in tables])
    assert chosen == paper.ba_mc(paths, [3, 2], 80, 0.05)


# ---------------------------------------------------------------- certificates and the other rules


def test_the_knapsack_is_the_linear_programme():
    rng = np.random.default_rng(2)
    for _ in range(20):
        theta, most, bound = rng.uniform(0.05, 1, 5), rng.uniform(0.1, 9, 5), rng.uniform(0.1, 12)
        solved = linprog(-np.ones(5), A_ub=[theta], b_ub=[bound], bounds=[(0, m) for m in most])
        # HiGHS answers within 1e-7 of feasibility; the values are of order 10.
        assert rules.knapsack(theta, most, bound) == pytest.approx(-solved.fun, rel=1e-6)


def test_the_mixture_bound_of_one_row_by_hand():
    # One row left once: Σθ W ≤ B allows more than W ≤ 2N = 2 does.
    assert rules.mixture_excess(ONE_LOOP, 1, 0.05) == 2.0
    # One row left 100 times: all offsets are 0, the family without a prior wins; W̄ = min over m = 0 … 4 of B/θ.
    N = np.array([[60, 40], [0, 0]])
    bounds = []
    for m, rho in enumerate([1, 4, 16, 64, 256]):
        cost = min(100 / rho / 4, math.log(1 + 50 / rho) / 2)
        bounds.append((1 + 2 * rho / 100) * (math.log(3 / 0.05) + math.log(3 * (m + 1) * (m + 2)) + cost))
    assert rules.mixture_excess(N, 3, 0.05) == pytest.approx(min(bounds), **EXACT)
    shift = math.sqrt(0.5 * 100) / (100 + 1 / 3) / 3
    expected = (math.sqrt(min(bounds)) + shift) ** 2 / 100
    assert rules.mixture_certificate(N, 3, 0.05) == pytest.approx(expected, **EXACT)


def test_offsets_are_rounded_logarithms():
    assert [rules.natural_offset(q, 1) for q in (1, 2, 7, 8, 31, 32)] == [0, 1, 1, 2, 2, 3]
    for most, exits in [(100, 3), (1_000, 7), (5, 3), (10**6, 11)]:
        assert rules.natural_offset(most, exits) == round(math.log(most / exits) / math.log(4))


def test_entry_intervals():
    assert rules.entry_interval(0, 0, 0.01) == (0.0, 1.0)
    # One transition seen of one: the mixture gives it 1/2, and (1/2)/p ≤ 1/level is p ≥ level/2.
    lower, upper = rules.entry_interval(1, 1, 0.01)
    assert (lower, upper) == (pytest.approx(0.005, abs=1e-14), 1.0)
    low, high = rules.entry_interval(3, 10, 0.01)
    assert low < 0.3 < high
    mirrored = rules.entry_interval(7, 10, 0.01)
    assert mirrored == (pytest.approx(1 - high, abs=1e-13), pytest.approx(1 - low, abs=1e-13))


def test_wilson_hilferty_is_close_to_the_chi_squared_law():
    # The 95 % point of χ² with 10 degrees of freedom is 18.307 (printed tables); the cube-root rule is within .1 %.
    assert rules.wilson_hilferty(10.0, 20.0, 0.95) == pytest.approx(18.307, rel=1e-3)
    assert rules.wilson_hilferty(0.0, 0.0, 0.95) == 0.0


FOUR = np.array([[2, 1], [1, 0]])  # T = 4; frequencies: Ĝ = 4/9 and 0; cap = 1/2


def test_indices_by_hand():
    assert rules.uniform(FOUR) == 0.25
    assert rules.static(FOUR, 3.0) == 0.75
    assert rules.oracle(FOUR, np.full((2, 2), 0.5)) == 0.25
    width = math.sqrt(2.5 * math.log(1_000) / 2)
    expected = (4 / 9 + 5 * width * (1 / math.sqrt(3) + 1)) / 4
    assert rules.ch_as(FOUR, 1_000) == pytest.approx(expected, **EXACT)
    b = math.sqrt(2 * math.log(2 * 1_000**4.5))
    assert rules.b_as(FOUR, 1_000) == pytest.approx(((2 / 3 + b / math.sqrt(3)) ** 2 + b**2) / 4, **EXACT)
    # Posterior means (5/8, 3/8) and (3/4, 1/4).
    assert rules.bayes(FOUR) == pytest.approx((3 * (30 / 64) / 5 + (3 / 8) / 3) / 4, **EXACT)
    # μ̃ is at S₊·cap = 1; N_x = 3 and 1 give r/(N_x + r) = 1/10 and 1/4.
    assert rules.scout(FOUR) == pytest.approx((1 + (7 / 300 + 1 / 48) / 2) / 4, **EXACT)
    assert rules.gini_ucb(FOUR, 1, 0.05) == pytest.approx(1 / 4, **EXACT)
    assert rules.certifier(FOUR, 1, 0.05) == rules.mixture_certificate(FOUR, 1, 0.05)


def test_scout_and_gini_ucb_away_from_their_caps():
    N = np.array([[9_000, 1_000], [500, 9_500]])
    excess, G = rules.mixture_excess(N, 2, 0.05), 0.18 + 0.095
    smoothed = (10_000 - 2 / 3) / 30_001**2  # two rows of cap 1/2, r/(N_x + r) = 1/(3N_x + 1)
    rare = G / 10_000 / (1 + 2 * 9_999 / 10_000**2)
    bonus = 2 * (1 / 8 + 4 / 2) / 10_000
    assert rules.scout(N) == pytest.approx(((G + 2 / 10_000 * rare + bonus) ** 0.75 + smoothed) / 20_000, **EXACT)
    expected = (G + 2 * math.sqrt(excess * (1 - G) / 10_000)) / 20_000
    assert rules.gini_ucb(N, 2, 0.05) == pytest.approx(expected, **EXACT)


def test_gafs_max_serves_the_least_sampled_chain_first():
    tables = [FOUR, 25 * FOUR]
    assert rules.gafs_max(tables, 9)[0] == pytest.approx(1 / 9, **EXACT)  # 4 transitions are √9 + 1: enough
    assert rules.gafs_max(tables, 10)[0] == math.inf
    assert rules.gafs_max(tables, 10)[1] == pytest.approx(1 / 225, **EXACT)


def test_the_share_rule_solves_its_equation():
    matrices = [np.full((2, 2), 0.5), cycle(0.1), np.array([[0.99, 0.01], [0.02, 0.98]])]
    shares = rules.oracle_max_shares(matrices)
    laws = [(paper.variability(P), paper.loss_variance(P)) for P in matrices]
    quantiles = [rules.wilson_hilferty(*law, 1 - share / 2) for law, share in zip(laws, shares, strict=True)]
    # Two nested root searches, each to 1e-13.
    assert shares == pytest.approx(np.array(quantiles) / sum(quantiles), rel=1e-8)
    assert rules.oracle_max_shares(matrices[:1] * 4) == pytest.approx([0.25] * 4, rel=1e-8)


def test_an_asymptotic_certificate_by_hand():
    N = np.array([[5, 5], [0, 0]])
    # Ĝ = 1/2 is the cap; λ = 1/2 alone: mean 1/2, variance 1/2; T/t = 10/40.
    quantile = rules.wilson_hilferty(0.5, 0.5, 1 - 0.05 / 4)
    assert rules.asymptotic_certificate(N, 40, 0.05) == pytest.approx(quantile / 10, **EXACT)
