"""The arithmetic of the budget: the amounts that are spent, promised to leases and left, and what they pay for."""

import math
from typing import Any

from ..counts import MOST_TRANSITIONS
from ..errors import InputError, NothingFree, OverBudget
from ..store import StudyRecord, Transaction
from ..validation import real_number, whole_number

#: Costs and their sums are rounded: the cost itself, the used amount, and the promised amount when a draw is promised
#: and when it is told or given back. This is the largest number of roundings per draw. A budget that is exceeded by no
#: more than these errors, and by no more than a small share of the cheapest observation, counts as not exceeded.
ROUNDINGS, MOST_SLACK = 4, 1e-3
#: A sentence names at most this many leases, because there can be as many as chains.
MOST_NAMED = 3


def checked_budget(value: Any, priced: bool) -> float | None:
    """A budget: a number of observations, or cost units if observations are ``priced``; None: unlimited."""
    if value is None:
        return None
    if priced:
        return real_number(value, "budget", above=0.0, meaning="in cost units")
    return whole_number(value, "budget", meaning="observations", most=MOST_TRANSITIONS)


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


def horizon(study: StudyRecord) -> int | None:
    """The largest number of observations that the budget allows; None if there is no budget."""
    return None if study.budget is None else max(1, math.floor(study.budget / study.least_cost))


def _slack(study: StudyRecord, budget: float) -> float:
    """The largest error of rounded sums. Observations without costs are counted exactly."""
    if study.least_cost == 1.0 == study.largest_cost:
        return 0.0
    return min(ROUNDINGS * (study.issues + 1) * math.ulp(budget), MOST_SLACK * study.least_cost)


def unspent(study: StudyRecord) -> float:
    """The part of the budget that is not spent, promised or not."""
    budget = study.budget
    return math.inf if budget is None else budget + _slack(study, budget) - study.used


def left_over(study: StudyRecord) -> float:
    """The part of the budget that is not spent, beyond rounding; 0 without a budget."""
    left = 0.0 if study.budget is None else study.budget - study.used
    return left if left > _slack(study, study.budget or 0.0) else 0.0


def promised(transaction: Transaction) -> float:
    """The amount that only lease holders can spend. An expired lease has no promise: its holder is refused."""
    study = transaction.study
    if study.leases == 0:
        return study.reserved
    ended = transaction.held(until=transaction.now)
    return study.reserved - sum(path.promised * transaction.numbered(path.chain).cost for path in ended)


def remaining(transaction: Transaction) -> float:
    """The amount that can be spent without a lease: the unspent part minus the promised part."""
    study = transaction.study
    if study.budget is None:
        return math.inf
    return unspent(study) - (promised(transaction) if study.leases else study.reserved)


def check_price(transaction: Transaction, price: float, what: str) -> None:
    """Raises an error if the price exceeds the rest of the budget, or touches the part promised to leases."""
    if price <= remaining(transaction):
        return
    left = f"{what} costs %g more than is left of the budget"
    over = price - unspent(transaction.study)
    if over > 0:
        raise OverBudget(f"{left % over}: nothing was changed")
    over = price - remaining(transaction)
    raise NothingFree(f"{left % over}, less what is promised to leases: nothing was changed")


def check_lowered(transaction: Transaction, budget: float) -> None:
    """Raises ``InputError`` for a new budget that is already used or promised to leases."""
    study, reserved = transaction.study, promised(transaction)
    if budget + _slack(study, budget) >= study.used + reserved:
        return
    used = f"{study.used:g} of the budget are used"
    if reserved > 0:
        leases = [
            f"{path.worker!r} on {transaction.numbered(path.chain).name!r}"
            for path in transaction.held()
            if path.expires is not None and path.expires > transaction.now
        ]
        more = f" and {len(leases) - MOST_NAMED} more" if len(leases) > MOST_NAMED else ""
        used += f" and {reserved:g} are promised to leases ({', '.join(leases[:MOST_NAMED])}{more})"
    raise InputError(f"{used}: it cannot become {budget:g}")
