"""Which chain is next: the largest index, one chain at a time or a batch with the pending rule (MATH §6)."""

import heapq
import math

from ..store import ChainRecord, Transaction
from . import _budget
from ._index import LiveIndex


def first(transaction: Transaction, live: LiveIndex) -> ChainRecord | None:
    """The free chain to advance next; None if there is none. A chain whose lease has expired is free."""
    ended = transaction.held(until=transaction.now) if transaction.study.leases else []
    floor = live.policy.floor
    if floor is not None:
        fewest = transaction.least(1) + ended
        if fewest:
            chain = min(fewest, key=lambda c: (c.transitions, c.number))
            if chain.transitions < floor(float(transaction.study.observations)):
                return chain
    found = transaction.top(1)
    if ended:
        return min(found + ended, key=lambda c: (-c.index, c.number))
    return found[0] if found else None


def batch(transaction: Transaction, live: LiveIndex, number: int) -> list[ChainRecord]:
    """The next ``number`` chains: pending observations count in T, and everything else is frozen."""
    ended = transaction.held(until=transaction.now)
    chains = {c.number: c for c in transaction.top(number) + ended}
    fewest: list[tuple[int, int]] = []
    floor = live.policy.floor
    if floor is not None:
        chains.update((c.number, c) for c in transaction.least(number))
        fewest = [(c.transitions, k) for k, c in chains.items()]
        heapq.heapify(fewest)
    pending = dict.fromkeys(chains, 0)
    keys = {k: -c.index for k, c in chains.items()}
    order = [(key, k) for k, key in keys.items()]
    heapq.heapify(order)
    chosen: list[ChainRecord] = []
    left = _budget.remaining(transaction)
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
        keys[k] = -_pending_index(live, chain, pending[k])
        heapq.heappush(order, (keys[k], k))
        if floor is not None:
            heapq.heappush(fewest, (chain.transitions + pending[k], k))
    return chosen


def _pending_index(live: LiveIndex, chain: ChainRecord, pending: int) -> float:
    """The index with T + pending for T; within a block the stored one stands.

    A chain without a transition gets the observations that bring its first one, and no more.
    """
    if chain.transitions == 0:
        return math.inf if pending + (chain.last is not None) < 2 else -math.inf
    transitions = chain.transitions + pending
    if pending == 0 or transitions < chain.look:
        return chain.index
    return live.index(chain, chain.sums, transitions)
