"""Simulated replications of a policy: interpreted, compiled, or on a GPU, on the same paths."""

from .run import AUTO, ENGINES, resolved, run, trace, whole_budget, workers

__all__ = ["AUTO", "ENGINES", "resolved", "run", "trace", "whole_budget", "workers"]
