"""Everything that is shown to a person, as plain tables: terminal, JSON and documents only render them."""

from .inspection import inspect_chain, inspect_problem
from .logs import counted
from .planning import plan
from .tables import Drawing, Table

__all__ = ["Drawing", "Table", "counted", "inspect_chain", "inspect_problem", "plan"]
