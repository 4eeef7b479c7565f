"""A batch of observations, as users give it."""

from collections.abc import Hashable, Iterable
from typing import Any

from ..errors import InputError
from ..validation import shown


def pairs(observations: Any) -> list[tuple[str, Hashable]]:
    """A batch as a list of pairs. A text of two letters is not a pair."""
    if not isinstance(observations, Iterable):
        raise InputError(f"observations must be pairs (chain, state), not {shown(observations)}")
    found = []
    for number, thing in enumerate(observations, start=1):
        pair: Any = None if isinstance(thing, str) else thing
        try:
            chain, state = pair
        except (TypeError, ValueError):
            what = f"observation {number} of the batch"
            raise InputError(f"{what} must be a pair (chain, state), not {shown(thing)}: nothing was changed") from None
        found.append((chain, state))
    return found
