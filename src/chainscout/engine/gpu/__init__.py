"""The engine on a GPU: the same rules and the same paths, one thread a replication."""

from .devices import MEMORY_SHARE, arrays, at_home, free_bytes, is_available, number, use
from .launching import LAUNCH_LANES, PRECISIONS, run

__all__ = [
    "LAUNCH_LANES",
    "MEMORY_SHARE",
    "PRECISIONS",
    "arrays",
    "at_home",
    "free_bytes",
    "is_available",
    "number",
    "run",
    "use",
]
