"""Tables of what the checks of the Markov assumption say."""

import math
from typing import TYPE_CHECKING

from .cells import finite
from .tables import Drawing, Table

if TYPE_CHECKING:
    from ..diagnostics import Check, Diagnosis
    from .study_report import StudyReport

#: More checks are shown as those with the smallest levels.
MOST = 50
#: The columns of a check.
COLUMNS = ("chain", "check", "by", "transitions", "e-value", "largest", "level", "most evidence in")
#: Smaller and larger e-values are drawn as these.
DRAWN = (1e-6, 1e30)
#: What is said beside levels and e-values.
OF_CHANGE = "a level is 1 over the largest e-value; that of change can be smaller, because it has a second test"
#: What is said of a study of which nothing is kept.
NOT_KEPT = "none kept of so few observations or so many chains: 'chainscout diagnose' reads the log"


def tables(found: "Diagnosis") -> list[Table]:
    """One row a check, and what it all says."""
    rows = sorted(found, key=lambda check: check.level)[:MOST] if len(found) > MOST else list(found)
    notes = _notes(found)
    if len(found) > MOST:
        notes.append(f"the {MOST} checks with the smallest levels of {len(found):,}")
    return [Table("checks", COLUMNS, tuple(_row(check) for check in rows), tuple(notes))]


def _notes(found: "Diagnosis") -> list[str]:
    """What the checks say, and what a rejection is worth."""
    share = f"each kind of check rejects at a level of at most {found.delta:g}/{found.kinds}"
    return [*found.lines(), f"{share}; then any of them is ever wrong with probability at most {found.delta:g}"]


def in_one_line(found: "Diagnosis | None") -> str:
    """Whether the data speak against what the bounds assume."""
    if found is None:
        return NOT_KEPT
    judged = max((check.cards for check in found), default=0)
    many = f"{judged:,} of {judged + found.waiting:,} transitions"
    if not found.against:
        return f"nothing speaks against a Markov chain that does not change ({many})"
    kinds = ", ".join(f"{check.kind.value} ({check.by}), level {check.level:.2g}" for check in found.against)
    return f"the data speak against a Markov chain that does not change: {kinds} ({many})"


def panel(report: "StudyReport") -> Table | None:
    """The checks of all chains together, and the evidence over time."""
    found = report.checks()
    if found is None or not any(check.cards for check in found):
        return None
    shown = [column for column in COLUMNS if column not in ("chain", "most evidence in")]
    rows = tuple(_row(check)[1:-1] for check in found)
    drawn = [check for check in found if check.history]
    drawing = Drawing(
        f"evidence against a Markov chain that does not change (e-values, up to {DRAWN[1]:g})",
        "draws of the whole study",
        tuple(f"{check.kind.value} ({check.by})" for check in drawn),
        tuple(tuple(float(number) for number, _ in check.history) for check in drawn),
        tuple(tuple(_within(value) for _, value in check.history) for check in drawn),
        found.kinds / found.delta,
        "speaks against it",
    )
    return Table("checks of what the bounds assume", tuple(shown), rows, (*_notes(found), OF_CHANGE), drawing)


def _within(log_value: float) -> float:
    """An e-value as it is drawn."""
    return math.exp(min(math.log(DRAWN[1]), max(math.log(DRAWN[0]), log_value)))


def _row(check: "Check") -> tuple[object, ...]:
    chain = "all together" if check.chain is None else check.chain
    places = ", ".join(str(place.state) for place in check.where[:3])
    values = (finite(check.e_value), finite(check.largest), check.level)
    return (chain, check.kind.value, check.by, check.cards, *values, places or None)
