"""Specifications: a name with parameters on one line, ``name:key=value,key=value``, and back.

A value is a whole number, a number, ``true`` or ``false``, a list of numbers ``0.5/0.1/0.02``, or else a string.
"""

from collections.abc import Mapping
from typing import Any

from .checks import shown
from .errors import InputError

FORM = "'name' or 'name:key=value,key=value'"


def parse(specification: str) -> tuple[str, dict[str, Any]]:
    """The name and the parameters of a specification."""
    if not isinstance(specification, str):
        raise InputError(f"a specification must be a string of the form {FORM}, not {shown(specification)}")
    name, colon, rest = (part.strip() for part in specification.partition(":"))
    if not name:
        raise InputError(f"a specification must begin with a name, as in {FORM}, not {shown(specification)}")
    parameters: dict[str, Any] = {}
    for pair in rest.split(",") if colon else []:
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not (key and equals and value):
            text = f"{shown(pair)} in {shown(specification)}"
            raise InputError(f"parameters must be given as key=value, separated by commas, not as {text}")
        if key in parameters:
            raise InputError(f"a parameter can be given only once, but {shown(specification)} gives {key} twice")
        parameters[key] = _value(value)
    return name, parameters


def compose(name: str, parameters: Mapping[str, Any]) -> str:
    """The specification that ``parse`` reads as this name and these parameters."""
    pairs = ",".join(f"{key}={_text(value)}" for key, value in parameters.items())
    return f"{name}:{pairs}" if pairs else name


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    if "/" in text:
        numbers = [_number(part) for part in text.split("/")]
        return tuple(numbers) if None not in numbers else text
    number = _number(text)
    return text if number is None else number


def _number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return "/".join(str(item) for item in value)
    return str(value)
