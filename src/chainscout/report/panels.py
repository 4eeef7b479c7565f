"""Panels: what a study shows beside its chains. The terminal, the report and the live page show every panel alike.

A panel is a function that gives a table, or None where there is nothing to show. To add one, write the function and
append it to `PANELS`. It is called whenever somebody looks: it reads what the study stores, and computes little.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from . import diagnosis
from .cells import duration
from .tables import Table

if TYPE_CHECKING:
    from .study_report import StudyReport


def leases(report: "StudyReport") -> Table | None:
    """Who holds what, if anybody does."""
    rows = tuple((h.label, h.path, h.worker, duration(h.seconds_left), h.promised) for h in report.leases())
    columns = ("chain", "path", "worker", "runs out in", "observations to come")
    return Table("leases", columns, rows) if rows else None


#: In the order in which they are shown.
PANELS: tuple[Callable[["StudyReport"], Table | None], ...] = (leases, diagnosis.panel)
