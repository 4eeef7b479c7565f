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
from .request import CountRequest, Kind

#: The end of a file's name → its format. The end of a compression may follow.
FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
}
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
            self.kinds = relation_kinds(relation)
            if self.format == "csv" and self.kinds.keys() >= set(request.columns):
                # CSV has no types, and '007' is not 7. So labels are read as they are written.
                labels = [request.chain, request.state, *([request.path] if request.path else [])]
                types = {name: "VARCHAR" for name in labels if name not in (request.time, request.order)}
                relation = self._relation(list(paths), types)
                self.kinds = relation_kinds(relation)
            elif self.format == "json":
                relation = self._as_written(relation, list(paths), request)
            request.check(self.kinds, text_times=True)
            relation.create_view("log")

    def _relation(self, paths: list[str], types: dict[str, str] | None = None) -> duckdb.DuckDBPyRelation:
        """The files as one relation; ``types``: the types of CSV's columns, or of all JSON columns that are read."""
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

    def _as_written(
        self, relation: duckdb.DuckDBPyRelation, paths: list[str], request: CountRequest
    ) -> duckdb.DuckDBPyRelation:
        """JSON labels that look like dates or UUIDs, or have no common type, are text."""
        if not self.kinds.keys() >= set(request.columns):
            return relation
        types = {}
        for name, kind in zip(relation.columns, relation.types, strict=True):
            if name in request.columns:
                guessed = self.kinds[name] in (Kind.DATE, Kind.MOMENT, Kind.OTHER) or str(kind) == "JSON"
                ordered = name in (request.time, request.order) and kind.id != "null"
                whole = "BIGINT" if kind.id == "hugeint" else str(kind)
                types[name] = "VARCHAR" if guessed and not ordered else whole
        relation = self._relation(paths, types)
        self.kinds = relation_kinds(relation)
        return relation


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
