"""The paper's claims on trial: what can be tested by simulation, with intervals and verdicts."""

from .findings import Finding, Measured
from .suite import DELTA, Effort, verify

__all__ = ["DELTA", "Effort", "Finding", "Measured", "verify"]
