"""The ``paper`` certificate: BA-MC's index (paper §3; MATH §4), which is an upper bound on the loss on the event C."""

import math
from collections.abc import Sequence
from typing import Any

from ..counts import Counts, smoothing
from ..guarantees import beta, beta_unknown_horizon

#: The index's second and third constant, from Lemma 4 with ζ = β and ζ' = β/3. They hold for α = 1/(3S) only.
STATED = (6.6, 28.0)
#: The same with |1 − P − P̂| ≤ 1 where Lemmas 4 and 8 use 2 (MATH §4).
TIGHT = (3.78, 8.76)


def row_terms(row: Any, number: int, exits: float, size: int, alpha: float) -> tuple[float, float, float]:
    """One visited row's share of the index's three sums; ``row`` has the ``number`` positive (or all S) counts.

    Ĝ(x) | N_x^{3/2}/(N_x+αS)²·Σ_y √(P̂(1−P̂)(x,y)) | 1/(N_x+αS)
    """
    inverse = 1.0 / (exits + alpha * size)
    gini = 0.0
    roots = 0.0
    for y in range(number):
        p = (row[y] + alpha) * inverse
        gini += p * (1.0 - p)
        roots += math.sqrt(p * (1.0 - p))
    unseen = alpha * inverse
    gini += (size - number) * unseen * (1.0 - unseen)
    roots += (size - number) * math.sqrt(unseen * (1.0 - unseen))
    return gini, exits * math.sqrt(exits) * inverse * inverse * roots, inverse


def index(
    gini: float,
    roots: float,
    inverses: float,
    transitions: float,
    size: int,
    beta: float,
    constants: tuple[float, float],
) -> float:
    """b of the paper's §3 from the sums of ``row_terms`` over the states left at least once."""
    second, third = constants
    numerator = 2.0 * beta * gini + second * beta * math.sqrt(beta) * roots + third * beta * beta * size * inverses
    return numerator / transitions


def bound(counts: Counts, beta: float, constants: tuple[float, float] = STATED) -> float:
    """b of one chain's counts; the loss is unbounded before the first transition."""
    if counts.total == 0:
        return math.inf
    if counts.size == 1:
        return 0.0
    alpha = smoothing(None, counts.size)
    gini = roots = inverses = 0.0
    for x, row in sorted(counts.rows().items()):
        terms = row_terms(list(row.values()), len(row), counts.exits_of(x), counts.size, alpha)
        gini, roots, inverses = gini + terms[0], roots + terms[1], inverses + terms[2]
    return index(gini, roots, inverses, counts.total, counts.size, beta, constants)


def bounds(counts: Sequence[Counts], delta: float, budget: int | None) -> list[float]:
    """b_k for every chain: for all times up to ``budget`` observations, or without end if that is None."""
    pairs = sum(chain.size**2 for chain in counts)
    if budget is not None:
        return [bound(chain, beta(budget, delta, pairs)) for chain in counts]
    return [bound(chain, beta_unknown_horizon(max(1, chain.total), delta, pairs)) for chain in counts]
