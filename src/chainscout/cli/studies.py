"""``new``, ``ask``, ``tell``, ``status``, ``export`` and ``learn``: a study for scripts in any language."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import ChainscoutError, FileError, InputError
from .problems import delta_option
from .rendering import as_json, show

if TYPE_CHECKING:
    from ..problems import Problem
    from ..study import Study

where_argument = click.argument("where", metavar="FILE|ADDRESS")


def say(content: Any, text: str, json_output: bool) -> None:
    """One answer: JSON on one line, or text."""
    click.echo(json.dumps(content, ensure_ascii=False, allow_nan=False) if json_output else text)


@contextmanager
def opened(where: str, read_only: bool = False) -> Iterator["Study"]:
    """A study that is closed at the end."""
    from ..study import Study

    study = Study.open(where, read_only=read_only)
    try:
        yield study
    finally:
        study.close()


@click.command()
@where_argument
@click.option(
    "--chain", "chains", multiple=True, metavar="NAME=STATES", help="As north=idle,busy or south=5 or east=?."
)
@click.option("--budget", type=float, help="Observations, or cost units with --cost. Without it there is no end.")
@click.option("--target-loss", type=float, help="Stop when this loss is certified.")
@click.option("--deadline", metavar="TIME", help="Stop then; as 2026-05-01T18:00+02:00.")
@click.option("--policy", default="scout", show_default=True)
@click.option("--weight", "weights", multiple=True, metavar="NAME=NUMBER", help="How much a chain's loss counts.")
@click.option("--cost", "costs", multiple=True, metavar="NAME=NUMBER", help="What an observation of a chain costs.")
@click.option("--on-lost-lease", default="restart", show_default=True, help="restart or continue.")
@delta_option
@as_json
def new(
    where: str,
    chains: tuple[str, ...],
    budget: float | None,
    target_loss: float | None,
    deadline: str | None,
    policy: str,
    weights: tuple[str, ...],
    costs: tuple[str, ...],
    on_lost_lease: str,
    delta: float,
    json_output: bool,
) -> None:
    """Make a study. States: how many, their labels, or ? for states that will be discovered."""
    from ..study import Study

    states = _pairs(chains, "--chain")
    opened_states = [name for name, text in states.items() if text == "?"]
    study = Study.create(
        where,
        {name: _states(text) for name, text in states.items()},
        budget,
        policy,
        delta,
        target_loss=target_loss,
        deadline=_moment(deadline),
        weights=_numbers(weights, "--weight"),
        costs=_numbers(costs, "--cost"),
        on_lost_lease=on_lost_lease,
        open_states=opened_states,
    )
    study.close()
    say({"where": where, "chains": len(states)}, f"{where}: a study of {len(states)} chains", json_output)


@click.command()
@where_argument
@click.option("--number", type=int, help="How many observations to plan at once.")
@click.option("--lease", "worker", metavar="WORKER", help="Hold the chain for this worker, and print a token.")
@click.option("--seconds", type=float, default=60.0, show_default=True, help="How long a lease lasts.")
@click.option("--steps", type=int, default=1, show_default=True, help="How many observations a lease is for.")
@as_json
def ask(where: str, number: int | None, worker: str | None, seconds: float, steps: int, json_output: bool) -> None:
    """Print the chain to advance next."""
    if worker is not None:
        if number is not None:
            raise InputError("a lease is of one chain: give --number or --lease, not both")
        with opened(where) as study:
            lease = study.lease(worker, seconds, steps=steps, wait=0)
        answer = {
            "chain": lease.chain,
            "token": lease.token,
            "step": lease.step,
            "steps": lease.steps,
            "restarted": lease.restarted,
        }
        say(answer, f"{lease.chain} {lease.token}", json_output)
        return
    with opened(where, read_only=True) as study:
        chosen = [study.ask()] if number is None else study.ask(number)
    say({"chains": chosen}, "\n".join(chosen), json_output)


@click.command()
@where_argument
@click.argument("chain", metavar="CHAIN|-")
@click.argument("state", required=False)
@click.option("--step", type=int, help="The observation's number in its chain; the same again is harmless.")
@click.option("--token", help="Of the lease under which the chain is held.")
@click.option("--restart", is_flag=True, help="The state begins a new segment.")
@as_json
def tell(
    where: str, chain: str, state: str | None, step: int | None, token: str | None, restart: bool, json_output: bool
) -> None:
    """Store an observation. With - for the chain, read lines 'CHAIN STATE' and store them all at once."""
    with opened(where) as study:
        if chain == "-":
            if state is not None or step is not None or token is not None or restart:
                raise InputError("lines from standard input are told all at once, without a state or options")
            lines = enumerate(_standard_input(), start=1)
            pairs = [_line(study, number, line) for number, line in lines if line.strip()]
            study.tell_many(pairs)
        else:
            if state is None:
                raise InputError("tell needs a chain and a state")
            if restart:
                study.restart(chain, token=token)
            study.tell(chain, study.state_from_text(chain, state), step, token=token)
        progress = study.progress()
    answer = {"observations": progress.observations, "stop_reason": progress.stop_reason}
    say(answer, f"{progress.observations} observations" + _finished(progress.stop_reason), json_output)


@click.command()
@where_argument
@click.option("--chain", help="Show the estimated matrix of this chain, entry by entry.")
@as_json
def status(where: str, chain: str | None, json_output: bool) -> None:
    """Show where a study stands and what is known of its chains."""
    from ..report import studies

    with opened(where, read_only=True) as study:
        show(studies.status(study) if chain is None else [studies.estimate(study, chain)], json_output)


@click.command()
@where_argument
@click.option("--format", "kind", default="json", show_default=True, help="json, csv, npz or toml (a problem file).")
@click.option("--out", type=click.Path(path_type=Path), help="File to write; without it, standard output.")
@as_json
def export(where: str, kind: str, out: Path | None, json_output: bool) -> None:
    """Write the estimates, their intervals and the certificate."""
    from ..checks import one_of
    from ..study import exporting

    one_of(kind, "--format", exporting.FORMATS)
    with opened(where, read_only=True) as study:
        if kind == "toml":
            if out is None or out.suffix != ".toml":
                raise InputError("a problem file needs --out with a name that ends in .toml")
            exporting.problem(study).save(out)
        else:
            content = {"json": exporting.export_json, "csv": exporting.export_csv, "npz": exporting.export_npz}[kind](
                study
            )
            if out is None:
                sys.stdout.buffer.write(content)
                return
            try:
                out.write_bytes(content)
            except OSError as error:
                raise FileError(f"{out} could not be written: {error.strerror or error}") from None
    say({"written": str(out)}, f"{out} written", json_output)


@click.command()
@click.argument("file", metavar="STUDY.TOML", type=click.Path(path_type=Path))
@click.option("--quiet", is_flag=True, help="No progress bar.")
@click.option("--workers", type=int, help="So many sources at work at once, on threads.")
@as_json
def learn(file: Path, quiet: bool, workers: int | None, json_output: bool) -> None:
    """Run the sources of a study file until the study is finished; go on with a study that exists."""
    from concurrent.futures import ThreadPoolExecutor

    from ..checks import whole_number
    from ..report import studies
    from ..study import files
    from ..study import learn as learn_study

    if workers is not None:
        whole_number(workers, "--workers", meaning="sources at work at once")
    found = files.read(file)
    executor = None if workers is None else ThreadPoolExecutor(workers)
    try:
        study = learn_study(
            found.sources,
            where=found.where,
            states=found.states,
            executor=executor,
            progress=not quiet and not json_output and sys.stderr.isatty(),
            **found.options,
        )
    except KeyboardInterrupt:
        click.echo(f"chainscout: interrupted; 'chainscout learn {file}' goes on", err=True)
        raise SystemExit(130) from None
    finally:
        if executor is not None:
            executor.shutdown(wait=False, cancel_futures=True)
    with study:
        for sentence in studies.set_aside(study):
            click.echo(sentence, err=True)
        show(studies.status(study), json_output)
        state = study.progress()
        # Recorded sources that have given all they have are set aside too, and nothing of theirs is lost.
        nothing_works = state.aside == state.chains and state.lost > 0
    if nothing_works:
        raise SystemExit(1)


def demonstrate(problem: "Problem", out: Path) -> None:
    """A durable study of a simulated problem: the progress bar, the certificate, the estimates with intervals."""
    from ..report import studies
    from ..study import learn as learn_study

    out.mkdir(parents=True, exist_ok=True)
    where = out / "study.db"
    for suffix in ("", "-wal", "-shm"):  # of the last demonstration
        where.with_name(where.name + suffix).unlink(missing_ok=True)
    click.secho(f"$ chainscout learn study.toml  # {where}, budget 2000, target loss 0.3\n", bold=True)
    with learn_study(problem, 2_000, where=where, target_loss=0.3, progress=sys.stderr.isatty()) as study:
        show([*studies.status(study), *(studies.estimate(study, name) for name in study.names[:1])], json_output=False)


def _pair(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise InputError(f"{option} must be given as NAME=VALUE, not {text!r}")
    return name, value


def _pairs(texts: tuple[str, ...], option: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in (_pair(text, option) for text in texts):
        if name in found:
            raise InputError(f"{option} must be given once for each chain, and {name} is given twice")
        found[name] = value
    return found


def _states(text: str) -> int | list[str]:
    if text == "?":
        return []
    try:
        return int(text)
    except ValueError:
        return text.split(",")


def _moment(text: str | None) -> datetime | None:
    """A date and time; that it has a time zone is checked where all deadlines are."""
    try:
        return None if text is None else datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"--deadline must be a time as 2026-05-01T18:00+02:00, not {text!r}") from None


def _numbers(texts: tuple[str, ...], option: str) -> dict[str, float] | None:
    found = {}
    for name, value in _pairs(texts, option).items():
        try:
            found[name] = float(value)
        except ValueError:
            raise InputError(f"{option} must be given as NAME=NUMBER, not {name}={value}") from None
    return found or None


def _standard_input() -> list[str]:
    try:
        return list(sys.stdin)
    except UnicodeDecodeError as error:
        raise InputError(
            f"standard input must be text in {error.encoding}, and byte 0x{error.object[error.start]:02x} in it is not"
        ) from None


def _line(study: "Study", number: int, line: str) -> tuple[str, Any]:
    words = line.rsplit(maxsplit=1)  # at the last blank: a chain's name may have some
    if len(words) != 2:
        raise InputError(f"line {number} must be 'CHAIN STATE', not {line.strip()!r}")
    try:
        chain, state = words[0].strip(), words[1]
        return chain, study.state_from_text(chain, state)
    except ChainscoutError as error:
        raise InputError(f"line {number}: {error}") from None


def _finished(reason: str | None) -> str:
    return "" if reason is None else f"; finished ({reason})"
