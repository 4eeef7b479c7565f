"""T, M and P: prefixes of decks, compared at lengths that are fixed beforehand. (MATH §13)

The cards of a row, or of a row and a label, are independent draws from one law, whatever rule chose when to draw them.
A look compares two parts of a deck that are chosen by their sizes alone, so neither allocation nor stopping matters.
Looks are never multiplied: their weighted sum only grows, and its mean never exceeds one. This is plain scalar Python
over arrays that the caller gives.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ._numbering import CONTEXTS

#: m: how closely the smaller group is expected to follow the pooled shares.
STRENGTHS = (4.0, 16.0, 64.0)
#: The largest logarithm of one look's e-value. A smaller e-value is always valid, and e^500 does not overflow.
CEILING = 500.0
#: The shortest window of a look at change; a look is made every quarter of a window.
WINDOW = 16
#: The shortest prefix of a look at sameness is 2 to this power.
SHORTEST = 2

Floats = npt.NDArray[np.float64]
Wholes = npt.NDArray[np.int64]


class Deck(NamedTuple):
    """Cards sorted by row, and within a row in order of issue."""

    #: Where each row's cards begin, one more than there are rows.
    start: Wholes
    #: The card's place among all cards, its outcome's slot, and its label's slot in the row.
    place: Wholes
    slot: Wholes
    label: Wholes
    #: How many outcomes and how many labels each row has, and how many cards it had before these.
    outcomes: Wholes
    labels: Wholes
    before: Wholes
    #: log n! for n up to the number of a row's cards.
    log_factorial: Floats


class Look(NamedTuple):
    """The results of looks. The first two are per card, at its place; the others are per row: its strongest look."""

    #: The sum of w·e over the looks that the card completes, and the smallest level p/w among them.
    gain: Floats
    level: Floats
    #: The look with the largest w·e: its value, its last card in the row and its window.
    best: Floats
    best_end: Wholes
    best_window: Wholes
    #: The look with the smallest p/w: its level, last card, window and outcome.
    least: Floats
    least_end: Wholes
    least_window: Wholes
    least_slot: Wholes


class Rings(NamedTuple):
    """The memory of looks for each row: counts of its outcomes now and at earlier cards, in rings of one count each."""

    #: Where each row's rings begin, and how many lengths of windows or prefixes it has room for.
    first: Wholes
    lengths: Wholes
    counts: Floats
    #: Of looks at sameness, of each row's labels and sides: how many cards there were. Each row has 2·(`CONTEXTS` + 1)
    #: places.
    reached: Wholes
    #: Scratch: the counts of the smaller group, of the window, and of both groups together.
    part: Floats
    other: Floats
    pooled: Floats


def evidence(log_factorial: Any, part: Any, pooled: Any, slots: int, drawn: float, total: float) -> float:
    """e of a group of ``drawn`` cards among ``total``: Dirichlet-multinomial over drawing without replacement.

    The mean over the strengths m of DM(part; m·pooled/total)/Hypergeometric(part; pooled), at most e^500.
    """
    whole = int(total)
    # log C(total, drawn) − Σ log C(pooled, part), and drawn!/Π part! of the other law.
    base = log_factorial[whole] - log_factorial[whole - int(drawn)]
    for y in range(slots):
        if pooled[y] > 0.0:
            base -= log_factorial[int(pooled[y])] - log_factorial[int(pooled[y]) - int(part[y])]
    mean = 0.0
    for m in STRENGTHS:
        found = base + math.lgamma(m) - math.lgamma(drawn + m)
        for y in range(slots):
            if part[y] > 0.0:
                expected = m * pooled[y] / total
                found += math.lgamma(part[y] + expected) - math.lgamma(expected)
        mean += math.exp(min(CEILING, found)) / 3.0
    return mean


def tail(log_factorial: Any, hits: float, marked: float, drawn: float, total: float) -> float:
    """min(1, 2·min(P(X ≤ hits), P(X ≥ hits))), X of the hypergeometric law of ``drawn`` out of ``total`` cards."""
    g, k, n, t = int(hits), int(marked), int(drawn), int(total)
    log_mass = (
        log_factorial[k] - log_factorial[g] - log_factorial[k - g]
        + log_factorial[t - k] - log_factorial[n - g] - log_factorial[t - k - n + g]
        - log_factorial[t] + log_factorial[n] + log_factorial[t - n]
    )  # fmt: skip
    mass = math.exp(log_mass)
    term = 1.0
    ratio = 1.0  # this side's probability, divided by the mass at g
    j = g
    if hits * total >= drawn * marked:  # the upper side is the smaller one, or nearly so
        while j < k and j < n and term > 1e-17 * ratio:
            term *= (k - j) / (j + 1.0) * (n - j) / (t - k - n + j + 1.0)
            ratio += term
            j += 1
    else:
        while j > 0 and j > n + k - t and term > 1e-17 * ratio:
            term *= j / (k - j + 1.0) * (t - k - n + j) / (n - j + 1.0)
            ratio += term
            j -= 1
    side = mass * ratio
    return min(1.0, 2.0 * min(side, 1.0 - side + mass))


def change_weight(scale: int, looks: int) -> float:
    """w of the ``looks``-th look, counted in quarters of the window (J > 4), at windows of 16·2^scale cards."""
    a = 0
    while looks - 4 >= 2 ** (a + 1):
        a += 1
    return 1.0 / ((scale + 1.0) * (scale + 2.0)) / (2.0**a * (a + 1.0) * (a + 2.0))


def sameness_weight(a: int, b: int) -> float:
    """w of the first 2^a cards of a label against the first 2^b of others, without the label's own weight."""
    i = min(a, b) - SHORTEST
    j = abs(a - b)
    weight = 1.0 / ((i + 1.0) * (i + 2.0) * (j + 1.0) * (j + 2.0))
    return 0.5 * weight if j > 0 else weight


