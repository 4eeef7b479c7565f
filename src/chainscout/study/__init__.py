"""A live, durable run: ask, tell, leases, certificates."""

from .certifying import StudyCertificate
from .learning import learn
from .lease import Lease
from .simulation import Simulated, simulated
from .study import Study
from .views import ChainLine, ChainProgress, EventLine, LogLine, Pace, Progress

__all__ = [
    "ChainLine",
    "ChainProgress",
    "EventLine",
    "Lease",
    "LogLine",
    "Pace",
    "Progress",
    "Simulated",
    "Study",
    "StudyCertificate",
    "learn",
    "simulated",
]
