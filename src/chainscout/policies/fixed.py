"""Policies whose shares are known before the first observation: index = share/T."""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .. import predictions
from ..errors import InputError
from ..validation import real_number, shown
from .policy import Policy, Setting

if TYPE_CHECKING:
    from ..problems import Problem


def no_terms(row: Any, exits: float, squares: float, c: Any) -> tuple[float]:
    """No terms: the counts do not matter."""
    return (0.0,)


def share_index(sums: Any, transitions: float, c: Any) -> float:
    """share/T: the chain with the largest value is furthest behind its share."""
    return float(c[0] / transitions)


def uniform() -> Policy:
    """Round robin: index 1/T."""
    return Policy("uniform", share_index, no_terms, lambda setting: (1.0,), target=_equal_shares)


def oracle() -> Policy:
    """The paper's oracle (§2.4): index ΣG_k/T, from the true matrices."""
    return Policy("oracle", share_index, no_terms, _true_variability, target=lambda problem: problem.allocation)


def oracle_max() -> Policy:
    """The share rule from the true matrices: index τ_k/T makes E[max_k L_k] smallest."""
    return Policy("oracle-max", share_index, no_terms, _true_shares, target=_share_rule)


def static(weights: Sequence[float] | float = 1.0) -> Policy:
    """Shares given by the user: index w_k/T."""
    values = tuple(weights) if isinstance(weights, Sequence) else (weights,)
    checked = tuple(real_number(w, "weights", above=0.0, meaning="one share of the budget a chain") for w in values)

    def constants(setting: Setting) -> tuple[float]:
        if len(checked) != setting.chains:
            raise InputError(f"static needs one weight a chain, {setting.chains} in all, not {shown(checked)}")
        return (checked[setting.chain],)

    return Policy("static", share_index, no_terms, constants, target=lambda problem: np.array(checked) / sum(checked))


def _true_variability(setting: Setting) -> tuple[float]:
    return (_variabilities(truth(setting, "oracle"))[setting.chain],)


def _true_shares(setting: Setting) -> tuple[float]:
    problem = truth(setting, "oracle-max")
    # If all chains are deterministic, there is nothing to learn, and any shares are good.
    return (float(_share_rule(problem)[setting.chain]) if any(_variabilities(problem)) else 0.0,)


# Every chain reads its own number from these. They are computed once for all chains.
@lru_cache(maxsize=4)
def _variabilities(problem: "Problem") -> tuple[float, ...]:
    return tuple(chain.variability for chain in problem.chains.values())


@lru_cache(maxsize=4)
def _share_rule(problem: "Problem") -> npt.NDArray[np.float64]:
    return predictions.shares(problem, "oracle-max")


def _equal_shares(problem: "Problem") -> npt.NDArray[np.float64]:
    return predictions.shares(problem, "uniform")


def truth(setting: Setting, name: str) -> "Problem":
    """The true matrices, which only an experiment has."""
    if setting.problem is None:
        raise InputError(f"the policy {name} needs the true matrices, which a live study does not have")
    return setting.problem
