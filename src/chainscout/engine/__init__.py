"""Simulated replications of a policy: interpreted, compiled, or on a GPU, on the same paths."""

from .run import AUTO, ENGINES, passes, resolved, run, trace, whole_budget, workers

__all__ = ["AUTO", "ENGINES", "passes", "resolved", "run", "trace", "whole_budget", "workers"]
