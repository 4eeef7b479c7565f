"""Simulated replications of a policy: one loop, interpreted or compiled, the same bits from both."""

from .run import ENGINES, run, trace
from .walking import walk

__all__ = ["ENGINES", "run", "trace", "walk"]
