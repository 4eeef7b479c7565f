"""The figure of an experiment: loss against budget, and the allocation of samples."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .results import Results

#: Okabe and Ito's colours, which colour-blind readers can distinguish. Markers distinguish the lines in print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999933")
MARKERS = "osD^vPX*"

#: The largest number of chains in a panel, and the largest length of a name.
MOST_CHAINS, LONGEST_NAME = 12, 24


def figure(results: "Results") -> Figure:
    """Three panels: the largest mean loss, the mean largest loss, and each chain's share of the largest budget."""
    drawn = Figure(figsize=(13, 4.2), layout="constrained")
    left, middle, right = drawn.subplots(1, 3)
    _losses(left, results, "max E[L]", "largest mean loss")
    _losses(middle, results, "E[max L]", "mean largest loss")
    lines, _ = left.get_legend_handles_labels()
    names = [plain(policy) for policy in results.policies]
    left.legend(lines, [*names, "Λ/n"][: len(lines)], frameon=False, fontsize=8)
    _shares(right, results)
    return drawn


def plain(name: str) -> str:
    """A name that matplotlib shows unchanged: a pair of $ would be a formula, and a long name would hide the figure."""
    short = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
    return short.replace("$", r"\$")


def _losses(axes: "Axes", results: "Results", statistic: str, title: str) -> None:
    budgets = np.array(results.budgets, dtype=float)
    for p, policy in enumerate(results.policies):
        found = [results.statistics[policy, n][statistic].times(results.scale(n)) for n in results.budgets]
        low, high = np.array([(s.value, s.value) if np.isnan(s.error) else s.interval for s in found]).T
        colour, marker = COLOURS[p % len(COLOURS)], MARKERS[p % len(MARKERS)]
        axes.fill_between(budgets, low, high, color=colour, alpha=0.2, linewidth=0)
        axes.plot(budgets, [s.value for s in found], color=colour, marker=marker, markersize=4, label=f"policy {p}")
    if results.is_normalised:
        axes.axhline(1, color="0.4", linestyle="--", linewidth=1, label="Λ/n")
    elif any(found[statistic].value > 0 for found in results.statistics.values()):
        axes.set_yscale("log")
    axes.set(xscale="log", title=f"{title}, {results.label(statistic)}", xlabel="budget n (observations)")
    axes.spines[["top", "right"]].set_visible(False)


def _shares(axes: "Axes", results: "Results") -> None:
    rows = results.allocation()
    chains = results.problem.names[:MOST_CHAINS]
    places = np.arange(len(chains))
    width = 0.8 / len(results.policies)
    for p, policy in enumerate(results.policies):
        mine = {row["chain"]: row for row in rows if row["policy"] == policy}
        at = places + (p - (len(results.policies) - 1) / 2) * width
        axes.bar(at, [mine[name]["share"] for name in chains], width, color=COLOURS[p % len(COLOURS)])
        axes.plot(at, [mine[name]["target"] for name in chains], linestyle="", marker="_", color="black", markersize=7)
    for place, row in zip(places, rows, strict=False):
        axes.hlines(row["η"], place - 0.45, place + 0.45, color="0.4", linestyle="--", linewidth=1)
    left_out = len(results.problem) - len(chains)
    more = f" ({left_out:,} chains left out)" if left_out else ""
    axes.set(
        title=f"share at n = {max(results.budgets):,}{more}", ylabel="dashes: η;  short black bars: the policy's target"
    )
    labels = [plain(name) for name in chains]
    axes.set_xticks(places, labels, rotation=30 if max(map(len, labels)) > 6 else 0)
    axes.spines[["top", "right"]].set_visible(False)
