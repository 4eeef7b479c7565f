"""One chain's path in one replication, state by state: what an experiment's policies see, for whoever simulates it."""

from collections.abc import Iterator

import numpy as np

from ..chains import MarkovChain
from ..checks import whole_number
from . import alias
from .randomness import MASK, mix, sample, stream
from .specialising import common


def walk(chain: MarkovChain, number: int = 0, replication: int = 0, seed: int = 0) -> Iterator[int]:
    """The positions of the states that chain ``number`` of a problem visits in a replication, without end."""
    for value, name in ((number, "number"), (replication, "replication"), (seed, "seed")):
        whole_number(value, name, least=0)
    size = chain.size
    table = [0] * (size * (size + 1))
    laws = np.vstack([chain.initial[None, :], chain.matrix])
    parts = alias.parts(laws).ravel().tolist()
    common("fill", "python")(table, 0, size, size + 1, size, parts, [0] * size, [0] * size)
    position, gamma = stream(seed, replication, number)
    row = 0
    while True:
        position = (position + gamma) & MASK
        state = sample(mix(position), size, table, row)
        row = (state + 1) * size
        yield state
