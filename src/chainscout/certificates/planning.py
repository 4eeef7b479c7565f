"""The budgets and losses that a certificate is expected to reach, beside those of limits, predictions and theorems.

A certificate is computed at expected counts. For a known chain they are N[x,y] = T·π(x)·P(x,y). For an observed chain,
the counts so far go on growing in proportion.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .. import guarantees, predictions
from ..chains import MarkovChain
from ..counts import Counts, smoothing
from ..numerals import sure
from . import mixture, paper, sharp
from .certificate import loss_bound

if TYPE_CHECKING:
    from ..problems import Problem

#: The search ends at this budget: if the bound is still above the target, the result is infinite.
BEYOND = 10**60

#: ``sharp`` has room for the scales of this many transitions.
MOST_SHARP = 2.0**52

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
        if transitions > MOST_SHARP:
            return math.inf
        expected = chain.stationary[:, None] * chain.matrix * transitions
        rows = [
            {int(y): float(expected[x, y]) for y in np.flatnonzero(expected[x] > 0)}
            for x in np.flatnonzero(chain.stationary * transitions > 1e-6)
        ]
        return sharp.largest_loss(rows, chain.size, log_inverse) / transitions

    return bound


def least_transitions(chain: MarkovChain, target: float, bound: Bound, start: float) -> float:
    """T with b(T) ≤ target, to half a per cent, for a bound that falls but is not smooth; ``start`` is a guess."""
    return _least(lambda transitions: bound(chain, transitions), target, start)


def _least(
    bound: Callable[[float], float], target: float, start: float, least: float = 1.0, precision: float = 0.005
) -> float:
    """The least whole T ≥ ``least``, to a relative ``precision``, with b(T) ≤ target; infinite beyond BEYOND.

    T·b(T) hardly changes with T. So the next T is T·b(T)/target, a little beyond, or the middle if that is known to be
    too far.
    """
    low, high = 0.0, math.inf  # the largest T known to be too small, and the smallest that is large enough
    at = max(least, start)
    while at <= BEYOND:
        ratio = min(bound(at) / target, 1e9)
        if ratio > 1:
            low = at
        elif at == least:
            return math.ceil(least)
        else:
            high = at
        if high <= low * (1 + precision):
            return math.ceil(high)
        beyond = 1 + precision / 2 if ratio > 1 else 1 - precision / 2
        at *= ratio * beyond
        if low > 0 and high < math.inf and not low < at < high:
            at = math.sqrt(low * high)
        elif not low < at < high:
            at = 1.5 * low if low > 0 else high / 1.5
        at = max(least, at)
    return math.inf


#: An entry with an expected count below this is treated as one that will not be seen.
SEEN = 0.5


def further_transitions(counts: Counts, target: float, method: str, log_inverse: float) -> float:
    """How many more transitions are expected to bring the chain's certificate down to ``target``; 0 if it is there.

    The assumption: each row keeps its present share of the transitions, each entry has the share of its row that the
    smoothed estimate gives it, and rows that were never left appear as `_discovered` says. So this is a prediction, not
    a bound. It is nan before the first transition, and infinite if no number up to BEYOND suffices.
    """
    total = counts.total
    if total == 0:
        return math.nan
    now = loss_bound(counts, method, log_inverse)
    if now <= target:
        return 0

    # In an order that does not depend on the states' numbers: the search's last digits do.
    known = sorted(counts.rows().values(), key=lambda row: sorted(row.values(), reverse=True), reverse=True)

    def bound(transitions: float) -> float:
        if not total < transitions <= MOST_SHARP:
            return now
        growth = transitions / total
        appeared = _discovered(counts, growth)
        if method != "sharp":
            exits = [growth * n for n in counts.visited_exits()] + appeared
            return mixture.bound_from_exits(exits, counts.size, log_inverse, open_states=counts.open_states)
        rows = [_grown(row, counts, growth) for row in known] + [{0: n} for n in appeared]
        whole = sum(sum(row.values()) for row in rows)
        return sharp.largest_loss(rows, counts.size, log_inverse, counts.open_states) / whole

    return max(1, _least(bound, target, total * min(now / target, 1e9)) - total)


def _discovered(counts: Counts, growth: float) -> list[float]:
    """The expected exits of rows that appear while T grows by a factor.

    The number of rows that were left grows as T to the power of the share of rows that were left once, of which half a
    row is expected beforehand if states are known that were never left. Such a row has half the exits, in the mean, of
    one that was there from the beginning.
    """
    exits = counts.visited_exits()
    unknown = math.inf if counts.open_states else counts.size - len(exits)
    beforehand = 0.0 if counts.open_states else 0.5
    power = (sum(n == 1 for n in exits) + beforehand) / (len(exits) + 2 * beforehand)
    expected = min(unknown, len(exits) * (growth**power - 1))
    number = math.ceil(expected)
    return [growth / 2 * expected / number] * number if number else []


def _grown(row: Mapping[int, int], counts: Counts, growth: float) -> dict[int, float]:
    """The expected counts of a row when its exits have grown by a factor. With open states it keeps its successors."""
    size, exits = counts.size, sum(row.values())
    if counts.open_states:
        return {y: growth * count for y, count in row.items()}
    alpha = smoothing(None, size)
    more = (growth - 1) * exits / (exits + alpha * size)
    grown = {y: count + more * (count + alpha) for y, count in row.items()}
    if more * alpha >= SEEN:
        grown.update((y, more * alpha) for y in range(size) if y not in row)
    return grown


def paper_bound(problem: "Problem", delta: float, budget: int) -> Bound:
    """BA-MC's index at expected counts, for a study of ``budget`` observations."""
    level = guarantees.beta(budget, delta, sum(size**2 for size in problem.sizes))

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


