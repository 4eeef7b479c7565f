"""Claims about limits: shares, normalised losses and their rates, and what tends to a law, not to a number."""

from collections.abc import Sequence

import numpy as np

from chainscout.experiment import compare
from chainscout.problems import Problem

from .findings import (
    FAILS,
    HOLDS,
    Array,
    Finding,
    Measured,
    as_fast_as,
    exponent,
    largest_mean,
    mean,
    proportion,
    standard_error,
    tends,
    variance,
)

#: Budgets and their numbers of replications. Every budget has its own run, because BA-MC knows its budget.
Runs = Sequence[tuple[int, int]]


def shares(problem: Problem, runs: Runs, seed: int, engine: str) -> list[Finding]:
    """T_k/n → η_k under BA-MC, and how fast."""
    distances = []
    for budget, replications in runs:
        results = compare(problem, ["ba-mc"], [budget], replications, seed=seed, engine=engine)
        distances.append(np.abs(results.pulls[0, 0] / budget - problem.allocation).max(axis=1))
    slope = _slope(runs, distances)
    last = mean(distances[-1])
    claim = "T_k/n → η_k under BA-MC"
    return [
        Finding(
            claim,
            "Theorem 3, proof",
            _setting(problem, runs),
            "E[max_k |T_k/n − η_k|] at the largest n",
            last,
            tends(last, 0.0, 0.05, slope),
            HOLDS,
            _along(runs, [float(d.mean()) for d in distances]),
        ),
        Finding(
            f"{claim}, at least as fast as n^(−1/8)",
            "Theorem 3, proof",
            _setting(problem, runs),
            "exponent of E[max_k |T_k/n − η_k|]",
            slope,
            as_fast_as(slope, -1 / 8),
            HOLDS,
        ),
    ]


def losses(problem: Problem, runs: Runs, seed: int, engine: str) -> list[Finding]:
    """n·max_k E[L_k] → Λ under BA-MC and under the oracle, the exponent of its excess, and n·L_n → Λ path by path."""
    means: dict[str, list[Measured]] = {"ba-mc": [], "oracle": []}
    errors: dict[str, list[float]] = {"ba-mc": [], "oracle": []}
    far = []
    for budget, replications in runs:
        results = compare(problem, list(means), [budget], replications, seed=seed, engine=engine)
        scale = budget / problem.variability
        normalised = results.loss[:, 0] * scale
        for place, policy in enumerate(means):
            means[policy].append(largest_mean(normalised[place]))
            errors[policy].append(scale * results.statistics[policy, budget]["max E[L]"].error)
        far.append((np.abs(normalised[1].max(axis=1) - 1) > 0.1).astype(np.float64))
    budgets, setting = [budget for budget, _ in runs], _setting(problem, runs)
    findings = []
    for policy, values in means.items():
        slope = exponent(budgets, [measured.value - 1 for measured in values], errors[policy])
        findings.append(
            Finding(
                f"n·max_k E[L_k] → Λ under {'BA-MC' if policy == 'ba-mc' else 'the oracle'}",
                "Theorem 3" if policy == "ba-mc" else "§2.4",
                setting,
                "n·max_k E[L_k]/Λ at the largest n",
                values[-1],
                tends(values[-1], 1.0, 0.15, slope),
                HOLDS,
                _along(runs, [measured.value for measured in values]),
            )
        )
        if policy == "ba-mc":
            findings.append(
                Finding(
                    "the loss is above Λ/n by O(n^(−3/2)) under BA-MC",
                    "Theorem 2, for the mean",
                    setting,
                    "exponent of n·max_k E[L_k]/Λ − 1, to be −1/2",
                    slope,
                    as_fast_as(slope, -0.5, slack=0.1),
                    HOLDS,
                )
            )
    apart = proportion(int(far[-1].sum()), len(far[-1]))
    findings.append(
        Finding(
            "n·L_n → Λ on every path, under the oracle",
            "Definition 1, Theorem 3",
            setting,
            "P(|n·L_n/Λ − 1| > 0.1) at the largest n",
            apart,
            tends(apart, 0.0, 0.1, _slope(runs, far)),
            FAILS,
            _along(runs, [float(f.mean()) for f in far]),
        )
    )
    return findings


def law_of_the_loss(problem: Problem, runs: Runs, seed: int, engine: str) -> list[Finding]:
    """T·L_k tends to a law with variance v_k, not to the number ΣG_k. Only a problem's first chain is tried."""
    name = problem.names[0]
    chain = problem[name]
    alone = Problem({name: chain}, problem.name)
    spreads = []
    for budget, replications in runs:
        results = compare(alone, ["uniform"], [budget], replications, seed=seed, engine=engine)
        times = (results.pulls[0, 0, :, 0] - 1) * results.loss[0, 0, :, 0]
        spreads.append((times - times.mean()) ** 2 / chain.loss_variance)
        last = variance(times / np.sqrt(chain.loss_variance))
    return [
        Finding(
            "T·L_k → ΣG_k",
            "Lemma 1",
            _setting(alone, runs),
            "Var(T·L_k)/v_k at the largest n",
            last,
            tends(last, 0.0, 0.1, _slope(runs, spreads)),
            FAILS,
            _along(runs, [float(s.mean()) for s in spreads]),
        )
    ]


def _slope(runs: Runs, samples: Sequence[Array]) -> Measured:
    """The exponent of a mean along the budgets."""
    return exponent([n for n, _ in runs], [float(s.mean()) for s in samples], [standard_error(s) for s in samples])


def _setting(problem: Problem, runs: Runs) -> str:
    budgets = ", ".join(f"{n:,} ({r:,})" for n, r in runs)
    return f"{problem.name}, n (replications) = {budgets}"


def _along(runs: Runs, values: Sequence[float]) -> str:
    return "along the n: " + ", ".join(f"{value:.3g}" for value in values)
