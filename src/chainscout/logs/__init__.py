"""Counts from existing logs: files, frames, a database, a Spark cluster. The same statement gives the same counts."""

from .counting import count_transitions, counting_sql, read_counts, read_paths
from .results import TransitionCounts

__all__ = ["TransitionCounts", "count_transitions", "counting_sql", "read_counts", "read_paths"]
