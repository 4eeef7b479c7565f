"""The e-process against a matrix that is known exactly. (MATH §13)

It is the probability of each row's outcomes under laws drawn around the known one, divided by their probability under
the known one. This is plain scalar Python over arrays that the caller gives.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ._bets import PRIOR, SHARES

#: m: how closely the laws of the alternative concentrate around the known one.
STRENGTHS = (1.0, 4.0, 16.0, 64.0, 256.0)

Floats = npt.NDArray[np.float64]


class Known(NamedTuple):
    """The state of the check for one chain."""

    #: Of each row: the exits, log of the ratio for each strength, and log of their mean.
    exits: Floats
    log_ratio: Floats
    log_mean: Floats
    #: Of each slot: the count.
    counts: Floats
    #: For each share of rows that differ, log Π_x (1 − π + π·mean).
    log_product: Floats


def known_for(rows: int, cells: int) -> Known:
    """The state before the first card."""
    return Known(
        np.zeros(rows), np.zeros(len(STRENGTHS) * rows), np.zeros(rows), np.zeros(cells), np.zeros(len(SHARES))
    )


def against(row: Any, cell: Any, law: Any, number: int, known: Any, trace: Any) -> None:
    """Plays cards in order; ``law`` is the known probability of each card's outcome. log E goes to ``trace``."""
    impossible = False
    for j in range(number):
        x = row[j]
        if law[j] <= 0.0:
            impossible = True
            known.log_mean[x] = math.inf
        if impossible:
            trace[j] = math.inf
            continue
        at = 5 * x
        top = -math.inf
        for m in range(5):
            ratio = (known.counts[cell[j]] / law[j] + STRENGTHS[m]) / (known.exits[x] + STRENGTHS[m])
            known.log_ratio[at + m] += math.log(ratio)
            top = max(top, known.log_ratio[at + m])
        mean = 0.0
        for m in range(5):
            mean += math.exp(known.log_ratio[at + m] - top) / 5.0
        before = known.log_mean[x]
        after = top + math.log(mean)
        known.log_mean[x] = after
        known.counts[cell[j]] += 1.0
        known.exits[x] += 1.0
        largest = -math.inf
        for i in range(3):
            known.log_product[i] += mixed(SHARES[i], after) - mixed(SHARES[i], before)
            largest = max(largest, known.log_product[i])
        total = 0.0
        for i in range(3):
            total += PRIOR[i] * math.exp(known.log_product[i] - largest)
        trace[j] = largest + math.log(total)


def mixed(share: float, log_value: float) -> float:
    """log (1 − π + π·e^log_value)."""
    top = max(0.0, log_value)
    return top + math.log((1.0 - share) * math.exp(-top) + share * math.exp(log_value - top))
