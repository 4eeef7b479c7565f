"""The immutable Markov chain and its quantities (MATH §2). Each is computed once, on first use."""

import math
import warnings
from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any, NoReturn, Self

import numpy as np
import numpy.typing as npt

from ..errors import InputError, NotErgodicError, RenormalisedWarning
from ..validation import number_array, real_number, shown, unique_labels

Array = npt.NDArray[np.float64]

#: The largest distance of a row's sum from one.
ROW_TOLERANCE = 1e-9


class MarkovChain:
    """A Markov chain on finitely many states: transition matrix, initial law, state labels.

    ``matrix``: S × S, rows sum to one within 1e-9. ``initial``: the law of the first state, uniform unless given.
    ``states``: S unique hashable labels, 0 … S−1 unless given. A pandas DataFrame brings its own labels: its rows and
    columns must be the same states, in any order. ``states`` then renames them, in the order of the rows.
    """

    matrix: Array
    initial: Array
    states: tuple[Hashable, ...]

    def __init__(
        self, matrix: npt.ArrayLike, initial: npt.ArrayLike | None = None, states: Sequence[Hashable] | None = None
    ):
        values, states = _labelled(matrix, states)
        checked = _square(values)
        labels = _labels(states, len(checked))
        _check_rows(checked, labels, ROW_TOLERANCE)
        self._set(checked, initial, labels)

    @classmethod
    def from_table(
        cls,
        table: npt.ArrayLike,
        *,
        tolerance: float = 0.01,
        initial: npt.ArrayLike | None = None,
        states: Sequence[Hashable] | None = None,
    ) -> Self:
        """A chain from a published table whose rows are off by rounding: each row is divided by its sum.

        A row's sum may be off by ``tolerance``. A ``RenormalisedWarning`` says how large the largest change was.
        """
        real_number(tolerance, "tolerance", least=0.0, below=1.0, meaning="how far from one a row may sum")
        values, states = _labelled(table, states)
        checked = _square(values)
        labels = _labels(states, len(checked))
        _check_rows(checked, labels, tolerance)
        sums = checked.sum(axis=1)
        largest = float(np.abs(sums - 1).max())
        if largest > ROW_TOLERANCE:
            text = f"rows were divided by their sums, which are off by up to {largest:.3g}"
            warnings.warn(text, RenormalisedWarning, stacklevel=2)
        chain = cls.__new__(cls)
        chain._set(checked / sums[:, None], initial, labels)
        return chain

    @classmethod
    def convert(cls, thing: Any) -> "MarkovChain":
        """A chain from an array, a labelled table, a networkx digraph, or a QuantEcon, PyDTMC or deeptime chain."""
        from .convert import to_chain

        return to_chain(thing)

    def _set(self, matrix: Array, initial: npt.ArrayLike | None, states: tuple[Hashable, ...]) -> None:
        law = _initial(initial, len(matrix))
        matrix.setflags(write=False)
        law.setflags(write=False)
        self.__dict__.update(matrix=matrix, initial=law, states=states)

    def __getstate__(self) -> tuple[Array, Array, tuple[Hashable, ...]]:
        return self.matrix, self.initial, self.states

    def __setstate__(self, state: tuple[Array, Array, tuple[Hashable, ...]]) -> None:
        # A pickled or copied array is writable again.
        self._set(*state)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a MarkovChain does not change: {name!r} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a MarkovChain does not change: {name!r} cannot be deleted")

    # -- the given parts

    @property
    def size(self) -> int:
        """S, the number of states."""
        return len(self.matrix)

    def __len__(self) -> int:
        return self.size

    def index_of(self, state: Hashable) -> int:
        """The position of a state's label."""
        try:
            return self._positions[state]
        except (KeyError, TypeError):
            raise InputError(
                f"unknown state {shown(state)}: the chain's states are {shown(list(self.states))}"
            ) from None

    @cached_property
    def _positions(self) -> dict[Hashable, int]:
        return {label: position for position, label in enumerate(self.states)}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MarkovChain):
            return NotImplemented
        return (
            self.states == other.states
            and np.array_equal(self.matrix, other.matrix)
            and np.array_equal(self.initial, other.initial)
        )

    def __hash__(self) -> int:
        # Adding 0.0 turns −0.0 into 0.0.
        return hash((self.states, (self.matrix + 0.0).tobytes(), (self.initial + 0.0).tobytes()))

    def __repr__(self) -> str:
        return f"MarkovChain({self.size} states: {shown(list(self.states), 60)})"

    # -- structure of the graph

    @cached_property
    def is_irreducible(self) -> bool:
        """Whether every state can be reached from every other."""
        from .structure import communicating_classes

        return communicating_classes(self.matrix)[0] == 1

    @cached_property
    def period(self) -> int:
        """The gcd of the lengths of all closed paths; needs an irreducible chain."""
        from .structure import period

        self._need_irreducible("a period")
        return period(self.matrix)

    @property
    def is_aperiodic(self) -> bool:
        """Whether the period is one; False for a chain that is not irreducible."""
        return self.is_irreducible and self.period == 1

    @property
    def is_ergodic(self) -> bool:
        """Irreducible and aperiodic: some power of the matrix is positive everywhere."""
        return self.is_aperiodic

    # -- the stationary law and what follows from it

    @cached_property
    def stationary(self) -> Array:
        """π = πP. Needs a single recurrent class; transient states have π = 0."""
        from .stationary import stationary_law
        from .structure import recurrent_classes

        classes = recurrent_classes(self.matrix)
        if len(classes) > 1:
            heads = shown([self.states[states[0]] for states in classes])
            raise NotErgodicError(
                f"this chain has no single stationary law: it has {len(classes)} sets of states that cannot be left"
                f" (one state of each: {heads})"
            )
        law = np.zeros(self.size)
        law[classes[0]] = stationary_law(self.matrix[np.ix_(classes[0], classes[0])])
        law.setflags(write=False)
        return law

    @cached_property
    def inverse_stationary_sum(self) -> float:
        """H = Σ_x 1/π(x)."""
        self._need_every_state("Σ 1/π")
        return float((1 / self.stationary).sum())

    @cached_property
    def reversal(self) -> "MarkovChain":
        """The chain run backwards in time, P*(x,y) = π(y)P(y,x)/π(x)."""
        self._need_every_state("a time reversal")
        flow = self.stationary[:, None] * self.matrix
        backward = flow.T / self.stationary[:, None]
        chain = MarkovChain.__new__(MarkovChain)
        chain._set(backward / backward.sum(axis=1, keepdims=True), self.initial.copy(), self.states)
        return chain

    @cached_property
    def is_reversible(self) -> bool:
        """Whether detailed balance π(x)P(x,y) = π(y)P(y,x) holds, each flow to a relative 1e-9."""
        self._need_irreducible("detailed balance")
        flow = self.stationary[:, None] * self.matrix
        return bool((np.abs(flow - flow.T) <= 1e-9 * np.maximum(flow, flow.T) + 1e-15 * flow.max()).all())

    # -- mixing

    @cached_property
    def spectral_gap(self) -> float:
        """γ, the absolute spectral gap of a reversible chain."""
        from .spectral import absolute_spectral_gap

        if not self.is_reversible:
            raise NotErgodicError("only a reversible chain has an absolute spectral gap; use pseudo_spectral_gap")
        self._need_every_state("an absolute spectral gap")
        return absolute_spectral_gap(self.matrix, self.stationary)

    @cached_property
    def pseudo_spectral_gap(self) -> float:
        """γ_ps, the pseudo-spectral gap; positive if and only if the chain is ergodic."""
        from .spectral import pseudo_spectral_gap

        self._need_every_state("a pseudo-spectral gap")
        return pseudo_spectral_gap(self.matrix, self.stationary) if self.is_aperiodic else 0.0

    def mixing_time_bounds(self, epsilon: float = 0.25) -> tuple[int, int]:
        """A lower and an upper bound on the first t with max_x TV(P^t(x,·), π) ≤ ε, from the spectral gap."""
        from .spectral import ROUNDING, mixing_bounds, reversible_mixing_bounds

        real_number(epsilon, "epsilon", above=0.0, below=0.5, meaning="a distance in total variation")
        if not self.is_ergodic:
            raise NotErgodicError("only an ergodic chain forgets its start: this one is periodic or not irreducible")
        if self.size == 1:
            return 0, 0
        gap = self.spectral_gap if self.is_reversible else self.pseudo_spectral_gap
        if gap <= ROUNDING:
            raise NotErgodicError(f"a spectral gap of {gap:g} cannot be told from zero: nothing bounds the mixing time")
        bounds, smallest = reversible_mixing_bounds if self.is_reversible else mixing_bounds, self.stationary.min()
        lower, _ = bounds(gap + ROUNDING, smallest, epsilon)
        _, upper = bounds(gap - ROUNDING, smallest, epsilon)
        return math.ceil(lower * (1 - 1e-12)), math.ceil(upper)  # a time is a whole number; 1e-12 allows for rounding

    # -- how difficult the rows are to learn

    @cached_property
    def gini(self) -> Array:
        """G(x) = Σ_y P(x,y)(1 − P(x,y)) for each state."""
        from .variability import gini

        values = gini(self.matrix)
        values.setflags(write=False)
        return values

    @cached_property
    def variability(self) -> float:
        """ΣG, the limit of T·E[L]."""
        return float(self.gini.sum())

    @cached_property
    def loss_variance(self) -> float:
        """v = 2Σ_x(s₂ − 2s₃ + s₂²), s_j = Σ_y P(x,y)^j: the limit of the variance of T·L (MATH §6)."""
        from .variability import loss_variance

        return loss_variance(self.matrix)

    # -- conversion to other libraries (by duck typing: none is a dependency)

    def to_pandas(self) -> Any:
        """A pandas DataFrame, states as index and columns."""
        from .convert import to_pandas

        return to_pandas(self)

    def to_networkx(self) -> Any:
        """A networkx DiGraph with one edge for each possible transition and its probability as ``weight``."""
        from .convert import to_networkx

        return to_networkx(self)

    def to_quantecon(self) -> Any:
        """A quantecon.MarkovChain."""
        from .convert import to_quantecon

        return to_quantecon(self)

    def to_pydtmc(self) -> Any:
        """A pydtmc.MarkovChain; its states are strings."""
        from .convert import to_pydtmc

        return to_pydtmc(self)

    def to_deeptime(self) -> Any:
        """A deeptime.markov.msm.MarkovStateModel; deeptime numbers its states."""
        from .convert import to_deeptime

        return to_deeptime(self)

    def _need_irreducible(self, what: str) -> None:
        if not self.is_irreducible:
            raise NotErgodicError(
                f"only an irreducible chain has {what}: here some state cannot be reached from another"
            )

    def _need_every_state(self, what: str) -> None:
        from .stationary import SMALLEST

        self._need_irreducible(what)
        least = int(self.stationary.argmin())
        if self.stationary[least] < SMALLEST:
            raise NotErgodicError(
                f"{what} needs stationary probabilities ≥ {SMALLEST:g} to be computed, but that of"
                f" {shown(self.states[least])} is {self.stationary[least]:g}"
            )


