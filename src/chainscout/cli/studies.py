"""The commands of a study from beginning to end: ``new``, ``learn``, ``status``, ``answer``, ``report`` and others."""

import sys
import warnings
from contextlib import nullcontext
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError, RepeatedPathsWarning, SetAsideWarning
from .command import JsonCommand, StudyCommand, delta_option, is_json, opened, pairs
from .rendering import echo, say, show, writing

if TYPE_CHECKING:
    from ..study import Study


def _numbers(ctx: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, float] | None:
    """Chain → its number."""
    found = {}
    for name, value in pairs(texts, option.opts[0]).items():
        try:
            found[name] = float(value)
        except ValueError:
            raise InputError(f"{option.opts[0]} must be given as NAME=NUMBER, not {f'{name}={value}'!r}") from None
    return found or None


def _moment(ctx: click.Context, option: click.Parameter, text: str | None) -> datetime | None:
    """A date and time. The study checks that it has a time zone."""
    try:
        return None if text is None else datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"--deadline must be a time as 2026-05-01T18:00+02:00, not {text!r}") from None


#: The exit status of an answer whose bounds do not hold.
NOT_HELD = 3

_number_of = partial(click.option, multiple=True, metavar="NAME=NUMBER", callback=_numbers)
_target_loss = click.option("--target-loss", type=float, help="Stop when this loss is certified.")
_target_width = click.option("--target-width", type=float, help="Stop when every answer is at most so wide.")
_deadline = click.option("--deadline", metavar="TIME", callback=_moment, help="Stop then; as 2026-05-01T18:00+02:00.")


@click.command(cls=StudyCommand)
@click.option(
    "--chain", "chains", multiple=True, metavar="NAME=STATES", help="As north=idle,busy or south=5 or east=?."
)
@click.option("--budget", type=float, help="Observations, or cost units with --cost. Without it there is no end.")
@_target_loss
@_deadline
@click.option("--certificate", help="sharp (the default) or mixture: what the study promises and stops by.")
@click.option("--policy", help="The rule that chooses the next chain: furthest if there is a target, and else scout.")
@_number_of("--weight", "weights", help="How much a chain's loss counts.")
@_number_of("--cost", "costs", help="What an observation of a chain costs.")
@click.option(
    "--question", "lines", multiple=True, metavar="LINE", help="As 'reach down from idle within 100': asked of all."
)
@click.option("--question-of", "own", multiple=True, nargs=2, metavar="NAME LINE", help="Asked of one chain.")
@_target_width
@click.option("--limit", type=float, help="Stop when of every answer it is known whether it is below this.")
@click.option("--worst", help="highest or lowest: stop when one chain is known to have the highest or lowest answer.")
@click.option("--paths", help="own: every worker has processes of its own; shared: a chain is one physical process.")
@delta_option
def new(
    where: str, chains: tuple[str, ...], lines: tuple[str, ...], own: tuple[tuple[str, str], ...], **settings: Any
) -> None:
    """Make a study. States: how many, their labels, or ? for states that will be discovered."""
    from ..study import Study

    states = pairs(chains, "--chain")
    Study.create(
        where,
        {name: _states(text) for name, text in states.items()},
        open_states=[name for name, text in states.items() if text == "?"],
        questions=_questions(lines, own, states),
        **settings,
    ).close()
    say({"where": where, "chains": len(states)}, f"{where}: a study of {len(states)} chain{'s' * (len(states) != 1)}")


@click.command(cls=StudyCommand)
@click.option("--budget", type=float, help="The whole budget, not what is added to it.")
@_target_loss
@_target_width
@_deadline
def extend(where: str, **ends: Any) -> None:
    """Give a study another budget, target or deadline. A finished study goes on."""
    from ..study.settings import deadline_text

    with opened(where) as study:
        study.extend(**ends)
        state, over = study.progress(), finished(study)
    ends = {name: getattr(state, name) for name in ("budget", "target_loss", "target_width")}
    ends["deadline"] = None if state.deadline is None else deadline_text(state.deadline)
    words = (
        f"{key.replace('_', ' ')} {end if isinstance(end, str) else f'{end:,.10g}'}"
        for key, end in ends.items()
        if end is not None
    )
    say({**ends, "stop_reason": state.stop_reason}, f"{where}: {', '.join(words)}{over}")


@click.command(cls=StudyCommand)
@click.option("--chain", help="Show the estimated matrix of this chain, entry by entry.")
def status(where: str, chain: str | None) -> None:
    """Show where a study stands and what is known of its chains."""
    from ..report import studies

    with opened(where, read_only=True) as study:
        show(studies.status(study) if chain is None else [studies.estimate(study, chain)])


