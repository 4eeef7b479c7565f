"""The e-processes of docs/diagnostics.md, literal and slow: dictionaries, SciPy's laws, every product taken anew.

Cards are tuples (x, c, y) in order of issue: the state left, the label, the outcome. Each function gives the values
after every card, not their logarithms.
"""

import math
from collections import defaultdict

import numpy as np
from scipy import stats
from scipy.special import gammaln

STRENGTHS = (4, 16, 64)


class Row:
    """What F keeps of one row."""

    def __init__(self):
        self.counts, self.drift, self.unseen = {}, {}, 0.0
        self.exits, self.bets, self.wealth = 0, 0, 1.0

    def value(self):
        if self.bets == 0:
            return 1.0
        largest = max([*self.drift.values(), self.unseen])
        return self.wealth * (1 + largest / self.bets) ** (-self.bets)


def fair_bets(cards):
    """F after each card."""
    weights = {0.8: 0.5, 0.1: 0.25, 0.02: 0.25}
    rows = defaultdict(Row)
    ratios = defaultdict(lambda: dict.fromkeys(STRENGTHS, 1.0))
    contexts = defaultdict(lambda: defaultdict(int))
    values = []
    for x, c, y in cards:
        row, ratio, context = rows[x], ratios[x, c], contexts[x, c]
        total = sum(context.values())
        outcomes = [*row.counts, None]  # None: any outcome that was never seen

        def share(z, row=row):
            return (row.counts.get(z, 0) + 0.5) / (row.exits + (len(row.counts) + 1) / 2)

        def rho(m, z, context=context, total=total, share=share):
            seen = context[z] / share(z) if z in context else 0.0
            return (seen + m) / (total + m)

        def before(pi, ratio=ratio):
            return 1 - pi + pi * np.mean([ratio[m] for m in STRENGTHS])

        def after(pi, z, ratio=ratio, rho=rho):
            return 1 - pi + pi * np.mean([ratio[m] * rho(m, z) for m in STRENGTHS])

        stakes = {}
        for z in outcomes:
            r = sum(w * after(pi, z) / before(pi) for pi, w in weights.items()) / sum(weights.values())
            drift = row.unseen if z is None else row.drift[z]
            stakes[z] = min(3.0, r * math.exp(min(1.0, max(-3.0, -0.3 * drift))))
        found = y if y in row.counts else None
        row.wealth *= stakes[found]
        weights = {pi: w * after(pi, found) / before(pi) for pi, w in weights.items()}
        factors = {m: rho(m, found) for m in STRENGTHS}
        for m in STRENGTHS:
            ratio[m] *= factors[m]
        for z in row.counts:
            row.drift[z] += stakes[z] - 1
        row.unseen += stakes[None] - 1
        if found is None:
            row.drift[y] = row.unseen
        row.bets += 1
        row.exits += 1
        row.counts[y] = row.counts.get(y, 0) + 1
        context[y] += 1
        values.append(math.prod(each.value() for each in rows.values()))
    return values


def dirichlet_multinomial(counts, alpha):
    """The probability of counts, with the multinomial coefficient."""
    counts, alpha = np.array(counts, float), np.array(alpha, float)
    n, a = counts.sum(), alpha.sum()
    log = gammaln(n + 1) + gammaln(a) - gammaln(n + a)
    return math.exp(log + (gammaln(counts + alpha) - gammaln(alpha) - gammaln(counts + 1)).sum())


def deck_evidence(first, second):
    """e of two lists of outcomes: the smaller group given the pool, the first one if they are equally large."""
    smaller = first if len(first) <= len(second) else second
    outcomes = sorted({*first, *second})
    pool = np.array([first.count(y) + second.count(y) for y in outcomes])
    counts = np.array([smaller.count(y) for y in outcomes])
    null = stats.multivariate_hypergeom(pool, len(smaller)).pmf(counts)
    return np.mean([dirichlet_multinomial(counts, m * pool / pool.sum()) for m in STRENGTHS]) / null


def over_rows(amounts):
    """The mean of the three products; ``amounts``: A of each discovered row, in order of discovery."""
    shares = (lambda i: 0.8, lambda i: 0.2, lambda i: 1 / (i + 1))
    ranked = list(enumerate(amounts, start=1))
    return np.mean([math.prod(1 - share(i) + share(i) * a for i, a in ranked) for share in shares])


def looks_at_sameness(cards, declared=None):
    """T after each card. Labels are numbered by their discovery in the row, unless they were declared."""
    values = []
    for n in range(1, len(cards) + 1):
        decks = defaultdict(list)
        for x, c, y in cards[:n]:
            decks[x].append((c, y))
        amounts = []
        for deck in decks.values():
            amount = 0.0
            for rank, label in enumerate(dict.fromkeys(c for c, _ in deck), start=1):
                own, rest = [y for c, y in deck if c == label], [y for c, y in deck if c != label]
                of_label = 1 / declared if declared else 1 / (rank * (rank + 1))
                for a in range(2, 40):
                    for b in range(2, 40):
                        if 2**a <= len(own) and 2**b <= len(rest):
                            i, j = min(a, b) - 2, abs(a - b)
                            weight = of_label / ((i + 1) * (i + 2) * (j + 1) * (j + 2)) / (2 if j else 1)
                            amount += weight * deck_evidence(own[: 2**a], rest[: 2**b])
            amounts.append(amount)
        values.append(over_rows(amounts))
    return values


def looks_at_change(cards, size=None):
    """M and the levels of P after each card."""
    values, levels = [], []
    decks, amounts, level = {}, {}, math.inf
    for x, _, y in cards:
        deck = decks.setdefault(x, [])
        amounts.setdefault(x, 0.0)
        deck.append(y)
        rank = 1 + list(decks).index(x)
        of_row = 1 / (rank * (rank + 1)) if size is None else 1 / size
        n = len(deck)
        for i in range(30):
            window = 16 * 2**i
            if n % (window // 4) or n // (window // 4) <= 4:
                continue
            looks = n // (window // 4)
            a = math.floor(math.log2(looks - 4))
            weight = 1 / ((i + 1) * (i + 2)) * 2 ** (-a) / ((a + 1) * (a + 2))
            amounts[x] += weight * deck_evidence(deck[n - window :], deck[: n - window])
            outcomes = set(deck)
            for z in outcomes:
                law = stats.hypergeom(n, deck.count(z), window)
                seen = deck[n - window :].count(z)
                p = min(1.0, 2 * min(law.cdf(seen), law.sf(seen - 1)))
                level = min(level, p * (1 if len(outcomes) <= 2 else len(outcomes)) / (weight * of_row))
        values.append(over_rows(amounts.values()))
        levels.append(level)
    return values, levels


def against_known(cards, matrix):
    """The e-process against a known matrix after each card."""
    values = []
    counts = defaultdict(lambda: np.zeros(len(matrix)))
    for x, _, y in cards:
        counts[x][y] += 1
        total = 0.0
        for pi, weight in ((0.8, 0.5), (0.1, 0.25), (0.02, 0.25)):
            product = 1.0
            for row, seen in counts.items():
                possible = matrix[row] > 0
                if (seen[~possible] > 0).any():
                    product = math.inf
                    break
                n, p = seen[possible], matrix[row][possible]
                log_null = (n * np.log(p)).sum()
                parts = []
                for m in (1, 4, 16, 64, 256):
                    log = gammaln(m) - gammaln(n.sum() + m) + (gammaln(n + m * p) - gammaln(m * p)).sum()
                    parts.append(math.exp(log - log_null))
                product *= 1 - pi + pi * np.mean(parts)
            total += weight * product
        values.append(total)
    return values
