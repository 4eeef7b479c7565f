"""The paper's inequalities and theorems against `reference`, by hand, and along simulated paths."""

import math

import numpy as np
import pytest
import reference

from chainscout import guarantees
from chainscout.certificates import paper
from chainscout.chains import MarkovChain
from chainscout.counts import Counts, smoothing
from chainscout.errors import ChainscoutError, NotErgodicError
from chainscout.losses import loss
from chainscout.problems import Problem

EXACT = {"rel": 1e-12, "abs": 1e-14}
CHAINS = {
    "two states": MarkovChain([[0.9, 0.1], [0.4, 0.6]]),
    "sticky": MarkovChain([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.05, 0.05, 0.9]]),
    "not reversible": MarkovChain([[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]]),
    "with zeros": MarkovChain([[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5], [0.5, 0.0, 0.5, 0.0], [1.0, 0.0, 0.0, 0.0]]),
}
LEVELS = (2.0, 7.5, 15.0)


def tables(chain, seed=0):
    """Counts after 1, 5, 40, 300 and 1,200 transitions of one path; the first ones leave states unseen."""
    path = reference.draw_path(chain.matrix, 1_201, np.random.default_rng(seed))
    return [reference.transition_counts(path[: t + 1], chain.size) for t in (1, 5, 40, 300, 1_200)]


CASES = [pytest.param(chain, N, id=f"{name}, T={N.sum()}") for name, chain in CHAINS.items() for N in tables(chain)]

# ---------------------------------------------------------------- levels


@pytest.mark.parametrize("n", [2, 3, 10, 11, 1_000, 123_456, 10**9])
@pytest.mark.parametrize("delta", [0.5, 0.05, 1e-9])
def test_levels_are_the_reference(n, delta):
    for pairs in (1, 4, 5 * 25):
        assert guarantees.beta(n, delta, pairs) == pytest.approx(reference.beta(n, delta, pairs), **EXACT)
    assert guarantees.zeta(n, delta, 1) == pytest.approx(reference.zeta_corollary(n, delta), **EXACT)
    for size in (2, 7):
        assert guarantees.zeta(n, delta, 2 * size**2) == pytest.approx(reference.zeta(n, delta, size), **EXACT)


def test_levels_by_hand():
    # log 1000/log 1.1 = 72.48 → 73 slices; 73·6·25/.1 = 109,500.
    assert guarantees.beta(1_000, 0.1, 25) == pytest.approx(1.1 * math.log(109_500), **EXACT)
    assert guarantees.zeta(8, 0.5, 1, c=2.0) == pytest.approx(2 * math.log(3 / 0.5), **EXACT)  # slices 1–2, 2–4, 4–8
    # One observation fills no slice; the level is that of one slice, not log 0.
    assert guarantees.beta(1, 0.1, 1) == pytest.approx(1.1 * math.log(60), **EXACT)
    # K = S = 5, n = 5·10⁴, δ = .05: MATH §8's example.
    assert guarantees.beta(50_000, 0.05, 125) == pytest.approx(15.79, abs=0.005)


def test_beta_of_an_unknown_horizon():
    # T = 1: log(c)·log(c²)/log²c = 2.
    assert guarantees.beta_unknown_horizon(1, 0.1, 25) == pytest.approx(1.1 * math.log(2 * 6 * 25 / 0.1), **EXACT)
    for transitions in (2, 17, 10**6):
        # The paper's own form has log N·log(cN); shifted by one slice it holds from N = 1 on.
        shifted = reference.peeling_unbounded(1.1 * transitions, 0.1 / (6 * 25))
        assert guarantees.beta_unknown_horizon(transitions, 0.1, 25) == pytest.approx(shifted, **EXACT)


def test_the_slices_of_an_unknown_horizon_share_delta():
    # Slice j holds c^j ≤ N < c^{j+1} and gets δ/((j+1)(j+2)), which sums to δ; what is used is never more than that.
    c, delta = guarantees.PEELING, 0.1
    for transitions in range(1, 2_000):
        j = math.floor(math.log(transitions) / math.log(c) + 1e-12)
        share = delta / ((j + 1) * (j + 2))
        level = guarantees.beta_unknown_horizon(transitions, delta, 1, c)
        assert level >= c * math.log(6 / share) - 1e-9
    # It grows with T, so that a chain's own T may stand for the exits of any of its states.
    levels = [guarantees.beta_unknown_horizon(t, delta, 4) for t in range(1, 500)]
    assert levels == sorted(levels)


# ---------------------------------------------------------------- Lemmas 3, 4, 5


