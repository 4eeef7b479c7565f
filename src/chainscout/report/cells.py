"""A value as a person reads it."""

import math
import time
from typing import Any

from ..validation import printable


def cell(value: Any) -> str:
    """Four significant digits, thousands apart, — for what does not exist."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
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


def finite(value: float | None) -> float | None:
    """The number, or None if it is infinite or no number."""
    return value if value is not None and math.isfinite(value) else None


#: Larger indices are no number that a rule computes.
_ONLY_A_PLACE = 1e100


def shown_index(chain: Any) -> float | None:
    """A chain's index; None while the index is only a place in the order: before the first transition, and where
    nothing is known of its answers.
    """
    return finite(chain.index) if chain.transitions and chain.index < _ONLY_A_PLACE else None


def given(value: float | None) -> str:
    """A number that somebody set, without digits that they did not give."""
    return "—" if value is None else f"{value:g}"


#: Characters of a name that are shown.
LONGEST = 60


def label(value: Any) -> str:
    """A chain's or a state's name as it can be shown: short, and with no character that hides or turns round others."""
    text = str(value)
    if len(text) > LONGEST:
        text = f"{text[: LONGEST - 1]}…"
    return printable(text).replace("\n", "\\u000a") or "(empty)"


def duration(seconds: float | None) -> str:
    """A time that something takes: '3 h 20 min'."""
    if seconds is None or not math.isfinite(seconds):
        return "—"
    whole = max(0, round(seconds))
    for unit, length, smaller, part in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if whole >= length:
            return f"{whole // length:,} {unit} {whole % length // part} {smaller}"
    return f"{whole} s"


def moment(seconds: float) -> str:
    """A moment in universal time."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds))
