"""The counts of a log, for any number of chains, read one chain at a time."""

import itertools
import math
import os
from collections.abc import Hashable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .. import predictions
from ..certificates import Certificate, mixture, sharp
from ..certificates.certificate import need_certifiable
from ..chains import MarkovChain
from ..counts import Counts
from ..errors import InputError
from ..frames import frame
from ..problems import Problem
from ..validation import failure_probability, one_of, shown, whole_number

if TYPE_CHECKING:
    from ._spool import Spool

__all__ = ["States", "TransitionCounts", "next_samples", "states_of"]

#: The states of all chains, or of each chain by its name; None for the states that occur in the log.
States = int | Sequence[Hashable] | Mapping[str, int | Sequence[Hashable]] | None


def states_of(name: str, states: States) -> int | Sequence[Hashable] | None:
    """The states that are given for a chain."""
    if not isinstance(states, Mapping):
        return states
    if name not in states:
        raise InputError(f"states must name the states of every chain, and {shown(name)} is not among them")
    return states[name]


#: How many chains are certified at a time, how many bounds are remembered, and for how many chains the bounds on
#: single probabilities are kept.
_BATCH = 1_000
_MOST_REMEMBERED = 100_000
_MOST_DETAILED = 100_000


def _shape(counts: Counts) -> Hashable:
    """S and the counts of every row without the states' names. A certificate depends only on this."""
    return counts.size, tuple(sorted(tuple(sorted(row.values())) for row in counts.rows().values()))


