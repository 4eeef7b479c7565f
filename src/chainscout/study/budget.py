"""The arithmetic of the budget: what is spent, promised to leases and left, and what that pays for."""

import math
from typing import TYPE_CHECKING, Any

from ..counts import MOST_TRANSITIONS
from ..errors import InputError, NothingFree, OverBudget
from ..validation import real_number, whole_number

if TYPE_CHECKING:
    from .state import State

__all__ = [
    "MOST_NAMED", "check_affordable", "check_lowered", "check_price", "checked_budget", "expired", "left_over",
    "promised", "remaining", "unspent",
]  # fmt: skip

#: Costs and their sums are rounded: the cost itself, the used amount, and the promised amount when a draw is promised
#: and when it is told or given back. This is the largest number of roundings per draw. A budget that is exceeded by no
#: more than these errors, and by no more than a small share of the cheapest observation, counts as not exceeded.
_ROUNDINGS, _MOST_SLACK = 4, 1e-3
#: A sentence names at most this many leases, because there can be as many as chains.
MOST_NAMED = 3


def checked_budget(value: Any, *, priced: bool) -> float | None:
    """A budget: a number of observations, or cost units if observations are ``priced``; None: unlimited."""
    if value is None:
        return None
    if priced:
        return real_number(value, "budget", above=0.0, meaning="in cost units")
    return whole_number(value, "budget", meaning="observations", most=MOST_TRANSITIONS)


def expired(state: "State", now: int) -> list[int]:
    """The leases whose time is over, in the order in which they ended."""
    ended = [lease for lease in state.leases.values() if lease.expires <= now]
    return [lease.number for lease in sorted(ended, key=lambda lease: (lease.expires, lease.chain, lease.path))]


def _slack(state: "State", budget: float) -> float:
    """The largest error of rounded sums. Observations without costs are counted exactly."""
    if state.costs == (1.0, 1.0):
        return 0.0
    return min(_ROUNDINGS * (state.observations + state.grants + 1) * math.ulp(budget), _MOST_SLACK * state.costs[0])


def unspent(state: "State") -> float:
    """The part of the budget that is not spent, promised or not."""
    budget = state.budget
    return math.inf if budget is None else budget + _slack(state, budget) - state.used


def left_over(state: "State") -> float:
    """The part of the budget that is not spent, beyond rounding; 0 without a budget."""
    left = 0.0 if state.budget is None else state.budget - state.used
    return left if left > _slack(state, state.budget or 0.0) else 0.0


def promised(state: "State", now: int) -> float:
    """What only the holders of leases can spend. An expired lease has no promise any more."""
    if not state.leases:
        return 0.0
    ended = [state.leases[number] for number in expired(state, now)]
    if len(ended) == len(state.leases):
        return 0.0
    return state.reserved - sum(lease.steps * state.chains[lease.chain].cost for lease in ended)


def remaining(state: "State", now: int) -> float:
    """What can be spent without a lease: the unspent part without the promised part."""
    return math.inf if state.budget is None else unspent(state) - promised(state, now)


def check_affordable(budget: float | None, least: float) -> None:
    """Raises ``InputError`` for a budget that pays for no observation at the price ``least``, or for too many."""
    if budget is None:
        return
    if budget < least:
        raise InputError(f"the budget {budget:g} does not pay for one observation, which costs {least:g}")
    if budget / least > MOST_TRANSITIONS:
        raise InputError(
            f"the budget {budget:g} pays for {budget / least:g} observations at {least:g} each, and at most"
            f" {MOST_TRANSITIONS} can be counted"
        )


def check_price(state: "State", now: int, price: float, what: str) -> None:
    """Raises an error if the price exceeds the rest of the budget, or touches the part promised to leases."""
    if state.budget is None or price <= (free := remaining(state, now)):
        return
    left = f"{what} costs %g more than is left of the budget"
    over = price - unspent(state)
    if over > 0:
        raise OverBudget(f"{left % over}: nothing was changed")
    raise NothingFree(f"{left % (price - free)}, less what is promised to leases: nothing was changed")


def check_lowered(state: "State", now: int, budget: float) -> None:
    """Raises ``InputError`` for a new budget that is already used or promised to leases."""
    reserved = promised(state, now)
    if budget + _slack(state, budget) >= state.used + reserved:
        return
    used = f"{state.used:g} of the budget are used"
    if reserved > 0:
        leases = [
            f"{state.walkers[lease.worker].name!r} on {state.chains[lease.chain].name!r}"
            for lease in state.leases.values()
            if lease.expires > now
        ]
        more = f" and {len(leases) - MOST_NAMED} more" if len(leases) > MOST_NAMED else ""
        used += f" and {reserved:g} are promised to leases ({', '.join(leases[:MOST_NAMED])}{more})"
    raise InputError(f"{used}: it cannot become {budget:g}")