def _labelled(matrix: Any, states: Sequence[Hashable] | None) -> tuple[Any, Sequence[Hashable] | None]:
    """The values of a matrix, and its states: the given ones, or else the matrix's own labels."""
    from .convert import is_labelled_table, labelled_table

    if not is_labelled_table(matrix):
        return matrix, states
    values, own = labelled_table(matrix)
    return values, own if states is None else states


def _square(matrix: npt.ArrayLike) -> Array:
    array = number_array(matrix, "a transition matrix")
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.size == 0:
        raise InputError(f"a transition matrix must be square with at least one state, not of shape {array.shape}")
    return array


def _labels(states: Sequence[Hashable] | None, size: int) -> tuple[Hashable, ...]:
    if states is None:
        return tuple(range(size))
    labels = unique_labels(states)
    if len(labels) != size:
        raise InputError(f"states must have one label a row, {size} in all, not {len(labels)}: {shown(states)}")
    return labels


def _check_rows(matrix: Array, states: tuple[Hashable, ...], tolerance: float) -> None:
    bad = ~((matrix >= 0) & (matrix <= 1 + tolerance))
    if bad.any():
        x, y = np.argwhere(bad)[0]
        raise InputError(
            f"a transition matrix holds probabilities, but the one from {shown(states[x])} to {shown(states[y])}"
            f" is {matrix[x, y]:g}"
        )
    sums = matrix.sum(axis=1)
    off = np.abs(sums - 1)
    if off.max() > tolerance:
        x = int(off.argmax())
        hint = "; for a table that is off by rounding use MarkovChain.from_table" if tolerance == ROW_TOLERANCE else ""
        raise InputError(
            f"each row must sum to one within {tolerance:g}, but the row of {shown(states[x])} sums to"
            f" {sums[x]:.12g}{hint}"
        )


def _initial(initial: npt.ArrayLike | None, size: int) -> Array:
    if initial is None:
        return np.full(size, 1 / size)
    law = number_array(initial, "the initial law")
    inside = (law >= 0) & (law <= 1 + ROW_TOLERANCE)
    if law.shape != (size,) or not inside.all() or abs(law.sum() - 1) > ROW_TOLERANCE:
        raise InputError(
            f"the initial law must be {size} probabilities, one a state, that sum to one, not {shown(initial)}"
        )
    return law
