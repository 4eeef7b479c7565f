"""A simulated chain as a source: the walk that the engine simulates for the same seed.

The u-th state is a function of (seed, replication, chain number, u) and the state before. So a study on simulated
sources repeats a replication of an experiment, and a resumed study goes on with the same path.
"""

from collections.abc import Hashable, Mapping

from ..chains import MarkovChain
from ..problems import Problem
from ..random import Walk
from .source import Repeating

__all__ = ["Simulated", "simulated"]


class Simulated(Repeating):
    """The path of one chain in one replication."""

    def __init__(self, chain: MarkovChain, number: int = 0, *, seed: int = 0, replication: int = 0) -> None:
        """``number``: of the chain in its problem."""
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

    def resume(self, observations: int, last: Hashable | None) -> bool:
        """Goes on after so many draws; none of them is used again. A new segment begins from the initial law."""
        self._walk.resume(observations + (self.skipped or 0), None if last is None else self._chain.index_of(last))
        return True


def simulated(
    problem: Problem | Mapping[str, MarkovChain], *, seed: int = 0, replication: int = 0
) -> dict[str, Repeating]:
    """Sources of all chains of a problem, numbered as an experiment numbers them."""
    chains = problem.chains if isinstance(problem, Problem) else problem
    return {
        name: Simulated(chain, number, seed=seed, replication=replication)
        for number, (name, chain) in enumerate(chains.items())
    }
