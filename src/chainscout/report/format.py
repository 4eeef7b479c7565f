"""Names, durations and moments as text."""

import math
import time
from dataclasses import dataclass
from typing import Any

from ..validation import printable


@dataclass(frozen=True)
class Struck:
    """A bound that does not hold: struck out where it stands. ``code``: why; ``words``: what a reader sees of that."""

    value: float | None
    code: str
    words: str = ""

    def __str__(self) -> str:
        return f"(no bound{f': {self.words}' if self.words else ''})"


def finite(value: Any) -> Any:
    """The value; None for a number that is infinite or not a number."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


#: A larger index was not computed by a rule.
_ONLY_A_PLACE = 1e100


def shown_index(chain: Any) -> float | None:
    """A chain's index, or None while the index is only a place in the order.

    That is so before the first transition, and while nothing is known of the chain's answers.
    """
    return finite(chain.index) if chain.transitions and chain.index < _ONLY_A_PLACE else None


#: The most characters of a name that are shown.
LONGEST = 60


def label(value: Any) -> str:
    """The name of a chain or a state for display: short, without characters that hide or reverse others."""
    text = str(value)
    if len(text) > LONGEST:
        text = f"{text[: LONGEST - 1]}…"
    return printable(text) if text.strip() else "(empty)"


def duration(seconds: float | None) -> str:
    """A duration, as '3 h 20 min'."""
    if seconds is None or not math.isfinite(seconds):
        return "—"
    whole = max(0, round(seconds))
    for unit, length, smaller, part in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if whole >= length:
            return f"{whole // length:,} {unit} {whole % length // part} {smaller}"
    return f"{whole} s"


def moment(seconds: float) -> str:
    """A moment in universal time, from seconds since 1970."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds))
