"""Why a study has stopped, and what lets it go on.

The aim, the budget, the deadline and chains that are set aside need no entry of their own: they follow from the state
and the clock. An entry says every other reason, which somebody found outside the fold.
"""

from typing import TYPE_CHECKING

from ..errors import NothingFree, StudyFinished
from . import budget
from .views import StopReason

if TYPE_CHECKING:
    from .state import State

__all__ = ["WAYS_ON", "check_asking", "check_telling", "finished", "nothing_free", "reason", "words"]

#: What lets a stopped study go on.
WAYS_ON = {
    StopReason.BUDGET: "extend it with a larger budget",
    StopReason.TARGET_LOSS: "extend it with a smaller target loss",
    StopReason.TARGET_LOSS_OF_THE_REST: "extend it with a smaller target loss, or take a chain up with take_up,",
    StopReason.TARGET_WIDTH: "extend it with a smaller target width",
    StopReason.TARGET_WIDTH_OF_THE_REST: "extend it with a smaller target width, or take a chain up with take_up,",
    StopReason.LIMIT: "extend it with a target width",
    StopReason.LIMIT_OF_THE_REST: "extend it with a target width, or take a chain up with take_up,",
    StopReason.WORST: "extend it with a target width",
    StopReason.DEADLINE: "extend it with a later deadline",
    StopReason.NO_BOUND: "no observation helps this study: make one without a target",
    StopReason.UNDECIDED: "take a chain up with take_up",
    StopReason.ALL_SET_ASIDE: "when a source works again, take its chain up with take_up",
    StopReason.REPEATED: "extend it with a budget or a deadline",
}
#: Kind of aim → the reason when every chain has reached it, or every chain but those that were set aside.
_REACHED = {
    "loss": (StopReason.TARGET_LOSS, StopReason.TARGET_LOSS_OF_THE_REST),
    "width": (StopReason.TARGET_WIDTH, StopReason.TARGET_WIDTH_OF_THE_REST),
    "limit": (StopReason.LIMIT, StopReason.LIMIT_OF_THE_REST),
}


def reason(state: "State", now: int | None = None) -> StopReason | None:
    """Why the study has stopped; None while it goes on. ``now``: None: whatever the deadline is."""
    if state.aim.is_about_bounds and (why := _aim_reached(state)) is not None:
        return why
    if state.budget is not None:
        left = budget.unspent(state)
        if left < state.costs[0] or (left < state.costs[1] and _next_cost(state) > left):
            return StopReason.BUDGET
    if now is not None and state.deadline is not None and now >= 1000 * state.deadline:
        return StopReason.DEADLINE
    if state.aside < len(state.chains):
        return None
    return StopReason.NO_BOUND if state.aim.targets and state.doubts else StopReason.ALL_SET_ASIDE


def _aim_reached(state: "State") -> StopReason | None:
    """The reason if every chain has reached the aim, or if none can."""
    if state.spoilt and (state.aim.behind > 0 or state.aim.missed == len(state.chains)):
        endless = state.budget is None and state.deadline is None
        return StopReason.REPEATED if state.aim.behind == 0 or endless else None
    kind = next(iter(state.aim.targets))
    if state.aim.behind > 0 or state.aim.is_unverified(len(state.chains)):
        return None
    if kind == "worst":
        doubted = any(state.chains[asked.chain].name in state.doubts for asked in state.questions)
        return StopReason.UNDECIDED if doubted or state.aim.unmet(state) > 0 else StopReason.WORST
    if state.aim.missed == len(state.chains):
        return None
    return _REACHED[kind][state.aim.missed > 0]


def _next_cost(state: "State") -> float:
    """What the next observation costs; nothing if nobody knows."""
    try:
        chain = None if state.order is None else state.order.first(state.observations)
    except Exception:  # of a user's rule: who asks is told
        return 0.0
    return 0.0 if chain is None else chain.cost


def words(state: "State", why: StopReason) -> str:
    """The reason in words: they promise nothing if paths repeat each other, and say what is left of the budget."""
    found = why.words_without_bound if state.spoilt else why.words
    left = budget.left_over(state)
    if why is StopReason.BUDGET and left:
        unit = "cost units" if state.settings.get("costs") is not None else "observations"
        found += f"; the {left:.6g} {unit} left do not pay for the next observation"
    return found


def finished(state: "State", why: StopReason) -> StudyFinished:
    """The error that says why a study has stopped, and what lets it go on."""
    return StudyFinished(f"the study is finished ({words(state, why)}); {WAYS_ON[why]} to go on", why)


def check_asking(state: "State", now: int) -> None:
    """Raises ``StudyFinished`` if the study has stopped."""
    why = reason(state, now)
    if why is not None:
        raise finished(state, why)


def check_telling(state: "State") -> None:
    """Raises ``StudyFinished`` if the study has stopped. One tell may come after the deadline, observed before it."""
    times = state.past.times
    why = reason(state, times[-1] if times else None)
    if why is not None:
        raise finished(state, why)


def nothing_free(state: "State", now: int, without: int = 0) -> Exception:
    """The error that says why no chain is free: the budget is used, or every chain is leased or set aside.

    ``without``: how many chains the caller leaves out.
    """
    number = len(state.leases) - len(budget.expired(state, now))
    if state.budget is not None and not number and state.aside < len(state.chains) and not without:
        return finished(state, StopReason.BUDGET)
    held = "1 lease is held by a worker" if number == 1 else f"{number} leases are held by workers"
    if number and budget.remaining(state, now) < state.costs[0]:
        held += ", and what is left of the budget is promised to them"
    return NothingFree(f"nothing is free: {held}, and {state.aside} are set aside")
