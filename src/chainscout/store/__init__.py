"""Storage of studies: one schema for SQLite and PostgreSQL, and the same records in memory."""

from .memory import MemoryStore
from .opening import PATIENCE, Where, backup, check_place, exists, find, holds_database, make
from .protocol import ORDERS, Store, Transaction
from .records import (
    AnswerLine,
    ChainRecord,
    Content,
    Event,
    HistoryLine,
    Observation,
    Outline,
    PathRecord,
    Prefix,
    QuestionRecord,
    RowRecord,
    RowView,
    StudyRecord,
    Twins,
    plug_in_variability,
)

__all__ = [
    "ORDERS",
    "PATIENCE",
    "AnswerLine",
    "ChainRecord",
    "Content",
    "Event",
    "HistoryLine",
    "MemoryStore",
    "Observation",
    "Outline",
    "PathRecord",
    "Prefix",
    "QuestionRecord",
    "RowRecord",
    "RowView",
    "Store",
    "StudyRecord",
    "Transaction",
    "Twins",
    "Where",
    "backup",
    "check_place",
    "exists",
    "find",
    "holds_database",
    "make",
    "plug_in_variability",
]
