"""Problems: named sets of chains, their files, and a catalogue of examples."""

from .catalogue import describe, get, names
from .finding import find
from .problem import Problem

__all__ = ["Problem", "describe", "find", "get", "names"]
