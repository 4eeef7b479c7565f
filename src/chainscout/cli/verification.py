"""``verify``."""

import shlex
from datetime import date
from pathlib import Path

import click

from ..errors import FileError
from .rendering import as_json, echo, echo_json, show


@click.command()
@click.option("--quick/--full", "quick", default=True, help="Under a minute (the default), or the documentation's run.")
@click.option("--scale", type=float, default=1.0, show_default=True, help="Multiplies all numbers of replications.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option(
    "--engine", default="auto", show_default=True, help="cpu, gpu or auto: a full run takes the GPU if there is one."
)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Also write the table there, as Markdown.")
@as_json
@click.pass_context
def verify(
    context: click.Context, quick: bool, scale: float, seed: int, engine: str, out: Path | None, json_output: bool
) -> None:
    """Put the paper's claims on trial: claim, setting, measured figure with interval, verdict.

    Claims that are known to fail are expected to. The exit status is 1 if a verdict is not the expected one.
    """
    from .. import engine as engines
    from .. import verification
    from ..report import verification as report
    from ..validation import one_of

    # A quick run is over before a GPU's kernels are compiled.
    one_of(engine, "engine", ("python", "cpu", "gpu", engines.AUTO))
    used = "cpu" if quick and engine == engines.AUTO else engines.resolved(engine)
    effort = verification.Effort(full=not quick, scale=scale, seed=seed, engine=used)
    findings = verification.verify(effort, lambda about: echo(f"{about} …", err=True))
    shown = report.table(findings, effort, verification.DELTA)
    if out is not None:
        words = ["chainscout", "verify", "--quick" if quick else "--full"]
        words += [f"--scale={scale:g}"] * (scale != 1) + [f"--seed={seed}"] * (seed != 0)
        words += [f"--engine={engine}"] * (engine != engines.AUTO) + [f"--out={out}"]
        try:
            made_by = f"Made by `{shlex.join(words)}` on {date.today().isoformat()}; {_versions()}, engine {used}."
            out.write_text(report.markdown(shown, made_by), encoding="utf-8")
        except OSError as error:
            raise FileError(f"{out} could not be written: {error.strerror or error}") from None
    if json_output:
        echo_json(report.records(findings, effort), indent=2)
    else:
        show([shown], json_output=False)
    context.exit(int(any(finding.surprising(effort.thorough) for finding in findings)))


def _versions() -> str:
    import platform
    from importlib.metadata import version

    from .._version import __version__

    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba"))
    return f"chainscout {__version__}, Python {platform.python_version()}, {libraries}"
