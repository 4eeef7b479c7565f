"""Paths that repeat each other, for example because two workers have one seed: then no bound holds.

A path has a running digest of its states. It is stored after 16, 32, 64, … states. Two paths of a chain with the same
digest after the same number of states began alike. In a chain that hardly ever moves, or that runs in a circle, this
happens by chance. So a pair is named only if its common states are unlikely under *every* law that the chain can have:

    sup_P P(x₁ … x_L | x₁) = Π_xy (n_xy / n_x)^n_xy = e^−s,   n the counts of the common states alone.

Let w be the first prefix of a path, at a checkpoint, with e^−s(w) ≤ ε. None of these words is a prefix of another. So
an independent path repeats w with probability Σ_w P(w)² ≤ Σ_w P(w)·e^−s(w) ≤ ε, for every law P and at any time of
looking. The j−1 pairs of path j with earlier paths of its chain have ε = UNLIKELY / (K·j·(j−1)²) each, and

    Σ_k Σ_{j ≥ 2} (j−1)·ε = UNLIKELY·Σ_{j ≥ 2} 1/(j·(j−1)) = UNLIKELY

bounds the probability that two independent paths of a study are ever named.
"""

import math
from collections import Counter
from collections.abc import Iterator
from itertools import groupby, islice

from ..store import ChainRecord, PathRecord, Transaction, Twins
from ..validation import printable
from .views import EventKind

#: The largest probability that two independent paths of a study are ever named.
UNLIKELY = 1e-6
#: The numbers of states after which digests are compared. Fewer than 16 states are never unlikely enough. If the first
#: 65,536 states of a chain are still likely, it leaves its circle about once in 65,536 steps.
CHECKPOINTS = frozenset(2**power for power in range(4, 17))
_MODULUS = 2**61 - 1  # a prime
_MULTIPLIER = 1_164_413_355_737_928_301
#: The largest number of pairs that are named.
MOST_NAMED = 20


def digested(digest: int, state: int) -> int:
    """The digest of a path after its next state; 0 before the first one."""
    return (digest * _MULTIPLIER + state) % _MODULUS


def keep_beginning(transaction: Transaction, chain: ChainRecord, path: PathRecord) -> None:
    """Stores the digest of a path at a checkpoint. If the path repeats another one, the study is spoilt from here on.

    This costs one read by a key, and the beginning of the other path if the digests agree. So a study that is not
    spoilt is known to have no pair that `repeated` would name.
    """
    study = transaction.study
    other = transaction.twin(path) if chain.begun > 1 and not study.spoilt else None
    transaction.keep_prefix(path)
    if other is None:
        return
    needed = needed_surprise(study.chains, max(other, path.number))
    if most_surprise(path.steps) >= needed and surprise(transaction.walk(chain, other, path.steps), needed) >= needed:
        study.spoilt = True
        transaction.happened(EventKind.REPEATED.value, chain, path=path.number, repeats=other, states=path.steps)


def repeated(transaction: Transaction, only: ChainRecord | None = None) -> tuple[str, ...]:
    """A sentence for each pair of paths that repeat each other, unless that is likely by chance.

    The first one stands wherever a bound would be promised. ``only``: check this chain only.
    """
    if not transaction.study.spoilt or (only is not None and only.begun < 2):
        return ()
    return tuple(_sentence(*found) for found in islice(unlikely(transaction, only), MOST_NAMED))


def repeated_chains(transaction: Transaction) -> dict[int, str]:
    """The numbers of all chains with such pairs, each with the sentence of the first one."""
    found: dict[int, str] = {}
    for chain, pair in unlikely(transaction) if transaction.study.spoilt else ():
        if chain.number not in found:
            found[chain.number] = _sentence(chain, pair)
    return found


def _sentence(chain: ChainRecord, pair: Twins) -> str:
    return (
        f"no bound holds: paths {pair.first} and {pair.second} of {printable(chain.name)} begin with the same"
        f" {pair.length} states (sources with one seed repeat each other)"
    )


def as_sentence(note: str) -> str:
    """A note with a capital letter and a full stop."""
    return f"{note[0].upper()}{note[1:]}."


def needed_surprise(chains: int, path: int) -> float:
    """How unlikely, in nats, the common states of a path and an earlier one must be."""
    return math.log(chains * path * (path - 1) ** 2 / UNLIKELY)


def most_surprise(states: int) -> float:
    """How unlikely so many states can be at most, in nats: n transitions are never less likely than n^−n."""
    return (states - 1) * math.log(states - 1)


def unlikely(transaction: Transaction, only: ChainRecord | None = None) -> Iterator[tuple[ChainRecord, Twins]]:
    """The pairs of paths that began alike, each with the longest common beginning, unless it is likely.

    Reads the beginnings of all paths of the study.
    """
    chains = transaction.study.chains
    for number, pairs in groupby(transaction.twins(), key=lambda pair: pair.chain):
        if only is not None and number != only.number:
            continue
        chain = None
        known: dict[tuple[int, int], float] = {}
        for second, same in groupby(pairs, key=lambda pair: pair.second):
            *_, pair = same  # the longest common beginning is the least likely one
            needed = needed_surprise(chains, second)
            if most_surprise(pair.length) < needed:
                continue
            chain = chain or transaction.numbered(number)
            common = pair.first, pair.length
            if common not in known:
                states = transaction.walk(chain, pair.first, pair.length)
                known[common] = surprise(states, needed_surprise(chains, chain.paths))  # the level of the last path
            if known[common] >= needed:
                yield chain, pair


def surprise(states: Iterator[int], enough: float = math.inf) -> float:
    """How unlikely the transitions between these states are, in nats, under the law that fits them best.

    The function stops reading as soon as the surprise reaches ``enough``.
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
    """The increase of n·log n when n grows by one."""
    return (count + 1) * math.log(count + 1) - (count * math.log(count) if count else 0.0)
