"""The paper in slow, literal NumPy: the specification that everything fast is tested against.

Talebi & Maillard, "Learning Multiple Markov Chains via Adaptive Allocation", NeurIPS 2019. Nothing here comes from
the package: two independent writings of a formula are worth more than one. Letters are the paper's: P a transition
matrix, N a matrix of transition counts, S states, K chains, n the budget, T transitions. Every quantity is recomputed
from scratch whenever it is asked for. Lemmas are numbered as printed: 1 in the main text, 2 to 13 in the supplement.
"""

import itertools
import math

import numpy as np

C = 1.1  # "In this paper, we choose c = 1.1" (§3)
INDEX_CONSTANTS = (6.6, 28.0)  # §3, for α = 1/(3S)
TIGHT_CONSTANTS = (3.78, 8.76)  # the same derivation with |1 − P − P̂| ≤ 1, rounded up: `ba-mc-tight`

# ---------------------------------------------------------------- quantities of a chain (§2.1, §2.2, §2.4)


def stationary(P):
    """The π with π = πP and Σπ = 1 (§2.1): one equation is redundant and gives its place to the sum."""
    S = len(P)
    system = np.array(P, dtype=float).T - np.eye(S)
    system[-1, :] = 1.0
    right = np.zeros(S)
    right[-1] = 1.0
    return np.linalg.solve(system, right)


def reversal(P):
    """P*(x,y) = π(y)P(y,x)/π(x) (§2.1)."""
    S, pi = len(P), stationary(P)
    return np.array([[pi[y] * P[y][x] / pi[x] for y in range(S)] for x in range(S)])


def is_reversible(P):
    """Detailed balance, π(x)P(x,y) = π(y)P(y,x) (§2.1), up to rounding."""
    S, pi = len(P), stationary(P)
    return all(abs(pi[x] * P[x][y] - pi[y] * P[y][x]) <= 1e-12 for x in range(S) for y in range(S))


def spectral_gap(P):
    """γ = 1 − λ⋆, λ⋆ the second largest eigenvalue in absolute value (§2.1); 1 for a single state."""
    sizes = sorted(abs(np.linalg.eigvals(np.array(P, dtype=float))), reverse=True)
    return 1.0 - sizes[1] if len(sizes) > 1 else 1.0


def pseudo_spectral_gap(P, longest=30):
    """γ_ps = max over ℓ ≥ 1 of γ((P*)^ℓ P^ℓ)/ℓ (§2.1); ℓ > longest is not looked at, and cannot exceed 1/longest."""
    forward, backward = np.array(P, dtype=float), reversal(P)
    power = np.linalg.matrix_power
    return max(spectral_gap(power(backward, m) @ power(forward, m)) / m for m in range(1, longest + 1))


def gini(P):
    """G(x) = Σ_y P(x,y)(1 − P(x,y)) (§2.2)."""
    return np.array([sum(p * (1.0 - p) for p in row) for row in P])


def variability(P):
    """Σ_x G(x) (§2.2)."""
    return sum(gini(P))


def inverse_stationary_sum(P):
    """H = Σ_x 1/π(x) (§2.2)."""
    return sum(1.0 / mass for mass in stationary(P))


def total_variability(matrices):
    """Λ = Σ_k Σ_x G_k(x) (§2.4)."""
    return sum(variability(P) for P in matrices)


def allocation(matrices):
    """η_k = Σ_x G_k(x) / Λ (§2.4)."""
    return np.array([variability(P) / total_variability(matrices) for P in matrices])


def loss_variance(P):
    """v = 2 Σ_x (s₂ − 2s₃ + s₂²), s_j = Σ_y P(x,y)^j: the variance of the limit law of T·L (MATH §6)."""
    s = {j: [sum(p**j for p in row) for row in P] for j in (2, 3)}
    return 2.0 * sum(s2 - 2.0 * s3 + s2 * s2 for s2, s3 in zip(s[2], s[3], strict=True))


def draw_path(P, length, rng, start=0):
    """A path of `length` observations; the first reveals the state `start`."""
    path = [start]
    while len(path) < length:
        path.append(int(rng.choice(len(P), p=P[path[-1]])))
    return path


# ---------------------------------------------------------------- estimators from a path (§2.2, MATH §1)


def transition_counts(path, S):
    """N[x,y] = number of t with X_{t−1} = x and X_t = y (the sum in eq. 1)."""
    N = np.zeros((S, S), dtype=int)
    for before, after in itertools.pairwise(path):
        N[before, after] += 1
    return N