def change(deck: Any, rows: int, row_weight: Any, look: Any, rings: Any) -> None:
    """M and P: the last W cards of every row against all before them, at every quarter of W = 16, 32, …

    A row's first ring has the counts now; then each length of windows has five, of the last five quarters.
    """
    for x in range(rows):
        slots = deck.outcomes[x]
        start = deck.start[x]
        now = rings.first[x]
        for j in range(start, deck.start[x + 1]):
            rings.counts[now + deck.slot[j]] += 1.0
            number = deck.before[x] + j - start + 1
            quarter = WINDOW // 4
            scale = 0
            while number % quarter == 0:
                quarters = number // quarter
                if quarters > 4:
                    compare(deck, x, j, quarter, quarters, scale, row_weight[x], look, rings)
                kept = now + (1 + 5 * scale + quarters % 5) * slots
                for y in range(slots):
                    rings.counts[kept + y] = rings.counts[now + y]
                quarter *= 2
                scale += 1


def compare(
    deck: Any, x: int, j: int, quarter: int, quarters: int, scale: int, row_weight: float, look: Any, rings: Any
) -> None:
    """One look of M and P: the row's last four quarters of a window, which the card ``j`` completes."""
    slots = deck.outcomes[x]
    now = rings.first[x]
    before = now + (1 + 5 * scale + (quarters - 4) % 5) * slots
    window = 4.0 * quarter
    total = float(quarters * quarter)
    weight = change_weight(scale, quarters)
    place = deck.place[j]
    pool = 0
    for y in range(slots):
        rings.pooled[y] = rings.counts[now + y]
        rings.other[y] = rings.pooled[y] - rings.counts[before + y]
        rings.part[y] = rings.other[y] if 2.0 * window <= total else rings.counts[before + y]
        if rings.pooled[y] > 0.0:
            pool += 1
    drawn = min(window, total - window)
    amount = weight * evidence(deck.log_factorial, rings.part, rings.pooled, slots, drawn, total)
    look.gain[place] += amount
    if amount > look.best[x]:
        look.best[x] = amount
        look.best_end[x] = j - deck.start[x] + 1
        look.best_window[x] = 4 * quarter
    tests = 1.0 if pool <= 2 else float(pool)
    for y in range(slots):
        if rings.pooled[y] > 0.0:
            p = tests * tail(deck.log_factorial, rings.other[y], rings.pooled[y], window, total)
            level = p / (weight * row_weight)
            look.level[place] = min(look.level[place], level)
            if level < look.least[x]:
                look.least[x] = level
                look.least_end[x] = j - deck.start[x] + 1
                look.least_window[x] = 4 * quarter
                look.least_slot[x] = y


