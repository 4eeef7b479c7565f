"""Problems in files: TOML, JSON, a CSV matrix, a directory of CSV matrices (docs/problem-files.md)."""

import json
import os
import secrets
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import tomli_w

from ..checks import shown
from ..errors import ChainscoutError, FileError, InputError
from .problem import Problem
from .schema import Errors, chain_of, document, problem_of, texts
from .tables import Table, read_table, table_text

#: The file of a CSV directory that holds what the matrices do not: order, name, description, source, initial laws.
NOTE = "problem.toml"
#: More errors than these are counted, not shown.
MOST_SHOWN = 50


def load(path: str | os.PathLike[str]) -> Problem:
    """The problem at ``path``; a ``FileError`` lists everything that is wrong with it."""
    where = _path(path)
    errors = Errors(str(where))
    if _is_directory(where):
        problem = _load_directory(where, errors)
    elif where.suffix == ".csv":
        problem = _load_table(where, errors)
    elif where.suffix in _PARSERS:
        data = _parse(_read(where, errors), where.suffix, errors)
        problem = problem_of(data, errors)[0] if not errors.lines else None
    else:
        _read(where, errors)  # a missing file is the nearer fault
        errors.add("", f"a problem file ends in .toml, .json or .csv, or is a directory, not {shown(where.suffix)}")
        problem = None
    if problem is None or errors.lines:
        _fail(errors.lines)
    return problem


def save(problem: Problem, path: str | os.PathLike[str]) -> None:
    """Write ``problem`` so that ``load`` gives an equal one, all or nothing."""
    where = _path(path)
    if where.suffix == "" or _is_directory(where):
        _write_directory(where, _directory_files(problem, where))
        return
    if where.suffix not in (".toml", ".json", ".csv"):
        raise InputError(
            f"a problem is saved as .toml, .json or .csv, or as a directory (no suffix), not {shown(where.suffix)}"
        )
    texts = {".toml": lambda: _toml(document(problem)), ".json": lambda: _json(document(problem))}
    text = texts.get(where.suffix, lambda: _single_table(problem, where))()
    _write(where, text)


# -- reading


def _load_table(where: Path, errors: Errors) -> Problem | None:
    table = read_table(_read(where, errors), errors) if not errors.lines else None
    return _problem_of_tables({where.stem: table}, {}, {}, {where.stem: errors}) if table else None


def _load_directory(where: Path, errors: Errors) -> Problem | None:
    try:
        files = sorted(file for file in where.iterdir() if file.suffix == ".csv" and not file.name.startswith("."))
        has_note = (where / NOTE).exists()
    except OSError as error:
        errors.add("", f"this directory cannot be read: {error.strerror}")
        return None
    note = Errors(str(where / NOTE))
    data: Any = {}
    notes: dict[str, dict[str, Any]] = {}
    if has_note:
        data = _parse(_read(where / NOTE, note), ".toml", note)
        notes = problem_of(data, note, matrices=False)[1] if not note.lines else {}
        stems = [file.stem for file in files]
        for name in notes:
            if name not in stems:
                note.add(f"chains.{name}", f"the directory has no file {name}.csv with this chain's matrix")
        for stem in stems:
            if not note.lines and stem not in notes:
                note.add("chains", f"the directory has a file {stem}.csv, but there is no chain of this name here")
        files = [where / f"{name}.csv" for name in notes if name in stems] or files
    elif not files:
        errors.add("", f"a directory of CSV matrices must hold at least one .csv file or a {NOTE}, and this one does not")
    reports = {file.stem: Errors(str(file)) for file in files}
    tables: dict[str, Table] = {}
    for file in files:
        report = reports[file.stem]
        table = read_table(_read(file, report), report) if not report.lines else None
        if table:
            tables[file.stem] = table
    problem = _problem_of_tables(tables, notes, texts(data) if isinstance(data, dict) else {}, reports)
    for report in (note, *reports.values()):
        errors.lines += report.lines
    return problem


def _problem_of_tables(
    tables: dict[str, Table], notes: dict[str, dict[str, Any]], head: dict[str, str], reports: dict[str, Errors]
) -> Problem | None:
    chains = {}
    for name, table in tables.items():
        entry = {"matrix": table.rows, "states": table.states} | notes.get(name, {})
        if table.labels is not None and [str(state) for state in entry["states"]] != table.labels:
            reports[name].add("", f"its labels {shown(table.labels)} are not the states of {NOTE}")
        chains[name] = chain_of(entry, reports[name], name, table.lines)
    good = {name: chain for name, chain in chains.items() if chain}
    return Problem(good, **head) if good and len(good) == len(chains) else None


def _read(where: Path, errors: Errors) -> str:
    try:
        if where.exists() and not where.is_file():
            errors.add("", "a problem is read from a file or a directory, and this is neither")
            return ""
        text = where.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        errors.add("", f"this is not a text file in UTF-8 (byte {error.start})")
        return ""
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        errors.add("", f"this file cannot be read: {reason}")
        return ""
    if not text.strip():
        errors.add("", "this file is empty")
    return text


def _parse(text: str, suffix: str, errors: Errors) -> Any:
    if errors.lines:
        return None
    try:
        return _PARSERS[suffix](text)
    except json.JSONDecodeError as error:
        errors.add(f"line {error.lineno}, column {error.colno}", f"this is not JSON: {error.msg}")
    except tomllib.TOMLDecodeError as error:
        # The parser's own text ends with the line and the column.
        errors.add("", f"this is not TOML: {error}")
    except RecursionError:
        errors.add("", "this file is nested too deeply for a problem")
    except ValueError as error:
        errors.add("", f"this is not {suffix[1:].upper()}: {error}")
    return None


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
    shown_lines = lines if rest <= 0 else [*lines[:MOST_SHOWN], f"… and {rest} more errors"]
    raise FileError("\n".join(shown_lines))


