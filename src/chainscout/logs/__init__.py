"""Counts from existing logs: files, databases, a Spark cluster, arrays. The same statement gives the same counts."""

from .counting import count_transitions, read_paths
from .results import TransitionCounts

__all__ = ["TransitionCounts", "count_transitions", "read_paths"]
