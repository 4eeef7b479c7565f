"""A self-contained HTML page of tables and charts: nothing is loaded from anywhere."""

import warnings
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from .._version import __version__
from .charts import line_chart
from .format import cell
from .tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The most characters of a fact that shares its line with others.
WIDE = 40
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
    drawing = "" if table.drawing is None else line_chart(table.drawing)
    return f"<section><h2>{escape(table.title)}</h2>{grid(table)}{notes(table.notes)}{drawing}</section>"


def grid(table: Table, heads: Sequence[tuple[str, str]] = ()) -> str:
    """A table that scrolls by itself. ``heads``: attributes and HTML of the headings, if they are more than names."""
    kinds = [" class=number" if table.is_numeric(place) else "" for place in range(len(table.columns))]

    def row(values: tuple[Any, ...]) -> str:
        return f"<tr>{''.join(f'<td{kind}>{text(value)}</td>' for kind, value in zip(kinds, values, strict=True))}</tr>"

    heads = heads or [("", escape(name)) for name in table.columns]
    named = (f"<th scope=col{kind}{more}>{inside}</th>" for kind, (more, inside) in zip(kinds, heads, strict=True))
    body = "\n".join(map(row, table.rows))
    inside = f"<table><thead><tr>{''.join(named)}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"
    return f'<div class=scroll tabindex=0 role=region aria-label="{escape(table.title, quote=True)}">{inside}</div>'


class Markup(str):
    """HTML, which is shown as it is."""


def text(value: Any) -> str:
    """A value in a cell. What people named has a direction of its own, and changes nothing around it."""
    if isinstance(value, Markup):
        return value
    shown = escape(cell(value))
    return f"<bdi>{shown}</bdi>" if isinstance(value, str) else shown


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Names with their texts. A sentence has a line to itself."""
    shown = (
        f"<div{' class=wide' * (len(words) > WIDE)}><dt>{escape(name)}</dt><dd><bdi>{escape(words)}</bdi></dd></div>"
        for name, words in pairs
    )
    return f"<dl>{''.join(shown)}</dl>"


def notes(sentences: Iterable[str]) -> str:
    """Sentences below a table or a chart."""
    return "".join(f"<p class=note>{escape(sentence)}</p>" for sentence in sentences)


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
