"""Random numbers from counters: counter-based streams, alias tables, walks of a chain."""

from . import alias
from .alias import parts
from .splitmix import MASK, mix, sample, stream
from .walk import Walk

__all__ = ["MASK", "Walk", "alias", "mix", "parts", "sample", "stream"]
