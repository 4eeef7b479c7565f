"""Small tables for the repr of an object: as text, and as HTML for notebooks. Every text is escaped."""

from collections.abc import Hashable, Iterable, Sequence
from html import escape
from typing import Any

from .numerals import cell
from .validation import printable

#: The largest number of rows and columns that are shown. A note gives the number of all.
MOST = 10
_CELL = "padding:0.15em 0.7em;text-align:"


def text_table(columns: Sequence[Hashable], rows: Iterable[Sequence[Any]]) -> list[str]:
    """The lines of a table. Numbers are aligned on the right."""
    kept = [list(row) for row in rows]
    body = [[cell(value) for value in row] for row in kept]
    right = [all(_is_number(row[place]) for row in kept) for place in range(len(columns))]
    cells = [[cell(name) for name in columns], *body]
    widths = [max(len(row[place]) for row in cells) for place in range(len(columns))]
    return [
        "  ".join(
            text.rjust(wide) if flush else text.ljust(wide)
            for text, wide, flush in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in cells
    ]


def html_table(
    title: str, columns: Sequence[Hashable], rows: Iterable[Sequence[Any]], notes: Iterable[str] = ()
) -> str:
    """A table for a notebook."""
    kept = [list(row) for row in rows]
    sides = ["right" if all(_is_number(row[place]) for row in kept) else "left" for place in range(len(columns))]
    head = "".join(_html_cell("th", name, side) for name, side in zip(columns, sides, strict=True))
    body = "".join(
        f"<tr>{''.join(_html_cell('td', value, side) for value, side in zip(row, sides, strict=True))}</tr>"
        for row in kept
    )
    below = "".join(f"<div>{escape(printable(note))}</div>" for note in notes)
    return (
        f"<div><strong>{escape(printable(title))}</strong>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}</div>"
    )


def _html_cell(kind: str, value: Any, side: str) -> str:
    return f'<{kind} style="{_CELL}{side}">{escape(cell(value))}</{kind}>'


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