def visits(path, S):
    """T_{x,t} as the paper defines it (§2.2): observations in state x, the current one included."""
    return np.array([sum(1 for state in path if state == x) for x in range(S)])


def default_alpha(S):
    """α = 1/(3S) (§3)."""
    return 1.0 / (3.0 * S)


def smoothed(N, alpha=None, weights=None):
    """P̂(x,y) = (α + N[x,y]) / (αS + T_x) (eq. 1), T_x the exits N_x = Σ_y N[x,y] (MATH §1) unless given."""
    S = len(N)
    alpha = default_alpha(S) if alpha is None else alpha
    weights = np.sum(N, axis=1) if weights is None else weights
    return np.array([[(alpha + N[x][y]) / (alpha * S + weights[x]) for y in range(S)] for x in range(S)])


def smoothed_visits(path, S):
    """Eq. 1 read literally: T_x counts visits, so the row of the current state sums to less than one."""
    return smoothed(transition_counts(path, S), weights=visits(path, S))


def occupancy(N):
    """π̂(x) = N_x / T (§2.2 with exits, MATH §1)."""
    return np.sum(N, axis=1) / np.sum(N)


def occupancy_visits(path, S):
    """π̂(x) = T_x / T (§2.2, literal)."""
    return visits(path, S) / len(path)


# ---------------------------------------------------------------- losses (§2.3, MATH §3)

DIVERGENCES = {  # of a true row p from its estimate q, summed over the entries
    "squared": lambda p, q: (p - q) ** 2,
    "total-variation": lambda p, q: abs(p - q) / 2.0,
    "kl": lambda p, q: p * math.log(p / q) if p > 0.0 else 0.0,  # KL(P‖P̂)
    "chi-squared": lambda p, q: (p - q) ** 2 / q,  # Σ(P − P̂)²/P̂
    "hellinger": lambda p, q: (math.sqrt(p) - math.sqrt(q)) ** 2 / 2.0,  # squared Hellinger, ½Σ(√p − √q)², at most 1
}


def loss(P, N, alpha=None, weights="empirical", divergence="squared"):
    """L_k (weights π̂, "empirical"), L′_k (1, "one") and L″_k (π, "stationary") of §2.3."""
    estimate, S = smoothed(N, alpha), len(P)
    weight = {"empirical": occupancy, "one": lambda _: np.ones(S), "stationary": lambda _: stationary(P)}[weights](N)
    total = 0.0
    for x in range(S):
        for y in range(S):
            total += weight[x] * DIVERGENCES[divergence](P[x][y], estimate[x, y])
    return total


# ---------------------------------------------------------------- confidence levels and half-widths (supplement A)


def peeling(n, delta, union, c=C):
    """c·log(⌈log n / log c⌉ · union/δ): the level of Lemma 2, for a union of `union` events."""
    return c * math.log(math.ceil(math.log(n) / math.log(c)) * union / delta)


def peeling_unbounded(N, delta, c=C):
    """c·log(log N · log(cN) / (δ log²c)): Lemma 2 for an unbounded number N of terms. It needs N ≥ 2."""
    return c * math.log(math.log(N) * math.log(c * N) / (delta * math.log(c) ** 2))


def zeta_corollary(n, delta):
    """ζ of Corollary 1: one event."""
    return peeling(n, delta, 1)


def zeta(n, delta, S):
    """ζ of Lemmas 3 and 4: two sides of S² entries."""
    return peeling(n, delta, 2 * S**2)


def beta(n, delta, pairs):
    """β(n,δ) of §3. `pairs` is KS², or Σ_k S_k² for chains of unlike sizes (MATH §1)."""
    return peeling(n, delta, 6 * pairs)


def lemma_3(P, N, level, alpha=None):
    """Half-width of Lemma 3 for every entry, in terms of the true P."""
    S, exits = len(P), np.sum(N, axis=1)
    alpha = default_alpha(S) if alpha is None else alpha
    width = np.zeros((S, S))
    for x in range(S):
        total = exits[x] + alpha * S
        for y in range(S):
            p = P[x][y]
            first = math.sqrt(exits[x] / total * 2.0 * p * (1.0 - p) * level / total)
            width[x, y] = first + (level / 3.0 + alpha * abs(1.0 - S * p)) / total
    return width


def lemma_4_constants(level, remainder):
    """c₁ and c₂ of Lemma 4 for ζ = level, ζ′ = remainder."""
    z, r = level, remainder
    c1 = math.sqrt(8.0 * z) * (2.0 * z + r)
    c2 = r**2 + 4.0 * z * (4.0 * z + r + 2.0 * math.sqrt(z * r))
    return c1, c2 + r * math.sqrt(8.0 * z) * (5.3 * math.sqrt(z) + math.sqrt(2.0 * r))


