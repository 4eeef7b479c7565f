"""A chain for model checkers: numbered states with labels, probabilities or intervals of them, initial states."""

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..chains import MarkovChain
from ..counts import DENSE_LIMIT
from ..errors import ChainscoutError, FileError

__all__ = ["INITIAL", "Model", "chain_of", "is_whole", "refused"]

_Array = npt.NDArray[np.float64]

#: The label of the initial states in every format.
INITIAL = "init"
#: Labels that model checkers assign themselves.
_RESERVED = frozenset({INITIAL, "deadlock"})
#: Words that cannot be names in the PRISM language (its manual, 'Names and labels').
_WORDS = frozenset(
    {"A", "C", "E", "F", "G", "I", "P", "R", "S", "U", "W", "X", "Pmax", "Pmin", "Rmax", "Rmin", "bool", "clock",
    "const", "ctmc", "double", "dtmc", "endinit", "endinvariant", "endmodule", "endobservables", "endrewards",
    "endsystem", "false", "filter", "formula", "func", "global", "init", "int", "invariant", "label", "max", "mdp",
    "min", "module", "nondeterministic", "observable", "observables", "of", "pomdp", "popta", "prob",
    "probabilistic", "pta", "rate", "rewards", "stochastic", "system", "true"}
)  # fmt: skip


@dataclass(frozen=True)
class Model:
    """A Markov chain, or an interval Markov chain: every matrix whose entries lie in their intervals.

    ``lower`` and ``upper`` are S × S, and the same array for an exact chain. An entry whose upper end is 0 is not a
    transition, and is not written.
    """

    #: One label for each state, which all formats can write.
    labels: tuple[str, ...]
    lower: _Array
    upper: _Array
    #: The positions of the initial states.
    initial: tuple[int, ...]
    #: A comment of one line. Formats without comments leave it out.
    note: str = ""

    @property
    def exact(self) -> bool:
        """Whether this is one chain."""
        return self.lower is self.upper

    @property
    def size(self) -> int:
        """The number of states."""
        return len(self.labels)

    def row(self, x: int) -> list[tuple[int, float, float]]:
        """The transitions out of a state: target, lower end, upper end."""
        return [(int(y), float(self.lower[x, y]), float(self.upper[x, y])) for y in np.flatnonzero(self.upper[x])]

    @classmethod
    def of_states(
        cls, states: Sequence[Hashable], lower: _Array, upper: _Array, initial: Iterable[int], note: str = ""
    ) -> "Model":
        """A model whose labels are made of a chain's states."""
        return cls(_labels(states), lower, upper, tuple(initial), note)

    @classmethod
    def of_chain(cls, chain: MarkovChain) -> "Model":
        """The model of a chain. Its initial states are those with a positive initial probability; the law is lost."""
        matrix = np.asarray(chain.matrix)
        return cls.of_states(chain.states, matrix, matrix, map(int, np.flatnonzero(chain.initial)))


def _labels(states: Sequence[Hashable]) -> tuple[str, ...]:
    """The states' own labels, if every format can write them.

    Otherwise characters other than letters, digits and '_' become '_', and 's_' is put before a number and before a
    reserved word of PRISM. Labels that would then be equal get a number.
    """
    found: dict[str, None] = {}
    kept = {state for state in states if isinstance(state, str) and _is_name(state)}
    for state in states:
        label = plain = str(state)
        if state not in kept:
            plain = re.sub(r"[^A-Za-z0-9_]", "_", plain)
            label = plain = plain if _is_name(plain) else f"s_{plain}"
            number = 1
            while label in found or label in kept:
                number += 1
                label = f"{plain}_{number}"
        found[label] = None
    return tuple(found)


def _is_name(text: str) -> bool:
    return re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text) is not None and text not in _WORDS | _RESERVED


def chain_of(
    file: str, size: int, entries: Mapping[tuple[int, int], float], labels: Mapping[str, Set[int]], initial: Set[int]
) -> MarkovChain:
    """The chain that a file holds.

    The name of a state is the first label that no other state has. If some state has no such label, all states are
    numbered. Several initial states are equally likely. Without initial states, all states are equally likely.
    """
    if not 1 <= size <= DENSE_LIMIT:
        raise refused(file, "", f"a chain is read with 1 to {DENSE_LIMIT:,} states, and this file says {size:,}")
    left = {x for x, _ in entries}
    if len(left) < size:  # before S² numbers are made of a file of one line
        silent = next(x for x in range(size) if x not in left)
        raise refused(file, "", f"each row must sum to one, but the row of {silent} sums to 0")
    matrix = np.zeros((size, size))
    for (x, y), probability in entries.items():
        matrix[x, y] = probability
    own: dict[int, str] = {}
    for label, holders in labels.items():
        if len(holders) == 1 and label not in _RESERVED:
            own.setdefault(next(iter(holders)), label)
    names = [own.get(x, "") for x in range(size)]
    numbered = not all(names) or names == [f"s_{x}" for x in range(size)]
    law = np.zeros(size)
    law[sorted(initial) or slice(None)] = 1.0
    try:
        return MarkovChain(matrix, initial=law / law.sum(), states=None if numbered else names)
    except ChainscoutError as error:
        raise refused(file, "", str(error)) from None


def is_whole(text: str) -> bool:
    """Whether this is a whole number of a possible size."""
    return len(text) <= 18 and text.isascii() and text.isdecimal()


def refused(file: str, place: str, sentence: str) -> FileError:
    """The error for a file that cannot be read as an exact Markov chain: file, place, sentence."""
    return FileError(": ".join(part for part in (file, place, sentence) if part))
