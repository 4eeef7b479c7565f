"""Results as rows of plain numbers."""

import math
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from ..engine.gpu import at_home
from .statistics import most_bias

if TYPE_CHECKING:
    from .results import Results

#: The policy with which losses are compared.
ORACLE = "oracle"


def summary(results: "Results") -> list[dict[str, Any]]:
    """Policy, budget, and for each statistic its value, its standard error, and the ratio to the oracle's."""
    rows = []
    for policy in results.policies:
        for budget in results.budgets:
            row: dict[str, Any] = {"policy": policy, "budget": budget}
            found = results.statistics[policy, budget]
            for name, statistic in found.items():
                scaled = statistic.times(results.scale(budget))
                row[results.label(name)] = scaled.value
                row[f"± {results.label(name)}"] = scaled.error
            if ORACLE in results.policies:
                for name, statistic in found.items():
                    ratio = statistic.over(results.statistics[ORACLE, budget][name])
                    row[f"{name} / oracle"] = ratio.value
                    row[f"± {name} / oracle"] = ratio.error
            rows.append(row)
    return rows


def oracle_bias(results: "Results") -> float:
    """The largest part by which ratios to the oracle's max E[L] can be too low; 0 if there are no such ratios."""
    if ORACLE not in results.policies:
        return 0.0
    found = [results.statistics[ORACLE, budget]["max E[L]"] for budget in results.budgets]
    relative = [s.error / s.value for s in found if s.value > 0 and math.isfinite(s.error)]
    return most_bias(len(results.problem)) * max(relative, default=0.0)


def differences(results: "Results", statistic: str) -> list[dict[str, Any]]:
    """For each budget and pair of policies the paired difference, its 95 % interval, and the relative difference."""
    rows = []
    for budget in results.budgets:
        for first, second in combinations(results.policies, 2):
            a, b = (results.statistics[policy, budget][statistic] for policy in (first, second))
            difference = a.minus(b).times(results.scale(budget))
            low, high = difference.interval
            rows.append(
                {
                    "budget": budget,
                    "policy": first,
                    "against": second,
                    "difference": difference.value,
                    "from": low,
                    "to": high,
                    "relative": a.over(b).value - 1,
                    "better": first if high < 0 else second if low > 0 else None,
                }
            )
    return rows


def allocation(results: "Results") -> list[dict[str, Any]]:
    """The mean share of each chain's pulls at the largest budget, η, and the policy's target share."""
    last = int(np.argmax(results.budgets))
    eta = results.problem.allocation if results.problem.variability else np.full(len(results.problem), np.nan)
    rows = []
    for p, policy in enumerate(results.policies):
        shares = at_home(results.held_pulls[p, last].mean(axis=0)) / results.budgets[last]
        for k, name in enumerate(results.problem.names):
            rows.append(
                {
                    "policy": policy,
                    "chain": name,
                    "share": float(shares[k]),
                    "η": float(eta[k]),
                    "target": float(results.targets[p, k]),
                }
            )
    return rows
