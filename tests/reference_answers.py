"""MATH §11 in slow, literal Python: decks, replay, bets, and the worst row of a set by brute force."""

import math
from collections import defaultdict

import numpy as np

from chainscout.paths import LOST, PENDING, START

BETS = [0.999 * 2 ** (-j / 2) for j in range(44)]


def decks(paths, *, skip_all_losses=False, order=None):
    """Row → the cards that can be read. ``order``: another order than that of issue, for mutants."""
    cards = list(zip(paths.source.tolist(), paths.target.tolist(), paths.told.tolist(), strict=True))
    order = range(len(cards)) if order is None else order
    cards = [cards[place] for place in order]
    found, closed = defaultdict(list), set()
    for place, (source, target, told) in enumerate(cards):
        if source in closed:
            continue
        if target == PENDING:
            closed.add(source)
        elif target == LOST:
            later = [card for card in cards[place + 1 :] if card[0] == source and card[1] >= 0 and card[2] <= told]
            if later and not skip_all_losses:
                closed.add(source)
        else:
            found[source].append(target)
    return found


def replay(stacks, start, arrived, failed, cap, *, skip_waiting=False, most=10**9):
    """[(how it ended, steps)] of each completed episode. ``skip_waiting``: a mutant that never waits."""
    stacks = {row: list(cards)[::-1] for row, cards in stacks.items()}
    found = []
    given_up = 0
    while len(found) < most:
        if start == START:
            if not stacks.get(START):
                return found
            x = stacks[START].pop()
        else:
            x = start
        steps = 0
        while x not in arrived and x not in failed and steps < cap:
            if not stacks.get(x):
                break
            x = stacks[x].pop()
            steps += 1
        else:
            end = 1 if x in arrived else 2 if x in failed else 0
            found.append((end, steps))
            continue
        if not skip_waiting or x == start or given_up > 1000:
            return found
        given_up += 1
    return found


def log_wealth(values, m):
    """log K(m) against 'the mean is ≤ m' after each value, for values ≥ 0."""
    values = np.asarray(values, dtype=float)
    logs = [np.cumsum(np.log(1 - gamma + gamma * values / m)) for gamma in BETS]
    return np.logaddexp.reduce(logs, axis=0) - math.log(len(BETS))


def ever_missed(values, truth, level):
    """Whether a bound on the mean of values in [0, 1] was ever wrong, when it is looked at after every value."""
    values = np.asarray(values, dtype=float)
    low = truth > 0 and len(values) and log_wealth(values, truth).max() >= level
    high = truth < 1 and len(values) and log_wealth(1 - values, 1 - truth).max() >= level
    return bool(low or high)


def likely(p, counts, level):
    """Whether a row is in the set of MATH §11; ``level`` is log(rows/δ)."""
    counts, p = np.asarray(counts, float), np.asarray(p, float)
    total, size = counts.sum(), len(counts)
    mixture = math.lgamma(size / 2) - math.lgamma(total + size / 2)
    mixture += sum(math.lgamma(n + 0.5) - math.lgamma(0.5) for n in counts)
    with np.errstate(divide="ignore", invalid="ignore"):
        likelihood = np.where(counts > 0, counts * np.log(p), 0.0).sum()
    return mixture - likelihood < level
