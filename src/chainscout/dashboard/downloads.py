"""Files to take away: the report, the table of chains, a chain's matrix."""

import csv
import io
from collections.abc import Iterator
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from ..report.study_report import MOST_LINES, StudyReport
from ..report.views import Line

if TYPE_CHECKING:
    from ..study import Study


def chains(report: StudyReport) -> Iterator[bytes]:
    """Every chain as comma-separated values, a page at a time."""
    names = [field.name for field in fields(Line)]
    yield _line(names)
    number = 1
    while True:
        page = report.page(page=number, size=MOST_LINES)
        for line in page.chains:
            values = asdict(line)
            yield _line([values[name] for name in names])
        if number >= page.pages:
            return
        number += 1


def matrix(study: "Study", report: StudyReport, number: int) -> Iterator[bytes]:
    """A chain's matrix with its intervals, one entry a line."""
    name = report.chain(number, size=1).line.name
    estimate = study.estimate(name)
    yield _line(["from", "to", "probability", "lower", "upper", "transitions"])
    for x, start in enumerate(estimate.states):
        for y, end in enumerate(estimate.states):
            numbers = (estimate.matrix, estimate.lower, estimate.upper, estimate.transitions)
            yield _line([start, end, *(part[x, y].item() for part in numbers)])


def _line(values: list[Any]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow([_plain(value) for value in values])
    return text.getvalue().encode("utf-8", "backslashreplace")


def _plain(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula gets an apostrophe before it."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return value
