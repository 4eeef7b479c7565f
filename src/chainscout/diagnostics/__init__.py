"""Is it a Markov chain at all? Checks of the assumptions of every bound. They may be looked at at any time."""

from ._check import Check, Diagnosis, Kind, LossRate, Place
from ._diagnose import diagnose, rejected_chains

__all__ = ["Check", "Diagnosis", "Kind", "LossRate", "Place", "diagnose", "rejected_chains"]
