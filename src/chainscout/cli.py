"""The command line. Everything heavy is imported inside the commands, so that ``--help`` answers at once."""

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ._version import __version__
from .errors import ChainscoutError, InputError

if TYPE_CHECKING:
    from .problems import Problem
    from .report import Table


class Commands(click.Group):
    """A group whose commands end with one line and an exit status where the library raises its own errors."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command."""
        try:
            return super().invoke(ctx)
        except ChainscoutError as error:
            click.echo(f"chainscout: {error}", err=True)
            ctx.exit(error.exit_status)


as_json = click.option("--json", "json_output", is_flag=True, help="Print JSON instead of tables.")
delta_option = click.option(
    "--delta", type=float, default=0.05, show_default=True, help="Probability that a guarantee fails."
)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="chainscout")
def main() -> None:
    """Learn many Markov chains equally well from one sampling budget, and know how well."""


@main.command()
@click.argument("problem", metavar="[FILE|NAME]", required=False)
@click.option("--chain", help="Show this chain state by state.")
@delta_option
@as_json
def inspect(problem: str | None, chain: str | None, delta: float, json_output: bool) -> None:
    """Show the quantities of a problem or of one of its chains. Without an argument, list the built-in problems."""
    from . import report

    if problem is None:
        _show(_catalogue(), json_output)
        return
    found = find_problem(problem)
    if chain is None:
        _show(report.inspect_problem(found, delta), json_output)
    else:
        _show(report.inspect_chain(chain, found[chain]), json_output)


@main.command()
@click.argument("problem", metavar="FILE|NAME")
@click.option("--budget", type=int, help="Observations that can be paid for.")
@click.option("--target-loss", type=float, help="The largest loss that is good enough.")
@delta_option
@as_json
def plan(problem: str, budget: int | None, target_loss: float | None, delta: float, json_output: bool) -> None:
    """Show what a budget buys, or what a loss costs: limits, predictions, certificates and theorems side by side."""
    from . import report

    _show(report.plan(find_problem(problem), budget=budget, target_loss=target_loss, delta=delta), json_output)


@main.command()
def demo() -> None:
    """Inspect and plan a built-in problem of unlike chains."""
    from . import report

    problem = find_problem("unlike")
    for command, tables in (
        ("inspect unlike", report.inspect_problem(problem)),
        ("plan unlike --budget 10000 --target-loss 0.01", report.plan(problem, budget=10_000, target_loss=0.01)),
    ):
        click.secho(f"$ chainscout {command}\n", bold=True)
        _show(tables, json_output=False)


def find_problem(text: str) -> "Problem":
    """The problem in a file or directory, or the built-in one of that name."""
    from . import problems

    name = text.partition(":")[0]
    if name in problems.names():
        return problems.get(text)
    if Path(text).exists() or Path(text).suffix in {".toml", ".json", ".csv"}:
        return problems.Problem.load(text)
    names = ", ".join(problems.names())
    raise InputError(f"there is neither a file nor a built-in problem {text!r}; built-in are {names}")


def _catalogue() -> "list[Table]":
    from . import problems
    from .report import Table

    rows = tuple((name, problems.describe(name)) for name in problems.names())
    return [Table("built-in problems", ("name", "what it is"), rows)]


def _show(tables: "list[Table]", json_output: bool) -> None:
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
            shown.add_row(*(Text(_cell(value)) for value in row))
        console.print(shown)
        for note in table.notes:
            console.print(Text(f"  {note}", style="dim"))
        if table.notes:
            console.print()


def _cell(value: Any) -> str:
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
