"""F, fair bets: does the law of a step depend on a label that was known before the step? (MATH §13)

Every card stakes on what the label's own past suggests, and a compensation pays for the unknown law. Plain scalar
Python over arrays that the caller gives: one definition is interpreted and compiled. A row is a state that is left, a
context is a row with one label, and a slot is the place of an outcome in its row, in order of discovery. The last slot
of a row's stakes stands for all outcomes that the row has not shown.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

#: m: how many imagined cards pull a context's law back to its row's.
STRENGTHS = (4.0, 16.0, 64.0)
#: π, the share of contexts that differ, and the prior weights ω of these shares.
SHARES = (0.8, 0.1, 0.02)
PRIOR = (0.5, 0.25, 0.25)
#: κ: how strongly stakes are pulled back to a mean of one for every outcome, and the limits of that pull's exponent.
FEEDBACK = 0.3
LEAST_PULL, MOST_PULL = -3.0, 1.0
#: The largest stake.
CAP = 3.0

Floats = npt.NDArray[np.float64]
Wholes = npt.NDArray[np.int64]


class Bets(NamedTuple):
    """The state of F for one chain and one kind of label."""

    #: Of each row: where its slots begin, the outcomes seen, the exits, the bets made, log W, log E, and D of outcomes
    #: that were never seen.
    first: Wholes
    seen: Wholes
    exits: Floats
    bets: Floats
    log_wealth: Floats
    log_value: Floats
    unseen_drift: Floats
    #: Of each row's slot: the count, and D.
    count: Floats
    drift: Floats
    #: Of each context: where its slots begin, its exits, and log R of each strength.
    context_first: Wholes
    context_exits: Floats
    log_ratio: Floats
    #: Of each context's slot: the count.
    context_count: Floats
    #: log ω of each share, and log E of the chain.
    log_weight: Floats
    log_total: Floats
    #: Scratch: the stakes on the row's outcomes.
    stake: Floats


def bets_for(outcomes: Wholes, contexts: Wholes) -> Bets:
    """The state before the first card.

    ``outcomes``: how many slots each row needs. ``contexts``: the row of each context.
    """
    rows, number = len(outcomes), len(contexts)
    widths = outcomes[contexts]
    cells, pairs = int(outcomes.sum()), int(widths.sum())
    return Bets(
        np.cumsum(outcomes) - outcomes, np.zeros(rows, np.int64), *(np.zeros(rows) for _ in range(5)),
        np.zeros(cells), np.zeros(cells),
        np.cumsum(widths) - widths, np.zeros(number), np.zeros(len(STRENGTHS) * number), np.zeros(pairs),
        np.log(np.array(PRIOR)), np.zeros(1), np.zeros(int(outcomes.max(initial=0)) + 1),
    )  # fmt: skip


def bet(bets: Any, x: int, context: int, slot: int) -> float:
    """Plays one card of the row ``x`` whose outcome is ``slot``, and gives log E. A new outcome has the next slot."""
    seen = bets.seen[x]
    first = bets.first[x]
    at = 3 * context
    top = 0.0  # of the logarithms of R and 1, so that nothing overflows
    for m in range(3):
        top = max(top, bets.log_ratio[at + m])
    heaviest = max(bets.log_weight[0], max(bets.log_weight[1], bets.log_weight[2]))
    weight = 0.0
    for i in range(3):
        weight += math.exp(bets.log_weight[i] - heaviest)
    rest = math.exp(-top)
    mean = 0.0  # of R over the strengths, divided by e^top
    for m in range(3):
        mean += math.exp(bets.log_ratio[at + m] - top) / 3.0
    plain = 0.0  # what r(y) is without the context's past
    slope = 0.0  # what mean_m R^m·ρ_m(y) is multiplied by in r(y)
    for i in range(3):
        share = math.exp(bets.log_weight[i] - heaviest) / weight
        base = (1.0 - SHARES[i]) * rest + SHARES[i] * mean
        plain += share * (1.0 - SHARES[i]) * rest / base
        slope += share * SHARES[i] / base
    # r(y) is affine in q = n_xc(y)/θ̂(y).
    there = bets.context_exits[context]
    level = plain
    rise = 0.0
    for m in range(3):
        ratio = slope * math.exp(bets.log_ratio[at + m] - top) / 3.0 / (there + STRENGTHS[m])
        level += ratio * STRENGTHS[m]
        rise += ratio
    mass = bets.exits[x] + 0.5 * (seen + 1.0)
    counts = bets.context_first[context]
    for y in range(seen):
        quotient = bets.context_count[counts + y] * mass / (bets.count[first + y] + 0.5)
        bets.stake[y] = stake_on(level + rise * quotient, bets.drift[first + y])
    bets.stake[seen] = stake_on(level, bets.unseen_drift[x])
    log_stake = math.log(bets.stake[slot])
    # What the card says of the shares and of its context, before it is counted.
    quotient = 0.0
    if slot < seen:
        quotient = bets.context_count[counts + slot] * mass / (bets.count[first + slot] + 0.5)
    after = 0.0
    for m in range(3):
        ratio = (quotient + STRENGTHS[m]) / (there + STRENGTHS[m])
        after += math.exp(bets.log_ratio[at + m] - top) * ratio / 3.0
        bets.log_ratio[at + m] += math.log(ratio)
    for i in range(3):
        base = (1.0 - SHARES[i]) * rest + SHARES[i] * mean
        bets.log_weight[i] += math.log(((1.0 - SHARES[i]) * rest + SHARES[i] * after) / base)
    # D of every outcome moves, also of those that did not happen.
    largest = -math.inf
    for y in range(seen):
        bets.drift[first + y] += bets.stake[y] - 1.0
        largest = max(largest, bets.drift[first + y])
    bets.unseen_drift[x] += bets.stake[seen] - 1.0
    largest = max(largest, bets.unseen_drift[x])
    if slot == seen:
        bets.drift[first + slot] = bets.unseen_drift[x]
        bets.seen[x] = seen + 1
    bets.count[first + slot] += 1.0
    bets.exits[x] += 1.0
    bets.context_count[counts + slot] += 1.0
    bets.context_exits[context] += 1.0
    bets.bets[x] += 1.0
    bets.log_wealth[x] += log_stake
    value = bets.log_wealth[x] - compensation(largest, bets.bets[x])
    bets.log_total[0] += value - bets.log_value[x]
    bets.log_value[x] = value
    total: float = bets.log_total[0]
    return total


def stake_on(ratio: float, drift: float) -> float:
    """v(y) = min(3, r(y)·exp(clamp(−κD(y), −3, 1)))."""
    pull = min(MOST_PULL, max(LEAST_PULL, -FEEDBACK * drift))
    return min(CAP, ratio * math.exp(pull))


def compensation(largest: float, bets: float) -> float:
    """log (1 + max_y D(y)/b)^b: no law of the row makes the stakes worth more on average."""
    return bets * math.log1p(largest / bets)


def play(row: Any, context: Any, slot: Any, number: int, bets: Any, trace: Any) -> None:
    """Plays cards in order; log E after each of them goes to ``trace``."""
    for j in range(number):
        trace[j] = bet(bets, row[j], context[j], slot[j])


def log_sum(first: float, second: float) -> float:
    """log (e^first + e^second)."""
    top = max(first, second)
    if top == math.inf or top == -math.inf:
        return top
    return top + math.log(math.exp(first - top) + math.exp(second - top))
