"""BA-MC (Talebi & Maillard 2019, §3) and its variant with tighter constants."""

import math
from typing import Any

from ..certificates import paper
from ..checks import failure_probability
from ..counts import smoothing
from ..errors import InputError
from ..guarantees import beta, lemma_4_constants, unknown_horizon_beta, zeta
from .policy import Policy, Setting


def terms(row: Any, exits: float, squares: float, c: Any) -> tuple[float, float, float]:
    """The three sums of the index."""
    return paper.row_terms(row, len(row), exits, c[0], c[1])


def index(sums: Any, transitions: float, c: Any) -> float:
    """b of the paper's §3; c[4] is β, or 0 if the horizon is unknown and c[5] is log(6·ΣS²/δ)."""
    level = c[4]
    if level == 0.0:
        level = unknown_horizon_beta(transitions, c[5])
    return paper.index(sums[0], sums[1], sums[2], transitions, c[0], level, (c[2], c[3]))


def ba_mc(delta: float = 0.05, alpha: float | str | None = None) -> Policy:
    """The paper's algorithm: index b of §3. Another α than 1/(3S) takes Lemma 4's general constants."""
    failure_probability(delta)
    if alpha is None:
        return _policy("ba-mc", delta, paper.STATED)

    def constants(setting: Setting) -> tuple[float, ...]:
        a = smoothing(alpha, setting.size)
        if setting.budget is None:
            raise InputError("ba-mc with another alpha than 1/(3S) needs a budget: its constants depend on it")
        # Lemma 4 with a union over all pairs: 2·ΣS² events, and no factor 3 that only α = 1/(3S) needs.
        level = zeta(setting.budget, delta, 2 * setting.pairs)
        first, second = lemma_4_constants(setting.size, level, a)
        return (setting.size, a, first / level**1.5, second / level**2, level, 0.0)

    return Policy("ba-mc", index, terms, constants, target=lambda problem: problem.allocation)


def ba_mc_tight(delta: float = 0.05) -> Policy:
    """BA-MC with |1 − P − P̂| ≤ 1 where the paper's Lemmas 4 and 8 use 2: constants 3.78 and 8.76."""
    failure_probability(delta)
    return _policy("ba-mc-tight", delta, paper.TIGHT)


def _policy(name: str, delta: float, stated: tuple[float, float]) -> Policy:
    def constants(setting: Setting) -> tuple[float, ...]:
        level = 0.0 if setting.budget is None else beta(setting.budget, delta, setting.pairs)
        events = math.log(6 * setting.pairs / delta)
        return (setting.size, smoothing(None, setting.size), *stated, level, events)

    return Policy(name, index, terms, constants, target=lambda problem: problem.allocation)
