"""One chain's path in one replication, state by state: exactly the path that the policies of an experiment see."""

from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from ..validation import replication_number, seed_number, whole_number
from . import alias
from .splitmix import GOLDEN, MASK, mix, sample, stream


class Laws(Protocol):
    """The part of a chain that a walk needs. A ``MarkovChain`` has it."""

    @property
    def size(self) -> int:
        """S."""

    @property
    def initial(self) -> npt.NDArray[np.float64]:
        """The law of the first state."""

    @property
    def matrix(self) -> npt.NDArray[np.float64]:
        """The transition matrix."""


class Walk:
    """The positions of the states that chain ``number`` of a problem visits in a replication: an iterator without end.

    The u-th draw is a function of (seed, replication, number, path, u) alone, so a walk can resume after any draw.
    Experiments use path 1. The other paths have streams of their own.
    """

    def __init__(self, chain: Laws, number: int = 0, *, seed: int = 0, replication: int = 0) -> None:
        whole_number(number, "number", least=0, meaning="of the chain in its problem")
        self._size = chain.size
        # The initial law, then the rows of the matrix.
        self._table: list[int] = alias.table(np.vstack([chain.initial[None, :], chain.matrix])).tolist()
        self._key = seed_number(seed), replication_number(replication), int(number)
        self.take(1)

    def take(self, path: int) -> None:
        """Begins path ``path``, from the initial law, with the first draw of the path's own stream."""
        seed, replication, number = self._key
        if path > 1:
            seed = mix((seed + path * GOLDEN) & MASK)
        self._origin, self._gamma = stream(seed, replication, number)
        self._position = self._origin
        self._row = 0

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> int:
        self._position = (self._position + self._gamma) & MASK
        state: int = sample(mix(self._position), self._size, self._table, self._row)
        self._row = (state + 1) * self._size
        return state

    @property
    def is_fresh(self) -> bool:
        """Whether the next state is drawn from the initial law."""
        return self._row == 0

    def restart(self) -> None:
        """The next state is drawn from the initial law. It uses the next draw of the same stream."""
        self._row = 0

    def resume(self, draws: int, last: int | None) -> None:
        """Resumes after ``draws`` draws, from the position ``last``, or from the initial law if ``last`` is None."""
        self._position = (self._origin + draws * self._gamma) & MASK
        self._row = 0 if last is None else (last + 1) * self._size
