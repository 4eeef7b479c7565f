"""Problems that were constructed for trials, where the catalogue has no suitable one."""

import numpy as np

from chainscout.chains import MarkovChain
from chainscout.problems import Problem


def coins(*leaving: float) -> Problem:
    """Chains on two states, π = ½, that leave either state with the given probabilities."""
    chains = {f"leaves-{p:g}": [[1 - p, p], [p, 1 - p]] for p in leaving}
    if len(chains) < len(leaving):  # equal chains
        chains = {f"coin-{k + 1}": [[1 - p, p], [p, 1 - p]] for k, p in enumerate(leaving)}
    name = f"two states, left with probability {' and '.join(f'{p:g}' for p in leaving)}"
    return Problem({key: MarkovChain(matrix) for key, matrix in chains.items()}, name)


def slow_and_fast(states: int, chains: int = 2) -> tuple[Problem, Problem]:
    """Two problems of equal chains in which every state has two successors, ½ each, and π is uniform.

    Slow: one step to the left or right on a circle, which takes about S² steps to mix (an odd number of states, or it
    would be periodic). Fast: from x to 2x or 2x + 1 modulo S, which mixes in about log₂ S steps.
    """
    x = np.arange(states)
    problems = []
    for name, successors in (
        ("random walks on a circle", ((x - 1) % states, (x + 1) % states)),
        ("doubling walks", (2 * x % states, (2 * x + 1) % states)),
    ):
        matrix = np.zeros((states, states))
        for y in successors:
            matrix[x, y] += 0.5
        walks = {f"walk-{k + 1}": MarkovChain(matrix) for k in range(chains)}
        problems.append(Problem(walks, f"{chains} {name} of {states} states"))
    return problems[0], problems[1]
