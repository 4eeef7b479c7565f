"""Reading a problem: TOML, JSON, a CSV matrix, a directory of CSV matrices, or a model checker's file of one chain.

The formats are described in docs/problem-files.md and docs/model-checkers.md.
"""

import json
import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from .. import formats
from ..errors import FileError, InputError
from ..validation import shown
from .problem import Problem
from .schema import TEXTS, ChainEntry, ChainNotes, Errors, chain_of, check_document, place_of
from .tables import Table, read_table

#: The file of a CSV directory with everything but the matrices: order, name, description, source, initial laws.
NOTE = "problem.toml"
#: Further errors are counted and not shown.
MOST_SHOWN = 50


def load(path: str | os.PathLike[str]) -> Problem:
    """The problem at ``path``. A ``FileError`` lists all errors of the file, one on each line."""
    where = as_path(path)
    errors = Errors(str(where))
    if is_directory(where):
        problem, lines = _of_directory(where)
    elif where.suffix == ".csv":
        problem, lines = _of_tables({where.stem: _table(where, errors)}, {where.stem: errors}), errors.lines
    elif where.suffix in formats.SUFFIXES:
        problem, lines = _of_model(where, errors), errors.lines
    elif where.suffix in _PARSERS:
        problem, lines = of_document(_parsed(where, errors), errors), errors.lines
    else:
        if where.exists():
            known = f".toml, .json, .csv, {', '.join(formats.SUFFIXES[:-1])} or {formats.SUFFIXES[-1]}"
            errors.add("", f"a problem file ends in {known}, or is a directory, not {shown(where.suffix)}")
        else:
            _text(where, errors)
        problem, lines = None, errors.lines
    if problem is None or lines:
        _fail(lines)
    return problem


def as_path(path: str | os.PathLike[str]) -> Path:
    """``path`` as a Path."""
    try:
        return Path(path)
    except TypeError:
        raise InputError(f"path must be a string or a path, not {shown(path)}") from None


def is_directory(where: Path) -> bool:
    """Whether this is a directory; False for a name that no file can have."""
    try:
        return where.is_dir()
    except (OSError, ValueError):
        return False


def reason(error: OSError | ValueError) -> str:
    """Why the operating system refused."""
    return (isinstance(error, OSError) and error.strerror) or str(error)


def of_document(data: Any, errors: Errors) -> Problem | None:
    """The problem from plain data such as ``schema.document`` gives, or None if an error was added."""
    if errors.lines:
        return None
    entries = check_document(data, errors, ChainEntry)
    chains = {name: chain_of(entry, place_of("chains", name), errors) for name, entry in entries.items()}
    good = {name: chain for name, chain in chains.items() if chain}
    return Problem(good, **_texts(data)) if not errors.lines else None


def _of_model(where: Path, errors: Errors) -> Problem | None:
    """The problem of a model checker's file: one chain, named after the file."""

    def text(file: Path) -> str:
        reports = Errors(str(file))
        found = _text(file, reports)
        if reports.lines:
            raise FileError("\n".join(reports.lines))
        return found

    if where.suffix == ".umb" and not where.is_file():
        _text(where, errors)
        return None
    return Problem({where.stem: formats.read(where, text)})


def _of_directory(where: Path) -> tuple[Problem | None, list[str]]:
    note, entries, data = Errors(str(where / NOTE)), {}, {}
    try:
        files = sorted(file for file in where.iterdir() if file.suffix == ".csv" and not file.name.startswith("."))
        has_note = (where / NOTE).exists()
    except OSError as error:
        return None, [f"{where}: this directory cannot be read: {reason(error)}"]
    if not files:
        return None, [f"{where}: a directory of CSV matrices must hold at least one .csv file, and this one holds none"]
    if has_note:
        data = _parsed(where / NOTE, note)
        entries = check_document(data, note, ChainNotes) if not note.lines else {}
        stems = {file.stem: file for file in files}
        for name in entries:
            if name not in stems:
                note.add(place_of("chains", name), f"the directory has no file {name}.csv with this chain's matrix")
        for stem in stems:
            if entries and stem not in entries:
                note.add("chains", f"the directory has a file {stem}.csv, but here is no chain of this name")
        files = [stems[name] for name in entries if name in stems] or files
    reports = {file.stem: Errors(str(file)) for file in files}
    tables = {file.stem: _table(file, reports[file.stem]) for file in files}
    problem = _of_tables(tables, reports, note, entries, _texts(data) if not note.lines else {})
    return problem, [line for report in (note, *reports.values()) for line in report.lines]


def _of_tables(
    tables: dict[str, Table | None],
    reports: dict[str, Errors],
    note: Errors | None = None,
    entries: dict[str, dict[str, Any]] | None = None,
    texts: dict[str, str] | None = None,
) -> Problem | None:
    """The problem of the tables of one or more CSV files, and of the note in their directory."""
    chains = {}
    for name, table in tables.items():
        if table is None:
            continue
        report, noted = reports[name], (entries or {}).get(name) or {}
        entry = {"matrix": table.rows, "states": table.states} | noted
        if table.labels is not None and [str(state) for state in entry["states"]] != table.labels:
            report.add("", f"the labels {shown(table.labels)} are not the states that {NOTE} gives")
        place = place_of("chains", name) if noted else ""
        chain = chain_of(entry, place, note if note and noted else report, report, table.lines)
        if chain:
            chains[name] = chain
    return Problem(chains, **(texts or {})) if len(chains) == len(tables) else None


def _texts(data: dict[str, Any]) -> dict[str, str]:
    return {key: data[key] for key in TEXTS if key in data}


def _table(where: Path, errors: Errors) -> Table | None:
    text = _text(where, errors)
    return read_table(text, errors) if not errors.lines else None


def _parsed(where: Path, errors: Errors) -> Any:
    text = _text(where, errors)
    if errors.lines:
        return None
    try:
        return _PARSERS[where.suffix](text)
    except json.JSONDecodeError as error:
        errors.add(f"line {error.lineno}, column {error.colno}", f"this is not JSON: {error.msg}")
    except RecursionError:
        errors.add("", "this file is nested too deeply for a problem")
    except ValueError as error:
        # tomllib's own text ends with the line and the column.
        errors.add("", f"this is not {where.suffix[1:].upper()}: {error}")
    return None


def _text(where: Path, errors: Errors) -> str:
    text = ""
    try:
        if where.exists() and not where.is_file():
            errors.add("", "a problem is read from a file or a directory, and this is neither")
            return text
        text = where.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        errors.add("", f"this is not a text file in UTF-8: byte {error.start} cannot be one of it")
        return text
    except (OSError, ValueError) as error:
        errors.add("", f"this file cannot be read: {reason(error)}")
        return text
    if not text.strip():
        errors.add("", "this file is empty")
    return text


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"key {shown(key)} is given twice in one table")
        result[key] = value
    return result


_PARSERS: dict[str, Callable[[str], Any]] = {
    ".toml": tomllib.loads,
    ".json": lambda text: json.loads(text, object_pairs_hook=_unique),
}


def _fail(lines: list[str]) -> NoReturn:
    rest = len(lines) - MOST_SHOWN
    raise FileError("\n".join(lines if rest <= 0 else [*lines[:MOST_SHOWN], f"… and {rest} more errors"]))
