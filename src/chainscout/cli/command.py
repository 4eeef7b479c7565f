"""What commands share: ``--json``, the study that a command opens, and options of several commands."""

from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError

if TYPE_CHECKING:
    from ..study import Study


def _keep(context: click.Context, option: click.Parameter, value: bool) -> None:
    context.meta[__name__] = value


#: The last option of a command that can print JSON. `is_json` gives its value, so that no command passes it on.
JSON = click.Option(["--json"], is_flag=True, expose_value=False, callback=_keep, help="Print JSON instead of tables.")


class JsonCommand(click.Command):
    """A command that can print JSON."""

    def __init__(self, *, params: list[click.Parameter], **settings: Any) -> None:
        super().__init__(params=[*params, JSON], **settings)


def is_json() -> bool:
    """Whether the running command prints JSON."""
    return bool(click.get_current_context().meta[__name__])


class StudyCommand(JsonCommand):
    """A command whose first argument is the place of a study."""

    def __init__(self, *, params: list[click.Parameter], **settings: Any) -> None:
        where = click.Argument(["where"], metavar="FILE|ADDRESS")
        super().__init__(params=[where, *params], **settings)


def opened(where: str, read_only: bool = False) -> "Study":
    """A study. Plain tells continue their paths, because the processes outlive the command."""
    from ..study import Study

    return Study.open(where, read_only=read_only, continuing=True)


delta_option = click.option("--delta", type=float, default=0.05, help="Probability that a guarantee fails.")


def duration(text: str) -> float | str:
    """A number, or words such as 5min."""
    try:
        return float(text)
    except ValueError:
        return text


def pairs(texts: tuple[str, ...], option: str) -> dict[str, str]:
    """Chain → the text after its name, of an option that is given as NAME=VALUE, once for each chain."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise InputError(f"{option} must be given as NAME=VALUE, not {text!r}")
        if name in found:
            raise InputError(f"{option} must be given once for each chain, and {name!r} is given twice")
        found[name] = value
    return found
