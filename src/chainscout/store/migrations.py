"""From older formats to the present one: each step is a function over the open transaction."""

from collections.abc import Callable

from ..errors import FileError
from . import encoding, statements
from .database import Database
from .schema import FORMAT


def _count_changes(database: Database) -> None:
    """Format 2 counts the transactions that change a study, so that what was read of it can be kept."""
    database.query("ALTER TABLE study ADD COLUMN changes BIGINT NOT NULL DEFAULT 0")


def _count_closed(database: Database) -> None:
    """Format 3 keeps over how many entries δ is split where states are known; that was summed at every opening."""
    for column in ("closed", "closed_pairs"):
        database.query(f"ALTER TABLE study ADD COLUMN {column} BIGINT NOT NULL DEFAULT 0")
    database.query(
        "UPDATE study SET closed = (SELECT COUNT(*) FROM chain WHERE open = 0), "
        "closed_pairs = (SELECT COALESCE(SUM(size * size), 0) FROM chain WHERE open = 0)"
    )


def _order_those_aside(database: Database) -> None:
    """Format 3 finds what is known of the chains set aside without looking at all chains.

    Older ones left their certificates as they were, however old: such a chain is stale like any other.
    """
    database.query("CREATE INDEX chain_aside ON chain (certificate DESC) WHERE aside = 1 AND certified >= transitions")
    database.query("DROP INDEX chain_stale")
    database.query("CREATE INDEX chain_stale ON chain (aside, number) WHERE certified < transitions")


def _format_3(database: Database) -> None:
    """Both at once."""
    _order_those_aside(database)
    _count_closed(database)


#: version → what makes a study of that version one of the next.
STEPS: dict[int, Callable[[Database], None]] = {1: _count_changes, 2: _format_3}


def stored_format(database: Database) -> int:
    """The format that the study was written in; this much every format has."""
    found = database.query("SELECT format FROM study WHERE id = 1")
    if not found or not isinstance(found[0][0], int):
        raise FileError(f"there is no study in {database.where}, or it is damaged: it states no format")
    return int(found[0][0])


def migrate(database: Database, newest: int = FORMAT) -> None:
    """Brings the study up to the newest format, all at once or not at all."""
    with database.transaction(write=False):
        version = stored_format(database)
    if version > newest:
        raise FileError(
            f"{database.where} was written by a newer chainscout: its format is {version}, and this one reads up to "
            f"format {newest}"
        )
    if version == newest:
        return
    if database.read_only:
        raise FileError(
            f"{database.where} has the older format {version}, and was opened to be read only: whatever writes to it "
            "(tell or learn on the command line, Study.open in Python) brings it up to date first"
        )
    with database.transaction(write=True):
        for step in range(stored_format(database), newest):
            if step not in STEPS:
                raise FileError(f"{database.where} has the format {step}, which this chainscout cannot read")
            STEPS[step](database)
            database.query(f"UPDATE study SET format = {step + 1} WHERE id = 1")
        values = database.run(statements.get_study).fetchone()
        fresh = encoding.check_sum(values[:-1])
        database.query(f"UPDATE study SET check_sum = {fresh} WHERE id = 1")