@pytest.mark.parametrize(("chain", "N"), CASES)
@pytest.mark.parametrize("alpha", [None, 1e-3, 1.0])
def test_half_widths_are_the_reference(chain, N, alpha):
    exits, a = N.sum(axis=1), smoothing(alpha, chain.size)
    for level in LEVELS:
        third = guarantees.lemma_3(chain.matrix, exits, level, a)
        assert third == pytest.approx(reference.lemma_3(chain.matrix, N, level, a), **EXACT)
        fourth = guarantees.lemma_4(reference.smoothed(N, a), exits, level, a)
        assert fourth == pytest.approx(reference.lemma_4(N, level, a), **EXACT)


def test_lemma_3_by_hand():
    # N = 9 exits, α = 1/2, S = 2, ζ = 3: (√(2·9·¼·3) + 1 + 0)/10 for p = ½, (0 + 1 + ½)/10 for p = 0 or 1.
    width = guarantees.lemma_3(np.array([[0.5, 0.5], [0.0, 1.0]]), np.array([9, 9]), 3.0, 0.5)
    expected = (math.sqrt(13.5) + 1) / 10
    assert width == pytest.approx(np.array([[expected, expected], [0.15, 0.15]]), **EXACT)


def test_lemma_4_constants():
    # ζ = 2, α(S − 1) = 1/3: ζ' = 1, c₁ = √16·(4 + 1), c₂ = 1 + 8(8 + 1 + 2√2) + 4(5.3√2 + √2).
    first, second = guarantees.lemma_4_constants(2, 2.0, 1 / 3)
    assert first == pytest.approx(20, **EXACT)
    assert second == pytest.approx(73 + (16 + 4 * 6.3) * math.sqrt(2), **EXACT)
    for size in (2, 6):
        for level in LEVELS:
            for alpha in (1 / (3 * size), 1.0):
                expected = reference.lemma_4_constants(level, level / 3 + alpha * (size - 1))
                assert guarantees.lemma_4_constants(size, level, alpha) == pytest.approx(expected, **EXACT)
    # With ζ' = β/3 (what β's spare c·log 3 makes of α(S−1)) they are BA-MC's, rounded up.
    first, second = guarantees.lemma_4_constants(1, 1.0, 1.0)
    assert first <= paper.STATED[0] <= first + 0.01
    assert second <= paper.STATED[1] <= second + 0.2


def test_lemma_5_is_the_reference():
    for matrix in ([[0.9, 0.1], [0.4, 0.6]], [[0.7, 0.3, 0.0], [0.2, 0.5, 0.3], [0.0, 0.6, 0.4]]):
        expected = reference.lemma_5(reference.stationary(matrix), reference.spectral_gap(matrix), 500, 0.1)
        assert guarantees.lemma_5(MarkovChain(matrix), 500, 0.1) == pytest.approx(expected, rel=1e-9)
    # π = (4/5, 1/5), γ = ½, T = 200: ε = log(√10/.1)/100.
    level = math.log(math.sqrt(10) / 0.1) / 100
    expected = [math.sqrt(8 * 0.16 * level) + 20 * level] * 2
    assert guarantees.lemma_5(CHAINS["two states"], 200, 0.1) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("matrix", [CHAINS["not reversible"].matrix, [[0, 1], [1, 0]], np.eye(2)])
def test_lemma_5_needs_an_ergodic_reversible_chain(matrix):
    with pytest.raises(NotErgodicError):
        guarantees.lemma_5(MarkovChain(matrix), 100, 0.1)


# ---------------------------------------------------------------- the event C, Lemmas 7 and 8


@pytest.mark.parametrize(("chain", "N"), CASES)
@pytest.mark.parametrize("level", [0.01, 0.3, *LEVELS])
def test_the_event_c_is_the_reference(chain, N, level):
    expected = reference.event_c_holds(chain.matrix, N, level)
    assert guarantees.on_event_c(chain, Counts.from_transitions(N), level) == expected


def test_the_event_c_happens_and_does_not():
    verdicts = {guarantees.on_event_c(case.values[0], Counts.from_transitions(case.values[1]), 0.3) for case in CASES}
    assert verdicts == {True, False}
    # One state left nine times towards y: |.9 − ½·…| by hand. P̂ = 9.1667/9.3333, width (√(4.5β) + β/3)/9.3333.
    counts = Counts.from_transitions([[9, 0], [0, 0]])
    fair = MarkovChain(np.full((2, 2), 0.5))
    deviation = 9 + 1 / 6 - (9 + 1 / 3) / 2
    edge = ((-math.sqrt(4.5) + math.sqrt(4.5 + 4 / 3 * deviation)) / (2 / 3)) ** 2
    assert guarantees.on_event_c(fair, counts, edge * (1 + 1e-9))
    assert not guarantees.on_event_c(fair, counts, edge * (1 - 1e-9))


