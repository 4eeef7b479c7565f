"""Tables of a live study: where it stands, and what is known of its chains."""

import math
from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from ..counts import never_left
from ..errors import InputError
from ..numerals import Lower, Upper
from ..study import Look, Study
from ..study.planning import StudyPlan
from .format import finite
from .study_data import Overview, StudyReport
from .study_data import facts as study_facts
from .tables import Table

#: The most chains in the table: those with the largest certificates.
MOST = 50
#: Heading → field of a chain's line; the bounds follow.
COLUMNS = {
    "chain": "name", "states": "states", "observations": "observations", "share": "share", "transitions": "transitions",
    "paths": "paths", "index": "index",
}  # fmt: skip
#: The most states of a chain whose matrix is shown entry by entry.
MOST_STATES = 1_000


def status(study: Study) -> list[Table]:
    """Where a study stands, and its chains."""
    report = StudyReport(study, "")
    overview = report.overview()
    notes = [*report.look.notes, *set_aside(report.look)]
    if len(notes) > MOST:
        notes = [*notes[:MOST], f"and {len(notes) - MOST:,} more"]
    facts = Table("study", ("quantity", "value"), tuple(study_facts(overview)), tuple(notes))
    return [facts, _chains(report, overview), *report.panels()]


def set_aside(look: Look) -> list[str]:
    """A sentence for each chain that was set aside, with the stored reason."""
    return [f"chain {chain!r} was set aside: {why.reason}" for chain, why in look.aside.items()]


def _chains(report: StudyReport, overview: Overview) -> Table:
    """The chains with their observations and the bounds on their losses. Of many chains, the least known ones."""
    page = report.page(sort="certificate", descending=True, size=MOST)
    notes = [report.look.promise()]
    if page.total > MOST:
        notes.append(f"the {MOST} chains with the largest bounds of {page.total:,}")
    lines = sorted(page.chains, key=attrgetter("number"))
    notes += [
        f"{line.name}: {never_left(line.unknown_rows, line.states)}: nothing is known of them"
        for line in lines
        if line.unknown_rows and line.states <= MOST_STATES
    ]
    weighted = {"weighted loss ≤": "certificate"} if overview.weighted else {}
    columns = {**COLUMNS, **weighted, "loss ≤": "loss", "as of transition": "certified"}
    return Table.of("chains", lines, columns, tuple(dict.fromkeys((*notes, *overview.notes))))


def plan(
    study: Study, target_loss: float | None = None, target_width: float | None = None, most: int | None = None
) -> Table:
    """How many more observations a loss or the questions need, and of which chains. ``most``: the most rows."""
    found = study.plan(target_loss, target_width=target_width)
    told = study.allocation()
    needs: Mapping[Any, float]
    if isinstance(found, StudyPlan):
        what, kept, by, needs = "chains", "its estimate", "counts", {(name,): more for name, more in found.more.items()}
    else:
        what, kept, by, needs = "questions", "its frequencies", "cards", found.questions
    ordered = sorted(needs, key=lambda key: -math.inf if math.isnan(needs[key]) else -needs[key])
    rows = tuple((*key, told[key[0]], finite(needs[key])) for key in ordered[:most])
    notes = [str(found), f"a prediction from the {by} so far, no bound: each row of a chain keeps its share and {kept}"]
    if study.progress().unit == "cost units":
        notes.append(f"they cost about {found.cost:,.6g}")
    if len(rows) < len(ordered):
        notes.append(f"{len(ordered) - len(rows):,} {what} that need fewer are not shown")
    columns = ("chain", *(("question",) if what == "questions" else ()), "observations", "more observations")
    return Table("how many more", columns, rows, tuple(notes))


def estimate(study: Study, chain: str) -> Table:
    """The estimated matrix of a chain, entry by entry, with intervals."""
    from ..study.export import entries  # here, because it loads slowly

    found = study.estimate(chain)
    if len(found.states) > MOST_STATES:
        raise InputError(
            f"a table of every entry is for at most {MOST_STATES:,} states, and the chain {chain!r} has"
            f" {len(found.states):,}: 'chainscout serve' shows its matrix a part at a time"
        )
    rows = tuple((*entry, Lower(low), Upper(high)) for row in entries(found) for *entry, low, high in row)
    report = StudyReport(study, "")
    notes = (
        report.promise("all intervals of all chains hold at all times at once with probability ≥ {sure}"),
        report.words(report.look.chain(chain)),
    )
    return Table(chain, ("from", "to", "transitions", "estimate", "at least", "at most"), rows, notes, keys=2)
