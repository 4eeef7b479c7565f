"""Claims about bounds on BA-MC's loss: Theorems 1 and 2, the pseudo-excess loss, and the effect of mixing."""

import math
from collections.abc import Sequence

import numpy as np

from chainscout import guarantees
from chainscout.experiment import compare
from chainscout.numerals import sure
from chainscout.problems import Problem

from .findings import (
    HOLDS,
    LARGEST_LOSS,
    NOT_REACHED,
    VACUOUS,
    Array,
    Finding,
    Measured,
    at_most,
    bounds_loss,
    proportion,
    ratio,
    says_nothing,
)


def below_the_cutoff(
    problem: Problem, budgets: Sequence[int], replications: int, delta: float, seed: int, engine: str
) -> list[Finding]:
    """Theorem 1 and the pseudo-excess loss, at budgets that can be simulated for every problem."""
    losses = np.array([_largest_losses(problem, n, replications, delta, seed, engine) for n in budgets])
    times = ", ".join(f"{n:,}" for n in budgets)
    setting = f"{problem.name}, n = {times}, {replications:,} replications each"
    bound = np.array([guarantees.theorem_1(problem, n, delta) for n in budgets])
    loose = bound / np.quantile(losses, 1 - delta, axis=1)
    missed = proportion(int((losses > bound[:, None]).any(axis=0).sum()), replications)
    cutoff = problem.cutoff_budget(delta)
    return [
        Finding(
            "L_n ≤ KS²β²(304/(n−2K) + 564K/(n−2K)²) with probability ≥ 1 − δ",
            "Theorem 1",
            setting,
            "P(L_n above the bound at one of these n)",
            missed,
            bounds_loss(missed, delta, float(bound.min())),
            VACUOUS,
            f"the bound is {bound.min():.3g} or more, and no loss is above {LARGEST_LOSS:g}; it is"
            f" {loose.min():,.0f} to {loose.max():,.0f} times the {sure(delta)} quantile of L_n",
        ),
        pseudo_excess(problem, budgets, losses, delta, setting),
        Finding(
            "L_n ≤ 2βΛ/n + C₀(β/n)^(3/2) with probability ≥ 1 − 2δ once n ≥ n_cutoff",
            "Theorem 2",
            problem.name,
            "n_cutoff, as stated",
            Measured.exactly(cutoff),
            NOT_REACHED,
            NOT_REACHED,
            f"corrected, it would be {problem.cutoff_budget(delta, corrected=True):.2g}",
        ),
    ]


def at_the_cutoff(problem: Problem, replications: int, delta: float, seed: int, engine: str) -> list[Finding]:
    """Theorem 2, and the pseudo-excess loss, at n_cutoff."""
    budget = math.ceil(problem.cutoff_budget(delta))
    losses = _largest_losses(problem, budget, replications, delta, seed, engine)
    setting = f"{problem.name}, δ = {delta:g}, n = n_cutoff = {budget:,}, {replications:,} replications"
    bound = guarantees.theorem_2(problem, budget, delta)
    missed = proportion(int((losses > bound).sum()), replications)
    loose = bound / np.quantile(losses, 1 - 2 * delta)
    return [
        Finding(
            "L_n ≤ 2βΛ/n + C₀(β/n)^(3/2) with probability ≥ 1 − 2δ once n ≥ n_cutoff",
            "Theorem 2",
            setting,
            "P(L_n above the bound)",
            missed,
            bounds_loss(missed, 2 * delta, bound),
            HOLDS,
            f"the bound is {loose:,.0f} times the {sure(2 * delta)} quantile of L_n",
        ),
        pseudo_excess(problem, [budget], losses[None, :], delta, setting),
    ]


def pseudo_excess(problem: Problem, budgets: Sequence[int], losses: Array, delta: float, setting: str) -> Finding:
    """L_n − 2βΛ/n should vanish as n^(−3/2). If it is negative with probability ≥ 1 − 2δ, this claim says nothing."""
    pairs = sum(size * size for size in problem.sizes)
    line = np.array([2 * guarantees.beta(n, delta, pairs) * problem.optimal_loss(n) for n in budgets])
    positive = (losses > line[:, None]).sum(axis=1)
    measured = proportion(int(positive.max()), losses.shape[1])
    return Finding(
        "the pseudo-excess loss L_n − 2βΛ/n vanishes as n^(−3/2)",
        "Theorem 2",
        setting,
        "P(it is positive), the largest of these n" if len(budgets) > 1 else "P(it is positive)",
        measured,
        says_nothing(measured, 2 * delta),
        VACUOUS,
        f"largest L_n/(2βΛ/n): {(losses.max(axis=1) / line).max():.3f}",
    )


def mixing(
    slow: Problem, fast: Problem, budget: int, replications: int, delta: float, seed: int, engine: str
) -> list[Finding]:
    """The loss of BA-MC at equal n on slowly and fast mixing chains with the same rows, up to the order of entries."""
    above = _largest_losses(slow, budget, replications, delta, seed, engine)
    below = _largest_losses(fast, budget, replications, delta, seed + 1, engine)
    measured = ratio(above, below)
    gaps = [problem[problem.names[0]].pseudo_spectral_gap for problem in (slow, fast)]
    return [
        Finding(
            "mixing does not matter: the loss is no larger on chains that mix slowly",
            "§4, 'the effect of mixing'",
            f"{slow.name} (γ_ps = {gaps[0]:.3g}) against {fast.name} (γ_ps = {gaps[1]:.3g}), n = {budget:,},"
            f" {replications:,} replications each",
            "E[L_n] of the slow over E[L_n] of the fast",
            measured,
            at_most(measured, 1.05),
            HOLDS,
        )
    ]


def _largest_losses(problem: Problem, budget: int, replications: int, delta: float, seed: int, engine: str) -> Array:
    """L_n = max_k L_k of every replication of BA-MC with this budget."""
    results = compare(problem, [f"ba-mc:delta={delta:g}"], [budget], replications, seed=seed, engine=engine)
    return np.asarray(results.loss[0, 0].max(axis=1))
