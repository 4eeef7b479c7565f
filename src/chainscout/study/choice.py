"""Whom to advance next: the largest index, one chain at a time or many with the pending rule (MATH §6)."""

import heapq
import math

from ..errors import InputError
from ..store import ChainRecord, StudyRecord, Transaction
from .rule import Rule

#: Sums of costs are rounded; a budget is not missed by a rounding error.
SLACK = 1e-9
#: Leases that a sentence names; there can be as many as chains.
NAMED = 3


def unspent(study: StudyRecord) -> float:
    """What is left of the budget."""
    return math.inf if study.budget is None else study.budget * (1 + SLACK) - study.used


def promised(transaction: Transaction) -> float:
    """What only those who hold a lease can spend.

    A lease that has run out is promised nothing any more, for its holder cannot be heard.
    """
    ended = sum(chain.promised * chain.cost for chain in transaction.held(until=transaction.now))
    return transaction.study.reserved - ended


def remaining(transaction: Transaction) -> float:
    """What can still be spent by those who hold no lease: what is left, less what is promised."""
    study = transaction.study
    return math.inf if study.budget is None else unspent(study) - promised(transaction)


def check_lowered(transaction: Transaction, budget: float) -> None:
    """Refuses a budget that is used up already, or promised to those who hold a lease."""
    study, reserved = transaction.study, promised(transaction)
    if budget * (1 + SLACK) >= study.used + reserved:
        return
    used = f"{study.used:g} of the budget are used"
    if reserved > 0:
        ended = {chain.number for chain in transaction.held(until=transaction.now)}
        leases = [f"{c.worker!r} on {c.name!r}" for c in transaction.held() if c.number not in ended]
        more = f" and {len(leases) - NAMED} more" if len(leases) > NAMED else ""
        used += f" and {reserved:g} are promised to leases ({', '.join(leases[:NAMED])}{more})"
    raise InputError(f"{used}: it cannot become {budget:g}")


def first(transaction: Transaction, rule: Rule) -> ChainRecord | None:
    """The free chain to advance next; a chain whose lease has ended is free."""
    ended = transaction.held(until=transaction.now)
    if rule.policy.floor is not None:
        fewest = transaction.least(1) + ended
        if fewest:
            chain = min(fewest, key=lambda c: (c.transitions, c.number))
            if chain.transitions < rule.policy.floor(float(transaction.study.observations)):
                return chain
    found = transaction.top(1) + ended
    return min(found, key=lambda c: (-c.index, c.number)) if found else None


def batch(transaction: Transaction, rule: Rule, number: int) -> list[ChainRecord]:
    """The next ``number`` choices: T counts those pending, and everything else is frozen."""
    ended = transaction.held(until=transaction.now)
    chains = {c.number: c for c in transaction.top(number) + ended}
    fewest: list[tuple[int, int]] = []
    floor = rule.policy.floor
    if floor is not None:
        chains.update((c.number, c) for c in transaction.least(number))
        fewest = [(c.transitions, k) for k, c in chains.items()]
        heapq.heapify(fewest)
    pending = dict.fromkeys(chains, 0)
    keys = {k: -c.index for k, c in chains.items()}
    order = [(key, k) for k, key in keys.items()]
    heapq.heapify(order)
    chosen: list[ChainRecord] = []
    left = remaining(transaction)
    while len(chosen) < number and order:
        k = None
        if floor is not None:
            while fewest[0][0] != chains[fewest[0][1]].transitions + pending[fewest[0][1]]:
                heapq.heappop(fewest)
            if fewest[0][0] < floor(float(transaction.study.observations)):
                k = fewest[0][1]
        if k is None:
            while order[0][0] != keys[order[0][1]]:
                heapq.heappop(order)
            k = order[0][1]
        chain = chains[k]
        if chain.cost > left or keys[k] == math.inf:
            break
        left -= chain.cost
        chosen.append(chain)
        pending[k] += 1
        keys[k] = -_pending_index(rule, chain, pending[k])
        heapq.heappush(order, (keys[k], k))
        if floor is not None:
            heapq.heappush(fewest, (chain.transitions + pending[k], k))
    return chosen


def _pending_index(rule: Rule, chain: ChainRecord, pending: int) -> float:
    """The index with T + pending for T; within a block the stored one stands.

    A chain of which nothing is known gets the observations that bring its first transition, and no more.
    """
    if chain.transitions == 0:
        return math.inf if pending + (chain.last is not None) < 2 else -math.inf
    transitions = chain.transitions + pending
    if pending == 0 or transitions < chain.look:
        return chain.index
    return rule.index(chain, chain.sums, transitions)
