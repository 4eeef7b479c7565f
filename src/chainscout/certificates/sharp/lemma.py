"""Steps 5 and 6 of ``mixture`` on the event of ``sharp`` (step F of docs/certificates.md)."""

import math

import numpy as np

from ..mixture import hole_excess, knapsack
from . import event
from .bound import lemma_cost
from .table import WEIGHT, Table


def by_lemma(table: Table) -> float:
    """T·b: the largest Σ_x (N⁺/N)·W⁺_x with Σ_x θ_x W⁺_x ≤ B, and what smoothing and holes can add.

    Offsets are log₄(N_max/N_x), rounded, as far as the family has them. A row with holes alone pays and earns nothing.
    """
    exits, holes = (np.repeat(values, table.copies.astype(np.int64)) for values in (table.exits, table.holes))
    whole = np.concatenate((exits + holes, table.mute))
    earning = len(exits)
    room = whole[:earning] ** 2 / exits
    spread = 1.0 + 1.0 / table.states if table.open else 1.0 - 1.0 / table.states
    dimension = 0.0 if table.open else table.states - 1.0
    natural = np.log(whole.max() / whole) / math.log(4.0)
    top = int(math.log(float(whole.max()) + 1.0) / math.log(4.0)) + 2
    best = 2.0 * float(room.sum())
    for family, (_, stride, _, _) in enumerate(event.FAMILIES):
        steps = np.rint(natural / stride if stride else 0.0 * natural).astype(np.int64)
        for m in range(event.LEAST_LEVEL, top + 1):
            offset = np.minimum(steps, max(m, 0)) if family == event.UNIFORM else steps
            for pair in (False, True):
                rho = event.scale(m, family, offset, pair)
                bound = event.joint_cost(table.log_inverse, family, m, pair) + event.ABSOLUTE
                bound += float(event.row_cost(family, offset, m, pair, dimension).sum())
                bound += float(lemma_cost(table.states, whole, rho, pair, table.open).sum())
                if bound < best:  # no θ exceeds one, so ΣW is at least B
                    theta = whole[:earning] / (whole[:earning] + 2.0 * rho[:earning]) * (whole[:earning] / room)
                    order = np.argsort(theta, kind="stable").tolist()
                    filled = knapsack(order, len(order), theta.tolist(), room.tolist(), bound * event.UP)
                    best = min(best, filled)
    root = math.sqrt(best) + math.sqrt(hole_excess(exits.tolist(), holes.tolist(), spread, WEIGHT))
    return root * root * (1.0 + event.ABSOLUTE)
