"""The event on which ``sharp`` holds: its weights, the price of every choice, and a box for every entry.

The certificate rests on one supermartingale a chain (docs/certificates.md, step A). If the states are declared, it is

    M = JOINT·Σ_f w_f Σ_m w_m E_o Π_x Z_x(ρ_x)  +  (SINGLE/S²)·Σ_{x,y} R_xy .

While M < K/δ, two things hold. For every family f, level m and offsets o, Σ_x log Z_x(ρ_x) ≤ B. And every probability
P(x,y) lies in a box. If the states are not declared, the second part becomes three, with a weight π for each row:

    SEEN·Σ_x π_x Σ_y P(x,y)·R_xy  +  MISSING·Σ_v w_v Π_x V_x(v)  +  MISSING·Σ_x π_x Σ_v w_v V_x(v) .

They give boxes for the labels that a row was seen to go to, and bounds on the probability of all others together, the
row's *missing mass*. Validity depends on every file of this folder but ``search``.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

#: The weights of the two parts of the martingale: joint tilts of all rows, and single entries.
JOINT, SINGLE = 0.85, 0.15


class Family(NamedTuple):
    """A law of offsets: its weight, the powers of four of a step, and the price of offset 0 and of each step more."""

    weight: float
    stride: int
    first: float
    each: float


#: All zero | geometric 1/2 | geometric 1/4 | uniform on 0 … max(m, 0), whose price depends on the level m.
FAMILIES = (
    Family(0.80, 0, 0.0, 0.0), Family(0.06, 1, math.log(2.0), math.log(2.0)),
    Family(0.08, 2, math.log(4.0 / 3.0), math.log(4.0)), Family(0.06, 1, 0.0, 0.0),
)  # fmt: skip
ZERO, UNIFORM = 0, 3
#: The least level, and the sum of 1/((k+1.5)(k+2.5)), k = max(1−m, m−2), over all levels m ≥ LEAST_LEVEL: the levels
#: from 2 on telescope to 1/1.5.
LEAST_LEVEL = -1
LEVEL_SUM = 1 / 1.5 + 1 / (1.5 * 2.5) + 1 / (2.5 * 3.5) + 1 / (3.5 * 4.5)
#: The weights of the parts of R_xy: never went to y | always went to y | the Beta(½,½) mixture.
NEVER, ALWAYS, BETA = 0.3, 0.3, 0.4
#: Two neighbouring levels at once: the mean of ρ and 4ρ over ρ, and what a dimension of a row costs for it.
PAIR_SCALE = 2.5
PAIR_COST = 0.5 * math.log(1.25)

#: States that are not declared: the weights of single entries, and of the missing mass, of all rows and of single ones.
SEEN, MISSING = 0.09, 0.03
#: V_x(v) for v = e^{−z}: z and w_v. The first is v = 0.
SURPRISES = np.array([math.inf, 4.0, 3.0, 2.0, 1.25, 0.75, 0.4, 0.2, 0.1])
SURPRISE_WEIGHTS = np.array([0.3] + [0.0875] * 8)

#: An allowance for rounding errors: relative to the sum of the absolute values of all terms, and its least value.
RELATIVE, ABSOLUTE = 2e-15, 1e-9
#: A few operations on numbers near one, or a short sum of them, are off by less than SLACK; times UP rounds upwards.
SLACK = 1e-12
UP = 1.0 + SLACK
#: And one minus a number that is at most one.
LAST_DIGITS = 1e-14


def level_cost(m: int) -> float:
    """−log w_m."""
    k = max(1 - m, m - 2)
    return math.log((k + 1.5) * (k + 2.5) * LEVEL_SUM)


def offset_cost(family: int, offset: npt.NDArray[Any] | int, m: int, pair: bool) -> Array:
    """−log of the probability of a row's offset at level m, or for the mean of the levels m and m + 1."""
    first, each = FAMILIES[family][2:]
    if family == UNIFORM:
        levels = (m, m + 1) if pair else (m,)
        first = sum(math.log(max(level, 0) + 1.0) for level in levels) / len(levels)
    return np.asarray(first + each * np.asarray(offset, dtype=np.float64))


