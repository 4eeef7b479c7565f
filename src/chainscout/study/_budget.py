"""The budget's arithmetic: what is spent, what is promised to leases, what is left, and what that pays for."""

import math
from typing import Any

from ..counts import MOST_TRANSITIONS
from ..errors import InputError, NothingFree, OverBudget
from ..store import StudyRecord, Transaction
from ..validation import real_number, whole_number

#: Costs and their sums are rounded, so what is used and promised is off by at most so many roundings a draw: of a cost
#: itself, of what is used, and of what is promised when a draw is promised and when it is told or given back. A budget
#: that is missed by no more than that, and by no more than a share of the cheapest observation, is not missed.
ROUNDINGS, MOST_SLACK = 4, 1e-3
#: A sentence names at most this many leases, because there can be as many as chains.
MOST_NAMED = 3


def checked_budget(value: Any, priced: bool) -> float | None:
    """A budget: whole observations, or cost units where observations are ``priced``; None for no end."""
    if value is None:
        return None
    if priced:
        return real_number(value, "budget", above=0.0, meaning="in cost units")
    return whole_number(value, "budget", meaning="observations", most=MOST_TRANSITIONS)


def check_affordable(budget: float | None, least: float) -> None:
    """Refuses a budget that pays for no observation at the price ``least``, or for more than can be counted."""
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
    """The most observations that the budget allows; None if there is no budget."""
    return None if study.budget is None else max(1, math.floor(study.budget / study.least_cost))


def _slack(study: StudyRecord, budget: float) -> float:
    """What rounded sums may be off by; whole observations are counted exactly."""
    if study.least_cost == 1.0 == study.largest_cost:
        return 0.0
    return min(ROUNDINGS * (study.issues + 1) * math.ulp(budget), MOST_SLACK * study.least_cost)


def unspent(study: StudyRecord) -> float:
    """What is left of the budget, promised or not."""
    budget = study.budget
    return math.inf if budget is None else budget + _slack(study, budget) - study.used


def promised(transaction: Transaction) -> float:
    """What only the holders of leases can spend. An expired lease is promised nothing: its holder is refused."""
    study = transaction.study
    if study.leases == 0:
        return study.reserved
    ended = transaction.held(until=transaction.now)
    return study.reserved - sum(path.promised * transaction.numbered(path.chain).cost for path in ended)


def remaining(transaction: Transaction) -> float:
    """What can be spent without a lease: what is left, less what is promised."""
    study = transaction.study
    if study.budget is None:
        return math.inf
    return unspent(study) - (promised(transaction) if study.leases else study.reserved)


def check_price(transaction: Transaction, price: float, what: str) -> None:
    """Refuses to spend more than is left, or what is promised to leases."""
    if price <= remaining(transaction):
        return
    left = f"{what} costs %g more than is left of the budget"
    over = price - unspent(transaction.study)
    if over > 0:
        raise OverBudget(f"{left % over}: nothing was changed")
    over = price - remaining(transaction)
    raise NothingFree(f"{left % over}, less what is promised to leases: nothing was changed")


def check_lowered(transaction: Transaction, budget: float) -> None:
    """Refuses a new budget that is already used or promised to leases."""
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
