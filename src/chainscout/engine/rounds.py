"""The loop for blocks, batches, restless chains, forced exploration, and rules that are not sums over rows.

It looks at the indices, plans one or more observations, makes them, and only then computes what they have changed
(MATH §6). One lane after the other: within a block the simulation of one chain stays in registers, so that a step
costs about as much as bare simulation. With blocks of one observation it makes the same choices as ``steps``.
"""

import math
from collections.abc import Callable
from typing import Any

from .choosing import climb, scan_one
from .layout import (
    EXITS,
    FOUR,
    GAMMA,
    ONE,
    POSITION,
    ROW,
    SEEN,
    SIZE,
    SQUARES,
    START,
    SUMS,
    TERMS,
    THREE,
    TRANSITIONS,
    TWO,
    WORDS,
    ZERO,
)
from .randomness import MASK, mix, sample

# Bound when the loop is specialised; these values are never used.
terms: Callable[..., Any]
index: Callable[..., Any]
summary: Callable[..., Any]
floor: Callable[..., Any]
described: Callable[..., Any]
take_constants: Callable[..., Any]
take_sums: Callable[..., Any]
totals: Callable[..., Any]
put: Callable[..., Any]
HEAD = REALS = CONSTANTS = 0
#: Whether there is a tree, a floor, a summary; whether all chains move at every step.
TREE = FLOOR = SUMMARY = RESTLESS = False

#: Conversions to the engine's whole numbers and to those that rules get.
whole: Any = int
signed: Any = int

#: A lane's record in ``plans``: how many chains are planned, which of them is next, how many observations each gets and
#: how many of those are left, which chain was observed last; then the chains of the batch.
PLANNED, NEXT, LENGTH, LEFT, LATEST, BATCH = 0, 1, 2, 3, 4, 5
#: The index of a chain of which nothing is known, before and after its first observations are planned.
FIRST, NEVER = math.inf, -math.inf


def largest(tree, indices, value, node, chains):  # type: ignore[no-untyped-def]
    """The chain with the largest value of one lane."""
    if TREE:
        return whole(tree[node + FOUR])
    return scan_one(indices, value, chains)


def settle(tree, indices, value, node, leaves, chain, new):  # type: ignore[no-untyped-def]
    """A chain's new value, and who wins now."""
    indices[value + chain * FOUR] = new
    if TREE:
        climb(tree, indices, value, node, leaves, chain)


def observe(lane, chain, number, chains, span, table, words, reals, rows):  # type: ignore[no-untyped-def]
    """``number`` observations of one chain. The first one ever reveals its state and is no transition. → last row."""
    at = lane * chains + chain
    word = at * WORDS
    gamma = words[word + GAMMA]
    start = words[word + START]
    size = words[word + SIZE]
    position = words[word + POSITION]
    place = words[word + ROW]
    row = lane * span + place
    transitions = number
    if words[word + SEEN] == ZERO:
        transitions = number - ONE
    words[word + SEEN] = words[word + SEEN] + number
    for _ in range(transitions):
        position = (position + gamma) & MASK
        after = sample(mix(position), size, table, place + HEAD)
        row = lane * span + place
        count = rows[row + HEAD + after]
        rows[row + HEAD + after] = count + 1.0
        rows[row + EXITS] = rows[row + EXITS] + 1.0
        rows[row + SQUARES] = rows[row + SQUARES] + (count + (count + 1.0))
        place = start + after * (size + HEAD)
    words[word + POSITION] = position
    words[word + ROW] = place
    record = at * REALS
    reals[record + TRANSITIONS] = reals[record + TRANSITIONS] + transitions
    return row


