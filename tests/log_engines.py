"""One log brought to every place where it can be counted: by ``count_transitions``, or by a database itself."""

import csv
import datetime
import gzip
import io
import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pandas as pd
import psycopg
import sqlalchemy as sa
from reference_logs import Row

import chainscout as cs

NAMES = ("id", "at", "what", "part", "nth")


def columns(rows: Sequence[Row]) -> dict[str, list[Any]]:
    return {name: [row[i] for row in rows] for i, name in enumerate(NAMES)}


def objects(rows: Sequence[Row]) -> dict[str, Any]:
    """Columns of Python values: numpy must not turn 'no state' into text."""
    found = {}
    for name, values in columns(rows).items():
        found[name] = np.empty(len(values), dtype=object)
        found[name][:] = values
    return found


def write_parquet(rows: Sequence[Row], path: Path) -> str:
    with duckdb.connect() as connection:
        connection.register("rows", objects(rows))
        connection.table("rows").write_parquet(str(path))
    return str(path)


def write_csv(rows: Sequence[Row], path: Path) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(NAMES)
    writer.writerows(["" if value is None else value for value in row] for row in rows)
    data = text.getvalue().encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return str(path)


def write_json(rows: Sequence[Row], path: Path) -> str:
    lines = [json.dumps(dict(zip(NAMES, row, strict=True)), default=str) for row in rows]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return str(path)


_TYPES = {
    int: sa.BigInteger,
    str: sa.Text,
    bool: sa.Boolean,
    float: sa.Double,
    datetime.datetime: sa.DateTime,
    datetime.date: sa.Date,
}


class Database(NamedTuple):
    """A table of a database, which its own driver asks. ``types``: what ``counting_sql`` must be told."""

    dialect: str
    address: str
    table: str
    types: dict[str, str]

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        connection: Any = sqlite3.connect(self.address) if self.dialect == "sqlite" else psycopg.connect(self.address)
        with closing(connection):
            return list(connection.execute(statement).fetchall())


def write_table(
    rows: Sequence[Any], dialect: str, address: str, names: Sequence[str] = NAMES, name: str = "log"
) -> Database:
    """The rows as a table of a database: a file of SQLite, or a PostgreSQL server."""
    url = f"sqlite:///{address}" if dialect == "sqlite" else address.replace("postgresql:", "postgresql+psycopg:")
    engine = sa.create_engine(url)
    types = [next((type(value) for value in values if value is not None), int) for values in zip(*rows, strict=True)]
    table = sa.Table(name, sa.MetaData(), *(sa.Column(n, _TYPES[t]()) for n, t in zip(names, types, strict=True)))
    with engine.begin() as connection:
        table.drop(connection, checkfirst=True)
        table.create(connection)
        places = [f"c{i}" for i in range(len(names))]  # some names cannot be those of parameters
        insert = sa.insert(table).values({n: sa.bindparam(c) for n, c in zip(names, places, strict=True)})
        connection.execute(insert, [dict(zip(places, row, strict=True)) for row in rows])
    engine.dispose()
    floats = {column: "float" for column, kind in zip(names, types, strict=True) if kind is float}
    return Database(dialect, address, name, floats)


def counted(where: Any, *, states: Any = None, missing: str = "error", **options: Any) -> cs.logs.TransitionCounts:
    """The counts of a log, wherever it is."""
    if not isinstance(where, Database):
        return cs.count_transitions(where, states=states, missing=missing, **options)
    statement = cs.logs.counting_sql(where.table, dialect=where.dialect, types=where.types, **options)
    steps = {name: options[name] for name in ("lag", "sliding") if name in options}
    return cs.logs.read_counts(where.rows(statement), states=states, missing=missing, **steps)


def places(rows: Sequence[Row], directory: Path) -> Iterator[tuple[str, Any]]:
    """(what it is, ``where``) for every place of ``count_transitions`` without a cluster."""
    yield "data frame", pd.DataFrame(objects(rows))
    yield "Parquet", write_parquet(rows, directory / "log.parquet")
    half = len(rows) // 2
    if half:
        yield "CSV", [write_csv(rows[:half], directory / "a.csv.gz"), write_csv(rows[half:], directory / "b.csv.gz")]
    yield "JSON lines", write_json(rows, directory / "log.jsonl")


def databases(rows: Sequence[Row], directory: Path, postgres: str) -> Iterator[Database]:
    """The databases that count a log themselves."""
    yield write_table(rows, "sqlite", str(directory / "log.db"))
    yield write_table(rows, "postgresql", postgres)
