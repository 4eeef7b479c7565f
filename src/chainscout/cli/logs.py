"""``count``: from a log to counts, certificates, and what to sample next."""

import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import CorrelatedCountsWarning, InputError
from .command import JsonCommand, delta_option, duration, is_json, pairs
from .rendering import show

if TYPE_CHECKING:
    from ..logs.results import States

#: The most chains that a terminal shows. JSON and files have all chains.
MOST = 50


def _states(ctx: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> "States":
    """The states of all chains, or of each chain by its name."""
    if not texts:
        return None
    if len(texts) == 1 and "=" not in texts[0]:
        return _labels(texts[0])
    return {name: _labels(text) for name, text in pairs(texts, "--states").items()}


def _labels(text: str) -> list[str] | list[int]:
    labels = [label.strip() for label in text.split(",")]
    whole = all(re.fullmatch(r"0|-?[1-9][0-9]*", label) for label in labels)
    return [int(label) for label in labels] if whole else labels


@click.command(cls=JsonCommand)
@click.argument("where", metavar="FILE…", nargs=-1, required=True)
@click.option("--chain", required=True, help="Column of the chain's id.")
@click.option("--time", required=True, help="Column of the time.")
@click.option("--state", required=True, help="Column of the state.")
@click.option("--path", help="Column that tells unbroken paths of a chain apart.")
@click.option("--order", help="Column that says which of two rows of the same time came first.")
@click.option("--lag", type=int, default=1, help="Steps between the two states of a transition.")
@click.option("--sliding", is_flag=True, help="Count overlapping transitions too; nothing can be certified then.")
@click.option("--gap", type=duration, help="A longer step in time begins a new path: a number, or 30s, 5min, 2h, 1d.")
@click.option("--missing", type=click.Choice(["error", "break"]), default="error",
              help="What a row without a state is.")  # fmt: skip
@click.option("--states", multiple=True, metavar="[NAME=]STATES", callback=_states,
              help="All states, as up,down; or for each chain, as a=up,down. Default: those that occur.")  # fmt: skip
@click.option("--budget", type=int, help="Observations to come: shows which chains should get them.")
@click.option("--target-loss", type=float, help="Shows how many more observations this loss needs, by chain.")
@click.option("--out", type=click.Path(path_type=Path), multiple=True,
              help="Write counts (.parquet) or estimated matrices (.toml, .json).")  # fmt: skip
@click.option("--memory-limit", help="Memory that DuckDB may use, such as 600MB.")
@click.option("--threads", type=int, help="Threads that DuckDB may use.")
@click.option("--temp-directory", type=click.Path(path_type=Path), help="Where to put what does not fit into memory.")
@click.option("--diagnose", is_flag=True, help="Read the log once more: are these Markov chains that do not change?")
@delta_option
def count(
    where: tuple[str, ...],
    budget: int | None,
    target_loss: float | None,
    out: tuple[Path, ...],
    diagnose: bool,
    delta: float,
    **options: Any,
) -> None:
    """Count the transitions of every chain in existing logs: Parquet, CSV or JSON lines."""
    from .. import diagnostics, report
    from ..logs import count_transitions, read_paths
    from ..report.panels import check_tables
    from ..validation import failure_probability

    failure_probability(delta)
    if diagnose and (options["lag"] != 1 or options["sliding"]):
        raise InputError("--diagnose looks at single steps: it goes with a lag of 1")
    for path in out:
        if path.suffix not in (".parquet", ".toml", ".json"):
            raise InputError(f"--out must end in .parquet (counts) or .toml or .json (matrices), not {str(path)!r}")
    warnings.simplefilter("ignore", CorrelatedCountsWarning)  # the table says so
    place = where[0] if len(where) == 1 else list(where)
    with count_transitions(place, **options) as counts:
        checks = None
        if diagnose:
            columns = {name: value for name, value in options.items() if name not in ("lag", "sliding")}
            checks = diagnostics.diagnose(read_paths(place, **columns), delta=delta)
        tables = report.counted(counts, delta, budget, target_loss, None if is_json() else MOST, checks)
        for path in out:
            if path.suffix == ".parquet":
                counts.to_parquet(path)
            else:
                counts.problem(name=path.stem, source=", ".join(Path(name).name for name in where)).save(path)
        show(tables + ([] if checks is None else check_tables(checks)))