def observe_restless(t, latest, lane, chain, number, chains, span, table, words, reals, rows):  # type: ignore[no-untyped-def]
    """The same where all chains move at every step but the first, seen or not. → last row.

    Only pairs that were observed one after the other are counted; ``latest`` is the chain of the last observation.
    """
    counted = latest == chain
    row = ZERO
    for step in range(number):
        for other in range(chains):
            word = (lane * chains + other) * WORDS
            if t + step > ZERO:
                position = (words[word + POSITION] + words[word + GAMMA]) & MASK
                words[word + POSITION] = position
                size = words[word + SIZE]
                place = words[word + ROW]
                after = sample(mix(position), size, table, place + HEAD)
                words[word + ROW] = words[word + START] + after * (size + HEAD)
                if other == chain and counted:
                    row = lane * span + place
                    count = rows[row + HEAD + after]
                    rows[row + HEAD + after] = count + 1.0
                    rows[row + EXITS] = rows[row + EXITS] + 1.0
                    rows[row + SQUARES] = rows[row + SQUARES] + (count + (count + 1.0))
                    record = (lane * chains + chain) * REALS
                    reals[record + TRANSITIONS] = reals[record + TRANSITIONS] + 1.0
        counted = True
    word = (lane * chains + chain) * WORDS
    words[word + SEEN] = words[word + SEEN] + number
    return row


def learn_row(row, size, record, reals, rows, known):  # type: ignore[no-untyped-def]
    """One row's terms, and the sums with them, unless it has not changed since it was last looked at."""
    exits = rows[row + EXITS]
    if exits != rows[row + HEAD - ONE]:
        rows[row + HEAD - ONE] = exits
        new = terms(described(rows, row + HEAD, size, exits, known), exits, rows[row + SQUARES], known)
        sums = totals(reals, record, rows, row, new)
        put(rows, row + TERMS, new)
        put(reals, record + SUMS, sums)


def learn(lane, chain, only, length, chains, span, words, reals, rows, known, scratch, wholes):  # type: ignore[no-untyped-def]
    """What the observations of a chain have changed: its sums. ``only`` is the changed row if ``length`` is one."""
    at = lane * chains + chain
    size = words[at * WORDS + SIZE]
    record = at * REALS
    begin = lane * span + words[at * WORDS + START]
    if SUMMARY:
        for x in range(size):
            row = begin + x * (size + HEAD)
            scratch[x] = rows[row + EXITS]
            scratch[size + x] = rows[row + SQUARES]
        both = size + size
        new = summary(scratch[:size], scratch[size:both], signed(size), known, scratch[both:], wholes)
        put(reals, record + SUMS, new)
    elif length == ONE:
        learn_row(only, size, record, reals, rows, known)
    else:
        for x in range(size):
            learn_row(begin + x * (size + HEAD), size, record, reals, rows, known)


def make_plan(  # type: ignore[no-untyped-def]
    t, lane, plan, value, node, chains, leaves, words, reals, indices, tree, constants, weights, least, least_tree,
    plans, batch, block, shortest, pending,
):  # fmt: skip
    """Whom to observe next: one chain for a block, or the chains of a batch."""
    planned = ZERO
    while planned < batch:
        chain = largest(tree, indices, value, node, chains)
        if FLOOR:
            behind = largest(least_tree, least, value, node, chains)
            if -least[value + behind * FOUR] < floor(float(t)):
                chain = behind
        if indices[value + chain * FOUR] == NEVER:
            break  # nothing is known of the chains that are left until this batch is in
        plans[plan + BATCH + planned] = chain
        planned = planned + ONE
        if batch > ONE:
            # T counts what is pending and all else is frozen. A chain of which nothing is known gets the two
            # observations of the warm-up, and no more before they are in.
            pending[chain] = pending[chain] + 1.0
            at = lane * chains + chain
            transitions = reals[at * REALS + TRANSITIONS]
            if transitions > 0.0:
                known = take_constants(constants, chain * CONSTANTS)
                sums = take_sums(reals, at * REALS + SUMS)
                new = weights[chain] * index(sums, transitions + pending[chain], known)
                settle(tree, indices, value, node, leaves, chain, new)
            elif words[at * WORDS + SEEN] + whole(pending[chain]) >= TWO:
                settle(tree, indices, value, node, leaves, chain, NEVER)
            if FLOOR:
                settle(least_tree, least, value, node, leaves, chain, -(transitions + pending[chain]))
    for step in range(planned):
        pending[plans[plan + BATCH + step]] = 0.0
    length = ONE
    if batch == ONE:
        number = lane * chains + plans[plan + BATCH]
        length = max(shortest, whole(block * reals[number * REALS + TRANSITIONS]))
    plans[plan + PLANNED] = planned
    plans[plan + NEXT] = ZERO
    plans[plan + LENGTH] = length
    plans[plan + LEFT] = length


