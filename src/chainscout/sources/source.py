"""What gives a chain's next state: the common form of all sources."""

from collections.abc import Hashable
from typing import Self

from ..errors import InputError
from ..validation import whole_number

__all__ = ["Repeating", "Source"]


class Source:
    """One chain's source. A path goes on until the source is restarted or breaks off by itself."""

    def advance(self) -> tuple[Hashable, bool]:
        """The next state, and whether it begins a new segment (no transition led to it from the state before)."""
        raise NotImplementedError

    def restart(self) -> None:
        """Begins anew: the next state is the first of a segment."""
        raise NotImplementedError

    def resume(self, observations: int, last: Hashable | None) -> bool:
        """Brings the source to where a study is, after so many observations and in state ``last``; False if it cannot.

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
        """Leaves out the first observations, because another study has used them and this one begins with their counts.

        The next state is the first of a segment. 0 says that none was used: with another seed, for instance.
        """
        before = self.skipped
        self.skipped = whole_number(observations, "observations", least=0, meaning="how many were used before")
        try:
            self.resume(0, None)
        except InputError:  # a recording may have fewer
            self.skipped = before
            raise
        return self
