"""Problems for the engine's tests: alike and unlike sizes, one state, deterministic, periodic, sparse, many chains."""

import numpy as np
from simulation import COMPILED

import chainscout as cs


def scaled(number, least=4):
    """``number``, or a fiftieth of it where coverage is measured with compilation off."""
    return number if COMPILED else max(least, number // 50)


def unlike(sizes, seed=0, concentration=1.0):
    """Random chains of these sizes."""
    generator = np.random.default_rng([seed, *sizes])
    return cs.Problem(
        {
            f"chain-{k}": cs.MarkovChain(generator.dirichlet(np.full(size, concentration), size))
            for k, size in enumerate(sizes)
        }
    )


UNLIKE = unlike([3, 2, 5, 4, 2])

CYCLE = cs.MarkovChain(np.roll(np.eye(3), 1, axis=1))
COIN = cs.MarkovChain([[0.5, 0.5], [0.5, 0.5]])

#: Twelve problems, half of them with unequal sizes.
PROBLEMS = {
    "alike": cs.problems.get("dirichlet"),
    "nearly deterministic": cs.problems.get("dirichlet", chains=4, states=3, concentration=0.1, seed=2),
    "two states": cs.problems.get("dirichlet", chains=6, states=2, seed=3),
    "sparse": cs.problems.get("sparse", chains=3, states=8, seed=4),
    "one chain": cs.problems.get("dirichlet", chains=1, states=4, seed=5),
    "twins": cs.Problem({"a": COIN, "b": COIN, "c": COIN}),
    "unlike": UNLIKE,
    "one state among others": unlike([1, 4, 2], seed=6),
    "a cycle among others": cs.Problem(
        {"cycle": CYCLE, "coin": COIN, "other": cs.MarkovChain([[0.9, 0.1], [0.3, 0.7]])}
    ),
    "long rows": unlike([12, 3], seed=7, concentration=0.4),
    "nearly deterministic, unlike": unlike([5, 2, 3], seed=8, concentration=0.15),
    "many sizes": unlike([2, 3, 4, 5, 6, 7], seed=9),
}
