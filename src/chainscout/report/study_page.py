"""A study as one self-contained HTML file."""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from . import charts, heatmap
from .cells import cell, moment
from .html import document, section
from .study_report import StudyReport
from .tables import Table
from .views import Card, Chain, Curve, Curves, Overview, Page

if TYPE_CHECKING:
    from ..study import Study

#: Chains in the table, chains whose matrices are drawn, and states of a matrix.
MOST_LISTED = 200
MOST_DRAWN = 20
MOST_STATES = 30

STYLE = """
h3 { font-size: 1rem; margin: 1.4rem 0 .2rem; }
details { border: 1px solid var(--line); border-radius: .4rem; padding: .5rem .9rem; margin: .6rem 0; }
summary { cursor: pointer; }
.state { display: inline-block; border: 2px solid currentColor; border-radius: 1rem; padding: .1rem .8rem; }
progress { width: 100%; height: .9rem; }
"""


def study_page(study: "Study", title: str) -> str:
    """The page of a study as it is now."""
    report = StudyReport(study, title)
    overview = report.overview()
    worst = report.page(sort="certificate", descending=True, size=MOST_LISTED)
    curves = report.curves()
    drawn = [report.chain(line.number, size=MOST_STATES) for line in worst.chains[:MOST_DRAWN]]
    parts = [
        f"<h1><bdi>{escape(title)}</bdi></h1>",
        _header(overview),
        section(_figures(overview)),
        *_charts(curves, overview),
        *_cards(report.cards()),
        section(_chains(worst, overview)),
        "<section><h2>Transition matrices</h2>",
        f"<p class=note>{_which(len(drawn), overview.chains)}</p>" if overview.chains > len(drawn) else "",
        *(_chain(chain) for chain in drawn),
        "</section>",
        *map(_panel, report.panels()),
        section(_events(report)),
    ]
    return document(title, parts, STYLE + charts.STYLE + heatmap.STYLE)


def _panel(table: Table) -> str:
    """A panel, with what is drawn of it."""
    drawing = table.drawing
    if drawing is None:
        return section(table)
    lines = [charts.Series(*line) for line in zip(drawing.names, drawing.x, drawing.y, strict=True)]
    chart = charts.line_chart(
        drawing.title, drawing.across, lines, logarithmic=True, target=drawing.level, level=drawing.level_name
    )
    return section(table) + chart


def _header(overview: Overview) -> str:
    words = {
        "empty": "nothing observed yet",
        "running": "running",
        "finished": f"finished: {overview.stopped}",
    }[overview.state]
    bar = ""
    if overview.budget:
        text = f"{cell(overview.used)} of {cell(overview.budget)} {overview.unit} used"
        bar = (
            f'<p><progress max="{overview.budget}" value="{min(overview.used, overview.budget)}" aria-label="{text}">'
            f"</progress> {text}</p>"
        )
    return f"<p><span class=state>{escape(words)}</span></p>{bar}"


def _figures(overview: Overview) -> Table:
    promise = f"no chain's loss is larger than the certificate, with probability {1 - overview.delta:g}"
    rows = (*overview.facts, ("as of", f"{moment(overview.now)} UTC"))
    return Table("the study", ("quantity", "value"), rows, (promise, *overview.notes))


def _charts(curves: Curves, overview: Overview) -> list[str]:
    across = "observations of the whole study"
    bounds = [charts.Series(c.label, c.observations, c.certificate) for c in curves.curves]
    some = f", the {len(curves.curves)} least known chains" if overview.chains > len(curves.curves) else ""
    return [
        "<section><h2>Over time</h2>",
        charts.line_chart(f"Certificate{some}", across, bounds, logarithmic=True, target=curves.target_loss),
        f"<h3>Allocation{some}</h3>",
        "<p class=note>Share of all observations; η̂: the share that the estimates of the moment give the chain by the"
        " paper's rule; aim: the share that the policy tends to if the estimates of now are the truth.</p>",
        f"<div class=charts>{''.join(_allocation(curve) for curve in curves.curves)}</div></section>",
    ]


