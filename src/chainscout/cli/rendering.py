"""What a command prints: tables and sentences in a terminal, or JSON."""

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from ..errors import FileError
from .command import is_json

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from ..report import Table


#: The width of a table in a pipe, which has no width of its own.
PIPE = 200
#: Characters between two columns, and at the edges of a line.
BETWEEN = 3
EDGES = 1
#: A cell that holds only numbers and the signs between them, as '28 … 60', stays on one line.
NUMBERS = re.compile(r"[\d.,e%+\-−±… —]+")


def echo(*lines: str, err: bool = False, exact: bool = False) -> None:
    """Prints lines for people. Line breaks in them, and characters that would control the terminal, are spelt out.

    ``exact``: a script may read the lines, so these characters are spelt out in a terminal only.
    """
    from ..validation import printable

    stream = sys.stderr if err else sys.stdout
    click.echo("\n".join(lines if exact and not stream.isatty() else map(printable, lines)), err=err)


def echo_json(content: Any, indent: int | None = None) -> None:
    """Prints JSON, with escapes for all characters that would control a terminal.

    JSON has no infinite numbers and no nan: they become null.
    """
    content = json.loads(json.dumps(content), parse_constant=lambda _: None)
    text = json.dumps(content, ensure_ascii=False, indent=indent)
    click.echo("".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text))


def say(content: Any, *lines: str) -> None:
    """Prints one answer: ``content`` as JSON on one line, or ``lines``."""
    if is_json():
        echo_json(content)
    else:
        echo(*lines, exact=True)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns a failure to write the file or directory into a `FileError`."""
    try:
        yield
    except OSError as error:
        raise FileError(f"{path} could not be written: {error.strerror or error}") from None


def show(tables: "list[Table]", content: Any = None) -> None:
    """Prints tables. ``content``: what is printed as JSON instead of the tables."""
    if is_json():
        content = content or [{"title": t.title, "rows": t.records(), "notes": list(t.notes)} for t in tables]
        echo_json(content, indent=2)
        return
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    from ..validation import printable

    console = Console(width=None if sys.stdout.isatty() else PIPE, highlight=False)
    for table in tables:
        if not table.columns:  # one policy alone has no differences
            continue
        console.print(Text(printable(table.title), style="bold"))
        for part in _parts(table, console.width):
            console.print(part, crop=False)  # the terminal wraps a number that has no room at all
        for note in table.notes:
            console.print(Padding(Text(printable(note), style="dim"), (0, 0, 0, 2), expand=False))
        if table.notes:
            console.print()


class _Column:
    """A column as text, and its least and largest width. Between the two its cells wrap at blanks."""

    def __init__(self, table: "Table", place: int, width: int) -> None:
        from rich.cells import cell_len

        from ..numerals import cell
        from ..validation import printable

        self.name = printable(table.columns[place])
        self.cells = [printable(cell(row[place])) for row in table.rows]
        is_numeric = table.is_numeric(place)
        self.justify: Literal["left", "right"] = "right" if is_numeric else "left"
        stays_whole = is_numeric or all(map(NUMBERS.fullmatch, self.cells))
        parts = self.cells if stays_whole else [word for text in self.cells for word in text.split()]
        self.least = max(map(cell_len, (*self.name.split(), *parts)), default=1)
        if not stays_whole:  # a word that is longer than half a line is broken
            self.least = min(self.least, max(1, (width - EDGES - 2 * BETWEEN) // 2))
        self.most = max(map(cell_len, (self.name, *self.cells)))


def _parts(table: "Table", width: int) -> "Iterator[RichTable]":
    """The table, or its parts below each other if it is too wide. Each part repeats the key columns.

    rich has no such parts: it cuts the cells of a table that is too wide.
    """
    columns = [_Column(table, place, width) for place in range(len(table.columns))]
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
