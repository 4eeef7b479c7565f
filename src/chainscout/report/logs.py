"""Tables of what was counted in a log."""

import heapq
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..certificates import ASSUMPTION
from .tables import Table

if TYPE_CHECKING:
    from ..logs import TransitionCounts


def counted(
    counts: "TransitionCounts", delta: float = 0.05, budget: int | None = None, most: int | None = None
) -> list[Table]:
    """One row a chain; with ``budget``, what to sample next. ``most``: only so many chains, the least known ones."""
    certificate = None if counts.correlated else counts.certificate(delta)
    following = None if budget is None else counts.next_samples(budget)
    columns: tuple[str, ...] = ("chain", "states", "observations", "paths", "transitions", f"loss ≤, δ = {delta:g}")
    columns += () if budget is None else (f"of the next {budget:,}",)
    totals = dict.fromkeys(("chains", "observations", "paths", "transitions"), 0)

    def rows() -> Iterator[tuple[Any, ...]]:
        for name, chain in counts:
            sums = (1, chain.observations, chain.paths, chain.total)
            for quantity, number in zip(totals, sums, strict=True):
                totals[quantity] += number
            row = (name, chain.size, *sums[1:], None if certificate is None else finite(certificate.loss[name]))
            yield row if following is None else (*row, following[name])

    def unknown(row: tuple[Any, ...]) -> float:
        return math.inf if row[5] is None else float(row[5])

    shown = tuple(rows() if most is None else heapq.nlargest(most, rows(), key=unknown))
    notes = [f"a certificate assumes that {ASSUMPTION}"]
    if certificate is None:
        notes = ["transitions of a sliding lag overlap: they are correlated, and no certificate holds for them"]
    elif counts.open_states:
        notes.append("the states are those that the log shows; the certificate holds if there are others")
    if counts.lag > 1:
        notes.append(f"the matrix of {counts.lag} steps is estimated")
    if len(shown) < totals["chains"]:
        notes.append(f"{totals['chains'] - len(shown):,} chains that are better known are not shown")
    worst = None if certificate is None else finite(certificate.max)
    whole = (*totals.items(), (f"certified: every loss ≤, δ = {delta:g}", worst))
    return [Table("chains", columns, shown, tuple(notes)), Table("the whole", ("quantity", "value"), whole)]


def finite(bound: float) -> float | None:
    """A chain without a transition has no bound."""
    return bound if math.isfinite(bound) else None
