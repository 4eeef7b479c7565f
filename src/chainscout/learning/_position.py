"""Where each source stands: which observation of which path it gives next, and how often it has failed."""

from collections.abc import Callable, Hashable, Mapping

from ..errors import InputError
from ..sources import Place, Program, Repeating, Source
from ..study import Study

#: A chain whose source failed so often in a row is set aside.
MOST_FAILURES = 10


class Positions:
    """The positions of all sources of a study that this program drives."""

    def __init__(self, study: Study, sources: Mapping[str, Source]) -> None:
        self._study = study
        self._sources = sources
        #: Where the source's next observation belongs; absent where that is not known.
        self._places: dict[str, Place] = {}
        self._failures = dict.fromkeys(sources, 0)

    def find(self, name: str) -> Place:
        """Brings a source to where the study expects its next observation.

        A source that repeats itself continues the path of an earlier program; every other source begins a path.
        """
        known = self._places.get(name)
        if known is None:
            source = self._sources[name]
            repeats = isinstance(source, Repeating)
            chain = self._study.continue_path(name) if repeats else self._study.chain(name)
            known = self.put(name, Place(chain.path, chain.step, chain.last, chain.observations))
        return known

    def known(self, name: str) -> Place | None:
        """Where the source's next observation belongs, if that is known."""
        return self._places.get(name)

    def put(self, name: str, place: Place) -> Place:
        """Brings a source to a place. One that cannot be brought there begins anew."""
        source = self._sources[name]
        try:
            resumed = place.observations > 0 and source.resume(place)
        except InputError as error:
            raise InputError(f"the source of the chain {name!r} cannot go on where the study is: {error}") from None
        if place.last is not None and not resumed:
            source.restart()
        self._places[name] = place
        return place

    def put_aside(self, name: str, place: Place) -> Place:
        """Notes that the source has begun the path at this place by itself."""
        self._places[name] = place
        return place

    def lose(self, name: str) -> None:
        """Notes that the source is not where the study is."""
        self._places.pop(name, None)

    def is_broken(self, name: str, fresh: bool) -> bool:
        """Whether the study must end the path before it is told the source's next state."""
        return fresh and self._places[name].last is not None

    def tell(self, name: str, state: Hashable, tell: Callable[[Hashable], None]) -> None:
        """Tells a state and notes it. A program writes texts; a text that is no state is an error of the program."""
        source = self._sources[name]
        if isinstance(source, Program):
            try:
                state = self._study.state_from_text(name, str(state))
                tell(state)
            except InputError:
                raise source.reject(state) from None
        else:
            tell(state)
        path, step, _, observations = self._places[name]
        self._places[name] = Place(path, step + 1, state, observations + 1)
        self._failures[name] = 0

    def fail(self, name: str) -> bool:
        """Notes a failure. Gives whether the source is to be given up."""
        self._failures[name] += 1
        self.lose(name)
        return self._failures[name] >= MOST_FAILURES
