"""The events of the certificate `sharp` in slow, literal NumPy: what the certificate must never fall below.

Step A of docs/certificates.md; nothing is taken from the package. The weights are written out as fractions, the
mixtures Z are integrated numerically (2 and 3 labels), the boxes are found by root finding, and the laws that an event
allows are searched directly. The largest loss found among them is a lower bound of every valid bound that uses this
event. Steps without a known outcome (holes) are completed in all possible ways: a law is allowed if one completion
allows it.
"""

import itertools
import math
from functools import cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaln, logsumexp

#: Declared states: joint tilts | single entries.
JOINT, SINGLE = 17 / 20, 3 / 20
#: Open states: joint tilts | seen entries | the missing mass of all rows together | that of single rows.
OPEN = (17 / 20, 9 / 100, 3 / 100, 3 / 100)
#: Offsets all zero | geometric ½ | geometric ¼ in steps of 16 | uniform on 0 … max(m, 0).
FAMILY = (4 / 5, 3 / 50, 2 / 25, 3 / 50)
#: Never | always | Beta(½,½).
EDGE, BETA = 3 / 10, 2 / 5
#: z → w_v for v = e^{−z}.
SURPRISE = {math.inf: 3 / 10, **dict.fromkeys((4, 3, 2, 5 / 4, 3 / 4, 2 / 5, 1 / 5, 1 / 10), 7 / 80)}

LEVELS, OFFSETS = range(-1, 7), range(5)


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
    """ρ of a row at level m."""
    return 4.0 ** (m - (2 if family == 2 else 1) * offset)


def row_weight(j):
    """π of the j-th row, j = 1, 2, …"""
    return 1 / (j * (j + 1))


def smoothed(n, states=None):
    """P̂ of a row over its first ``states`` labels (all of them if they are declared), and 0 elsewhere."""
    known = len(n) if states is None else states
    return np.where(np.arange(len(n)) < known, (np.asarray(n) + 1 / (3 * known)) / (sum(n) + 1 / 3), 0.0)


# ---------------------------------------------------------------- the parts of the martingale


def log_z(n, p, rho):
    """log E exp(λ·n − N·log Σ p_y e^{λ_y}), λ ~ N(0, I/ρ), by the trapezoidal rule on the vectors that sum to zero.

    The exponent is concave, with curvature ρ at least, so 9/√ρ on either side of the peak leaves out e^{−40}. The peak
    is found by Newton's method. Along the axes of the curvature there, λ − peak = width·sinh(s), with equal steps of s.
    """
    n, p = np.asarray(n, dtype=float), np.asarray(p, dtype=float)
    n, p = n[(p > 0) | (n > 0)], p[(p > 0) | (n > 0)]
    size, number = len(n), n.sum()
    if size == 1:
        return 0.0
    basis = np.linalg.qr(np.eye(size) - 1 / size)[0][:, : size - 1]

    def exponent(points):
        vectors = points @ basis.T
        return vectors @ n - number * logsumexp(vectors, b=p, axis=-1) - rho / 2 * (points**2).sum(axis=-1)

    peak = np.zeros(size - 1)
    for _ in range(100):
        vector = basis @ peak
        law = p * np.exp(vector - logsumexp(vector, b=p))
        slope = basis.T @ (n - number * law) - rho * peak
        bend = number * basis.T @ (np.diag(law) - np.outer(law, law)) @ basis + rho * np.eye(size - 1)
        move = np.linalg.solve(bend, slope)
        length = 1.0
        while exponent(peak + length * move) < exponent(peak) - 1e-12 and length > 1e-9:
            length /= 2
        peak = peak + length * move
        if np.abs(move).max() * math.sqrt(rho + number) < 1e-9:
            break
    curves, axes = np.linalg.eigh(bend)
    widths = 1 / np.sqrt(curves)
    sides = [np.arange(0.0, math.asinh(9 / (math.sqrt(rho) * width)) + 0.2, 0.2) for width in widths]
    sides = [np.concatenate((-side[:0:-1], side)) for side in sides]
    s = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, size - 1)
    volume = np.log(0.2 * widths * math.sqrt(rho / (2 * math.pi))).sum() + np.log(np.cosh(s)).sum(axis=-1)
    return float(logsumexp(exponent(peak + (widths * np.sinh(s)) @ axes.T) + volume))


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


