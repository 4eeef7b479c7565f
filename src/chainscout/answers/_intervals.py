"""The ends of an answer from replays: which replays a question needs, and how δ is split over them (MATH §11)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from . import betting
from ._terms import ARRIVED, FAILED, ON, Terms
from .question import Cost, LongRunShare, PassageTime, Reach
from .replay import Cycles, Decks, Episodes, cycles, episodes, returns

Array = npt.NDArray[np.float64]

#: A passage time and a share spend the first part of δ on M, and the second part on each end.
PART_OF_M, PART_OF_AN_END = 0.2, 0.4
#: M is bounded with at most this many episodes from each state: more would hardly make it smaller.
MOST_FOR_M = 4096
#: If there are more different values than this, they are rounded outwards to a grid of this many values.
MOST_VALUES = 4096
#: The largest error of a sum of floats, as a part of its range.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Interval:
    """The result of replays for a question."""

    lower: float
    upper: float
    #: The mean of completed returns; None if there is none.
    mean: float | None
    episodes: int
    #: The row that the replay waits for (the last row belongs to the starts); None: it does not wait.
    waits: int | None
    notes: tuple[str, ...] = ()


def interval(decks: Decks, terms: Terms, delta: float) -> Interval:
    """Both ends of the answer, with probability 1 − δ at all times at once, whatever the values of the holes are."""
    if not decks.holes:
        return _complete(decks, terms, delta)
    found = [_complete(decks, terms, delta) for _ in decks.completions()]
    widest = max(found, key=lambda one: one.upper - one.lower)
    means = [one.mean for one in found if one.mean is not None]
    return replace(
        widest, lower=min(one.lower for one in found), upper=max(one.upper for one in found),
        mean=sum(means) / len(means) if means else None, episodes=min(one.episodes for one in found),
    )  # fmt: skip


def _complete(decks: Decks, terms: Terms, delta: float) -> Interval:
    question = terms.question
    if isinstance(question, Reach):
        return _within(decks, terms, question.within, delta) if question.within is not None else _ever(
            decks, terms, delta
        )  # fmt: skip
    if isinstance(question, PassageTime):
        return _passage(decks, terms, delta)
    if isinstance(question, Cost):
        return _cost(decks, terms, question, delta)
    assert isinstance(question, LongRunShare)
    return _share(decks, terms, delta)


def cap_weight(k: int) -> float:
    """The part of δ for the cap 4^k."""
    return 1.0 / ((k + 1) * (k + 2))


def _caps(decks: Decks) -> Iterator[tuple[int, int]]:
    """(k, 4^k), as far as the cards reach. The split of δ does not depend on where this stops."""
    k = 0
    while k == 0 or 4 ** (k - 1) <= decks.total:
        yield k, 4**k
        k += 1


def _coin(ones: int, number: int) -> tuple[Array, Array]:
    """The values 0 and 1, and their numbers."""
    return np.array([0.0, 1.0]), np.array([number - ones, ones], dtype=np.float64)


def _within(decks: Decks, terms: Terms, steps: int, delta: float) -> Interval:
    found = episodes(decks, terms, steps)
    number, ones = len(found.result), int((found.result == ARRIVED).sum())
    level = math.log(2 / delta)
    lower = betting.least_mean(*_coin(ones, number), level)
    upper = betting.most_mean_within(*_coin(ones, number), level)
    return Interval(lower, upper, ones / number if number else None, number, found.waits)


def _ever(decks: Decks, terms: Terms, delta: float) -> Interval:
    """Each cap has its own replay. An episode that a cap stops counts 0 in the lower and 1 in the upper bound."""
    lower, upper = 0.0, 1.0
    best: tuple[float, Interval] | None = None
    for k, cap in _caps(decks):
        found = episodes(decks, terms, cap)
        number = len(found.result)
        ones, open_ones = int((found.result == ARRIVED).sum()), int((found.result == ON).sum())
        level = math.log(2 / (delta * cap_weight(k)))
        low = betting.least_mean(*_coin(ones, number), level)
        high = betting.most_mean_within(*_coin(ones + open_ones, number), level)
        lower, upper = max(lower, low), min(upper, high)
        decided = number - open_ones
        notes: tuple[str, ...] = ()
        if number and open_ones > number / 100:
            share = f"{open_ones / number:.0%} of the episodes were not decided after {cap} steps"
            notes = (f"{share}: a set of states that is neither the target nor declared absorbing may never be left",)
        this = Interval(low, high, ones / decided if decided else None, number, found.waits, notes)
        if best is None or high - low < best[0]:
            best = high - low, this
        if open_ones == 0:
            break  # a longer cap would change only its weight
    assert best is not None
    return replace(best[1], lower=lower, upper=upper)


def _grid(values: Array, *, upwards: bool) -> tuple[Array, Array]:
    """Values in [0, 1] with their numbers, rounded outwards if there are many."""
    if len(np.unique(values)) > MOST_VALUES:
        scaled = values * MOST_VALUES
        values = (np.ceil(scaled) if upwards else np.floor(scaled)) / MOST_VALUES
    found, numbers = np.unique(values, return_counts=True)
    return np.clip(found + (ROUNDING if upwards else -ROUNDING), 0.0, 1.0), numbers.astype(np.float64)


def _cost(decks: Decks, terms: Terms, question: Cost, delta: float) -> Interval:
    length = float(question.steps) if question.steps is not None else 1 / (1 - float(question.discount or 0.0))
    least, span = length * terms.least, length * (terms.largest - terms.least)
    if span == 0:
        return Interval(least, least, least, 0, None)
    found = returns(decks, terms, question.steps, question.discount)
    scaled = np.clip((found.value - least) / span, 0.0, 1.0)
    level = math.log(2 / delta)
    lower = betting.least_mean(*_grid(scaled, upwards=False), level)
    upper = betting.most_mean_within(*_grid(scaled, upwards=True), level)
    mean = float(scaled.mean()) if len(scaled) else None
    return Interval(
        least + span * lower,
        least + span * upper,
        None if mean is None else least + span * mean,
        len(scaled),
        found.waits,
    )


# -- passage times


@dataclass(frozen=True)
class Longest:
    """M ≥ the expected time to the target from every state, or why there is no such number."""

    bound: float
    why: str = ""


def longest(decks: Decks, terms: Terms, states: npt.NDArray[np.bool_], delta: float) -> Longest:
    """M over ``states``; a walk stays in them until it arrives. a ≥ E min(τ, H) and ρ ≥ P(τ > H) from each of them.

    M ≤ max a/(1 − max ρ), the smallest over H. δ is split over H, the states and the two bounds.
    """
    wanted = np.flatnonzero(states & (terms.kind != ARRIVED))
    if len(wanted) == 0:
        return Longest(0.0)
    if terms.open:
        return Longest(math.inf, "the chain may have states that were never seen, unless they are declared complete")
    traps = [int(x) for x in wanted if terms.kind[x] == FAILED]
    if traps:
        trap = terms.label(traps[0])
        why = f"the state {trap!r} is declared absorbing and may be reached, unless transitions into it are impossible"
        return Longest(math.inf, why)
    silent = [int(x) for x in wanted if decks.count[x] == 0]
    if silent:
        return Longest(
            math.inf,
            f"no exit of the state {terms.label(silent[0])!r} is known, and it may be a trap: sample it, or declare "
            "the transitions into it impossible",
        )
    best, stuck = math.inf, int(wanted[0])
    for k, cap in _caps(decks):
        level = math.log(2 * len(wanted) / (delta * cap_weight(k)))
        longest_part, largest_rest, cut = 0.0, 0.0, False
        for x in wanted.tolist():
            found = episodes(decks, terms, cap, start=x, most=MOST_FOR_M)
            over = found.result != ARRIVED
            number = len(over)
            cut = cut or bool(over.any())
            rest = betting.most_mean_within(*_coin(int(over.sum()), number), level)
            largest_rest = max(largest_rest, rest)
            if largest_rest >= 1:
                stuck = x if found.waits is None else found.waits
                break
            part = betting.most_mean_within(*_grid(found.length / cap, upwards=True), level)
            longest_part = max(longest_part, cap * part)
        if largest_rest < 1:
            best = min(best, longest_part / (1 - largest_rest))
        if not cut:
            break
    if math.isinf(best):
        why = f"too little is known of walks from some states: more exits of {terms.label(stuck)!r} would help"
        return Longest(best, why)
    return Longest(best)


def _lengths(found: Episodes) -> tuple[Array, Array]:
    values, numbers = np.unique(found.length, return_counts=True)
    return values.astype(np.float64), numbers.astype(np.float64)


def _passage(decks: Decks, terms: Terms, delta: float) -> Interval:
    whole = episodes(decks, terms, 2**62)
    if (whole.result == FAILED).any():
        why = "a state that is declared absorbing was reached, so that the target may never be"
        return Interval(math.inf, math.inf, math.inf, len(whole.result), whole.waits, (why,))
    values, numbers = _lengths(whole)
    number = len(whole.result)
    mean = float(values @ numbers) / number if number else None
    if whole.running:  # its time so far is a lower bound of its whole time
        values, numbers = np.append(values, float(whole.running)), np.append(numbers, 1.0)
    lower = betting.least_mean(values, numbers, math.log(1 / (PART_OF_AN_END * delta)))
    bound = longest(decks, terms, terms.reachable(), PART_OF_M * delta)
    upper = bound.bound
    notes: tuple[str, ...] = ()
    if math.isinf(upper):
        notes = (f"the upper bound is infinite: {bound.why}",)
    else:
        for k, cap in _caps(decks):
            found = episodes(decks, terms, cap)
            level = math.log(1 / (PART_OF_AN_END * delta * cap_weight(k)))
            upper = min(upper, _upper_passage(found, cap, bound.bound, level))
            if (found.result == ARRIVED).all():
                break
    return Interval(lower, upper, mean, number, whole.waits, notes)


def _upper_passage(found: Episodes, cap: int, bound: float, level: float) -> float:
    """The upper end from episodes of at most ``cap`` steps, R = min(τ, cap) + 1{τ > cap}·M."""
    times = np.where(found.result == ARRIVED, found.length, cap + bound)
    values, numbers = np.unique(times, return_counts=True)
    return betting.most_mean_above(values, numbers.astype(np.float64), cap + bound, float(cap), level)


# -- long-run shares

#: Without an anchor, this many states with the most cards are tried.
MOST_ANCHORS = 3


def _share(decks: Decks, terms: Terms, delta: float) -> Interval:
    if terms.open:
        why = "the chain may have states that were never seen, unless they are declared complete"
        return Interval(0.0, 1.0, None, 0, None, (why,))
    cards = decks.count[: terms.size]
    if terms.anchor is not None:
        anchors, part = [terms.anchor], delta
    else:
        anchors, part = np.argsort(-cards, kind="stable")[:MOST_ANCHORS].tolist(), delta / terms.size
    found = [_anchored(decks, terms, anchor, part) for anchor in anchors]
    narrowest = min(found, key=lambda one: one.upper - one.lower)
    lower, upper = max(one.lower for one in found), min(one.upper for one in found)
    return replace(narrowest, lower=lower, upper=upper)


def _anchored(decks: Decks, terms: Terms, anchor: int, delta: float) -> Interval:
    kind = np.full(terms.size, ON, dtype=np.int64)
    kind[anchor] = ARRIVED
    to_anchor = replace(terms, kind=kind, start=anchor)
    from_anchor = replace(terms, kind=np.full(terms.size, ON, dtype=np.int64), start=anchor)
    bound = longest(decks, to_anchor, from_anchor.reachable(), PART_OF_M * delta)
    whole = cycles(decks, terms, anchor, 2**62, complement=False)
    total = int(whole.inside.sum() + whole.outside.sum())
    mean = float(whole.inside.sum()) / total if total else None
    if math.isinf(bound.bound):
        why = f"nothing is certain of the share: {bound.why}"
        return Interval(0.0, 1.0, mean, len(whole.inside), whole.waits, (why,))
    ends = []
    for complement in (False, True):
        low = 0.0
        for k, cap in _caps(decks):
            level = math.log(1 / (PART_OF_AN_END * delta * cap_weight(k)))
            found = cycles(decks, terms, anchor, cap, complement=complement)
            low = max(low, _lower_share(found, bound, cap, level))
            if not found.early.any():
                break
        ends.append(low)
    return Interval(ends[0], 1 - ends[1], mean, len(whole.inside), whole.waits)


def _lower_share(found: Cycles, bound: Longest, cap: int, level: float) -> float:
    if not len(found.inside):
        return 0.0
    inside, outside = _coarse(found.inside, -1), np.minimum(_coarse(found.outside, 1), cap)
    width = int(outside.max()) + 1
    packed, numbers = np.unique((inside * width + outside) * 2 + found.early, return_counts=True)
    early, times = packed % 2, packed // 2
    a, b, stopped, often = (part.astype(np.float64) for part in (times // width, times % width, early, numbers))
    return betting.least_share(a, b, stopped, often, bound.bound, float(cap), level)


def _coarse(values: npt.NDArray[np.int64], direction: int) -> npt.NDArray[np.int64]:
    """Times above 512, rounded down or up to nine binary digits, so that few different values remain."""
    step = 2 ** np.maximum(0, np.floor(np.log2(np.maximum(values, 1))).astype(np.int64) - 9)
    return np.asarray(values // step * step if direction < 0 else -(-values // step) * step)
