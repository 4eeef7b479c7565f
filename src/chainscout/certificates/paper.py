"""The ``paper`` certificate: BA-MC's index (paper §3; MATH §4), which is an upper bound on the loss on the event C."""

import math
from collections.abc import Sequence

from ..counts import Counts, smoothing
from ..guarantees import beta, beta_unknown_horizon
from ..rows import deviation, smoothed_gini

#: The index's second and third constant, from Lemma 4 with ζ = β and ζ' = β/3. They hold for α = 1/(3S) only.
STATED = (6.6, 28.0)
#: The same constants if |1 − P − P̂| is bounded by 1, where Lemmas 4 and 8 use 2 (MATH §4).
TIGHT = (3.78, 8.76)


def entry(count: float, exits: float, size: float, alpha: float) -> float:
    """One entry's part of the first argument of ``row_terms``: (N_x+αS)·√(N_x·P̂(1−P̂)(x,y))."""
    return deviation(count, exits, alpha, alpha * size)


def row_terms(deviations: float, exits: float, squares: float, size: float, alpha: float) -> tuple[float, float, float]:
    """One visited row's parts of the index's three sums, from Σ_y ``entry``, N_x and Σ_y N[x,y]².

    Ĝ(x) | N_x^{3/2}/(N_x+αS)²·Σ_y √(P̂(1−P̂)(x,y)) | 1/(N_x+αS)
    """
    inverse = 1.0 / (exits + alpha * size)
    second = exits * deviations * (inverse * inverse * inverse)
    return smoothed_gini(exits, squares, alpha, alpha * size), second, inverse


def factors(size: int, beta: float, constants: tuple[float, float]) -> tuple[float, float, float]:
    """The factors of the three sums in the index's numerator: 2β | 6.6·β^{3/2} | 28·β²S."""
    second, third = constants
    return 2.0 * beta, second * beta * math.sqrt(beta), third * beta * beta * size


def index(sums: tuple[float, float, float], transitions: float, factors: tuple[float, float, float]) -> float:
    """b of the paper's §3, from the sums of ``row_terms`` over the states left at least once."""
    return (factors[0] * sums[0] + factors[1] * sums[1] + factors[2] * sums[2]) / transitions


def bound(counts: Counts, beta: float, constants: tuple[float, float] = STATED) -> float:
    """b for one chain's counts. It is infinite before the first transition."""
    if counts.total == 0:
        return math.inf
    if counts.size == 1:
        return 0.0
    alpha = smoothing(None, counts.size)
    sums = (0.0, 0.0, 0.0)
    for x, row in sorted(counts.rows().items()):
        exits, unseen = float(counts.exits_of(x)), counts.size - len(row)
        deviations = sum(entry(n, exits, counts.size, alpha) for n in row.values())
        deviations += unseen * entry(0.0, exits, counts.size, alpha)
        terms = row_terms(deviations, exits, float(sum(n * n for n in row.values())), counts.size, alpha)
        sums = (sums[0] + terms[0], sums[1] + terms[1], sums[2] + terms[2])
    return index(sums, counts.total, factors(counts.size, beta, constants))


def bounds(counts: Sequence[Counts], delta: float, budget: int | None) -> list[float]:
    """b_k for every chain: for all times up to ``budget`` observations, or for all times if ``budget`` is None."""
    pairs = sum(chain.size**2 for chain in counts)
    if budget is not None:
        return [bound(chain, beta(budget, delta, pairs)) for chain in counts]
    return [bound(chain, beta_unknown_horizon(max(1, chain.total), delta, pairs)) for chain in counts]
