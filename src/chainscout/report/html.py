"""A self-contained HTML page of tables and charts: nothing is loaded from anywhere."""

import warnings
from html import escape
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from .._version import __version__
from .cells import cell
from .tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = """
:root { color-scheme: light dark; --ink: #1c2024; --paper: #ffffff; --line: #d5d9de; --dim: #5a626b; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8ea; --paper: #16181b; --line: #3a4047; --dim: #a4acb5; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 75rem; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
h2::first-letter { text-transform: uppercase; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { padding: .3rem .7rem; border-bottom: 1px solid var(--line); text-align: left; white-space: nowrap; }
td.number, th.number { text-align: right; }
figure { margin: 1rem 0; }
figcaption { font-weight: 600; margin-bottom: .4rem; overflow-wrap: anywhere; }
p.note, footer { color: var(--dim); font-size: .9rem; }
"""


def document(title: str, parts: list[str], style: str = "") -> str:
    """A page with these parts, which are HTML already; ``style``: rules beside those that every page has."""
    body = "\n".join([*parts, f"<footer>made by chainscout {__version__}</footer>"])
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        # Nothing may be fetched or run, whatever a chain is called.
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title><style>{STYLE}{style}</style>"
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n<main>\n{body}\n</main>\n</body></html>\n'


def section(table: Table) -> str:
    """A table under its title, with its notes."""
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
    return f"<section><h2>{escape(table.title)}</h2>{scroll}{notes}</section>"


def save_figure(figure: "Figure", where: Path | IO[str]) -> None:
    """Writes a figure, by its suffix or as SVG, the same bytes for the same figure."""
    import matplotlib

    kind = where.suffix[1:] if isinstance(where, Path) else "svg"
    # Without what names an address or a time.
    metadata = dict.fromkeys(("Date", "Creator", "Format", "Type") if kind == "svg" else ("Software",))
    with matplotlib.rc_context({"svg.hashsalt": "chainscout", "svg.fonttype": "path"}), warnings.catch_warnings():
        # A name in a script that the font lacks is drawn as boxes; the tables have it right.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(where, format=kind, dpi=150, metadata=metadata)
