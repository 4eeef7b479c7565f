"""Budgets and losses that a certificate will reach, at the counts a chain is expected to give: N_x = π(x)·T."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ..chains import MarkovChain
from ..counts import smoothing
from ..guarantees import beta
from . import mixture, paper, sharp

if TYPE_CHECKING:
    from ..problems import Problem

#: No budget above this is looked for: a bound that has not come down by then is infinite.
BEYOND = 10**60

#: (chain, T) → the certificate at T transitions.
Bound = Callable[[MarkovChain, float], float]


def mixture_bound(problem: "Problem", delta: float) -> Bound:
    """The ``mixture`` certificate at expected counts."""
    log_inverse = math.log(len(problem) / delta)

    def bound(chain: MarkovChain, transitions: float) -> float:
        exits = chain.stationary[chain.stationary > 0] * transitions
        return mixture.bound_from_exits(exits.tolist(), chain.size, log_inverse)

    return bound


def sharp_bound(problem: "Problem", delta: float) -> Bound:
    """The ``sharp`` certificate at expected counts."""
    log_inverse = math.log(len(problem) / delta)

    def bound(chain: MarkovChain, transitions: float) -> float:
        if chain.size == 1:
            return 0.0
        expected = chain.stationary[:, None] * chain.matrix * transitions
        rows = [
            {int(y): float(expected[x, y]) for y in np.flatnonzero(expected[x] > 0)}
            for x in np.flatnonzero(chain.stationary * transitions > 1e-6)
        ]
        return sharp.largest_loss(sharp.table_of(rows, chain.size), chain.size, log_inverse) / transitions

    return bound


def least_transitions(chain: MarkovChain, target: float, bound: Bound, start: float) -> float:
    """T with b(T) ≤ target, to half a per cent, for a bound that falls but is not smooth; ``start`` is a guess."""
    high = start
    while bound(chain, high) > target:
        high *= 1.5
        if high > BEYOND:
            return math.inf
    low = high / 1.5
    while bound(chain, low) <= target and low > 1:
        high, low = low, low / 1.5
    while high > low * 1.005:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if bound(chain, middle) <= target else (middle, high)
    return math.ceil(high)


def paper_bound(problem: "Problem", delta: float, budget: int) -> Bound:
    """BA-MC's index at expected counts, for a study of ``budget`` observations."""
    level = beta(budget, delta, sum(size**2 for size in problem.sizes))

    def bound(chain: MarkovChain, transitions: float) -> float:
        sums = (0.0, 0.0, 0.0)
        alpha = smoothing(None, chain.size)
        for x in np.flatnonzero(chain.stationary > 0):
            exits = float(chain.stationary[x] * transitions)
            row = chain.matrix[x] * exits
            deviations = sum(paper.entry(count, exits, chain.size, alpha) for count in row.tolist())
            terms = paper.row_terms(deviations, exits, float(row @ row), chain.size, alpha)
            sums = (sums[0] + terms[0], sums[1] + terms[1], sums[2] + terms[2])
        return paper.index(sums, transitions, paper.factors(chain.size, level, paper.STATED))

    return bound


def certified_loss(problem: "Problem", budget: int, bound: Bound) -> float:
    """The smallest max_k b_k that ``budget`` observations are expected to certify.

    T·b(T) hardly depends on T, so sharing the transitions in proportion to it, again and again, makes all b_k equal.
    What is given is what the last shares certify, whether or not they would still move.
    """
    chains = list(problem.chains.values())
    transitions = budget - len(chains)
    if transitions < len(chains):
        return math.inf
    share = np.full(len(chains), 1 / len(chains))
    for _ in range(30):
        found = np.array([bound(chain, s * transitions) for chain, s in zip(chains, share, strict=True)])
        share, before = share * found / (share * found).sum(), share
        if np.abs(share - before).max() < 1e-9:
            break
    return float(found.max())


def certified_budget(problem: "Problem", target: float, bound_for: Callable[[int], Bound]) -> float:
    """The observations that are expected to certify max_k L_k ≤ ``target``; ``bound_for`` takes the budget.

    Infinite where there are none up to BEYOND, or none that the search settles on.
    """
    budget = 2 * len(problem)
    for _ in range(100):  # β depends on log log of the budget: two or three rounds do
        bound = bound_for(budget)
        needed = sum(1 + _transitions(chain, target, bound) for chain in problem.chains.values())
        if needed > BEYOND:
            return math.inf
        if needed <= budget * 1.0001 and budget <= needed * 1.0001:
            return needed
        budget = int(needed)
    return math.inf


def _transitions(chain: MarkovChain, target: float, bound: Bound) -> float:
    """The least T ≥ 1, to a relative 1e-6, with b(T) ≤ target; infinite if it is not found."""
    transitions = 1.0
    for _ in range(1000):
        ratio = bound(chain, transitions) / target
        if ratio <= 1 and (transitions <= 1 or ratio > 1 - 1e-6):
            return math.ceil(transitions)
        transitions = max(1.0, transitions * ratio * (1 + 1e-7))
        if transitions > BEYOND:
            break
    return math.inf