@pytest.mark.parametrize(("chain", "N"), CASES)
def test_lemmas_7_and_8_are_the_reference(chain, N):
    for level in LEVELS:
        exits = N.sum(axis=1)
        expected = reference.lemma_7(chain.matrix, N, level)
        assert guarantees.lemma_7(chain, exits, level) == pytest.approx(expected, **EXACT)
        expected = reference.lemma_8(chain.matrix, N, level)
        assert guarantees.lemma_8(chain, exits, level) == pytest.approx(expected, **EXACT)


def test_lemmas_7_and_8_by_hand():
    # A fair coin, four exits of one state, β = 1: T = 4, G = ½, N + ⅓ = 13/3.
    fair, exits = MarkovChain(np.full((2, 2), 0.5)), [4, 0]
    third = 9 / 169
    seventh = (1 + 2 * math.sqrt(2) / 3 * math.sqrt(2) * 8 * third * math.sqrt(0.5) + 2 / 9 * 4 * third) / 4
    assert guarantees.lemma_7(fair, exits, 1.0) == pytest.approx(seventh, **EXACT)
    upper = (1 + 13 * math.sqrt(2) * math.sqrt(0.5 * 3 / 13) + 39 * 2 * 3 / 13) / 4
    assert guarantees.lemma_8(fair, exits, 1.0) == pytest.approx((0.25, upper), **EXACT)


@pytest.mark.parametrize("name", CHAINS)
def test_what_the_event_c_implies_along_paths(name):
    """On the event C: loss ≤ Lemma 7, loss ≤ index, Lemma 8's lower ≤ index ≤ upper; also for `ba-mc-tight`."""
    chain, steps = CHAINS[name], 250
    checked = 0
    for seed in range(4):
        path = reference.draw_path(chain.matrix, steps + 1, np.random.default_rng(seed), start=seed % chain.size)
        # A level far below β makes the event C hold at some times and fail at others; the lemmas need the inequality
        # of the event at the time they speak of, for any β > 0 (Lemma 8's lower bound and the index: β ≥ 1).
        for level in (1.0, 3.0, guarantees.beta(steps, 0.1, chain.size**2)):
            counts = Counts.from_path(path[:1], chain.size)
            for state in path[1:]:
                counts.record(state)
                if not guarantees.on_event_c(chain, counts, level):
                    continue
                checked += 1
                value, exits = loss(chain, counts), counts.exits
                lower, upper = guarantees.lemma_8(chain, exits, level)
                stated, tight = paper.bound(counts, level), paper.bound(counts, level, paper.TIGHT)
                assert value <= guarantees.lemma_7(chain, exits, level) * (1 + 1e-12)
                assert value <= tight <= stated <= upper * (1 + 1e-12)
                assert lower <= tight * (1 + 1e-12)
                width = guarantees.lemma_4(counts.matrix(), exits, level, 1 / (3 * chain.size))
                assert (np.abs(counts.matrix() - chain.matrix) <= width)[exits > 0].all()
    assert checked > 2 * 4 * steps  # at least two of the three levels, in all


# ---------------------------------------------------------------- Theorems 1 and 2

EQUAL = Problem({"sticky": CHAINS["sticky"], "ring": CHAINS["not reversible"]})
UNLIKE = Problem({"two": CHAINS["two states"], "sticky": CHAINS["sticky"], "zeros": CHAINS["with zeros"]})


@pytest.mark.parametrize(("problem", "pairs"), [(EQUAL, 18), (UNLIKE, 4 + 9 + 16)])
@pytest.mark.parametrize("n", [12, 1_000, 10**8])
def test_theorem_1_is_the_reference(problem, pairs, n):
    level = reference.beta(n, 0.05, pairs)
    expected = reference.theorem_1(n, len(problem), max(problem.sizes), level)
    assert guarantees.theorem_1(problem, n, 0.05) == pytest.approx(expected, **EXACT)


def test_theorem_1_on_the_example_of_math():
    five = Problem({str(k): MarkovChain(np.full((5, 5), 0.2)) for k in range(5)})
    assert 50_000 * guarantees.theorem_1(five, 50_000, 0.05) == pytest.approx(9.5e6, rel=0.01)


@pytest.mark.parametrize("n", [10**11, 10**13])
def test_theorem_2_is_the_reference(n):
    for problem in (EQUAL, UNLIKE):
        assert n >= problem.cutoff_budget(0.05)
        matrices = [chain.matrix for chain in problem.chains.values()]
        # β is a union over Σ S_k² entries (MATH §1), S the largest size.
        level = reference.beta(n, 0.05, sum(len(P) ** 2 for P in matrices))
        constant = reference.excess_constant_appendix(matrices)
        expected = 2 * level * reference.total_variability(matrices) / n + constant * (level / n) ** 1.5
        assert guarantees.theorem_2(problem, n, 0.05) == pytest.approx(expected, rel=1e-9, abs=0)
    matrices = [chain.matrix for chain in EQUAL.chains.values()]
    expected = reference.theorem_2(matrices, n, 0.05)
    assert guarantees.theorem_2(EQUAL, n, 0.05) == pytest.approx(expected, rel=1e-9, abs=0)