def sameness(deck: Any, rows: int, label_weight: Any, look: Any, rings: Any) -> None:
    """T: of every row, each label's first 2^a cards against the first 2^b cards with another label.

    Each label has rings for two sides, its own cards and the others: the counts now, and the counts when there were
    2^a cards. Before the first label, one side has all cards of the row; a label that appears later starts from it.
    """
    for x in range(rows):
        slots = deck.outcomes[x]
        side_places = (1 + rings.lengths[x]) * slots
        reached = 2 * (CONTEXTS + 1) * x
        everyone = rings.first[x]
        for label in range(deck.labels[x]):
            own = everyone + (1 + 2 * label) * side_places
            at = reached + 2 * label + 1
            if rings.reached[at] + rings.reached[at + 1] == 0:  # the label is new: all cards before had other labels
                for i in range(side_places):
                    rings.counts[own + side_places + i] = rings.counts[everyone + i]
                rings.reached[at + 1] = deck.before[x]
            for j in range(deck.start[x], deck.start[x + 1]):
                side = 0 if deck.label[j] == label else 1
                power = put(own + side * side_places, slots, deck.slot[j], at + side, rings)
                if power < SHORTEST:
                    continue
                there = SHORTEST
                while 2**there <= rings.reached[at + 1 - side]:
                    mine = power if side == 0 else there
                    rest = there if side == 0 else power
                    amount = label_weight[label] * sameness_look(deck, slots, own, side_places, mine, rest, rings)
                    look.gain[deck.place[j]] += amount
                    if amount > look.best[x]:
                        look.best[x] = amount
                        look.best_end[x] = j - deck.start[x] + 1
                        look.best_window[x] = 2**mine
                        look.least_slot[x] = label
                    there += 1
        for j in range(deck.start[x], deck.start[x + 1]):
            put(everyone, slots, deck.slot[j], reached, rings)


def put(at: int, slots: int, slot: int, reached: int, rings: Any) -> int:
    """Adds a card to one side. If there are 2^a cards now, it notes their counts and returns a; otherwise −1."""
    rings.counts[at + slot] += 1.0
    rings.reached[reached] += 1
    power = whole_power(rings.reached[reached])
    if power >= SHORTEST:
        kept = at + (1 + power - SHORTEST) * slots
        for y in range(slots):
            rings.counts[kept + y] = rings.counts[at + y]
    return power


def sameness_look(deck: Any, slots: int, at: int, side_places: int, own: int, rest: int, rings: Any) -> float:
    """w·e of the first 2^own cards with a label against the first 2^rest with another one."""
    mine = at + (1 + own - SHORTEST) * slots
    others = at + side_places + (1 + rest - SHORTEST) * slots
    for y in range(slots):
        rings.pooled[y] = rings.counts[mine + y] + rings.counts[others + y]
        rings.part[y] = rings.counts[mine + y] if own <= rest else rings.counts[others + y]
    drawn = 2.0 ** min(own, rest)
    total = 2.0**own + 2.0**rest
    return sameness_weight(own, rest) * evidence(deck.log_factorial, rings.part, rings.pooled, slots, drawn, total)


def whole_power(number: int) -> int:
    """a if ``number`` is 2^a, else −1."""
    if number & (number - 1):
        return -1
    a = 0
    while 2**a < number:
        a += 1
    return a


def multiply(row: Any, gain: Any, number: int, amount: Any, log_products: Any, trace: Any) -> None:
    """The mean of three products over the rows of 1 − π + π·A; its logarithm after each card goes to ``trace``.

    Rows are numbered in order of discovery, and π is 0.8, 0.2 or 1/(i + 1) for the i-th. A row's ``amount`` is A, −1
    before its discovery.
    """
    for j in range(number):
        x = row[j]
        before = amount[x]
        if before < 0.0:
            amount[x] = gain[j]
        elif gain[j] > 0.0:
            amount[x] = before + gain[j]
        if before < 0.0 or gain[j] > 0.0:
            for i in range(3):
                share = row_share(i, x)
                old = 0.0 if before < 0.0 else math.log1p(share * (before - 1.0))
                log_products[i] += math.log1p(share * (amount[x] - 1.0)) - old
        top = max(log_products[0], max(log_products[1], log_products[2]))
        total = 0.0
        for i in range(3):
            total += math.exp(log_products[i] - top) / 3.0
        trace[j] = top + math.log(total)


def row_share(i: int, x: int) -> float:
    """π of the row that was discovered as number x + 1, in the i-th of the three products."""
    if i == 0:
        return 0.8
    return 0.2 if i == 1 else 1.0 / (x + 2.0)
