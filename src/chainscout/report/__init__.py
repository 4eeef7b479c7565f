"""Everything that is shown to a person, as plain tables. The terminal, JSON and documents only render them.

Each function is imported when it is first used, because ``chainscout status`` needs none of them.
"""

import importlib
from typing import TYPE_CHECKING, Any

from .tables import Drawing, Series, Table

if TYPE_CHECKING:
    from .logs import counted
    from .problems import inspect_chain, inspect_problem, plan

__all__ = ["Drawing", "Series", "Table", "counted", "inspect_chain", "inspect_problem", "plan"]

_HOMES = {"counted": "logs", "inspect_chain": "problems", "inspect_problem": "problems", "plan": "problems"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
