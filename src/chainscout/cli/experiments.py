"""``compare``."""

import math
import re
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import FileError, InputError, MissingExtraError
from .problems import delta_option, find_problem
from .rendering import as_json, echo, echo_json, show

if TYPE_CHECKING:
    from ..experiment import Results


@click.command()
@click.argument("problem", metavar="FILE|NAME")
@click.option("--policies", default="uniform,ba-mc,scout,oracle", show_default=True, help="Names, as a,b:key=value,c.")
@click.option("--budgets", default="1000,10000", show_default=True, help="Observations, as 1000,10000.")
@click.option("--replications", type=int, default=1000, show_default=True, help="How often each policy is run.")
@click.option("--seed", type=int, default=0, show_default=True, help="What all randomness follows from.")
@click.option("--engine", default="cpu", show_default=True, help="python, cpu, gpu, gpu:float32, or auto.")
@delta_option
@click.option("--out", type=click.Path(path_type=Path), help="Directory for data, figures and report.html.")
@click.option("--resume", is_flag=True, help="Go on with the interrupted run in --out.")
@click.option("--dask", metavar="ADDRESS|local", help="Run on a Dask cluster.")
@as_json
def compare(
    problem: str,
    policies: str,
    budgets: str,
    out: Path | None,
    resume: bool,
    dask: str | None,
    json_output: bool,
    **options: Any,
) -> None:
    """Compare policies on a problem: same paths for all, losses at every budget."""
    from .. import experiment
    from ..report import experiments as report

    found = find_problem(problem)
    tasks = _directory(out, resume)
    with ExitStack() as stack:
        executor = None
        if dask is not None:
            from .cluster import dask_executor

            executor = stack.enter_context(dask_executor(dask))
        try:
            results = experiment.compare(
                found,
                split_policies(policies),
                split_budgets(budgets),
                executor=executor,
                progress=True,
                checkpoint=tasks,
                **options,
            )
        except KeyboardInterrupt:
            hint = f"; finished tasks are kept, go on with --out {out} --resume" if out else ""
            raise KeyboardInterrupt(f"stopped{hint}") from None
    if out is not None and tasks is not None:
        write(results, out)  # before anything is shown: a pipe may be closed early
        experiment.forget(tasks)
    if json_output:
        content = {"summary": results.summary(), "differences": results.differences()}
        content |= {"allocation": results.allocation(), "settings": [dict(results.settings)]}
        rows = {name: [_without_nan(row) for row in records] for name, records in content.items()}
        echo_json(rows, indent=2)
    else:
        show(report.tables(results), json_output=False)
    if out is not None:
        echo(str(out / PAGE), err=json_output, exact=True)


#: The page among an experiment's files.
PAGE = "report.html"


def write(results: "Results", out: Path) -> None:
    """Data, the page of an experiment, and figures if matplotlib is there."""
    from ..report import experiments as report
    from ..report.html import save_figure

    try:
        out.mkdir(parents=True, exist_ok=True)
        results.save(out / "run.nc")
        (out / PAGE).write_text(report.experiment_page(results), encoding="utf-8", errors="replace")
        try:
            figure = results.figure()
        except MissingExtraError as error:  # the page has charts of its own
            click.echo(f"loss.svg and loss.png are left out: {error}", err=True)
            return
        for name in ("loss.svg", "loss.png"):
            save_figure(figure, out / name)
    except OSError as error:
        raise FileError(f"{out} could not be written: {error.strerror or error}") from None


def _directory(out: Path | None, resume: bool) -> Path | None:
    """Where finished tasks are kept."""
    if out is None:
        if resume:
            raise InputError("--resume needs --out, the directory of the run to go on with")
        return None
    tasks = out / "tasks"
    if resume and not tasks.exists():
        raise InputError(f"{out} holds no interrupted run to go on with")
    if tasks.exists() and not resume:
        raise InputError(f"{out} holds an interrupted run: go on with it by --resume, or choose another directory")
    if (out / "run.nc").exists() and not resume:
        raise InputError(f"{out} holds a finished run: choose another directory")
    return tasks


def split_policies(text: str) -> list[str]:
    """'a,b:x=1,y=2,c' → ['a', 'b:x=1,y=2', 'c']: a piece with '=' and no ':' belongs to the one before."""
    found: list[str] = []
    for piece in filter(None, re.split(r"[,\s]+", text)):
        if found and "=" in piece and ":" not in piece:
            found[-1] += f",{piece}"
        else:
            found.append(piece)
    return found


def split_budgets(text: str) -> list[int]:
    """'1000,10_000,1e5' → numbers."""
    try:
        values = [float(piece) for piece in filter(None, re.split(r"[,\s]+", text))]
        if all(value.is_integer() for value in values):
            return [int(value) for value in values]
    except (ValueError, OverflowError):
        pass
    raise InputError(f"budgets must be whole numbers separated by commas, not {text!r}")


def _without_nan(row: dict[str, Any]) -> dict[str, Any]:
    """JSON has no nan: null is 'does not exist'."""
    return {key: None if isinstance(value, float) and math.isnan(value) else value for key, value in row.items()}
