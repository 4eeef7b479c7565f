"""What scout is for: a long cycle is no reason to leave a coin alone (docs/policies.md, benchmarks/bench_scout.py)."""

import math

import numpy as np
import pytest
from engine_problems import COIN

import chainscout as cs
from chainscout.engine import Options, run
from chainscout.experiment.statistics import mean_largest


def beside_coins(chain, coins):
    return cs.Problem({"chain": chain} | {f"coin-{k}": COIN for k in range(coins)})


def e_max(problem, policy, each, replications):
    loss, _ = run(problem, policy, [each * len(problem)], range(replications), Options(seed=14))
    return mean_largest(loss[0])


@pytest.mark.parametrize(
    ("states", "coins", "each", "most"),
    [
        (30, 1, 20, 1.10),  # T < S: more of the cycle gains nothing. Version 1 needs 2.9 ×
        (100, 3, 20, 1.10),  # 3.4 ×
        (30, 1, 100, 1.10),  # 3.0 ×
        (100, 1, 100, 0.75),  # a second pass pays: 1.0 × if d counts nothing for states left once
        (300, 2, 100, 1.10),  # 3.7 ×
        (70, 2, 100, 0.75),  # 1.6 × if the bonus falls below a fair share before the first pass ends
        (100, 1, 1_000, 1.10),  # 3.1 ×
    ],
)
def test_scout_beside_taking_turns(states, coins, each, most):
    """Upper 95 % limit of E[max L] over uniform's, on the same paths."""
    problem = beside_coins(cs.MarkovChain(np.roll(np.eye(states), 1, axis=1)), coins)
    ours, theirs = (e_max(problem, policy, each, 600) for policy in ("scout", "uniform"))
    assert ours.over(theirs).interval[1] <= most


def test_scout_leaves_no_dense_chain_alone():
    """Each of these alike chains looks like a cycle until a state comes again: 1.6 × without g and c/2."""
    problem = cs.problems.get("dirichlet:chains=5,states=50,seed=14")
    ours, theirs = (e_max(problem, policy, 100, 200) for policy in ("scout", "uniform"))
    assert ours.over(theirs).interval[1] <= 1.15


@pytest.mark.parametrize("each", [20, 100])
def test_scout_beside_the_oracle(each):
    """Geometric mean of E[max L] over the oracle's, on random chains that differ in size and variability."""
    logarithms = []
    for seed in range(6):
        generator = np.random.default_rng([seed, 14])
        sizes = generator.integers(2, 11, 20)
        shapes = np.exp(generator.uniform(math.log(0.1), math.log(2), 20))
        rows = [generator.dirichlet(np.full(S, c), S) for S, c in zip(sizes, shapes, strict=True)]
        problem = cs.Problem({f"chain-{k}": cs.MarkovChain(matrix) for k, matrix in enumerate(rows)})
        ours, theirs = (e_max(problem, policy, each, 300).value for policy in ("scout", "oracle"))
        logarithms.append(math.log(ours / theirs))
    assert math.exp(np.mean(logarithms)) <= (0.95 if each == 20 else 0.90)
