"""The event of the certificate `sharp` in slow, literal NumPy: what the certificate must never fall below.

Step A of docs/certificates.md; nothing is taken from the package. The mixtures Z are integrated numerically (2 and 3
states), the weights are written out as fractions, and the matrices that the event allows are searched directly: the
largest loss found among them is a lower bound of every valid bound that uses this event.
"""

import itertools
import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaln, logsumexp

#: The parts of the martingale, by their meaning: joint tilts | single entries.
JOINT, SINGLE = 17 / 20, 3 / 20
#: Offsets all zero | geometric ½ | geometric ¼ in steps of 16 | uniform.
FAMILY = (37 / 50, 2 / 25, 1 / 10, 2 / 25)
#: Never | always | Beta(½,½).
EDGE, BETA = 3 / 10, 2 / 5


def level_weight(m):
    """w_m ∝ 1/((k+3/2)(k+5/2)), k = max(1−m, m−2), m ≥ −1; the sum is taken term by term, its rest telescopes."""
    if m < -1:
        return 0.0

    def raw(level):
        k = max(1 - level, level - 2)
        return 1 / ((k + 1.5) * (k + 2.5))

    total = sum(raw(level) for level in range(-1, 1000)) + 1 / (998 + 1.5)
    return raw(m) / total


def offset_probability(family, offset, m):
    """The probability of one row's offset at level m."""
    if family == 0:
        return 1.0 if offset == 0 else 0.0
    if family == 1:
        return 0.5 ** (offset + 1)
    if family == 2:
        return 0.75 * 0.25**offset
    return 1 / (max(m, 0) + 1) if offset <= max(m, 0) else 0.0


def scale(family, m, offset):
    return 4.0 ** (m - (2 if family == 2 else 1) * offset)


def smoothed(n):
    return (n + 1 / (3 * len(n))) / (n.sum() + 1 / 3)


# ---------------------------------------------------------------- the mixtures


def log_z(n, p, rho, points=1201):
    """log E exp(λ·n − N·log Σ p_y e^{λ_y}), λ ~ N(0, I/ρ), by the trapezoidal rule on the vectors that sum to zero.

    The exponent is concave with curvature ≥ ρ, and at most ρ + N/2 in any direction, so that 9/√ρ around the peak
    leaves out e^{−40}; the peak is looked for on the grid itself.
    """
    size, number = len(n), n.sum()
    basis = np.linalg.qr(np.eye(size) - 1 / size)[0][:, : size - 1]
    reach = 9 / math.sqrt(rho)

    def exponent(coordinates):
        vectors = coordinates @ basis.T
        with np.errstate(divide="ignore"):
            return vectors @ n - number * logsumexp(vectors, b=p, axis=-1) - rho / 2 * (coordinates**2).sum(axis=-1)

    centre = np.zeros(size - 1)
    for shrink in (1.0, 0.1, 0.01):  # walk to the peak
        axis = np.linspace(-1.5 * reach * shrink, 1.5 * reach * shrink, 61 if size == 2 else 41)
        grid = np.stack(np.meshgrid(*[axis] * (size - 1), indexing="ij"), axis=-1).reshape(-1, size - 1)
        centre = centre + grid[exponent(centre + grid).argmax()]
    width = 1 / math.sqrt(rho + number / 2)
    axis = np.linspace(-reach, reach, max(points if size == 2 else 161, 2 * int(2 * reach / width) + 1))
    grid = np.stack(np.meshgrid(*[axis] * (size - 1), indexing="ij"), axis=-1).reshape(-1, size - 1)
    volume = (size - 1) * math.log((axis[1] - axis[0]) * math.sqrt(rho / (2 * math.pi)))
    return float(logsumexp(exponent(centre + grid))) + volume


