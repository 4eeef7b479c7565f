"""A policy: two small scalar functions, and the constants that they get.

A policy advances the chain with the largest index. A chain's index depends on that chain's counts alone:

    index_k = index( Σ_x terms(row x of chain k), T_k, constants_k )

The functions are plain Python on scalars. So one definition is interpreted in a live study, compiled for the CPU and
compiled for the GPU. They must not allocate. They may use only arithmetic, comparisons, loops, ``math`` and other such
functions. Each engine updates a chain's sums with ``replaced`` before it reads the index again: after every
observation, or after a block. It replaces one changed row after the other, in the order of the states. The last bits
of running sums depend on this order, so all engines that keep it agree to the last bit.
"""

import inspect
import math
import numbers
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..validation import real_number, shown, unicode_text, whole_number

if TYPE_CHECKING:
    from ..problems import Problem


@dataclass(frozen=True)
class Setting:
    """The information about one chain that a rule has before the first observation."""

    #: k, this chain's number.
    chain: int
    #: S_k, its number of states.
    size: int
    #: K, the number of chains.
    chains: int
    #: Σ_j S_j² over all chains; the paper has KS².
    pairs: int
    #: n, the number of observations that will be made; None if it is unlimited.
    budget: int | None
    #: The true matrices, in an experiment; None in a live study.
    problem: "Problem | None" = None
    #: Whether new states may appear: then ``size`` is the number known so far (MATH §6, Open states).
    open: bool = False


def settings(sizes: Sequence[int], budget: int | None, problem: "Problem | None" = None) -> Iterator[Setting]:
    """The setting of each chain of a set."""
    pairs = sum(size * size for size in sizes)
    for chain, size in enumerate(sizes):
        yield Setting(chain, size, len(sizes), pairs, budget, problem)


def no_constants(setting: Setting) -> tuple[float, ...]:
    """The constants of a rule that needs none."""
    return ()


#: A rule is tried on a chain of this many states, to see how many numbers it returns. A real chain may be too large.
MOST_TRIED = 100_000


#: The parameters of a policy's functions.
PARAMETERS = {
    "index": ("sums", "transitions", "constants"),
    "terms": ("row", "exits", "squares", "constants"),
    "constants": ("setting",),
    "entry": ("count", "exits", "constants"),
    "summary": ("exits", "squares", "size", "constants", "reals", "wholes"),
    "floor": ("t",),
    "target": ("problem",),
}


