"""Simulated replications of a policy: interpreted, compiled, or on a GPU, on the same paths."""

from .options import AUTO, ENGINES, Options, check, passes, resolved, whole_budget, workers
from .run import run, trace

__all__ = [
    "AUTO",
    "ENGINES",
    "Options",
    "check",
    "passes",
    "resolved",
    "run",
    "trace",
    "whole_budget",
    "workers",
]
