"""The parts of the live page: the report's own HTML, with buttons.

A button says which part it changes and what to ask for beside what is shown. So the page's script knows neither.
"""

from html import escape
from typing import Any, get_args
from urllib.parse import urlencode

from ..report.html import Markup, facts, grid
from ..report.study_data import Chain, Page, Sort, StudyReport
from ..report.study_page import happened, header, matrix, now, over_time, panels
from ..report.tables import Table

#: States of the window of a matrix.
WINDOW = 20


def study(report: StudyReport) -> str:
    """The study as a whole."""
    overview = report.overview()
    return (
        f"<header id=study>{header(overview)}</header><div id=now>{now(report, overview)}</div>"
        f"<div id=panels class=pair>{panels(report, live=True)}</div><div id=log>{happened(report)}</div>"
    )


def charts(report: StudyReport, chain: tuple[int, ...]) -> str:
    """The study over time. ``chain``: the chain that is open, which is drawn too."""
    return f"<div id=charts>{over_time(report.drawings(chain), live=True)}</div>"


def chains(report: StudyReport, **asked: Any) -> str:
    """A page of the table of chains."""
    page, columns = report.page(**asked), report.columns()
    heads = [_head(title, "name" if field == "label" else field, asked) for title, field in columns.items()]
    found = Table.of("table of chains", page.chains, columns)
    rows = tuple(
        (_button("chain", {"number": line.number}, f"<bdi>{escape(line.label)}</bdi>"), *row[1:])
        for line, row in zip(page.chains, found.rows, strict=True)
    )
    many = f"{page.total:,} chain{'s' * (page.total != 1)}" if page.total else "no chain has such a name"
    return (
        f"<div id=chains tabindex=-1><p class=dim id=found role=status>{many}</p>"
        f"<div id=table>{grid(Table(found.title, found.columns, rows), heads)}</div>"
        f'<nav class=pager aria-label="pages of chains">{_pager(page)}</nav></div>'
    )


def _pager(page: Page) -> str:
    at, last = page.page, page.pages
    goals = {"first": 1, "previous": at - 1, "next": at + 1, "last": last}
    buttons = [
        _button("chains", {"page": goal}, name.capitalize(), name, goal == at or not 1 <= goal <= last)
        for name, goal in goals.items()
    ]
    return "".join((*buttons[:2], f"<span id=place>page {at:,} of {last:,}</span>", *buttons[2:]))


def _head(title: str, sort: str, asked: dict[str, Any]) -> tuple[str, str]:
    """A heading, which is a button if chains can be sorted by it. Numbers begin with the largest."""
    if sort not in get_args(Sort):
        return "", title
    mine, descending = sort == asked["sort"], asked["descending"]
    goal = {"sort": sort, "descending": not descending if mine else sort != "name", "page": 1}
    towards, arrow = ("descending", " ▾") if descending else ("ascending", " ▴")
    return f" aria-sort={towards}" * mine, _button("chains", goal, title + arrow * mine, f"by-{sort}")


def chain(report: StudyReport, number: int, row: int, column: int) -> str:
    """A chain and a window of its matrix."""
    shown = report.chain(number, row, column, WINDOW)
    places = {"number": number, "row": row, "column": column, "states": shown.line.states, "size": WINDOW}
    data = " ".join(f"data-{key}={value}" for key, value in places.items())
    return (
        "<section id=chain aria-labelledby=chain-title tabindex=-1><button type=button id=close>Close</button>"
        f"<h2 id=chain-title>Chain <bdi>{escape(shown.line.label)}</bdi></h2>{facts(shown.facts)}"
        f"<p class=mark id=unknown>{shown.unknown}</p><div class=pager id=window>{_window(shown)}</div>"
        f"{matrix(shown, f'id=matrix aria-describedby=matrix-help {data}')}"
        f"<p class=note id=matrix-help>{escape(shown.words)}</p>"
        f'<p><a href="/download/{number}/matrix.csv" download>Download this matrix (CSV)</a></p></section>'
    )


def _window(chain: Chain) -> str:
    """Which part of a large matrix is shown, and buttons that move it."""
    states, part = chain.line.states, chain.window
    if states <= WINDOW:
        return ""
    rows = f"rows {part.row + 1}–{part.row + len(part.rows)}"
    columns = f"columns {part.column + 1}–{part.column + len(part.columns)}"
    moves = {"↑ rows": (-WINDOW, 0), "↓ rows": (WINDOW, 0), "← columns": (0, -WINDOW), "→ columns": (0, WINDOW)}
    buttons = ""
    for words, (down, right) in moves.items():
        goal = {"number": chain.line.number, "row": part.row + down, "column": part.column + right}
        inside = 0 <= goal["row"] < states and 0 <= goal["column"] < states
        buttons += _button("chain", goal, words, is_off=not inside)
    return f"<span>{rows}, {columns} of {states:,}</span>{buttons}"


def _button(part: str, goal: dict[str, Any], words: str, name: str = "", is_off: bool = False) -> Markup:
    """A button that asks for a part with this query."""
    texts = {key: str(value).lower() if isinstance(value, bool) else value for key, value in goal.items()}
    named = f" id={name}" if name else ""
    ask = f'data-part={part} data-ask="{escape(urlencode(texts))}"{" disabled" * is_off}'
    return Markup(f"<button type=button{named} {ask}>{words}</button>")
