"""The paper's claims on trial: simulations with intervals and verdicts."""

from .findings import Finding, Measured
from .suite import DELTA, Effort, verify

__all__ = ["DELTA", "Effort", "Finding", "Measured", "verify"]
