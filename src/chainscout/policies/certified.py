"""Policies based on the mixture certificate. They are not sums over rows, so they summarise the whole chain."""

import math
from typing import Any

from ..certificates.mixture import OPEN, combine, largest_excess, smoothing_excess
from ..rows import frequency_gini
from ..validation import failure_probability
from .bandits import sum_over_transitions
from .policy import Policy, Setting


def constants_for(delta: float) -> Any:
    """c = (1 − 1/S, S − 1, log(K/δ), αS)."""
    failure_probability(delta)

    def constants(setting: Setting) -> tuple[float, ...]:
        log_inverse = math.log(setting.chains / delta)
        if setting.open:  # the cap is 1, and the cost is its limit (MATH §6, Open states)
            return (1.0, OPEN, log_inverse, 1 / 3)
        return (1 - 1 / setting.size, setting.size - 1.0, log_inverse, 1 / 3)

    return constants


def excess(exits: Any, size: int, c: Any, reals: Any, wholes: Any) -> tuple[float, int]:
    """W̄ and the number of states left at least once. Their exits are collected in ``reals``."""
    number = 0
    for x in range(size):
        if exits[x] > 0:
            reals[number] = exits[x]
            number += 1
    return largest_excess(reals, reals, number, c[1], c[2], wholes, reals[size:], wholes[size:]), number


def certifier_summary(exits: Any, squares: Any, size: int, c: Any, reals: Any, wholes: Any) -> tuple[float]:
    """T·b: the numerator of the certificate."""
    bound = 0.0
    if c[1] > 0.0:  # with one state there is nothing to learn
        width, number = excess(exits, size, c, reals, wholes)
        bound = combine(width, smoothing_excess(reals, number, c[0], c[3]), 1.0)
    return (bound,)


def certifier(delta: float = 0.05) -> Policy:
    """Index b of the mixture certificate: reaches a loss that ``mixture`` certifies with the fewest samples."""
    return Policy(
        "certifier",
        sum_over_transitions,
        None,
        constants_for(delta),
        summary=certifier_summary,
        block=0.01,
        version=2,  # version 2: a chain of one state has index 0
    )


def gini_ucb_summary(exits: Any, squares: Any, size: int, c: Any, reals: Any, wholes: Any) -> tuple[float]:
    """min{S₊·cap, ΣĜ + 2√(W̄·Σ max(cap − Ĝ, 0)/N)}: at least ΣG over the states left, on the certificate's event."""
    width, number = excess(exits, size, c, reals, wholes)
    total = 0.0
    room = 0.0
    for x in range(size):
        if exits[x] > 0:
            gini = frequency_gini(exits[x], squares[x])
            total += gini
            room += max(c[0] - gini, 0.0) / exits[x]
    return (min(number * c[0], total + 2.0 * math.sqrt(width * room)),)


def gini_ucb(delta: float = 0.05) -> Policy:
    """Optimism with a guarantee: an upper confidence bound on ΣG, over T."""
    return Policy(
        "gini-ucb",
        sum_over_transitions,
        None,
        constants_for(delta),
        summary=gini_ucb_summary,
        block=0.01,
        target=lambda problem: problem.allocation,
    )
