"""Whole paths, checked after every single transition: trials of what is claimed 'at all times'.

A chain's path does not depend on the policy; only its length does. So every chain is followed for the whole budget.
What holds at all times there holds under every policy, and a miss counts if any policy could meet it. The inequalities
are the package's own scalar functions, compiled as the engine compiles rules. The paths are those that the engine
simulates for the same seed.
"""

import math
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from chainscout.certificates.mixture import combine, largest_excess, smoothing_excess
from chainscout.certificates.paper import STATED, entry, factors, index, row_terms
from chainscout.chains import MarkovChain
from chainscout.compile import bound, call, compiled, is_off
from chainscout.counts import smoothing
from chainscout.guarantees import beta, event_c_width
from chainscout.policies.policy import replaced
from chainscout.problems import Problem
from chainscout.random import MASK, alias, mix, sample, stream

Array = npt.NDArray[np.float64]

#: What is recorded of a path: the largest |P̂ − P| over its width in the event C; the largest L/b of BA-MC's index, and
#: of the mixture certificate where L/b > 1 is possible; how often the index's third term grew; how often L < L̃; the
#: largest shortfall in Lemma 8's proof; the largest 2βΣG/(T·b), ≤ 1 by Lemma 8; and at the end of the path T·L, T·L̃
#: and both L/b.
EVENT, PAPER, MIXTURE, RISES, BELOW, SHORTFALL, LOWER, LOSS, PLAIN, END_PAPER, END_MIXTURE = range(11)
RECORDED = 11

#: The largest relative difference between two computations of the same sum.
ROUNDING = 1e-9


class Laws(NamedTuple):
    """A chain's alias tables, in unsigned words: S, how far rows are apart; the initial law and where it begins; the
    rows of the matrix and where they begin."""

    size: Any
    stride: Any
    initial: Any
    law: Any
    table: Any
    row: Any


class Known(NamedTuple):
    """The numbers of a chain: S (signed), P row by row, α, β, BA-MC's factors, log(K/δ)."""

    size: Any
    matrix: Any
    alpha: Any
    level: Any
    factor: Any
    log_inverse: Any


class Space(NamedTuple):
    """The counts of a path, N_x, Σ_y N[x,y]²; three terms a state; N_x‖P̂ − P‖² and N_x‖P̃ − P‖²; then scratch space for
    S values each. All begin with zeros."""

    counts: Any
    exits: Any
    squares: Any
    terms: Any
    distance: Any
    plain: Any
    seen: Any
    theta: Any
    offset: Any
    order: Any


def walk(seed, replication, chain, laws, path):  # type: ignore[no-untyped-def]
    """Fills ``path`` with the states of one chain in one replication, with the engine's draws."""
    position, gamma = stream(seed, replication, chain)  # type: ignore[no-untyped-call]
    position = (position + gamma) & MASK
    state = sample(mix(position), laws.size, laws.initial, laws.law)  # type: ignore[no-untyped-call]
    path[0] = state
    for step in range(1, len(path)):
        position = (position + gamma) & MASK
        state = sample(mix(position), laws.size, laws.table, laws.row + state * laws.stride)  # type: ignore[no-untyped-call]
        path[step] = state


def follow(path, known, space, found):  # type: ignore[no-untyped-def]
    """Follows a path through a chain and records in ``found`` the numbers that are named above."""
    size, matrix, alpha, level, factor = known.size, known.matrix, known.alpha, known.level, known.factor
    counts, exits, squares, terms = space.counts, space.exits, space.squares, space.terms
    distance, plain, seen = space.distance, space.plain, space.seen
    weight = alpha * size
    spread = 1.0 - 1.0 / size
    root = math.sqrt(8.0 * level)
    first = second = third = loss = bare = gini = before = paper = 0.0
    # Every bound of every level in ``largest_excess`` is at least log(K/δ) + log 6, and every θ is below one: T times
    # the certificate is at least this, or all of 2T. Below it the certificate needs no evaluation.
    least = known.log_inverse + math.log(6.0)
    x = path[0]
    for step in range(1, len(path)):
        y = path[step]
        transitions = float(step)
        start = x * size
        squares[x] = squares[x] + 2.0 * counts[start + y] + 1.0
        counts[start + y] = counts[start + y] + 1.0
        exits[x] = exits[x] + 1.0
        n = exits[x]
        deviations = near = raw = own = 0.0
        for z in range(size):
            p = matrix[start + z]
            count = counts[start + z]
            estimate = (count + alpha) / (n + weight)
            difference = estimate - p
            near += difference * difference
            raw += (count / n - p) * (count / n - p)
            own += p * (1.0 - p)
            found[EVENT] = max(found[EVENT], abs(difference) / event_c_width(p, n, level, weight))
            deviation = entry(count, n, size, alpha)
            deviations += deviation
            # Lemma 8's proof: V̂ ≥ V − √(8βN·V̂)/(N+αS) − 12/(N+αS); this must be ≤ 12, or 12β.
            variance = estimate * (1.0 - estimate)
            short = (n + weight) * (p * (1.0 - p) - variance) - root * deviation / (n + weight)
            found[SHORTFALL] = max(found[SHORTFALL], short)
        if n == 1.0:
            gini += own
        new = row_terms(deviations, n, squares[x], size, alpha)
        first = replaced(first, terms[3 * x], new[0])
        second = replaced(second, terms[3 * x + 1], new[1])
        third = replaced(third, terms[3 * x + 2], new[2])
        terms[3 * x] = new[0]
        terms[3 * x + 1] = new[1]
        terms[3 * x + 2] = new[2]
        loss = replaced(loss, distance[x], n * near)
        bare = replaced(bare, plain[x], n * raw)
        distance[x] = n * near
        plain[x] = n * raw
        paper = index((first, second, third), 1.0, factor)
        found[PAPER] = max(found[PAPER], loss / paper)
        found[LOWER] = max(found[LOWER], factor[0] * gini / paper)
        if step > 1 and third / transitions > before * (1.0 + ROUNDING):
            found[RISES] = found[RISES] + 1.0
        before = third / transitions
        if loss < bare * (1.0 - ROUNDING):
            found[BELOW] = found[BELOW] + 1.0
        last = step == len(path) - 1
        if loss > min(least, 2.0 * transitions) or (last and least < math.inf):
            number = 0
            for z in range(size):
                if exits[z] > 0.0:
                    seen[number] = exits[z]
                    number += 1
            excess = largest_excess(
                seen, seen, number, size - 1.0, known.log_inverse, space.offset, space.theta, space.order
            )
            mixture = combine(excess, smoothing_excess(seen, number, spread, weight), 1.0)
            found[MIXTURE] = max(found[MIXTURE], loss / mixture)
            if last:
                found[END_MIXTURE] = loss / mixture
        x = y
    found[LOSS] = loss
    found[PLAIN] = bare
    found[END_PAPER] = loss / paper


