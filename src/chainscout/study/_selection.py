"""The choice of the next chain: the largest index, one chain at a time or a batch with the pending rule (MATH §6)."""

import heapq
import math
from collections.abc import Set

from ..policies.furthest import LARGEST, UNBOUNDED
from ..store import ChainRecord, Transaction
from . import _aim, _budget
from ._index import UNSEEN, LiveIndex
from ._transitions import Walker

#: Another path is cheap while first observations are at most this part of a chain's transitions.
CHEAP = 0.05
#: A worker advances a chain only if its index is at least this part of the largest one; else it waits.
CLOSE = 0.95
#: The number of a worker's chains that are checked, because other workers may have changed their indices.
MOST_COMPARED = 8
#: The number of chains without a transition that are compared.
MOST_UNSEEN = 64
#: Below the index of every chain without a transition, however many workers walk it.
UNSEEN_LEAST = math.sqrt(UNSEEN * UNBOUNDED)


def first(transaction: Transaction, live: LiveIndex, without: Set[int] = frozenset()) -> ChainRecord | None:
    """The free chain to advance next; None if there is none. A chain whose lease has expired is free."""
    study = transaction.study
    ended = _expired(transaction)
    floor = live.policy.floor
    if floor is not None:
        fewest = [c for c in transaction.least(1 + len(without)) + ended if c.number not in without]
        if fewest:
            chain = min(fewest, key=lambda c: (_expected(c), c.number))
            if _expected(chain) < floor(float(study.observations)):
                return chain
    found = transaction.top(1 + len(without))
    if ended or without:
        found = [chain for chain in found + ended if chain.number not in without]
        found.sort(key=lambda c: (-_free_index(live, c), c.number))
    if not found:
        return None
    if live.policy.aiming and LARGEST < found[0].index < UNSEEN_LEAST:
        # An infinite ratio counts as the largest finite one, and the chain with fewer transitions goes first.
        finite = transaction.top(1 + len(without), LARGEST)
        found = [found[0], *(chain for chain in finite if chain.number not in without)][:2]
        return min(found, key=lambda c: (_expected(c), c.number))
    return found[0]


def ahead(
    transaction: Transaction, live: LiveIndex, chain: ChainRecord, without: Set[int] = frozenset()
) -> list[ChainRecord]:
    """The chains at work, or free, that come so far before a free chain that a worker waits for them.

    Advancing this chain would spend what those need. An infinite index holds nobody up, because the first draws of a
    chain say nothing of its index. A rule with a floor orders chains by their transitions too, and nobody waits.
    """
    if live.policy.floor is not None:
        return []
    at_work = {path.chain for path in transaction.held()} if transaction.study.leases else set()
    rivals = [other for other in map(transaction.numbered, at_work) if not (other.aside or other.resting)]
    rivals += [other for other in transaction.top(1 + len(without)) if other.number not in without | at_work]
    own = _free_index(live, chain)
    return [other for other in rivals if other.index < LARGEST and own < CLOSE * other.index]


def _expired(transaction: Transaction) -> list[ChainRecord]:
    """The chains of shared paths whose lease has expired, and that are neither done nor set aside."""
    if not (transaction.study.shared and transaction.study.leases):
        return []
    found = (transaction.numbered(path.chain) for path in transaction.held(until=transaction.now))
    return [chain for chain in found if not (chain.aside or chain.done)]


def _pending(chain: ChainRecord) -> int:
    """The observations that leases will bring. A free chain that is blocked had one lease, which has expired."""
    return 0 if chain.blocked else chain.pending


def _expected(chain: ChainRecord) -> int:
    """T plus the observations that leases will bring."""
    return chain.transitions + _pending(chain)


def _free_index(live: LiveIndex, chain: ChainRecord) -> float:
    """The index without the promise of an expired lease."""
    return live.expected_index(chain, 0) if chain.blocked else chain.index


def preferred(
    transaction: Transaction, live: LiveIndex, walker: Walker, without: Set[int], continuing: bool
) -> ChainRecord | None:
    """The chain for a worker: the next one, or one with nearly the same index that the worker already walks.

    A new path costs a first observation, which brings no transition: W workers on K chains pay up to W·K of them.
    ``continuing``: the latest path of the worker's name counts as its own.
    """
    chain = first(transaction, live, without)
    if chain is None or walker.alone or walker.walks(chain):
        return chain
    if live.policy.floor is not None or transaction.study.shared:
        return chain
    if continuing and transaction.open_path(chain, walker.name) is not None:
        return chain
    left = _budget.remaining(transaction)
    if chain.transitions == 0:  # among affordable chains: first its own, then one that nobody has begun
        found = (c for c in transaction.top(MOST_UNSEEN) if c.transitions == 0 and c.cost <= left)
        unseen = [c for c in found if c.number not in without] or [chain]
        return min(unseen, key=lambda c: (not walker.walks(c), c.observations + c.pending, c.number))
    if chain.begun + 1 <= CHEAP * chain.transitions:
        return chain
    least = CLOSE * chain.index
    for _ in range(MOST_COMPARED):
        number = walker.best(without)
        if number is None:
            break
        own = transaction.numbered(number)
        if walker.note(own) and own.index >= least:
            if not (own.aside or own.blocked or own.resting or own.cost > left):
                return own
            without = without | {number}
        elif own.index < least:
            break
    return chain


def batch(transaction: Transaction, live: LiveIndex, number: int, without: Set[int] = frozenset()) -> list[ChainRecord]:
    """The next ``number`` chains: pending observations count in T, and everything else is frozen."""
    ended = _expired(transaction)
    wanted = number + len(without)
    chains = {c.number: c for c in transaction.top(wanted) + ended if c.number not in without}
    fewest: list[tuple[int, int]] = []
    floor = live.policy.floor
    if floor is not None:
        chains.update((c.number, c) for c in transaction.least(wanted) if c.number not in without)
        fewest = [(_expected(c), k) for k, c in chains.items()]
        heapq.heapify(fewest)
    pending = dict.fromkeys(chains, 0)
    keys = {k: -_free_index(live, c) for k, c in chains.items()}
    order = [(key, k) for k, key in keys.items()]
    heapq.heapify(order)
    chosen: list[ChainRecord] = []
    left = _budget.remaining(transaction)
    while len(chosen) < number and order:
        k = None
        if floor is not None:
            while fewest[0][0] != _expected(chains[fewest[0][1]]) + pending[fewest[0][1]]:
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
            heapq.heappush(fewest, (_expected(chain) + pending[k], k))
    return chosen


def _pending_index(live: LiveIndex, chain: ChainRecord, pending: int) -> float:
    """The index with this many more observations pending; −∞: they bring the look that says whether it is done.

    A chain without a transition gets only the observations that bring its first one.
    """
    if chain.transitions == 0:
        return math.inf if pending + min(chain.observations, 1) < 2 else -math.inf
    expected = _pending(chain) + pending
    return -math.inf if _aim.rests(chain, expected) else live.expected_index(chain, expected)
