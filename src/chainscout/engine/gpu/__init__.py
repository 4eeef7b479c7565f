"""The engine on a GPU: the same rules and the same paths, one thread a replication."""

from .devices import at_home, is_available, number, use
from .launching import PRECISIONS, run

__all__ = ["PRECISIONS", "at_home", "is_available", "number", "run", "use"]