def log_r(count, exits, p):
    """log R_xy: never, always and the Beta mixture, with their weights."""
    parts = []
    if count == 0:
        parts.append(math.log(EDGE) - exits * math.log1p(-p) if p < 1 else math.inf)
    if count == exits:
        parts.append(math.log(EDGE) - exits * math.log(p) if p > 0 else math.inf)
    likelihood = 0.0
    if count:
        likelihood += count * math.log(p) if p > 0 else -math.inf
    if count < exits:
        likelihood += (exits - count) * math.log1p(-p) if p < 1 else -math.inf
    parts.append(math.log(BETA) + betaln(count + 0.5, exits - count + 0.5) - betaln(0.5, 0.5) - likelihood)
    return float(logsumexp(parts))


def box(count, exits, size, log_inverse):
    """The p with R_xy ≤ (K/δ)·S²/SINGLE, by root finding."""
    level = log_inverse + math.log(size**2 / SINGLE)

    def excess(p):
        return log_r(count, exits, p) - level

    middle, edge = count / exits, 1e-13
    low = 0.0 if excess(edge) <= 0 else brentq(excess, edge, max(middle, 2 * edge), xtol=1e-15)
    high = 1.0 if excess(1 - edge) <= 0 else brentq(excess, min(middle, 1 - 2 * edge), 1 - edge, xtol=1e-15)
    return low, high


# ---------------------------------------------------------------- the event, directly


def log_joint(rows, laws, levels=range(-1, 9), offsets=range(5), families=range(4)):
    """log Σ_f w_f Σ_m w_m E_o Π_x Z_x, of the terms named. Fewer terms make it smaller, and the event larger."""
    parts = []
    cache = {}

    def z(x, rho):
        if (x, rho) not in cache:
            cache[x, rho] = log_z(rows[x], laws[x], rho)
        return cache[x, rho]

    for family, m in itertools.product(families, levels):
        by_row = 0.0
        for x in range(len(rows)):
            found = [
                math.log(offset_probability(family, o, m)) + z(x, scale(family, m, o))
                for o in offsets
                if offset_probability(family, o, m) > 0 and scale(family, m, o) >= 4.0**-3
            ]
            by_row += float(logsumexp(found))
        parts.append(math.log(FAMILY[family] * level_weight(m)) + by_row)
    return float(logsumexp(parts))


def log_martingale(rows, laws):
    """log M of a chain with these visited rows (vectors of counts) and these laws; rows never left have R = 1."""
    size = len(rows[0])
    pairs = [(row, n, p) for row, law in zip(rows, laws, strict=True) for n, p in zip(row, law, strict=True)]
    singles = [log_r(n, row.sum(), p) for row, n, p in pairs]
    unvisited = size * (size - len(rows))
    if unvisited:
        singles.append(math.log(unvisited))
    single = math.log(SINGLE / size**2) + float(logsumexp(singles))
    return float(np.logaddexp(math.log(JOINT) + log_joint(rows, laws), single))


def weighted_loss(rows, laws):
    """T·L."""
    return sum(row.sum() * ((smoothed(row) - law) ** 2).sum() for row, law in zip(rows, laws, strict=True))


def largest_loss(rows, log_inverse, steps=60):
    """The largest T·L found among laws with M < K/δ: for one visited row of 2 or 3 states, or two of 2 states."""
    size = len(rows[0])
    best = 0.0
    if size == 2:
        boxes = [box(row[0], row.sum(), 2, log_inverse) for row in rows]
        axes = [np.linspace(max(low, 1e-9), min(high, 1 - 1e-9), steps) for low, high in boxes]
        for point in itertools.product(*axes):
            laws = [np.array([p, 1 - p]) for p in point]
            value = weighted_loss(rows, laws)
            if value > best and log_martingale(rows, laws) < log_inverse:
                best = value
        return best
    (row,) = rows
    axes = [np.linspace(*box(n, row.sum(), 3, log_inverse), steps) for n in row[:2]]
    for p, q in itertools.product(*axes):
        law = np.array([p, q, 1 - p - q])
        if law.min() > 1e-9:
            value = weighted_loss(rows, [law])
            if value > best and log_martingale(rows, [law]) < log_inverse:
                best = value
    return best
