"""``inspect`` and ``plan``."""

from typing import Any

import click
from click.core import ParameterSource

from ..errors import InputError
from .command import JsonCommand, delta_option, is_json, opened
from .rendering import show


@click.command(cls=JsonCommand)
@click.argument("problem", metavar="[FILE|NAME]", required=False)
@click.option("--chain", help="Show this chain state by state.")
@delta_option
def inspect(problem: str | None, chain: str | None, delta: float) -> None:
    """Show the quantities of a problem or of one of its chains. Without an argument, list the built-in problems."""
    from .. import problems, report

    if problem is None:
        rows = tuple((name, problems.describe(name)) for name in problems.names())
        show([report.Table("built-in problems", ("name", "what it is"), rows)])
        return
    found = problems.find(problem)
    show(report.inspect_problem(found, delta) if chain is None else report.inspect_chain(chain, found[chain]))


@click.command(cls=JsonCommand)
@click.argument("problem", metavar="FILE|NAME|STUDY")
@click.option("--budget", type=int, help="Observations that can be paid for.")
@click.option("--target-loss", type=float, help="The largest loss that is good enough.")
@click.option("--target-width", type=float, help="Of a study with questions: how wide every answer may be.")
@delta_option
def plan(problem: str, target_width: float | None, **options: Any) -> None:
    """Show what a budget buys, or what a loss costs: limits, predictions, certificates and theorems side by side.

    Of a study that exists: how many more observations a loss needs, or its questions need, and of which chains.
    """
    from .. import problems, report
    from ..journal.opening import holds_database
    from ..report import studies

    if holds_database(problem):
        given = click.get_current_context().get_parameter_source("delta")
        if options["budget"] is not None or given is ParameterSource.COMMANDLINE:
            raise InputError("a study that exists is planned for a target alone: it has its own delta and budget")
        with opened(problem, read_only=True) as study:
            show([studies.plan(study, options["target_loss"], target_width, most=None if is_json() else studies.MOST)])
        return
    if target_width is not None:
        raise InputError("--target-width is for a study that exists, with questions")
    show(report.plan(problems.find(problem), **options))
