"""Files of model checkers: the PRISM language, Storm's DRN, UMB (docs/model-checkers.md)."""

from collections.abc import Callable
from pathlib import Path

from ..chains import MarkovChain
from . import drn, prism, umb
from .model import Model

__all__ = ["READ", "WRITTEN", "Model", "content", "read"]

_WRITERS: dict[str, Callable[[Model], str | bytes]] = {".prism": prism.text, ".drn": drn.text, ".umb": umb.content}
#: The endings of the names of files that are written, and of those that are read.
WRITTEN = tuple(_WRITERS)
READ = (".drn", ".umb")


def content(model: Model, suffix: str) -> bytes:
    """The content of a file with this ending."""
    found = _WRITERS[suffix](model)
    return found.encode() if isinstance(found, str) else found


def read(where: Path, text: Callable[[Path], str]) -> MarkovChain:
    """The chain in a file. ``text`` returns the text of a file, or raises an error."""
    return umb.read(str(where)) if where.suffix == ".umb" else drn.read(str(where), text(where))
