"""Panels: what a study shows beside its chains. The terminal, the report and the live page show every panel alike.

A panel is a function that gives a table, or None where there is nothing to show. To add one, write the function and
append it to `PANELS`. It is called whenever somebody looks: it reads what the study stores, and computes little.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from . import diagnosis
from .cells import duration, finite, label
from .tables import Table

if TYPE_CHECKING:
    from .study_report import StudyReport


def leases(report: "StudyReport") -> Table | None:
    """Who holds what, if anybody does."""
    rows = tuple((h.label, h.path, h.worker, duration(h.seconds_left), h.promised) for h in report.leases())
    columns = ("chain", "path", "worker", "runs out in", "observations to come")
    return Table("leases", columns, rows) if rows else None


#: More questions are not listed one by one.
MOST_QUESTIONS = 50


def questions(report: "StudyReport") -> Table | None:
    """The registered questions with their answers as stored, and what each waits for."""
    lines = report.questions()
    if not lines:
        return None
    rows = tuple(
        (
            label(line.chain),
            line.question,
            finite(line.estimate),
            finite(line.lower),
            finite(line.upper),
            finite(line.width),
            line.delta,
            line.episodes,
            line.transitions,
            "yes" if line.met else "no",
        )
        for line in lines[:MOST_QUESTIONS]
    )
    sure = f"all answers hold at all times at once with probability ≥ {1 - sum(line.delta for line in lines):g}"
    notes = [sure]
    for line in lines[:MOST_QUESTIONS]:
        notes += [f"{label(line.chain)}, {line.question}: {note}" for note in line.notes]
    if len(lines) > MOST_QUESTIONS:
        notes.append(f"the first {MOST_QUESTIONS} of {len(lines):,} questions")
    columns = (
        "chain", "question", "estimate", "at least", "at most", "width", "δ", "episodes", "as of transition", "done",
    )  # fmt: skip
    return Table("questions", columns, rows, tuple(notes))


#: In the order in which they are shown.
PANELS: tuple[Callable[["StudyReport"], Table | None], ...] = (questions, leases, diagnosis.panel)
