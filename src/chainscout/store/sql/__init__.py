"""A study in a database: one schema, one set of statements and one transaction for SQLite and PostgreSQL."""

from .sql_store import SqlStore

__all__ = ["SqlStore"]
