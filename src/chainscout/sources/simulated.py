"""A simulated chain as a source: the walk that the engine simulates for the same seed.

The u-th state of a path is a function of (seed, replication, chain number, path, u) and the state before. So a study on
simulated sources repeats a replication of an experiment on its first paths, a resumed study continues the same path,
and parallel workers never repeat each other.
"""

from collections.abc import Hashable, Mapping

from ..chains import MarkovChain
from ..errors import InputError
from ..problems import Problem
from ..random import Walk
from ..validation import shown
from .source import Place, Repeating

__all__ = ["Simulated", "simulated"]


class Simulated(Repeating):
    """The path of one chain in one replication."""

    def __init__(self, chain: MarkovChain, number: int = 0, *, seed: int = 0, replication: int = 0) -> None:
        """``number``: the chain's number in its problem."""
        self._chain = chain
        self._walk = Walk(chain, number, seed=seed, replication=replication)

    @property
    def states(self) -> list[Hashable]:
        """The chain's states."""
        return list(self._chain.states)

    def advance(self) -> tuple[Hashable, bool]:
        """The next state; the first is drawn from the initial law."""
        fresh = self._walk.is_fresh
        return self._chain.states[next(self._walk)], fresh

    def restart(self) -> None:
        """The next state is drawn from the initial law."""
        self._walk.restart()

    def resume(self, place: Place) -> bool:
        """Continues the path's own stream after the draws that were told."""
        skipped = self.skipped or 0
        # The part of path 1 that another study has used is skipped. Its other paths had streams of their own.
        self._walk.take(place.path if place.path == 1 else place.path + skipped * 1_000_003)
        draws = place.step - 1 + (skipped if place.path == 1 else 0)
        self._walk.resume(draws, None if place.last is None else self._chain.index_of(place.last))
        return True


def simulated(
    problem: Problem | Mapping[str, MarkovChain], *, seed: int = 0, replication: int = 0
) -> dict[str, Repeating]:
    """Sources of all chains of a problem, numbered as an experiment numbers them."""
    if not isinstance(problem, Problem | Mapping):
        raise InputError(f"simulated takes a problem, or chains by their names, not {shown(problem)}")
    chains = (problem if isinstance(problem, Problem) else Problem(problem)).chains
    return {
        name: Simulated(chain, number, seed=seed, replication=replication)
        for number, (name, chain) in enumerate(chains.items())
    }
