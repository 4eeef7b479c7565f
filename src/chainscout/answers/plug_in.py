"""Answers without a guarantee: the delta method and a posterior. At best they are valid for a single look."""

import math

import numpy as np
import numpy.typing as npt

from ..counts import Counts
from ..errors import InputError
from ..validation import shown
from . import exact
from ._terms import ON, WHERE_PATHS_START, Terms
from .question import LongRunShare

__all__ = ["delta_method", "posterior"]

_Array = npt.NDArray[np.float64]

#: Both methods need at least this many exits in every row on the way.
_FEWEST_EXITS = 10
#: The number of draws from the posterior.
_DRAWS = 2000


def delta_method(counts: Counts, terms: Terms, delta: float, start: _Array | None = None) -> tuple[float, float, float]:
    """Estimate, lower and upper end from the plug-in value and its gradient."""
    from scipy.special import ndtri  # here, because it loads slowly

    matrix = _frequencies(counts, terms, start)
    estimate = exact.value(matrix, terms, start)
    if not math.isfinite(estimate):
        raise InputError("the plug-in value is infinite, so that the delta method has nothing to say")
    slope = exact.gradient(matrix, terms, start)
    spread = (matrix * slope**2).sum(axis=1) - (matrix * slope).sum(axis=1) ** 2
    variance = float((np.maximum(spread, 0.0) / np.maximum(counts.exits, 1)).sum())
    half = -float(ndtri(delta / 2)) * math.sqrt(variance)
    return estimate, estimate - half, estimate + half


def posterior(
    counts: Counts, terms: Terms, delta: float, start: _Array | None = None, seed: int = 0
) -> tuple[float, float, float]:
    """The mean and two quantiles of the answer if rows have Dirichlet(½) priors."""
    _frequencies(counts, terms, start)
    rng = np.random.default_rng(seed)
    table = counts.transitions + 0.5
    for x, y in terms.impossible:
        table[x, y] = 0.0
    values = np.empty(_DRAWS)
    for draw in range(_DRAWS):
        gammas = rng.standard_gamma(table)
        matrix = gammas / gammas.sum(axis=1, keepdims=True)
        matrix[terms.absorbing] = np.eye(terms.size)[terms.absorbing]
        values[draw] = exact.value(matrix, terms, start)
    low, high = np.quantile(values, [delta / 2, 1 - delta / 2])
    return float(values.mean()), float(low), float(high)


def _frequencies(counts: Counts, terms: Terms, start: _Array | None) -> _Array:
    """The matrix of relative frequencies, if every row on the way has enough exits."""
    if counts.open_states and not terms.question.complete:
        raise InputError("this method needs all states: the chain's states are open, unless declared complete")
    if terms.start == WHERE_PATHS_START and start is None and not isinstance(terms.question, LongRunShare):
        raise InputError("counts do not say where paths start: give the question a start")
    matrix = counts.matrix(0.0)
    exits = counts.exits
    going = (terms.kind == ON) & ~terms.absorbing
    if isinstance(terms.question, LongRunShare):
        going[:] = True
        reached = np.ones(terms.size, dtype=bool)
    else:
        reached = exact.start_law(terms, start) > 0
        while True:
            seen = (matrix > 0) & (exits > 0)[:, None] & going[:, None]
            more = reached | seen[reached].any(axis=0)
            if (more == reached).all():
                break
            reached = more
    few = [int(x) for x in np.flatnonzero(reached & going) if exits[x] < _FEWEST_EXITS]
    if few:
        what = f"the row of {shown(terms.label(few[0]))} on the way has {exits[few[0]]} exits"
        raise InputError(f"this method needs at least {_FEWEST_EXITS} exits in every row on the way: {what}")
    matrix[terms.absorbing] = np.eye(terms.size)[terms.absorbing]
    return matrix
