"""What gives a chain's next state: the common form of all sources."""

from collections.abc import Hashable
from typing import NamedTuple, Self

from ..errors import InputError
from ..validation import whole_number

__all__ = ["Place", "Repeating", "Source"]


class Place(NamedTuple):
    """Where a study expects a chain's next observation."""

    #: The path's number in its chain, and the observation's number in the path, from 1.
    path: int = 1
    step: int = 1
    #: The state that the path is in; None at its beginning.
    last: Hashable | None = None
    #: All observations of the chain so far, of every path.
    observations: int = 0


class Source:
    """One chain's source. A path goes on until the source is restarted or breaks off by itself."""

    #: Whether its states follow from the number of the path, so that nobody else may have begun a path of that number.
    is_seeded: bool = False

    def check(self) -> None:
        """Raises ``InputError`` if the source cannot work here. Nothing is started."""

    def advance(self) -> tuple[Hashable, bool]:
        """The next state, and whether it begins a new path (no transition led to it from the state before)."""
        raise NotImplementedError

    def restart(self) -> None:
        """Begins anew: the next state is the first of a path."""
        raise NotImplementedError

    def resume(self, place: Place) -> bool:
        """Brings the source to where a study is; False if it cannot, and its next state begins a path.

        Where the place has no last state a new path begins, with states that the study was not told before.
        """
        return False

    def close(self) -> None:
        """Gives up what the source holds."""


class Repeating(Source):
    """A source that gives the same states whenever it begins, and can go on behind any of them."""

    is_seeded = True
    #: How many of its observations another study has used; None if nobody has said.
    skipped: int | None = None
    #: Whether each state can be given once, whatever path it is told on: so it is with a recording.
    is_used_up: bool = False

    def skip(self, observations: int) -> Self:
        """Leaves out the first observations, because another study has used them and this one begins with their counts.

        The next state is the first of a path. 0 says that none was used: with another seed, for instance.
        """
        before = self.skipped
        self.skipped = whole_number(observations, "observations", least=0, meaning="how many were used before")
        try:
            self.resume(Place())
        except InputError:  # a recording may have fewer
            self.skipped = before
            raise
        return self
