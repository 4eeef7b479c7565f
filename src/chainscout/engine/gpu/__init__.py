"""The engine on a GPU: the same rules and the same paths, one thread a replication."""

from .launching import PRECISIONS, check, is_available, run

__all__ = ["PRECISIONS", "check", "is_available", "run"]
