"""A self-contained HTML page of tables and charts: nothing is loaded from anywhere."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from .._version import __version__
from ..numerals import cell
from .charts import line_chart, notes
from .format import Struck
from .tables import Table

#: The most characters of a fact that shares its line with others.
LONGEST_FACT = 40
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


def section(table: Table, live: bool = False) -> str:
    """A table under its title, with its notes and its drawing."""
    drawing = "" if table.drawing is None else line_chart(table.drawing, live)
    return f"<section><h2>{escape(table.title)}</h2>{grid(table)}{notes(table.notes)}{drawing}</section>"


def grid(table: Table, heads: Sequence[tuple[str, str]] = ()) -> str:
    """A table that scrolls by itself. ``heads``: attributes and HTML of the headings, if they are more than names."""
    kinds = [" class=number" if table.is_numeric(place) else "" for place in range(len(table.columns))]

    def row(values: tuple[Any, ...]) -> str:
        return f"<tr>{''.join(_cell(value, kind) for kind, value in zip(kinds, values, strict=True))}</tr>"

    heads = heads or [("", escape(name)) for name in table.columns]
    named = (f"<th scope=col{kind}{more}>{inside}</th>" for kind, (more, inside) in zip(kinds, heads, strict=True))
    body = "\n".join(map(row, table.rows))
    inside = f"<table><thead><tr>{''.join(named)}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"
    return f'<div class=scroll tabindex=0 role=region aria-label="{escape(table.title, quote=True)}">{inside}</div>'


class Markup(str):
    """HTML, which is shown as it is."""


def _cell(value: Any, kind: str) -> str:
    """A cell. A text has a direction of its own: what people named changes nothing around it."""
    direction = " dir=auto" if isinstance(value, str) else ""
    inside = value if isinstance(value, Markup) else escape(cell(value))
    if isinstance(value, Struck):
        inside = f"<s>{escape(cell(value.value))}</s> {inside}"
    return f"<td{kind}{direction}>{inside}</td>"


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """Names with their texts. A sentence has a line to itself."""
    kinds = (" class=wide" if len(words) > LONGEST_FACT else "" for _, words in pairs)
    shown = (
        f"<div{kind}><dt>{escape(name)}</dt><dd><bdi>{escape(words)}</bdi></dd></div>"
        for kind, (name, words) in zip(kinds, pairs, strict=True)
    )
    return f"<dl>{''.join(shown)}</dl>"
