"""``compare``: policies against each other."""

import re
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError, MissingExtraError
from .command import JsonCommand, delta_option, is_json
from .rendering import echo, echo_json, show, writing

if TYPE_CHECKING:
    from ..experiment import Results


@click.command(cls=JsonCommand)
@click.argument("problem", metavar="FILE|NAME")
@click.option("--policies", default="uniform,ba-mc,scout,oracle", help="Names, as a,b:key=value,c.")
@click.option("--budgets", default="1000,10000", help="Observations, as 1000,10000.")
@click.option("--replications", type=int, default=1000, help="How often each policy is run.")
@click.option("--seed", type=int, default=0, help="What all randomness follows from.")
@click.option("--engine", default="cpu", help="python, cpu, gpu, gpu:float32, or auto.")
@delta_option
@click.option("--out", type=click.Path(path_type=Path), help="Directory for data, figures and report.html.")
@click.option("--resume", is_flag=True, help="Go on with the interrupted run in --out.")
@click.option("--dask", metavar="ADDRESS|local", help="Run on a Dask cluster.")
def compare(
    problem: str, policies: str, budgets: str, out: Path | None, resume: bool, dask: str | None, **options: Any
) -> None:
    """Compare policies on a problem: same paths for all, losses at every budget."""
    from .. import experiment, specs
    from ..report import experiments as report

    tasks = _directory(out, resume)
    with nullcontext() if dask is None else experiment.dask_executor(dask) as executor:
        try:
            results = experiment.compare(
                problem,
                specs.split(policies),
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
        write(results, out)  # before anything is printed, because a pipe may be closed early
        experiment.forget(tasks)
    if is_json():
        content = {"summary": results.summary(), "differences": results.differences()}
        content |= {"allocation": results.allocation(), "settings": [dict(results.settings)]}
        echo_json(content, indent=2)
    else:
        show(report.tables(results))
    if out is not None:
        echo(str(out / PAGE), err=is_json(), exact=True)


#: The file name of an experiment's page.
PAGE = "report.html"


def write(results: "Results", out: Path) -> None:
    """Writes the data and the page of an experiment, and its figures if matplotlib is installed."""
    from ..report import experiments as report

    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        results.save(out / "run.npz")
        (out / PAGE).write_text(report.experiment_page(results), encoding="utf-8", errors="replace")
        try:
            figure = results.figure()
        except MissingExtraError as error:  # the page has charts of its own
            click.echo(f"loss.svg and loss.png are left out: {error}", err=True)
            return
        from ..experiment.figures import save  # needs matplotlib

        for name in ("loss.svg", "loss.png"):
            save(figure, out / name)


def _directory(out: Path | None, resume: bool) -> Path | None:
    """The directory of finished tasks."""
    if out is None:
        if resume:
            raise InputError("--resume needs --out, the directory of the run to go on with")
        return None
    tasks = out / "tasks"
    if resume and not tasks.exists():
        raise InputError(f"{out} holds no interrupted run to go on with")
    if tasks.exists() and not resume:
        raise InputError(f"{out} holds an interrupted run: go on with it by --resume, or choose another directory")
    if (out / "run.npz").exists() and not resume:
        raise InputError(f"{out} holds a finished run: choose another directory")
    return tasks


def split_budgets(text: str) -> list[int]:
    """'1000,10_000,1e5' → numbers."""
    try:
        values = [float(piece) for piece in filter(None, re.split(r"[,\s]+", text))]
        if all(value.is_integer() for value in values):
            return [int(value) for value in values]
    except (ValueError, OverflowError):
        pass
    raise InputError(f"budgets must be whole numbers separated by commas, not {text!r}")