def _cards(cards: Sequence[Card]) -> list[str]:
    """A card a question: its interval over time, what it is to become, and what it waits for."""
    if not cards:
        return []
    return ["<section><h2>Questions over time</h2><div class=charts>", *map(_card, cards), "</div></section>"]


def _card(card: Card) -> str:
    title = f"{card.chain}: {card.question}"
    late = [y for x, y in zip(card.observations, card.uppers, strict=True) if x >= card.observations[-1] / 20]
    top = 1.15 * max([*late, card.limit or 0.0]) if late and max(late) > 0 else None
    ends = [("at most", card.uppers), ("estimate", card.estimates), ("at least", card.lowers)]
    lines = [charts.Series(name, card.observations, values) for name, values in ends if values]
    drawn = charts.line_chart(
        title, "observations of the whole study", lines, top=top, small=True, target=card.limit, level="limit"
    )
    words = [answered_words(card), *card.notes]
    return f"<div>{drawn}{''.join(f'<p class=note>{escape(one)}</p>' for one in words)}</div>"


def answered_words(card: Card) -> str:
    """How far the answer is, in a sentence."""
    width = "infinitely wide" if card.width is None else f"{cell(card.width)} wide"
    wanted = "" if card.target_width is None else f", and is to be {card.target_width:g} wide"
    sure = f"with probability {1 - card.delta:.6g}"
    return f"{'Done' if card.met else 'Not done'}: {width} {sure}{wanted}"


def _allocation(curve: Curve) -> str:
    """One chain's share, and what it is held against."""
    lines = []
    aim = [curve.aim] * len(curve.observations)
    for name, values in (("share", curve.share), ("η̂", curve.plug_in), ("aim", aim)):
        known = [(x, y) for x, y in zip(curve.observations, values, strict=True) if y is not None]
        if known:
            lines.append(charts.Series(name, [x for x, _ in known], [y for _, y in known]))
    # The first observations, when a single chain has them all, do not set the scale.
    end = curve.observations[-1] if curve.observations else 0
    late = [y for line in lines for x, y in zip(line.x, line.y, strict=True) if y is not None and x >= end / 20]
    top = min(1.0, 1.15 * max(late, default=1.0)) or None
    return charts.line_chart(curve.label, "observations of the whole study", lines, top=top, small=True)


COLUMNS = {
    "chain": "label", "states": "states", "observations": "observations", "share": "share", "η̂": "plug_in",
    "aim": "aim", "certificate": "certificate", "as of transition": "certified", "index": "index", "leases": "leases",
    "set aside": "aside",
}  # fmt: skip


def _chains(page: Page, overview: Overview) -> Table:
    shown = len(page.chains)
    notes = (f"the {shown:,} least known of {overview.chains:,} chains",) if shown < overview.chains else ()
    return Table.of("chains", page.chains, COLUMNS, notes)


def _chain(chain: Chain) -> str:
    line, window = chain.line, chain.window
    shown = len(window.columns)
    counted = ((chain.never, "never"), (chain.rarely, "rarely"))
    part = f"; the first {shown} of {line.states} states are shown" if shown < line.states else ""
    unknown = [f"{number:,} of {line.states:,} rows {what} left" for number, what in counted if number]
    mark = f" — <span class=mark>{', '.join(unknown)}</span>" if unknown else ""
    table = heatmap.heat_map(f"transition matrix of {line.label}", window, chain.delta)
    return (
        f"<details><summary><bdi>{escape(line.label)}</bdi>: certificate {cell(line.certificate)}, "
        f"{line.transitions:,} transitions{mark}</summary>{table}<p class=note>{escape(chain.words)} Estimated"
        f" probabilities; hover or focus a cell for its interval, which holds at all times at once with probability"
        f" {1 - chain.delta:g}{part}. A row is rarely left (◐) while one of its intervals is wider"
        f" than ½; one that was never left (○) is not known at all.</p></details>"
    )


def _which(number: int, chains: int) -> str:
    return f"the {number} least known of {chains:,} chains"


def _events(report: StudyReport) -> Table:
    rows = tuple((e.number, moment(e.time), e.kind, e.chain, e.detail) for e in reversed(report.events()))
    return Table("what happened, the latest first", ("number", "when (UTC)", "what", "chain", "detail"), rows)
