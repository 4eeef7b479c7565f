"""Experiments: policies × budgets × replications on simulated chains, paired and repeatable."""

from .checkpoint import forget
from .comparison import compare
from .results import Results
from .tasks import Interrupted

__all__ = ["Interrupted", "Results", "compare", "forget"]
