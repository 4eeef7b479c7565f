"""The paper's concentration inequalities and theorems, as stated (its numbering; MATH §5 lists doubtful steps).

N_x stands for the exits of a state and T for a chain's transitions, where the paper counts visits (MATH §1).
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .chains import MarkovChain
from .counts import Counts, smoothing
from .errors import InputError, NotErgodicError
from .validation import failure_probability, number_array, real_number, whole_number

if TYPE_CHECKING:
    from .problems import Problem

Array = npt.NDArray[np.float64]

#: The paper's c > 1, the ratio of the peeling's time slices (§3).
PEELING = 1.1


def zeta(n: int, delta: float, events: float, c: float = PEELING) -> float:
    """ζ = c·log(⌈log n/log c⌉·events/δ): Corollary 1 has one event, Lemmas 3 and 4 have 2S²."""
    n = whole_number(n, "n", meaning="the number of observations up to which the bound holds")
    real_number(events, "events", least=1.0, meaning="how many events share delta")
    real_number(c, "c", above=1.0, meaning="the ratio of the peeling's time slices")
    failure_probability(delta)
    # One observation has no time slice. max(1, ·) prevents an empty union over slices.
    return c * math.log(max(1, math.ceil(math.log(n) / math.log(c))) * events / delta)


def beta(n: int, delta: float, pairs: int, c: float = PEELING) -> float:
    """β(n, δ) = c·log(⌈log n/log c⌉·6·pairs/δ), pairs = Σ_k S_k² (the paper: KS²)."""
    return zeta(n, delta, 6 * whole_number(pairs, "pairs", meaning="Σ_k S_k²"), c)


def beta_unknown_horizon(transitions: int, delta: float, pairs: int, c: float = PEELING) -> float:
    """β without a budget: log(cT)·log(c²T)/log²c replaces ⌈log n/log c⌉ (MATH §6; valid for T ≥ 1)."""
    transitions = whole_number(transitions, "transitions")
    events = 6 * whole_number(pairs, "pairs", meaning="Σ_k S_k²")
    real_number(c, "c", above=1.0, meaning="the ratio of the peeling's time slices")
    failure_probability(delta)
    return unknown_horizon_beta(transitions, math.log(events / delta), c)


def unknown_horizon_beta(transitions: float, log_events: float, c: float = PEELING) -> float:
    """The same from log(6·pairs/δ); plain arithmetic, for rules that are compiled."""
    slices = math.log(c * transitions) * math.log(c * c * transitions) / (math.log(c) * math.log(c))
    return c * (math.log(slices) + log_events)


def lemma_3(matrix: Array, exits: Array, zeta: float, alpha: float) -> Array:
    """Bernstein-Markov half-widths of |P̂ − P|(x,y), from the true matrix."""
    matrix, n, size = _entries(matrix, exits, zeta, alpha)
    spread = np.sqrt(2 * n * matrix * (1 - matrix) * zeta)
    return np.asarray((spread + zeta / 3 + alpha * np.abs(1 - size * matrix)) / (n + alpha * size))


class Lemma4(NamedTuple):
    """The constants of Lemma 4 for any α."""

    first: float
    second: float


def lemma_4_constants(size: int, zeta: float, alpha: float) -> Lemma4:
    """c₁ = √(8ζ)(2ζ + ζ') and c₂, ζ' = ζ/3 + α(S−1)."""
    z = real_number(zeta, "zeta", least=0.0, meaning="the level of the inequality")
    rest = z / 3 + smoothing(alpha, size) * (size - 1)
    first = math.sqrt(8 * z) * (2 * z + rest)
    second = rest**2 + 4 * z * (4 * z + rest + 2 * math.sqrt(z * rest))
    second += rest * math.sqrt(8 * z) * (5.3 * math.sqrt(z) + math.sqrt(2 * rest))
    return Lemma4(first, second)


def lemma_4(estimate: Array, exits: Array, zeta: float, alpha: float) -> Array:
    """Empirical Bernstein-Markov half-widths of |P̂ − P|(x,y), from the estimate."""
    estimate, n, size = _entries(estimate, exits, zeta, alpha)
    variance = estimate * (1 - estimate)
    first, second = lemma_4_constants(size, zeta, alpha)
    inside = 2 * n * variance * zeta + first * np.sqrt(n * variance) + second
    return np.asarray(np.sqrt(inside) / (n + alpha * size))


def lemma_5(chain: MarkovChain, transitions: int, delta: float) -> Array:
    """Half-widths of |π̂ − π|(x) at one time, reversible chains only (Paulin 2015)."""
    whole_number(transitions, "transitions")
    if not chain.is_ergodic:
        raise NotErgodicError("Lemma 5 is about ergodic chains: this one is periodic or not irreducible")
    gap, law = chain.spectral_gap, chain.stationary
    failure = math.log(math.sqrt(2 / law.min()) / failure_probability(delta)) / (gap * transitions)
    return np.asarray(np.sqrt(8 * law * (1 - law) * failure) + 20 * failure)


def on_event_c(chain: MarkovChain, counts: Counts, beta: float) -> bool:
    """Whether Definition 2's inequality holds for every pair at this moment (event C: at every moment up to n)."""
    real_number(beta, "beta", least=0.0, meaning="the level of the event C")
    if counts.size != chain.size:
        raise InputError(f"the counts must be over the chain's {chain.size} states, not over {counts.size}")
    weight = smoothing(None, chain.size) * chain.size
    width = event_c_width(chain.matrix, counts.exits[:, None], beta, weight)
    return bool((np.abs(counts.matrix() - chain.matrix) <= width).all())


def event_c_width(probability: Any, exits: Any, beta: float, weight: float) -> Any:
    """How far P̂(x,y) may be from P(x,y) on the event C (Definition 2); ``weight`` = αS.

    It takes numbers or arrays. It is plain arithmetic, which is also compiled to check whole paths.
    """
    return ((2 * exits * (probability * (1 - probability)) * beta) ** 0.5 + beta / 3) / (exits + weight)


def lemma_7(chain: MarkovChain, exits: Sequence[float], beta: float) -> float:
    """The upper bound on a chain's loss on the event C, from the true matrix."""
    n, weight = _visited(chain, exits, beta)
    gini = chain.gini[np.asarray(exits) > 0]
    size, total = chain.size, n.sum()
    shrunk = n / (n + weight) ** 2
    second = (np.sqrt(n) * shrunk * np.sqrt(gini)).sum()
    bound = 2 * beta * gini.sum() + 2 * math.sqrt(2) / 3 * beta**1.5 * math.sqrt(size) * second
    return float((bound + size * beta**2 / 9 * shrunk.sum()) / total)


def lemma_8(chain: MarkovChain, exits: Sequence[float], beta: float) -> tuple[float, float]:
    """The lower and the upper bound on BA-MC's index on the event C, from the true matrix."""
    n, weight = _visited(chain, exits, beta)
    gini = chain.gini[np.asarray(exits) > 0]
    total = n.sum()
    lower = 2 * beta * gini.sum() / total
    upper = 13 * beta**1.5 * math.sqrt(chain.size) * np.sqrt(gini / (n + weight)).sum()
    upper += 39 * beta**2 * chain.size * (1 / (n + weight)).sum()
    return float(lower), float(lower + upper / total)


def theorem_1(problem: "Problem", n: int, delta: float) -> float:
    """Theorem 1 *as stated* in its proof: L ≤ KS²β²·(304/(n−2K) + 564K/(n−2K)²), n ≥ 4K, S = max_k S_k.

    Its proof assumes that the first and the third term of the index do not grow. Both can grow when a state is left
    for the first time.
    """
    chains = len(problem)
    whole_number(n, "n", least=4 * chains, meaning="Theorem 1 needs four observations a chain")
    size, rest = max(problem.sizes), n - 2 * chains
    b = beta(n, delta, _pairs(problem))
    return float(chains * size**2 * b**2 * (304 / rest + 564 * chains / rest**2))


def theorem_2(problem: "Problem", n: int, delta: float) -> float:
    """Theorem 2 *as stated*, without its Õ(n⁻²): 2βΛ/n + C₀(β/n)^{3/2}, C₀ as in the appendix; infinite below n_cutoff.

    It holds with probability ≥ 1 − 2δ.
    """
    whole_number(n, "n")
    if n < problem.cutoff_budget(delta):
        return math.inf
    b = beta(n, delta, _pairs(problem))
    return float(2 * b * problem.variability / n + problem.excess_constant * (b / n) ** 1.5)


def _pairs(problem: "Problem") -> int:
    """Σ_k S_k², the number of events in a union over all entries of all chains (MATH §1; the paper: KS²)."""
    return sum(size**2 for size in problem.sizes)


def _entries(matrix: Array, exits: Array, zeta: float, alpha: float) -> tuple[Array, Array, int]:
    """The matrix, N_x as a column, and S, for an inequality about every entry."""
    real_number(zeta, "zeta", least=0.0, meaning="the level of the inequality")
    real_number(alpha, "alpha", above=0.0, meaning="what is added to every count before the rows are normalised")
    entries, n = number_array(matrix, "a matrix"), number_array(exits, "exits")
    if n.ndim != 1 or entries.shape != (n.size, n.size):
        raise InputError(f"a matrix must have one row and one column a state: {entries.shape} for exits of {n.shape}")
    if not ((entries >= 0) & (entries <= 1)).all() or not (np.isfinite(n) & (n >= 0)).all():
        raise InputError("a matrix must hold probabilities, and exits must be finite numbers ≥ 0")
    return entries, n[:, None], n.size


def _visited(chain: MarkovChain, exits: Sequence[float], beta: float) -> tuple[Array, float]:
    """The exits of the states left at least once, and αS."""
    real_number(beta, "beta", least=0.0, meaning="the level of the event C")
    n = number_array(exits, "exits")
    if n.shape != (chain.size,) or not np.isfinite(n).all() or (n < 0).any() or n.sum() == 0:
        raise InputError(f"exits must be {chain.size} numbers ≥ 0, one a state and not all zero")
    return n[n > 0], smoothing(None, chain.size) * chain.size