def _call(name: str, engine: str, arguments: tuple[Any, ...]) -> None:
    """Calls ``walk`` or ``follow``, compiled or, with compilation off, interpreted."""
    interpreted = engine == "python" or is_off()
    call(_ready(name, interpreted), arguments, interpreted)


@lru_cache(maxsize=4)
def _ready(name: str, interpreted: bool) -> Any:
    function: Any = {"walk": walk, "follow": follow}[name]
    return bound(function, {}) if interpreted else compiled(function, {}, cache=True)


def followed(
    problem: Problem,
    observations: int,
    replications: int,
    delta: float,
    seed: int = 0,
    engine: str = "cpu",
    mixture: bool = True,
) -> Array:
    """The recorded numbers of every path of every chain, (replication, chain, number).

    Each chain is followed for ``observations``; the levels are those of the budget ``observations`` and of all chains
    at once. Without ``mixture`` that certificate is left out: for many states it takes nearly all the time.
    """
    level = beta(observations, delta, sum(size * size for size in problem.sizes))
    log_inverse = math.log(len(problem) / delta) if mixture else math.inf
    if engine.startswith("gpu"):
        from . import path_kernel

        places = (replications, observations, seed)
        found = [
            path_kernel.followed(chain, k, *places, known_of(chain.matrix, level, log_inverse), _nothing_found())
            for k, chain in enumerate(problem.chains.values())
        ]
        return np.stack(found, axis=1)

    def some(replications: range) -> Array:
        found = np.zeros((len(replications), len(problem), RECORDED))
        for k, chain in enumerate(problem.chains.values()):
            laws = laws_of(chain)
            for r, replication in enumerate(replications):
                path = walk_path(laws, k, observations, seed, replication, engine)
                found[r, k] = follow_path(path, chain.matrix, level, log_inverse, engine)
        return found

    return np.concatenate(in_parallel(some, replications, max(1, 2_000_000 // observations)))


def _nothing_found() -> Array:
    found = np.zeros(RECORDED)
    found[SHORTFALL] = -math.inf
    return found


def laws_of(chain: MarkovChain) -> Laws:
    """The tables that a walk of the chain draws from."""
    return Laws(chain.size, chain.size, alias.table(chain.initial[None]), 0, alias.table(chain.matrix), 0)


def walk_path(
    laws: Laws, chain: int, observations: int, seed: int, replication: int, engine: str
) -> npt.NDArray[np.int64]:
    """The states of a chain in a replication, with the engine's draws."""
    path = np.zeros(observations, np.int64)
    _call("walk", engine, (seed, replication, chain, laws, path))
    return path


def follow_path(path: npt.NDArray[np.int64], matrix: Array, level: float, log_inverse: float, engine: str) -> Array:
    """The recorded numbers of one path, at the level β = ``level`` and for log(K/δ) = ``log_inverse``.

    With an infinite ``log_inverse`` the mixture certificate is 2, and no loss is above 2. So it is never evaluated.
    """
    size = len(matrix)
    reals = [np.zeros(number) for number in (size * size, size, size, 3 * size, size, size, size, size)]
    wholes = [np.zeros(size, np.int64) for _ in range(2)]
    space, found = Space._make([*reals, *wholes]), _nothing_found()
    _call("follow", engine, (path, known_of(matrix, level, log_inverse), space, found))
    return found


def known_of(matrix: Array, level: float, log_inverse: float) -> Known:
    """The numbers of a chain that ``follow`` needs."""
    size = len(matrix)
    factor = factors(size, level, STATED)
    return Known(np.int64(size), matrix.flatten(), smoothing(None, size), level, factor, log_inverse)


def in_parallel(function: Any, replications: int, most: int) -> list[Any]:
    """The results of ``function`` for ranges of at most ``most`` replications, computed on threads, in order."""
    cuts = [range(start, min(start + most, replications)) for start in range(0, replications, most)]
    with ThreadPoolExecutor() as pool:
        return list(pool.map(function, cuts))
