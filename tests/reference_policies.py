"""Certificates and allocation rules of MATH §6 and §7 in slow, literal NumPy, beside `reference`.

N is one chain's matrix of transition counts. Like `reference`, this takes nothing from the package. An index is a
plain function of N (T ≥ 1 is assumed; `allocate` gives a chain without a transition the index +∞), the largest index
is advanced.
"""

import math

import numpy as np
import reference as paper
from scipy.optimize import brentq
from scipy.special import betaln, ndtri


def seen_rows(N):
    """(x, exits) of the states left at least once: all sums of MATH §6 run over these."""
    return [(x, int(np.sum(N[x]))) for x in range(len(N)) if np.sum(N[x]) > 0]


def cap(N):
    """The largest Gini index that S states allow, 1 − 1/S (§2.2)."""
    return 1.0 - 1.0 / len(N)


# ---------------------------------------------------------------- certificates (MATH §7)


def knapsack(theta, most, bound):
    """max Σ W_x subject to Σ θ_x W_x ≤ bound and 0 ≤ W_x ≤ most_x, by its dual.

    min over μ ≥ 0 of μ·bound + Σ most_x·max(0, 1 − μθ_x) is piecewise linear and convex in μ: its least value is at
    μ = 0 or at a corner μ = 1/θ_x. There the quotient θ_x/θ_x is one and row x adds nothing, to the last bit: with a
    rounded 1/θ_x it would add up to most_x·2⁻⁵³, as much as 2e-10 of a sum of seven.
    """
    rows = list(zip(theta, most, strict=True))
    at_corners = [bound / corner + sum(m * max(0.0, 1.0 - t / corner) for t, m in rows) for corner in theta]
    return min(sum(most), *at_corners)


def row_cost(u, S):
    """cost(u) = (S − 1)/2 · log(1 + u/S): at most either cost of MATH §7 (docs/certificates.md has the proof)."""
    return (S - 1) / 2.0 * math.log1p(u / S)


def natural_offset(most, exits):
    """round(log₄(most/exits)) in whole numbers, halves up: how many of 2, 8, 32, … the quotient reaches."""
    offset = 0
    while most >= 2 * 4**offset * exits:
        offset += 1
    return offset


def mixture_excess(N, K, delta, open_states=False):
    """W̄: bounds Σ_x N_x‖P̃(x,·) − P(x,·)‖² at all times and for all K chains with probability 1 − δ.

    With open states the cost is u/2, which `row_cost` tends to as S grows (MATH §6).
    """
    S, rows = len(N), seen_rows(N)
    most = max(exits for _, exits in rows)
    top = 1  # ⌊log₄(most + 1)⌋ + 1
    while 4**top <= most + 1:
        top += 1
    natural = [natural_offset(most, exits) for _, exits in rows]
    best = math.inf
    for m in range(top + 1):
        families = [
            ([0] * len(rows), 0.0),
            (natural, sum((o + 1) * math.log(2.0) for o in natural)),
            ([min(o, m) for o in natural], len(rows) * math.log(m + 1)),
        ]
        for offsets, prior in families:
            scales = [4.0 ** (m - o) for o in offsets]
            bound = math.log(K / delta) + math.log(3 * (m + 1) * (m + 2)) + prior
            ratios = [exits / rho for (_, exits), rho in zip(rows, scales, strict=True)]
            bound += sum(u / 2.0 if open_states else row_cost(u, S) for u in ratios)
            theta = [exits / (exits + 2.0 * rho) for (_, exits), rho in zip(rows, scales, strict=True)]
            best = min(best, knapsack(theta, [2.0 * exits for _, exits in rows], bound))
    return best


def mixture_certificate(N, K, delta, open_states=False):
    """b = (√W̄ + r√((1 − 1/S)Σ N_x/(N_x + r)²))² / T, r = αS = 1/3; 1 + 1/S′ for 1 − 1/S if states are open."""
    r, spread = 1.0 / 3.0, 1.0 + 1.0 / len(N) if open_states else cap(N)
    shift = r * math.sqrt(spread * sum(exits / (exits + r) ** 2 for _, exits in seen_rows(N)))
    return (math.sqrt(mixture_excess(N, K, delta, open_states)) + shift) ** 2 / np.sum(N)