def log_v(labels, law, z):
    """log V_x(e^{−z}) of a row that went to these labels, one after another."""
    total, seen = 0.0, set(labels[:1])
    for label in labels[1:]:
        known = math.fsum(law[y] for y in seen)
        rest = max(0.0, 1 - known)
        if label not in seen:
            total -= z
        total -= math.log(known + rest * math.exp(-z))
        seen.add(label)
    return total


@cache
def log_z_of(n, p, rho):
    return log_z(n, p, rho)


def log_joint(rows, laws):
    """log Σ_f w_f Σ_m w_m E_o Π_x Z_x, of the terms named. Fewer terms make it smaller, and the event larger."""
    parts = []
    for family, m in itertools.product(range(len(FAMILY)), LEVELS):
        by_row = 0.0
        for row, law in zip(rows, laws, strict=True):
            found = [
                math.log(offset_probability(family, o, m)) + log_z_of(tuple(row), tuple(law), scale(family, m, o))
                for o in OFFSETS
                if offset_probability(family, o, m) > 0 and scale(family, m, o) >= 4.0**-2
            ]
            by_row += float(logsumexp(found))
        parts.append(math.log(FAMILY[family] * level_weight(m)) + by_row)
    return float(logsumexp(parts))


# ---------------------------------------------------------------- boxes


def ends(excess, middle):
    """Where a function of p that is at most zero at ``middle`` is above zero, to the left and to the right of it."""
    edge = 1e-14
    low = 0.0 if excess(edge) <= 0 else brentq(excess, edge, max(middle, 2 * edge), xtol=1e-16)
    high = 1.0 if excess(1 - edge) <= 0 else brentq(excess, min(middle, 1 - 2 * edge), 1 - edge, xtol=1e-15)
    return low, high


def box(count, exits, size, log_inverse):
    """The p with R_xy ≤ (K/δ)·S²/SINGLE."""
    level = log_inverse + math.log(size**2 / SINGLE)
    return ends(lambda p: log_r(count, exits, p) - level, count / exits)


def seen_box(count, exits, weight, log_inverse):
    """The p with p·R_xy ≤ (K/δ)/(0.09·π), for a label that was seen."""
    level = log_inverse - math.log(OPEN[1] * weight)
    return ends(lambda p: math.log(p) + log_r(count, exits, p) - level, count / exits)


def heaviest(exits, weight, log_inverse):
    """The largest p with p·R_xy ≤ (K/δ)/(0.09·π), for a label that was not seen."""
    level = log_inverse - math.log(OPEN[1] * weight)
    return ends(lambda p: math.log(p) + log_r(0, exits, p) - level, 1e-13)[1]


# ---------------------------------------------------------------- the events


def completions(row, holes):
    """The counts of a row after its holes went somewhere, in all ways."""
    for places in itertools.combinations_with_replacement(range(len(row)), holes):
        yield tuple(np.add(row, np.bincount(places, minlength=len(row))).tolist())


def allowed(rows, laws, log_inverse):
    """Whether M < K/δ for these visited rows of declared states and these laws; rows never left have R = 1."""
    size = len(rows[0])
    singles = [
        log_r(n, sum(row), p) for row, law in zip(rows, laws, strict=True) for n, p in zip(row, law, strict=True)
    ]
    if len(rows) < size:
        singles.append(math.log(size * (size - len(rows))))
    single = math.log(SINGLE / size**2) + float(logsumexp(singles))
    if single >= log_inverse:
        return False
    return float(np.logaddexp(math.log(JOINT) + log_joint(rows, laws), single)) < log_inverse


