"""Your own rule in ten lines, compiled like the built-in ones, on two processes.

python examples/own_policy.py
"""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import chainscout as cs


def constants(setting: cs.policies.Setting) -> tuple[float, ...]:
    """Prepared once for each chain: here only the weight of exploration."""
    return (1.5,)


def terms(row, exits, squares, constants):  # type: ignore[no-untyped-def]
    """Of a row with N_x exits and Σ_y N[x,y]² = squares: its Gini index and what may be missing."""
    return (1.0 - squares / (exits * exits), constants[0] / exits)


def index(sums, transitions, constants):  # type: ignore[no-untyped-def]
    """The chain with the largest index is observed next."""
    return (sums[0] + sums[1]) / transitions


# New processes read this file again: only the first process may run the rest.
if __name__ == "__main__":
    mine = cs.Policy("mine", index, terms, constants)
    problem = cs.problems.get("unlike")
    with ProcessPoolExecutor(2, get_context("spawn")) as executor:
        results = cs.compare(problem, [mine, "scout", "oracle"], [1_000], 100, executor=executor)
    same = cs.compare(problem, [mine, "scout", "oracle"], [1_000], 100)
    print("the same on processes and on threads:", (results.loss == same.loss).all())
    for row in results.summary():
        print(f"{row['policy']:6} {row['E[max L] / oracle']:.3f} of the oracle's loss")
