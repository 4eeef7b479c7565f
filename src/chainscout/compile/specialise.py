"""One loop, specialised for a policy.

The engine's loops are ordinary functions that call the global names ``terms``, ``index``, … For each policy a loop is
copied: the copy has the same code, and those names stand for the policy's functions. The copy is interpreted, or
compiled by numba with the rule inlined. Its name contains a digest of all code and constants that it can reach. So
the machine code is cached on disk, and it is compiled again when the rule or the engine changes.

Every plain function that is reached is compiled too, including a user's helper functions. Nothing needs a decorator.
Whole numbers that the engine's own functions name become unsigned 64-bit words: numba then needs no check for negative
indices, and the generator's arithmetic is modulo 2⁶⁴.
"""

import builtins
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pickle import UnpicklingError
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from .digests import digest, is_known, is_own, mentioned

#: Bounds are not checked, and division by zero gives an infinity. Additions are never regrouped (no fastmath).
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "boundscheck": False, "_nrt": False}

#: Bound names with this prefix stay plain whole numbers: the compiler knows their values.
LITERAL = "SHAPE_"

_COMPILING = threading.Lock()


def bound(function: Callable[..., Any], names: Mapping[str, Any]) -> Callable[..., Any]:
    """An interpreted copy of an engine function and of the functions it calls; ``names`` have these values in it."""
    copy: Callable[..., Any] = Copies(names, compile=False).copy(function)[0]  # type: ignore[arg-type]
    return copy


def compiled(function: Callable[..., Any], names: Mapping[str, Any], cache: bool) -> Callable[..., Any]:
    """A compiled copy of an engine function in which ``names`` have these values."""
    copy, _ = Copies(names, compile=True).copy(function, outermost=True)  # type: ignore[arg-type]
    reached = digest((function, OPTIONS), names)
    copy.__qualname__ = f"{function.__qualname__}_{reached.hex()[:16]}"
    return _OnFirstCall(copy, cache)


def call(function: Callable[..., Any], arguments: Sequence[Any], interpreted: bool) -> None:
    """Calls a function of the engine that changes arrays, compiled or interpreted.

    An argument is a value, an array, or a NamedTuple of these. Compiled code gets the arrays, and unsigned words for
    whole numbers. Interpreted code gets lists, which are faster to index, and their changes are written back.
    """
    if not interpreted:
        function(*(_in_words(argument) for argument in arguments))
        return
    changed: list[tuple[Any, list[Any]]] = []
    function(*(_in_lists(argument, changed) for argument in arguments))
    for array, values in changed:
        array[:] = values


def _in_words(argument: Any) -> Any:
    if hasattr(argument, "_fields"):
        return type(argument)._make(map(_in_words, argument))
    return np.uint64(argument) if type(argument) is int else argument


def _in_lists(argument: Any, changed: list[tuple[Any, list[Any]]]) -> Any:
    if hasattr(argument, "_fields"):
        return type(argument)._make(_in_lists(each, changed) for each in argument)
    if not isinstance(argument, np.ndarray):
        return argument
    changed.append((argument, argument.tolist()))
    return changed[-1][1]


def is_off() -> bool:
    """Whether numba was told not to compile (NUMBA_DISABLE_JIT, to measure coverage or to debug)."""
    import numba

    config: Any = numba.config
    return bool(config.DISABLE_JIT)


class _OnFirstCall:
    """Compiles or loads a function on its first call, under a lock and with LLVM's superword vectoriser on."""

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

        config: Any = numba.config
        signature = tuple(numba.typeof(argument) for argument in arguments)
        before, config.SLP_VECTORIZE = config.SLP_VECTORIZE, 1
        try:
            if self.cache:
                dispatcher = numba.njit(**OPTIONS)(self.function)
                try:
                    dispatcher._cache = _cache_of(self.function)
                    dispatcher.compile(signature)
                    return dispatcher
                except (RuntimeError, ImportError, OSError, EOFError, UnpicklingError):
                    # The cache cannot be written or read (a rule's module may be gone): compile without it.
                    pass
            dispatcher = numba.njit(**OPTIONS)(self.function)
            dispatcher.compile(signature)
            return dispatcher
        finally:
            config.SLP_VECTORIZE = before


