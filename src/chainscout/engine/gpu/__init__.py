"""The engine on a GPU: the same rules and the same paths, one thread a replication."""

from .devices import arrays, at_home, free_bytes, is_available, number, use
from .launching import PRECISIONS, run

__all__ = ["PRECISIONS", "arrays", "at_home", "free_bytes", "is_available", "number", "run", "use"]
