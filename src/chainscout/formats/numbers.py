"""Probabilities and intervals as text: ``0.25``, ``1/4``, ``[0.2,0.3]``."""

import math
import re

from .model import refused

__all__ = ["probability", "written"]

_NUMBER = r"[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+]?[0-9]+)?"
_PROBABILITY = re.compile(rf"({_NUMBER})(?:\s*/\s*({_NUMBER}))?")


def written(lower: float, upper: float, *, exact: bool) -> str:
    """The text of a probability or of its interval. It reads back as the same numbers."""
    return repr(lower) if exact else f"[{lower!r},{upper!r}]"


def probability(text: str, file: str, place: str) -> float:
    """The probability that ``text`` stands for."""
    if text.lstrip().startswith("["):
        raise refused(file, place, f"this is an interval, {text.strip()!r}, and only exact chains are read")
    found = _PROBABILITY.fullmatch(text.strip())
    over, under = (float(found[1]), float(found[2] or 1)) if found else (math.inf, 1.0)
    if under == 0 or not math.isfinite(over):
        raise refused(file, place, f"a probability must be a number or a fraction, not {text.strip()!r}")
    return over / under
