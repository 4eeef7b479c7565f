"""A live, durable run: ask, tell, leases, certificates."""

from ._certificate import StudyCertificate
from ._lease import Lease, LeaseStatus, Worker
from ._plan import AnswerPlan, StudyPlan, plan
from .browser import Browser
from .settings import StudySettings
from .study import Study
from .views import (
    Aside,
    ChainLine,
    ChainProgress,
    EventKind,
    EventLine,
    LeaseLine,
    LogLine,
    Pace,
    Progress,
    QuestionLine,
    Step,
    StopReason,
)

__all__ = [
    "AnswerPlan",
    "Aside",
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
    "QuestionLine",
    "Step",
    "StopReason",
    "Study",
    "StudyCertificate",
    "StudyPlan",
    "StudySettings",
    "Worker",
    "plan",
]
