"""A live, durable run: ask, tell, leases, certificates."""

from .certificate import StudyCertificate
from .settings import StudySettings
from .study import Study
from .views import ChainProgress, LogLine, Progress, Step, StopReason
from .worker import Lease, LeaseStatus, Worker

__all__ = [
    "ChainProgress", "Lease", "LeaseStatus", "LogLine", "Progress", "Step", "StopReason", "Study", "StudyCertificate",
    "StudySettings", "Worker",
]  # fmt: skip
