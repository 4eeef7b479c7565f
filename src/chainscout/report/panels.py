"""Panels: what a study shows beside its chains. The terminal, the report and the live page show every panel alike.

A panel is a function that gives a table, or None if there is nothing to show. To add a panel, write the function and
append it to `PANELS`. It runs at every look, so it computes little.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..numerals import Bound, Lower, Upper, sure
from .format import Struck, duration, finite, label
from .tables import Columns, Drawing, Series, Table

if TYPE_CHECKING:
    from ..diagnostics import Diagnosis
    from ..study import QuestionLine
    from .study_data import StudyReport

#: The columns of a lease, of a question, and of a check.
LEASE: Columns = {
    "chain": "label", "path": "path", "worker": "worker", "runs out in": lambda lease: duration(lease.seconds_left),
    "observations to come": "promised",
}  # fmt: skip
QUESTION: Columns = {
    "chain": lambda line: label(line.chain), "question": "question", "estimate": "estimate",
    "at least": lambda line: _end(line, Lower(line.lower)), "at most": lambda line: _end(line, Upper(line.upper)),
    "width": lambda line: _end(line, Upper(line.width)), "δ": "delta", "episodes": "episodes",
    "as of transition": "transitions", "done": lambda line: "yes" if line.met else "no",
}  # fmt: skip
CHECK: Columns = {
    "chain": lambda check: check.chain or "all together", "check": "kind.value", "by": "by", "transitions": "cards",
    "e-value": "e_value", "largest": "largest",
    "level": lambda check: Bound(check.level),
    "most evidence in": lambda check: ", ".join(str(place.state) for place in check.where[:3]) or None,
}  # fmt: skip


def _end(line: "QuestionLine", value: float) -> Any:
    """A number of an answer, struck out if no bound of the answer holds."""
    return value if line.code is None else Struck(finite(value), line.code)


def leases(report: "StudyReport") -> Table | None:
    """The leases that workers hold, if there are any."""
    held = report.leases()
    return Table.of("leases", held, LEASE) if held else None


#: The most questions in the table.
MOST_QUESTIONS = 50


def questions(report: "StudyReport") -> Table | None:
    """The registered questions with their stored answers, and what each of them waits for.

    Without a width, a limit or a search for the worst chain, no answer is ever done: the column is left out.
    """
    lines, state = report.look.questions, report.look.progress
    if not lines:
        return None
    aimed = (state.target_width, state.limit, state.worst) != (None, None, None)
    together = f"all answers hold at all times at once with probability ≥ {sure(sum(line.delta for line in lines))}"
    notes = [next((line.notes[0] for line in lines if not line.holds), together)]
    shown = lines[:MOST_QUESTIONS]
    for line in shown:
        notes += [f"{label(line.chain)}, {line.question}: {note}" for note in line.notes]
    if len(lines) > MOST_QUESTIONS:
        notes.append(f"the first {MOST_QUESTIONS} of {len(lines):,} questions")
    columns = {name: column for name, column in QUESTION.items() if aimed or name != "done"}
    return Table.of("questions", shown, columns, notes)


#: The most checks in a table: those with the smallest levels.
MOST_CHECKS = 50
#: The least and the largest e-value that is drawn.
DRAWN = (1e-6, 1e30)
#: A note about levels and e-values.
OF_CHANGE = "a level is 1 over the largest e-value; that of change can be smaller, because it has a second test"


def check_tables(found: "Diagnosis") -> list[Table]:
    """One row for each check, and what they say together."""
    rows = sorted(found, key=lambda check: check.level)[:MOST_CHECKS] if len(found) > MOST_CHECKS else list(found)
    notes = _notes(found)
    if len(found) > MOST_CHECKS:
        notes.append(f"the {MOST_CHECKS} checks with the smallest levels of {len(found):,}")
    return [Table.of("checks", rows, CHECK, notes)]


def _notes(found: "Diagnosis") -> list[str]:
    """What the checks say, and how often a rejection is wrong."""
    share = f"each kind of check rejects at a level of at most {found.delta:g}/{found.kinds}"
    return [*found.lines(), f"{share}; then any of them is ever wrong with probability at most {found.delta:g}"]


def in_one_line(found: "Diagnosis | None") -> str:
    """Whether the data speak against what the bounds assume. Of so few or so many data a study keeps no checks."""
    none_kept = "none kept of so few observations or so many chains: 'chainscout diagnose' reads the log"
    return none_kept if found is None else found.in_one_line()


def checks(report: "StudyReport") -> Table | None:
    """The checks of all chains together, and the evidence over time."""
    found = report.look.checks
    if found is None or not any(check.cards for check in found):
        return None
    columns = {name: column for name, column in CHECK.items() if name not in ("chain", "most evidence in")}
    level = found.kinds / found.delta
    drawing = Drawing(
        f"evidence against a Markov chain that does not change (e-values, up to {DRAWN[1]:g})",
        "draws of the whole study",
        tuple(
            Series(f"{check.kind.value} ({check.by})", *zip(*((n, _within(e)) for n, e in check.history), strict=True))
            for check in found
            if check.history
        ),
        notes=(f"a check speaks against it from {level:g} on",),
        level=level,
        level_name="speaks against it",
        logarithmic=True,
    )
    notes = (*_notes(found), OF_CHANGE)
    return Table.of("checks of what the bounds assume", found, columns, notes, drawing=drawing)


def _within(log_value: float) -> float:
    """An e-value as it is drawn."""
    return math.exp(min(math.log(DRAWN[1]), max(math.log(DRAWN[0]), log_value)))


#: In the order in which they are shown.
PANELS: tuple[Callable[["StudyReport"], Table | None], ...] = (questions, leases, checks)
