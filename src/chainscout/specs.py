"""Specifications: a name with parameters on one line, ``name:key=value,key=value``, and back.

A value is a whole number, a number, ``true`` or ``false``, a list of numbers ``0.5/0.1/0.02``, or else a string.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any, TypeVar

from .errors import InputError
from .validation import did_you_mean, shown

FORM = "'name' or 'name:key=value,key=value'"

Thing = TypeVar("Thing")


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


def split(text: str) -> list[str]:
    """The specifications of a list: 'a,b:x=1,y=2,c' → ['a', 'b:x=1,y=2', 'c'].

    A piece with '=' and without ':' belongs to the specification before it.
    """
    found: list[str] = []
    for piece in filter(None, re.split(r"[,\s]+", text)):
        if found and "=" in piece and ":" not in piece:
            found[-1] += f",{piece}"
        else:
            found.append(piece)
    return found


def merged(specification: str, parameters: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The name of a specification, and its parameters merged with ``parameters``."""
    name, given = parse(specification)
    twice = sorted(given.keys() & parameters.keys())
    if twice:
        raise InputError(f"a parameter can be given only once, but {', '.join(twice)} is given twice")
    return name, given | dict(parameters)


def look_up(name: str, things: Mapping[str, Thing], kind: str, all_are: str) -> Thing:
    """The thing of that name. The error for an unknown name says what it is (``kind``) and lists all (``all_are``)."""
    if name not in things:
        hint = did_you_mean(name, things)
        raise InputError(f"unknown {kind} {shown(name)}{hint}: {all_are} {', '.join(things)}")
    return things[name]


def check_keys(given: Mapping[str, Any], known: Collection[str], owner: str) -> None:
    """Raises ``InputError`` for a parameter that its owner does not have."""
    for key in given:
        if key not in known:
            takes = f"it takes {', '.join(known) or 'none'}"
            raise InputError(f"{owner} has no parameter {shown(key)}{did_you_mean(key, known)}: {takes}")


def number(text: str) -> int | float | None:
    """The number that a text stands for, an int if possible; None if the text is not a number."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def compose(name: str, parameters: Mapping[str, Any]) -> str:
    """The specification that ``parse`` reads as this name and these parameters."""
    pairs = ",".join(f"{key}={_text(value)}" for key, value in parameters.items())
    return f"{name}:{pairs}" if pairs else name


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    if "/" in text:
        numbers = [number(part) for part in text.split("/")]
        return tuple(numbers) if None not in numbers else text
    value = number(text)
    return text if value is None else value


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return "/".join(str(item) for item in value)
    return str(value)
