"""Results as rows of plain numbers."""

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from .statistics import NAMES

if TYPE_CHECKING:
    from .results import Results

#: Half the width of a 95 % interval in standard errors.
NORMAL = 1.959963984540054
#: The policy that losses are set against.
ORACLE = "oracle"


def summary(results: "Results") -> list[dict[str, Any]]:
    """Policy, budget, and for each statistic n·value/Λ, its standard error, and the ratio to the oracle's."""
    rows = []
    variability = results.problem.variability
    for policy in results.policies:
        for budget in results.budgets:
            row: dict[str, Any] = {"policy": policy, "budget": budget}
            found = results.statistics[policy, budget]
            scale = budget / variability if variability else float("nan")
            for name, statistic in found.items():
                row[NAMES[name]] = scale * statistic.value
                row[f"± {NAMES[name]}"] = scale * statistic.error
            if ORACLE in results.policies:
                for name, statistic in found.items():
                    ratio = statistic.over(results.statistics[ORACLE, budget][name])
                    row[f"{name} / oracle"] = ratio.value
                    row[f"± {name} / oracle"] = ratio.error
            rows.append(row)
    return rows


def differences(results: "Results") -> list[dict[str, Any]]:
    """For each pair of policies and each budget, the relative difference of E[max L], paired."""
    rows = []
    for budget in results.budgets:
        for first, second in combinations(results.policies, 2):
            a, b = (results.statistics[policy, budget]["E[max L]"] for policy in (first, second))
            ratio = a.over(b)
            low, high = ratio.value - NORMAL * ratio.error, ratio.value + NORMAL * ratio.error
            rows.append(
                {
                    "budget": budget,
                    "policy": first,
                    "against": second,
                    "E[max L] − E[max L]": a.minus(b).value,
                    "relative": ratio.value - 1,
                    "from": low - 1,
                    "to": high - 1,
                    "better": first if high < 1 else second if low > 1 else "—",
                }
            )
    return rows


def allocation(results: "Results") -> list[dict[str, Any]]:
    """The mean share of the pulls of each chain at the largest budget, η, and what the policy aims at."""
    last = int(np.argmax(results.budgets))
    eta = results.problem.allocation if results.problem.variability else np.full(len(results.problem), np.nan)
    rows = []
    for p, policy in enumerate(results.policies):
        shares = results.pulls[p, last].mean(axis=0) / results.budgets[last]
        for k, name in enumerate(results.problem.names):
            aim = float(results.targets[p, k])
            rows.append(
                {
                    "policy": policy,
                    "chain": name,
                    "share": float(shares[k]),
                    "η": float(eta[k]),
                    "target": None if np.isnan(aim) else aim,
                }
            )
    return rows
