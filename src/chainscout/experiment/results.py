"""The results of an experiment: losses and pulls of every replication, and everything needed to repeat it."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..engine.gpu import at_home
from ..errors import InputError, MissingExtraError
from ..frames import pandas_library
from ..markup import html_table
from ..problems import Problem
from ..problems.schema import document
from ..validation import one_of, shown
from .statistics import STATISTICS, Statistic

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

#: The axes of losses and pulls.
DIMENSIONS = ("policy", "budget", "replication", "chain")


@dataclass(frozen=True, eq=False)
class Results:
    """Losses and pulls, indexed (policy, budget, replication, chain); pulls are observations of the chain.

    Results of a GPU stay in its memory until ``loss`` or ``pulls`` is read. Summaries are computed there.
    """

    problem: Problem
    policies: tuple[str, ...]
    budgets: tuple[int, ...]
    #: The losses and pulls where they were computed: NumPy's arrays, or CuPy's.
    held_loss: Any
    held_pulls: Any
    #: The shares of the budget that each policy aims at, (policy, chain); nan if it has no fixed aim.
    targets: Array
    #: Seed, engine, delta, weights, the policies' parameters, versions, …: with the problem, they repeat the run.
    settings: Mapping[str, Any]

    def __post_init__(self) -> None:
        for array in (self.held_loss, self.held_pulls, self.targets):
            _freeze(array)

    def __getstate__(self) -> dict[str, Any]:
        """For pickle: arrays on a GPU are copied to the host, so that they can be read on a machine without a GPU."""
        held = {"held_loss": self.loss, "held_pulls": self.pulls}
        return {field.name: held.get(field.name, getattr(self, field.name)) for field in fields(self)}

    @cached_property
    def loss(self) -> Array:
        """The losses of all replications; nan while a chain has no transition."""
        return np.asarray(_freeze(at_home(self.held_loss)))

    @cached_property
    def pulls(self) -> Counts:
        """How often each chain was observed in every replication."""
        return np.asarray(_freeze(at_home(self.held_pulls)))

    @property
    def replications(self) -> int:
        """The number of replications."""
        return int(self.held_loss.shape[2])

    @cached_property
    def statistics(self) -> dict[tuple[str, int], dict[str, Statistic]]:
        """max E[L], E[max L] and quantile(L), with their influence values, by policy and budget."""
        delta = float(self.settings["delta"])
        return {
            (policy, budget): {name: of(self.held_loss[p, b], delta) for name, of in STATISTICS.items()}
            for p, policy in enumerate(self.policies)
            for b, budget in enumerate(self.budgets)
        }

    @property
    def is_normalised(self) -> bool:
        """Whether losses are shown as n·L/Λ: only the paper's loss, of chains that are not all deterministic, has Λ."""
        paper = (self.settings["distance"], self.settings["row_weights"]) == ("squared", "empirical")
        return paper and self.problem.variability > 0

    def scale(self, budget: int) -> float:
        """The factor by which a loss at this budget is multiplied for display: n/Λ, or one."""
        return budget / self.problem.variability if self.is_normalised else 1.0

    def shown(self, policy: str, statistic: str) -> list[Statistic]:
        """A statistic of a policy at every budget, multiplied for display."""
        return [self.statistics[policy, n][statistic].times(self.scale(n)) for n in self.budgets]

    def label(self, statistic: str) -> str:
        """The displayed name of a statistic."""
        return f"n·{statistic}/Λ" if self.is_normalised else statistic

    def summary(self) -> list[dict[str, Any]]:
        """One row for each policy and budget: the three losses, their standard errors, their ratios to the oracle's."""
        from .summary import summary

        return summary(self)

    def differences(self, statistic: str = "E[max L]") -> list[dict[str, Any]]:
        """Paired differences of a statistic between all pairs of policies, with 95 % intervals."""
        from .summary import differences

        return differences(self, one_of(statistic, "statistic", STATISTICS))

    def allocation(self) -> list[dict[str, Any]]:
        """Each chain's share of the pulls against η and against the policy's own target."""
        from .summary import allocation

        return allocation(self)

    def figure(
        self, panels: Sequence[str] = ("max E[L]", "E[max L]", "share"), *, width: float | None = None
    ) -> "Figure":
        """Loss against budget with bands and the Λ/n line, and the allocation against η and the policy's target.

        ``panels``: which panels, from left to right: 'max E[L]', 'E[max L]' and 'share'.
        ``width``: of the whole figure, in inches; 4.3 inches a panel unless given. Text has 8 points in panels below 4
        inches, and 10 points in others.
        """
        try:
            from .figures import figure
        except ImportError:
            raise MissingExtraError("a figure", "plot") from None
        return figure(self, panels, width)

    def to_xarray(self) -> Any:
        """An xarray Dataset with the dimensions policy, budget, replication and chain."""
        try:
            import xarray
        except ImportError:
            raise MissingExtraError("to_xarray", "xarray") from None
        return xarray.Dataset(
            {
                "loss": (DIMENSIONS, self.loss),
                "pulls": (DIMENSIONS, self.pulls),
                "target": (("policy", "chain"), self.targets),
            },
            coords={"policy": list(self.policies), "budget": list(self.budgets), "chain": list(self.problem.names)},
            attrs={"settings": json.dumps(dict(self.settings)), "problem": json.dumps(document(self.problem))},
        )

    def to_pandas(self) -> Any:
        """A pandas DataFrame with a row for each policy, budget, replication and chain: ``loss`` and ``pulls``."""
        pandas = pandas_library("to_pandas")
        axes = [self.policies, self.budgets, range(self.replications), self.problem.names]
        index = pandas.MultiIndex.from_product(axes, names=DIMENSIONS)
        table = pandas.DataFrame({"loss": self.loss.ravel(), "pulls": self.pulls.ravel()}, index=index)
        return table.reset_index()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a file of NumPy's (``.npz``)."""
        from .files import save

        save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Results":
        """The results that ``save`` wrote."""
        from .files import load

        return load(path)

    def position(self, policy: str) -> int:
        """The position of a policy on the first axis."""
        if policy not in self.policies:
            raise InputError(f"unknown policy {shown(policy)}: these results have {', '.join(self.policies)}")
        return self.policies.index(policy)

    def __repr__(self) -> str:
        return f"Results({len(self.policies)} policies, {len(self.budgets)} budgets, {self.replications} replications)"

    def _repr_html_(self) -> str:
        """The summary as a table for a notebook."""
        rows = self.summary()
        return html_table(repr(self), list(rows[0]), [list(row.values()) for row in rows])


def _freeze(array: Any) -> Any:
    """The array, made read-only, because statistics are computed only once."""
    if isinstance(array, np.ndarray):
        array.flags.writeable = False
    return array
