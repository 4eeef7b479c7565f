"""The ``sharp`` certificate on whole paths. It is a search, so it is evaluated only where a miss is most likely.

T·b hardly falls while T grows, so a loss above its bound shows where T·L is higher than ever before. The certificate is
evaluated where T·L has grown by RISE over its highest value so far, and at the end of the path.
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from chainscout.certificates import sharp
from chainscout.compile import bound, call, compiled, is_off
from chainscout.counts import Counts, smoothing
from chainscout.policies.policy import replaced
from chainscout.problems import Problem

from .paths import laws_of, walk_path

Array = npt.NDArray[np.float64]

#: The certificate is evaluated again when T·L has grown by this factor.
RISE = 1.2


def heights(path, size, matrix, alpha, counts, exits, distance, steps, losses):  # type: ignore[no-untyped-def]
    """Fills ``steps`` with each T at which T·L is at a new height, and ``losses`` with T·L there.

    The last one is the end of the path. The other arrays are scratch space that begins with zeros.
    """
    weight = alpha * size
    loss = highest = 0.0
    number = 0
    x = path[0]
    for step in range(1, len(path)):
        y = path[step]
        start = x * size
        counts[start + y] = counts[start + y] + 1.0
        exits[x] = exits[x] + 1.0
        n = exits[x]
        near = 0.0
        for z in range(size):
            difference = (counts[start + z] + alpha) / (n + weight) - matrix[start + z]
            near += difference * difference
        loss = replaced(loss, distance[x], n * near)
        distance[x] = n * near
        if loss > RISE * highest or step == len(path) - 1:
            steps[number] = step
            losses[number] = loss
            number += 1
            highest = max(highest, loss)
        x = y


@lru_cache(maxsize=2)
def _ready(interpreted: bool) -> Any:
    return bound(heights, {}) if interpreted else compiled(heights, {}, cache=True)


def looked_at(problem: Problem, observations: int, replications: int, delta: float, seed: int, engine: str) -> Array:
    """The largest L/b and the last one of every path of every chain, (replication, chain, 2)."""
    log_inverse = math.log(len(problem) / delta)
    found = np.zeros((replications, len(problem), 2))
    for k, chain in enumerate(problem.chains.values()):
        laws = laws_of(chain)
        for replication in range(replications):
            path = walk_path(laws, k, observations, seed, replication, engine)
            found[replication, k] = quotients(path, chain.matrix, log_inverse, engine)
    return found


def quotients(path: npt.NDArray[np.int64], matrix: Array, log_inverse: float, engine: str) -> tuple[float, float]:
    """The largest L/b of a path over all evaluations, and the last one."""
    size = len(matrix)
    steps, losses = np.zeros(len(path), np.int64), np.zeros(len(path))
    space = (np.zeros(size * size), np.zeros(size), np.zeros(size))
    interpreted = engine == "python" or is_off()
    # A signed size: positions in the path are signed too.
    given = (path, np.int64(size), matrix.flatten(), smoothing(None, size), *space, steps, losses)
    call(_ready(interpreted), given, interpreted)
    pairs = path[:-1] * size + path[1:]
    counted = []
    for step in steps[steps > 0].tolist():
        table = np.bincount(pairs[:step], minlength=size * size).reshape(size, size)
        rows = {x: {y: int(table[x, y]) for y in np.flatnonzero(table[x]).tolist()} for x in range(size)}
        counted.append(Counts.over({x: row for x, row in rows.items() if row}, size))
    bounds = sharp.bounds(counted, log_inverse)
    ratios = [loss / (b.loss * step) for loss, b, step in zip(losses, bounds, steps.tolist(), strict=False)]
    return max(ratios), ratios[-1]
