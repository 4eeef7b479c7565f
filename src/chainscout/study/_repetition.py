"""Paths that repeat each other, as those of workers with one seed do: then no bound holds.

A path has a running digest of its states, which is kept after 16, 32, 64, … of them. Two paths of a chain with the same
digest after the same number of states began alike. A chain that hardly ever moves, or that runs in a circle, does that
by chance. So a pair is named only if its common states are unlikely under *every* law that the chain can have:

    sup_P P(x₁ … x_L | x₁) = Π_xy (n_xy / n_x)^n_xy = e^−s,   n the counts of the common states alone.

Let w be the first prefix of a path, at a checkpoint, with e^−s(w) ≤ ε. None of these words begins with another one. So
an independent path repeats w with probability Σ_w P(w)² ≤ Σ_w P(w)·e^−s(w) ≤ ε, whatever the law P is, and whenever
one looks. The j−1 pairs of path j with earlier paths of its chain have ε = UNLIKELY / (K·j·(j−1)²) each, and

    Σ_k Σ_{j ≥ 2} (j−1)·ε = UNLIKELY·Σ_{j ≥ 2} 1/(j·(j−1)) = UNLIKELY

bounds the probability that two independent paths of a study are ever named.
"""

import math
from collections import Counter
from collections.abc import Iterator
from itertools import groupby, islice

from ..store import ChainRecord, Transaction, Twins

#: Two independent paths of a study are ever named with at most this probability.
UNLIKELY = 1e-6
#: The numbers of states after which digests are compared. With fewer than 16 no beginning is unlikely enough. A chain
#: whose first 65,536 states are still likely leaves its circle about once in 65,536 steps.
CHECKPOINTS = frozenset(2**power for power in range(4, 17))
_MODULUS = 2**61 - 1  # a prime
_MULTIPLIER = 1_164_413_355_737_928_301
#: Pairs of paths that are named.
MOST_NAMED = 20


def digested(digest: int, state: int) -> int:
    """The digest of a path after its next state; 0 before the first one."""
    return (digest * _MULTIPLIER + state) % _MODULUS


def repeated(transaction: Transaction, only: ChainRecord | None = None) -> tuple[str, ...]:
    """A sentence for each two paths that repeat each other, unless that is likely by chance.

    ``only``: of this chain.
    """
    if transaction.study.paths < 2 or (only is not None and only.begun < 2):
        return ()
    return tuple(
        f"paths {pair.first} and {pair.second} of {chain.name} begin with the same {pair.length} states: "
        "sources with one seed repeat each other, and then no bound holds"
        for chain, pair in islice(_unlikely(transaction), MOST_NAMED)
        if only is None or chain.number == only.number
    )


def needed_surprise(chains: int, path: int) -> float:
    """How unlikely, in nats, what a path and an earlier one have in common must be."""
    return math.log(chains * path * (path - 1) ** 2 / UNLIKELY)


def _unlikely(transaction: Transaction) -> Iterator[tuple[ChainRecord, Twins]]:
    """The pairs of paths that began alike, each with the longest common beginning, unless it is likely."""
    chains = transaction.study.chains
    for number, pairs in groupby(transaction.twins(), key=lambda pair: pair.chain):
        chain = None
        known: dict[tuple[int, int], float] = {}
        for second, same in groupby(pairs, key=lambda pair: pair.second):
            *_, pair = same  # the longest common beginning is the least likely one
            needed = needed_surprise(chains, second)
            if (pair.length - 1) * math.log(pair.length - 1) < needed:
                continue  # n transitions are never less likely than n^−n
            chain = chain or transaction.numbered(number)
            common = pair.first, pair.length
            if common not in known:
                states = islice(transaction.walk(chain, pair.first), pair.length)
                known[common] = surprise(states, needed_surprise(chains, chain.paths))  # enough for its last path
            if known[common] >= needed:
                yield chain, pair


def surprise(states: Iterator[int], enough: float = math.inf) -> float:
    """How unlikely the transitions between these states are under the law that suits them best, in nats.

    Only as many of them are looked at as are needed for a surprise of ``enough``.
    """
    exits: Counter[int] = Counter()
    counts: Counter[tuple[int, int]] = Counter()
    last, found = None, 0.0
    for state in states:
        if last is not None:
            found += _growth(exits[last]) - _growth(counts[last, state])
            exits[last] += 1
            counts[last, state] += 1
            if found >= enough:
                break
        last = state
    return found


def _growth(count: int) -> float:
    """What one more adds to n·log n."""
    return (count + 1) * math.log(count + 1) - (count * math.log(count) if count else 0.0)
