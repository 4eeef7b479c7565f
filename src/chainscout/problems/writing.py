"""Writing a problem so that it reads back equal, all or nothing (docs/problem-files.md)."""

import json
import os
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tomli_w

from .. import formats
from ..errors import FileError, InputError
from ..validation import shown
from .problem import Problem
from .reading import NOTE, as_path, is_directory, reason
from .schema import Errors, document
from .tables import read_table, table_text


def save(problem: Problem, path: str | os.PathLike[str]) -> None:
    """Writes ``problem`` to a file with a known suffix, or without a suffix to a new or empty directory."""
    where = as_path(path)
    data = document(problem)
    if where.suffix == "" or is_directory(where):
        _write_directory(where, _directory_files(problem, data))
    elif where.suffix == ".toml":
        write_file(where, _toml(data))
    elif where.suffix == ".json":
        write_file(where, _json(data))
    elif where.suffix == ".csv":
        write_file(where, _single_table(problem, data, where.stem))
    elif where.suffix in formats.SUFFIXES:
        for file, content in formats.files(_model(problem, where.suffix), where).items():
            write_file(file, content)
    else:
        raise InputError(
            f"a problem is saved as .toml, .json or .csv, as a directory (no suffix), or for a model checker as"
            f" {', '.join(formats.SUFFIXES[:-1])} or {formats.SUFFIXES[-1]}, not as {shown(where.suffix)}"
        )


def _model(problem: Problem, suffix: str) -> formats.Model:
    """The only chain of a problem as a model for model checkers."""
    if len(problem) != 1:
        raise InputError(
            f"a {suffix} file holds one chain, and this problem has {len(problem)}:"
            " Problem({name: problem[name]}) has one of them"
        )
    return formats.Model.of_chain(problem[problem.names[0]])


def toml_text(problem: Problem) -> str:
    """The text that ``save`` writes into a .toml file."""
    return _toml(document(problem))


def _toml(data: dict[str, Any]) -> str:
    """TOML with one line for each row of a matrix. tomli-w alone would write one line for each number."""
    parts = [tomli_w.dumps({key: value for key, value in data.items() if key != "chains"})]
    for name, entry in data["chains"].items():
        # An empty table gives only the header, with the name quoted if necessary.
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
    """JSON with one line for each row of a matrix."""

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


def _single_table(problem: Problem, data: dict[str, Any], stem: str) -> str:
    entry = data["chains"].get(stem, {})
    plain = data.keys() == {"format", "chains"} and data["chains"].keys() == {stem} and "initial" not in entry
    text = table_text(problem[stem], entry.get("states")) if plain else ""
    report = Errors("")
    table = read_table(text, report) if plain else None
    if table is None or report.lines or table.states != entry.get("states"):
        raise InputError(
            f"a .csv file holds one chain of the file's name, here {shown(stem)}, with a uniform initial law, labels"
            " that CSV can tell apart and nothing else, which is not this problem; save it as .toml"
        )
    return text


def _directory_files(problem: Problem, data: dict[str, Any]) -> dict[str, str]:
    files: dict[str, str] = {}
    for name, entry in data["chains"].items():
        if _unsafe(name) or f"{name}.csv".casefold() in (file.casefold() for file in files):
            raise InputError(
                f"a directory keeps each chain in a file of its name, and {shown(name)} cannot be one; save as .toml"
            )
        states = entry.get("states")
        text = files[f"{name}.csv"] = table_text(problem[name], states)
        report = Errors("")
        table = read_table(text, report)
        written = None if states is None else [str(state) for state in states]
        if table is None or report.lines or table.labels != written:
            raise InputError(f"the state labels of chain {shown(name)} cannot be written as CSV; save as .toml")
        del entry["matrix"]
        if table.states == states:
            entry.pop("states", None)
    return files | {NOTE: _toml(data)}


def _unsafe(name: str) -> bool:
    """Whether a name is not a valid file name on every system."""
    return (
        name.startswith(".")
        or name != name.strip(" .")
        or len(name.encode("utf-8", "replace")) > 200
        or any(character in '/\\:*?"<>|' or not character.isprintable() for character in name)
    )


def write_file(where: Path, content: str | bytes) -> None:
    """Writes a file, or replaces an old one. All or nothing."""
    target, temporary = _beside(where)

    def write() -> None:
        _write_durably(temporary, content)
        os.replace(temporary, target)

    _guarded(where, write, lambda: temporary.unlink(missing_ok=True))


def _write_directory(where: Path, files: dict[str, str]) -> None:
    target, temporary = _beside(where)

    def write() -> None:
        if target.is_dir() and any(target.iterdir()):
            raise FileError(f"{where}: a directory to save to must be new or empty, and this one is not")
        temporary.mkdir()
        for name, text in files.items():
            _write_durably(temporary / name, text)
        if target.is_dir():
            target.rmdir()
        temporary.rename(target)

    _guarded(where, write, lambda: shutil.rmtree(temporary, ignore_errors=True))


def _beside(where: Path) -> tuple[Path, Path]:
    """The place to write to, with links followed, and a temporary name beside it."""
    try:
        target = Path(os.path.realpath(where))
        return target, target.with_name(f".{secrets.token_hex(8)}.part")
    except ValueError as error:
        raise FileError(f"{where}: this cannot be saved here: {reason(error)}") from None


def _write_durably(where: Path, content: str | bytes) -> None:
    data = content.encode() if isinstance(content, str) else content
    with open(where, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _guarded(where: Path, write: Callable[[], None], clean: Callable[[], None]) -> None:
    """Calls ``write``; if it fails, calls ``clean``, so that nothing is left behind."""
    try:
        write()
    except UnicodeEncodeError as error:
        clean()
        raise InputError(
            f"names, labels and texts of a saved problem must be valid Unicode, not {shown(error.object)}"
        ) from None
    except OSError as error:
        clean()
        raise FileError(f"{where}: this cannot be saved here: {reason(error)}") from None
    except BaseException:
        clean()
        raise
