"""Files of model checkers: the PRISM language, PRISM's explicit files, Storm's DRN, UMB (docs/model-checkers.md)."""

from collections.abc import Callable
from pathlib import Path

from ..chains import MarkovChain
from . import drn, explicit, prism, umb
from .model import Model

__all__ = ["SUFFIXES", "Model", "files", "read"]

_WRITERS: dict[str, dict[str, Callable[[Model], str | bytes]]] = {
    ".prism": {".prism": prism.text},
    ".tra": {".lab": explicit.labels_text, ".tra": explicit.transitions_text},
    ".drn": {".drn": drn.text},
    ".umb": {".umb": umb.content},
}
#: The endings of the names of these files.
SUFFIXES = tuple(_WRITERS)


def files(model: Model, where: Path) -> dict[Path, bytes]:
    """The files of a model, and their content."""
    found = {}
    for suffix, write in _WRITERS[where.suffix].items():
        content = write(model)
        found[where.with_suffix(suffix)] = content.encode() if isinstance(content, str) else content
    return found


def read(where: Path, text: Callable[[Path], str]) -> MarkovChain:
    """The chain in a file. ``text`` returns the text of a file, or raises an error."""
    if where.suffix == ".umb":
        return umb.read(str(where))
    if where.suffix == ".tra":
        labels = where.with_suffix(".lab")
        return explicit.read(str(where), text(where), str(labels), text(labels) if labels.exists() else None)
    reader = prism.read if where.suffix == ".prism" else drn.read
    return reader(str(where), text(where))
