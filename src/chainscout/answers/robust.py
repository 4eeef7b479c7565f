"""Counts without their order: a set of likely rows for each state, and the extremes of an answer over all of them.

For each row the set {p : log(Dirichlet(½) mixture of the row's likelihoods) − Σ_y N[x,y]·log p(y) < log(rows/δ)}
contains the true row at all times with probability 1 − δ/rows (Ville's inequality). Dynamic programming over the worst
row of each set gives upper and lower answers (MATH §11). The direction of the iteration makes it safe: an upper bound
comes from above and a lower one from below, so each step is a valid bound.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..counts import Counts
from ._kernels import extreme_rows, kernel
from ._terms import ARRIVED, FAILED, ON, Terms
from .exact import start_law
from .question import Cost, LongRunShare, PassageTime, Reach

__all__ = ["Rows", "ends", "extremes", "interval", "rows_of"]

_Array = npt.NDArray[np.float64]

#: Steps of an iteration without an end, and the change below which it stops.
_STEPS, _CHANGE = 20_000, 1e-10
#: The amount by which a bound is moved outwards, to allow for rounding.
_SLACK = 1e-11


class Rows(NamedTuple):
    """The sets of likely rows."""

    #: Row x has the successors seen[first[x]:first[x+1]] with these counts.
    first: npt.NDArray[np.int64]
    seen: npt.NDArray[np.int64]
    number: _Array
    #: N_x, and the least log-likelihood of the set.
    exits: _Array
    least: _Array
    #: Whether y was not seen from x, and is not impossible.
    unseen: npt.NDArray[np.bool_]


def rows_of(counts: Counts, terms: Terms, delta: float) -> Rows:
    """The sets of a chain's rows, which hold together with probability 1 − δ."""
    from scipy.special import gammaln  # here, because it loads slowly

    size = counts.size
    counts.need_dense()
    unseen = np.ones((size, size), dtype=bool)
    for x, y in terms.impossible:
        unseen[x, y] = False
    first, seen, count, exits, least = [0], [], [], [], []
    level = math.log(size / delta)
    for x in range(size):
        row = dict(sorted(counts.rows().get(x, {}).items()))
        outcomes = int(unseen[x].sum())
        numbers = np.array(list(row.values()), dtype=np.float64)
        total = float(numbers.sum())
        mixture = float(
            gammaln(outcomes / 2)
            - gammaln(total + outcomes / 2)
            + (gammaln(numbers + 0.5) - gammaln(0.5)).sum()
        )  # fmt: skip
        rounding = 1e-9 + 4e-16 * float(gammaln(total + outcomes / 2) + np.abs(gammaln(numbers + 0.5)).sum())
        seen += list(row)
        count += numbers.tolist()
        first.append(len(seen))
        exits.append(total)
        least.append(mixture - level - rounding)
        unseen[x, list(row)] = False
    whole = np.int64
    return Rows(
        np.array(first, whole), np.array(seen, whole), np.array(count, float), np.array(exits), np.array(least), unseen
    )


def extremes(rows: Rows, value: _Array, wanted: npt.NDArray[np.bool_], *, upper: bool) -> _Array:
    """For each row that is wanted, the largest (or the least) Σ_y p(y)·value(y) over its set, from outside."""
    found = np.zeros(len(value))
    given = np.ascontiguousarray(value if upper else -value, dtype=np.float64)
    kernel(extreme_rows)(*rows, given, _SLACK, wanted, found)
    return found if upper else -found


