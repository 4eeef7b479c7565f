"""Writing a problem so that it reads back equal, all or nothing (docs/problem-files.md)."""

import json
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any

import tomli_w

from .. import formats
from ..errors import FileError, InputError
from ..validation import shown
from .problem import Problem
from .reading import as_path, reason
from .schema import document


def save(problem: Problem, path: str | os.PathLike[str]) -> None:
    """Writes ``problem`` to a file with a known suffix."""
    where = as_path(path)
    data = document(problem)
    if where.suffix == ".toml":
        write_file(where, _toml(data))
    elif where.suffix == ".json":
        write_file(where, _json(data))
    elif where.suffix in formats.WRITTEN:
        write_file(where, formats.content(_model(problem, where.suffix), where.suffix))
    else:
        raise InputError(
            f"a problem is saved as .toml or .json, or for a model checker as {', '.join(formats.WRITTEN[:-1])} or"
            f" {formats.WRITTEN[-1]}, not as {shown(where.suffix)}"
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


def write_file(where: Path, content: str | bytes) -> None:
    """Writes a file, or replaces an old one. All or nothing: a temporary file beside it is filled and then renamed."""
    try:
        target = Path(os.path.realpath(where))  # follows links
    except ValueError as error:
        raise FileError(f"{where}: this cannot be saved here: {reason(error)}") from None
    temporary = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        data = content.encode() if isinstance(content, str) else content
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except UnicodeEncodeError as error:
        raise InputError(
            f"names, labels and texts of a saved problem must be valid Unicode, not {shown(error.object)}"
        ) from None
    except OSError as error:
        raise FileError(f"{where}: this cannot be saved here: {reason(error)}") from None
    finally:
        with suppress(OSError):  # after a failure
            temporary.unlink(missing_ok=True)
