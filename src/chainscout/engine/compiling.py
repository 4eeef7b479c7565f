"""One loop, specialised for a policy (DESIGN, 'Engines').

The engine's loops are ordinary functions that call the global names ``terms``, ``index``, … A copy of a loop over the
same code, in which those names stand for a policy's functions, is what runs: interpreted as it is, or compiled by
numba, with the rule inlined. The copy's name carries a digest of all code and constants that it can reach, so that the
machine code is cached on disk and goes stale when the rule or the engine changes.

Every plain function that is reached is compiled on the way, a user's helper functions too; nothing needs to be
decorated. Whole numbers that the engine's own functions name become unsigned 64-bit words: an index that cannot be
negative costs numba no check, and the generator's arithmetic is modulo 2⁶⁴.
"""

import builtins
import hashlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from pickle import UnpicklingError
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

#: Functions of this package count in unsigned words.
ENGINE = __name__.rpartition(".")[0]

#: Libraries whose functions numba knows itself.
KNOWN = {"math", "numpy", "numba", "builtins"}

#: No bounds are checked and division by zero gives an infinity; additions are never regrouped (no fastmath).
OPTIONS = {"nogil": True, "error_model": "numpy", "boundscheck": False, "_nrt": False}

_COMPILING = threading.Lock()


def bound(function: Callable[..., Any], names: Mapping[str, Any]) -> Callable[..., Any]:
    """An interpreted copy of an engine function, and of those it calls, in which ``names`` have these values."""
    return _Copies(names, None).copy(function)  # type: ignore[arg-type]


def compiled(function: Callable[..., Any], names: Mapping[str, Any], cache: bool) -> Callable[..., Any]:
    """A compiled copy of an engine function in which ``names`` have these values."""
    digest = hashlib.sha256(repr(OPTIONS).encode())
    copies = _Copies(names, digest)
    copy = copies.copy(function, outermost=True)  # type: ignore[arg-type]
    copy.__qualname__ = f"{function.__qualname__}_{digest.hexdigest()[:16]}"
    return _OnFirstCall(copy, cache)


class _OnFirstCall:
    """Compiles (or loads) under a lock and with LLVM's superword vectoriser on, then gets out of the way."""

    def __init__(self, function: FunctionType, cache: bool) -> None:
        self.function, self.cache = function, cache
        self.dispatcher: Any = None

    def __call__(self, *arguments: Any) -> Any:
        if self.dispatcher is None:
            with _COMPILING:
                if self.dispatcher is None:
                    self.dispatcher = self._compile(arguments)
        return self.dispatcher(*arguments)

    def _compile(self, arguments: tuple[Any, ...]) -> Any:
        import numba
        from numba.core import config

        signature = tuple(numba.typeof(argument) for argument in arguments)
        before, config.SLP_VECTORIZE = config.SLP_VECTORIZE, 1
        try:
            if self.cache:
                dispatcher = numba.njit(**OPTIONS)(self.function)
                try:
                    dispatcher.enable_caching()
                    dispatcher.compile(signature)
                    return dispatcher
                except (RuntimeError, ImportError, OSError, EOFError, UnpicklingError):
                    # Nowhere to write to, or what is there cannot be read (a rule's module is gone): compile it here.
                    pass
            dispatcher = numba.njit(**OPTIONS)(self.function)
            dispatcher.compile(signature)
            return dispatcher
        finally:
            config.SLP_VECTORIZE = before


class _Copies:
    """Copies of functions that reach each other, and a digest of what they are made of."""

    def __init__(self, names: Mapping[str, Any], digest: Any) -> None:
        self.names = names
        self.digest = digest
        self.made: dict[FunctionType, Any] = {}

    def copy(self, function: FunctionType, outermost: bool = False) -> Any:
        if function in self.made:
            return self.made[function]
        own = function.__module__ == ENGINE or function.__module__.startswith(ENGINE + ".")
        if self.digest is None and not own:  # to be interpreted: only the engine's functions have names to bind
            return function
        self._note(function.__code__, function.__defaults__)
        reached: dict[str, Any] = {"__builtins__": builtins, "__name__": function.__module__}
        attributes = set(_names(function.__code__))
        for name in sorted(attributes):
            if own and name in self.names:
                reached[name] = self._value(self.names[name], own, attributes)
            elif name in function.__globals__:
                reached[name] = self._value(function.__globals__[name], own, attributes)
        cells = tuple(CellType(self._value(cell.cell_contents, own, attributes)) for cell in function.__closure__ or ())
        copy = FunctionType(function.__code__, reached, function.__name__, function.__defaults__, cells)
        copy.__module__, copy.__qualname__, copy.__doc__ = function.__module__, function.__qualname__, function.__doc__
        if self.digest is not None and not outermost:
            from numba import njit

            copy = njit(forceinline=True, **OPTIONS)(copy)
        self.made[function] = copy
        return copy

    def _value(self, value: Any, own: bool, attributes: set[str]) -> Any:
        if isinstance(value, FunctionType):
            return self.copy(value)
        if self.digest is None:
            return value
        if isinstance(value, ModuleType):
            return value if value.__name__.partition(".")[0] in KNOWN else self._module(value, attributes)
        self.digest.update(repr(value).encode())
        return np.uint64(value) if own and type(value) is int else value

    def _module(self, module: ModuleType, attributes: set[str]) -> ModuleType:
        """A stand-in for a module of plain functions, with those that are asked for."""
        stand_in = ModuleType(module.__name__)
        for name in sorted(attributes):
            if hasattr(module, name):
                setattr(stand_in, name, self._value(getattr(module, name), False, attributes))
        return stand_in

    def _note(self, code: CodeType, defaults: Any) -> None:
        if self.digest is not None:
            self.digest.update(code.co_code + repr((code.co_names, defaults)).encode())
            for constant in code.co_consts:
                if isinstance(constant, CodeType):
                    self._note(constant, None)
                else:
                    self.digest.update(repr(constant).encode())


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def has_file(function: Callable[..., Any] | None) -> bool:
    """Whether a rule's source is in a file; one that was typed at a prompt is not worth keeping on disk."""
    return function is None or os.path.exists(function.__code__.co_filename)

