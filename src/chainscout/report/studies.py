"""Tables of a live study: where it stands, and what is known of its chains."""

import math
from typing import TYPE_CHECKING, Any

from ..study import Browser, EventKind, StudyCertificate
from ..study.settings import deadline_text
from .cells import finite, shown_index
from .study_report import MOST_COMPUTED
from .tables import Table

if TYPE_CHECKING:
    from ..study import ChainLine, Progress, Study

#: A longer study shows the chains with the largest certificates.
MOST = 50
LARGEST = "with the largest bounds"


def status(study: "Study") -> list[Table]:
    """Where a study stands, and its chains."""
    state = study.progress()
    rows = [
        ("chains", state.chains),
        ("observations", state.observations),
        ("budget used", _share(state.used, state.budget)),
        ("policy", state.policy),
        ("δ", state.delta),
        ("target loss", state.target_loss),
        ("deadline", None if state.deadline is None else deadline_text(state.deadline)),
        ("certificate", state.method),
        ("paths begun (first observations)", state.paths),
        ("leases held by workers", state.leases),
        ("lost observations", state.lost),
        ("set aside", state.aside),
        ("finished", "no" if state.stop_reason is None else state.stop_reason.words),
    ]
    notes = set_aside(study)
    if len(notes) > MOST:
        notes = [*notes[:MOST], f"and {len(notes) - MOST:,} more"]
    return [Table("study", ("quantity", "value"), tuple(rows), tuple(notes)), chains(study)]


def set_aside(study: "Study") -> list[str]:
    """Which chains are sampled no more, and why: a sentence each. Events are read only if there are any."""
    return [f"chain {chain!r} was set aside: {reason}" for chain, reason in _reasons_aside(study).items()]


def _reasons_aside(study: "Study") -> dict[str | None, str]:
    """The chains that are set aside, and why."""
    reasons: dict[str | None, str] = {}
    if study.progress().aside:
        for event in study.events():
            if event.kind is EventKind.SET_ASIDE:
                reasons[event.chain] = event.detail["reason"]
            elif event.kind is EventKind.TAKEN_UP:
                reasons.pop(event.chain, None)
    return reasons


def chains(study: "Study") -> Table:
    """Every chain: how much it was sampled, and what is known of its loss. Of very many, those that are least known."""
    state, browser = study.progress(), Browser(study)
    stored = state.target_loss is not None
    lines, order = _least_known(browser, state)
    rows = [
        (
            line.name,
            line.size,
            line.observations,
            line.observations / max(1, state.observations),
            line.transitions,
            line.paths,
            shown_index(line),
            finite(line.certificate),
            *((line.certified,) if stored else ()),
        )
        for line in lines
    ]
    columns: tuple[str, ...] = ("chain", "states", "observations", "share", "transitions", "paths", "index", "loss ≤")
    notes = [f"the bound on all losses at once holds with probability ≥ {1 - state.delta:g}"]
    if stored:
        columns += ("as of transition",)
        notes.append("bounds are stored, and computed anew when a chain has 1 % more transitions")
    if len(lines) < state.chains:
        notes.append(f"the {MOST} chains {order} of {state.chains:,}")
    if state.chains <= MOST_COMPUTED:
        notes.append(study.certificate().in_words())
    aside = tuple(str(name) for name in _reasons_aside(study))
    whole = StudyCertificate({}, state.delta, state.method, state.lost, aside, study.repeated_paths())
    return Table("chains", columns, tuple(rows), (*notes, *whole.notes))


def _least_known(browser: Browser, state: "Progress") -> "tuple[list[ChainLine], str]":
    """The chains that are shown, by number, and the words for which they are. No more are computed than there must."""
    if state.chains <= MOST:
        return browser.page(limit=MOST)[1], ""
    if state.target_loss is not None:
        return sorted(browser.page(order="certificate", descending=True, limit=MOST)[1], key=_number), LARGEST
    if state.chains <= MOST_COMPUTED:
        lines = browser.page(limit=MOST_COMPUTED)[1]
        return sorted(sorted(lines, key=lambda line: -line.certificate)[:MOST], key=_number), LARGEST
    # Such a study stores no certificates: those of the chains shown are computed, and no others.
    found = browser.page(order="index", descending=True, limit=MOST)[1]
    return sorted(found, key=_number), "with the largest indices"


def _number(line: "ChainLine") -> int:
    return line.number


def plan(study: "Study", target_loss: float | None, most: int | None = None) -> Table:
    """How many more observations a loss needs, and of which chains. ``most``: only so many chains, the neediest."""
    found = study.plan(target_loss)
    names = sorted(
        found.more, key=lambda name: -found.more[name] if found.more[name] == found.more[name] else -math.inf
    )
    told = study.allocation()
    rows = tuple((name, told[name], _whole(found.more[name])) for name in names[:most])
    notes = [
        str(found),
        "a prediction from the counts so far, no bound: each row of a chain keeps its share and its estimate",
    ]
    if found.cost != found.total:
        notes.append(f"they cost about {found.cost:,.6g}")
    if len(rows) < len(names):
        notes.append(f"{len(names) - len(rows):,} chains that need fewer are not shown")
    return Table("how many more", ("chain", "observations", "more observations"), rows, tuple(notes))


def _whole(number: float) -> int | None:
    return int(number) if math.isfinite(number) else None


def estimate(study: "Study", chain: str) -> Table:
    """The estimated matrix of a chain, entry by entry, with intervals."""
    found = study.estimate(chain)
    rows = [
        (
            found.states[x],
            found.states[y],
            int(found.transitions[x, y]),
            float(found.matrix[x, y]),
            float(found.lower[x, y]),
            float(found.upper[x, y]),
        )
        for x in range(len(found.states))
        for y in range(len(found.states))
    ]
    browser = Browser(study)
    notes = (
        f"all intervals of all chains hold at all times at once with probability ≥ {1 - found.delta:g}",
        browser.certificate([browser.number_of(chain)]).in_words(),
    )
    return Table(chain, ("from", "to", "transitions", "estimate", "at least", "at most"), tuple(rows), notes)


def _share(used: float, budget: float | None) -> Any:
    return f"{used:,.6g}" if budget is None else f"{used:,.6g} of {budget:,.6g}"
