"""Checks of single arguments, each with the one message that goes with it."""

import math
import numbers
from collections import Counter
from collections.abc import Hashable, Iterable
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import InputError


def shown(value: object, length: int = 80) -> str:
    """``repr(value)`` on one line and cut to ``length``, for error messages."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # whatever a faulty __repr__ raises; also integers above 4,300 digits and very deep lists
        text = f"an object of type {type(value).__name__} that cannot be printed"
    return text if len(text) <= length else text[: length - 1] + "…"


def whole_number(value: Any, name: str, least: int = 1, meaning: str = "", most: int | None = None) -> int:
    """``value`` as an int, which must be a whole number ≥ ``least`` and, where there is such a limit, ≤ ``most``."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    whole = whole or (_is_finite(value) and float(value).is_integer())
    if not whole or int(value) < least:
        raise InputError(f"{name}{_meaning(meaning)} must be a whole number ≥ {least}, not {shown(value)}")
    if most is not None and int(value) > most:
        raise InputError(f"{name}{_meaning(meaning)} must be at most {most}, not {shown(value)}")
    return int(value)


def truth_value(value: Any, name: str, meaning: str) -> bool:
    """``value`` as a bool, which must be one of Python's or numpy's."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{name}{_meaning(meaning)} must be True or False, not {shown(value)}")
    return bool(value)


def real_number(
    value: Any,
    name: str,
    *,
    above: float = -math.inf,
    below: float = math.inf,
    least: float = -math.inf,
    most: float = math.inf,
    meaning: str = "",
) -> float:
    """``value`` as a float, finite, > ``above``, < ``below``, ≥ ``least`` and ≤ ``most``."""
    if not _is_finite(value) or not above < float(value) < below or not least <= float(value) <= most:
        limits = [f"> {above:g}"] * (above > -math.inf) + [f"≥ {least:g}"] * (least > -math.inf)
        limits += [f"< {below:g}"] * (below < math.inf) + [f"≤ {most:g}"] * (most < math.inf)
        wanted = " ".join(["a finite number", " and ".join(limits)]).strip()
        raise InputError(f"{name}{_meaning(meaning)} must be {wanted}, not {shown(value)}")
    return float(value)


#: Below this 1 − δ, the probability of the quantiles that are reported, keeps no digits of δ.
LEAST_DELTA = 1e-12


def failure_probability(value: Any) -> float:
    """``delta``, the probability with which a guarantee may fail."""
    meaning = "the probability with which a guarantee may fail"
    return real_number(value, "delta", least=LEAST_DELTA, below=1.0, meaning=meaning)


def one_of(value: Any, name: str, choices: Iterable[str]) -> str:
    """``value``, which must be one of ``choices``."""
    known = list(choices)
    if not isinstance(value, str) or value not in known:
        raise InputError(f"{name} must be one of {', '.join(known)}, not {shown(value)}")
    return value


def is_unicode(text: str) -> bool:
    """Whether a text can be written at all: a byte that was no UTF-8 is in it as half a character, which cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def unicode_text(text: str, what: str) -> str:
    """``text``, which must be text that UTF-8 can hold."""
    if not is_unicode(text):
        raise InputError(f"{what} must be text that UTF-8 can hold, not {shown(text)}")
    return str(text)


def unique_labels(states: Any) -> tuple[Hashable, ...]:
    """The labels of a chain's states: at least one, hashable, unique, each equal to itself."""
    try:
        # A string is one label and not a sequence of them; a set has no order.
        labels = () if isinstance(states, (str, bytes, AbstractSet)) else tuple(states)
        numbers_of = Counter(labels)
        strange = [label for label in labels if label != label]
    except (TypeError, ValueError, RecursionError):
        labels = ()
    if not labels:
        raise InputError(f"states must be a sequence of hashable labels, at least one, not {shown(states)}")
    if strange:
        raise InputError(f"states must be labels that equal themselves, and {shown(strange[0])} does not")
    label, number = numbers_of.most_common(1)[0]
    if number > 1:
        raise InputError(f"states must be unique, but {shown(label)} stands for {number} of them")
    return labels


def number_array(values: Any, name: str) -> npt.NDArray[np.float64]:
    """``values`` as a new array of floats, which may be infinite or NaN."""
    try:
        array = np.array(values)
        texts = array.dtype == object and any(isinstance(value, str) for value in array.flat)
        if array.dtype.kind not in "biufO" or texts or np.ma.is_masked(values):
            raise TypeError
        with np.errstate(over="ignore"):  # of a longer float than ours: infinite
            return array.astype(np.float64, copy=False)
    except Exception:  # whatever the conversion of a foreign object raises
        raise InputError(f"{name} must be numbers in rows of equal length, not {shown(values)}") from None


def _is_finite(value: Any) -> bool:
    try:
        return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # an integer or a fraction above the largest float
        return False


def _meaning(meaning: str) -> str:
    return f" ({meaning})" if meaning else ""
