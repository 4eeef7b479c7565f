"""A live, durable run: ask, tell, leases, certificates."""

from .certifying import StudyCertificate
from .learning import learn
from .lease import Lease
from .simulation import Simulated, simulated
from .study import Study
from .views import ChainProgress, EventLine, LogLine, Progress

__all__ = [
    "ChainProgress",
    "EventLine",
    "Lease",
    "LogLine",
    "Progress",
    "Simulated",
    "Study",
    "StudyCertificate",
    "learn",
    "simulated",
]
