"""The engine on a GPU: the same rules and the same paths, one thread per replication."""

from .compile import GpuKernel, specialised_kernel
from .devices import MEMORY_SHARE, argument, arrays, at_home, compiler, free_bytes, is_available, number, scalars, use
from .launch import LAUNCH_LANES, PRECISIONS, run
from .layout import THREADS

__all__ = [
    "LAUNCH_LANES",
    "MEMORY_SHARE",
    "PRECISIONS",
    "THREADS",
    "GpuKernel",
    "argument",
    "arrays",
    "at_home",
    "compiler",
    "free_bytes",
    "is_available",
    "number",
    "run",
    "scalars",
    "specialised_kernel",
    "use",
]