def lemma_4(N, level, alpha=None):
    """Half-width of Lemma 4 for every entry, from the counts alone; ζ′ = ζ/3 + α(S − 1)."""
    S, exits = len(N), np.sum(N, axis=1)
    alpha = default_alpha(S) if alpha is None else alpha
    c1, c2 = lemma_4_constants(level, level / 3.0 + alpha * (S - 1))
    estimate, width = smoothed(N, alpha), np.zeros((S, S))
    for x in range(S):
        for y in range(S):
            variance = exits[x] * estimate[x, y] * (1.0 - estimate[x, y])
            square = 2.0 * variance * level + c1 * math.sqrt(variance) + c2
            width[x, y] = math.sqrt(square) / (exits[x] + alpha * S)
    return width


def lemma_5(pi, gap, n, delta):
    """Half-width of Lemma 5 for π̂(x), a reversible chain after n observations."""
    log = math.log(math.sqrt(2.0 / min(pi)) / delta)
    return np.array([math.sqrt(8.0 * q * (1.0 - q) / (gap * n) * log) + 20.0 / (gap * n) * log for q in pi])


def event_c_holds(P, N, level):
    """The inequality of Definition 2 for every entry at one time; level = β, α = 1/(3S)."""
    S, exits, estimate = len(P), np.sum(N, axis=1), smoothed(N)
    for x in range(S):
        total = exits[x] + 1.0 / 3.0
        for y in range(S):
            width = math.sqrt(2.0 * exits[x] * P[x][y] * (1.0 - P[x][y]) * level) / total + level / (3.0 * total)
            if abs(estimate[x, y] - P[x][y]) > width:
                return False
    return True


def event_c(P, path, n, delta, pairs):
    """Definition 2 along one chain's whole path: the inequality after each of its observations, all t ≤ n."""
    level = beta(n, delta, pairs)
    return all(event_c_holds(P, transition_counts(path[:t], len(P)), level) for t in range(1, len(path) + 1))


# ---------------------------------------------------------------- the index of §3 and its bounds (supplement B)


def index_terms(T, weights, estimate):
    """The three sums of the index of §3 over states with T_x > 0, each divided by T, constants left out."""
    S = len(weights)
    first = second = third = 0.0
    for x in range(S):
        if weights[x] > 0:
            total = weights[x] + 1.0 / 3.0  # αS = 1/3
            row = [p * (1.0 - p) for p in estimate[x]]
            first += sum(row)
            second += weights[x] ** 1.5 / total**2 * sum(math.sqrt(v) for v in row)
            third += S / total
    return first / T, second / T, third / T


def index(N, level, constants=INDEX_CONSTANTS):
    """b_{k,t+1} of §3 with exits (MATH §4); level = β. TIGHT_CONSTANTS give `ba-mc-tight`. Infinite if T = 0."""
    if np.sum(N) == 0:
        return math.inf
    first, second, third = index_terms(np.sum(N), np.sum(N, axis=1), smoothed(N))
    return 2.0 * level * first + constants[0] * level**1.5 * second + constants[1] * level**2 * third


def index_visits(path, S, level):
    """b_{k,t+1} of §3 read literally: T_{k,x,t} visits, T_{k,t} observations."""
    first, second, third = index_terms(len(path), visits(path, S), smoothed_visits(path, S))
    return 2.0 * level * first + 6.6 * level**1.5 * second + 28.0 * level**2 * third


def index_general(N, level, alpha):
    """The index for any α: Lemma 4's c₁ and c₂ in place of 6.6 β^{3/2} and 28 β² (MATH §4); level = ζ."""
    S, exits, T, estimate = len(N), np.sum(N, axis=1), np.sum(N), smoothed(N, alpha)
    c1, c2 = lemma_4_constants(level, level / 3.0 + alpha * (S - 1))
    total = 0.0
    for x in range(S):
        if exits[x] > 0:
            row = [p * (1.0 - p) for p in estimate[x]]
            total += 2.0 * level * sum(row) + c2 * S / (exits[x] + alpha * S)
            total += c1 * exits[x] ** 1.5 / (exits[x] + alpha * S) ** 2 * sum(math.sqrt(v) for v in row)
    return total / T


