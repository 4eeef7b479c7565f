"""Tables and the page of an experiment: losses, paired differences, allocation, and the settings that repeat it."""

import math
from html import escape
from typing import Any

from ..experiment import Results
from ..experiment.summary import oracle_bias
from ..numerals import cell, sure
from .charts import Group, bar_chart, line_chart
from .format import finite, label
from .html import document, section
from .tables import Drawing, Series, Table

#: The most rows of a table and the most chains of a chart. Files hold everything.
MOST_ROWS = 200
MOST_BARS = 12


def tables(results: Results) -> list[Table]:
    """All tables of an experiment, the summary first."""
    delta = results.settings["delta"]
    notes = [
        f"{results.replications:,} replications, the same paths for every policy; ± is one standard error; the quantile"
        f" is that of probability {sure(delta)}"
    ]
    if results.is_normalised:
        notes.append("under the oracle's allocation n·max E[L]/Λ tends to 1; the other two tend to more than 1")
    if bias := oracle_bias(results):
        notes.append(
            "max E[L] is the largest of several estimated means, and too large on average where chains come close to"
            f" it, as all do under the oracle: ratios to the oracle's can be low, here by up to {100 * bias:.2g} %"
        )
    if min(results.budgets) < 2 * len(results.problem):
        notes.append("— where some chain has no transition yet: each needs two observations")
    last = max(results.budgets)
    differences = [row for row in results.differences() if row.pop("budget") == last]
    title = f"differences in {results.label('E[max L]')} at {last:,} observations, with 95 % intervals"
    return [
        _table(f"{results.problem.name or 'problem'}: losses", [_with_errors(row) for row in results.summary()], notes),
        _table(title, differences, []),
        _table(f"shares of {last:,} observations", results.allocation(), []),
    ]


def experiment_page(results: Results) -> str:
    """A self-contained page: charts, tables, and everything that is needed to repeat the run."""
    title = f"Experiment: {results.problem.name or 'problem'}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{escape(results.problem.description)}</p>" if results.problem.description else "",
        "<section><h2>Losses against the budget, with 95 % bands</h2><div class=charts>",
        _losses(results, "max E[L]", "Largest mean loss"),
        _losses(results, "E[max L]", "Mean largest loss"),
        "</div></section>",
        _shares(results),
        *(section(table) for table in (*tables(results), settings(results))),
    ]
    return document(title, parts)


def _losses(results: Results, statistic: str, title: str) -> str:
    lines = []
    for policy in results.policies:
        found = zip(results.budgets, results.shown(policy, statistic), strict=True)
        known = [(n, s.value, *s.band) for n, s in found if math.isfinite(s.value)]
        lines.append(Series(label(policy), *(zip(*known, strict=True) if known else [()] * 4)))
    return line_chart(
        Drawing(
            f"{title}, {results.label(statistic)}",
            "budget n (observations)",
            tuple(lines),
            logarithmic=not results.is_normalised,
            level=1.0 if results.is_normalised else None,
            level_name="Λ/n, what the oracle's allocation tends to",
            growing=True,
            small=True,
        )
    )


def _shares(results: Results) -> str:
    """Each chain's share of the largest budget beside η and each policy's aim."""
    groups = []
    rows = results.allocation()
    for chain in results.problem.names[:MOST_BARS]:
        mine = [row for row in rows if row["chain"] == chain]
        bars = [(label(row["policy"]), row["share"], finite(row["target"])) for row in mine]
        groups.append(Group(label(chain), finite(mine[0]["η"]), bars))
    more = len(results.problem) - len(groups)
    words = f"; {more:,} more chains are in the table or in the data" if more else ""
    return (
        "<section><h2>Allocation against η</h2>"
        f"{bar_chart(f'Shares of {max(results.budgets):,} observations', groups)}"
        f"<p class=note>Dashes: η; short strokes: what the policy tends to{words}.</p></section>"
    )


def settings(results: Results) -> Table:
    """Everything that is needed to repeat the run."""
    rows: list[tuple[str, Any]] = [
        ("problem", results.problem.name or ", ".join(results.problem.names[:20])),
        ("budgets", ", ".join(f"{budget:,}" for budget in results.budgets)),
        ("replications", results.replications),
    ]
    rows += [
        (f"policy {policy['name']}", f"version {policy['version']}, block {policy['block']:g}")
        for policy in results.settings["policies"]
    ]
    rows += [
        (key.replace("_", " "), value)
        for key, value in results.settings.items()
        if key not in ("replications", "policies", "versions")
    ]
    rows += [(f"version of {name}", text) for name, text in results.settings["versions"].items()]
    return Table("what repeats this experiment", ("setting", "value"), tuple(rows))


def _with_errors(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the summary, with each standard error behind its value."""
    shown = {key: value for key, value in row.items() if not key.startswith("± ")}
    for key in shown:
        error = row.get(f"± {key}")
        if error is not None:
            shown[key] = cell(shown[key]) if math.isnan(error) else f"{cell(shown[key])} ± {error:.2g}"
    return shown


def _table(title: str, records: list[dict[str, Any]], notes: list[str]) -> Table:
    columns = tuple(records[0]) if records else ()
    if len(records) > MOST_ROWS:
        notes = [*notes, f"{len(records) - MOST_ROWS:,} more rows are left out"]
    return Table(title, columns, tuple(tuple(record.values()) for record in records[:MOST_ROWS]), tuple(notes), keys=2)
