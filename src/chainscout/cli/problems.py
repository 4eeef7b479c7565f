"""``inspect`` and ``plan``."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from ..errors import InputError
from .rendering import JsonCommand, is_json, show

if TYPE_CHECKING:
    from ..problems import Problem
    from ..report import Table

delta_option = click.option(
    "--delta", type=float, default=0.05, show_default=True, help="Probability that a guarantee fails."
)


@click.command(cls=JsonCommand)
@click.argument("problem", metavar="[FILE|NAME]", required=False)
@click.option("--chain", help="Show this chain state by state.")
@delta_option
def inspect(problem: str | None, chain: str | None, delta: float) -> None:
    """Show the quantities of a problem or of one of its chains. Without an argument, list the built-in problems."""
    from .. import report

    if problem is None:
        show(_catalogue())
        return
    found = find_problem(problem)
    if chain is None:
        show(report.inspect_problem(found, delta))
    else:
        show(report.inspect_chain(chain, found[chain]))


@click.command(cls=JsonCommand)
@click.argument("problem", metavar="FILE|NAME|STUDY")
@click.option("--budget", type=int, help="Observations that can be paid for.")
@click.option("--target-loss", type=float, help="The largest loss that is good enough.")
@click.option("--target-width", type=float, help="Of a study with questions: how wide every answer may be.")
@delta_option
def plan(
    problem: str,
    budget: int | None,
    target_loss: float | None,
    target_width: float | None,
    delta: float,
) -> None:
    """Show what a budget buys, or what a loss costs: limits, predictions, certificates and theorems side by side.

    Of a study that exists: how many more observations a loss needs, or its questions need, and of which chains.
    """
    from .. import report

    if "://" in problem or Path(problem).is_file():
        from ..store import holds_database

        if holds_database(problem):
            _plan_study(problem, budget, target_loss, target_width)
            return
    if target_width is not None:
        raise InputError("--target-width is for a study that exists, with questions")
    show(report.plan(find_problem(problem), budget=budget, target_loss=target_loss, delta=delta))


def _plan_study(where: str, budget: int | None, target_loss: float | None, target_width: float | None) -> None:
    """Shows how many more observations a study needs."""
    from ..report import studies
    from .studies import opened

    given = click.get_current_context().get_parameter_source("delta")
    if budget is not None or given is ParameterSource.COMMANDLINE:
        raise InputError("a study that exists is planned for a target alone: it has its own delta and budget")
    with opened(where, read_only=True) as study:
        show([studies.plan(study, target_loss, target_width, most=None if is_json() else studies.MOST)])


def find_problem(text: str) -> "Problem":
    """The problem in a file or directory, or the built-in problem of that name."""
    from .. import problems

    return problems.find(text)


def _catalogue() -> "list[Table]":
    from .. import problems
    from ..report import Table

    rows = tuple((name, problems.describe(name)) for name in problems.names())
    return [Table("built-in problems", ("name", "what it is"), rows)]
