"""Checks of single arguments. Each check has one message."""

import datetime
import difflib
import math
import numbers
import re
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
    """``value`` as an int. It must be a whole number ≥ ``least`` and, unless ``most`` is None, ≤ ``most``."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    whole = whole or (_is_finite(value) and float(value).is_integer())
    if not whole or int(value) < least:
        said = int(value) if whole else value  # the command line reads -100 as -100.0
        raise InputError(f"{name}{_meaning(meaning)} must be a whole number ≥ {least}, not {shown(said)}")
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


#: A number of seconds, a text such as '5min' or '1h 30min', or a timedelta.
Duration = float | str | datetime.timedelta

_UNITS = {"ms": "milliseconds", "s": "seconds", "min": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def duration(value: Any, name: str, meaning: str = "") -> datetime.timedelta:
    """``value`` as a non-negative duration. It may be a timedelta, or a text such as ``30s`` or ``1h 30min``."""
    found = value if isinstance(value, datetime.timedelta) else _duration_of(value)
    if found is None:
        wanted = f"a duration such as 30s, 5min, 2h, 1d or 1h 30min (units: {', '.join(_UNITS)})"
        raise InputError(f"{name}{_meaning(meaning)} must be {wanted}, not {shown(value)}")
    if found < datetime.timedelta(0):
        raise InputError(f"{name}{_meaning(meaning)} must not be negative, not {found}")
    return found


def seconds(value: Any, name: str, meaning: str = "", *, zero: bool = False) -> float:
    """``value`` in seconds, above zero, or from ``zero`` on. A number, a timedelta, or a text such as ``5min``."""
    if isinstance(value, str | datetime.timedelta):
        value = duration(value, name, meaning).total_seconds()
    if zero:
        return real_number(value, name, least=0.0, meaning=meaning)
    return real_number(value, name, above=0.0, meaning=meaning)


def _duration_of(value: Any) -> datetime.timedelta | None:
    piece = rf"(\d+(?:\.\d*)?)\s*({'|'.join(_UNITS)})"
    if not isinstance(value, str) or not re.fullmatch(rf"\s*{piece}(?:\s*{piece})*\s*", value):
        return None
    parts = re.findall(rf"{piece}(?![a-z])", value)
    try:
        pieces = [datetime.timedelta(**{_UNITS[unit]: float(number)}) for number, unit in parts]
        return sum(pieces, datetime.timedelta())
    except OverflowError:
        return None


def failure_probability(value: Any) -> float:
    """``delta``, the probability with which a guarantee may fail."""
    meaning = "the probability with which a guarantee may fail"
    return real_number(value, "delta", above=0.0, most=0.5, meaning=meaning)


#: Below this, 1 − δ keeps no digits of δ.
LEAST_DELTA = 1e-12


def quantile_failure(value: Any) -> float:
    """``delta`` where the quantile of probability 1 − ``delta`` is reported."""
    meaning = "the quantile of probability 1 − delta is reported"
    return real_number(failure_probability(value), "delta", least=LEAST_DELTA, meaning=meaning)


def seed_number(value: Any) -> int:
    """``seed``, which determines all randomness."""
    return _word(value, "seed", "what all randomness follows from")


def replication_number(value: Any) -> int:
    """``replication``, the number of one run among those of a seed."""
    return _word(value, "replication", "the number of a run among those of a seed")


def one_of(value: Any, name: str, choices: Iterable[str]) -> str:
    """``value``, which must be one of ``choices``."""
    known = list(choices)
    if not isinstance(value, str) or value not in known:
        raise InputError(f"{name} must be one of {', '.join(known)}, not {shown(value)}{did_you_mean(value, known)}")
    return known[known.index(value)]


def did_you_mean(value: object, known: Iterable[object]) -> str:
    """`` (did you mean …?)`` for a name that is close to one of the ``known`` names, otherwise an empty text."""
    names = [name for name in known if isinstance(name, str)]
    near = difflib.get_close_matches(value, names, 1) if isinstance(value, str) else []
    return f" (did you mean {printable(near[0])}?)" if near else ""


def is_unicode(text: str) -> bool:
    """Whether a text can be written as UTF-8. Bytes that were not UTF-8 are lone surrogates in it, which cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def printable(text: str) -> str:
    """The text on one line, without characters that control a terminal, or hide or reverse other characters."""
    return text if text.isprintable() else "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)


def unicode_text(text: str, what: str) -> str:
    """``text``, which must be text that UTF-8 can hold, as a plain ``str``."""
    if not is_unicode(text):
        raise InputError(f"{what} must be text that UTF-8 can hold, not {shown(text)}")
    return str.__str__(text)  # of a subclass, such as NumPy's, a plain copy


def unique_labels(states: Any) -> tuple[Hashable, ...]:
    """The labels of a chain's states: at least one, hashable, unique, each equal to itself."""
    try:
        # A string is one label, not a sequence of labels. A set has no order.
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


def label_from_text(text: str) -> str | int:
    """The label that a text stands for: an int if it is written as one. 007 and 1_000 stay texts."""
    try:
        number = int(text)
    except ValueError:
        return text
    return number if str(number) == text else text


def number_array(values: Any, name: str) -> npt.NDArray[np.float64]:
    """``values`` as a new array of floats, which may be infinite or NaN."""
    try:
        array = np.array(values)
        texts = array.dtype == object and any(isinstance(value, str) for value in array.flat)
        if array.dtype.kind not in "biufO" or texts or np.ma.is_masked(values):
            raise TypeError
        with np.errstate(over="ignore"):  # a longer float type than ours may become infinite
            return array.astype(np.float64, copy=False)
    except Exception:  # whatever the conversion of a foreign object raises
        raise InputError(f"{name} must be numbers in rows of equal length, not {shown(values)}") from None


def _word(value: Any, name: str, meaning: str) -> int:
    """A whole number below 2**64. A larger one would give the same random numbers as a smaller one."""
    number = whole_number(value, name, least=0, meaning=meaning)
    if number >= 1 << 64:
        raise InputError(f"{name}{_meaning(meaning)} must be below 2**64, not {shown(value)}")
    return number


def _is_finite(value: Any) -> bool:
    try:
        return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # an int or a fraction above the largest float
        return False


def _meaning(meaning: str) -> str:
    return f" ({meaning})" if meaning else ""
