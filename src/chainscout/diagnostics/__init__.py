"""Is it a Markov chain at all? Checks of the assumptions of every bound. They may be looked at at any time."""

from ._check import Check, Diagnosis, Doubt, Kind, LossRate, Place, rejected_chains
from ._diagnose import diagnose

__all__ = ["Check", "Diagnosis", "Doubt", "Kind", "LossRate", "Place", "diagnose", "rejected_chains"]
