"""A study is a journal: numbered entries that are only ever added, in memory, in SQLite or in PostgreSQL."""

__all__ = ()