@dataclass(frozen=True)
class Policy:
    """A rule that chooses which chain to sample next.

    ``terms(row, exits, squares, constants)`` → a tuple of floats, summed over the states left at least once. ``row``
    holds N[x,·], ``exits`` is N_x and ``squares`` is Σ_y N[x,y]², all as floats.
    ``index(sums, transitions, constants)`` → the chain's index; ``transitions`` is T as a float. With batches and
    leases, T includes the pending transitions, and everything else is frozen.
    ``constants(setting)`` → a tuple of floats, prepared once for each chain.
    ``summary(exits, squares, size, constants, reals, wholes)``, instead of ``terms``, for a rule that is not a sum over
    rows → the tuple of floats that ``index`` gets as ``sums``.
    """

    name: str
    index: Callable[[Any, float, Any], float]
    terms: Callable[[Any, float, float, Any], tuple[float, ...]] | None = None
    constants: Callable[[Setting], tuple[float, ...]] = no_constants
    #: entry(count, exits, constants) → a float. If it is given, ``terms`` gets Σ_y entry(N[x,y], N_x, constants)
    #: instead of the row, added in the order of the states y. Several replications can then be processed at once.
    entry: Callable[[float, float, Any], float] | None = None
    #: Instead of ``terms``: summary(exits, squares, size, constants, reals, wholes) → the ``sums`` that ``index`` gets.
    #: ``exits`` and ``squares`` have N_x and Σ_y N[x,y]² of each state, 0 for states never left. The first ``size`` of
    #: them belong to the chain. ``reals`` and ``wholes`` are scratch space for 2S floats and 2S integers.
    summary: Callable[[Any, Any, int, Any, Any, Any], tuple[float, ...]] | None = None
    #: floor(t): the least sampled chain goes first while its T is below this; t counts the observations so far.
    floor: Callable[[float], float] | None = None
    #: The chosen chain is advanced max(1, ⌊block·T⌋) times before indices are compared again (MATH §6, Blocks).
    block: float = 0.0
    #: Whether the sums belong to a study's aim: they are not a function of the counts; the study sets them.
    aiming: bool = False
    #: A chain's weight ω multiplies the index as ω**power.
    power: float = 1.0
    #: The shares of the budget that the rule aims at, from the true matrices; None if it has no fixed aim.
    target: "Callable[[Problem], npt.NDArray[np.float64]] | None" = None
    #: It changes whenever the rule gives different indices. It is stored with a study.
    version: int = 1
    #: The parameters that the rule was made with. They are stored with a study.
    parameters: Mapping[str, float | str] = field(default_factory=dict)
    #: The same rule without a budget (``Setting.budget`` is None), if it then needs other functions.
    endless: "Policy | None" = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InputError(f"a policy's name must be a string that is not empty, not {shown(self.name)}")
        object.__setattr__(self, "name", unicode_text(self.name, "a policy's name"))
        version = whole_number(self.version, "version", least=0, meaning="the number of the rule's version")
        object.__setattr__(self, "version", version)
        if not callable(self.index) or (self.terms is None) == (self.summary is None):
            raise InputError(f"the policy {self.name!r} needs an index function and either terms or summary")
        for function, parameters in PARAMETERS.items():
            self._need_parameters(function, parameters)
        real_number(self.block, "block", least=0.0, below=1.0, meaning="how much of T one look at the indices lasts")

    def _need_parameters(self, name: str, parameters: Sequence[str]) -> None:
        """Raises ``InputError`` if the function of this name does not take these parameters."""
        function = getattr(self, name)
        if function is None:
            return
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):  # some functions of C have no signature
            return
        try:
            signature.bind(*parameters)
        except TypeError:
            wanted = f"{name} takes ({', '.join(parameters)})"
            raise InputError(f"the policy {self.name!r}: {wanted}, and its function has {signature}") from None

    def facing(self, budget: int | None) -> "Policy":
        """The rule for this horizon: the policy itself, or its ``endless`` form if there is one and no budget.

        The endless form has functions of its own. Its name and the user's settings are those of the policy.
        """
        if budget is not None or self.endless is None:
            return self
        return replace(self.endless, name=self.name, block=self.block, version=self.version, parameters=self.parameters)

    def factor(self, weight: float) -> float:
        """ω**power, from square roots where possible, because their bits are the same everywhere (MATH §6)."""
        root = math.sqrt(weight)
        powers = {1.0: weight, 0.5: root, 0.75: root * math.sqrt(root)}
        try:
            return powers[self.power] if self.power in powers else weight**self.power
        except OverflowError:
            text = f"a weight of {weight:g} is too large for the policy {self.name!r}, which raises it to the power"
            raise InputError(f"{text} {self.power:g}") from None

    def prepare(self, setting: Setting) -> tuple[float, ...]:
        """The constants of one chain, checked."""
        values = tuple(float(value) for value in self.constants(setting))
        if not all(math.isfinite(value) for value in values):
            raise InputError(f"the constants of the policy {self.name!r} must be finite, not {shown(values)}")
        return values

    def row_terms(self, row: Any, size: int, exits: float, squares: float, constants: Any) -> tuple[float, ...]:
        """``terms`` of one row of S counts. If the rule has ``entry``, it gets the sum over the entries instead."""
        assert self.terms is not None
        if self.entry is None:
            return self.terms(row, exits, squares, constants)
        total = 0.0
        for y in range(size):
            total += self.entry(row[y], exits, constants)
        return self.terms(total, exits, squares, constants)

    def width(self, size: int, constants: Sequence[float]) -> int:
        """How many numbers ``terms`` or ``summary`` returns."""
        size = min(size, MOST_TRIED)
        lone = [1.0] + [0.0] * (size - 1)
        what = "summary" if self.terms is None else "terms"
        try:
            if self.summary is not None:
                return self._width(
                    what, self.summary(lone, lone, size, constants, [0.0] * (2 * size), [0] * (2 * size))
                )
            return self._width(what, self.row_terms(lone, size, 1.0, 1.0, constants))
        except InputError:
            raise
        except Exception as error:
            error.add_note(f"The function {what} of the policy {self.name!r} raised this, for a state left once.")
            raise

    def _width(self, what: str, values: Any) -> int:
        if not isinstance(values, tuple) or not all(isinstance(value, numbers.Real) for value in values):
            expected = "must return a tuple of numbers, as (x,) for one"
            raise InputError(f"{what} of the policy {self.name!r} {expected}, not {shown(values)}")
        return len(values)

    def aim(self, problem: "Problem", weights: Sequence[float] | None = None) -> "npt.NDArray[np.float64] | None":
        """The shares of the budget that the rule tends to, with weights ω; None if it has no fixed aim."""
        if self.target is None or problem.variability == 0:
            return None
        shares = self.target(problem)
        if weights is not None:
            shares = shares * np.asarray(weights, dtype=np.float64) ** self.power
        return np.asarray(shares / shares.sum())


def replaced(total: float, old: float, new: float) -> float:
    """A running sum over rows after one row's term has changed. All engines add in this order."""
    return (total - old) + new
