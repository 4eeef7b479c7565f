"""``compare`` and ``verify``: policies against each other, and the paper's claims on trial."""

import re
import shlex
from contextlib import nullcontext
from datetime import date
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
        results.save(out / "run.nc")
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
    if (out / "run.nc").exists() and not resume:
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


@click.command(cls=JsonCommand)
@click.option("--quick/--full", "quick", default=True, help="Under a minute, or the documentation's run.")
@click.option("--scale", type=float, default=1.0, help="Multiplies all numbers of replications.")
@click.option("--seed", type=int, default=0)
@click.option("--engine", default="auto", help="cpu, gpu or auto: a full run takes the GPU if there is one.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Also write the table there, as Markdown.")
@click.pass_context
def verify(context: click.Context, quick: bool, scale: float, seed: int, engine: str, out: Path | None) -> None:
    """Put the paper's claims on trial: claim, setting, measured figure with interval, verdict.

    Claims that are known to fail are expected to. The exit status is 1 if a verdict is not the expected one.
    """
    from .. import engine as engines
    from .. import verification
    from ..experiment import versions
    from ..report import verification as report
    from ..validation import one_of

    # A quick run takes less time than compiling the kernels of a GPU.
    one_of(engine, "engine", ("python", "cpu", "gpu", engines.AUTO))
    used = "cpu" if quick and engine == engines.AUTO else engines.resolved(engine)
    effort = verification.Effort(full=not quick, scale=scale, seed=seed, engine=used)
    findings = verification.verify(effort, lambda about: echo(f"{about} …", err=True))
    shown = report.table(findings, effort, verification.DELTA)
    if out is not None:
        words = ["chainscout", "verify", "--quick" if quick else "--full"]
        words += [f"--scale={scale:g}"] * (scale != 1) + [f"--seed={seed}"] * (seed != 0)
        words += [f"--engine={engine}"] * (engine != engines.AUTO) + [f"--out={out}"]
        with_what = ", ".join(f"{name} {version}" for name, version in versions().items())
        made_by = f"Made by `{shlex.join(words)}` on {date.today().isoformat()}; {with_what}, engine {used}."
        with writing(out):
            out.write_text(report.markdown(shown, made_by), encoding="utf-8")
    show([shown], report.records(findings, effort))
    context.exit(int(any(finding.surprising(effort.thorough) for finding in findings)))
