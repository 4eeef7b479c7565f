"""A digest of everything that a function can reach: its code, the functions that it calls, and the values they name.

The digest changes with a constant, a default, a table or a helper's helper. It does not change with a comment, a place
in a file or the name of a local variable. Processes that run the same version of Python agree on it. Nothing is
compiled to compute it.
"""

import hashlib
import re
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Set
from functools import partial
from pathlib import Path
from types import BuiltinMethodType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from ..errors import InputError
from ..validation import shown

#: Names can be bound in functions of these packages, and their whole numbers become unsigned words.
OWN = frozenset(f"{__name__.partition('.')[0]}.{layer}" for layer in ("engine", "random"))

#: Libraries whose functions numba knows itself. A digest identifies these functions by their names.
KNOWN = {"math", "numpy", "numba", "builtins"}


def digest(thing: Any, names: Mapping[str, Any] | None = None) -> bytes:
    """The digest of a function or a value. In the engine's own functions, ``names`` have these values."""
    try:
        return _Walk(names or {}).value(thing, frozenset())
    except RecursionError:
        raise InputError(
            "a rule must not reach values that are nested a thousand deep: it cannot be told what it is"
        ) from None


def is_own(function: FunctionType) -> bool:
    """Whether a function belongs to the engine."""
    module = function.__module__ or ""  # a rule made by exec may have none
    return ".".join(module.split(".")[:2]) in OWN


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
    """Functions and values that reach each other. Each is visited once."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self.names = names
        self.known: dict[FunctionType, bytes] = {}
        self.open: set[int] = set()

    def value(self, value: Any, names: frozenset[str]) -> bytes:
        """The digest of a value. For a module: the digest of the parts that ``names`` mention."""
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
            self.known[function] = _hash("again")  # its digest for functions that it calls and that call it
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
        if isinstance(value, np.ndarray) and value.dtype != object:  # repr would omit the middle of a long array
            return _hash("array", value.dtype.str, repr(value.shape), value.tobytes())
        if isinstance(value, (tuple, list)):
            return _hash(type(value).__name__, *(self.value(each, names) for each in value))
        if isinstance(value, Set):  # the order differs between processes
            return _hash("set", *sorted(self.value(each, names) for each in value))
        if isinstance(value, Mapping):
            return _hash("mapping", *(self.value(pair, names) for pair in value.items()))
        if isinstance(value, (MethodType, staticmethod, classmethod)):
            return _hash(
                "method", self.value(value.__func__, names), self.value(getattr(value, "__self__", None), names)
            )
        if isinstance(value, property):
            return _hash("property", self.value(value.fget, names))
        if isinstance(value, partial):
            return _hash("partial", *(self.value(part, names) for part in (value.func, value.args, value.keywords)))
        if isinstance(value, BuiltinMethodType) and not isinstance(value.__self__, ModuleType):
            return _hash("method", value.__name__, self.value(value.__self__, names))
        for inner in ("py_func", "__wrapped__"):  # set by numba's decorators and by caches
            if isinstance(function := getattr(value, inner, None), FunctionType):
                return _hash("wrapped", self.value(function, names))
        kind = value if isinstance(value, type) else type(value)
        parts = [self.value(_state(value), names), *(self.value(part, names) for part in _members(kind, names))]
        return _hash("value", _ADDRESS.sub("", shown(value, sys.maxsize)), *parts)


def _content(cell: CellType) -> Any:
    """The content of a closure's cell; None if the variable has no value yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _state(value: Any) -> Any:
    """The parts of an object, as ``copy`` would see them."""
    try:
        return None if isinstance(value, type) else value.__getstate__()
    except Exception:  # an object that cannot be copied may raise anything
        return None


def _members(kind: type, names: frozenset[str]) -> Iterator[Any]:
    """The members of a user's class that ``names`` mention, and its special methods, which code uses without a name."""
    for base in kind.__mro__:
        if not _is_installed(base):
            for name, member in sorted(vars(base).items()):
                if name in names or (name.startswith("__") and isinstance(member, FunctionType)):
                    yield name
                    yield member


def _is_installed(kind: type) -> bool:
    """Whether a class comes with Python or with a library. These do not change from one run to the next."""
    if kind.__module__ in sys.builtin_module_names:
        return True
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    if file is None:
        return False
    path = Path(file)
    return path.is_relative_to(STANDARD_LIBRARY) or not {"site-packages", "dist-packages"}.isdisjoint(path.parts)


STANDARD_LIBRARY = sysconfig.get_path("stdlib")

#: The address of an object in its repr.
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def _hash(*parts: str | bytes) -> bytes:
    found = hashlib.sha256()
    for part in parts:
        content = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        found.update(len(content).to_bytes(8, "little") + content)
    return found.digest()