def has_offsets(family: int, offset: npt.NDArray[Any], m: int) -> bool:
    """Whether the family has all these offsets at level m."""
    most = {ZERO: 0, UNIFORM: max(m, 0)}.get(family, math.inf)
    return bool(((offset >= 0) & (offset <= most) & (offset == np.floor(offset))).all())


def scale(m: npt.NDArray[Any] | int, family: int, offset: npt.NDArray[Any] | int, pair: bool) -> Array:
    """ρ = 4^{m − stride·o}; or the mean of it and four times it."""
    return np.asarray(np.ldexp(PAIR_SCALE if pair else 1.0, 2 * (m - FAMILIES[family].stride * np.asarray(offset))))


def joint_cost(log_inverse: float, family: int, m: int, pair: bool) -> float:
    """B without the rows' parts: log(K/δ) − log JOINT − log w_f − log w_m.

    For two levels at once, Jensen's inequality with weights ½, ½ gives the mean of both costs minus log 2.
    """
    cost = log_inverse - math.log(JOINT) - math.log(FAMILIES[family].weight)
    if pair:
        return cost + 0.5 * (level_cost(m) + level_cost(m + 1)) - math.log(2.0)
    return cost + level_cost(m)


def row_cost(family: int, offset: npt.NDArray[Any], m: int, pair: bool, dimension: Array | float) -> Array:
    """The amount that one visited row adds to B: the price of its offset, and that of two levels."""
    return offset_cost(family, offset, m, pair) + (PAIR_COST * np.asarray(dimension) if pair else 0.0)


def log_gamma(values: Array) -> Array:
    """log Γ, element by element. Counts repeat, so each value is computed once."""
    distinct, places = np.unique(values, return_inverse=True)
    return np.array([math.lgamma(value) for value in distinct.tolist()])[places.reshape(np.shape(values))]


def least_likelihood(count: Array, exits: Array, level: Array | float) -> Array:
    """The p with R_xy ≤ e^level have a log-likelihood n·log p + (N − n)·log(1 − p) of at least this."""
    parts = log_gamma(count + 0.5), log_gamma(exits - count + 0.5), -log_gamma(exits + 1.0)
    weight = math.log(BETA / math.pi) + sum(parts)  # BETA·B(n + ½, N − n + ½)/B(½, ½)
    edge = (count == 0) | (count == exits)
    # Never or always: NEVER + BETA·B(½, N + ½)/π is the whole of R_xy over the likelihood.
    weight = np.where(edge, np.logaddexp(math.log(NEVER), weight), weight)
    return np.asarray(weight - level - ABSOLUTE - RELATIVE * sum(map(np.abs, parts)))


def bisected(inside: Array, holds: Callable[[Array], npt.NDArray[np.bool_]]) -> Array:
    """The largest p at which this holds, from outside: between ``inside``, where it does, and one."""
    outside = np.ones(np.shape(inside))
    with np.errstate(divide="ignore", invalid="ignore"):  # the middle may round to one
        for _ in range(60):
            middle = 0.5 * (inside + outside)
            kept = holds(middle)
            inside, outside = np.where(kept, middle, inside), np.where(kept, outside, middle)
    return np.minimum(1.0, outside * UP)


def upper_end(count: Array, exits: Array, least: Array) -> Array:
    """The largest p at which n·log p + (N − n)·log(1 − p) ≥ ``least``, from outside; 1 if n = N."""
    rest = exits - count
    inside = bisected(
        count / exits, lambda p: np.where(count > 0, count * np.log(p), 0.0) + rest * np.log1p(-p) >= least
    )
    return np.where(rest > 0, inside, 1.0)


def row_weight(rows: int) -> float:
    """π of each of so many rows. The order of their first steps is not used: the j-th one has 1/(j(j + 1)) or more."""
    return 1.0 / (rows * (rows + 1.0))


