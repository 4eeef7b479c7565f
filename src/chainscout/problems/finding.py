"""Finds a problem by one word: a file, or the name of a built-in problem."""

from pathlib import Path

from ..errors import InputError
from ..validation import did_you_mean
from . import catalogue
from .problem import Problem


def find(text: str, folder: Path | None = None) -> Problem:
    """The built-in problem of that name, or the problem in a file; a path is relative to ``folder``."""
    name = text.partition(":")[0]
    if name in catalogue.names():
        return catalogue.get(text)
    where = Path(text) if folder is None else folder / text
    if where.exists() or where.suffix in {".toml", ".json"}:
        return Problem.load(where)
    known = catalogue.names()
    hint = did_you_mean(name, known)
    raise InputError(f"there is neither a file nor a built-in problem {text!r}{hint}; built-in are {', '.join(known)}")