@click.command(cls=StudyCommand)
@click.argument("chain")
@click.argument("question")
@click.option("--delta", type=float, help="The probability that the bounds fail. Without it, the study's.")
@click.option("--method", help="replay or row-likelihood. Without it, what the log allows.")
@click.option("--asked", type=int, help="Read only draws issued after this number: the question was asked then.")
@click.option("--losses", default="checked", help="checked, or independent of all that was drawn.")
def answer(where: str, chain: str, question: str, **options: Any) -> None:
    """Answer a question about a chain, as 'reach down from idle within 100', with bounds.

    The exit status is 3 if a check of the data says that no bound holds.
    """
    with opened(where, read_only=True) as study:
        found = study.answer(chain, question, **options)
    said = str(found).split("\n")
    say({**found.to_json(), "chain": chain}, *said)
    if not found.holds:
        sys.exit(NOT_HELD)


@click.command(cls=StudyCommand)
@click.option(
    "--reference", metavar="PROBLEM", help="A file or the name of a problem: matrices that are known exactly."
)
@click.option("--other", metavar="FILE|ADDRESS", help="Another study: do chains of the same name follow one law?")
@click.option("--delta", type=float, help="The probability with which a check may be wrong; without it, the study's.")
def diagnose(where: str, reference: str | None, other: str | None, delta: float | None) -> None:
    """Check whether the chains of a study are Markov chains that do not change. Look as often as you like."""
    from .. import problems
    from ..report.panels import check_tables

    with (
        opened(where, read_only=True) as study,
        nullcontext() if other is None else opened(other, read_only=True) as second,
    ):
        known = None
        if reference is not None:
            names, chains = set(study.names), problems.find(reference).chains
            known = {name: chain for name, chain in chains.items() if name in names}
            if not known:
                raise InputError(f"--reference must name a problem with a chain of the study, and {reference} has none")
        found = study.diagnose(reference=known, other=second, delta=delta)
    show(check_tables(found), found.to_json())


@click.command(cls=StudyCommand)
def audit(where: str) -> None:
    """Read the whole journal of a study, and compare everything that follows from it with what is kept."""
    with opened(where, read_only=True) as study:
        study.audit()
        number = study.progress().observations
    say({"observations": number, "damaged": False}, f"{where}: all is what the {number:,} logged observations say")


@click.command(cls=JsonCommand)
@click.argument("file")
@click.argument("copy")
@click.option("--without-log", is_flag=True, help="Copy what the file alone has, if its write-ahead log is lost.")
def backup(file: str, copy: str, without_log: bool) -> None:
    """Copy the file of a study, also while it is written to. The copy is one file, complete and checked."""
    from ..journal.backup import backup as make_backup

    make_backup(file, copy, without_log=without_log)
    _say_copied(copy)


@click.command(cls=JsonCommand)
@click.argument("file", metavar="FILE.JSONL", type=click.Path(path_type=Path))
@click.argument("where", metavar="FILE|ADDRESS")
def restore(file: Path, where: str) -> None:
    """Make a study of the lines that 'export' wrote. A line that is not what was written is named."""
    from ..journal.backup import restore as make_study

    make_study(file, where).close()
    _say_copied(where)


def _say_copied(copy: str) -> None:
    with opened(copy, read_only=True) as study:
        number = study.progress().observations
    say({"copy": copy, "observations": number}, f"{copy}: a copy with {number:,} observations")


@click.command(cls=StudyCommand)
@click.option(
    "--format",
    "kind",
    help="json, csv, npz, toml (a problem file), jsonl (the journal, for 'restore'), or for model checkers prism, drn"
    " or umb; without it, what the name of the file ends in, or json.",
)
@click.option("--out", type=click.Path(path_type=Path), help="File to write; without it, standard output.")
@click.option("--chain", help="The chain of a model checker's file.")
@click.option("--start", metavar="STATE", help="Its initial state; without it, the states in which paths began.")
def export(where: str, kind: str | None, out: Path | None, chain: str | None, start: str | None) -> None:
    """Write the estimates, their intervals and the certificate. In toml and csv there is no certificate.

    A model checker's file has the intervals of one chain.
    """
    from ..study.export import FORMATS, content, write
    from ..validation import one_of

    if kind is not None:
        one_of(kind, "--format", FORMATS)
    with opened(where, read_only=True) as study:
        named = study.names[0] if chain is None else chain
        state = None if start is None else study.state_from_text(named, start)
        if out is None:
            if kind in ("npz", "umb") and sys.stdout.isatty():
                raise InputError(f"{kind} is binary, and this is a terminal: name a file with --out")
            sys.stdout.buffer.write(content(study, kind or "json", chain=chain, start=state))
            return
        guessed = kind or (out.suffix[1:] if out.suffix[1:] in FORMATS else "json")
        write(study, out, kind=guessed, chain=chain, start=state)
    say({"written": str(out)}, f"{out} written")


