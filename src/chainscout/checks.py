"""Checks of single arguments, each with the one message that goes with it."""

import math
import numbers
from collections.abc import Iterable
from typing import Any

from .errors import InputError


def shown(value: object, length: int = 80) -> str:
    """``repr(value)`` on one line and cut to ``length``, for error messages."""
    text = " ".join(repr(value).split())
    return text if len(text) <= length else text[: length - 1] + "…"


def whole_number(value: Any, name: str, least: int = 1, meaning: str = "") -> int:
    """``value`` as an int, which must be a whole number ≥ ``least``."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not whole and isinstance(value, numbers.Real) and not isinstance(value, bool):
        whole = math.isfinite(value) and float(value).is_integer()
    if not whole or int(value) < least:
        raise InputError(f"{name}{_meaning(meaning)} must be a whole number ≥ {least}, not {shown(value)}")
    return int(value)


def real_number(
    value: Any,
    name: str,
    *,
    above: float = -math.inf,
    below: float = math.inf,
    least: float = -math.inf,
    meaning: str = "",
) -> float:
    """``value`` as a float, finite, > ``above``, < ``below`` and ≥ ``least``."""
    fits = isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    if not fits or not above < float(value) < below or float(value) < least:
        limits = [f"> {above:g}"] * (above > -math.inf) + [f"≥ {least:g}"] * (least > -math.inf)
        limits += [f"< {below:g}"] * (below < math.inf)
        wanted = " ".join(["a finite number", " and ".join(limits)]).strip()
        raise InputError(f"{name}{_meaning(meaning)} must be {wanted}, not {shown(value)}")
    return float(value)


def failure_probability(value: Any) -> float:
    """``delta``, the probability with which a guarantee may fail."""
    return real_number(value, "delta", above=0.0, below=1.0, meaning="the probability with which a guarantee may fail")


def one_of(value: Any, name: str, choices: Iterable[str]) -> str:
    """``value``, which must be one of ``choices``."""
    known = list(choices)
    if value not in known:
        raise InputError(f"{name} must be one of {', '.join(known)}, not {shown(value)}")
    return str(value)


def _meaning(meaning: str) -> str:
    return f" ({meaning})" if meaning else ""