def test_theorem_2_speaks_from_the_cut_off_budget_on():
    cutoff = math.ceil(EQUAL.cutoff_budget(0.05))
    assert guarantees.theorem_2(EQUAL, cutoff - 1, 0.05) == math.inf
    assert guarantees.theorem_2(EQUAL, cutoff, 0.05) < math.inf


# ---------------------------------------------------------------- bad input

TWO = CHAINS["two states"]
BAD = {
    "no observation": lambda: guarantees.beta(0, 0.1, 4),
    "half an observation": lambda: guarantees.beta(2.5, 0.1, 4),
    "delta 0": lambda: guarantees.beta(10, 0.0, 4),
    "delta 1": lambda: guarantees.zeta(10, 1.0, 4),
    "delta nan": lambda: guarantees.beta(10, math.nan, 4),
    "no pair": lambda: guarantees.beta(10, 0.1, 0),
    "no event": lambda: guarantees.zeta(10, 0.1, 0),
    "c = 1": lambda: guarantees.zeta(10, 0.1, 4, c=1.0),
    "no transition": lambda: guarantees.beta_unknown_horizon(0, 0.1, 4),
    "unknown horizon, no pair": lambda: guarantees.beta_unknown_horizon(5, 0.1, 0),
    "unknown horizon, c": lambda: guarantees.beta_unknown_horizon(5, 0.1, 4, c=math.inf),
    "lemma 3, a matrix of text": lambda: guarantees.lemma_3([["a"]], [1], 1.0, 0.1),
    "lemma 3, exits of another size": lambda: guarantees.lemma_3(TWO.matrix, [1, 2, 3], 1.0, 0.1),
    "lemma 3, not square": lambda: guarantees.lemma_3([[0.5, 0.5]], [1], 1.0, 0.1),
    "lemma 3, nan": lambda: guarantees.lemma_3([[math.nan]], [1], 1.0, 0.1),
    "lemma 3, negative exits": lambda: guarantees.lemma_3(TWO.matrix, [1, -2], 1.0, 0.1),
    "lemma 3, negative level": lambda: guarantees.lemma_3(TWO.matrix, [1, 2], -1.0, 0.1),
    "lemma 4, no smoothing": lambda: guarantees.lemma_4(TWO.matrix, [1, 2], 1.0, 0.0),
    "lemma 4, infinite exits": lambda: guarantees.lemma_4(TWO.matrix, [1, math.inf], 1.0, 0.1),
    "lemma 4's constants": lambda: guarantees.lemma_4_constants(2, -1.0, 0.1),
    "lemma 5, no transition": lambda: guarantees.lemma_5(TWO, 0, 0.1),
    "lemma 5, delta": lambda: guarantees.lemma_5(TWO, 10, 2.0),
    "event C, other states": lambda: guarantees.on_event_c(TWO, Counts(3), 5.0),
    "event C, level": lambda: guarantees.on_event_c(TWO, Counts(2), math.nan),
    "lemma 7, level": lambda: guarantees.lemma_7(TWO, [1, 1], math.nan),
    "lemma 8, level": lambda: guarantees.lemma_8(TWO, [1, 1], -1.0),
    "lemma 7, no exit": lambda: guarantees.lemma_7(TWO, [0, 0], 5.0),
    "lemma 7, three exits": lambda: guarantees.lemma_7(TWO, [1, 2, 3], 5.0),
    "lemma 8, negative": lambda: guarantees.lemma_8(TWO, [1, -1], 5.0),
    "lemma 8, text": lambda: guarantees.lemma_8(TWO, ["a", "b"], 5.0),
    "theorem 1, n < 4K": lambda: guarantees.theorem_1(EQUAL, 7, 0.1),
    "theorem 1, delta": lambda: guarantees.theorem_1(EQUAL, 100, -0.1),
    "theorem 2, n": lambda: guarantees.theorem_2(EQUAL, 0, 0.1),
    "theorem 2, delta": lambda: guarantees.theorem_2(EQUAL, 100, 1.5),
}


@pytest.mark.parametrize("call", BAD.values(), ids=BAD)
def test_bad_input_gets_one_sentence(call):
    with pytest.raises(ChainscoutError) as caught:
        call()
    assert len(str(caught.value)) > 20
    assert "\n" not in str(caught.value)
