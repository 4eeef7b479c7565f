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

from ..validation import printable

__all__ = [
    "CHECKPOINTS", "MOST_NAMED", "UNLIKELY", "as_sentence", "digested", "most_surprise", "needed_surprise", "sentence",
    "surprise",
]  # fmt: skip

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


def sentence(name: str, first: int, second: int, length: int) -> str:
    """Says which two paths of a chain repeat each other."""
    return (
        f"no bound holds: paths {first} and {second} of {printable(name)} begin with the same {length} states (sources"
        " with one seed repeat each other)"
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
