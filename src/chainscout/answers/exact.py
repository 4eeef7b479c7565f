"""The exact answer for a known matrix, by linear algebra."""

import numpy as np
import numpy.typing as npt

from ..chains import MarkovChain
from ..errors import InputError
from ._terms import ARRIVED, LAW, ON, Terms
from .question import Cost, LongRunShare, PassageTime, Reach

__all__ = ["start_law", "value", "values"]

_Array = npt.NDArray[np.float64]

#: From this many steps per state on, a power of the matrix is faster than single steps.
_MANY = 64


def value(matrix: _Array, terms: Terms, start: _Array | None = None) -> float:
    """The answer. ``start``: the law of the start, if the question leaves it to the chain."""
    if isinstance(terms.question, LongRunShare):
        return float(_stationary(matrix, terms) @ (terms.kind == ARRIVED))
    law = start_law(terms, start)
    found = values(matrix, terms)
    return float(law[law > 0] @ found[law > 0])  # 0 · ∞ is no number


def start_law(terms: Terms, start: _Array | None) -> _Array:
    """The law of the start over all states."""
    if terms.start >= 0:
        return np.asarray(np.eye(terms.size)[terms.start])
    if terms.start == LAW:
        return np.asarray(terms.law)
    if start is None:
        raise InputError("the question does not say where it starts, and nothing else does: give a start")
    return start


def values(matrix: _Array, terms: Terms) -> _Array:
    """The answer from each start, for all questions except a share."""
    question = terms.question
    on = terms.kind == ON
    if isinstance(question, Reach):
        arrived = (terms.kind == ARRIVED).astype(np.float64)
        if question.within is not None:
            return _repeated(np.where(on[:, None], matrix, 0.0), arrived * ~on, arrived, question.within)
        return _reached(matrix, terms)
    if isinstance(question, PassageTime):
        return _passage(matrix, terms)
    assert isinstance(question, Cost)
    if question.steps is not None:
        return _repeated(matrix, terms.cost, np.zeros(terms.size), question.steps)
    assert question.discount is not None
    return np.asarray(np.linalg.solve(np.eye(terms.size) - question.discount * matrix, terms.cost))


def _repeated(matrix: _Array, added: _Array, first: _Array, steps: int) -> _Array:
    """v ← matrix·v + added, ``steps`` times."""
    if steps > _MANY * len(matrix):
        whole = np.zeros((len(matrix) + 1,) * 2)
        whole[:-1, :-1], whole[:-1, -1], whole[-1, -1] = matrix, added, 1.0
        return np.asarray((np.linalg.matrix_power(whole, steps) @ np.append(first, 1.0))[:-1])
    for _ in range(steps):
        first = matrix @ first + added
    return first


def _leads_to(matrix: _Array, goal: npt.NDArray[np.bool_], through: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """The states from which a state of ``goal`` can be reached over states of ``through``."""
    found = goal.copy()
    while True:
        more = found | (through & (matrix[:, found] > 0).any(axis=1))
        if (more == found).all():
            return found
        found = more


def _reached(matrix: _Array, terms: Terms) -> _Array:
    on, arrived = terms.kind == ON, terms.kind == ARRIVED
    found = arrived.astype(np.float64)
    ways = on & _leads_to(matrix, arrived, on)
    if ways.any():
        inner = np.eye(int(ways.sum())) - matrix[np.ix_(ways, ways)]
        found[ways] = np.linalg.solve(inner, matrix[np.ix_(ways, arrived)].sum(axis=1))
    return np.asarray(np.minimum(found, 1.0))


def _passage(matrix: _Array, terms: Terms) -> _Array:
    arrived = terms.kind == ARRIVED
    others = ~arrived
    sure = ~_leads_to(matrix, ~_leads_to(matrix, arrived, others), others) | arrived
    found = np.where(arrived, 0.0, np.inf)
    ways = sure & others
    if ways.any():
        found[ways] = np.linalg.solve(np.eye(int(ways.sum())) - matrix[np.ix_(ways, ways)], np.ones(int(ways.sum())))
    return found


def _stationary(matrix: _Array, terms: Terms) -> _Array:
    return MarkovChain(matrix, states=list(terms.states)).stationary
