"""Simulated replications of a policy: interpreted, compiled, or on a GPU, on the same paths."""

from .run import AUTO, ENGINES, resolved, run, trace, whole_budget, workers
from .walking import Walk

__all__ = ["AUTO", "ENGINES", "Walk", "resolved", "run", "trace", "whole_budget", "workers"]