@click.command()
@click.argument("where", metavar="WHERE")
@click.option("--out", type=click.Path(path_type=Path), default="report.html", help="The file.")
def report(where: str, out: Path) -> None:
    """Write a page of a study or of a saved experiment (run.npz): one file, nothing is loaded from elsewhere."""
    if Path(where).suffix == ".npz":
        from ..experiment import Results
        from ..report.experiments import experiment_page

        text = experiment_page(Results.load(where))
    else:
        from ..report.study_page import study_page

        with opened(where, read_only=True) as study:
            text = study_page(study, f"Study {Path(where).name}" if "://" not in where else "Study")
    with writing(out):
        out.write_text(text, encoding="utf-8")
    echo(str(out), exact=True)


@click.command()
@click.argument("where", metavar="WHERE")
@click.option(
    "--host", default="127.0.0.1", help="Where to listen; another address than this machine's only if you mean it."
)
@click.option("--port", type=click.IntRange(0, 65535), default=8321, help="0: any that is free.")
@click.option("--token", envvar="CHAINSCOUT_TOKEN", help="What readers must know; a random one if it is not given.")
@click.option("--writable", is_flag=True, help="Let programs ask, tell, restart and hold leases over HTTP.")
def serve(where: str, **options: Any) -> None:
    """Show a study in the browser while it runs. The page can never harm the study."""
    from ..dashboard import serve as serve_study

    def ready(address: str) -> None:
        echo(address)
        echo("Open this address in a browser. Ctrl-C ends the server.", err=True)

    serve_study(where, ready=ready, **options)


@click.command(cls=JsonCommand)
@click.argument("file", metavar="STUDY.TOML", type=click.Path(path_type=Path))
@click.option("--quiet", is_flag=True, help="No progress bar.")
@click.option("--workers", type=int, help="So many sources at work at once, on threads.")
def learn(file: Path, quiet: bool, workers: int | None) -> None:
    """Run the sources of a study file until the study is finished. A study that exists goes on."""
    from concurrent.futures import ThreadPoolExecutor

    from ..learning import learn as learn_study
    from ..learning import read_study_file
    from ..report import studies
    from ..study.portrait import ending
    from ..validation import whole_number

    if workers is not None:
        whole_number(workers, "--workers", meaning="sources at work at once")
    found = read_study_file(file)
    executor = None if workers is None else ThreadPoolExecutor(workers)
    try:
        for said in (SetAsideWarning, RepeatedPathsWarning):  # the lines below say it, with a remedy
            warnings.simplefilter("ignore", said)
        study = learn_study(
            found.sources,
            where=found.where,
            states=found.states,
            executor=executor,
            progress=not quiet and not is_json() and sys.stderr.isatty(),
            **found.settings.given(),
        )
    except KeyboardInterrupt:
        echo(f"chainscout: interrupted; 'chainscout learn {file}' goes on", err=True)
        raise SystemExit(130) from None
    finally:
        if executor is not None:
            executor.shutdown(wait=False, cancel_futures=True)
    with study:
        look = study.look()
        for note in look.repeated[:1]:
            echo(f"chainscout: {note}; a source must not repeat itself when it starts again", err=True)
        for sentence in studies.set_aside(look):
            echo(sentence, err=True)
        if look.aside:
            echo(f"'chainscout take-up {found.where} CHAIN' takes a chain up again", err=True)
        show(studies.status(study))
        state = look.progress
        nothing_works = len(look.aside) == state.chains and not all(why.ended for why in look.aside.values())
        if not is_json():
            echo(ending(study))
    if look.repeated or nothing_works or (state.stop_reason is not None and state.stop_reason.leaves_out):
        raise SystemExit(1)


def _states(text: str) -> int | list[str]:
    if text == "?":
        return []
    try:
        return int(text)
    except ValueError:
        from ..validation import shown

        if text.strip().lstrip("+-").isdecimal():  # the number is too long for Python
            raise InputError(f"--chain must be given a number of states that can be had, not {shown(text)}") from None
        return text.split(",")


def _questions(
    lines: tuple[str, ...], own: tuple[tuple[str, str], ...], chains: dict[str, str]
) -> dict[str, list[str]] | None:
    """Chain → its questions: those for all chains, then its own."""
    found = {name: list(lines) for name in chains}
    for name, line in own:
        found.setdefault(name, []).append(line)
    return found if lines or own else None


def finished(study: "Study") -> str:
    """The end of a sentence about a study that may have stopped."""
    ending = study.look().ending
    return "" if ending is None else f"; finished ({ending})"
