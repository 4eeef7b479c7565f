"""Every policy and a user's own on the GPU engine, under numba's CUDA simulator, against the CPU engine: run by a test.

It is a program of its own because the simulator must be chosen before numba is imported.
"""

import os

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"

import numpy as np

import chainscout as cs
from chainscout import engine, policies
from chainscout.engine import gpu


def terms(row, exits, squares, constants):
    return (1.0 - squares / (exits * exits) + constants[0] * row[0] / exits,)


def index(sums, transitions, constants):
    return sums[0] / transitions


MINE = cs.Policy("mine", index, terms, constants=lambda setting: (0.5,))


def main() -> None:
    chains = dict(cs.problems.get("dirichlet:chains=2,states=3,seed=1").chains)
    problem = cs.Problem({**chains, "wide": cs.problems.get("unlike")["cyclic"]})
    budgets, replications, weights = [4, 30, 80], range(2, 4), [1.0, 2.0, 0.5]
    specifications = ["static:weights=1/2/3" if name == "static" else name for name in policies.names()]
    # Blocks of several observations begin at T = 1/block.
    rules = [*specifications, MINE, "scout:block=0.2", "certifier:block=0.2", "scout:loss=total-variation"]
    for shared in (True, False):
        if not shared:
            gpu.launching.SHARED_BYTES = 0  # as for a problem that is too large
        for rule in rules if shared else ["ba-mc", "gini-ucb:block=0.2"]:
            found = engine.run(problem, rule, budgets, replications, 7, "gpu", weights=weights)
            expected = engine.run(problem, rule, budgets, replications, 7, "cpu", weights=weights)
            assert (found[1] == expected[1]).all(), rule
            np.testing.assert_allclose(found[0], expected[0], rtol=1e-12, atol=1e-14, err_msg=str(rule))
    print("all agree")


if __name__ == "__main__":
    main()
