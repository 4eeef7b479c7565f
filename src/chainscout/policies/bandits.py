"""Rules from active bandit allocation, with Gini indices in place of variances."""

import math
from typing import Any

from ..errors import InputError
from ..rows import frequency_gini, smoothed_gini
from ..validation import real_number
from .policy import Policy, Setting


def sum_over_transitions(sums: Any, transitions: float, c: Any) -> float:
    """(sum of the terms)/T."""
    return float(sums[0] / transitions)


# -- GAFS-MAX


def gafs_terms(row: Any, exits: float, squares: float, c: Any) -> tuple[float]:
    """Ĝ of the row."""
    return (frequency_gini(exits, squares),)


def gafs_floor(observations: float) -> float:
    """√t + 1: the least sampled chain goes first while it has fewer transitions than this."""
    return math.sqrt(observations) + 1.0


def gafs_max() -> Policy:
    """Greedy allocation with forced selection (Antos, Grover & Szepesvári 2008): index ΣĜ/T."""
    return Policy("gafs-max", sum_over_transitions, gafs_terms, floor=gafs_floor, target=lambda p: p.allocation)


# -- CH-AS


def ch_as_terms(row: Any, exits: float, squares: float, c: Any) -> tuple[float]:
    """Ĝ + 5·√(log(1/δ)/(2N))."""
    return (frequency_gini(exits, squares) + c[0] / math.sqrt(exits),)


def ch_as_constants(setting: Setting) -> tuple[float]:
    """5·√(log(1/δ)/2), δ = n^{−5/2}."""
    return (5 * math.sqrt(2.5 * math.log(_budget(setting, "ch-as")) / 2),)


def ch_as() -> Policy:
    """The analogue of CH-AS (Carpentier, Lazaric, Ghavamzadeh, Munos & Auer 2011): a Chernoff-Hoeffding bonus."""
    return Policy("ch-as", sum_over_transitions, ch_as_terms, ch_as_constants, target=lambda p: p.allocation)


# -- B-AS


def b_as_terms(row: Any, exits: float, squares: float, c: Any) -> tuple[float]:
    """(√Ĝ + b/√N)²."""
    root = math.sqrt(frequency_gini(exits, squares)) + c[0] / math.sqrt(exits)
    return (root * root,)


def b_as_constants(setting: Setting) -> tuple[float]:
    """b = √(2·log(2n^{9/2}))."""
    return (math.sqrt(2 * (math.log(2) + 4.5 * math.log(_budget(setting, "b-as")))),)


def b_as() -> Policy:
    """The analogue of B-AS (same paper): an empirical Bernstein bonus."""
    return Policy("b-as", sum_over_transitions, b_as_terms, b_as_constants, target=lambda p: p.allocation)


# -- Bayes


def bayes_terms(row: Any, exits: float, squares: float, c: Any) -> tuple[float]:
    """N·(1 − Σp̄²)/(N + αS + 1), p̄ the posterior mean of a Dirichlet(α) row; c = (α, αS)."""
    return (exits * smoothed_gini(exits, squares, c[0], c[1]) / (exits + c[1] + 1.0),)


def bayes(alpha: float = 0.5) -> Policy:
    """The expected posterior loss under independent Dirichlet(α) rows, over T."""
    a = real_number(alpha, "alpha", above=0.0, meaning="the parameter of the Dirichlet prior")

    def constants(setting: Setting) -> tuple[float, float]:
        if setting.open:
            # The limit of more and more states that share the prior's weight: α → 0 while αS stays a (MATH §6, Open
            # states). With αS = 0, a row that has shown one successor would have variance 0 for ever.
            return 0.0, a
        return a, a * setting.size

    return Policy(
        "bayes",
        sum_over_transitions,
        bayes_terms,
        constants,
        target=lambda p: p.allocation,
        version=2,  # version 2: open states keep the prior's weight
    )


def _budget(setting: Setting, name: str) -> int:
    if setting.budget is None:
        raise InputError(f"the policy {name} needs a budget: its bonus depends on it")
    return setting.budget
