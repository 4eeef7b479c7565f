"""What an experiment gives: losses and pulls of every replication, and all that is needed to repeat it."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.io import netcdf_file

from ..checks import shown
from ..errors import FileError, InputError, MissingExtraError
from ..problems import Problem
from .statistics import Statistic, statistics

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

#: The layout of saved files; a file with another number was made by another version.
FORMAT = 1


@dataclass(frozen=True)
class Results:
    """Losses and pulls, indexed (policy, budget, replication, chain); pulls are observations of the chain."""

    problem: Problem
    policies: tuple[str, ...]
    budgets: tuple[int, ...]
    loss: Array
    pulls: Counts
    #: The shares of the budget that each policy aims at, (policy, chain); nan where it has no fixed aim.
    targets: Array
    #: seed, engine, delta, mode, weights, versions: what repeats the run.
    settings: Mapping[str, Any]

    @property
    def replications(self) -> int:
        """The number of replications."""
        return int(self.loss.shape[2])

    @cached_property
    def statistics(self) -> dict[tuple[str, int], dict[str, Statistic]]:
        """The three statistics by policy and budget."""
        delta = float(self.settings["delta"])
        return {
            (policy, budget): statistics(self.loss[p, b], delta)
            for p, policy in enumerate(self.policies)
            for b, budget in enumerate(self.budgets)
        }

    def summary(self) -> list[dict[str, Any]]:
        """One row a policy and budget: the normalised losses, their standard errors and ratios to the oracle."""
        from .summary import summary

        return summary(self)

    def differences(self) -> list[dict[str, Any]]:
        """Paired differences of E[max L] between all pairs of policies, with 95 % intervals."""
        from .summary import differences

        return differences(self)

    def allocation(self) -> list[dict[str, Any]]:
        """Each chain's share of the pulls against η and against the policy's own target."""
        from .summary import allocation

        return allocation(self)

    def figure(self) -> "Figure":
        """Loss against budget with bands and the Λ/n line, and the allocation against η and the policy's target."""
        from .figures import figure

        return figure(self)

    def to_xarray(self) -> Any:
        """An xarray Dataset with the dimensions policy, budget, replication and chain."""
        try:
            import xarray
        except ImportError:
            raise MissingExtraError("to_xarray", "xarray") from None
        dimensions = ("policy", "budget", "replication", "chain")
        return xarray.Dataset(
            {
                "loss": (dimensions, self.loss),
                "pulls": (dimensions, self.pulls),
                "target": (("policy", "chain"), self.targets),
            },
            coords={"policy": list(self.policies), "budget": list(self.budgets), "chain": list(self.problem.names)},
            attrs={"settings": json.dumps(dict(self.settings))},
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a netCDF file (classic format: xarray and every netCDF reader open it)."""
        target = Path(path)
        partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
        try:
            with netcdf_file(partial, "w", version=2) as file:
                file.format = FORMAT
                file.settings = json.dumps(dict(self.settings)).encode()
                file.problem = json.dumps(_plain(self.problem)).encode()
                file.policies = json.dumps(self.policies).encode()
                sizes = dict(zip(("policy", "budget", "replication", "chain"), self.loss.shape, strict=True))
                for name, size in sizes.items():
                    file.createDimension(name, size)
                file.createVariable("budget", "f8", ("budget",))[:] = self.budgets
                file.createVariable("loss", "f8", tuple(sizes))[:] = self.loss
                file.createVariable("pulls", "f8", tuple(sizes))[:] = self.pulls
                file.createVariable("target", "f8", ("policy", "chain"))[:] = self.targets
            partial.replace(target)
        except OSError as error:
            raise FileError(f"{target} could not be written: {error.strerror or error}") from None
        finally:
            partial.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Results":
        """The results that ``save`` wrote."""
        try:
            with netcdf_file(Path(path), "r", mmap=False) as file:
                if int(file.format) != FORMAT:
                    raise FileError(f"{path} has format {int(file.format)}; this version of chainscout reads {FORMAT}")
                arrays = {name: np.array(file.variables[name][:]) for name in ("budget", "loss", "pulls", "target")}
                texts = {name: json.loads(getattr(file, name)) for name in ("settings", "problem", "policies")}
        except FileNotFoundError:
            raise FileError(f"there is no file {path}") from None
        except (
            OSError,
            ValueError,
            TypeError,
            KeyError,
            AttributeError,
            IndexError,
            OverflowError,
            MemoryError,
        ) as error:
            raise FileError(f"{path} is damaged or is not a saved experiment ({shown(str(error))})") from None
        budgets = tuple(int(budget) for budget in arrays["budget"])
        return cls(
            _problem(texts["problem"]),
            tuple(texts["policies"]),
            budgets,
            arrays["loss"].astype(np.float64),
            arrays["pulls"].astype(np.int64),
            arrays["target"].astype(np.float64),
            texts["settings"],
        )

    def __repr__(self) -> str:
        return f"Results({len(self.policies)} policies, {len(self.budgets)} budgets, {self.replications} replications)"

    def position(self, policy: str) -> int:
        """Where a policy stands."""
        if policy not in self.policies:
            raise InputError(f"unknown policy {shown(policy)}: these results have {', '.join(self.policies)}")
        return self.policies.index(policy)


def _plain(problem: Problem) -> dict[str, Any]:
    chains = {
        name: {"matrix": chain.matrix.tolist(), "initial": chain.initial.tolist(), "states": _labels(chain.states)}
        for name, chain in problem.chains.items()
    }
    return {"name": problem.name, "description": problem.description, "source": problem.source, "chains": chains}


def _labels(states: tuple[Any, ...]) -> list[Any]:
    return [state if isinstance(state, (str, int)) else str(state) for state in states]


def _problem(plain: Mapping[str, Any]) -> Problem:
    from ..chains import MarkovChain

    chains = {name: MarkovChain(**parts) for name, parts in plain["chains"].items()}
    return Problem(chains, plain["name"], plain["description"], plain["source"])
