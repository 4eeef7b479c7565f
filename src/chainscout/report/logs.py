"""Tables of the counts of a log."""

import heapq
import math
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..certificates import ASSUMPTION
from ..numerals import Bound
from ..numerals import bound as as_text
from ..study.planning import plan
from .format import Struck, finite
from .tables import Table

if TYPE_CHECKING:
    from ..diagnostics import Diagnosis
    from ..logs import TransitionCounts

#: The most chains, and the most states of one, for which the bounds with declared states are computed too.
MOST_DECLARED, MOST_STATES = 50, 100


def counted(
    counts: "TransitionCounts",
    delta: float = 0.05,
    budget: int | None = None,
    target_loss: float | None = None,
    most: int | None = None,
    diagnosis: "Diagnosis | None" = None,
) -> list[Table]:
    """One row for each chain, and the totals.

    ``budget``: shows which chains should get these observations next. ``target_loss``: shows how many more observations
    it needs. ``most``: shows only this number of chains, the least known ones. ``diagnosis``: the checks of the same
    log; the bounds of chains that they speak against are struck out.
    """
    certificate = None if counts.correlated else counts.certificate(delta)
    further = None if target_loss is None else plan(counts, target_loss, delta=delta).more
    following = None if budget is None else counts.next_samples(budget)
    columns: tuple[str, ...] = ("chain", "states", "observations", "paths", "transitions", f"loss ≤, δ = {delta:g}")
    columns += () if budget is None else (f"of the next {budget:,}",)
    columns += () if target_loss is None else (f"more for a loss ≤ {target_loss:g}",)
    totals: Counter[str] = Counter()
    against = () if diagnosis is None else diagnosis.against

    def rows() -> Iterator[tuple[Any, ...]]:
        for name, chain in counts:
            totals.update(chains=1, observations=chain.observations, paths=chain.paths, transitions=chain.total)
            loss = None if certificate is None else finite(Bound(certificate.loss[name]))
            doubt = None if diagnosis is None or certificate is None else diagnosis.doubt(name)
            loss = loss if doubt is None else Struck(loss, doubt.code, f"not a Markov chain — {doubt.code}")
            row: tuple[Any, ...] = (name, chain.size, chain.observations, chain.paths, chain.total, loss)
            row += () if following is None else (following[name],)
            yield row if further is None else (*row, finite(further[name]) if doubt is None else None)

    def bound(row: tuple[Any, ...]) -> float:
        return math.inf if row[5] is None or isinstance(row[5], Struck) else float(row[5])

    shown = tuple(rows() if most is None else heapq.nlargest(most, rows(), key=bound))
    notes = [f"a certificate assumes that {ASSUMPTION}"]
    if certificate is None:
        notes = ["transitions of a sliding lag overlap: they are correlated, and no certificate holds for them"]
    elif counts.open_states:
        notes.append("the states are those that the log shows; the certificate holds if there are others")
        notes += [] if against else [_if_declared(counts, delta, target_loss)]
    if certificate is not None and not against and certificate.entries:
        notes.append(certificate.in_words())
    if counts.lag > 1:
        notes.append(f"the matrix of {counts.lag} steps is estimated")
    if len(shown) < totals["chains"]:
        notes.append(f"{totals['chains'] - len(shown):,} chains that are better known are not shown")
    worst = None if certificate is None else finite(Bound(certificate.max))
    if against and certificate is not None:
        worst = Struck(worst, against[0].code, f"not Markov chains — {against[0].code}")
    totalled: tuple[tuple[str, Any], ...] = (*totals.items(), (f"certified: every loss ≤, δ = {delta:g}", worst))
    if certificate is not None:
        totalled += (("certificate", "mixture" if counts.open_states else certificate.method),)
    if further is not None:
        totalled += (
            (f"more observations for a loss ≤ {target_loss:g}", None if against else finite(sum(further.values()))),
        )
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
    more = None if target_loss is None else finite(plan(declared, target_loss, delta=delta).total)
    return then if more is None else f"{then}, and {more:,} more observations are needed"
