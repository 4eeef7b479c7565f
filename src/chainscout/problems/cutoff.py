"""The cut-off budget of Theorem 2, as stated and corrected (MATH §5).

Both give the budget from which every π̂_k(x) under BA-MC is at least π_k(x)/2. Two events must happen for that. On the
event C, T_k is bounded below. On the other event, no π̂_k(x) is far from π_k(x). Each has probability ≥ 1 − δ, so both
happen with probability ≥ 1 − 2δ, as Theorem 2 says of its bound.

The corrected value repeats the proof of the paper's concentration lemma with its gaps closed. For a chain started
anywhere, Paulin's Bernstein inequalities (2015, theorems 3.3 and 3.4, with proposition 3.10 for the start) give, for
one state and one time, |π̂ − π| ≤ √(8πε/T) + 20ε/T if the chain is reversible, with γ its absolute spectral gap, and
√(16(1 + 1/(Tγ))πε/T) + 40ε/T if it is not, with γ its pseudo-spectral gap; ε = (1/γ)·log(√(2/π_min)/δ′) and δ′ is the
probability of failure. Either is ≤ π/2 once T ≥ A·ε/π with A = 96, or 192.

- T_k is random, and the bound must hold for all states. A union over the states of all chains and over the at most n
  values of T_k makes δ′ = δ/(n·Σ_j S_j). The paper has neither union. It has 300 for non-reversible chains, where its
  derivation gives about 585.
- T_k is bounded below as in the paper's proof of Theorem 1. There are n − K transitions (MATH §1), so some chain j has
  at least (n − K)/K of them, and had at least (n − 2K)/K when it was last chosen. Its index was then ≤ 44KS²β²/(n − 2K)
  by Lemma 8, S = max S_k. Chain k's index was no larger, and its third term alone is ≥ 28β²S_k/(T_k(T_k + 1/3)) as soon
  as *one* of its states was left. The paper assumes that all states were visited, which gains a factor S. It also
  assumes that the third term decreases, which is false when a state is seen for the first time. So
  T_k + 1/3 ≥ √(28·S_k·(n − 2K)/(44·K·S²)).
"""

import math
from typing import TYPE_CHECKING

from ..chains import MarkovChain

if TYPE_CHECKING:
    from .problem import Problem


def stated_cutoff(problem: "Problem", delta: float) -> float:
    """K·max_k(300/(γ_ps·π_min) · log((2K/δ)·√(1/π_min)))², for every chain as for a non-reversible one (Theorem 2)."""
    number = len(problem)
    gaps = problem.of_each(lambda chain: chain.pseudo_spectral_gap)
    largest = 0.0
    for gap, chain in zip(gaps, problem.chains.values(), strict=True):
        pi = _smallest(chain)
        largest = max(largest, _quotient(300 * (math.log(2 * number / delta) - math.log(pi) / 2), gap * pi))
    return number * largest * largest


def corrected_cutoff(problem: "Problem", delta: float) -> float:
    """The smallest n ≥ 4K that is enough for every chain (see the module's docstring); a whole number, or infinity."""
    enough = least = 4 * len(problem)
    while not suffices(problem, delta, enough):
        enough *= 2
        if enough > 1e300:
            return math.inf
    # Once the inequality holds, it holds for all larger n: then (n − 2K)/K > 10⁴, and the left side grows faster.
    too_few = max(least - 1, enough // 2)
    while enough - too_few > 1:
        middle = (enough + too_few) // 2
        if suffices(problem, delta, middle):
            enough = middle
        else:
            too_few = middle
    return float(enough)


def suffices(problem: "Problem", delta: float, budget: int) -> bool:
    """Whether √(28·S_k·(n−2K)/(44·K·S²)) − 1/3 ≥ A_k·ε_k(n)/π_min,k for every chain k."""
    number, states = len(problem), sum(problem.sizes)
    scale = 28 * (budget - 2 * number) / (44 * number * max(problem.sizes) ** 2)

    def margin(chain: MarkovChain) -> float:
        factor, gap = (96, chain.spectral_gap) if chain.is_reversible else (192, chain.pseudo_spectral_gap)
        pi = _smallest(chain)
        logarithm = math.log(states) + math.log(budget) + math.log(2 / pi) / 2 - math.log(delta)
        return math.sqrt(scale * chain.size) - 1 / 3 - _quotient(factor * logarithm, gap * pi)

    return min(problem.of_each(margin)) >= 0


def _smallest(chain: MarkovChain) -> float:
    return float(chain.stationary.min())


def _quotient(numerator: float, denominator: float) -> float:
    # The gap of an ergodic chain can be too small for a double.
    return numerator / denominator if denominator else math.inf
