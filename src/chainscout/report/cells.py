"""A value as a person reads it."""

import math
from typing import Any


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
