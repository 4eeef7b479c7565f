"""The sentences of checks: what was found, and what it can mean."""

from collections.abc import Sequence

from ..numerals import bound
from ._check import WORDS, Check, Kind, Place, denied, quoted
from ._numbering import CONTEXTS

#: The possible meanings of a rejection. Every check assumes both: Markov, and no change.
MEANINGS = {
    Kind.ORDER: "The process has memory beyond its state: look at pairs of states (paths.lifted(2)), or put what is "
    "missing into the state.",
    Kind.CHANGE: "The process changes with time, or it has memory beyond its state, which sets off this check too: if "
    "order rejects as well, look at order first.",
    Kind.SAMENESS: "They are not copies of one process, or the process changes with time or has memory beyond "
    "its state, which can set off this check too.",
    Kind.REFERENCE: "The matrix is not this process's, or the process has memory beyond its state or changes with "
    "time.",
}

#: The assumption that a check did not find broken, in words.
ASSUMED = {
    Kind.ORDER: "the next state depends on the state alone",
    Kind.CHANGE: "the law does not change with time",
    Kind.REFERENCE: "the law is that of the known matrix",
}


NO_COMMON_ORDER = (
    "The checks of all chains together compare their values of this moment only, because their data have no common "
    "order of issue."
)


def given_up(number: int) -> str:
    """The reason why no check goes past a lost draw."""
    return f"draw {number:,} was given up after a later one was known, and no check may go past it"


def pending(number: int) -> str:
    """The reason why no check goes past a pending draw now."""
    return f"draw {number:,} is pending"


def why_waiting(chain: str | None, number: int, why: str, *, together: bool = False) -> str:
    """The sentence that transitions wait: of a chain, of the only chain without a name, or of all chains together."""
    what = "1 transition" if number == 1 else f"{number:,} transitions"
    if together:
        return f"The checks of all chains together end before {what}: {why}."
    owner = "" if chain is None else f" of {chain}"
    return f"{what}{owner} wait{'s' * (number == 1)}: {why}."


def unread(number: int) -> str:
    """The sentence that the checks are of an earlier moment."""
    return f"Of {number:,} transitions nothing is said: they came since this was kept, or waited then."


def skipped(number: int) -> str:
    """The sentence that the checks went past draws without values."""
    what = "1 draw without a value was skipped" if number == 1 else f"{number:,} draws without values were skipped"
    return f"{what}: the levels assume that no interruption depended on the value that it cost."


def left_out(checks: Sequence[Check]) -> list[str]:
    """The sentence that transitions were left out of a check, if any were."""
    number = max((check.left_out for check in checks), default=0)
    what = f"{number:,} transitions were left out of a check: more than {CONTEXTS} labels occur in a state."
    return [what] if number else []


def not_guaranteed(chain: str | None, why: str) -> str:
    """The sentence that the order of a chain's data is not known."""
    owner = "" if chain is None else f" of {chain}"
    return f"The checks{owner} are not guaranteed, because the order of issue is not known: {why}"


def sentence(
    chain: str | None,
    kind: Kind,
    by: str,
    level: float,
    delta: float,
    where: Sequence[Place],
    unordered: bool,
    together: bool = False,
) -> str:
    """The sentence of a check. It rejects if its level is at most δ."""
    owner = "all chains together" if together else "the chain" if chain is None else chain
    if unordered:
        return f"Of {owner}, {kind.value} ({by}) has no guarantee: the order of issue is not known."
    if level > delta:
        assumed = ASSUMED.get(kind, f"the law is the same for every {WORDS.get(by, by)}")
        return f"Of {owner}, there is no evidence against this: {assumed}. That proves nothing."
    if together:
        return f"Of all chains together, {denied(kind, by)} (level {bound(level)}). {MEANINGS[kind]}"
    found = _found(kind, by, where[0]) if where else denied(kind, by)
    return f"Of {owner}, {found} (level {bound(level)}). {MEANINGS[kind]}"


def _found(kind: Kind, by: str, place: Place) -> str:
    state = quoted(place.state)
    if kind is Kind.ORDER:
        most = "" if place.label is None else f", most clearly when that was {quoted(place.label)}"
        return f"after {state}, the next state depends on what came before {state}{most}"
    if kind is Kind.CHANGE:
        return (
            f"the law of the steps from {state} changes: {quoted(place.outcome)} follows {place.before:.0%} of the time"
            f" before draw {place.moment}, and {place.after:.0%} from then on (most likely; the evidence lies between"
            f" draws {place.first} and {place.last})"
        )
    if kind is Kind.REFERENCE:
        return f"the steps from {state} do not follow the known matrix"
    if by == "other data":
        return f"the steps from {state} follow another law than in the other data"
    which = {"worker": f"worker {place.label}", "path": f"path {place.label}", "age": f"{place.label} of a path"}
    differs = "" if place.label is None else f", most clearly for {which.get(by, by)}"
    return f"the law of the steps from {state} is not the same for every {WORDS[by]}{differs}"
