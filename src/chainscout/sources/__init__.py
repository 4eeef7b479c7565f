"""Sources of a chain's next states: functions, iterators, simulations, recordings, programs and environments."""

from .environment import Environment
from .function import Factory, Function, Restartable, Stream, convert
from .program import Program
from .recorded import Recorded, read_recorded
from .simulated import Simulated, simulated
from .source import Place, Repeating, Source

__all__ = [
    "Environment",
    "Factory",
    "Function",
    "Place",
    "Program",
    "Recorded",
    "Repeating",
    "Restartable",
    "Simulated",
    "Source",
    "Stream",
    "convert",
    "read_recorded",
    "simulated",
]
