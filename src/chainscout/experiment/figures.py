"""The figure of an experiment: loss against budget, and the allocation of samples."""

import math
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from ..errors import InputError
from ..validation import real_number, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .results import Results

#: Okabe and Ito's colours, which colour-blind readers can distinguish. Markers distinguish the lines in print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999933")
MARKERS = "osD^vPX*"

#: The largest number of chains in a panel, and the largest length of a name.
MOST_CHAINS, LONGEST_NAME = 12, 24


#: Inches: the width of a panel unless the caller gives a width. In narrower panels the text has 8 points, not 10.
PANEL, NARROW = 13 / 3, 4.0
#: The height of a panel as a part of its width.
HEIGHT = 0.97
#: Inches of an entry of the legend: its line, and each letter of its name.
LEGEND_LINE, LEGEND_LETTER = 0.6, 0.07
#: A budget has its number below the axis if it is at least one of so many parts of the axis from the next one.
MOST_TICKS = 5


def figure(results: "Results", panels: Sequence[str], width: float | None) -> Figure:
    """The panels side by side, from left to right, and the legend below them."""
    if isinstance(panels, str) or not panels or not set(panels) <= PANELS.keys():
        raise InputError(f"panels must be some of {', '.join(map(repr, PANELS))}, not {shown(panels)}")
    inches = (
        PANEL * len(panels) if width is None else real_number(width, "width", above=0.0, most=100.0, meaning="inches")
    )
    each = inches / len(panels)
    with rc_context({"font.size": 8 if each < NARROW else 10}):
        drawn = Figure(figsize=(inches, HEIGHT * each), layout="constrained")
        axes = list(drawn.subplots(1, len(panels), squeeze=False)[0])
        for place, panel in zip(axes, panels, strict=True):
            PANELS[panel](place, results)
        lines, _ = axes[0].get_legend_handles_labels()
        names = [plain(policy) for policy in results.policies]
        labels = [*names, "Λ/n"][: len(lines)]
        columns = max(1, int(inches / (LEGEND_LINE + LEGEND_LETTER * max(map(len, labels)))))
        drawn.legend(lines, labels, frameon=False, fontsize=8, loc="outside lower center", ncols=columns)
    return drawn


def labelled(budgets: Sequence[int]) -> list[int]:
    """The budgets whose numbers have room below the axis: the largest one, and those far enough from the next one."""
    found = [max(budgets)]
    for n in sorted(budgets, reverse=True):
        if MOST_TICKS * math.log(found[-1] / n) >= math.log(found[0] / min(budgets)) > 0 and n < found[-1]:
            found.append(n)
    return found


def plain(name: str) -> str:
    """A name that matplotlib shows unchanged: a pair of $ would be a formula, and a long name would hide the figure."""
    short = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
    return short.replace("$", r"\$")


def _losses(axes: "Axes", results: "Results", statistic: str, title: str) -> None:
    budgets = np.array(results.budgets, dtype=float)
    for p, policy in enumerate(results.policies):
        found = results.shown(policy, statistic)
        low, high = np.array([s.band for s in found]).T
        colour, marker = COLOURS[p % len(COLOURS)], MARKERS[p % len(MARKERS)]
        axes.fill_between(budgets, low, high, color=colour, alpha=0.2, linewidth=0)
        axes.plot(budgets, [s.value for s in found], color=colour, marker=marker, markersize=4, label=f"policy {p}")
    if results.is_normalised:
        axes.axhline(1, color="0.4", linestyle="--", linewidth=1, label="Λ/n")
    elif any(found[statistic].value > 0 for found in results.statistics.values()):
        axes.set_yscale("log")
    axes.set(xscale="log", title=title, xlabel="budget n (observations)", ylabel=results.label(statistic))
    numbered = labelled(results.budgets)
    axes.set_xticks(numbered, [f"{n:,}" for n in numbered])
    axes.set_xticks(budgets, minor=True)
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.spines[["top", "right"]].set_visible(False)


def _shares(axes: "Axes", results: "Results") -> None:
    rows = results.allocation()
    chains = results.problem.names[:MOST_CHAINS]
    places = np.arange(len(chains))
    width = 0.8 / len(results.policies)
    for p, policy in enumerate(results.policies):
        mine = {row["chain"]: row for row in rows if row["policy"] == policy}
        at = places + (p - (len(results.policies) - 1) / 2) * width
        colour = COLOURS[p % len(COLOURS)]
        axes.bar(at, [mine[name]["share"] for name in chains], width, color=colour, label=f"policy {p}")
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


#: Name → what draws it: the largest mean loss and the mean largest loss against the budget; each chain's share of the
#: largest budget.
PANELS: "dict[str, Callable[[Axes, Results], None]]" = {
    "max E[L]": lambda axes, results: _losses(axes, results, "max E[L]", "largest mean loss"),
    "E[max L]": lambda axes, results: _losses(axes, results, "E[max L]", "mean largest loss"),
    "share": _shares,
}


def save(figure: Figure, where: Path) -> None:
    """Writes a figure as SVG or PNG, by the file's suffix. The same figure gives the same bytes."""
    # No address and no time, so that the bytes are the same.
    metadata = dict.fromkeys(("Date", "Creator", "Format", "Type") if where.suffix == ".svg" else ("Software",))
    with rc_context({"svg.hashsalt": "chainscout", "svg.fonttype": "path"}), warnings.catch_warnings():
        # Letters that the font lacks are drawn as boxes. The tables show them.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(where, dpi=150, metadata=metadata)
