"""Tables of an experiment: losses, paired differences, allocation, and what repeats it."""

from typing import TYPE_CHECKING, Any

from .cells import cell
from .html import page
from .tables import Table

if TYPE_CHECKING:
    from ..experiment import Results

#: Tables for a person stop here; files hold everything.
MOST_ROWS = 200


def tables(results: "Results") -> list[Table]:
    """All tables of an experiment, the summary first."""
    delta = results.settings["delta"]
    notes = [
        f"{results.replications:,} replications, the same paths for every policy; ± is one standard error; the quantile"
        f" is that of probability {1 - delta:g}"
    ]
    if results.is_normalised:
        notes.append("under the oracle's allocation n·max E[L]/Λ tends to 1; the other two tend to more than 1")
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


def experiment_page(results: "Results") -> str:
    """A self-contained page: figures, tables, and everything that is needed to repeat the run."""
    caption = "Losses against the budget with 95 % bands, and each chain's share"
    title = f"Experiment: {results.problem.name or 'problem'}"
    return page(title, results.problem.description, [*tables(results), settings(results)], {caption: results.figure()})


def settings(results: "Results") -> Table:
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
    """The summary's row with each standard error behind its value."""
    return {
        key: _with_error(value, row[f"± {key}"]) if f"± {key}" in row else value
        for key, value in row.items()
        if not key.startswith("± ")
    }


def _with_error(value: float, error: float) -> str:
    return cell(value) if error != error else f"{cell(value)} ± {error:.2g}"


def _table(title: str, records: list[dict[str, Any]], notes: list[str]) -> Table:
    columns = tuple(records[0]) if records else ()
    left_out = len(records) - MOST_ROWS
    if left_out > 0:
        notes = [*notes, f"{left_out:,} more rows are left out"]
    return Table(title, columns, tuple(tuple(record.values()) for record in records[:MOST_ROWS]), tuple(notes))
