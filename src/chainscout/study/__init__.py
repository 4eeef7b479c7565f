"""A live, durable run: ask, tell, leases, certificates."""

from .certifying import StudyCertificate
from .lease import Lease
from .study import Study
from .views import EventLine, LogLine, Progress

__all__ = ["EventLine", "Lease", "LogLine", "Progress", "Study", "StudyCertificate"]