def certified_loss(problem: "Problem", budget: int, bound: Bound, rounds: int = 30) -> float:
    """The smallest max_k b_k that ``budget`` observations are expected to certify.

    T·b(T) hardly depends on T. So dividing the transitions in proportion to it, again and again, makes all b_k equal.
    The result belongs to the best division found in at most ``rounds`` rounds.
    """
    chains = list(problem.chains.values())
    transitions = budget - len(chains)
    if transitions < len(chains):
        return math.inf
    share = np.full(len(chains), 1 / len(chains))
    best = math.inf
    for _ in range(rounds):
        found = np.array([bound(chain, s * transitions) for chain, s in zip(chains, share, strict=True)])
        best = min(best, float(found.max()))
        if not math.isfinite(best):
            break
        share, before = share * found / (share * found).sum(), share
        if np.abs(share - before).max() < 1e-9:
            break
    return best


def sharp_budget(problem: "Problem", target: float, bound: Bound) -> float:
    """The observations that are expected to certify max_k L_k ≤ ``target`` by ``sharp``, to half a per cent."""
    chains = problem.chains.values()
    return sum(1 + least_transitions(chain, target, bound, 10 + 3 * chain.variability / target) for chain in chains)


def certified_budget(problem: "Problem", target: float, bound_for: Callable[[int], Bound]) -> float:
    """The observations that are expected to certify max_k L_k ≤ ``target``; ``bound_for`` takes the budget.

    It is infinite if no budget up to BEYOND suffices, or if the search does not settle.
    """
    budget = 2 * len(problem)
    for _ in range(100):  # β depends on log log of the budget: two or three rounds are enough
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


#: How often the shares are computed again for a bound that is not smooth. They would never settle.
ROUNDS = 20


class Expectation(NamedTuple):
    """A loss that falls as the budget grows: a limit, a prediction, a certificate at expected counts, or a theorem."""

    quantity: str
    #: What it is worth, in words.
    kind: str
    loss_at: Callable[[int], float]
    #: The least budget for a loss; infinite if there is none.
    budget_for: Callable[[float], float]


def expectations(problem: "Problem", delta: float) -> list[Expectation]:
    """What is expected of a budget, from the smallest loss to the largest, for chains with a positive variability."""
    chains, variability = len(problem), problem.variability
    yardstick = "asymptotically optimal max E[L], the paper's yardstick"
    found = [Expectation("Λ/n", yardstick, problem.optimal_loss, lambda loss: _ceiling(variability / loss))]
    for allocation in predictions.ALLOCATIONS:
        shares = predictions.shares(problem, allocation)
        for what, constant in (
            ("mean", predictions.mean_of_maximum(problem, shares)),
            (f"{sure(delta)} quantile", predictions.quantile_of_maximum(problem, shares, 1 - delta)),
        ):
            law = _limit_law(float(constant), chains)
            found.append(Expectation(f"{allocation}: {what}", "predicted from the limit law", *law))
    sharp, mixture = sharp_bound(problem, delta), mixture_bound(problem, delta)
    paper_for = partial(paper_bound, problem, delta)
    found += [
        Expectation(
            "certificate 'sharp'",
            "guaranteed, at the expected counts; what a study promises",
            lambda budget: certified_loss(problem, budget, sharp, ROUNDS),
            lambda loss: sharp_budget(problem, loss, sharp),
        ),
        Expectation(
            "certificate 'mixture'",
            "guaranteed, at the expected counts",
            lambda budget: certified_loss(problem, budget, mixture),
            lambda loss: certified_budget(problem, loss, lambda _: mixture),
        ),
        Expectation(
            "certificate 'paper'",
            "guaranteed, BA-MC's index at the expected counts",
            lambda budget: certified_loss(problem, budget, paper_for(budget)),
            lambda loss: certified_budget(problem, loss, paper_for),
        ),
    ]
    for number, kind, theorem in (
        (2, "bound for BA-MC, from its cut-off budget on", guarantees.theorem_2),
        (1, "bound for BA-MC", guarantees.theorem_1),
    ):
        bound = partial(theorem, problem, delta=delta)
        budget_for = partial(_least_budget, bound, 4 * chains)
        found.append(Expectation(f"Theorem {number}, as stated", kind, bound, budget_for))
    return found


def _limit_law(constant: float, chains: int) -> tuple[Callable[[int], float], Callable[[float], float]]:
    """L ≈ constant/transitions, and the budget for a loss. K of the observations bring no transition."""
    return (lambda budget: constant / (budget - chains)), (lambda loss: _ceiling(constant / loss) + chains)


def _ceiling(budget: float) -> float:
    return math.ceil(budget) if math.isfinite(budget) else math.inf


def _least_budget(bound: Callable[[int], float], least: int, loss: float) -> float:
    return _least(lambda budget: bound(math.ceil(budget)), loss, least, least, precision=1e-6)
