"""Where the next state comes from: callables, iterators, recordings, programs and environments."""

from .environment import Environment
from .program import Program
from .recorded import Recorded, read_recorded
from .source import Repeating, Restartable, Source, convert

__all__ = ["Environment", "Program", "Recorded", "Repeating", "Restartable", "Source", "convert", "read_recorded"]
