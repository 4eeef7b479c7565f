"""``answer``: what is known of a question about a chain of a study."""

from typing import TYPE_CHECKING, Any

import click

from .rendering import as_json
from .studies import opened, say, where_argument

if TYPE_CHECKING:
    from ..answers import Answer


@click.command()
@where_argument
@click.argument("chain")
@click.argument("question")
@click.option("--delta", type=float, help="The probability that the bounds fail. Without it, the study's.")
@click.option("--method", help="replay, row-likelihood, delta or posterior. Without it, what the log allows.")
@click.option("--asked", type=int, help="Read only draws issued after this number: the question was asked then.")
@click.option("--losses", default="checked", show_default=True, help="checked, or independent of all that was drawn.")
@as_json
def answer(where: str, chain: str, question: str, json_output: bool, **options: Any) -> None:
    """Answer a question about a chain, as 'reach down from idle within 100', with bounds."""
    with opened(where, read_only=True) as study:
        found = study.answer(chain, question, **options)
    say({"chain": chain, **content(found)}, str(found), json_output)


def content(found: "Answer") -> dict[str, Any]:
    """An answer as JSON has it. An infinite end is null, and a note says why."""
    from ..report.cells import finite

    shown = {name: finite(getattr(found, name)) for name in ("estimate", "lower", "upper")}
    others = ("delta", "guaranteed", "method", "episodes", "waiting_for")
    shown |= {name: getattr(found, name) for name in others}
    return {"question": str(found.question), **shown, "notes": list(found.notes)}
