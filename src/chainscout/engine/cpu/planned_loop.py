"""The loop for blocks, batches, restless chains, forced exploration, and rules that are not sums over rows.

It compares the indices, plans one or more observations, makes them, and only then computes the new indices (MATH §6).
Two lanes are processed together. Within a block the simulation of a chain stays in registers, so a step costs about as
much as bare simulation. With blocks of one observation it makes the same choices as ``loop.steps``.
"""

from typing import Any, NamedTuple

from ...random.splitmix import MASK, mix, sample
from ..rule import FIRST, NEVER, unbound
from .argmax import climb, scan_one
from .layout import (
    BASE,
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
    TERMS,
    THREE,
    TRANSITIONS,
    TWO,
    ZERO,
    record,
)

# Bound when the loop is specialised; these values are never used.
index = summary = floor = row_terms = take_constants = take_sums = totals = put = put_sums = unbound
HEAD = STANDING = CONSTANTS = 0
#: Whether there is a tree, a floor, a summary; whether all chains move at every step; whether chains are planned in
#: batches.
TREE = FLOOR = SUMMARY = RESTLESS = BATCHED = False

#: Conversions to the engine's whole numbers and to those that rules get.
whole: Any = int
signed: Any = int

#: A lane's record in ``plans``: how many chains are planned, which of them is next, how many observations each gets and
#: how many of those are left; the chain that is observed now, the one before, and the row left if there is one
#: observation; then the chains of the batch.
PLANNED, NEXT, LENGTH, LEFT, CHAIN, LATEST, ONLY, BATCH = 0, 1, 2, 3, 4, 5, 6, 7


class Rounds(NamedTuple):
    """The arguments of the loop: sizes, shared data, the lanes' state and plans, scratch space, a trace."""

    lanes: Any
    chains: Any
    leaves: Any
    table: Any
    constants: Any
    weights: Any
    words: Any
    standings: Any
    rows: Any
    tree: Any
    #: −T with a tree of its own, for rules with a floor.
    least: Any
    least_tree: Any
    plans: Any
    #: How many chains are planned at a time; if that is one, the chosen chain is observed max(``shortest``, ⌊block·T⌋)
    #: times.
    batch: Any
    block: Any
    shortest: Any
    #: One float a chain, all zero between plans.
    pending: Any
    #: With batches, a block of a chain may span several batches. These are the T at which the block ends, and the
    #: chain's index until then, while plans change the index in ``standings``.
    looks: Any
    held: Any
    scratch: Any
    wholes: Any
    #: Whether ``choices`` and ``values`` record every choice and its index.
    tracing: Any
    choices: Any
    values: Any


def largest(tree, standings, value, node, leaves):
    """The chain with the largest value of one lane."""
    if TREE:
        return whole(tree[node + FOUR])
    return scan_one(standings, value, leaves)


def settle(tree, standings, value, node, leaves, chain, new):
    """Sets a chain's new value, and updates the tree."""
    standings[value + chain * STANDING] = new
    if TREE:
        climb(tree, standings, value, node, leaves, chain)


def observe(lane, chain, value, run):
    """One observation of one chain. The first one shows its state and is not a transition. → the row that it left."""
    words, rows = run.words, run.rows
    word = record(lane, chain, run.chains)
    seen = words[word + SEEN]
    words[word + SEEN] = seen + ONE
    place = words[word + ROW]
    row = words[word + BASE] + place
    if seen > ZERO:
        position = (words[word + POSITION] + words[word + GAMMA]) & MASK
        words[word + POSITION] = position
        size = words[word + SIZE]
        after = sample(mix(position), size, run.table, place + HEAD)
        count_one(rows, row, after)
        words[word + ROW] = words[word + START] + after * (size + HEAD)
        add(run.standings, value + chain * STANDING + TRANSITIONS, 1.0)
    return row


def add(values, place, more):
    """values[place] += more."""
    values[place] = values[place] + more


def count_one(rows, row, after):
    """One transition from the state of ``row`` to the state ``after``."""
    count = rows[row + HEAD + after]
    rows[row + HEAD + after] = count + 1.0
    add(rows, row + EXITS, 1.0)
    add(rows, row + SQUARES, count + (count + 1.0))