def entry_interval(count, exits, level):
    """The p that the Beta(1/2,1/2)-mixture martingale does not refute at 1/level; level = δ/Σ_k S_k²."""
    if exits == 0:
        return 0.0, 1.0

    def excess(p):  # log of mixture likelihood over likelihood at p, less the threshold of Ville's inequality
        mixture = betaln(count + 0.5, exits - count + 0.5) - betaln(0.5, 0.5)
        at_p = (count * math.log(p) if count else 0.0) + ((exits - count) * math.log1p(-p) if count < exits else 0.0)
        return mixture - at_p - math.log(1.0 / level)

    middle, edge = count / exits, 1e-300
    lower = 0.0 if count == 0 else brentq(excess, edge, min(middle, 1.0 - 2.0**-53), xtol=1e-15)
    upper = 1.0 if count == exits else brentq(excess, max(middle, edge), 1.0 - 2.0**-53, xtol=1e-15)
    return lower, upper


def wilson_hilferty(mean, variance, probability):
    """Q(q) = μ·max(0, 1 − v/(9μ²) + z_q√v/(3μ))³, 0 if μ = 0 (MATH §6)."""
    if mean == 0.0:
        return 0.0
    spread = variance / (9.0 * mean**2)
    return mean * max(0.0, 1.0 - spread + ndtri(probability) * math.sqrt(spread)) ** 3


def optimistic_variability(N, c):
    """Σ_x min(1 − 1/S, Ĝ_x + c/N_x), Ĝ from the smoothed estimate: the mean of the asymptotic certificate's law."""
    G = paper.gini(paper.smoothed(N))
    return sum(min(cap(N), G[x] + c / exits) for x, exits in seen_rows(N))


def asymptotic_certificate(N, total, delta):
    """The Wilson–Hilferty 1 − δT/t quantile over T, t = total = Σ_k T_k; v̂ from the smoothed rows. Not guaranteed."""
    T = np.sum(N)
    variance = paper.loss_variance([paper.smoothed(N)[x] for x, _ in seen_rows(N)])
    return wilson_hilferty(optimistic_variability(N, c=1.0), variance, 1.0 - delta * T / total) / T


# ---------------------------------------------------------------- indices (MATH §6); `ba-mc` is reference.index


def gini_frequencies(N):
    """Ĝ^{MLE}_x = 1 − Q_x/N_x², Q_x = Σ_y N[x,y]², as {x: value} over the states left at least once."""
    return {x: 1.0 - sum(int(count) ** 2 for count in N[x]) / exits**2 for x, exits in seen_rows(N)}


def uniform(N):
    return 1.0 / np.sum(N)


def static(N, weight):
    return weight / np.sum(N)


def oracle(N, P):
    """ΣG/T with the true matrix (§2.4)."""
    return paper.variability(P) / np.sum(N)


def oracle_max_shares(matrices):
    """The share rule τ_k ∝ Q_{W_k}(1 − τ_k/2), Στ = 1; `oracle-max` is `static` with these weights (MATH §6).

    For a given factor s, τ = Q(1 − τ/2)/s has one solution, since Q falls as τ grows, and it falls as s grows.
    """
    laws = [(paper.variability(P), paper.loss_variance(P)) for P in matrices]

    def share(law, s):
        if law[0] == 0.0:
            return 0.0
        return brentq(lambda tau: tau - wilson_hilferty(*law, 1.0 - tau / 2.0) / s, 1e-12, 2.0 - 1e-12, xtol=1e-14)

    largest = 2.0 * len(laws) * max(wilson_hilferty(*law, 1.0 - 0.01 / len(laws)) for law in laws)
    s = brentq(lambda s: sum(share(law, s) for law in laws) - 1.0, 1e-6 * largest, largest, xtol=1e-13)
    return np.array([share(law, s) for law in laws])


def gafs_max(tables, t):
    """All chains' indices: ΣĜ^{MLE}/T, but the least sampled chain comes first while its T < √t + 1."""
    totals = [int(np.sum(N)) for N in tables]
    indices = [sum(gini_frequencies(N).values()) / T for N, T in zip(tables, totals, strict=True)]
    least = int(np.argmin(totals))
    if totals[least] < math.sqrt(t) + 1.0:
        indices[least] = math.inf
    return indices


def ch_as(N, n):
    delta = n**-2.5
    widths = sum(math.sqrt(math.log(1.0 / delta) / (2.0 * exits)) for _, exits in seen_rows(N))
    return (sum(gini_frequencies(N).values()) + 5.0 * widths) / np.sum(N)


def b_as(N, n):
    b, G = math.sqrt(2.0 * math.log(2.0 * n**4.5)), gini_frequencies(N)
    return sum((math.sqrt(G[x]) + b / math.sqrt(exits)) ** 2 for x, exits in seen_rows(N)) / np.sum(N)


