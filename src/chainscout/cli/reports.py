"""``report`` and ``serve``."""

from pathlib import Path

import click

from ..errors import FileError
from .rendering import echo


@click.command()
@click.argument("where", metavar="WHERE")
@click.option("--out", type=click.Path(path_type=Path), default="report.html", show_default=True, help="The file.")
def report(where: str, out: Path) -> None:
    """Write a page of a study or of a saved experiment (run.nc): one file, nothing is loaded from elsewhere."""
    if Path(where).suffix == ".nc":
        from ..experiment import Results
        from ..report.experiments import experiment_page

        text = experiment_page(Results.load(where))
    else:
        from ..report.study_page import study_page
        from ..study import Study

        with Study.open(where, read_only=True) as study:
            text = study_page(study, f"Study {Path(where).name}" if "://" not in where else "Study")
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise FileError(f"{out} could not be written: {error.strerror or error}") from None
    echo(str(out), exact=True)


@click.command()
@click.argument("where", metavar="WHERE")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Where to listen; anything else than this machine only if you mean it.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=8321, show_default=True, help="0: any that is free.")
@click.option("--token", envvar="CHAINSCOUT_TOKEN", help="What readers must know; a random one if it is not given.")
@click.option("--writable", is_flag=True, help="Let programs ask, tell, restart and hold leases over HTTP.")
def serve(where: str, host: str, port: int, token: str | None, writable: bool) -> None:
    """Show a study in the browser while it runs. The page can never harm the study."""
    from ..dashboard import serve as serve_study

    serve_study(where, host=host, port=port, token=token, writable=writable, ready=echo)
