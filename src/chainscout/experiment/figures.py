"""The figure of an experiment: loss against budget, and who got the samples."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from .summary import NORMAL

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .results import Results

#: Okabe and Ito's colours, which colour-blind readers tell apart; markers tell them apart in print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999933")
MARKERS = "osD^vPX*"


def figure(results: "Results") -> Figure:
    """Three panels: n·max E[L]/Λ, n·E[max L]/Λ, and each chain's share of the largest budget."""
    drawn = Figure(figsize=(13, 4.2), layout="constrained")
    left, middle, right = drawn.subplots(1, 3)
    _losses(left, results, "max E[L]", "largest mean loss, n·max E[L]/Λ")
    _losses(middle, results, "E[max L]", "mean largest loss, n·E[max L]/Λ")
    left.legend(frameon=False, fontsize=8)
    _shares(right, results)
    return drawn


def _losses(axes: "Axes", results: "Results", statistic: str, title: str) -> None:
    budgets = np.array(results.budgets, dtype=float)
    scale = budgets / results.problem.variability
    for p, policy in enumerate(results.policies):
        found = [results.statistics[policy, budget][statistic] for budget in results.budgets]
        value = scale * np.array([s.value for s in found])
        half = NORMAL * scale * np.nan_to_num(np.array([s.error for s in found]))
        colour, marker = COLOURS[p % len(COLOURS)], MARKERS[p % len(MARKERS)]
        axes.fill_between(budgets, value - half, value + half, color=colour, alpha=0.2, linewidth=0)
        axes.plot(budgets, value, color=colour, marker=marker, markersize=4, label=policy)
    axes.axhline(1, color="0.4", linestyle="--", linewidth=1, label="Λ/n")
    axes.set(xscale="log", title=title, xlabel="budget n (observations)")
    axes.spines[["top", "right"]].set_visible(False)


def _shares(axes: "Axes", results: "Results") -> None:
    rows = results.allocation()
    names = results.problem.names[:12]
    places = np.arange(len(names))
    width = 0.8 / len(results.policies)
    for p, policy in enumerate(results.policies):
        mine = {row["chain"]: row for row in rows if row["policy"] == policy}
        at = places + (p - (len(results.policies) - 1) / 2) * width
        axes.bar(at, [mine[name]["share"] for name in names], width, color=COLOURS[p % len(COLOURS)], label=policy)
        aims = [mine[name]["target"] for name in names]
        if aims[0] is not None:
            axes.plot(at, aims, linestyle="", marker="_", color="black", markersize=7)
    for place, row in zip(places, rows, strict=False):
        axes.hlines(row["η"], place - 0.45, place + 0.45, color="0.4", linestyle="--", linewidth=1)
    left_out = len(results.problem) - len(names)
    more = f" ({left_out} chains left out)" if left_out else ""
    axes.set(
        title=f"share at n = {max(results.budgets):,}{more}", ylabel="dashes: η;  short black bars: the policy's target"
    )
    axes.set_xticks(places, names, rotation=30 if max(map(len, names)) > 6 else 0)
    axes.spines[["top", "right"]].set_visible(False)
