"""The common form of all sources of a chain's next state."""

from collections.abc import Awaitable, Hashable
from inspect import iscoroutinefunction
from typing import NamedTuple, Self

from ..errors import InputError
from ..validation import whole_number

__all__ = ["Place", "Repeating", "Source"]


class Place(NamedTuple):
    """The place of a chain's next observation, as a study expects it."""

    #: The path's number in its chain, and the observation's number in the path, from 1.
    path: int = 1
    step: int = 1
    #: The state that the path is in; None at its beginning.
    last: Hashable | None = None
    #: All observations of the chain so far, of every path.
    observations: int = 0


class Source:
    """One chain's source. A path continues until the source is restarted or breaks off by itself."""

    #: Whether the path's number determines its states. Then nobody else may have begun a path of that number.
    is_seeded: bool = False

    def check(self) -> None:
        """Raises ``InputError`` if the source cannot work here. Nothing is started."""

    @property
    def is_awaited(self) -> bool:
        """Whether its ``advance`` is an ``async def``, which `learn` awaits on an event loop."""
        return iscoroutinefunction(self.advance)

    def advance(self) -> tuple[Hashable, bool] | Awaitable[tuple[Hashable, bool]]:
        """The next state, and whether it begins a new path (no transition led to it from the state before)."""
        raise NotImplementedError

    def restart(self) -> None:
        """Starts again: the next state begins a path."""
        raise NotImplementedError

    def resume(self, place: Place) -> bool:
        """Brings the source to the place of a study. False if that is impossible: its next state then begins a path.

        If the place has no last state, a new path begins, with states that the study was not told before.
        """
        return False

    def close(self) -> None:
        """Releases the source's resources."""


class Repeating(Source):
    """A source that gives the same states whenever it begins, and can continue after any of them."""

    is_seeded = True
    #: How many of its observations another study has used; None if nobody has said.
    skipped: int | None = None
    #: Whether each state is given only once, whatever path it is told on. This is true for a recording.
    is_used_up: bool = False

    def skip(self, observations: int) -> Self:
        """Leaves out the first observations, because another study has used them and this one begins with their counts.

        The next state begins a path. 0 says that none was used, for example because the seed was another one.
        """
        before = self.skipped
        self.skipped = whole_number(observations, "observations", least=0, meaning="how many were used before")
        try:
            self.resume(Place())
        except InputError:  # a recording may have fewer states
            self.skipped = before
            raise
        return self
