"""BA-MC (Talebi & Maillard 2019, §3) and its variant with tighter constants."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..certificates.paper import STATED, TIGHT, factors, index, row_terms
from ..certificates.paper import entry as paper_entry
from ..counts import smoothing
from ..errors import InputError
from ..guarantees import beta, lemma_4_constants, unknown_horizon_beta, zeta
from ..validation import failure_probability
from .bandits import sum_over_transitions
from .policy import Policy, Setting

if TYPE_CHECKING:
    from ..problems import Problem

# c = (S, α, the factors of the three sums)


def entry(count: float, exits: float, c: Any) -> float:
    """One entry's part of the index's second sum."""
    return paper_entry(count, exits, c[0], c[1])


def terms(deviations: float, exits: float, squares: float, c: Any) -> tuple[float]:
    """The row's part of T·b."""
    first, second, third = row_terms(deviations, exits, squares, c[0], c[1])
    return (c[2] * first + c[3] * second + c[4] * third,)


# Without a horizon β grows with T, so the three sums are kept separately. c = (S, α, 6.6, 28, log(6·ΣS²/δ)).


def endless_terms(deviations: float, exits: float, squares: float, c: Any) -> tuple[float, float, float]:
    """The three sums of the index."""
    return row_terms(deviations, exits, squares, c[0], c[1])


def endless_index(sums: Any, transitions: float, c: Any) -> float:
    """b with β(T) for the chain's own T (MATH §6, Unknown horizon). Its logarithms repeat on one platform only."""
    level = unknown_horizon_beta(transitions, c[4])
    return index(sums, transitions, factors(c[0], level, (c[2], c[3])))


def ba_mc(delta: float = 0.05, alpha: float | str | None = None) -> Policy:
    """The paper's algorithm: index b of §3. An α other than 1/(3S) uses Lemma 4's general constants."""
    failure_probability(delta)
    if alpha is None:
        return _policy("ba-mc", delta, STATED)
    smoothing(alpha, 1)  # refuses an invalid α now, not only when the first chain is prepared

    def constants(setting: Setting) -> tuple[float, ...]:
        _need_states("ba-mc", setting)
        a = smoothing(alpha, setting.size)
        if setting.budget is None:
            raise InputError("ba-mc with another alpha than 1/(3S) needs a budget: its constants depend on it")
        # Lemma 4 with a union over all pairs: 2·ΣS² events, without the factor 3, which only α = 1/(3S) needs.
        level = zeta(setting.budget, delta, 2 * setting.pairs)
        first, second = lemma_4_constants(setting.size, level, a)
        return (setting.size, a, 2.0 * level, first, second * setting.size)

    return Policy("ba-mc", sum_over_transitions, terms, constants, entry, target=_optimal)


def ba_mc_tight(delta: float = 0.05) -> Policy:
    """BA-MC with the bound |1 − P − P̂| ≤ 1, where the paper's Lemmas 4 and 8 use 2: constants 3.78 and 8.76."""
    failure_probability(delta)
    return _policy("ba-mc-tight", delta, TIGHT)


def _policy(name: str, delta: float, stated: tuple[float, float]) -> Policy:
    def constants(setting: Setting) -> tuple[float, ...]:
        assert setting.budget is not None  # without a budget the policy's endless form is used
        _need_states(name, setting)
        level = beta(setting.budget, delta, setting.pairs)
        return (setting.size, smoothing(None, setting.size), *factors(setting.size, level, stated))

    def endless_constants(setting: Setting) -> tuple[float, ...]:
        _need_states(name, setting)
        return (setting.size, smoothing(None, setting.size), *stated, math.log(6 * setting.pairs / delta))

    endless = Policy(name, endless_index, endless_terms, endless_constants, entry, target=_optimal)
    return Policy(name, sum_over_transitions, terms, constants, entry, target=_optimal, endless=endless)


def _optimal(problem: "Problem") -> npt.NDArray[np.float64]:
    return problem.allocation


def _need_states(name: str, setting: Setting) -> None:
    if setting.open:
        raise InputError(f"the policy {name} needs to know how many states there are: it cannot have open states")
