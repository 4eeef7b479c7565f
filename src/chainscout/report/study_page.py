"""A study as one self-contained HTML file."""

from html import escape
from typing import TYPE_CHECKING

from .charts import line_chart
from .format import cell, moment
from .html import document, section
from .study_data import COLUMNS, Chain, Overview, Page, State, StudyReport, Window
from .tables import Table

if TYPE_CHECKING:
    from ..study import Study

#: The most chains in the table, matrices, and states of a matrix.
MOST_LISTED = 200
MOST_DRAWN = 20
MOST_STATES = 30
ALLOCATION = (
    "The same chains: share of all observations; η̂: the share that the paper's rule gives the chain with the estimates"
    " at that time; aim: the share that the policy tends to if these estimates are the truth."
)


def study_page(study: "Study", title: str) -> str:
    """The page of a study as it is now."""
    report = StudyReport(study, title)
    overview = report.overview()
    worst = report.page(sort="certificate", descending=True, size=MOST_LISTED)
    over_time = report.drawings()
    questions = "".join(map(line_chart, over_time.questions))
    drawn = [report.chain(line.number, size=MOST_STATES) for line in worst.chains[:MOST_DRAWN]]
    which = f"the {len(drawn)} least known of {overview.chains:,} chains" if overview.chains > len(drawn) else ""
    parts = [
        f"<h1><bdi>{escape(title)}</bdi></h1>",
        _header(overview),
        section(_figures(report, overview)),
        "<section><h2>Over time</h2>",
        line_chart(over_time.certificate),
        f"<h3>Allocation</h3><p class=note>{ALLOCATION}</p>",
        f"<div class=charts>{''.join(map(line_chart, over_time.shares))}</div></section>",
        f"<section><h2>Questions over time</h2><div class=charts>{questions}</div></section>" if questions else "",
        section(_chains(worst, overview)),
        f"<section><h2>Transition matrices</h2><p class=note>{which}</p>",
        *map(_chain, drawn),
        "</section>",
        *map(section, (*report.panels(), _events(report))),
    ]
    return document(title, parts)


def _header(overview: Overview) -> str:
    bar = ""
    if overview.budget:
        value = min(overview.used, overview.budget)
        bar = f'<progress max="{overview.budget}" value="{value}" aria-label="{overview.used_words}"></progress> '
    return f"<p><span class=state>{escape(overview.state_words)}</span></p><p>{bar}{overview.used_words}</p>"


def _figures(report: StudyReport, overview: Overview) -> Table:
    promise = report.promise("no chain's loss is larger than the certificate, with probability {sure}")
    rows = (*overview.facts, ("as of", f"{moment(overview.now)} UTC"))
    return Table("the study", ("quantity", "value"), rows, tuple(dict.fromkeys((promise, *overview.notes))))


def _chains(page: Page, overview: Overview) -> Table:
    shown = len(page.chains)
    notes = (f"the {shown:,} least known of {overview.chains:,} chains",) if shown < overview.chains else ()
    return Table.of("chains", page.chains, COLUMNS, notes)


def _chain(chain: Chain) -> str:
    line, shown = chain.line, len(chain.window.columns)
    part = f" The first {shown} of {line.states} states are shown." if shown < line.states else ""
    mark = f" — <span class=mark>{chain.unknown}</span>" if chain.unknown else ""
    return (
        f"<details><summary><bdi>{escape(line.label)}</bdi>: certificate {cell(line.certificate)}, "
        f"{line.transitions:,} transitions{mark}</summary>{_matrix(chain)}"
        f"<p class=note>{escape(chain.words)}{part}</p></details>"
    )


def _matrix(chain: Chain) -> str:
    """The matrix as a table without scripts. A cell shows its interval on hover and on focus."""
    window = chain.window
    head = "".join(f"<th scope=col><bdi>{escape(name)}</bdi></th>" for name in window.columns)
    body = "\n".join(_row(window, x, state, chain.sure) for x, state in enumerate(window.rows))
    name = escape(f"transition matrix of {chain.line.label}", quote=True)
    return (
        f'<div class=scroll tabindex=0 role=region aria-label="{name}"><table class=heat>'
        f"<thead><tr><th scope=col>from ╲ to</th>{head}<th scope=col>exits</th><th scope=col>π̂</th><td></td></tr>"
        f"</thead>\n<tbody>{body}</tbody></table></div>"
    )


def _row(window: Window, x: int, state: State, sure: str) -> str:
    mark = state.mark and f"; the row was {state.mark}"
    columns = (window.columns, window.matrix[x], window.lower[x], window.upper[x], window.transitions[x])
    cells = ""
    for name, value, lower, upper, seen in zip(*columns, strict=True):
        words = (
            f"{state.label} → {name}: {cell(value)}, between {cell(lower)} and {cell(upper)} {sure};"
            f" seen {seen:,} times in {state.exits:,} exits{mark}"
        )
        tip = f"<span class=tip><bdi>{escape(words)}</bdi></span>"
        cells += f'<td class=p tabindex=0 style="--p:{value:.3f}">{value:.2f}{tip}</td>'
    sign = state.sign and f" <span class=mark aria-hidden=true>{state.sign}</span>"
    return (
        f"<tr class={state.left}><th scope=row><bdi>{escape(state.label)}</bdi>{sign}</th>{cells}"
        f"<td class=number>{cell(state.exits)}</td><td class=number>{cell(state.stationary)}</td>"
        f"<td class=mark>{state.mark}</td></tr>"
    )


def _events(report: StudyReport) -> Table:
    rows = tuple((e.number, moment(e.time), e.kind, e.chain, e.detail) for e in reversed(report.events()))
    return Table("what happened, the latest first", ("number", "when (UTC)", "what", "chain", "detail"), rows)
