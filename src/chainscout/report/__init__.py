"""Everything that is shown to a person, as plain tables. The terminal, JSON and documents only render them."""

from .logs import counted
from .problems import inspect_chain, inspect_problem, plan
from .tables import Drawing, Series, Table

__all__ = ["Drawing", "Series", "Table", "counted", "inspect_chain", "inspect_problem", "plan"]
