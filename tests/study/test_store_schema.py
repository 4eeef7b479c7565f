"""The number of the format stands for the schema: whoever changes one must change the other."""

import hashlib

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from chainscout.store.sql import codec, schema
from chainscout.study import EventKind, StopReason

#: The format and a digest of all that a database is made of. A new digest needs a new number; so does other content.
KNOWN = (13, "ba671a4077eba3db")


def made() -> list[str]:
    """Every statement that makes a study's tables, and every name that a study stores."""
    statements = []
    for dialect in (sqlite.dialect(), postgresql.dialect()):
        for table in schema.metadata.sorted_tables:
            statements.append(str(CreateTable(table).compile(dialect=dialect)))
            indices = sorted(table.indexes, key=lambda index: str(index.name))
            statements += [str(CreateIndex(index).compile(dialect=dialect)) for index in indices]
    return [*statements, *sorted(EventKind), *sorted(StopReason)]


def test_the_format_is_that_of_the_schema() -> None:
    digest = hashlib.sha256("\n".join(made()).encode()).hexdigest()[:16]
    assert (schema.FORMAT, digest) == KNOWN


def test_check_sums_are_the_same_with_every_python() -> None:
    """A study may be read by a later Python than the one that wrote it."""
    values = [1, -1, 2**31, 2**62 + 1, 0.1, float("inf"), None, "", "läge", "a" * 300, b"", bytes(range(256))]
    assert codec._with_check_sum(values)[-1] == 1_858_986_332  # Python 3.6 to 3.13
