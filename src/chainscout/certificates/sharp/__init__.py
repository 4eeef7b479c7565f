"""The ``sharp`` certificate: a bound on the loss that knows how nearly deterministic each row is (MATH §9, §15, §17).

docs/certificates.md has the proof. ``event`` has the event and what it says of single entries, ``table`` the counts,
``bound`` the bound for free numbers that somebody chose, ``lemma`` a second bound, and ``search`` the choice.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...counts import Counts
from .bound import loss_bound
from .event import ABSOLUTE
from .lemma import by_lemma
from .search import best_choices
from .table import WEIGHT, Row, Table, table_of

#: Chains are searched together until they have so many classes of equal counts.
TOGETHER = 2_000


class Bounds(NamedTuple):
    """The result for one chain, all on the same event."""

    #: b; the bound on Σ_x π̂(x)·TV(P̂(x,·), P(x,·)); N_x and the largest error of an entry, for each visited row.
    loss: float = math.inf
    total_variation: float = 1.0
    entries: tuple[tuple[int, float], ...] = ()


def bounds_of(table: Table, excess: float) -> Bounds:
    """The bounds of a chain. ``excess``: T·b."""
    total = float(table.copies @ table.exits)
    loss = min(2.0, excess / total)
    start = table.start[:-1]
    errors = np.maximum(table.high - table.estimate, table.estimate - table.low)
    # An unseen label has at most the mass κ, and the estimate e if smoothing gave it some.
    smoothed = table.open * (table.states > table.size) * (WEIGHT / table.states) / (table.exits + WEIGHT)
    beyond = table.mass + (table.states - table.size) * smoothed if table.open else 0.0
    rows = np.minimum(1.0, 0.5 * (np.add.reduceat(table.times * errors, start) + beyond))
    widest = float((table.copies * table.exits) @ rows) / total
    if not table.open:  # Σ_x π̂(x)·½‖·‖₁ ≤ ½√(S·L), by the inequality of Cauchy and Schwarz twice
        widest = min(widest, 0.5 * math.sqrt(table.states * loss))
    largest = np.maximum(np.maximum.reduceat(errors, start), np.maximum(table.heavy, smoothed))
    many = table.copies.astype(np.int64)
    exits = np.repeat(table.exits, many).astype(np.int64)
    entries = zip(exits.tolist(), np.repeat(largest, many).tolist(), strict=True)
    return Bounds(loss, widest * (1.0 + ABSOLUTE), tuple(entries))


def least_excess(tables: Sequence[Table]) -> list[float]:
    """T·b of each chain: its loss exceeds b with probability at most e^{−log_inverse}. The smallest of three bounds.

    Chains with declared states and chains with open ones are searched apart.
    """
    found, groups = [0.0] * len(tables), defaultdict(list)
    parts = np.cumsum([len(table.count) for table in tables]) // TOGETHER
    for k, table in enumerate(tables):
        groups[table.open, parts[k]].append(k)
    for group in groups.values():
        for k, choice in zip(group, best_choices([tables[k] for k in group]), strict=True):
            boxes = float(tables[k].copies @ tables[k].most) * (1.0 + ABSOLUTE)
            found[k] = min(loss_bound(tables[k], choice), by_lemma(tables[k]), boxes)
    return found


def largest_loss(rows: Sequence[Row], size: int, log_inverse: float, open_states: bool = False) -> float:
    """T·b of a chain with these rows of counts and ``size`` ≥ 2 states, or with any number of known ones if open."""
    return least_excess([table_of(rows, size, log_inverse, open_states=open_states)])[0]


def table_for(counts: Counts, log_inverse: float) -> Table:
    """The table of a chain's counts: rows with the same counts once, in an order that does not depend on the states."""
    alike = Counter(
        (tuple(sorted(row.values(), reverse=True)), counts.holes.get(x, 0)) for x, row in counts.rows().items()
    )
    kinds = sorted(alike, reverse=True)
    rows = [dict(enumerate(numbers)) for numbers, _ in kinds]
    _, mute = counts.holes_by_row()
    return table_of(
        rows, counts.size, log_inverse, [h for _, h in kinds], mute, counts.open_states, [alike[kind] for kind in kinds]
    )


def bounds(counts: Sequence[Counts], log_inverse: float) -> list[Bounds]:
    """The bounds of each chain; ``log_inverse`` is log(K/δ)."""
    sure = [chain.size == 1 and not chain.open_states for chain in counts]
    found = [Bounds(0.0, 0.0, ((chain.total, 0.0),)) if x else Bounds() for chain, x in zip(counts, sure, strict=True)]
    searched = [i for i, chain in enumerate(counts) if chain.total and not sure[i]]
    tables = [table_for(counts[i], log_inverse) for i in searched]
    for i, table, excess in zip(searched, tables, least_excess(tables), strict=True):
        found[i] = bounds_of(table, excess)
    return found
