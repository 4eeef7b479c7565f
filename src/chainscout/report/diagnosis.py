"""Tables of what the checks of the Markov assumption say."""

from typing import TYPE_CHECKING

from .cells import finite
from .tables import Table

if TYPE_CHECKING:
    from ..diagnostics import Check, Diagnosis

#: More checks are shown as those with the smallest levels.
MOST = 50


def tables(found: "Diagnosis") -> list[Table]:
    """One row a check, and what it all says."""
    rows = sorted(found, key=lambda check: check.level)[:MOST] if len(found) > MOST else list(found)
    share = f"each kind of check rejects at a level of at most {found.delta:g}/{found.kinds}"
    notes = [*found.lines(), f"{share}; then any of them is ever wrong with probability at most {found.delta:g}"]
    if len(found) > MOST:
        notes.append(f"the {MOST} checks with the smallest levels of {len(found):,}")
    columns = ("chain", "check", "by", "transitions", "e-value", "largest", "level", "most evidence in")
    return [Table("checks", columns, tuple(_row(check) for check in rows), tuple(notes))]


def _row(check: "Check") -> tuple[object, ...]:
    chain = "all together" if check.chain is None else check.chain
    places = ", ".join(str(place.state) for place in check.where[:3])
    values = (finite(check.e_value), finite(check.largest), check.level)
    return (chain, check.kind.value, check.by, check.cards, *values, places or None)
