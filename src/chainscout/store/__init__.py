"""Where studies are kept: one schema for SQLite and PostgreSQL, and the same records in memory."""

from .interface import Store, Transaction
from .places import Content, Where, exists, find, make
from .records import ChainRecord, Event, Observation, RowRecord, StudyRecord

__all__ = [
    "ChainRecord",
    "Content",
    "Event",
    "Observation",
    "RowRecord",
    "Store",
    "StudyRecord",
    "Transaction",
    "Where",
    "exists",
    "find",
    "make",
]
