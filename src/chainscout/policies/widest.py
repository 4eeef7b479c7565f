"""Widest first: the chain whose answer is furthest from its target (MATH §11).

Every other rule's index is a function of one chain's counts. This one is not: the width of an answer depends on the
order of the cards and on how far a replay has read them. So its sums are no sums over rows. Whoever replays the chains
(``study``, ``engine.answering``) puts three numbers in their place after each look at the answers: how much of what is
wanted is reached, and the T of this look and of the next one. ``terms`` adds nothing to them.
"""

import math
from typing import Any

from ..errors import InputError
from .policy import Policy, Setting

#: The index of a chain whose answer is infinitely wide, times 1 + T: above every width.
UNBOUNDED = 1e200


def no_terms(row: Any, exits: float, squares: float, c: Any) -> tuple[float, float, float]:
    """What is put in place of the sums stays as it is."""
    return (0.0, 0.0, 0.0)


def widest_index(sums: Any, transitions: float, c: Any) -> float:
    """The width over its target as of the last look. Infinite widths take turns by fewest transitions.

    ``sums``: target/width (0: the width is infinite; infinite: nothing is left to do), the T of the last look and that
    of the next one. Pending transitions beyond the next look make the width smaller as 1/√T.
    """
    reached = float(sums[0])
    if reached == 0.0:
        return UNBOUNDED / (1.0 + transitions)
    if transitions <= sums[2]:
        return 1.0 / reached
    return math.sqrt(sums[1] / transitions) / reached


def widest() -> Policy:
    """The chain whose answer is widest, measured by its target, goes first."""
    return Policy("widest", widest_index, no_terms, _in_a_study, answering=True)


def _in_a_study(setting: Setting) -> tuple[float, ...]:
    if setting.problem is not None:
        raise InputError(
            "the policy 'widest' allocates for answers, and an experiment has no questions: it is for studies with "
            "questions, and for benchmarks/bench_answers.py"
        )
    return ()
