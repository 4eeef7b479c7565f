"""Tables in a terminal or as JSON."""

import json
import math
import sys
from typing import TYPE_CHECKING, Any

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

    # A pipe has no width: nothing may be cut there.
    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    for table in tables:
        shown = RichTable(title=Text(table.title), box=box.SIMPLE_HEAD, title_justify="left", title_style="bold")
        for place, column in enumerate(table.columns):
            numbers = all(isinstance(row[place], (int, float)) or row[place] is None for row in table.rows)
            shown.add_column(Text(column), justify="right" if numbers else "left", overflow="fold")
        for row in table.rows:
            shown.add_row(*(Text(cell(value)) for value in row))
        console.print(shown)
        for note in table.notes:
            console.print(Text(f"  {note}", style="dim"))
        if table.notes:
            console.print()


def cell(value: Any) -> str:
    if value is None:
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) < 10**15 else f"{value:.4g}"
    if isinstance(value, float):
        if value and (abs(value) >= 1e6 or abs(value) < 1e-4):
            return f"{value:.3e}"
        digits = 4 if not value else max(0, 3 - math.floor(math.log10(abs(value))))
        return f"{value:,.{min(digits, 7)}f}"
    return str(value)
