"""Tables of a live study: where it stands, and what is known of its chains."""

from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..study import Browser, EventKind
from ..study.settings import deadline_text
from .cells import finite, shown_index
from .tables import Table

if TYPE_CHECKING:
    from ..study import Study

#: A longer study shows the chains with the largest certificates.
MOST = 50
#: States of a chain whose matrix is shown entry by entry.
MOST_STATES = 1_000


def status(study: "Study") -> list[Table]:
    """Where a study stands, and its chains."""
    state = study.progress()
    rows = [
        ("chains", state.chains),
        ("observations", state.observations),
        (f"budget used ({state.unit})", _share(state.used, state.budget)),
        ("policy", state.policy),
        ("δ", state.delta),
        ("target loss", state.target_loss),
        ("deadline", None if state.deadline is None else deadline_text(state.deadline)),
        ("paths begun (first observations)", state.paths),
        ("leases held by workers", state.leases),
        ("lost observations", state.lost),
        ("set aside", state.aside),
        ("finished", "no" if state.stop_reason is None else state.stop_reason.words),
    ]
    notes = [*Browser(study).notes(), *set_aside(study)]
    if len(notes) > MOST:
        notes = [*notes[:MOST], f"and {len(notes) - MOST:,} more"]
    return [Table("study", ("quantity", "value"), tuple(rows), tuple(notes)), chains(study)]


def set_aside(study: "Study") -> list[str]:
    """Which chains are sampled no more, and why: a sentence each. Events are read only if there are any."""
    if not study.progress().aside:
        return []
    reasons: dict[str | None, str] = {}
    for event in study.events():
        if event.kind is EventKind.SET_ASIDE:
            reasons[event.chain] = event.detail["reason"]
        elif event.kind is EventKind.TAKEN_UP:
            reasons.pop(event.chain, None)
    return [f"chain {chain!r} was set aside: {reason}" for chain, reason in reasons.items()]


def chains(study: "Study") -> Table:
    """Every chain: how much it was sampled, and what is known of its loss."""
    certificate = study.certificate()
    total = max(1, study.progress().observations)
    names = sorted(certificate.loss, key=lambda name: -certificate.loss[name])[:MOST]
    names.sort(key=list(certificate.loss).index)
    rows = []
    for name in names:
        chain = study.chain(name)
        rows.append(
            (
                name,
                chain.states,
                chain.observations,
                chain.observations / total,
                chain.transitions,
                chain.paths,
                shown_index(chain),
                finite(certificate.loss[name]),
            )
        )
    columns = ("chain", "states", "observations", "share", "transitions", "paths", "index", "loss ≤")
    notes = [f"the bound on all losses at once holds with probability ≥ {1 - certificate.delta:g}"]
    if len(certificate.loss) > MOST:
        notes.append(f"the {MOST} chains with the largest bounds of {len(certificate.loss):,}")
    return Table("chains", columns, tuple(rows), (*notes, *certificate.notes))


def estimate(study: "Study", chain: str) -> Table:
    """The estimated matrix of a chain, entry by entry, with intervals."""
    found = study.estimate(chain)
    if len(found.states) > MOST_STATES:
        raise InputError(
            f"a table of every entry is for at most {MOST_STATES:,} states, and the chain {chain!r} has"
            f" {len(found.states):,}: 'chainscout serve' shows its matrix a part at a time"
        )
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
    note = f"all intervals of all chains hold at all times at once with probability ≥ {1 - found.delta:g}"
    return Table(chain, ("from", "to", "transitions", "estimate", "at least", "at most"), tuple(rows), (note,))


def _share(used: float, budget: float | None) -> Any:
    return f"{used:,.6g}" if budget is None else f"{used:,.6g} of {budget:,.6g}"
