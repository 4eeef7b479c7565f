"""The command line. Commands import heavy modules only when they run, so that ``--help`` answers at once."""

import os
import sys
import warnings
from contextlib import suppress
from typing import Any

import click

from .._version import __version__
from ..errors import ChainscoutError, FileError
from .advancing import ask, give_back, renew, take_up, tell
from .demonstration import demo
from .experiments import compare
from .logs import count
from .problems import inspect, plan
from .rendering import echo
from .studies import answer, audit, backup, diagnose, export, extend, learn, new, report, restore, serve, status


class OneLineErrors(click.Command):
    """A command whose errors of the library become one line and an exit status."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command."""
        try:
            with warnings.catch_warnings():  # a warning is one line, without the place in the code
                warnings.showwarning = lambda message, *_, **__: echo(f"chainscout: {message}", err=True)
                return super().invoke(ctx)
        except ChainscoutError as error:
            echo(*f"chainscout: {error}".split("\n"), err=True)  # a file may have several mistakes, a line for each
            ctx.exit(error.exit_status)
        except UnicodeEncodeError as error:  # a name that is not text, or an encoding with few letters
            letter = error.object[error.start : error.start + 1]
            echo(f"chainscout: {letter!a} cannot be written in {error.encoding}", err=True)
            ctx.exit(FileError.exit_status)
        except KeyboardInterrupt as interruption:
            echo(f"chainscout: {str(interruption) or 'stopped'}", err=True)
            with suppress(OSError):
                sys.stdout.flush()
            # An ordinary exit would wait for threads that are in the middle of a task.
            os._exit(130)


class Commands(OneLineErrors, click.Group):
    """A group of such commands."""


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(__version__, prog_name="chainscout")
def main() -> None:
    """Learn many Markov chains equally well from one sampling budget, and know how well."""


for command in (
    demo, inspect, plan, compare,
    new, learn, extend, ask, tell, renew, give_back, take_up, status, answer, diagnose, audit, backup, export, restore,
    count, report, serve,
):  # fmt: skip
    main.add_command(command)
