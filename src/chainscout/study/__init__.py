"""A live, durable run: ask, tell, leases, certificates."""

from .certifying import StudyCertificate
from .lease import Lease
from .study import Study
from .views import ChainLine, EventLine, LogLine, Pace, Progress

__all__ = ["ChainLine", "EventLine", "Lease", "LogLine", "Pace", "Progress", "Study", "StudyCertificate"]