def allowed_open(paths, laws, log_inverse):
    """Whether M < K/δ for rows that went to these labels one after another; the rows' order counts as unknown."""
    weight = row_weight(len(paths))
    later = 1 - len(paths) * weight  # the weight of all rows that have no exit: their R and V are 1
    rows = [tuple(np.bincount(path, minlength=len(law)).tolist()) for path, law in zip(paths, laws, strict=True)]
    parts = [math.log((OPEN[1] + OPEN[3]) * later)] if later > 0 else []
    for row, law in zip(rows, laws, strict=True):
        parts += [
            math.log(OPEN[1] * weight * p) + log_r(n, sum(row), p) for n, p in zip(row, law, strict=True) if p > 0
        ]
    for z, chance in SURPRISE.items():
        each = [log_v(path, law, z) for path, law in zip(paths, laws, strict=True)]
        parts.append(math.log(OPEN[2] * chance) + sum(each))
        parts += [math.log(OPEN[3] * chance * weight) + value for value in each]
    if float(logsumexp(parts)) >= log_inverse:
        return False
    parts.append(math.log(OPEN[0]) + log_joint(rows, laws))
    return float(logsumexp(parts)) < log_inverse


def square(row, law, states=None):
    """N‖P̂ − P‖² of a row of known counts."""
    return sum(row) * float(((smoothed(row, states) - law) ** 2).sum())


def laws_on_a_grid(size, steps):
    """Laws with positive probabilities on a grid that is finer near the edges."""
    if size == 2:
        p = 0.5 - 0.5 * np.cos(np.linspace(0, math.pi, steps + 2)[1:-1])
        return np.stack((p, 1 - p), axis=1)
    axis = np.linspace(0, 1, steps + 1)[1:-1]
    grid = [[0.5 - 0.5 * math.cos(math.pi * p), q] for p in axis for q in axis]
    return np.array([[p, (1 - p) * q, (1 - p) * (1 - q)] for p, q in grid])


def search(groups, values, inside):
    """The largest Σ_x values[x] over the laws of the rows, one of each group, that are inside the event."""
    order = np.argsort(-sum(np.ix_(*values)), axis=None)
    shape = [len(group) for group in groups]
    for place in order:
        index = np.unravel_index(place, shape)
        if inside([group[i] for group, i in zip(groups, index, strict=True)]):
            return float(sum(value[i] for value, i in zip(values, index, strict=True)))
    return 0.0


def largest_loss(rows, log_inverse, holes=None, steps=60):
    """The largest T·L found among laws that the event of declared states allows, for some completion of the holes."""
    holes = [0] * len(rows) if holes is None else holes
    completed = [list(completions(row, h)) for row, h in zip(rows, holes, strict=True)]
    grid = laws_on_a_grid(len(rows[0]), steps)
    values = [np.array([square(row, law) for law in grid]) for row in rows]

    def inside(laws):
        return any(allowed(full, laws, log_inverse) for full in itertools.product(*completed))

    return search([grid] * len(rows), values, inside)


def largest_open_loss(paths, states, labels, log_inverse, steps=60):
    """The same for open states: ``paths`` has what each row went to, None for a hole.

    The first ``states`` of the ``labels`` that have probabilities are known, those that were seen among them.
    """
    grid = laws_on_a_grid(labels, steps)
    rows = [np.bincount([y for y in path if y is not None], minlength=labels) for path in paths]
    values = [np.array([square(row, law, states) for law in grid]) for row in rows]
    completed = []
    for path in paths:
        free = [i for i, label in enumerate(path) if label is None]
        ways = []
        for filled in itertools.product(range(labels), repeat=len(free)):
            full = list(path)
            for i, label in zip(free, filled, strict=True):
                full[i] = label
            ways.append(full)
        completed.append(ways)

    def inside(laws):
        return any(allowed_open(full, laws, log_inverse) for full in itertools.product(*completed))

    return search([grid] * len(paths), values, inside)
