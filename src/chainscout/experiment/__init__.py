"""Experiments: policies × budgets × replications on simulated chains, paired and repeatable."""

from .checkpoint import forget
from .cluster import dask_executor
from .comparison import Interrupted, compare, versions
from .results import Results

__all__ = ["Interrupted", "Results", "compare", "dask_executor", "forget", "versions"]