def lemma_7(P, N, level):
    """Upper bound on the loss on the event C; level = β, α = 1/(3S)."""
    S, exits, T, G = len(P), np.sum(N, axis=1), np.sum(N), gini(P)
    total = 0.0
    for x in range(S):
        denominator = exits[x] + 1.0 / 3.0
        total += 2.0 * level * G[x] * (exits[x] > 0)
        total += 2.0 * math.sqrt(2.0) / 3.0 * level**1.5 * math.sqrt(S * exits[x] ** 3 * G[x]) / denominator**2
        total += S * level**2 / 9.0 * exits[x] / denominator**2
    return total / T


def lemma_8(P, N, level):
    """(lower, upper) bounds on the index on the event C; level = β, α = 1/(3S)."""
    S, exits, T, G = len(P), np.sum(N, axis=1), np.sum(N), gini(P)
    seen = [x for x in range(S) if exits[x] > 0]
    lower = 2.0 * level * sum(G[x] for x in seen) / T
    second = 13.0 * level**1.5 * math.sqrt(S) * sum(math.sqrt(G[x] / (exits[x] + 1.0 / 3.0)) for x in seen)
    third = 39.0 * level**2 * S * sum(1.0 / (exits[x] + 1.0 / 3.0) for x in seen)
    return lower, lower + (second + third) / T


def ba_mc(paths, sizes, n, delta, literal=False):
    """Algorithm 1: the chains chosen at steps 1 … n. `paths` are iterables of states, one a chain.

    Each chain is observed twice, in order; then the largest index wins, the smallest number on ties. `literal` takes
    the paper's visits in place of exits.
    """
    level = beta(n, delta, sum(S**2 for S in sizes))
    sources, seen, choices = [iter(path) for path in paths], [[] for _ in paths], []
    for t in range(n):
        if t < 2 * len(paths):
            k = t // 2
        elif literal:
            k = int(np.argmax([index_visits(path, S, level) for path, S in zip(seen, sizes, strict=True)]))
        else:
            tables = [transition_counts(path, S) for path, S in zip(seen, sizes, strict=True)]
            k = int(np.argmax([index(N, level) for N in tables]))
        seen[k].append(next(sources[k]))
        choices.append(k)
    return choices


# ---------------------------------------------------------------- theorems, as stated (§4)


def theorem_1(n, K, S, level):
    """KS²β²·(304/(n − 2K) + 564K/(n − 2K)²), n ≥ 4K: the last line of Theorem 1's proof; level = β."""
    return K * S**2 * level**2 * (304.0 / (n - 2 * K) + 564.0 * K / (n - 2 * K) ** 2)


def excess_constant_main(matrices):
    """C₀ as Theorem 2 prints it: 150K√(SΛ max H) + 3√(SΛ) max_k H_k/η_k. S is the largest number of states."""
    K, S, total = len(matrices), max(len(P) for P in matrices), total_variability(matrices)
    H, eta = [inverse_stationary_sum(P) for P in matrices], allocation(matrices)
    second = 3.0 * math.sqrt(S * total) * max(h / share for h, share in zip(H, eta, strict=True))
    return 150.0 * K * math.sqrt(S * total * max(H)) + second


def excess_constant_appendix(matrices):
    """C₀ as its proof gives it: 150K√(SΛ max H) + max_k 2.4√(S H_k Λ)/η_k (the one we use, MATH §5)."""
    K, S, total = len(matrices), max(len(P) for P in matrices), total_variability(matrices)
    H, eta = [inverse_stationary_sum(P) for P in matrices], allocation(matrices)
    second = max(2.4 * math.sqrt(S * h * total) / share for h, share in zip(H, eta, strict=True))
    return 150.0 * K * math.sqrt(S * total * max(H)) + second


def cutoff_budget(matrices, delta, constant=300.0):
    """n_cutoff = K max_k (300/(γ_ps π_min) · log((2K/δ)√(1/π_min)))², as Theorem 2 states it."""
    K, worst = len(matrices), 0.0
    for P in matrices:
        least = min(stationary(P))
        log = math.log(2.0 * K / delta * math.sqrt(1.0 / least))
        worst = max(worst, constant / (pseudo_spectral_gap(P) * least) * log)
    return K * worst**2


def theorem_2(matrices, n, delta, excess_constant=excess_constant_appendix):
    """2βΛ/n + C₀β^{3/2}/n^{3/2}: Theorem 2 without its Õ(n⁻²), for n ≥ n_cutoff, with probability 1 − 2δ."""
    level = beta(n, delta, len(matrices) * max(len(P) for P in matrices) ** 2)  # KS², as stated
    first = 2.0 * level * total_variability(matrices) / n
    return first + excess_constant(matrices) * level**1.5 / n**1.5
