"""``python -m trials``: runs the trials and prints their verdicts."""

import shlex
from datetime import date
from pathlib import Path

import click

from chainscout import engine as engines
from chainscout.cli import OneLineErrors
from chainscout.cli.command import JsonCommand
from chainscout.cli.rendering import echo, show, writing
from chainscout.experiment import versions
from chainscout.validation import one_of

from . import suite, table


class Trials(OneLineErrors, JsonCommand):
    """The command."""


@click.command(cls=Trials, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--quick/--full", "quick", default=True, help="Under a minute, or the documentation's run.")
@click.option("--scale", type=float, default=1.0, help="Multiplies all numbers of replications.")
@click.option("--seed", type=int, default=0)
@click.option("--engine", default="auto", help="cpu, gpu or auto: a full run takes the GPU if there is one.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Also write the table there, as Markdown.")
@click.pass_context
def main(context: click.Context, quick: bool, scale: float, seed: int, engine: str, out: Path | None) -> None:
    """Put the paper's claims on trial: claim, setting, measured figure with interval, verdict.

    Claims that are known to fail are expected to. The exit status is 1 if a verdict is not the expected one.
    """
    # A quick run takes less time than compiling the kernels of a GPU.
    one_of(engine, "engine", ("python", "cpu", "gpu", engines.AUTO))
    used = "cpu" if quick and engine == engines.AUTO else engines.resolved(engine)
    effort = suite.Effort(full=not quick, scale=scale, seed=seed, engine=used)
    findings = suite.verify(effort, lambda about: echo(f"{about} …", err=True))
    shown = table.table(findings, effort, suite.DELTA)
    if out is not None:
        words = ["python", "-m", "trials", "--quick" if quick else "--full"]
        words += [f"--scale={scale:g}"] * (scale != 1) + [f"--seed={seed}"] * (seed != 0)
        words += [f"--engine={engine}"] * (engine != engines.AUTO) + [f"--out={out}"]
        with_what = ", ".join(f"{name} {version}" for name, version in versions().items())
        made_by = f"Made by `{shlex.join(words)}` on {date.today().isoformat()}; {with_what}, engine {used}."
        with writing(out):
            out.write_text(table.markdown(shown, made_by), encoding="utf-8")
    show([shown], table.records(findings, effort))
    context.exit(int(any(finding.surprising(effort.thorough) for finding in findings)))


if __name__ == "__main__":
    main(prog_name="python -m trials")
