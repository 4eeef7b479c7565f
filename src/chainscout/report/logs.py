"""Tables of the counts of a log."""

import heapq
import math
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..certificates import ASSUMPTION
from ..numerals import Bound
from ..numerals import bound as as_text
from .format import finite
from .tables import Table

if TYPE_CHECKING:
    from ..logs import TransitionCounts

#: The most chains, and the most states of one, for which the bounds with declared states are computed too.
MOST_DECLARED, MOST_STATES = 50, 100


def counted(
    counts: "TransitionCounts",
    delta: float = 0.05,
    budget: int | None = None,
    target_loss: float | None = None,
    most: int | None = None,
) -> list[Table]:
    """One row for each chain, and the totals.

    ``budget``: shows which chains should get these observations next. ``target_loss``: shows how many more observations
    it needs. ``most``: shows only this number of chains, the least known ones.
    """
    certificate = None if counts.correlated else counts.certificate(delta)
    further = None if target_loss is None else counts.further(target_loss, delta)
    following = None if budget is None else counts.next_samples(budget)
    columns: tuple[str, ...] = ("chain", "states", "observations", "paths", "transitions", f"loss ≤, δ = {delta:g}")
    columns += () if budget is None else (f"of the next {budget:,}",)
    columns += () if target_loss is None else (f"more for a loss ≤ {target_loss:g}",)
    totals: Counter[str] = Counter()

    def rows() -> Iterator[tuple[Any, ...]]:
        for name, chain in counts:
            totals.update(chains=1, observations=chain.observations, paths=chain.paths, transitions=chain.total)
            loss = None if certificate is None else finite(Bound(certificate.loss[name]))
            row: tuple[Any, ...] = (name, chain.size, chain.observations, chain.paths, chain.total, loss)
            row += () if following is None else (following[name],)
            yield row if further is None else (*row, finite(further[name]))

    def bound(row: tuple[Any, ...]) -> float:
        return math.inf if row[5] is None else float(row[5])

    shown = tuple(rows() if most is None else heapq.nlargest(most, rows(), key=bound))
    notes = [f"a certificate assumes that {ASSUMPTION}"]
    if certificate is None:
        notes = ["transitions of a sliding lag overlap: they are correlated, and no certificate holds for them"]
    elif counts.open_states:
        notes.append("the states are those that the log shows; the certificate holds if there are others")
        notes.append(_if_declared(counts, delta, target_loss))
    if certificate is not None and (certificate.entries or certificate.opened):
        notes.append(certificate.in_words())
    if counts.lag > 1:
        notes.append(f"the matrix of {counts.lag} steps is estimated")
    if len(shown) < totals["chains"]:
        notes.append(f"{totals['chains'] - len(shown):,} chains that are better known are not shown")
    worst = None if certificate is None else finite(Bound(certificate.max))
    totalled: tuple[tuple[str, Any], ...] = (*totals.items(), (f"certified: every loss ≤, δ = {delta:g}", worst))
    if certificate is not None:
        totalled += (("certificate", "mixture" if counts.open_states else certificate.method),)
    if further is not None:
        totalled += ((f"more observations for a loss ≤ {target_loss:g}", finite(sum(further.values()))),)
        notes.append("how many more is a prediction from the counts so far, no bound")
    return [Table("chains", columns, shown, tuple(notes)), Table("the whole", ("quantity", "value"), totalled)]


def _if_declared(counts: "TransitionCounts", delta: float, target_loss: float | None) -> str:
    """What the certificate is worth if the states that occur are declared to be all states."""
    say = "if these are all the states, say so with --states"
    if len(counts) > MOST_DECLARED or max(chain.size for _, chain in counts) > MOST_STATES:
        return f"{say}: then the bounds are smaller"
    declared = counts.declared()
    worst = finite(declared.certificate(delta).max)
    if worst is None:
        return f"{say}: then the bounds are smaller"
    then = f"{say}: then every loss is at most {as_text(worst)}"
    more = None if target_loss is None else finite(sum(declared.further(target_loss, delta).values()))
    return then if more is None else f"{then}, and {more:,} more observations are needed"