def bayes(N, open_states=False):
    """Σ_x N_x(1 − Σp̄²)/(N_x + αS + 1)/T, p̄ the posterior mean under α = 1/2.

    With open states αS = 1/2 is spread over so many states that only those seen count in Σp̄².
    """
    if open_states:
        rows = [exits * (1.0 - sum((N[x] / (exits + 0.5)) ** 2)) / (exits + 1.5) for x, exits in seen_rows(N)]
        return sum(rows) / np.sum(N)
    S, mean = len(N), paper.smoothed(N, alpha=0.5)
    rows = [exits * (1.0 - sum(mean[x] ** 2)) / (exits + 0.5 * S + 1.0) for x, exits in seen_rows(N)]
    return sum(rows) / np.sum(N)


def scout(N, power=0.75, open_states=False):
    """(μ̃^p + d)/T, μ̃ = min(S₊·cap, ΣĜ^{MLE} + bonus), d = Σ cap·(N_x − 2/3)·(r/(N_x + r))².

    With U = Σ 1/N_x the bonus is U·Σ(Ĝ_x/N_x)/(1 + Σ(N_x − 1)/N_x²) + 2(1/8 + 4/S₊)·U/S₊, and U more while T < 20. With
    open states the cap is 1, and r stays 1/3.
    """
    rows, G, T = seen_rows(N), gini_frequencies(N), int(np.sum(N))
    most, r = 1.0 if open_states else cap(N), 1.0 / 3.0
    U = sum(1.0 / exits for _, exits in rows)
    rare = sum(G[x] / exits for x, exits in rows) / (1.0 + sum((exits - 1) / exits**2 for _, exits in rows))
    bonus = U * rare + 2.0 * (1.0 / 8.0 + 4.0 / len(rows)) * U / len(rows)
    if T < 20:
        bonus += U
    optimistic = min(len(rows) * most, sum(G.values()) + bonus)
    smoothed = sum(most * (exits - 2.0 / 3.0) * (r / (exits + r)) ** 2 for _, exits in rows)
    return (optimistic**power + smoothed) / T


def scout_ones(N, open_states=False):
    """Σ_x min(cap, Ĝ_x + 2/N_x)/N_x, for the loss with weights one."""
    G = gini_frequencies(N) if open_states else paper.gini(paper.smoothed(N))
    most = 1.0 if open_states else cap(N)
    return sum(min(most, G[x] + 2.0 / exits) / exits for x, exits in seen_rows(N))


def scout_variation(N, open_states=False):
    """c_k²/T, c_k = ½√(2/π)·Σ_x √π̂_x Σ_y √(P̂(1−P̂)), for total variation.

    With open states P̂ = N[x,y]/(N_x + 2): the weight 2 is of states that were never seen.
    """
    total, root = np.sum(N), 0.0
    for x, exits in seen_rows(N):
        law = N[x] / (exits + 2.0) if open_states else paper.smoothed(N)[x]
        root += math.sqrt(exits / total) * sum(math.sqrt(p * (1.0 - p)) for p in law)
    return (0.5 * math.sqrt(2.0 / math.pi) * root) ** 2 / total


def scout_support(N, factor, open_states=False):
    """factor·Σ_x min(S − 1, support − 1 + 2/N_x)/T, for losses that count successors; open states have no S."""
    most = math.inf if open_states else len(N) - 1
    return factor * sum(min(most, (N[x] > 0).sum() - 1 + 2.0 / n) for x, n in seen_rows(N)) / np.sum(N)


def gini_ucb(N, K, delta):
    """min{S₊·cap, ΣĜ + 2√(W̄ Σ max(cap − Ĝ, 0)/N_x)} / T with frequencies for Ĝ and W̄ of MATH §7."""
    G, rows = gini_frequencies(N), seen_rows(N)
    room = sum(max(cap(N) - G[x], 0.0) / exits for x, exits in rows)
    upper = sum(G.values()) + 2.0 * math.sqrt(mixture_excess(N, K, delta) * room)
    return min(len(rows) * cap(N), upper) / np.sum(N)


def certifier(N, K, delta):
    return mixture_certificate(N, K, delta)


def allocate(paths, sizes, n, indices):
    """The chains chosen at steps 1 … n by `indices(tables, t)`, one number a chain; t observations came before.

    A chain without a transition has index +∞, ties go to the smallest number (MATH §1): this is the whole warm-up.
    """
    sources, seen, choices = [iter(path) for path in paths], [[] for _ in paths], []
    for t in range(n):
        tables = [paper.transition_counts(path, S) for path, S in zip(seen, sizes, strict=True)]
        empty = [k for k, N in enumerate(tables) if np.sum(N) == 0]
        k = empty[0] if empty else int(np.argmax(indices(tables, t)))
        seen[k].append(next(sources[k]))
        choices.append(k)
    return choices
