"""The problem: named chains with known matrices, and the quantities of the set (MATH §2 and §5)."""

import math
import os
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from ..chains import MarkovChain
from ..errors import InputError, NotErgodicError
from ..validation import did_you_mean, failure_probability, shown, whole_number

Array = npt.NDArray[np.float64]


class Problem:
    """Named Markov chains with known matrices. Their state spaces may differ.

    ``chains``: name → chain, at least one; their order is kept. ``name``, ``description`` and ``source`` say what the
    problem is and where it comes from.
    """

    chains: Mapping[str, MarkovChain]
    name: str
    description: str
    source: str

    def __init__(
        self, chains: Mapping[str, MarkovChain], name: str = "", description: str = "", source: str = ""
    ) -> None:
        if not isinstance(chains, Mapping):
            raise InputError(f"chains must be a mapping from names to chains, not {shown(chains)}")
        if not chains:
            raise InputError("a problem must have at least one chain, and none was given")
        for key, chain in chains.items():
            if not isinstance(key, str) or not key:
                raise InputError(f"a chain's name must be a non-empty string, not {shown(key)}")
            if not isinstance(chain, MarkovChain):
                raise InputError(f"each chain must be a MarkovChain, but chain {shown(key)} is {shown(chain)}")
        for what, text in (("name", name), ("description", description), ("source", source)):
            if not isinstance(text, str):
                raise InputError(f"{what} of a problem must be a string, not {shown(text)}")
        self.__dict__.update(chains=MappingProxyType(dict(chains)), name=name, description=description, source=source)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> "Problem":
        """The problem in a ``.toml`` or ``.json`` file, or the one chain of a model checker's ``.drn`` or ``.umb``."""
        from .reading import load

        return load(path)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a ``.toml`` or ``.json`` file, or one chain for model checkers: ``.prism``, ``.drn`` or ``.umb``.

        All or nothing: an interrupted save leaves the old file unchanged.
        """
        from .writing import save

        save(self, path)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a Problem does not change: {name!r} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a Problem does not change: {name!r} cannot be deleted")

    # MappingProxyType cannot be pickled, so the chains are pickled as a plain mapping.
    def __reduce__(self) -> tuple[Any, ...]:
        return Problem, (dict(self.chains), self.name, self.description, self.source)

    # -- what was given

    @property
    def names(self) -> tuple[str, ...]:
        """The chains' names, in order."""
        return tuple(self.chains)

    @property
    def sizes(self) -> tuple[int, ...]:
        """S_k, the number of states of each chain."""
        return tuple(chain.size for chain in self.chains.values())

    def __getitem__(self, name: str) -> MarkovChain:
        try:
            return self.chains[name]
        except (KeyError, TypeError):
            known = f"{did_you_mean(name, self.chains)}: the chains are {shown(list(self.chains))}"
            raise InputError(f"unknown chain {shown(name)}{known}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.chains)

    def __len__(self) -> int:
        return len(self.chains)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def _parts(self) -> tuple[object, ...]:
        return tuple(self.chains.items()), self.name, self.description, self.source

    def __eq__(self, other: object) -> bool:
        return self._parts() == other._parts() if isinstance(other, Problem) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._parts())

    def __repr__(self) -> str:
        number = f"{len(self)} chain{'s' * (len(self) > 1)}"
        return f"Problem({self.name!r}, {number}: {shown(list(self.chains), 60)})"

    # -- the set's quantities

    @cached_property
    def variability(self) -> float:
        """Λ = Σ_k ΣG_k (paper §3.4)."""
        return math.fsum(chain.variability for chain in self.chains.values())

    @cached_property
    def allocation(self) -> Array:
        """η_k = ΣG_k/Λ, the asymptotically optimal share of each chain; sums to one."""
        if self.variability == 0:
            raise InputError(
                "a problem whose chains are all deterministic has no optimal allocation: every variability is zero"
            )
        shares = np.array([chain.variability for chain in self.chains.values()]) / self.variability
        shares.setflags(write=False)
        return shares

    def optimal_loss(self, budget: int) -> float:
        """Λ/n, the asymptotically optimal loss for a budget of n observations."""
        return self.variability / whole_number(budget, "budget", meaning="the number of observations")

    @cached_property
    def excess_constant(self) -> float:
        """C₀ of Theorem 2, in the form of its proof: 150·K·√(SΛ·max H) + max_k 2.4·√(S·H_k·Λ)/η_k, S = max_k S_k.

        (The theorem's statement has 3·√(SΛ)·max H_k/η_k as its second term; MATH §5.) It is infinite if some η_k = 0.
        """
        shares: list[float] = self.allocation.tolist()
        inverse = self.of_each(lambda chain: chain.inverse_stationary_sum)
        if 0 in shares:
            return math.inf
        scale = math.sqrt(max(self.sizes) * self.variability)
        second = max(2.4 * math.sqrt(h) / eta for h, eta in zip(inverse, shares, strict=True))
        return scale * (150 * len(self) * math.sqrt(max(inverse)) + second)

    def cutoff_budget(self, delta: float, corrected: bool = False) -> float:
        """n_cutoff, the budget from which Theorem 2 holds: as stated, or ``corrected`` (``problems.cutoff``).

        At the corrected budget, with probability ≥ 1 − 2δ, the event C holds and π̂_k(x) ≥ π_k(x)/2 for every state.
        """
        from .cutoff import corrected_cutoff, stated_cutoff

        failure_probability(delta)
        for name, chain in self.chains.items():
            if not chain.is_ergodic:
                raise NotErgodicError(
                    f"only a problem of ergodic chains has a cut-off budget, and chain {shown(name)} is not ergodic"
                )
        return corrected_cutoff(self, delta) if corrected else stated_cutoff(self, delta)

    def of_each(self, quantity: Callable[[MarkovChain], float]) -> list[float]:
        """A quantity of each chain. If a chain does not have it, the error names the chain."""
        values = []
        for name, chain in self.chains.items():
            try:
                values.append(quantity(chain))
            except NotErgodicError as error:
                raise NotErgodicError(f"chain {shown(name)}: {error}") from None
        return values
