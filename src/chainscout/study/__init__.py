"""A live, durable run: ask, tell, leases, certificates."""

from ._certificate import StudyCertificate
from .browser import Browser
from .lease import Lease, LeaseStatus, Worker
from .settings import StudySettings
from .stop import StopReason
from .study import Study
from .views import ChainLine, ChainProgress, EventKind, EventLine, LeaseLine, LogLine, Pace, Progress

__all__ = [
    "Browser",
    "ChainLine",
    "ChainProgress",
    "EventKind",
    "EventLine",
    "Lease",
    "LeaseLine",
    "LeaseStatus",
    "LogLine",
    "Pace",
    "Progress",
    "StopReason",
    "Study",
    "StudyCertificate",
    "StudySettings",
    "Worker",
]
