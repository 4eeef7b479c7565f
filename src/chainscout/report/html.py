"""A self-contained HTML page of tables and charts: nothing is loaded from anywhere."""

import warnings
from html import escape
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from .._version import __version__
from .charts import line_chart
from .format import cell
from .tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = (Path(__file__).parent / "static" / "common.css").read_text(encoding="utf-8")


def document(title: str, parts: list[str]) -> str:
    """A page with these parts, which are HTML already."""
    body = "\n".join([*parts, f"<footer>made by chainscout {__version__}</footer>"])
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        # The page can load and run nothing, whatever the name of a chain is.
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title><style>{STYLE}</style>"
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n<main>\n{body}\n</main>\n</body></html>\n'


def section(table: Table) -> str:
    """A table under its title, with its notes and its drawing."""
    numeric = [table.is_numeric(place) for place in range(len(table.columns))]

    def row(tag: str, values: tuple[Any, ...], attribute: str = "") -> str:
        cells = zip(values, numeric, strict=True)
        drawn = (
            f"<{tag}{attribute}{' class=number' * number}>{escape(cell(value))}</{tag}>" for value, number in cells
        )
        return f"<tr>{''.join(drawn)}</tr>"

    head = row("th", table.columns, " scope=col")
    body = "\n".join(row("td", values) for values in table.rows)
    notes = "".join(f"<p class=note>{escape(note)}</p>" for note in table.notes)
    inside = f"<table><thead>{head}</thead>\n<tbody>\n{body}\n</tbody></table>"
    name = escape(table.title, quote=True)
    scroll = f'<div class=scroll tabindex=0 role=region aria-label="{name}">{inside}</div>'
    drawing = "" if table.drawing is None else line_chart(table.drawing)
    return f"<section><h2>{escape(table.title)}</h2>{scroll}{notes}{drawing}</section>"


def save_figure(figure: "Figure", where: Path | IO[str]) -> None:
    """Writes a figure in the format of the file's suffix, or as SVG. The same figure gives the same bytes."""
    import matplotlib

    kind = where.suffix[1:] if isinstance(where, Path) else "svg"
    # No address and no time, so that the bytes are the same.
    metadata = dict.fromkeys(("Date", "Creator", "Format", "Type") if kind == "svg" else ("Software",))
    with matplotlib.rc_context({"svg.hashsalt": "chainscout", "svg.fonttype": "path"}), warnings.catch_warnings():
        # Letters that the font lacks are drawn as boxes. The tables show them.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(where, format=kind, dpi=150, metadata=metadata)
