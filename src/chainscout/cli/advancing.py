"""``ask``, ``tell``, ``renew``, ``give-back`` and ``take-up``: scripts in any language advance a study."""

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from ..errors import ChainscoutError, InputError
from .command import StudyCommand, duration, is_json, opened
from .rendering import echo, say
from .studies import finished

if TYPE_CHECKING:
    from ..study import Study


def _seconds(ctx: click.Context, option: click.Parameter, value: float | str) -> float:
    from ..validation import seconds

    return seconds(value, "--seconds", meaning="how long a lease lasts")


_how_long = partial(click.option, "--seconds", type=duration, default="60", callback=_seconds)
_token = click.option("--token", type=int, required=True, help="The token of the lease, as 'ask --lease' printed it.")


@click.command(cls=StudyCommand)
@click.option("--number", type=int, help="How many observations to plan at once.")
@click.option(
    "--lease", "worker", metavar="WORKER", help="Lease the next step of this worker's own path, and print a token."
)
@_how_long(help="How long a lease lasts, as 60 or 5min.")
@click.option("--steps", type=int, default=1, help="How many observations a lease is for.")
def ask(where: str, number: int | None, worker: str | None, seconds: float, steps: int) -> None:
    """Print the chain to advance next."""
    if worker is not None:
        if number is not None:
            raise InputError("a lease is of one chain: give --number or --lease, not both")
        with opened(where) as study:
            lease = study.worker(worker, renews=False).lease(seconds, steps=steps, wait=0, continuing=True)
            if lease is None:
                study.ask()  # raises the error that says why there is nothing to ask
                return
        fields = ("chain", "token", "path", "state", "step", "steps")
        say({name: getattr(lease, name) for name in fields}, f"{lease.chain} {lease.token}")
        _say_where(lease.chain, lease.path, lease.state)
        return
    with opened(where, read_only=True) as study:
        if number is not None:
            chosen = study.ask(number)
            say({"chains": chosen}, *chosen)
            return
        name = study.ask()
        chain = study.chain(name)
    say({"chains": [name], "path": chain.path, "state": chain.last, "step": chain.step}, name)
    _say_where(name, chain.path, chain.last)


def _say_where(chain: str, path: int, state: Any) -> None:
    """Tells a person on standard error where the path stands. A script reads standard output."""
    if not is_json():
        where = "begins with the next state" if state is None else f"is in {state!r}"
        echo(f"path {path} of {chain} {where}", err=True)


@click.command(cls=StudyCommand)
@click.argument("chain", metavar="CHAIN|-")
@click.argument("state", required=False)
@click.option("--path", type=int, help="The number of the path that the state continues.")
@click.option("--step", type=int, help="The observation's number in its path. Telling the same again is harmless.")
@click.option("--token", type=int, help="The token of the lease that the path belongs to.")
@click.option("--begin", is_flag=True, help="The state begins a new path, because the process was started anew.")
@click.option("--ends", is_flag=True, help="The path ends with this state, because the process itself has ended.")
def tell(where: str, chain: str, state: str | None, **options: Any) -> None:
    """Store an observation. It continues the path of all calls without a token, unless --begin is given.

    With - for the chain, lines 'CHAIN STATE' are read from standard input.
    """
    renewed = {}
    with opened(where) as study:
        if chain == "-":
            if state is not None or any(value is not None and value is not False for value in options.values()):
                raise InputError("lines from standard input are told all at once, without a state or options")
            lines = enumerate(_standard_input(), start=1)
            study.tell_many([_line(study, number, line) for number, line in lines if line.strip()])
        else:
            if state is None:
                raise InputError("tell needs a chain and a state")
            if options["begin"] and (options["path"] is not None or options["step"] is not None):
                raise InputError("--begin starts a path, whose number the study gives: leave out --path and --step")
            found = study.state_from_text(chain, state)
            if options["begin"] and options["token"] is not None:  # the lease has another token from here on
                options |= {"begin": False, "token": study.restart(chain, token=options["token"]).token}
                renewed = {"token": options["token"]}
                if not is_json():
                    echo(f"the token of the lease is {options['token']} now", err=True)
            study.tell(chain, found, **options)
        progress, over = study.progress(), finished(study)
    number = progress.observations
    answer = {"observations": number, "stop_reason": progress.stop_reason, **renewed}
    say(answer, f"{number:,} observation{'s' * (number != 1)}{over}")


@click.command(cls=StudyCommand)
@click.argument("chain")
@_token
@_how_long(help="How long the lease lasts from now on, as 60 or 5min.")
def renew(where: str, chain: str, token: int, seconds: float) -> None:
    """Hold a lease for longer."""
    with opened(where) as study:
        study.renew(chain, token, seconds)
    say({"chain": chain, "seconds": seconds}, f"{chain} is held for {seconds:g} seconds")


@click.command(cls=StudyCommand)
@click.argument("chain")
@_token
@click.option("--lost", is_flag=True, help="The worker cannot go on: its path ends, as when a lease runs out.")
def give_back(where: str, chain: str, token: int, lost: bool) -> None:
    """End a lease before its time is over."""
    with opened(where) as study:
        study.give_back(chain, token, lost=lost)
        say({"chain": chain, "stop_reason": study.stop_reason}, f"{chain} is free{finished(study)}")


@click.command(cls=StudyCommand)
@click.argument("chain")
def take_up(where: str, chain: str) -> None:
    """Ask again for a chain that was set aside, because its process works again."""
    with opened(where) as study:
        study.take_up(chain)
        say({"chain": chain, "stop_reason": study.stop_reason}, f"{chain} is no longer set aside{finished(study)}")


def _standard_input() -> list[str]:
    try:
        return list(sys.stdin)
    except UnicodeDecodeError as error:
        raise InputError(
            f"standard input must be text in {error.encoding}, and byte 0x{error.object[error.start]:02x} in it is not"
        ) from None


def _line(study: "Study", number: int, line: str) -> tuple[str, Any]:
    words = line.rsplit(maxsplit=1)  # at the last blank, because a chain's name may have blanks
    if len(words) != 2:
        raise InputError(f"line {number} must be 'CHAIN STATE', not {line.strip()!r}")
    try:
        chain, state = words[0].strip(), words[1]
        return chain, study.state_from_text(chain, state)
    except ChainscoutError as error:
        raise InputError(f"line {number}: {error}") from None
