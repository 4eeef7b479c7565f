"""Intervals for single probabilities P(x,y) that hold at all times at once, and the certificate they give (MATH §7).

Each exit from x goes to y with probability P(x,y), like the toss of a coin. Let p = P(x,y), a = N[x,y] and n = N_x. The
mixture of likelihood ratios B(a+½, n−a+½)/B(½,½) / (p^a(1−p)^{n−a}) is a martingale that starts at one. By Ville's
inequality it stays below 1/δ' for ever with probability ≥ 1 − δ'. The interval is the set of p for which it is below
1/δ'.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..counts import Counts, smoothing

Array = npt.NDArray[np.float64]


def intervals(
    successes: npt.ArrayLike, trials: npt.ArrayLike, log_inverse: float | Array, holes: npt.ArrayLike = 0
) -> tuple[Array, Array]:
    """Lower and upper ends for each success probability; ``log_inverse`` is log(1/δ'), one for all or one for each.

    ``holes``: how many more trials have no known outcome. None of them is a success in the lower end, and all of them
    are in the upper end (MATH §15, T3).
    """
    unknown = np.asarray(holes, dtype=np.float64)
    if unknown.any():
        a, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64) + unknown
        return intervals(a, n, log_inverse)[0], intervals(a + unknown, n, log_inverse)[1]
    from scipy.special import betaln, xlog1py, xlogy  # here, because it takes long to load

    a, n = np.broadcast_arrays(np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64))
    least = betaln(a + 0.5, n - a + 0.5) - betaln(0.5, 0.5) - log_inverse
    frequency = np.divide(a, n, out=np.full(a.shape, 0.5), where=n > 0)
    ends = []
    for outer in (0.0, 1.0):
        inside, outside = frequency.copy(), np.full(a.shape, outer)
        for _ in range(60):  # bisection down to the last bit of a double
            middle = (inside + outside) / 2
            kept = xlogy(a, middle) + xlog1py(n - a, -middle) >= least
            inside, outside = np.where(kept, middle, inside), np.where(kept, outside, middle)
        ends.append(np.asarray(outside))
    # 0 or 1 itself is in the set if there was no success, or nothing but successes, or no trial.
    return np.where(a == 0, 0.0, ends[0]), np.where(a == n, 1.0, ends[1])


def row_bounds(counts: Counts, log_inverse: float) -> dict[int, float]:
    """For each state left at least once, the largest ‖P̂(x,·) − P(x,·)‖² that the intervals of its row allow."""
    alpha = smoothing(None, counts.size)
    rows = counts.rows()
    # All rows in one array: each row's positive counts, and one zero that stands for all y never seen from x.
    seen = np.array([count for row in rows.values() for count in (*row.values(), 0)], dtype=np.float64)
    times = np.array([number for row in rows.values() for number in (*[1] * len(row), counts.size - len(row))])
    lengths = [len(row) + 1 for row in rows.values()]
    exits = np.repeat([counts.exits_of(x) for x in rows], lengths)
    holes = np.repeat([counts.holes.get(x, 0) for x in rows], lengths)
    low, high = intervals(seen, exits, log_inverse, holes)
    estimate = (seen + alpha) / (exits + alpha * counts.size)
    widest = times * np.maximum(high - estimate, estimate - low) ** 2
    sums = np.add.reduceat(widest, np.cumsum([0, *lengths[:-1]]))
    return dict(zip(rows, np.minimum(2.0, sums).tolist(), strict=True))


def log_inverse(counts: Sequence[Counts], delta: float) -> float:
    """log(Σ_k S_k²/δ): for every entry of every chain at once."""
    return math.log(sum(chain.size**2 for chain in counts) / delta)


def bounds(counts: Sequence[Counts], delta: float) -> list[float]:
    """b_k = Σ_x π̂(x)·(the largest distance that the row's intervals allow)."""
    level = log_inverse(counts, delta)
    found = []
    for chain in counts:
        if chain.size == 1 or chain.total == 0:
            found.append(0.0 if chain.size == 1 and chain.total else math.inf)
            continue
        rows = row_bounds(chain, level)
        found.append(sum(chain.exits_of(x) * widest for x, widest in sorted(rows.items())) / chain.total)
    return found
