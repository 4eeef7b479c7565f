"""Whole paths, looked at after every single transition: what is claimed 'at all times' is put on trial here.

A chain's path does not depend on the policy, only how far it is followed does. So every chain is followed for the
whole budget: what holds at all times there holds under every policy, and a miss is counted for whoever might meet it.
The inequalities are the package's own scalar functions, compiled as the engine compiles rules; the paths are those
that the engine simulates for the same seed.
"""

import math
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import policies
from ..certificates.mixture import combine, largest_excess, smoothing_excess
from ..certificates.paper import STATED, entry, factors, index, row_terms
from ..compile import bound, compiled
from ..counts import smoothing
from ..engine.state import call, prepare
from ..guarantees import beta, event_c_width
from ..policies.policy import replaced
from ..problems import Problem
from ..random import MASK, mix, sample, stream

Array = npt.NDArray[np.float64]

#: What is recorded of a path: the largest |P̂ − P| over its width in the event C; the largest L/b of BA-MC's index, and
#: of the mixture certificate where L/b > 1 is possible; how often the index's third term grew; how often L < L̃; the
#: largest shortfall in Lemma 8's proof; the largest 2βΣG/(T·b), ≤ 1 by Lemma 8; and at the end of the path T·L, T·L̃
#: and both L/b.
EVENT, PAPER, MIXTURE, RISES, BELOW, SHORTFALL, LOWER, LOSS, PLAIN, END_PAPER, END_MIXTURE = range(11)
RECORDED = 11

#: What two computations of the same sum may differ by, relatively.
ROUNDING = 1e-9


def walk(  # type: ignore[no-untyped-def]
    seed, replication, chain, size, stride, laws, law, table, row, path
):
    """Fills ``path`` with the states of one chain in one replication, as the engine draws them.

    ``laws`` and ``table`` are the engine's alias tables, ``law`` and ``row`` where those of this chain begin.
    """
    position, gamma = stream(seed, replication, chain)  # type: ignore[no-untyped-call]
    position = (position + gamma) & MASK
    state = sample(mix(position), size, laws, law)  # type: ignore[no-untyped-call]
    path[0] = state
    for step in range(1, len(path)):
        position = (position + gamma) & MASK
        state = sample(mix(position), size, table, row + state * stride)  # type: ignore[no-untyped-call]
        path[step] = state


def follow(  # type: ignore[no-untyped-def]
    path, size, matrix, alpha, level, factor, log_inverse, counts, exits, squares, terms, distance, plain, seen,
    theta, offset, order, found,
):  # fmt: skip
    """Follows a path through ``matrix`` (row by row) and records in ``found`` what the names above say.

    ``terms`` holds three floats a state, ``distance`` and ``plain`` N_x‖P̂ − P‖² and N_x‖P̃ − P‖²; ``seen``, ``theta``,
    ``offset`` and ``order`` are scratch space for S values each. All arrays begin with zeros.
    """
    weight = alpha * size
    spread = 1.0 - 1.0 / size
    root = math.sqrt(8.0 * level)
    first = second = third = loss = bare = gini = before = paper = 0.0
    # Every bound of every level in ``largest_excess`` is at least log(K/δ) + log 6, and every θ is below one: T times
    # the certificate is at least this, or all of 2T. Below it the certificate needs no evaluation.
    least = log_inverse + math.log(6.0)
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
            excess = largest_excess(seen, number, size - 1.0, log_inverse, offset, theta, order)
            mixture = combine(excess, smoothing_excess(seen, number, spread, weight), 1.0)
            found[MIXTURE] = max(found[MIXTURE], loss / mixture)
            if last:
                found[END_MIXTURE] = loss / mixture
        x = y
    found[LOSS] = loss
    found[PLAIN] = bare
    found[END_PAPER] = loss / paper


@lru_cache(maxsize=4)
def _ready(name: str, engine: str) -> Any:
    function: Any = {"walk": walk, "follow": follow}[name]
    return bound(function, {}) if engine == "python" else compiled(function, {}, cache=True)


