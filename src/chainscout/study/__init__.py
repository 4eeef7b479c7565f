"""A live, durable run: ask, tell, leases, certificates."""

from .certificate import OpenStep, StudyCertificate
from .look import Look
from .planning import AnswerPlan, StudyPlan, plan
from .settings import StudySettings
from .study import Study
from .views import (
    AnswerLine,
    Aside,
    ChainLine,
    ChainProgress,
    EventKind,
    EventLine,
    HistoryLine,
    LeaseLine,
    LogLine,
    Pace,
    Progress,
    QuestionLine,
    Restarted,
    Step,
    StopReason,
)  # fmt: skip
from .worker import Lease, LeaseStatus, Worker

__all__ = [
    "AnswerLine", "AnswerPlan", "Aside", "ChainLine", "ChainProgress", "EventKind", "EventLine", "HistoryLine", "Lease",
    "LeaseLine", "LeaseStatus", "LogLine", "Look", "OpenStep", "Pace", "Progress", "QuestionLine", "Restarted", "Step",
    "StopReason", "Study", "StudyCertificate", "StudyPlan", "StudySettings", "Worker", "plan",
]  # fmt: skip
