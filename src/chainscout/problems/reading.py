"""Reading a problem: TOML, JSON, or a model checker's file of one chain.

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
from .schema import TEXTS, Errors, chain_of, check_document, place_of

#: Further errors are counted and not shown.
MOST_SHOWN = 50


def load(path: str | os.PathLike[str]) -> Problem:
    """The problem at ``path``. A ``FileError`` lists all errors of the file, one on each line."""
    where = as_path(path)
    errors = Errors(str(where))
    problem = None
    if where.suffix in formats.READ:
        problem = _of_model(where, errors)
    elif where.suffix in _PARSERS:
        problem = of_document(_parsed(where, errors), errors)
    elif where.exists():
        known = f".toml, .json, {', '.join(formats.READ[:-1])} or {formats.READ[-1]}"
        errors.add("", f"a problem file ends in {known}, not {shown(where.suffix)}")
    else:
        _text(where, errors)
    if problem is None or errors.lines:
        _fail(errors.lines)
    return problem


def as_path(path: str | os.PathLike[str]) -> Path:
    """``path`` as a Path."""
    try:
        return Path(path)
    except TypeError:
        raise InputError(f"path must be a string or a path, not {shown(path)}") from None


def reason(error: OSError | ValueError) -> str:
    """Why the operating system refused."""
    return (isinstance(error, OSError) and error.strerror) or str(error)


def of_document(data: Any, errors: Errors) -> Problem | None:
    """The problem from plain data such as ``schema.document`` gives, or None if an error was added."""
    if errors.lines:
        return None
    entries = check_document(data, errors)
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


def _texts(data: dict[str, Any]) -> dict[str, str]:
    return {key: data[key] for key in TEXTS if key in data}


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
            errors.add("", "a problem is read from a file, and this is none")
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
