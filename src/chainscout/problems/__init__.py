"""Problems: named sets of chains, their files, and a catalogue of examples."""

from .catalogue import get, names
from .problem import Problem

__all__ = ["Problem", "get", "names"]
