"""Experiments: policies × budgets × replications on simulated chains, paired and repeatable."""

from .checkpoint import forget
from .comparison import Interrupted, compare
from .results import Results

__all__ = ["Interrupted", "Results", "compare", "forget"]
