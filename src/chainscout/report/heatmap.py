"""A transition matrix as an HTML table: a number in each cell, its interval on hover and on focus, no script."""

from html import escape

from .cells import cell
from .views import State, Window

STYLE = """
:root { --heat: #7db8f5; --mark: #8a4b00; --tip: #ffffff; }
@media (prefers-color-scheme: dark) { :root { --heat: #1c5b9e; --mark: #ffb566; --tip: #24282d; } }
table.heat { border-collapse: separate; border-spacing: 2px; margin: 2.6rem 0 .5rem; }
table.heat th, table.heat td { border: 0; padding: .25rem .45rem; }
table.heat th[scope=row] { position: sticky; left: 0; background: var(--paper); z-index: 1; }
table.heat td.p { text-align: right; position: relative; border-radius: .2rem;
  background: color-mix(in srgb, var(--heat) calc(var(--p) * 100%), transparent); outline: 1px solid var(--line); }
table.heat tr.never td.p, table.heat tr.rarely td.p { background: repeating-linear-gradient(45deg, transparent 0 5px,
  color-mix(in srgb, var(--mark) 22%, transparent) 5px 7px); }
table.heat td.p:focus, table.heat td.p:hover { outline: 2px solid var(--ink); z-index: 2; }
td.p .tip { display: none; position: absolute; bottom: 115%; left: 0; padding: .35rem .6rem; white-space: nowrap;
  text-align: left; background: var(--tip); border: 1px solid var(--ink); border-radius: .3rem; z-index: 3; }
td.p:focus .tip, td.p:hover .tip { display: block; }
table.heat th bdi { display: inline-block; vertical-align: bottom; max-width: min(14rem, 30vw); overflow: hidden;
  text-overflow: ellipsis; }
table.heat th[scope=col] bdi { max-width: 6rem; }
.mark { color: var(--mark); font-weight: 600; }
"""

#: What is written beside a row that is not known.
MARKS = {"never": "never left: not known", "rarely": "rarely left: hardly known", "often": ""}
#: Beside a state's name, where it is seen however far the matrix is scrolled.
SIGNS = {
    "never": " <span class=mark aria-hidden=true>○</span>",
    "rarely": " <span class=mark aria-hidden=true>◐</span>",
    "often": "",
}


def interval_text(window: Window, x: int, y: int, delta: float) -> str:
    """What is known of one entry, in words."""
    mark = MARKS[window.rows[x].left] and f"; the row was {MARKS[window.rows[x].left]}"
    return (
        f"{window.rows[x].label} → {window.columns[y]}: {cell(window.matrix[x][y])}, between "
        f"{cell(window.lower[x][y])} and {cell(window.upper[x][y])} with probability {1 - delta:g}; seen "
        f"{window.transitions[x][y]:,} times in {window.rows[x].exits:,} exits{mark}"
    )


def heat_map(title: str, window: Window, delta: float) -> str:
    """The table; ``title`` is its caption for those who do not see it."""
    head = "".join(f"<th scope=col><bdi>{escape(name)}</bdi></th>" for name in window.columns)
    body = "\n".join(_row(window, x, state, delta) for x, state in enumerate(window.rows))
    return (
        f'<div class=scroll tabindex=0 role=region aria-label="{escape(title, quote=True)}"><table class=heat>'
        f"<thead><tr><th scope=col>from ╲ to</th>{head}<th scope=col>exits</th><th scope=col>π̂</th><td></td></tr>"
        f"</thead>\n<tbody>{body}</tbody></table></div>"
    )


def _row(window: Window, x: int, state: State, delta: float) -> str:
    cells = "".join(
        f'<td class=p tabindex=0 style="--p:{window.matrix[x][y]:.3f}">{window.matrix[x][y]:.2f}'
        f"<span class=tip><bdi>{escape(interval_text(window, x, y, delta))}</bdi></span></td>"
        for y in range(len(window.columns))
    )
    return (
        f"<tr class={state.left}><th scope=row><bdi>{escape(state.label)}</bdi>{SIGNS[state.left]}</th>{cells}"
        f"<td class=number>{cell(state.exits)}</td><td class=number>{cell(state.stationary)}</td>"
        f"<td class=mark>{MARKS[state.left]}</td></tr>"
    )
