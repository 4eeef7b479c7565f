"""Files in Parquet, CSV or JSON lines, one or many, compressed or not. An embedded DuckDB counts them."""

import glob
import gzip
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb

from ..errors import InputError, LogError
from ..validation import shown
from ._spool import Spool, guarded
from ._tables import Relation, relation_kinds
from .request import CountRequest, Kind, kind_named

_ENDS = {"parquet": (".parquet", ".pq"), "csv": (".csv", ".tsv"), "json": (".jsonl", ".ndjson", ".json")}
#: The end of a file's name → its format. The end of a compression may follow.
FORMATS = {end: name for name, ends in _ENDS.items() for end in ends}
COMPRESSED = (".gz", ".zst")


class Files(Relation):
    """One log in one or more files of one format."""

    def __init__(self, spool: Spool, paths: Sequence[str], request: CountRequest) -> None:
        super().__init__(spool, shown(paths[0]) if len(paths) == 1 else f"{len(paths)} files from {shown(paths[0])} on")
        formats = {path: file_format(path) for path in paths}
        if len(set(formats.values())) > 1:
            raise InputError(f"all files of a log must have one format, not {shown(formats)}")
        self.format = formats[paths[0]]
        self.untyped = self.format == "csv"
        for path in paths:
            if not _matching(path):
                raise LogError(f"there is no file {shown(path)}")
            if path.lower().endswith(".gz"):
                _check_gzip(path)
        with guarded(self.name):
            relation = self._relation(list(paths))
            request.need_columns(relation.columns)
            if self.format != "parquet":
                relation = self._relation(list(paths), self._types(relation, request))
            self.kinds = relation_kinds(relation)
            request.check(self.kinds, text_times=True)
            relation.create_view("log")

    def _relation(self, paths: list[str], types: dict[str, str] | None = None) -> duckdb.DuckDBPyRelation:
        """The files as one relation; ``types``: those that are not guessed."""
        connection: Any = self.spool.connection
        if self.format == "parquet":
            relation: duckdb.DuckDBPyRelation = connection.read_parquet(paths)
        elif self.format == "json":
            relation = connection.read_json(paths, format="newline_delimited", columns=types)
        else:
            # Quotes are set and not guessed, because the first quoted field may be far down the file.
            form = {"header": True, "skiprows": 0, "quotechar": '"', "escapechar": '"', "strict_mode": True}
            relation = connection.read_csv(paths, dtype=types, **form)
        return relation

    def _types(self, relation: duckdb.DuckDBPyRelation, request: CountRequest) -> dict[str, str]:
        """The types of CSV's labels, or of all JSON columns that are read."""
        ordered = (request.time, request.order)
        if self.format == "csv":  # it has no types, and '007' is not 7: labels are read as they are written
            return {name: "VARCHAR" for name in request.columns if name not in ordered}
        types = {}
        for name, kind in zip(relation.columns, relation.types, strict=True):
            if name in request.columns:
                # Labels that look like dates or UUIDs, or have no common type, are text.
                guessed = kind_named(kind.id) in (Kind.DATE, Kind.MOMENT, Kind.OTHER) or str(kind) == "JSON"
                whole = "BIGINT" if kind.id == "hugeint" else str(kind)
                types[name] = "VARCHAR" if guessed and (name not in ordered or kind.id == "null") else whole
        return types


def file_format(path: str) -> str:
    """The format of a file, from its name."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    if not suffixes or suffixes[-1] not in FORMATS:
        raise InputError(
            f"a log's file must end in one of {', '.join(FORMATS)}, possibly followed by {' or '.join(COMPRESSED)},"
            f" not {shown(os.path.basename(path))}; a directory is given as a pattern such as 'logs/*.parquet'"
        )
    return FORMATS[suffixes[-1]]


def _matching(pattern: str) -> list[str]:
    """The files that a path or a pattern names."""
    return [pattern] if os.path.exists(pattern) else glob.glob(pattern, recursive=True)


def _check_gzip(pattern: str) -> None:
    """Reads the files to their ends, where their checksums are, because DuckDB does not compare them."""
    for path in _matching(pattern):
        try:
            with gzip.open(path) as file:
                while file.read(1 << 20):
                    pass
        except (OSError, EOFError, zlib.error) as error:
            raise LogError(f"{shown(path)}: this file is damaged, and nothing was counted: {error}") from None
