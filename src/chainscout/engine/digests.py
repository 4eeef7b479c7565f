"""A digest of all that a function can reach: its code, the functions that it calls, and the values that they name.

It changes with a constant, a default, a table or a helper's helper, and not with a comment, a place in a file or a name
of a local variable. Processes that run the same version of Python agree on it, and nothing is compiled for it.
"""

import hashlib
import re
import sys
from collections.abc import Iterator, Mapping, Set
from inspect import getattr_static
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from ..checks import shown

#: Functions of this package may have names bound for them, and count in unsigned words.
ENGINE = __name__.rpartition(".")[0]

#: Libraries whose functions numba knows itself; they are known by their names.
KNOWN = {"math", "numpy", "numba", "builtins"}


def digest(thing: Any, names: Mapping[str, Any] | None = None) -> bytes:
    """The digest of a function or a value; in the engine's own functions ``names`` have these values."""
    return _Walk(names or {}).value(thing, frozenset())


def is_own(function: FunctionType) -> bool:
    """Whether a function is the engine's."""
    module = function.__module__ or ""  # a rule made by exec may have none
    return module == ENGINE or module.startswith(ENGINE + ".")


def is_known(module: ModuleType) -> bool:
    """Whether numba knows a module itself."""
    return module.__name__.partition(".")[0] in KNOWN


def mentioned(code: CodeType) -> Iterator[str]:
    """The names of globals and attributes in a function's code."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from mentioned(constant)


class _Walk:
    """Functions and values that reach each other, each looked at once."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self.names = names
        self.known: dict[FunctionType, bytes] = {}
        self.open: set[int] = set()

    def value(self, value: Any, names: frozenset[str]) -> bytes:
        """The digest of a value; of a module, of what ``names`` mention in it."""
        if isinstance(value, FunctionType):
            return self._function(value)
        if id(value) in self.open:
            return _hash("again")
        self.open.add(id(value))
        try:
            return self._other(value, names)
        finally:
            self.open.remove(id(value))

    def _function(self, function: FunctionType) -> bytes:
        if function not in self.known:
            self.known[function] = _hash("again")  # what it is to functions that it calls
            reached = frozenset(mentioned(function.__code__))
            bound = self.names if is_own(function) else {}
            values = [function.__defaults__, function.__kwdefaults__]
            values += [bound[name] if name in bound else function.__globals__.get(name) for name in sorted(reached)]
            values += [_content(cell) for cell in function.__closure__ or ()]
            parts = [self.value(function.__code__, reached), *(self.value(value, reached) for value in values)]
            self.known[function] = _hash("function", *parts)
        return self.known[function]

    def _other(self, value: Any, names: frozenset[str]) -> bytes:
        if isinstance(value, CodeType):
            return _hash("code", value.co_code, repr(value.co_names), self.value(value.co_consts, names))
        if isinstance(value, ModuleType):
            found = () if is_known(value) else sorted(name for name in names if hasattr(value, name))
            reached = (self.value(getattr(value, name), names) for name in found)
            return _hash("module", value.__name__, repr(found), *reached)
        if isinstance(value, np.ndarray) and value.dtype != object:  # repr would leave out the middle of a long one
            return _hash("array", value.dtype.str, repr(value.shape), value.tobytes())
        if isinstance(value, (tuple, list)):
            return _hash(type(value).__name__, *(self.value(each, names) for each in value))
        if isinstance(value, Set):  # the order is another in every process
            return _hash("set", *sorted(self.value(each, names) for each in value))
        if isinstance(value, Mapping):
            return _hash("mapping", *(self.value(pair, names) for pair in value.items()))
        if isinstance(value, MethodType):
            return _hash("method", self.value(value.__func__, names), self.value(value.__self__, names))
        for inner in ("py_func", "__wrapped__"):  # of numba's decorators and of caches
            if isinstance(function := getattr(value, inner, None), FunctionType):
                return _hash("wrapped", self.value(function, names))
        parts = [self.value(part, names) for part in _inside(value) if part is not None]
        return _hash("value", _ADDRESS.sub("", shown(value, sys.maxsize)), *parts)


def _content(cell: CellType) -> Any:
    """What a closure holds; a variable that has no value as yet is as good as None."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _inside(value: Any) -> tuple[Any, ...]:
    """What an object is made of, as it would tell a copy; and what happens when it is called."""
    if isinstance(value, type):
        return ()
    try:
        state = value.__getstate__()
    except Exception:  # whatever an object that cannot be copied raises
        state = None
    called = getattr_static(type(value), "__call__", None)
    return state, called if isinstance(called, FunctionType) else None


#: Where an object happens to be, in its repr.
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def _hash(*parts: str | bytes) -> bytes:
    found = hashlib.sha256()
    for part in parts:
        content = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        found.update(len(content).to_bytes(8, "little") + content)
    return found.digest()