def _cache_of(function: FunctionType) -> Any:
    """numba's cache of a function's machine code on disk. It is loaded without preparing numba to compile.

    numba itself would first import everything that a compilation could need, which takes half a second.
    """
    from numba.core.caching import FunctionCache

    class Cache(FunctionCache):
        def load_overload(self, signature: Any, target: Any) -> Any:
            target.refresh = lambda: None
            try:
                return super().load_overload(signature, target)
            finally:
                del target.refresh

    return Cache(function)


#: A copy, and whether it can reach a bound name.
_Copy = tuple[Any, bool]

#: Compiled functions that reach no bound name: all loops share them.
_SHARED: dict[FunctionType, _Copy] = {}


class Copies:
    """Copies of functions that reach each other."""

    def __init__(self, names: Mapping[str, Any], compile: bool) -> None:
        self.names, self.compile = names, compile
        self.made: dict[FunctionType, _Copy] = {}
        #: Functions that reach no bound name.
        self.shared = _SHARED

    def jitted(self, copy: FunctionType) -> Any:
        """A compiled function that others call."""
        from numba import njit

        return njit(forceinline=True, **OPTIONS)(copy)

    def code(self, code: CodeType) -> CodeType:
        """The code of a copy."""
        return code

    def number(self, value: Any, own: bool) -> Any:
        """A value that is neither a function nor a module."""
        return np.uint64(value) if own and type(value) is int else value

    def copy(self, function: FunctionType, outermost: bool = False) -> _Copy:
        own = is_own(function)
        if not self.compile and not own:  # interpreted code: only the engine's functions have names to bind
            return function, False
        for known in (self.shared, self.made) if self.compile else (self.made,):
            if function in known:
                return known[function]
        module = function.__module__ or "__main__"  # a rule made by exec may have none
        reached: dict[str, Any] = {"__builtins__": builtins, "__name__": module}
        names = set(mentioned(function.__code__))
        depends = False
        for name in sorted(names):
            if own and name in self.names:
                literal = name.startswith(LITERAL)
                value = self.names[name]
                reached[name], depends = value if literal else self._value(value, own, names)[0], True
            elif name in function.__globals__:
                reached[name], more = self._value(function.__globals__[name], own, names)
                depends = depends or more
        cells = []
        for cell in function.__closure__ or ():
            content, more = self._value(cell.cell_contents, own, names)
            cells.append(CellType(content))
            depends = depends or more
        code = self.code(function.__code__)
        copy: Any = FunctionType(code, reached, function.__name__, function.__defaults__, tuple(cells))
        copy.__module__, copy.__qualname__ = module, function.__qualname__
        if self.compile and not outermost:
            copy = self.jitted(copy)
        result = copy, depends
        (self.made if depends or outermost or not self.compile else self.shared)[function] = result
        return result

    def _value(self, value: Any, own: bool, names: set[str]) -> tuple[Any, bool]:
        """The value of a name in a copy, and whether it reaches a bound name."""
        if isinstance(value, FunctionType):
            return self.copy(value)
        if not self.compile:
            return value, False
        if isinstance(value, ModuleType):
            return self._module(value, names)
        return self.number(value, own), False

    def _module(self, module: ModuleType, names: set[str]) -> tuple[ModuleType, bool]:
        """A replacement for a module of plain functions, with the functions that are mentioned."""
        if is_known(module):
            return module, False
        stand_in, depends = ModuleType(module.__name__), False
        for name in sorted(names):
            if hasattr(module, name):
                value, more = self._value(getattr(module, name), False, names)
                setattr(stand_in, name, value)
                depends = depends or more
        return stand_in, depends


def has_file(function: Callable[..., Any] | None) -> bool:
    """Whether a rule's source is in a file. The machine code of a rule typed at a prompt is not kept on disk."""
    return function is None or os.path.exists(function.__code__.co_filename)
