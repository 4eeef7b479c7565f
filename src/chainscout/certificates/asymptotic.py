"""The ``asymptotic`` certificate (MATH §7): a plug-in quantile of the loss's limit law. It is not guaranteed."""

import math
from collections.abc import Sequence

from ..counts import Counts, smoothing
from ..predictions import quantile_at


def plug_in_moments(counts: Counts) -> tuple[float, float]:
    """μ̃ = Σ_x min(1 − 1/S, Ĝ_x + 1/N_x) and v̂ = 2Σ_x(ŝ₂ − 2ŝ₃ + ŝ₂²) over the states left at least once."""
    size = counts.size
    alpha = smoothing(None, size)
    mean = variance = 0.0
    for x, row in sorted(counts.rows().items()):
        exits = counts.exits_of(x)
        inverse = 1 / (exits + alpha * size)
        seen = [(n + alpha) * inverse for n in row.values()]
        unseen, times = alpha * inverse, size - len(row)
        gini = times * unseen * (1 - unseen)
        # ŝ₂ − 2ŝ₃ + ŝ₂² as the sum of the squared entries of diag(p) − ppᵀ: p_y²(1−p_y)² on the diagonal, and p_y²p_z²
        # twice for every pair. This loses no digits in a row that is nearly deterministic.
        diagonal = times * (unseen * (1 - unseen)) ** 2
        pairs = times * (times - 1) / 2 * unseen**4
        before = times * unseen**2
        for p in seen:
            gini += p * (1 - p)
            diagonal += (p * (1 - p)) ** 2
            pairs += p**2 * before
            before += p**2
        mean += min(1 - 1 / size, gini + 1 / exits)
        variance += 2 * (diagonal + 2 * pairs)
    return mean, variance


def bounds(counts: Sequence[Counts], delta: float) -> list[float]:
    """The (1 − δT_k/t) quantile of each chain's limit law over T_k, t = Σ_k T_k."""
    from scipy.special import ndtri  # here, because it loads slowly

    everything = sum(chain.total for chain in counts)
    found = []
    for chain in counts:
        if chain.total == 0:
            found.append(math.inf)
            continue
        deviate = -float(ndtri(delta * chain.total / everything))
        found.append(quantile_at(*plug_in_moments(chain), deviate) / chain.total)
    return found