def ends(rows: Rows, terms: Terms, *, upper: bool) -> _Array:
    """One end of the answer from each start, for all questions except a share: an upper or a lower bound."""
    question = terms.question
    on = terms.kind == ON
    moves = on & ~terms.absorbing
    if isinstance(question, Reach):
        arrived = (terms.kind == ARRIVED).astype(np.float64)
        if question.within is not None:
            found = arrived
            for _ in range(question.within):
                following = np.where(on, np.clip(extremes(rows, found, on, upper=upper), 0.0, 1.0), arrived)
                if np.abs(following - found).max() < (0.0 if upper else _CHANGE):
                    break  # a lower bound may stop early: it only grows with the steps
                found = following
            return np.asarray(found)
        first = np.where(terms.kind == FAILED, 0.0, 1.0) if upper else arrived

        def reach(w: _Array) -> _Array:
            return np.asarray(np.where(on, np.clip(extremes(rows, w, on, upper=upper), 0.0, 1.0), arrived))

        return _limit(reach, first)
    if isinstance(question, PassageTime):
        return _passage(rows, terms, upper=upper)
    assert isinstance(question, Cost)
    cost = terms.cost
    if question.steps is not None:
        found = np.zeros(terms.size)
        for _ in range(question.steps):
            found = cost + np.where(moves, extremes(rows, found, moves, upper=upper), found)
        return np.asarray(found)
    discount = question.discount
    assert discount is not None
    first = np.full(terms.size, (terms.largest if upper else terms.least) / (1 - discount))

    def step(w: _Array) -> _Array:
        return np.asarray(cost + discount * np.where(moves, extremes(rows, w, moves, upper=upper), w))

    return _limit(step, first)


def _limit(step: Callable[[_Array], _Array], first: _Array) -> _Array:
    """Steps from a valid bound towards the fixed point. Every step of the way is a valid bound."""
    scale = max(1.0, float(np.abs(first).max()))
    for _ in range(_STEPS):
        following = step(first)
        if np.abs(following - first).max() <= _CHANGE * scale:
            return np.asarray(following)
        first = following
    return first


def _passage(rows: Rows, terms: Terms, *, upper: bool) -> _Array:
    on = terms.kind == ON
    arrived = terms.kind == ARRIVED
    never = terms.kind == FAILED  # absorbing: the target is not reached from there
    if not upper:

        def step(w: _Array) -> _Array:  # a smaller number replaces ∞: the bound stays valid
            following = np.where(on, 1 + extremes(rows, w, on, upper=False), 0.0)
            return np.asarray(np.where(never, following.max(), following))

        return np.asarray(np.where(never, np.inf, _limit(step, np.zeros(terms.size))))
    wanted = terms.reachable()
    if (never & wanted).any() or ((rows.exits == 0) & on & wanted).any():
        return np.where(arrived, 0.0, np.inf)
    outside = np.flatnonzero(~wanted)
    kept = rows._replace(unseen=rows.unseen.copy())
    kept.unseen[:, outside] = False  # nothing leads there
    finite = np.where(arrived, 0.0, 1.0)
    active = on & wanted
    for _ in range(_STEPS):
        following = np.where(active, 1 + extremes(kept, finite, active, upper=True), 0.0)
        if not np.isfinite(following).all() or following.max() > 1e12:
            return np.where(arrived, 0.0, np.inf)
        done = np.abs(following - finite).max() <= 1e-9 * following.max()
        finite = following
        if done:
            break
    for more in (1e-8, 1e-6, 1e-4, 1e-2):  # T̄w ≤ w makes w an upper bound
        raised = finite * (1 + more)
        if (np.where(active, 1 + extremes(kept, raised, active, upper=True), 0.0) <= raised).all():
            return np.where(wanted | arrived, raised, np.inf)
    return np.where(arrived, 0.0, np.inf)


def interval(counts: Counts, terms: Terms, delta: float) -> tuple[float, float]:
    """Both ends of the answer. The question must have its own start."""
    if isinstance(terms.question, LongRunShare):
        return 0.0, 1.0
    rows = rows_of(counts, terms, delta)
    law = start_law(terms, None)
    found = []
    for upper in (False, True):
        from_each = ends(rows, terms, upper=upper)
        found.append(float(law[law > 0] @ from_each[law > 0]))
    return found[0], found[1]
