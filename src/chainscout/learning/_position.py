"""The position of a source: the path and the step of its next observation, and how often it has failed."""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

from ..errors import ChainscoutError, Held, InputError, OutOfStep, OverBudget
from ..sources import Place, Program, Repeating, Source
from ..study import Study

#: A chain is set aside after this many consecutive failures of its source.
MOST_FAILURES = 10


@contextmanager
def named(chain: str) -> Iterator[None]:
    """Adds a note with the chain's name to an exception of the user's own source. Errors on purpose stay unchanged."""
    try:
        yield
    except ChainscoutError:
        raise
    except Exception as error:
        error.add_note(f"The source of the chain {chain!r} raised this.")
        raise


@contextmanager
def noted_in(error: Exception) -> Iterator[None]:
    """For what is stored because of an exception of a source: if that fails, the exception gets a note instead."""
    try:
        yield
    except ChainscoutError as further:
        error.add_note(f"The study could not be told: {further}")


class Position:
    """The position of one source that this program drives."""

    def __init__(self, study: Study, name: str, source: Source) -> None:
        self._study = study
        self.name = name
        self.source = source
        #: The place of the source's next observation; None if it is not known.
        self.place: Place | None = None
        self._failures = 0

    def put(self, place: Place, *, same_process: bool = False) -> Place:
        """Brings the source to a place. If that is impossible, the source begins a new path.

        ``same_process``: the source's process is the chain's only one, and stands there already.
        """
        try:
            with named(self.name):
                resumed = self.source.resume(place)
        except InputError as error:
            what = f"the source of the chain {self.name!r} cannot go on where the study is"
            raise InputError(f"{what}: {error}") from None
        if place.last is not None and not resumed and not same_process:
            with named(self.name):
                self.source.restart()
        self.place = place
        return place

    def move(self, path: int) -> Place:
        """Notes that the source has begun this path by itself, with its last state."""
        assert self.place is not None
        self.place = Place(path, 1, None, self.place.observations)
        return self.place

    @property
    def used(self) -> int | None:
        """How many observations the chain must have when the next one is told; None if that does not matter."""
        once = isinstance(self.source, Repeating) and self.source.is_used_up
        return self.place.observations if once and self.place is not None else None

    def tell(self, state: Hashable, tell: Callable[[Hashable], object]) -> None:
        """Tells a state and notes it. Programs write texts; an invalid text is an error of the program."""
        if isinstance(self.source, Program):
            try:
                known = self._study.state_from_text(self.name, str(state))
                tell(known)
            except (Held, OutOfStep, OverBudget):  # the program is not to blame
                raise
            except InputError:
                raise self.source.reject(state) from None
            state = known
        else:
            tell(state)
        if self.place is not None:
            path, step, _, observations = self.place
            self.place = Place(path, step + 1, state, observations + 1)
        self._failures = 0

    def fail(self) -> bool:
        """Notes a failure. Returns whether the source should be given up."""
        self._failures += 1
        self.place = None
        return self._failures >= MOST_FAILURES