def boxes(count: Array, exits: Array, holes: Array, level: Array | float) -> tuple[Array, Array]:
    """An interval that contains P(x,y) while R_xy ≤ e^level, if ``count`` of ``exits`` steps are known to go to y.

    Each of the ``holes``, the steps of this row whose outcomes are not known, may have gone to y or elsewhere: the
    lower end is that of n of N + h steps, the upper end that of n + h of N + h. The lower end for n of N steps is one
    minus the upper end for N − n.
    """
    whole = exits + holes
    high = upper_end(count + holes, whole, least_likelihood(count + holes, whole, level))
    low = 1.0 - upper_end(whole - count, whole, least_likelihood(whole - count, whole, level))
    return np.where(count > 0, np.maximum(0.0, low - LAST_DIGITS), 0.0), high


def seen_boxes(count: Array, exits: Array, holes: Array, level: float) -> tuple[Array, Array]:
    """An interval that contains P(x,y) while P(x,y)·R_xy ≤ e^level, for a label that is known to have been seen."""
    whole = exits + holes
    one = np.maximum(1.0, whole - 1.0)

    def ends(seen: Array) -> tuple[Array, Array]:
        least = least_likelihood(seen, whole, level)
        return 1.0 - upper_end(whole - seen, one, least), upper_end(seen - 1.0, one, least)

    low = np.where((whole > 1.0) & (count > 1.0), np.maximum(0.0, ends(count)[0] - LAST_DIGITS), 0.0)
    return low, np.where(whole > 1.0, ends(count + holes)[1], 1.0)


def heaviest(exits: Array, level: float) -> Array:
    """m̄: no label that a row was never seen to go to has a larger probability. There log p − N·log(1 − p) is the most
    that ``level`` allows."""
    allowed = level - least_likelihood(np.zeros(len(exits)), exits, 0.0)
    return bisected(
        np.zeros(len(exits)),
        lambda p: (1.0 + RELATIVE) * np.log(p) - (1.0 - RELATIVE) * exits * np.log1p(-p) <= allowed,
    )  # fmt: skip


def hidden(exits: Array, holes: Array, level: float) -> Array:
    """A bound on the probability of all labels of a row that holes alone may have reached: s̄."""
    found = np.where(holes > 0.0, 1.0, 0.0)
    for x in np.flatnonzero((holes > 0.0) & (holes <= 100.0)):
        met = np.arange(1.0, holes[x] + 1.0)
        whole = np.full(len(met), exits[x] + holes[x])
        found[x] = min(1.0, holes[x] * float((seen_boxes(met, whole, np.zeros(len(met)), level)[1] / met).max()))
    return found


class Missing(NamedTuple):
    """What the event says of the missing mass q_x of each row: q̄, and for each v that Σ_x rate_x·q_x ≤ most."""

    mass: Array
    #: By v: (N⁺ − 1)·(1 − v) of each row, and B₂(v).
    rate: Array
    most: Array


def missing_mass(
    exits: Array, holes: Array, labels: Array, mute: Array, log_inverse: float, weight: float, level: float,
    copies: Array | float = 1.0,
) -> Missing:  # fmt: skip
    """``labels``: how many labels each row was seen to go to; ``mute``: the holes of the rows that have nothing else;
    ``weight``: π; ``level``: that of ``seen_boxes``; ``copies``: how many rows each stands for."""
    whole, news = exits + holes, labels + holes - 1.0
    late = np.maximum(0.0, whole - 1.0)
    z, kept = SURPRISES[:, None], -np.expm1(-SURPRISES)[:, None]  # kept: 1 − v
    with np.errstate(invalid="ignore"):
        paid = np.where(news > 0.0, news * z, 0.0)
        muted = np.where(mute > 1.0, (mute - 1.0) * z, 0.0).sum(axis=1)
    covered = hidden(exits, holes, level)
    cost = log_inverse - math.log(MISSING) - np.log(SURPRISE_WEIGHTS) + ABSOLUTE
    alone, joint = cost - math.log(weight), cost + (paid * copies).sum(axis=1) + muted
    least = np.minimum(alone[:, None] + paid, joint[:, None]) * (1.0 + RELATIVE)
    bound = np.where(late > 0.0, -np.expm1(-least / np.maximum(late, 1.0)) / kept, 1.0)
    mass = np.minimum(1.0, (bound.min(axis=0) + covered) * UP)
    rate = late * kept
    return Missing(mass, rate, (joint + (rate * covered * copies).sum(axis=1)) * (1.0 + RELATIVE))
