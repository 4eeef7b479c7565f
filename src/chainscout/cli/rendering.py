"""Tables in a terminal or as JSON."""

import json
import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ..report import Table

as_json = click.option("--json", "json_output", is_flag=True, help="Print JSON instead of tables.")


def show(tables: "list[Table]", json_output: bool) -> None:
    if json_output:
        content = [{"title": t.title, "rows": t.records(), "notes": list(t.notes)} for t in tables]
        click.echo(json.dumps(content, ensure_ascii=False, allow_nan=False, indent=2))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    from ..report.cells import cell

    # A pipe has no width: nothing may be cut there.
    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    for table in tables:
        shown = RichTable(title=Text(table.title), box=box.SIMPLE_HEAD, title_justify="left", title_style="bold")
        for place, column in enumerate(table.columns):
            shown.add_column(Text(column), justify="right" if table.is_numeric(place) else "left", overflow="fold")
        for row in table.rows:
            shown.add_row(*(Text(cell(value)) for value in row))
        console.print(shown)
        for note in table.notes:
            console.print(Text(f"  {note}", style="dim"))
        if table.notes:
            console.print()
