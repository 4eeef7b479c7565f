"""Where a study is: a path (SQLite), a postgresql:// address, or nothing (memory). Making stores and opening them."""

import os
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..validation import shown, unicode_text
from . import encoding, mapping, statements
from .database import Database, taken
from .interface import Store
from .memory import MemoryStore
from .migrations import migrate
from .postgres import Postgres
from .records import ChainRecord, RowRecord, StudyRecord
from .sql import SqlStore
from .sqlite import Sqlite, check_file, check_log, new_file

Where = str | os.PathLike[str] | None

_PAGE = 10_000


@dataclass
class Content:
    """A new study, before its first observation."""

    study: StudyRecord
    chains: Iterable[ChainRecord]
    #: Lists of labels by number.
    label_lists: Mapping[int, tuple[Hashable, ...]] = field(default_factory=dict)
    #: Chain number → the open states that are known already.
    open_labels: Mapping[int, tuple[Hashable, ...]] = field(default_factory=dict)
    #: Chain number → rows, of those that are warm-started.
    rows: Mapping[int, Mapping[int, RowRecord]] = field(default_factory=dict)
    #: Whether the policy looks at the least sampled chain.
    floor: bool = False


def make(where: Where, content: Content) -> Store:
    """A store with a new study in it."""
    if where is None:
        return MemoryStore(content.study, content.chains, content.floor, content.rows, content.open_labels)
    if _is_address(where):
        database: Database = Postgres(str(where), read_only=False)
        _fill(database, content)
    else:
        path = _path(where)
        with new_file(path) as partial:
            unnamed = Sqlite(partial, read_only=False)
            try:
                _fill(unnamed, content)
            finally:
                unnamed.close()
        database = Sqlite(path, read_only=False)
    store = SqlStore(database)
    store.floor = content.floor
    return store


def find(where: Where, read_only: bool = False) -> SqlStore:
    """The store of an existing study."""
    if where is None:
        raise InputError("a study in memory cannot be opened again: create it with a path or an address")
    database: Database
    if _is_address(where):
        database = Postgres(str(where), read_only)
    else:
        path = _path(where)
        check_file(path)
        check_log(path)
        database = Sqlite(path, read_only)
    try:
        migrate(database)
    except BaseException:
        database.close()
        raise
    return SqlStore(database)


def check_place(where: Where) -> None:
    """Refuses what is neither a path nor an address, without looking there."""
    if where is not None and not _is_address(where):
        _path(where)


def exists(where: Where) -> bool:
    """Whether there is something at ``where`` that could be opened."""
    if where is None:
        return False
    if not _is_address(where):
        return _path(where).exists()
    database = Postgres(str(where), read_only=True)
    try:
        with database.transaction(write=False):
            return database.has_tables()
    finally:
        database.close()


def _is_address(where: Any) -> bool:
    if isinstance(where, str) and where.startswith(("postgresql://", "postgres://")):
        unicode_text(where, "where")
        return True
    return False


def _path(where: Any) -> Path:
    if isinstance(where, str) and "://" in where:
        raise InputError(f"a study is kept at a path or at postgresql://…, not at {shown(where)}")
    if not isinstance(where, (str, os.PathLike)) or not str(where):
        raise InputError(f"where must be a path, a postgresql:// address or None, not {shown(where)}")
    return Path(unicode_text(str(where), "where"))


def _fill(database: Database, content: Content) -> None:
    """Makes the tables and writes the study into them, in one transaction."""
    with database.transaction(write=True):
        if database.has_tables():
            raise taken(f"a study in {database.where}")
        for statement in database.definitions():
            database.query(statement)
        for number, labels in content.label_lists.items():
            database.run(statements.add_label_list, {"number": number, "labels": encoding.pack_labels(labels)})
        for page in _pages(mapping.chain_columns(chain, content.floor) for chain in content.chains):
            database.run_many(statements.add_chain, page)
        for states in _pages(_state_lines(content)):
            database.run_many(statements.add_state, states)
        for rows in _pages(_row_lines(content)):
            database.run_many(statements.add_row, rows)
            database.run_many(statements.add_prior, rows)
        database.run(statements.add_study, mapping.study_columns(content.study))


def _state_lines(content: Content) -> Iterator[dict[str, Any]]:
    for k, known in content.open_labels.items():
        for x, label in enumerate(known):
            yield {"chain": k, "position": x, "label": encoding.pack_label(label)}


def _row_lines(content: Content) -> Iterator[dict[str, Any]]:
    for k, rows in content.rows.items():
        for x, row in rows.items():
            yield mapping.row_columns(k, x, row)


def _pages(lines: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    while page := list(islice(lines, _PAGE)):
        yield page
