"""``answer``: what is known of a question about a chain of a study."""

import math
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
def answer(
    where: str,
    chain: str,
    question: str,
    delta: float | None,
    method: str | None,
    asked: int | None,
    losses: str,
    json_output: bool,
) -> None:
    """Answer a question about a chain, as 'reach down from idle within 100', with bounds."""
    with opened(where, read_only=True) as study:
        found = study.answer(chain, question, delta=delta, method=method, asked=asked, losses=losses)
    say({"chain": chain, **content(found)}, str(found), json_output)


def content(found: "Answer") -> dict[str, Any]:
    """An answer as JSON has it. An infinite end is null, and a note says why."""
    return {
        "question": str(found.question),
        "estimate": _number(found.estimate),
        "lower": _number(found.lower),
        "upper": _number(found.upper),
        "delta": found.delta,
        "guaranteed": found.guaranteed,
        "method": found.method,
        "episodes": found.episodes,
        "waiting_for": found.waiting_for,
        "notes": list(found.notes),
    }


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
