"""What gives a chain's next state: the common form, and Python callables and iterators in it."""

from collections.abc import Callable, Hashable, Iterator
from typing import Any, Self

from ..errors import InputError, SourceEnded
from ..validation import shown, whole_number


class Source:
    """One chain's source. A path goes on until the source is restarted or breaks off by itself."""

    def advance(self) -> tuple[Hashable, bool]:
        """The next state, and whether it begins a new segment (no transition led to it from the state before)."""
        raise NotImplementedError

    def restart(self) -> None:
        """Begins anew: the next state is the first of a segment."""
        raise NotImplementedError

    def resume(self, observations: int, last: Hashable | None) -> bool:
        """Goes on from where a study is, and says whether it can: after so many observations, in the state ``last``.

        Where ``last`` is None a new segment begins, with states that are not among those observations.
        """
        return False

    def close(self) -> None:
        """Gives up what the source holds."""


class Repeating(Source):
    """A source that gives the same states whenever it begins, and can go on behind any of them."""

    #: How many of its observations another study has used; None if nobody has said.
    skipped: int | None = None

    def skip(self, observations: int) -> Self:
        """Leaves out its first observations: those that another study has used, whose counts a study begins with.

        The next state is the first of a segment. 0 says that none of them was used: with another seed, for instance.
        """
        before = self.skipped
        self.skipped = whole_number(observations, "observations", least=0, meaning="how many were used before")
        try:
            self.resume(0, None)
        except InputError:  # a recording may have fewer
            self.skipped = before
            raise
        return self


class Function(Source):
    """A function without arguments that gives the next state. It is taken to stand at a fresh start when given."""

    def __init__(self, function: Callable[[], Hashable]) -> None:
        self._function = function
        self._fresh = True

    def advance(self) -> tuple[Hashable, bool]:
        """The function's next value."""
        state = self._function()
        fresh, self._fresh = self._fresh, False
        return state, fresh

    def restart(self) -> None:
        """Asks the function to restart, if it can; its next state is taken as the first of a segment anyway."""
        restart = getattr(self._function, "restart", None)
        if callable(restart):
            restart()
        self._fresh = True


class Stream(Source):
    """An iterator of states. It cannot begin anew: a restart only breaks the path."""

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
    """A function that gives a new iterator of states for every segment: a generator function, for instance."""

    def __init__(self, begin: Callable[[], Iterator[Hashable]]) -> None:
        self._begin = begin
        self._states: Iterator[Hashable] | None = None

    def advance(self) -> tuple[Hashable, bool]:
        """The next state; where an iterator ends, another one begins."""
        fresh = self._states is None
        if self._states is None:
            self._states = iter(self._begin())
        try:
            return next(self._states), fresh
        except StopIteration:
            if fresh:
                raise SourceEnded("a segment ended before its first state") from None
            self._states = None
            return self.advance()

    def restart(self) -> None:
        """The next state comes from a new iterator."""
        self._states = None


def convert(thing: Any) -> Source:
    """A source from a Source, a callable, or an iterator."""
    if isinstance(thing, Source):
        return thing
    if callable(thing):
        return Function(thing)
    if isinstance(thing, Iterator):
        return Stream(thing)
    raise InputError(
        "a source must be a callable, an iterator, a MarkovChain, recorded states, or an object of "
        f"chainscout.sources, not {shown(thing)}"
    )
