"""Widest first: the chain whose answer is furthest from its target goes first (MATH §11).

Every other rule's index is a function of one chain's counts. This one is not: the width of an answer depends on the
order of the cards and on how far a replay has read them. So its sums are not sums over rows. The code that replays the
chains (``study``, ``engine.answering``) sets them to three numbers whenever it evaluates the answers: target/width, the
T of this evaluation, and the T of the next one. ``terms`` adds nothing to them.
"""

import math
from typing import Any

from ..errors import InputError
from .policy import Policy, Setting

#: The index of a chain whose answer is infinitely wide, times 1 + T: above every width.
UNBOUNDED = 1e200


def no_terms(row: Any, exits: float, squares: float, c: Any) -> tuple[float, float, float]:
    """Zeros: the sums stay as the replay set them."""
    return (0.0, 0.0, 0.0)


def widest_index(sums: Any, transitions: float, c: Any) -> float:
    """width/target at the last evaluation. Among infinite widths, the chain with the fewest transitions goes first.

    ``sums``: target/width (0: the width is infinite; infinite: nothing is left to do), and the T of the last and of
    the next evaluation. Pending transitions beyond the next evaluation reduce the width like 1/√T.
    """
    reached = float(sums[0])
    if reached == 0.0:
        return UNBOUNDED / (1.0 + transitions)
    if transitions <= sums[2]:
        return 1.0 / reached
    return math.sqrt(sums[1] / transitions) / reached


def widest() -> Policy:
    """The chain whose answer is widest, relative to its target, goes first."""
    return Policy("widest", widest_index, no_terms, _in_a_study, answering=True)


def _in_a_study(setting: Setting) -> tuple[float, ...]:
    if setting.problem is not None:
        raise InputError(
            "the policy 'widest' allocates for answers, and an experiment has no questions: it is for studies with "
            "questions, and for benchmarks/bench_answers.py"
        )
    return ()
