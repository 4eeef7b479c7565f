"""A simulated chain as a source, driven by the engine's counter-based generator.

The u-th state is a function of (seed, replication, chain number, u) and the state before, so that a study on simulated
sources repeats a replication of an experiment, and a resumed one goes on with the same path.
"""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from ..chains import MarkovChain
from ..engine import alias, randomness
from ..problems import Problem
from ..sources import Source

# The generator's functions take whole numbers here and unsigned words when compiled: they have no types.
_random: Any = randomness
_alias: Any = alias


class Simulated(Source):
    """The path of one chain in one replication."""

    def __init__(self, chain: MarkovChain, number: int = 0, *, seed: int = 0, replication: int = 0) -> None:
        """``number``: of the chain in its problem."""
        self._chain = chain
        self._table = _tables(chain.matrix)
        self._law = _tables(chain.initial[None, :])
        self._position, self._gamma = _random.stream(seed, replication, number)
        self._state: int | None = None

    @property
    def states(self) -> list[Hashable]:
        """The chain's states."""
        return list(self._chain.states)

    def advance(self) -> tuple[Hashable, bool]:
        """The next state; the first is drawn from the initial law."""
        fresh = self._state is None
        self._position = (self._position + self._gamma) & randomness.MASK
        size, draw = self._chain.size, _random.mix(self._position)
        if self._state is None:
            self._state = _random.sample(draw, size, self._law, 0)
        else:
            self._state = _random.sample(draw, size, self._table, self._state * size)
        return self._chain.states[self._state], fresh

    def restart(self) -> None:
        """The next state is drawn from the initial law."""
        self._state = None

    def resume(self, observations: int, last: Hashable) -> bool:
        """Goes on after so many draws."""
        self._position = (self._position + observations * self._gamma) & randomness.MASK
        self._state = self._chain.index_of(last)
        return True


def simulated(
    problem: Problem | Mapping[str, MarkovChain], *, seed: int = 0, replication: int = 0
) -> dict[str, Source]:
    """Sources of all chains of a problem, numbered as an experiment numbers them."""
    chains = problem.chains if isinstance(problem, Problem) else problem
    return {
        name: Simulated(chain, number, seed=seed, replication=replication)
        for number, (name, chain) in enumerate(chains.items())
    }


def _tables(laws: np.ndarray) -> list[int]:
    """Alias tables, one after the other, as Python's whole numbers."""
    number, size = laws.shape
    table = [0] * (number * size)
    shares = [int(part) for part in alias.parts(laws).ravel()]
    _alias.fill(table, 0, size, number, size, shares, [0] * size, [0] * size)
    return table
