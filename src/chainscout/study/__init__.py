"""A live, durable run: ask, tell, leases, certificates."""

from ._certificate import StudyCertificate
from .browser import Browser
from .lease import Lease, LeaseStatus
from .settings import StudySettings
from .stop import StopReason
from .study import Study
from .views import ChainLine, ChainProgress, EventKind, EventLine, LogLine, Pace, Progress

__all__ = [
    "Browser",
    "ChainLine",
    "ChainProgress",
    "EventKind",
    "EventLine",
    "Lease",
    "LeaseStatus",
    "LogLine",
    "Pace",
    "Progress",
    "StopReason",
    "Study",
    "StudyCertificate",
    "StudySettings",
]
