"""Makes and opens the store of a study: at a path (SQLite), at a postgresql:// address, or in memory."""

import os
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

from ..errors import FileError, InputError
from ..validation import shown, unicode_text
from .memory import MemoryStore
from .protocol import Store
from .records import Content
from .sql import SqlStore, codec, statements
from .sql.database import PATIENCE, Database, taken
from .sql.postgres import Postgres
from .sql.schema import FORMAT
from .sql.sqlite import Sqlite, open_file
from .sql.sqlite_files import new_file

__all__ = ["PATIENCE", "Where", "backup", "check_place", "exists", "find", "holds_database", "make"]

#: A path, a postgresql:// address, or None for memory.
Where = str | os.PathLike[str] | None

#: The first bytes of every SQLite file.
_SQLITE = b"SQLite format 3\0"
#: The number of rows of a new study that are written at a time.
_PAGE = 10_000


def make(where: Where, content: Content) -> Store:
    """A store with a new study in it. Raises `InputError` if something exists at ``where`` already."""
    if where is None:
        return MemoryStore(content)
    database: Database
    if _is_address(where):
        database = Postgres(str(where), read_only=False)
        _fill(database, content)
    else:
        path = _path(where)
        with new_file(path) as partial:
            _fill(Sqlite(partial, read_only=False), content)
        database = Sqlite(path, read_only=False)
    return SqlStore(database, floor=content.floor)


def find(where: Where, read_only: bool = False, patience: float = PATIENCE) -> Store:
    """The store of an existing study. Raises `FileError` if there is none, or if it has another format.

    ``patience``: seconds that a writing transaction waits for its turn before it raises `Busy`.
    """
    if where is None:
        raise InputError("a study in memory cannot be opened again: create it with a path or an address")
    database: Database
    if _is_address(where):
        database = Postgres(str(where), read_only, patience)
    else:
        database = open_file(_path(where), read_only, patience)
    try:
        _check_format(database)
    except BaseException:
        database.close()
        raise
    return SqlStore(database)


def backup(where: Where, copy: Where, *, without_log: bool = False) -> None:
    """Copies a study to a new file. Other processes may write to the study meanwhile.

    ``without_log``: copies the file without its write-ahead log, for the case that the log is lost.
    """
    if _is_address(where) or _is_address(copy):
        raise InputError("a study in PostgreSQL is copied by pg_dump and pg_restore, which come with PostgreSQL")
    if where is None or copy is None:
        raise InputError("a backup is made from one file to another, and a study in memory has none")
    source = _path(where)
    database = Sqlite(source, read_only=True, alone=True) if without_log else open_file(source, True, PATIENCE)
    with closing(database):
        _check_format(database)
        database.copy_to(_path(copy))


def check_place(where: Where) -> None:
    """Raises `InputError` if ``where`` is neither a path nor an address. It does not check what is there."""
    if where is not None and not _is_address(where):
        _path(where)


def exists(where: Where) -> bool:
    """Whether there is something at ``where`` that could be opened."""
    if where is None:
        return False
    if not _is_address(where):
        try:
            return _path(where).exists()
        except OSError as error:
            raise FileError(f"{where} could not be read: {error.strerror}") from None
    with closing(Postgres(str(where), read_only=True)) as database, database.transaction(write=False):
        return database.has_tables()


def holds_database(where: Where) -> bool:
    """Whether ``where`` is the address of a database, or a SQLite file."""
    if where is None or _is_address(where):
        return where is not None
    try:
        if not Path(where).is_file():  # a pipe would make the reader wait
            return False
        with open(where, "rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except (OSError, ValueError):
        return False


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
    if "\0" in str(where):
        raise InputError(f"where must be a path, and no path has a zero in it: {shown(where)}")
    return Path(unicode_text(str(where), "where"))


def _check_format(database: Database) -> None:
    with database.transaction(write=False):
        found = database.query("SELECT format FROM study WHERE id = 1")  # every format has this column
    if not found or not isinstance(found[0][0], int):
        raise FileError(f"there is no study in {database.where}, or it is damaged: it states no format")
    if found[0][0] != FORMAT:
        raise FileError(
            f"{database.where} has the format {found[0][0]} and this version of chainscout reads only format {FORMAT}: "
            "migrations begin with the first release, and nothing was changed"
        )


def _fill(database: Database, content: Content) -> None:
    """Makes the tables and writes the study into them in one transaction, then closes the connection."""
    labels = (codec.label_list_columns(k, found) for k, found in content.label_lists.items())
    chains = (codec.chain_columns(chain, content.floor) for chain in content.chains)
    states = (
        codec.state_columns(k, x, label) for k, known in content.open_labels.items() for x, label in enumerate(known)
    )
    rows = (codec.row_columns(k, x, row) for k, found in content.rows.items() for x, row in found.items())
    priors = (codec.prior_columns(k, x, row) for k, found in content.rows.items() for x, row in found.items())
    questions = map(codec.question_columns, content.questions)
    with closing(database), database.transaction(write=True):
        database.make_alone()
        if database.has_tables():
            raise taken(f"a study in {database.where}")
        database.make_tables()
        for lines, kind in (
            (labels, statements.add_label_list),
            (chains, statements.add_chain),
            (states, statements.add_state),
            (rows, statements.add_row),
            (priors, statements.add_prior),
            (questions, statements.add_question),
        ):
            while page := list(islice(lines, _PAGE)):
                database.run_many(kind, page)
        database.run(statements.add_study, codec.study_columns(content.study))
