"""Tables in a terminal or as JSON."""

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import click

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from ..report import Table

as_json = click.option("--json", "json_output", is_flag=True, help="Print JSON instead of tables.")

#: A pipe has no width: tables may be wide there, and nothing is cut.
PIPE = 200
#: Characters that each column takes beside its own width, and the line beside those.
BETWEEN = 3
EDGES = 1
#: A cell that is numbers and signs between them, as '28 … 60', is read as a whole.
NUMBERS = re.compile(r"[\d.,e%+\-−±… —]+")


def echo(text: str, *, err: bool = False, exact: bool = False) -> None:
    """Prints a text for people. A name in it cannot steer the terminal.

    ``exact``: a script may read the text; only a terminal gets it with such characters spelt out.
    """
    from ..validation import printable

    stream = sys.stderr if err else sys.stdout
    click.echo(text if exact and not stream.isatty() else printable(text), err=err)


def echo_json(content: Any, indent: int | None = None) -> None:
    """Prints JSON: exact, and with no character in it that steers a terminal."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, indent=indent)
    click.echo("".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text))


def show(tables: "list[Table]", json_output: bool) -> None:
    """Prints tables."""
    if json_output:
        echo_json([{"title": t.title, "rows": t.records(), "notes": list(t.notes)} for t in tables], indent=2)
        return
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    from ..validation import printable

    console = Console(width=None if sys.stdout.isatty() else PIPE, highlight=False)
    for table in tables:
        if not table.columns:  # of one policy there are no differences
            continue
        console.print(Text(printable(table.title), style="bold"))
        for part in _parts(table, console.width):
            console.print(part, crop=False)  # where a number has no room at all, the terminal wraps it
        for note in table.notes:
            console.print(Padding(Text(printable(note), style="dim"), (0, 0, 0, 2), expand=False))
        if table.notes:
            console.print()


@dataclass
class _Column:
    """A column as it is shown, and the widths between which its cells wrap at blanks."""

    name: str
    cells: list[str]
    justify: Literal["left", "right"]
    least: int
    most: int


def _columns(table: "Table", width: int) -> list[_Column]:
    from rich.cells import cell_len

    from ..report.cells import cell
    from ..validation import printable

    found = []
    for place, name in enumerate(table.columns):
        cells = [printable(cell(row[place])) for row in table.rows]
        is_numeric = table.is_numeric(place)
        stays_whole = is_numeric or all(map(NUMBERS.fullmatch, cells))
        most = max(map(cell_len, (name, *cells)))
        whole = [*name.split(), *(cells if stays_whole else (word for text in cells for word in text.split()))]
        least = max(map(cell_len, whole), default=1)
        if not stays_whole:  # a word can be longer than half a line has room for; only such a word is broken
            least = min(least, max(1, (width - EDGES - 2 * BETWEEN) // 2))
        found.append(_Column(name, cells, "right" if is_numeric else "left", least, most))
    return found


def _parts(table: "Table", width: int) -> "Iterator[RichTable]":
    """The table; one that has no room side by side in parts below each other, each with the key columns again."""
    columns = _columns(table, width)
    keys, others = columns[: table.keys], columns[table.keys :]
    room = width - EDGES - sum(key.least + BETWEEN for key in keys)
    part: list[_Column] = []
    for column in others:
        if part and sum(other.least + BETWEEN for other in (*part, column)) > room:
            yield _part([*keys, *part], width)
            part = []
        part.append(column)
    yield _part([*keys, *part], width)


def _part(columns: list[_Column], width: int) -> "RichTable":
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    widths = [column.most for column in columns]
    while EDGES + sum(widths) + BETWEEN * len(widths) > width:
        wider = [place for place, column in enumerate(columns) if widths[place] > column.least]
        if not wider:
            break
        widths[max(wider, key=widths.__getitem__)] -= 1
    shown = RichTable(box=box.SIMPLE_HEAD, width=EDGES + sum(widths) + BETWEEN * len(widths))
    for column, wide in zip(columns, widths, strict=True):
        shown.add_column(Text(column.name), justify=column.justify, width=wide, overflow="fold")
    for row in zip(*(column.cells for column in columns), strict=True):
        shown.add_row(*map(Text, row))
    return shown
