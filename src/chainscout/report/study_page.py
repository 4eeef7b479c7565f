"""A study as HTML: the parts that the report and the live page have in common, and the report, which is one file."""

from html import escape
from typing import TYPE_CHECKING

from ..numerals import cell, lower, upper
from .charts import line_chart, notes
from .format import moment
from .html import document, facts, section
from .study_data import Chain, Drawings, Overview, State, StudyReport, Window
from .tables import Table

if TYPE_CHECKING:
    from ..study import Study

#: The most chains in the table, matrices, and states of a matrix.
MOST_LISTED = 200
MOST_DRAWN = 20
MOST_STATES = 30
BOUND = "The upper bound on each chain's loss, times its weight, as of the transition at which it was computed."
ALLOCATION = (
    "The same chains: share of all observations; η̂: the share that the paper's rule gives the chain with the estimates"
    " at that time; aim: the share that the policy tends to if these estimates are the truth."
)
ANSWERS = "The interval of each answer."


def study_page(study: "Study", title: str) -> str:
    """The page of a study as it is now."""
    report = StudyReport(study, title)
    overview = report.overview()
    worst = report.page(sort="certificate", descending=True, size=MOST_LISTED).chains
    some = (f"the {len(worst):,} least known of {overview.chains:,} chains",) if len(worst) < overview.chains else ()
    drawn = [report.chain(line.number, size=MOST_STATES) for line in worst[:MOST_DRAWN]]
    which = f"the {len(drawn)} least known of {overview.chains:,} chains" if overview.chains > len(drawn) else ""
    parts = [
        f"<header>{header(overview)}</header>",
        now(report, overview),
        over_time(report.drawings()),
        section(Table.of("chains", worst, report.columns(), some)),
        f"<section><h2>Transition matrices</h2><p class=note>{which}</p>",
        *map(_details, drawn),
        "</section>",
        panels(report),
        happened(report),
    ]
    return document(title, parts)


def header(overview: Overview) -> str:
    """What the study is called, how it stands, and how much of its budget is used."""
    bar = ""
    if overview.budget:
        value = min(overview.used, overview.budget)
        bar = f'<progress max="{overview.budget}" value="{value}" aria-label="budget used"></progress>'
    return (
        f"<h1 id=title><bdi>{escape(overview.title)}</bdi></h1>"
        f'<p class="state {overview.state}" id=state role=status>{escape(overview.state_words)}</p>'
        f"{bar}<p class=dim id=used>{overview.used_words}</p>"
    )


def now(report: StudyReport, overview: Overview) -> str:
    """The facts of the study, and what must be said beside them."""
    figures = facts((*overview.facts, ("as of", f"{moment(overview.now)} UTC")))
    said = notes(dict.fromkeys((report.look.promise(), *overview.notes)))
    return f"<section id=figures><h2>Now</h2>{figures}<div id=notes>{said}</div></section>"


def over_time(found: Drawings, live: bool = False) -> str:
    """The certificates, the shares and the answers over time."""
    shares, cards = (
        f"<div class=charts>{''.join(line_chart(drawing, live) for drawing in drawings)}</div>"
        for drawings in (found.shares, found.questions)
    )
    parts = [
        ("certificate", "Certificate over time", BOUND, line_chart(found.certificate, live)),
        ("share", "Allocation over time", ALLOCATION, shares),
        *([("cards", "Questions over time", ANSWERS, cards)] if found.questions else ()),
    ]
    return "".join(
        f"<section id={name}><h2>{title}</h2><p class=note>{words}</p>{drawn}</section>"
        for name, title, words, drawn in parts
    )


def panels(report: StudyReport, live: bool = False) -> str:
    """The panels that have something to show."""
    return "".join(section(panel, live) for panel in report.panels())


def happened(report: StudyReport) -> str:
    """The last events."""
    rows = tuple((e.number, moment(e.time), e.kind, e.chain, e.detail) for e in reversed(report.events()))
    return section(Table("what happened, the latest first", ("number", "when (UTC)", "what", "chain", "detail"), rows))


def _details(chain: Chain) -> str:
    line, shown = chain.line, len(chain.window.columns)
    part = f" The first {shown} of {line.states} states are shown." if shown < line.states else ""
    mark = f" — <span class=mark>{chain.unknown}</span>" if chain.unknown else ""
    return (
        f"<details><summary><bdi>{escape(line.label)}</bdi>: certificate {cell(line.certificate)} as of transition"
        f" {line.certified:,}, {line.transitions:,} transitions{mark}</summary>{matrix(chain)}"
        f"<p class=note>{escape(chain.words)}{part}</p></details>"
    )


def matrix(chain: Chain, live: str = "") -> str:
    """The matrix. A cell shows its interval on hover and on focus, by the style alone.

    ``live``: attributes that the script of the live page needs. It shows the intervals itself.
    """
    window = chain.window
    head = "".join(f'<th scope=col title="{escape(name)}"><bdi>{escape(name)}</bdi></th>' for name in window.columns)
    body = "\n".join(_row(window, x, state, chain.sure, bool(live)) for x, state in enumerate(window.rows))
    name = f'aria-label="{escape(f"transition matrix of {chain.line.label}")}"'
    region, table = ("", f"role=grid {name} {live}") if live else (f"tabindex=0 role=region {name}", "")
    return (
        f"<div class=scroll {region}><table class=heat {table}><thead><tr><th scope=col>from ╲ to</th>{head}"
        "<th scope=col class=number>exits</th><th scope=col class=number>π̂</th><th scope=col>known?</th></tr></thead>\n"
        f"<tbody>{body}</tbody></table></div>"
    )


def _row(window: Window, x: int, state: State, sure: str, live: bool) -> str:
    mark = state.mark and f"; the row was {state.mark}"
    columns = (window.columns, window.matrix[x], window.lower[x], window.upper[x], window.transitions[x])
    cells = ""
    for name, value, low, high, seen in zip(*columns, strict=True):
        words = escape(
            f"{state.label} → {name}: {cell(value)}, between {lower(low)} and {upper(high)} {sure};"
            f" seen {seen:,} times in {state.exits:,} exits{mark}"
        )
        kind = f'class="p p{round(10 * value)}"'
        if live:
            place = -1 if x or cells else 0  # the tab key reaches the first cell
            cells += f'<td {kind} role=gridcell tabindex={place} aria-label="{words}">{value:.2f}</td>'
        else:
            cells += f"<td {kind} tabindex=0>{value:.2f}<span class=tip><bdi>{words}</bdi></span></td>"
    label, sign = escape(state.label), state.sign and f" <span class=mark aria-hidden=true>{state.sign}</span>"
    return (
        f'<tr class={state.left}><th scope=row title="{label}"><bdi>{label}</bdi>{sign}</th>{cells}'
        f"<td class=number>{cell(state.exits)}</td><td class=number>{cell(state.stationary)}</td>"
        f"<td class=mark>{state.mark}</td></tr>"
    )
