"""Tables of an experiment: losses, paired differences, allocation, and what repeats it."""

from typing import TYPE_CHECKING, Any

from .cells import cell
from .html import page
from .tables import Table

if TYPE_CHECKING:
    from ..experiment import Results


def tables(results: "Results") -> list[Table]:
    """All tables of an experiment, the summary first."""
    delta = results.settings["delta"]
    notes = (
        f"{results.replications:,} replications, the same paths for every policy; ± is one standard error; the quantile"
        f" is that of probability {1 - delta:g}",
        "under the oracle's allocation n·max E[L]/Λ tends to 1; the other two tend to more than 1",
    )
    return [
        _table(f"{results.problem.name or 'problem'}: losses", [_with_errors(row) for row in results.summary()], notes),
        _table("differences in E[max L] between policies, with 95 % intervals", results.differences(), ()),
        _table(f"shares of {max(results.budgets):,} observations", results.allocation(), ()),
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
        ("policies", ", ".join(results.policies)),
        ("budgets", ", ".join(f"{budget:,}" for budget in results.budgets)),
        ("replications", results.replications),
    ]
    for key, value in results.settings.items():
        if key == "versions":
            rows.extend((f"version of {name}", text) for name, text in value.items())
        elif key != "replications":
            rows.append((key, value))
    return Table("what repeats this experiment", ("setting", "value"), tuple(rows))


def _with_errors(row: dict[str, Any]) -> dict[str, Any]:
    """The summary's row with each standard error behind its value."""
    return {
        key: f"{cell(value)} ± {row[f'± {key}']:.2g}" if f"± {key}" in row else value
        for key, value in row.items()
        if not key.startswith("± ")
    }


def _table(title: str, records: list[dict[str, Any]], notes: tuple[str, ...]) -> Table:
    columns = tuple(records[0]) if records else ()
    return Table(title, columns, tuple(tuple(record.values()) for record in records), notes if records else ())
