"""The catalogue: built-in problems by name, each with its description and source (docs/catalogue.md)."""

import inspect
from typing import Any

from ... import specs
from ...checks import did_you_mean, shown
from ...errors import InputError
from ..problem import Problem
from .constructed import CONSTRUCTED
from .entry import Entry
from .environments import ENVIRONMENTS
from .families import FAMILIES
from .published import PUBLISHED

_ENTRIES: dict[str, Entry] = {entry.name: entry for entry in (*CONSTRUCTED, *PUBLISHED, *ENVIRONMENTS, *FAMILIES)}


def names() -> tuple[str, ...]:
    """The names that ``get`` knows."""
    return tuple(_ENTRIES)


def get(name: str, **parameters: Any) -> Problem:
    """A problem of the catalogue: ``get("dirichlet", seed=1)`` or ``get("dirichlet:seed=1")``.

    The problem's own name is the specification that gives it again.
    """
    name, given = specs.parse(name)
    twice = sorted(given.keys() & parameters.keys())
    if twice:
        raise InputError(f"a parameter can be given only once, but {', '.join(twice)} is given twice")
    given |= parameters
    entry = _entry(name)
    known = list(inspect.signature(entry.build).parameters)
    for key in given:
        if key not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise InputError(f"problem {name} has no parameter {shown(key)}{did_you_mean(key, known)}: {takes}")
    chains = entry.build(**given)
    return Problem(chains, specs.compose(name, given), entry.description, entry.source)


def describe(name: str) -> str:
    """What the problem of that name is, in a sentence or two."""
    return _entry(name).description


def _entry(name: str) -> Entry:
    if name not in _ENTRIES:
        hint = did_you_mean(name, _ENTRIES)
        raise InputError(f"unknown problem {shown(name)}{hint}: the catalogue has {', '.join(_ENTRIES)}")
    return _ENTRIES[name]
