"""F, fair bets: does the law of a step depend on a label that was known before the step? (MATH §13)

Each card is a bet on the outcomes that the label's own past suggests, and a compensation pays for the unknown law. This
is plain scalar Python over arrays that the caller gives: one definition is interpreted and compiled. A row is a state
that is left, a context is a row with one label, and a slot is the place of an outcome in its row, in order of
discovery. The last slot of a row's stakes is for all outcomes that the row has not shown.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

#: m: the number of imagined cards that pull a context's law towards its row's law.
STRENGTHS = (4.0, 16.0, 64.0)
#: π, the share of contexts that differ, and the prior weights ω of these shares.
SHARES = (0.8, 0.1, 0.02)
PRIOR = (0.5, 0.25, 0.25)
#: κ: how strongly stakes are pulled towards a mean of one for every outcome, and the limits of that pull's exponent.
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
    counts: Floats
    drift: Floats
    #: Of each context: where its slots begin, its exits, and log R of each strength.
    context_first: Wholes
    context_exits: Floats
    log_ratio: Floats
    #: Of each context's slot: the count.
    context_counts: Floats
    #: log ω of each share, and log E of the chain.
    log_weight: Floats
    log_total: Floats
    #: Scratch: the stakes on the row's outcomes, R of each strength, and B of each share.
    stake: Floats
    ratio: Floats
    base: Floats


def bets_for(outcomes: Wholes, contexts: Wholes) -> Bets:
    """The state before the first card.

    ``outcomes``: how many slots each row needs. ``contexts``: the row of each context.
    """
    rows, number = len(outcomes), len(contexts)
    widths = outcomes[contexts]
    cells, pairs = int(outcomes.sum()), int(widths.sum())
    return Bets(
        np.cumsum(outcomes) - outcomes, np.zeros(rows, np.int64), np.zeros(rows), np.zeros(rows), np.zeros(rows),
        np.zeros(rows), np.zeros(rows),
        np.zeros(cells), np.zeros(cells),
        np.cumsum(widths) - widths, np.zeros(number), np.zeros(len(STRENGTHS) * number), np.zeros(pairs),
        np.log(np.array(PRIOR)), np.zeros(1), np.zeros(int(outcomes.max(initial=0)) + 1),
        np.zeros(len(STRENGTHS)), np.zeros(len(SHARES)),
    )  # fmt: skip


def bet(bets: Any, x: int, context: int, slot: int) -> float:
    """Plays one card of the row ``x`` with the outcome ``slot``, and returns log E. A new outcome has the next slot."""
    set_stakes(bets, x, context)
    seen = bets.seen[x]
    first = bets.first[x]
    log_stake = math.log(bets.stake[slot])
    learn(bets, x, context, slot)
    # D of every outcome changes, even of outcomes that did not happen.
    largest = -math.inf
    for y in range(seen):
        bets.drift[first + y] += bets.stake[y] - 1.0
        largest = max(largest, bets.drift[first + y])
    bets.unseen_drift[x] += bets.stake[seen] - 1.0
    largest = max(largest, bets.unseen_drift[x])
    if slot == seen:
        bets.drift[first + slot] = bets.unseen_drift[x]
        bets.seen[x] = seen + 1
    bets.counts[first + slot] += 1.0
    bets.exits[x] += 1.0
    bets.context_counts[bets.context_first[context] + slot] += 1.0
    bets.context_exits[context] += 1.0
    bets.bets[x] += 1.0
    bets.log_wealth[x] += log_stake
    value = bets.log_wealth[x] - compensation(largest, bets.bets[x])
    bets.log_total[0] += value - bets.log_value[x]
    bets.log_value[x] = value
    total: float = bets.log_total[0]
    return total


def set_stakes(bets: Any, x: int, context: int) -> None:
    """v(y) for every outcome of the row before the card; the last place is for all outcomes that it has not shown."""
    at = 3 * context
    top = 0.0  # of the logarithms of R and 1, so that nothing overflows
    for m in range(3):
        top = max(top, bets.log_ratio[at + m])
    rest = math.exp(-top)
    mean = 0.0  # of R over the strengths, divided by e^top as all that follows
    for m in range(3):
        bets.ratio[m] = math.exp(bets.log_ratio[at + m] - top)
        mean += bets.ratio[m] / 3.0
    heaviest = max(bets.log_weight[0], max(bets.log_weight[1], bets.log_weight[2]))
    weight = 0.0
    for i in range(3):
        bets.base[i] = (1.0 - SHARES[i]) * rest + SHARES[i] * mean  # B_π
        weight += math.exp(bets.log_weight[i] - heaviest)
    plain = 0.0  # what r(y) is without the context's past
    slope = 0.0  # what mean_m R^m·ρ_m(y) is multiplied by in r(y)
    for i in range(3):
        share = math.exp(bets.log_weight[i] - heaviest) / weight
        plain += share * (1.0 - SHARES[i]) * rest / bets.base[i]
        slope += share * SHARES[i] / bets.base[i]
    # r(y) is affine in n_xc(y)/θ̂(y).
    exits = bets.context_exits[context]
    level = plain
    rise = 0.0
    for m in range(3):
        part = slope * bets.ratio[m] / 3.0 / (exits + STRENGTHS[m])
        level += part * STRENGTHS[m]
        rise += part
    seen = bets.seen[x]
    first = bets.first[x]
    for y in range(seen):
        bets.stake[y] = stake_on(level + rise * excess(bets, x, context, y), bets.drift[first + y])
    bets.stake[seen] = stake_on(level, bets.unseen_drift[x])


def excess(bets: Any, x: int, context: int, y: int) -> float:
    """n_xc(y)/θ̂(y), θ̂(y) = (n_x(y) + ½)/(N_x + (s_x + 1)/2), for an outcome that the row has shown."""
    mass = bets.exits[x] + 0.5 * (bets.seen[x] + 1.0)
    found: float = bets.context_counts[bets.context_first[context] + y] * mass / (bets.counts[bets.first[x] + y] + 0.5)
    return found


def learn(bets: Any, x: int, context: int, slot: int) -> None:
    """Updates the context (R) and the shares (ω) with the card, before it is counted. Call it after `set_stakes`."""
    at = 3 * context
    exits = bets.context_exits[context]
    quotient = excess(bets, x, context, slot) if slot < bets.seen[x] else 0.0
    before = 0.0
    after = 0.0
    for m in range(3):
        ratio = (quotient + STRENGTHS[m]) / (exits + STRENGTHS[m])  # ρ_m of the outcome
        before += bets.ratio[m] / 3.0
        after += bets.ratio[m] * ratio / 3.0
        bets.log_ratio[at + m] += math.log(ratio)
    for i in range(3):
        bets.log_weight[i] += math.log1p(SHARES[i] * (after - before) / bets.base[i])


def stake_on(ratio: float, drift: float) -> float:
    """v(y) = min(3, r(y)·exp(clamp(−κD(y), −3, 1)))."""
    pull = min(MOST_PULL, max(LEAST_PULL, -FEEDBACK * drift))
    return min(CAP, ratio * math.exp(pull))


def compensation(largest: float, bets: float) -> float:
    """log (1 + max_y D(y)/b)^b: no law of the row makes the stakes worth more on average."""
    return bets * math.log1p(largest / bets)


def play(row: Any, context: Any, slot: Any, number: int, bets: Any, trace: Any) -> None:
    """Plays cards in order. log E after each of them goes to ``trace``."""
    for j in range(number):
        trace[j] = bet(bets, row[j], context[j], slot[j])