def rounds(  # type: ignore[no-untyped-def]
    first, last, lanes, chains, leaves, span, table, words, reals, rows, indices, tree, constants, weights,
    least, least_tree, plans, batch, block, shortest, pending, scratch, wholes, tracing, choices, values,
):  # fmt: skip
    """Observations ``first`` … ``last`` − 1 of every lane.

    ``batch`` chains are planned at a time; if that is one, the chosen chain is observed max(``shortest``, ⌊block·T⌋)
    times. ``least`` holds −T with its own tree, for rules with a floor. ``pending``: one float a chain, all zero.
    """
    for lane in range(lanes):
        plan = lane * (BATCH + batch)
        value = (lane >> TWO) * leaves * FOUR + (lane & THREE)
        node = (lane >> TWO) * leaves * FOUR * TWO + (lane & THREE)
        t = first
        while t < last:
            if plans[plan + NEXT] == plans[plan + PLANNED]:
                make_plan(
                    t, lane, plan, value, node, chains, leaves, words, reals, indices, tree, constants, weights, least,
                    least_tree, plans, batch, block, shortest, pending,
                )  # fmt: skip
            chain = plans[plan + BATCH + plans[plan + NEXT]]
            number = min(plans[plan + LEFT], last - t)
            if tracing:
                for step in range(number):
                    choices[(t - first + step) * lanes + lane] = chain
                    values[(t - first + step) * lanes + lane] = indices[value + chain * FOUR]
            if RESTLESS:
                latest = plans[plan + LATEST]
                row = observe_restless(t, latest, lane, chain, number, chains, span, table, words, reals, rows)
                plans[plan + LATEST] = chain
            else:
                row = observe(lane, chain, number, chains, span, table, words, reals, rows)
            t = t + number
            plans[plan + LEFT] = plans[plan + LEFT] - number
            if plans[plan + LEFT] == ZERO:
                length = plans[plan + LENGTH]
                plans[plan + NEXT] = plans[plan + NEXT] + ONE
                plans[plan + LEFT] = length
                if reals[(lane * chains + chain) * REALS + TRANSITIONS] > 0.0:
                    known = take_constants(constants, chain * CONSTANTS)
                    learn(lane, chain, row, length, chains, span, words, reals, rows, known, scratch, wholes)
                if plans[plan + NEXT] == plans[plan + PLANNED]:
                    for step in range(plans[plan + PLANNED]):
                        refresh(
                            lane, plans[plan + BATCH + step], value, node, chains, leaves, reals, indices, tree,
                            constants, weights, least, least_tree,
                        )  # fmt: skip


def refresh(  # type: ignore[no-untyped-def]
    lane, chain, value, node, chains, leaves, reals, indices, tree, constants, weights, least, least_tree
):
    """A chain's index after its observations are in."""
    record = (lane * chains + chain) * REALS
    transitions = reals[record + TRANSITIONS]
    new = FIRST
    if transitions > 0.0:
        known = take_constants(constants, chain * CONSTANTS)
        new = weights[chain] * index(take_sums(reals, record + SUMS), transitions, known)
    settle(tree, indices, value, node, leaves, chain, new)
    if FLOOR:
        settle(least_tree, least, value, node, leaves, chain, -transitions)
