"""Python functions, iterators and generator functions as sources, each also with ``async``."""

from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from typing import Any

from ..chains import MarkovChain
from ..errors import InputError, SourceEnded
from ..validation import shown
from .source import Source

__all__ = ["Awaited", "Factory", "Function", "Restartable", "Stream", "convert"]


class Function(Source):
    """A function without arguments that returns the next state. It must be at a fresh start when the source is made."""

    def __init__(self, function: Callable[[], Hashable]) -> None:
        self._function = function
        self._fresh = True

    def advance(self) -> tuple[Hashable, bool]:
        """The function's next value."""
        state = self._function()
        fresh, self._fresh = self._fresh, False
        return state, fresh

    def restart(self) -> None:
        """Calls the function's own ``restart``, if it has one. Its next state begins a path in any case."""
        _restart(self._function)
        self._fresh = True


class Stream(Source):
    """An iterator of states. It cannot start again: a restart only breaks the path."""

    def __init__(self, states: Iterator[Hashable]) -> None:
        self._states = states
        self._fresh = True

    def advance(self) -> tuple[Hashable, bool]:
        """The iterator's next value."""
        try:
            state = next(self._states)
        except StopIteration:
            raise SourceEnded("the iterator has no more states") from None
        fresh, self._fresh = self._fresh, False
        return state, fresh

    def restart(self) -> None:
        """Breaks the path."""
        self._fresh = True

    def close(self) -> None:
        """Ends a generator."""
        close = getattr(self._states, "close", None)
        if callable(close):
            close()


class Restartable(Source):
    """A function that returns a new iterator of states for every path, for example a generator function."""

    def __init__(self, begin: Callable[[], Iterator[Hashable]]) -> None:
        self._begin = begin
        self._states: Iterator[Hashable] | None = None

    def advance(self) -> tuple[Hashable, bool]:
        """The next state. After the end of an iterator, another one begins."""
        fresh = self._states is None
        if self._states is None:
            self._states = iter(self._begin())
        try:
            return next(self._states), fresh
        except StopIteration:
            if fresh:
                raise SourceEnded("a path ended before its first state") from None
            self._states = None
            return self.advance()

    def restart(self) -> None:
        """The next state comes from a new iterator."""
        self._states = None


class Awaited(Source):
    """An async source: a coroutine function, an async iterator, or a function that returns a new one for every path."""

    def __init__(self, begin: Callable[[], AsyncIterator[Hashable]], function: Any = None) -> None:
        """``function``: its own ``restart`` is called, if it has one."""
        self._begin = begin
        self._function = function
        self._states: AsyncIterator[Hashable] | None = None

    async def advance(self) -> tuple[Hashable, bool]:
        """The next state. After the end of an iterator, another one begins."""
        fresh = self._states is None
        if self._states is None:
            self._states = self._begin()
        try:
            return await anext(self._states), fresh
        except StopAsyncIteration:
            if fresh:
                raise SourceEnded("the iterator has no more states") from None
            self._states = None
            return await self.advance()

    def restart(self) -> None:
        """The next state begins a path."""
        _restart(self._function)
        self._states = None


class Factory:
    """Makes sources of one chain, one for each worker. Each source walks its own paths.

    Sources that draw random numbers must not all begin with the same seed.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        """``make``: returns a new source at every call: a callable, an iterator, or a Source."""
        if not callable(make):
            raise InputError(f"a factory needs a function that makes sources, not {shown(make)}")
        self._make = make

    def source(self) -> Source:
        """A new source."""
        made = self._make()
        if isinstance(made, MarkovChain):
            raise InputError(
                "a factory cannot make a MarkovChain: a simulated chain has draws of its own for every path, so give "
                "the chain itself, without a factory"
            )
        return convert(made)


def convert(thing: Any) -> Source:
    """A source from a Source, a callable, an iterator, or a generator function, which is called for every path."""
    if isinstance(thing, Source):
        return thing
    if isgeneratorfunction(thing):
        return Restartable(thing)
    if iscoroutinefunction(thing) or iscoroutinefunction(getattr(thing, "__call__", None)):  # noqa: B004
        return Awaited(lambda: _values(thing), thing)
    if isasyncgenfunction(thing):
        return Awaited(thing)
    if isinstance(thing, AsyncIterator):
        return Awaited(lambda: thing)
    if callable(thing):
        return Function(thing)
    if isinstance(thing, Iterator):
        return Stream(thing)
    raise InputError(
        "a source must be a callable, an iterator, a MarkovChain, recorded states, or an object of "
        f"chainscout.sources, not {shown(thing)}"
    )


def _restart(function: Any) -> None:
    restart = getattr(function, "restart", None)
    if callable(restart):
        restart()


async def _values(function: Callable[[], Awaitable[Hashable]]) -> AsyncIterator[Hashable]:
    while True:
        yield await function()