def observe_two(lane, chain, other, value, number, run):
    """``number`` observations each of ``chain`` in one lane and of ``other`` in the next, both seen before.

    Two together, because each transition waits for the one before: the second fills the waiting time of the first.
    """
    table, words, standings, rows = run.table, run.words, run.standings, run.rows
    word_0 = record(lane, chain, run.chains)
    word_1 = record(lane + ONE, other, run.chains)
    add(words, word_0 + SEEN, number)
    add(words, word_1 + SEEN, number)
    position_0 = words[word_0 + POSITION]
    position_1 = words[word_1 + POSITION]
    gamma_0 = words[word_0 + GAMMA]
    gamma_1 = words[word_1 + GAMMA]
    size_0 = words[word_0 + SIZE]
    size_1 = words[word_1 + SIZE]
    start_0 = words[word_0 + START]
    start_1 = words[word_1 + START]
    place_0 = words[word_0 + ROW]
    place_1 = words[word_1 + ROW]
    base_0 = words[word_0 + BASE]
    base_1 = words[word_1 + BASE]
    for _ in range(number):
        position_0 = (position_0 + gamma_0) & MASK
        position_1 = (position_1 + gamma_1) & MASK
        after_0 = sample(mix(position_0), size_0, table, place_0 + HEAD)
        after_1 = sample(mix(position_1), size_1, table, place_1 + HEAD)
        count_one(rows, base_0 + place_0, after_0)
        count_one(rows, base_1 + place_1, after_1)
        place_0 = start_0 + after_0 * (size_0 + HEAD)
        place_1 = start_1 + after_1 * (size_1 + HEAD)
    words[word_0 + POSITION] = position_0
    words[word_1 + POSITION] = position_1
    words[word_0 + ROW] = place_0
    words[word_1 + ROW] = place_1
    add(standings, value + chain * STANDING + TRANSITIONS, float(number))
    add(standings, value + ONE + other * STANDING + TRANSITIONS, float(number))


def observe_restless(t, latest, lane, chain, value, number, run):
    """The same if all chains move at every step except the first, observed or not. → the last row.

    Only pairs that were observed one after the other are counted; ``latest`` is the chain of the last observation.
    """
    chains, table, words, rows = run.chains, run.table, run.words, run.rows
    counted = latest == chain
    row = ZERO
    for step in range(number):
        for other in range(chains):
            word = record(lane, other, chains)
            if t + step > ZERO:
                position = (words[word + POSITION] + words[word + GAMMA]) & MASK
                words[word + POSITION] = position
                size = words[word + SIZE]
                place = words[word + ROW]
                after = sample(mix(position), size, table, place + HEAD)
                words[word + ROW] = words[word + START] + after * (size + HEAD)
                if other == chain and counted:
                    row = words[word + BASE] + place
                    count_one(rows, row, after)
                    add(run.standings, value + chain * STANDING + TRANSITIONS, 1.0)
        counted = True
    add(words, record(lane, chain, chains) + SEEN, number)
    return row


def learn_row(row, size, place, standings, rows, known):
    """Updates one row's terms and the sums, if the row has changed since the last evaluation."""
    exits = rows[row + EXITS]
    if exits != rows[row + HEAD - ONE]:
        rows[row + HEAD - ONE] = exits
        new = row_terms(rows, row + HEAD, size, exits, rows[row + SQUARES], known)
        sums = totals(standings, place, rows, row, new)
        put(rows, row + TERMS, new)
        put_sums(standings, place, sums)


def learn(lane, chain, place, only, length, known, run):
    """Updates a chain's sums after its observations. ``only`` is the changed row if ``length`` is one."""
    words, standings, rows, scratch = run.words, run.standings, run.rows, run.scratch
    word = record(lane, chain, run.chains)
    size = words[word + SIZE]
    begin = words[word + BASE] + words[word + START]
    if SUMMARY:
        for x in range(size):
            row = begin + x * (size + HEAD)
            scratch[x] = rows[row + EXITS]
            scratch[size + x] = rows[row + SQUARES]
        both = size + size
        new = summary(scratch[:size], scratch[size:both], signed(size), known, scratch[both:], run.wholes)
        put_sums(standings, place, new)
    elif length == ONE:
        learn_row(only, size, place, standings, rows, known)
    else:
        for x in range(size):
            learn_row(begin + x * (size + HEAD), size, place, standings, rows, known)


def make_plan(t, lane, plan, value, node, run):
    """Plans the next observations: one chain for a block, or the chains of a batch."""
    chains, leaves, batch = run.chains, run.leaves, run.batch
    standings, tree, plans, pending = run.standings, run.tree, run.plans, run.pending
    least, least_tree = run.least, run.least_tree
    planned = ZERO
    while planned < batch:
        chain = largest(tree, standings, value, node, leaves)
        if FLOOR:
            behind = largest(least_tree, least, value, node, leaves)
            if -least[value + behind * STANDING] < floor(float(t)):
                chain = behind
        place = value + chain * STANDING
        if standings[place] == NEVER and standings[place + TRANSITIONS] == 0.0:
            break  # the remaining chains are unknown until this batch is complete
        plans[plan + BATCH + planned] = chain
        planned = planned + ONE
        if BATCHED:
            # T includes the pending observations, and everything else is frozen. Within its block a chain's index is
            # not evaluated. An unknown chain gets the two observations of the warm-up, and no more before they are in.
            pending[chain] = pending[chain] + 1.0
            place = value + chain * STANDING
            transitions = standings[place + TRANSITIONS]
            if transitions > 0.0:
                if transitions + pending[chain] >= run.looks[lane * chains + chain]:
                    known = take_constants(run.constants, chain * CONSTANTS)
                    new = run.weights[chain] * index(take_sums(standings, place), transitions + pending[chain], known)
                    settle(tree, standings, value, node, leaves, chain, new)
            elif run.words[record(lane, chain, chains) + SEEN] + whole(pending[chain]) >= TWO:
                settle(tree, standings, value, node, leaves, chain, NEVER)
            if FLOOR:
                settle(least_tree, least, value, node, leaves, chain, -(transitions + pending[chain]))
    for step in range(planned):
        pending[plans[plan + BATCH + step]] = 0.0
    length = ONE
    if not BATCHED:
        transitions = standings[value + plans[plan + BATCH] * STANDING + TRANSITIONS]
        length = max(run.shortest, whole(run.block * transitions))
    plans[plan + PLANNED] = planned
    plans[plan + NEXT] = ZERO
    plans[plan + LENGTH] = length
    plans[plan + LEFT] = length


