"""Where each source stands: whether its next state continues the study's path, and how often it has failed."""

from collections.abc import Callable, Hashable, Mapping

from ..errors import Held, InputError, OutOfStep
from ..sources import Program, Source
from ..study import Study

#: A chain whose source failed so often in a row is set aside.
MOST_FAILURES = 10


class Positions:
    """The positions of all sources of a study that this program drives."""

    def __init__(self, study: Study, sources: Mapping[str, Source]) -> None:
        self._study = study
        self._sources = sources
        #: Whether the chain is in the middle of a path.
        self._going: dict[str, bool] = {}
        #: The number of the observation that the source gives next; absent where that is not known.
        self._next: dict[str, int] = {}
        self._failures = dict.fromkeys(sources, 0)

    def find(self, name: str, step: int | None = None) -> int:
        """Brings a source to where the study is, and gives the number of the observation that it gives next.

        A source that cannot be brought there begins anew. A chain whose path was broken has no last state. Its source
        is brought behind its observations all the same, because what was counted must not be counted again.

        ``step``: the number of the chain's next observation, if it was just read. If it is not the one that this source
        is to give, somebody else has advanced the chain.
        """
        if step is not None and step != self._next.get(name):
            self.lose(name)
        if name not in self._next:
            chain, source = self._study.chain(name), self._sources[name]
            try:
                # A source that was found before may have given a state that nobody took, the very first one too.
                moved = chain.observations > 0 or name in self._going
                resumed = moved and source.resume(chain.observations, chain.last)
            except InputError as error:
                raise InputError(f"the source of the chain {name!r} cannot go on where the study is: {error}") from None
            if chain.last is not None and not resumed:
                source.restart()
            self._going[name] = chain.last is not None
            self._next[name] = chain.observations + 1
        return self._next[name]

    def lose(self, name: str) -> None:
        """Notes that somebody else advanced the chain: the source is not where the study is."""
        self._next.pop(name, None)

    def is_broken(self, name: str, fresh: bool) -> bool:
        """Whether the study must begin a new segment before it is told the source's next state."""
        return fresh and self._going.get(name, False)

    def tell(self, name: str, state: Hashable, tell: Callable[[Hashable], None]) -> None:
        """Tells a state and notes it. A program writes texts; a text that is no state is an error of the program."""
        source = self._sources[name]
        if isinstance(source, Program):
            try:
                tell(self._study.state_from_text(name, str(state)))
            except (OutOfStep, Held):  # somebody else was first, which is no error of the program
                raise
            except InputError:
                raise source.reject(state) from None
        else:
            tell(state)
        self._going[name] = True
        self._next[name] += 1
        self._failures[name] = 0

    def fail(self, name: str, going: bool = False) -> bool:
        """Notes a failure, and whether the path goes on all the same. Gives whether the source is to be given up."""
        self._failures[name] += 1
        self._going[name] = going
        return self._failures[name] >= MOST_FAILURES
