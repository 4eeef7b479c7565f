"""One log brought to every place that ``count_transitions`` can count it at."""

import csv
import datetime
import gzip
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import sqlalchemy as sa
from reference_logs import Row

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


def write_table(rows: Sequence[Row], address: str, name: str = "log") -> str:
    """The rows as a table of a database; returns its name."""
    address = address.replace("postgresql://", "postgresql+psycopg://")
    engine = sa.create_engine(address)
    kinds = [
        _TYPES[next((type(value) for value in values if value is not None), int)] for values in columns(rows).values()
    ]
    table = sa.Table(name, sa.MetaData(), *(sa.Column(n, kind()) for n, kind in zip(NAMES, kinds, strict=True)))
    with engine.begin() as connection:
        table.drop(connection, checkfirst=True)
        table.create(connection)
        if rows:
            connection.execute(sa.insert(table), [dict(zip(NAMES, row, strict=True)) for row in rows])
    engine.dispose()
    return name


def places(rows: Sequence[Row], directory: Path, postgres: str) -> Iterator[tuple[str, Any, str | None]]:
    """(what it is, ``where``, ``table``) for every place there is on one machine without a cluster."""
    yield "arrays", objects(rows), None
    yield "data frame", pd.DataFrame(objects(rows)), None
    yield "Parquet", write_parquet(rows, directory / "log.parquet"), None
    half = len(rows) // 2
    if half:
        parts = [write_csv(rows[:half], directory / "a.csv.gz"), write_csv(rows[half:], directory / "b.csv.gz")]
        yield "CSV", parts, None
    yield "JSON lines", write_json(rows, directory / "log.jsonl"), None
    sqlite = f"sqlite:///{directory / 'log.db'}"
    yield "SQLite", sqlite, write_table(rows, sqlite)
    yield "PostgreSQL", postgres, write_table(rows, postgres)
