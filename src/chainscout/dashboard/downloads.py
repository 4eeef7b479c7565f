"""Files to take away: the report, the table of chains, a chain's matrix."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from ..report.study_report import MOST_LINES, StudyReport
from ..report.views import Line
from ..study.export import plain

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
    """A chain's matrix with its intervals, one entry a line and one row of the matrix at a time."""
    name = report.chain(number, size=1).line.name
    estimate = study.estimate(name)
    yield _line(["from", "to", "probability", "lower", "upper", "transitions"])
    for x, start in enumerate(estimate.states):
        part = estimate.window(range(x, x + 1), range(len(estimate.states)))
        columns = (part.matrix, part.lower, part.upper, part.transitions)
        values = zip(estimate.states, *(column[0].tolist() for column in columns), strict=True)
        yield _lines((start, *found) for found in values)


def _line(values: list[Any]) -> bytes:
    return _lines([values])


def _lines(lines: Iterable[Sequence[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(map(plain, values) for values in lines)
    return text.getvalue().encode("utf-8", "backslashreplace")
