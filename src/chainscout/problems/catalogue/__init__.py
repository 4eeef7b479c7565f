"""The catalogue: built-in problems by name, each with its description and source (docs/catalogue.md)."""

import inspect
from typing import Any

from ... import specs
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

    The problem's own name is the specification that makes it again.
    """
    name, given = specs.merged(name, parameters)
    entry = _entry(name)
    specs.check_keys(given, inspect.signature(entry.build).parameters, f"problem {name}")
    chains = entry.build(**given)
    return Problem(chains, specs.compose(name, given), entry.description, entry.source)


def describe(name: str) -> str:
    """A description of the problem of that name, in a sentence or two."""
    return _entry(name).description


def _entry(name: str) -> Entry:
    return specs.look_up(name, _ENTRIES, "problem", "the catalogue has")