# -- writing


def _toml(data: dict[str, Any]) -> str:
    """TOML with one line a matrix row; tomli-w alone would give one line a number."""
    head = {key: value for key, value in data.items() if key != "chains"}
    parts = [tomli_w.dumps(head)]
    for name, entry in data["chains"].items():
        # An empty table gives just the header, with the name quoted as TOML needs it.
        parts.append("\n" + tomli_w.dumps({"chains": {name: {}}}))
        for key, value in entry.items():
            if key == "matrix":
                rows = "".join(f"  [{', '.join(map(repr, row))}],\n" for row in value)
                parts.append(f"matrix = [\n{rows}]\n")
            else:
                items = [tomli_w.dumps({"v": item}).removeprefix("v = ").rstrip("\n") for item in value]
                parts.append(f"{key} = [{', '.join(items)}]\n")
    return "".join(parts)


def _json(data: dict[str, Any]) -> str:
    """JSON with one line a matrix row."""

    def dump(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False)

    head = [f"  {dump(key)}: {dump(value)}" for key, value in data.items() if key != "chains"]
    chains = []
    for name, entry in data["chains"].items():
        lines = [f"      {dump(key)}: {dump(value)}" for key, value in entry.items() if key != "matrix"]
        rows = ",\n".join(f"        {dump(row)}" for row in entry["matrix"])
        lines.append(f'      "matrix": [\n{rows}\n      ]')
        chains.append(f"    {dump(name)}: {{\n" + ",\n".join(lines) + "\n    }")
    return "{\n" + ",\n".join(head) + ',\n  "chains": {\n' + ",\n".join(chains) + "\n  }\n}\n"


def _single_table(problem: Problem, where: Path) -> str:
    data = document(problem)
    entry = data["chains"].get(where.stem, {})
    text = table_text(problem[where.stem], entry.get("states")) if entry else ""
    table = read_table(text, Errors("")) if entry else None
    if len(problem) > 1 or len(data) > 2 or table is None or "initial" in entry or table.states != entry.get("states"):
        raise InputError(
            f"a .csv file holds one chain of the file's name, {shown(where.stem)}, with a uniform initial law, labels"
            " that CSV can tell apart and nothing else, which is not this problem; save it as .toml"
        )
    return text


def _directory_files(problem: Problem, where: Path) -> dict[str, str]:
    data = document(problem)
    files = {}
    for name, entry in data["chains"].items():
        file = f"{name}.csv"
        if _unsafe(name) or file.lower() in (known.lower() for known in files):
            raise InputError(
                f"a directory keeps each chain in a file of its name, and {shown(name)} cannot be one; save as .toml"
            )
        labels = entry.get("states")
        files[file] = table_text(problem[name], labels)
        table = read_table(files[file], Errors(""))
        if table is None or table.labels != (None if labels is None else [str(label) for label in labels]):
            raise InputError(f"the state labels of chain {shown(name)} cannot be written as CSV; save as .toml")
        del entry["matrix"]
        if table.states == labels:
            entry.pop("states", None)
    return {NOTE: _toml(data)} | files


def _unsafe(name: str) -> bool:
    """Whether a name is not a plain file name everywhere."""
    forbidden = set('/\\:*?"<>|')
    return (
        name.startswith(".")
        or name != name.strip(" .")
        or len(name.encode("utf-8", "replace")) > 200
        or any(character in forbidden or not character.isprintable() for character in name)
    )


def _write(where: Path, text: str) -> None:
    target = Path(os.path.realpath(where))
    temporary = target.with_name(f".{target.name[:50]}.{secrets.token_hex(4)}")

    def write() -> None:
        _write_durably(temporary, text)
        os.replace(temporary, target)

    _guarded(where, write, lambda: temporary.unlink(missing_ok=True))


def _write_directory(where: Path, files: dict[str, str]) -> None:
    target = Path(os.path.realpath(where))
    temporary = target.with_name(f".{target.name[:50]}.{secrets.token_hex(4)}")

    def write() -> None:
        if target.is_dir() and any(target.iterdir()):
            raise InputError(f"a directory to save to must be new or empty, and {where} is not empty")
        temporary.mkdir()
        for name, text in files.items():
            _write_durably(temporary / name, text)
        if target.is_dir():
            target.rmdir()
        temporary.rename(target)

    _guarded(where, write, lambda: shutil.rmtree(temporary, ignore_errors=True))


def _write_durably(where: Path, text: str) -> None:
    with open(where, "x", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _guarded(where: Path, write: Callable[[], None], clean: Callable[[], None]) -> None:
    """Write, and leave nothing behind when that fails."""
    try:
        write()
    except BaseException as error:
        clean()
        if isinstance(error, UnicodeEncodeError):
            raise InputError(
                f"names, labels and texts of a problem must be valid Unicode, not {shown(error.object)}"
            ) from None
        if isinstance(error, ChainscoutError) or not isinstance(error, OSError | ValueError):
            raise
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise FileError(f"{where}: the problem cannot be saved here: {reason}") from None


def _path(path: str | os.PathLike[str]) -> Path:
    try:
        return Path(path)
    except TypeError:
        raise InputError(f"path must be a string or a path, not {shown(path)}") from None


def _is_directory(where: Path) -> bool:
    try:
        return where.is_dir()
    except (OSError, ValueError):  # a name that no file can have
        return False
