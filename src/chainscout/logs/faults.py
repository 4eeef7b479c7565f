"""The faults that rows of a log can have, each in one sentence."""

from collections.abc import Sequence
from typing import Any

from ..errors import LogError
from ..validation import shown
from .request import CountRequest


def need_complete(request: CountRequest, numbers: Sequence[int]) -> None:
    """Raises ``LogError`` for rows without a chain, time, path or order; ``numbers``: how many there are of each."""
    roles = ["chain", "time", *(role for role in ("path", "order") if getattr(request, role) is not None)]
    for role, number in zip(roles, numbers, strict=True):
        if number:
            have = "row has" if number == 1 else "rows have"
            article = "an" if role == "order" else "a"
            column = shown(getattr(request, role))
            raise LogError(f"every row needs {article} {role}, but {number:,} {have} none in column {column}")


def tie(request: CountRequest, chain: Any, time: Any) -> LogError:
    """Two rows of one path with the same time."""
    column = request.time if request.order is None else f"{request.time}, {request.order}"
    place = f"chain {shown(str(chain))} has two rows at {column} = {time}"
    if request.order is None:
        return LogError(
            f"{place}, and which came first is not known: name the column that says it, with order= (--order)"
        )
    return LogError(f"{place} that are equal in the order column too, so that which came first is not known")


def without_state(request: CountRequest, chain: Any, time: Any) -> LogError:
    """A row that has no state."""
    return LogError(
        f"chain {shown(str(chain))} has no state in column {shown(request.state)} at {request.time} = {time};"
        " missing='break' (--missing break) begins a new path after such rows"
    )


def changed(name: str) -> LogError:
    """A fault that was counted and cannot be found any more."""
    return LogError(f"{name}: the log was changed while it was counted, and nothing was counted")
