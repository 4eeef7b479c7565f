"""Furthest first: the chain that is furthest from what the study is for goes first (MATH §16).

Every other rule's index is a function of one chain's counts. This one is made of bounds: a chain's certificate over its
target loss, or the squared width of its answers over the squared target width. So its sums are not sums over rows. The
study sets them to two numbers whenever it looks at a chain's bounds: the T at which the ratio is expected to be 1, and
the transitions of a warm start, if the bound does not read them. ``terms`` adds nothing to them.
"""

import math
from typing import Any

from ..errors import InputError
from .policy import Policy, Setting

#: The index of a chain whose ratio is infinite, times 1 + T; and a number between such an index and every finite one.
UNBOUNDED, LARGEST = 1e200, 1e100


def no_terms(row: Any, exits: float, squares: float, c: Any) -> tuple[float, float]:
    """Zeros: the sums stay as the study set them."""
    return (0.0, 0.0)


def predicted_ratio(sums: Any, transitions: float, c: Any) -> float:
    """The ratio that is expected now: bounds fall as 1/T. Of infinite ratios, the one with the fewest transitions.

    ``sums``: the T at which the aim is expected to be reached, and how many transitions the bound does not read.
    """
    own = transitions - float(sums[1])
    if math.isinf(sums[0]) or own <= 0.0:
        return UNBOUNDED / (1.0 + max(0.0, own))
    return float((sums[0] - sums[1]) / own)


def furthest() -> Policy:
    """The chain whose bound is furthest from the study's target goes first."""
    return Policy("furthest", predicted_ratio, no_terms, _in_a_study, aiming=True)


def _in_a_study(setting: Setting) -> tuple[float, ...]:
    if setting.problem is not None:
        raise InputError(
            "the policy 'furthest' advances the chain that is furthest from a study's target, and an experiment has no "
            "target: it is for studies"
        )
    return ()
