"""Which chains to sample next, and how much, given the counts of a log."""

from collections.abc import Mapping

import numpy as np

from .. import predictions
from ..problems import Problem
from ..validation import whole_number


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
    return dict(zip(problem.names, _rounded(exact, budget), strict=True))


def _rounded(exact: "np.typing.NDArray[np.float64]", total: int) -> list[int]:
    """Whole numbers with this sum: the largest remainders are rounded up."""
    whole = np.floor(exact).astype(np.int64)
    order = np.argsort(whole - exact, kind="stable")
    whole[order[: total - int(whole.sum())]] += 1
    return [int(number) for number in whole]