class TransitionCounts:
    """The counts of every chain of a log.

    Iteration gives (name, ``Counts``), with one chain in memory at a time. A chain's name is its id as text, and chains
    come in the order of their ids. The counts are complete: a log that cannot be read to its end gives no counts.

    ``store``: where the counts are; ``count_transitions`` and ``read_counts`` make it. ``lag``: the number of steps
    between the two states of a transition. ``states``: the states of all chains, or of each; None: those that occur.
    """

    def __init__(self, store: "Spool", *, lag: int, correlated: bool, states: States) -> None:
        self._store: Spool | None = store
        self._states = states
        #: The number of steps between the two states of a transition. The estimated matrix is P^lag.
        self.lag = lag
        #: Whether transitions overlap (a sliding lag), so that no certificate holds for them.
        self.correlated = correlated

    @property
    def open_states(self) -> bool:
        """Whether the states are only those that occur in the log."""
        return self._states is None

    def declared(self) -> "TransitionCounts":
        """The same counts under the assumption that the states that occur are all states of their chains."""
        states = {name: chain.states for name, chain in self}
        return TransitionCounts(self._open(), lag=self.lag, correlated=self.correlated, states=states)

    def __len__(self) -> int:
        return len(self._open())

    def _open(self) -> "Spool":
        if self._store is None:
            raise InputError("these counts were closed, and their temporary files are gone")
        return self._store

    def __iter__(self) -> Iterator[tuple[str, Counts]]:
        for chain, rows in itertools.groupby(self._open().pairs(), key=lambda row: row[0]):
            yield str(chain), self._counts_of(str(chain), [row[1:] for row in rows])

    def _counts_of(self, name: str, pairs: list[tuple[Any, Any, int]]) -> Counts:
        given = states_of(name, self._states)
        labels = sorted({to for _, to, _ in pairs}) if given is None else given
        try:
            return Counts.from_pairs(pairs, labels, open_states=given is None, correlated=self.correlated)
        except InputError as error:
            raise InputError(f"chain {shown(name)}: {error}") from None

    def counts(self) -> dict[str, Counts]:
        """The counts of all chains, in memory at once."""
        return dict(self)

    def certificate(self, delta: float = 0.05, method: str = "sharp") -> Certificate:
        """The certificate of all chains together, ``sharp`` or ``mixture``, without holding all their counts.

        For more than 100,000 chains no bounds on single probabilities are kept.
        """
        failure_probability(delta)
        one_of(method, "method", ("sharp", "mixture"))
        if not len(self):
            raise InputError("a log without a single state has no chains to certify")
        log_inverse = math.log(len(self) / delta)
        known: dict[Hashable, sharp.Bounds] = {}  # chains that differ only in the states' names share one result
        loss: dict[str, float] = {}
        variation: dict[str, float] = {}
        entries: dict[str, Sequence[tuple[int, float]]] = {}
        keeps = method == "sharp" and len(self) <= _MOST_DETAILED
        chains = iter(self)
        while batch := dict(itertools.islice(chains, _BATCH)):
            need_certifiable(batch, method)
            keys = {name: _shape(counts) for name, counts in batch.items()}
            if len(known) > _MOST_REMEMBERED:
                known = {}
            new = {key: batch[name] for name, key in keys.items() if key not in known}
            if method == "sharp":
                found = sharp.bounds(list(new.values()), log_inverse)
            else:
                found = [sharp.Bounds(mixture.bound_of(counts, log_inverse)) for counts in new.values()]
            known.update(zip(new, found, strict=True))
            for name, key in keys.items():
                loss[name] = known[key].loss
                if keeps:
                    variation[name], entries[name] = known[key].total_variation, known[key].entries
        return Certificate(loss, delta, method, total_variation=variation, entries=entries)

    def next_samples(self, budget: int) -> dict[str, int]:
        """How many of the next ``budget`` observations each chain should get, from the estimates so far."""
        counts = self.counts()
        return next_samples(self.problem(), {name: chain.total for name, chain in counts.items()}, budget)

    def problem(self, alpha: float | str | None = None, name: str = "", source: str = "") -> Problem:
        """The smoothed estimates as a problem, to inspect, to plan with and to save.

        ``source``: where the log is from.
        """
        steps = f" over {self.lag} steps" * (self.lag > 1)
        chains = {name: MarkovChain(counts.matrix(alpha), states=counts.states) for name, counts in self}
        return Problem(chains, name=name, description=f"transition matrices{steps} estimated from a log", source=source)

    def to_pandas(self) -> Any:
        """A pandas DataFrame (chain, from, to, count); ``from`` is None where paths begin in ``to``."""
        rows = list(self._open().pairs())
        return frame({name: [row[i] for row in rows] for i, name in enumerate(("chain", "from", "to", "count"))})

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Writes the table (chain, from, to, count); ``from`` is null where paths begin in ``to``. All or nothing."""
        if not isinstance(path, str | os.PathLike):
            raise InputError(f"path must be a string or a path, not {shown(path)}")
        self._open().write_parquet(path)

    def close(self) -> None:
        """Removes the temporary files. This also happens when the object is no longer used."""
        if self._store is not None:
            self._store.close()
        self._store = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._store is None:
            return "TransitionCounts(closed)"
        number = len(self)
        return f"TransitionCounts({number} chain{'s' * (number != 1)}, lag {self.lag})"


def next_samples(problem: Problem, transitions: Mapping[str, int], budget: int) -> dict[str, int]:
    """Divides the next ``budget`` observations so that T_k + n_k comes as close as possible to the best shares τ_k.

    ``problem`` holds the estimates, ``transitions`` the T_k so far. E[max_k L_k] is smallest for T_k + n_k ∝ τ_k
    (MATH §6). Chains that already have more than their share get nothing. The level c with
    Σ_k max(0, c·τ_k − T_k) = n is found by filling the chains in the order of T_k/τ_k.
    """
    whole_number(budget, "budget", meaning="the observations to come")
    share = predictions.shares(problem, "oracle-max")
    known = np.array([transitions[name] for name in problem.names], dtype=np.float64)
    full = np.divide(known, share, out=np.full(len(share), np.inf), where=share > 0)
    order = np.argsort(full, kind="stable")
    for number in range(len(order), 0, -1):
        filled = order[:number]
        level = (budget + known[filled].sum()) / share[filled].sum()
        if number == 1 or level >= full[filled[-1]]:
            break
    exact = np.maximum(0.0, level * share - known)
    exact[order[number:]] = 0.0
    # Whole numbers with the sum of the exact ones: the largest remainders are rounded up.
    whole = np.floor(exact).astype(np.int64)
    up = np.argsort(whole - exact, kind="stable")[: budget - int(whole.sum())]
    whole[up] += 1
    return dict(zip(problem.names, whole.tolist(), strict=True))
