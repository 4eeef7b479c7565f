"""A transition matrix as CSV: bare numbers, or a table with a header ``state,label,label…`` and labelled rows."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from ..chains import MarkovChain
from ..validation import shown
from .schema import Errors


@dataclass(frozen=True)
class Table:
    """A table as read: its rows, the line on which each ends, and its labels as text (None: bare numbers)."""

    rows: list[list[float]]
    lines: list[int]
    labels: list[str] | None

    @property
    def states(self) -> list[str] | list[int] | None:
        """The labels, as integers if all of them are written as integers."""
        if self.labels is None:
            return None
        numbers = [int(label) for label in self.labels if _is_integer(label)]
        return numbers if len(numbers) == len(self.labels) else self.labels


def read_table(text: str, errors: Errors) -> Table | None:
    """The table in a CSV file's text, as far as it can be read. Errors are added to ``errors``."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    records: list[tuple[int, list[str]]] = []
    try:
        records.extend((reader.line_num, record) for record in reader if record)
    except csv.Error as error:
        errors.add(f"line {reader.line_num}", f"this is not CSV: {error}")
        return None
    labels: list[str] | None = None
    if records and records[0][1][0].strip() == "state":
        line, header = records.pop(0)
        labels = header[1:]
        if [record[0] for _, record in records] != labels:
            found = shown([record[0] for _, record in records])
            errors.add(
                f"line {line}",
                f"the header's labels must be those of the rows, in the same order: {shown(labels)}, but rows {found}",
            )
    skipped = 0 if labels is None else 1
    rows = [_row(record, skipped, line, errors) for line, record in records]
    return Table(rows, [line for line, _ in records], labels)


def table_text(chain: MarkovChain, labels: Sequence[str | int] | None) -> str:
    """The CSV text of a chain's matrix, with labels unless None; every number reads back exactly."""
    output = io.StringIO(newline="")
    writer = csv.writer(output, lineterminator="\n")
    rows = [[repr(value) for value in row] for row in chain.matrix.tolist()]
    if labels is not None:
        writer.writerow(["state", *labels])
        rows = [[str(label), *row] for label, row in zip(labels, rows, strict=True)]
    writer.writerows(rows)
    return output.getvalue()


def _row(record: list[str], skipped: int, line: int, errors: Errors) -> list[float]:
    numbers = []
    for column, cell in enumerate(record[skipped:], skipped + 1):
        try:
            # float() also accepts 1_000, which is not a number in a table.
            numbers.append(float(cell.replace("_", "x")))
        except ValueError:
            errors.add(f"line {line}, column {column}", f"a probability must be a number, not {shown(cell)}")
    cells = len(record) - skipped
    # A valid law replaces a row that cannot be read: its error was added, and the other rows are still checked.
    return numbers if len(numbers) == cells else [1.0] + [0.0] * (cells - 1)


def _is_integer(label: str) -> bool:
    try:
        return str(int(label)) == label
    except ValueError:
        return False
