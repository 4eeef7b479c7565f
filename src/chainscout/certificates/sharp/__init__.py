"""The ``sharp`` certificate: a bound on the loss that knows how nearly deterministic each row is (MATH §9, §15, §17).

docs/certificates.md has the proof. ``event`` has the event and what it says of single entries, ``table`` the counts,
``bound`` the bound for free numbers that somebody chose, ``lemma`` a second bound, and ``search`` the choice.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from ...counts import Counts
from .bound import loss_bound
from .event import ABSOLUTE
from .lemma import by_lemma
from .search import best_choices
from .table import WEIGHT, Row, Table, table_of

#: Chains are searched together until they have so many classes of equal counts.
TOGETHER = 2_000


class Bounds:
    """The result for one chain: b, and the largest error in each row, on the same event."""

    def __init__(self, size: int, total: int) -> None:
        """The bounds of a chain with one declared state, or without a transition."""
        only = size == 1
        #: b; the bound on Σ_x π̂(x)·TV(P̂(x,·), P(x,·)); N_x and the largest error of an entry, for each visited row.
        self.loss, self.total_variation = (0.0, 0.0) if only else (math.inf, 1.0)
        self.entries: tuple[tuple[int, float], ...] = ((total, 0.0),) if only else ()

    @classmethod
    def of(cls, table: Table, excess: float) -> "Bounds":
        """``excess``: T·b."""
        found = cls(0, 0)
        total = float(table.copies @ table.exits)
        found.loss = min(2.0, excess / total)
        start = table.start[:-1]
        errors = np.maximum(table.high - table.estimate, table.estimate - table.low)
        # An unseen label has at most the mass κ, and the estimate e if smoothing gave it some.
        smoothed = table.open * (table.states > table.size) * (WEIGHT / table.states) / (table.exits + WEIGHT)
        beyond = table.mass + (table.states - table.size) * smoothed if table.open else 0.0
        rows = np.minimum(1.0, 0.5 * (np.add.reduceat(table.times * errors, start) + beyond))
        widest = float((table.copies * table.exits) @ rows) / total
        if not table.open:  # Σ_x π̂(x)·½‖·‖₁ ≤ ½√(S·L), by the inequality of Cauchy and Schwarz twice
            widest = min(widest, 0.5 * math.sqrt(table.states * found.loss))
        found.total_variation = widest * (1 + 1e-9)
        largest = np.maximum.reduceat(errors, start)
        if table.open:
            largest = np.maximum(largest, np.maximum(table.heavy, smoothed))
        many = table.copies.astype(np.int64)
        exits = np.repeat(table.exits, many).astype(np.int64)
        found.entries = tuple(zip(exits.tolist(), np.repeat(largest, many).tolist(), strict=True))
        return found


def least_excess(tables: Sequence[Table]) -> Iterator[float]:
    """T·b of each chain: its loss exceeds b with probability at most e^{−log_inverse}. The smallest of three bounds.

    Chains with declared states and chains with open ones are searched apart.
    """
    choices = best_choices(tables)
    for table, choice in zip(tables, choices, strict=True):
        yield min(loss_bound(table, choice), by_lemma(table), float(table.copies @ table.most) * (1.0 + ABSOLUTE))


def largest_loss(rows: Sequence[Row], size: int, log_inverse: float, open_states: bool = False) -> float:
    """T·b of a chain with these rows of counts and ``size`` ≥ 2 states, or with any number of known ones if open."""
    return next(least_excess([table_of(rows, size, log_inverse, open_states=open_states)]))


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
    found: dict[int, Bounds] = {}
    waiting: dict[bool, list[tuple[int, Table]]] = {False: [], True: []}

    def finish(group: list[tuple[int, Table]]) -> None:
        for (i, table), excess in zip(group, least_excess([table for _, table in group]), strict=True):
            found[i] = Bounds.of(table, excess)
        group.clear()

    for i, chain in enumerate(counts):
        if chain.total == 0 or (chain.size == 1 and not chain.open_states):
            found[i] = Bounds(chain.size if not chain.open_states else 0, chain.total)
            continue
        group = waiting[chain.open_states]
        group.append((i, table_for(chain, log_inverse)))
        if sum(len(table.count) for _, table in group) > TOGETHER:
            finish(group)
    for group in waiting.values():
        if group:
            finish(group)
    return [found[i] for i in range(len(counts))]
