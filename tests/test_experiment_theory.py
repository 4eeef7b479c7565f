"""The numbers of ``compare`` are those of the theory."""

import math

import numpy as np
import pytest

import chainscout as cs


@pytest.fixture(scope="module")
def fast_mixing() -> cs.Problem:
    """Chains whose rows are all alike forget everything in one step; ΣG = 1.98, 1.38 and 0.96."""
    laws = {"even": [0.4, 0.3, 0.3], "skewed": [0.7, 0.2, 0.1], "two": [0.6, 0.4]}
    return cs.Problem({name: cs.MarkovChain([law] * len(law)) for name, law in laws.items()})


def test_uniform_and_oracle_reach_their_limits(fast_mixing: cs.Problem) -> None:
    """n·max_k E[L_k]/Λ → K·max ΣG_k/Λ for uniform and → 1 for the oracle.

    Tolerance: four standard errors. The oracle's means are all equal, so that the largest estimate lies above by up to
    √(2·log 3) = 1.48 standard errors in the mean. What is left of the limit at this budget: E[T·L] = ΣG·(1 + O(S/T)),
    with (N/(N+r))² ≥ 1 − 2r/N for the smoothing, N_x ≥ 400: below 0.002.
    """
    budget = 30_000
    results = cs.compare(fast_mixing, ["uniform", "oracle"], [budget], 1_500, seed=11)
    rows = {row["policy"]: row for row in results.summary()}
    largest = max(chain.variability for chain in fast_mixing.chains.values())
    limits = {"uniform": 3 * largest / fast_mixing.variability, "oracle": 1.0}
    for policy, limit in limits.items():
        value, error = (rows[policy][f"{prefix}n·max E[L]/Λ"] for prefix in ("", "± "))
        print(f"{policy}: {value:.4f} ± {error:.4f}, limit {limit:.4f}")
        above = math.sqrt(2 * math.log(3)) if policy == "oracle" else 0.0
        assert -4 * error <= value - limit * (1 + 0.002) <= (4 + above) * error
        assert error < 0.03 * limit  # or the test would say nothing
    shares = {(row["policy"], row["chain"]): row["share"] for row in results.allocation()}
    for name, share in zip(fast_mixing, fast_mixing.allocation, strict=True):
        assert shares["oracle", name] == pytest.approx(share, abs=2 / budget * 3)
        assert shares["uniform", name] == pytest.approx(1 / 3, abs=1 / budget)


def random_problem(generator: np.random.Generator, alike: bool) -> cs.Problem:
    """Three to eight chains whose rows are Dirichlet, each chain with its own concentration, from 0.1 to 20.

    All have the same two to eight states (``alike``, the paper's setting), or each its own number of states.
    """
    size = generator.integers(2, 9)
    chains = {}
    for k in range(generator.integers(3, 9)):
        states = size if alike else generator.integers(2, 9)
        rows = generator.dirichlet([10 ** generator.uniform(-1, 1.3)] * states, states)
        chains[f"chain {k}"] = cs.MarkovChain(rows / rows.sum(axis=1, keepdims=True))
    return cs.Problem(chains)


@pytest.mark.parametrize("alike", [True, False], ids=["one state space", "each its own"])
def test_scout_beats_uniform_beats_ba_mc(alike: bool) -> None:
    """MATH §6's last table at n/K = 1,000: E[max L], geometric means over problems drawn here, paired.

    The problems are fixed by the seed, so that the noise is that of the replications; intervals of 3.3 standard errors
    (one in a thousand) of the mean logarithm of the ratios must lie on the right side of one.
    """
    generator = np.random.default_rng(2019)
    pairs = [("scout", "uniform"), ("uniform", "ba-mc")]
    logarithms: dict[tuple[str, str], list[tuple[float, float]]] = {pair: [] for pair in pairs}
    for number in range(10):
        problem = random_problem(generator, alike)
        budget = 1_000 * len(problem)
        results = cs.compare(problem, ["scout", "uniform", "ba-mc"], [budget], 160, seed=number)
        largest = {policy: results.statistics[policy, budget]["E[max L]"] for policy in results.policies}
        for first, second in pairs:
            ratio = largest[first].over(largest[second])
            logarithms[first, second].append((math.log(ratio.value), ratio.error / ratio.value))
            print(f"K = {len(problem)}, {first} / {second}: {ratio.value:.3f} ± {ratio.error:.3f}")
    for (first, second), found in logarithms.items():
        mean = sum(log for log, _ in found) / len(found)
        error = math.sqrt(sum(error**2 for _, error in found)) / len(found)
        low, high = (math.exp(mean + sign * 3.3 * error) for sign in (-1, 1))
        print(f"{first} / {second}: {math.exp(mean):.3f}, interval {low:.3f} … {high:.3f}")
        assert high < 1
