"""Numbers as text, for every medium. An end of what is certain is rounded outwards: no printed bound is too strong."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any

from .validation import printable

#: Significant digits: of a bound on a loss or an error, and of the ends of an interval and other numbers in a sentence.
BOUND, END = 2, 3
#: Below this δ, 1 − δ is written as a difference.
_LEAST = 1e-9


class Bound(float):
    """An upper bound on a loss or an error."""


class Lower(float):
    """The lower end of an interval."""


class Upper(float):
    """The upper end of an interval."""


class Given(float):
    """A number that somebody set. It is shown without digits that nobody gave."""


def bound(value: float) -> str:
    """A bound on a loss or an error, rounded up."""
    return _rounded(value, BOUND, ROUND_CEILING)


def lower(value: float) -> str:
    """The lower end of an interval, rounded down."""
    return _rounded(value, END, ROUND_FLOOR)


def upper(value: float) -> str:
    """The upper end of an interval, rounded up."""
    return _rounded(value, END, ROUND_CEILING)


def ends(low: float, high: float) -> str:
    """An interval, rounded outwards."""
    return f"[{lower(low)}, {upper(high)}]"


def near(value: float) -> str:
    """An estimate."""
    return _rounded(value, END, ROUND_HALF_EVEN)


def sure(delta: float) -> str:
    """1 − δ, rounded down: 1 only if δ is 0."""
    if delta == 0:
        return "1"
    shown = _digits(delta, END, ROUND_CEILING)
    return f"1 − {float(shown):g}" if float(shown) < _LEAST else f"{1 - shown:f}"


def cell(value: Any) -> str:
    """The text of a cell of a table: a number with its digits, another value on one line; — for what does not exist."""
    if value is None or value != value:
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) < 10**15 else f"{value:.4g}"
    for kind, text in _TEXTS.items():
        if isinstance(value, kind):
            return text(value)
    if isinstance(value, float):
        if math.isinf(value):
            return f"{value:g}"
        if value and (abs(value) >= 1e6 or abs(value) < 1e-4):
            return f"{value:.3e}"
        digits = 4 if not value else max(0, 3 - math.floor(math.log10(abs(value))))
        return f"{value:,.{min(digits, 7)}f}"
    return printable(str(value))


_TEXTS = {Bound: bound, Lower: lower, Upper: upper, Given: "{:g}".format}


def _digits(value: float, digits: int, way: str) -> Decimal:
    """The number with so many significant digits; a whole part below a million keeps all its digits."""
    exact = Decimal(repr(float(value)))
    last = exact.adjusted() - digits + 1
    last = last if abs(value) >= 1e6 else min(0, last)
    return exact.quantize(Decimal((0, (1,), last)), rounding=way).normalize()


def _rounded(value: float, digits: int, way: str) -> str:
    if not value or not math.isfinite(value):
        return f"{value:g}"
    shown = _digits(value, digits, way)
    return f"{shown:,f}" if 1e-4 <= abs(shown) < 1e6 else f"{float(shown):.{digits}g}"
