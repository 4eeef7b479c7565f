"""Simulated replications of a policy: one loop, interpreted or compiled, the same bits from both."""

from .run import ENGINES, run, trace

__all__ = ["ENGINES", "run", "trace"]