def followed(
    problem: Problem,
    observations: int,
    replications: int,
    delta: float,
    seed: int = 0,
    engine: str = "cpu",
    mixture: bool = True,
) -> Array:
    """What every path of every chain gives, (replication, chain, what is recorded).

    Each chain is followed for ``observations``; the levels are those of the budget ``observations`` and of all chains
    at once. Without ``mixture`` that certificate is left out: for many states it takes nearly all the time.
    """
    level = beta(observations, delta, sum(size * size for size in problem.sizes))
    log_inverse = math.log(len(problem) / delta) if mixture else math.inf
    if engine.startswith("gpu"):
        return _on_device(problem, observations, replications, level, log_inverse, seed)
    uniform = policies.get("uniform")
    prepared = prepare(problem, uniform, observations, engine, [1.0] * len(problem), 1, False)

    def some(replications: range) -> Array:
        found = np.zeros((len(replications), len(problem), RECORDED))
        for k, chain in enumerate(problem.chains.values()):
            for r, replication in enumerate(replications):
                path = walk_path(prepared, k, chain.size, observations, seed, replication, engine)
                found[r, k] = follow_path(path, chain.matrix, level, log_inverse, engine)
        return found

    return np.concatenate(in_parallel(some, replications, max(1, 2_000_000 // observations)))


def _on_device(
    problem: Problem, observations: int, replications: int, level: float, log_inverse: float, seed: int
) -> Array:
    from ..engine.gpu import columns

    found = []
    for k, chain in enumerate(problem.chains.values()):
        scalars = (smoothing(None, chain.size), level, log_inverse)
        factor = factors(chain.size, level, STATED)
        places = (chain, k, replications, observations, seed)
        found.append(columns.follow(*places, (walk, follow), factor, scalars, _nothing_found()))
    return np.stack(found, axis=1)


def _nothing_found() -> Array:
    found = np.zeros(RECORDED)
    found[SHORTFALL] = -math.inf
    return found


def walk_path(
    prepared: Any, chain: int, size: int, observations: int, seed: int, replication: int, engine: str
) -> npt.NDArray[np.int64]:
    """The states of a chain in a replication, as the engine draws them; ``prepared``: the engine's tables."""
    head = prepared.rule.head
    path = np.zeros(observations, np.int64)
    where = (seed, replication, chain, size, size + head)
    arguments = partial(_walk_arguments, where, int(prepared.law_starts[chain]), int(prepared.starts[chain]) + head)
    call(engine, _ready("walk", engine), [prepared.laws, prepared.table, path], arguments)
    return path


def _walk_arguments(where: tuple[int, ...], law: int, row: int, arrays: list[Any]) -> tuple[Any, ...]:
    laws, table, path = arrays
    return (*where, laws, law, table, row, path)


def follow_path(path: npt.NDArray[np.int64], matrix: Array, level: float, log_inverse: float, engine: str) -> Array:
    """What one path gives, at the level β = ``level`` and for log(K/δ) = ``log_inverse``.

    An infinite ``log_inverse`` makes the mixture certificate 2, above which no loss is: it is then never evaluated.
    """
    size = len(matrix)
    counts, found, scratch = np.zeros(size * size), _nothing_found(), [np.zeros(size) for _ in range(6)]
    wholes = [np.zeros(size, np.int64) for _ in range(2)]
    arrays = [path, matrix.flatten(), counts, *scratch[:2], np.zeros(3 * size), *scratch[2:], *wholes, found]
    alpha, factor = smoothing(None, size), factors(size, level, STATED)
    call(
        engine,
        _ready("follow", engine),
        arrays,
        lambda a: (a[0], np.int64(size), a[1], alpha, level, factor, log_inverse, *a[2:]),
    )
    return found


def in_parallel(function: Any, replications: int, most: int) -> list[Any]:
    """``function`` of ranges of at most ``most`` replications each, on threads; in order."""
    cuts = [range(start, min(start + most, replications)) for start in range(0, replications, most)]
    with ThreadPoolExecutor() as pool:
        return list(pool.map(function, cuts))
