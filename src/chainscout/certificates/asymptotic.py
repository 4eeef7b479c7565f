"""The ``asymptotic`` certificate (MATH §7): a plug-in quantile of the loss's limit law. It is not guaranteed."""

import math
from collections.abc import Sequence

from ..counts import Counts, smoothing
from ..predictions import quantile


def plug_in_moments(counts: Counts) -> tuple[float, float]:
    """μ̃ = Σ_x min(1 − 1/S, Ĝ_x + 1/N_x) and v̂ = 2Σ_x(ŝ₂ − 2ŝ₃ + ŝ₂²) over the states left at least once."""
    size = counts.size
    alpha = smoothing(None, size)
    mean = variance = 0.0
    for x, row in sorted(counts.rows().items()):
        exits = counts.exits_of(x)
        inverse = 1 / (exits + alpha * size)
        unseen = (size - len(row)) * (alpha * inverse) ** 2
        second = sum(((n + alpha) * inverse) ** 2 for n in row.values()) + unseen
        third = sum(((n + alpha) * inverse) ** 3 for n in row.values()) + unseen * alpha * inverse
        mean += min(1 - 1 / size, 1 - second + 1 / exits)
        variance += 2 * (second - 2 * third + second * second)
    return mean, max(variance, 0.0)


def bounds(counts: Sequence[Counts], delta: float) -> list[float]:
    """The (1 − δT_k/t) quantile of each chain's limit law over T_k, t = Σ_k T_k."""
    everything = sum(chain.total for chain in counts)
    found = []
    for chain in counts:
        if chain.total == 0:
            found.append(math.inf)
            continue
        level = 1 - delta * chain.total / everything
        found.append(quantile(*plug_in_moments(chain), level) / chain.total)
    return found