def rounds(first, last, run):
    """Observations ``first`` … ``last`` − 1 of every lane."""
    lanes, chains, leaves, batch = run.lanes, run.chains, run.leaves, run.batch
    standings, plans = run.standings, run.plans
    for pair in range(ZERO, lanes, TWO):
        t = first
        while t < last:
            number = last - t
            for lane in range(pair, pair + TWO):
                plan = lane * (BATCH + batch)
                value, node = places(lane, leaves)
                if plans[plan + NEXT] == plans[plan + PLANNED]:
                    make_plan(t, lane, plan, value, node, run)
                plans[plan + CHAIN] = plans[plan + BATCH + plans[plan + NEXT]]
                number = min(number, plans[plan + LEFT])
            if number == ONE or RESTLESS:
                for lane in range(pair, pair + TWO):
                    plan = lane * (BATCH + batch)
                    value, node = places(lane, leaves)
                    chain = plans[plan + CHAIN]
                    if RESTLESS:
                        row = observe_restless(t, plans[plan + LATEST], lane, chain, value, number, run)
                    else:
                        row = observe(lane, chain, value, run)
                    plans[plan + LATEST] = chain
                    plans[plan + ONLY] = row
            else:
                chain = plans[pair * (BATCH + batch) + CHAIN]
                other = plans[(pair + ONE) * (BATCH + batch) + CHAIN]
                value, node = places(pair, leaves)
                observe_two(pair, chain, other, value, number, run)
            for lane in range(pair, pair + TWO):
                plan = lane * (BATCH + batch)
                value, node = places(lane, leaves)
                chain = plans[plan + CHAIN]
                if run.tracing:
                    for step in range(number):
                        run.choices[(t - first + step) * lanes + lane] = chain
                        run.values[(t - first + step) * lanes + lane] = standings[value + chain * STANDING]
                plans[plan + LEFT] = plans[plan + LEFT] - number
                if plans[plan + LEFT] == ZERO:
                    length = plans[plan + LENGTH]
                    plans[plan + NEXT] = plans[plan + NEXT] + ONE
                    plans[plan + LEFT] = length
                    place = value + chain * STANDING
                    transitions = standings[place + TRANSITIONS]
                    at = lane * chains + chain
                    if transitions > 0.0 and (not BATCHED or transitions >= run.looks[at]):
                        known = take_constants(run.constants, chain * CONSTANTS)
                        changed = length
                        if BATCHED and run.block > 0.0:
                            changed = TWO  # two or more rows were left since the last evaluation
                        learn(lane, chain, place, plans[plan + ONLY], changed, known, run)
                        if BATCHED:
                            run.held[at] = run.weights[chain] * index(take_sums(standings, place), transitions, known)
                            run.looks[at] = transitions + float(max(ONE, whole(run.block * transitions)))
                    if not BATCHED:
                        refresh(chain, value, node, run)
                    elif plans[plan + NEXT] == plans[plan + PLANNED]:
                        for step in range(plans[plan + PLANNED]):
                            chain = plans[plan + BATCH + step]
                            put_back(chain, value, node, run.held[lane * chains + chain], run)
            t = t + number


def places(lane, leaves):
    """The positions at which a lane's standings and its tree's nodes begin."""
    group = (lane >> TWO) * leaves
    return group * STANDING + (lane & THREE), group * FOUR * TWO + (lane & THREE)


def refresh(chain, value, node, run):
    """Updates a chain's index after its observations."""
    place = value + chain * STANDING
    transitions = run.standings[place + TRANSITIONS]
    new = FIRST
    if transitions > 0.0:
        known = take_constants(run.constants, chain * CONSTANTS)
        new = run.weights[chain] * index(take_sums(run.standings, place), transitions, known)
    put_back(chain, value, node, new, run)


def put_back(chain, value, node, new, run):
    """Restores the index of a chain, and its T, without pending observations."""
    settle(run.tree, run.standings, value, node, run.leaves, chain, new)
    if FLOOR:
        transitions = run.standings[value + chain * STANDING + TRANSITIONS]
        settle(run.least_tree, run.least, value, node, run.leaves, chain, -transitions)
