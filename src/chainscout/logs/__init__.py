"""Counts from logs that exist already: files, databases, a Spark cluster, arrays; one statement, one answer."""

from .counting import count_transitions, read_paths
from .results import TransitionCounts

__all__ = ["TransitionCounts", "count_transitions", "read_paths"]
