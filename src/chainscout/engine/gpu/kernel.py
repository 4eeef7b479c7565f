"""The kernel: one thread per replication, from its first observation to its last.

Every replication has its own lane, the last axis of every array. In shared memory neighbouring threads access
neighbouring words, so no accesses conflict. In device memory a replication's rows are records (``layout.Layout``),
because neighbouring threads are at different rows. Whole numbers that this module names are unsigned 64-bit words in
compiled code; ``whole`` and ``real`` convert to them and to the precision that rules are compiled for. The names in
capitals and the rule's functions are bound when the kernel is specialised (``launch``). The steps are those of the
CPU's loops, operation by operation, with one exception: a chain's next state is drawn when the chain leaves a state,
not when it is next observed. So the draw and the rule's arithmetic hide each other's latency.
"""

import math
from typing import Any

from ...random.splitmix import MASK, mix, sample, stream
from ..rule import FIRST, unbound
from .layout import Lanes
from .planned import choose, hold, plan, refresh, value_of

# Bound when the kernel is specialised; these values are never used.
cuda: Any = None
terms = entry = summary = index = row_terms = take_constants = take_lane = put_lane = replace_all = unbound
whole: Any = int
signed: Any = int
real: Any = float
#: N_x and T, and Σ_y N[x,y]², in the narrowest type that converts to ``real`` fast.
counted: Any = int
squared: Any = int
#: The type in which Σ_y N[x,y]² is summed: a word, or a float if it can exceed 2⁶⁴.
wide: Any = int
count_type: Any = None
square_type: Any = None
real_type: Any = None
word_type: Any = None
#: K, the largest S, numbers that terms give, constants, budgets, threads of a block, chains of a batch.
CHAINS = STATES = WIDTH = CONSTANTS = BUDGETS = THREADS = BATCH = 1
#: The same for the shapes of shared arrays, which must stay plain whole numbers: the compiler needs their values.
SHAPE_CHAINS = SHAPE_STATES = SHAPE_ROWS = SHAPE_LOOKED = SHAPE_TERMS = SHAPE_THREADS = 1
#: Whether all chains have the same size, constants and weight; whether the rule gives a summary; whether there are
#: plans of more than one observation; whether rows keep N_x of the last evaluation; whether there are blocks in
#: batches; whether all chains move at every step; whether counts are the result instead of losses.
ALIKE = SUMMARY = BLOCKS = LOOKED = HELD = RESTLESS = KEEP_COUNTS = False
BLOCK = 0.0
SHORTEST = 1
#: Which of the state's arrays are in shared memory (``layout.Layout``); whether rows are read as words of several
#: counts, how many there are in a word, and their positions in it.
ROWS_SHARED = CHAINS_SHARED = STREAMS_SHARED = INDICES_SHARED = False
PACKED = False
PER_WORD = COUNT_BITS = COUNT_MASK = 1
#: The rows that a thread clears itself: all rows in shared memory, none in device memory. Device memory is cleared
#: before the launch, because a thread would need more time for it than for the steps.
CLEARED = 0
#: The next state of a chain that was never observed, and the state that no row has: the largest word of its type.
NONE = 0
ZERO, ONE, TWO, THREE, FOUR, FIVE, SIX, SEVEN, EIGHT = 0, 1, 2, 3, 4, 5, 6, 7, 8


def size_of(tables, chain):
    """S_k. If all are equal the compiler knows it, and unrolls the loops over states."""
    if ALIKE:
        return STATES
    return whole(tables.sizes[chain])


def draw(position, chain, state, size, table):
    """The state that a chain goes to from ``state``."""
    return whole(sample(mix(position), size, table, (chain * STATES + state) * STATES))


def move_all(t, chain, latest, lane, tables, lanes):
    """One observation if all chains move at every step except the first; ``nexts`` counts observations.

    A transition counts if the chain was observed at the step before, too.
    """
    counts, exits, squares, transitions = lanes.counts, lanes.exits, lanes.squares, lanes.transitions
    for other in range(CHAINS):
        if t > ZERO:
            state = whole(lanes.states[other, lane])
            position = (whole(lanes.positions[other, lane]) + whole(lanes.gammas[other, lane])) & MASK
            lanes.positions[other, lane] = position
            after = draw(position, whole(other), state, size_of(tables, other), tables.table)
            lanes.states[other, lane] = after
            if other == chain and latest == chain:
                row = chain * STATES + state
                count = whole(counts[row, after, lane])
                counts[row, after, lane] = count + ONE
                exits[row, lane] = whole(exits[row, lane]) + ONE
                squares[row, lane] = wide(squares[row, lane]) + wide(count + count + ONE)
                transitions[chain, lane] = whole(transitions[chain, lane]) + ONE
    lanes.nexts[chain, lane] = whole(lanes.nexts[chain, lane]) + ONE


def read(lane, replication, b, tables, lanes, outcome):
    """The observations of every chain, and L_k = Σ_x π̂(x)‖P(x,·) − P̂(x,·)‖² in double precision, or the counts."""
    counts, exits, nexts, pulls = lanes.counts, lanes.exits, lanes.nexts, outcome.pulls
    for chain in range(CHAINS):
        size = size_of(tables, chain)
        number = whole(lanes.transitions[chain, lane])
        if RESTLESS:
            pulls[b, replication, chain] = nexts[chain, lane]
        elif nexts[chain, lane] != NONE:
            pulls[b, replication, chain] = number + ONE
        else:
            pulls[b, replication, chain] = ZERO
        if math.isnan(lanes.indices[chain, lane]):
            pulls[b, replication, chain] = signed(-1)
        if KEEP_COUNTS:
            for x in range(size):
                for y in range(size):
                    outcome.kept[b, replication, chain, x, y] = counts[chain * STATES + x, y, lane]
        else:
            alpha = 1.0 / (3.0 * float(size))
            total = 0.0
            for x in range(size):
                row = chain * STATES + x
                left = float(exits[row, lane])
                if left > 0.0:
                    distance = 0.0
                    for y in range(size):
                        estimate = (float(counts[row, y, lane]) + alpha) / (left + alpha * float(size))
                        error = tables.matrices[row * STATES + y] - estimate
                        distance += error * error
                    total += left / float(number) * distance
            outcome.loss[b, replication, chain] = total if number > ZERO else math.nan


def begin(lane, replication, seed, first, tables, lanes):
    """The state before the first observation."""
    for chain in range(CHAINS):
        position, gamma = stream(whole(seed), whole(first) + replication, whole(chain))
        position = (position + gamma) & MASK
        lanes.states[chain, lane] = sample(mix(position), size_of(tables, chain), tables.laws, chain * STATES)
        lanes.nexts[chain, lane] = ZERO if RESTLESS else NONE
        lanes.positions[chain, lane] = position
        lanes.gammas[chain, lane] = gamma
        lanes.transitions[chain, lane] = ZERO
        lanes.indices[chain, lane] = FIRST
        for j in range(WIDTH):
            lanes.total[chain, j, lane] = real(0.0)
        if BATCH > ONE:
            lanes.pending[chain, lane] = ZERO
            if HELD:
                lanes.looks[chain, lane] = ZERO
    for row in range(CLEARED):
        lanes.exits[row, lane] = ZERO
        lanes.squares[row, lane] = ZERO
        if LOOKED:
            lanes.looked[row, lane] = ZERO
        for j in range(WIDTH):
            lanes.term[row, j, lane] = real(0.0)
        for y in range(STATES):
            lanes.counts[row, y, lane] = ZERO


def terms_of_entries(row, size, after, lane, exits, squares, known, lanes):
    """``terms`` of a rule with an ``entry``, which gets Σ_y entry(N[x,y], N_x, constants)."""
    total = real(0.0)
    for y in range(size):
        total += entry(real(lanes.counts[row, y, lane]), exits, known)
    return terms(total, exits, squares, known)


def add_word(word, place, size, after, total, exits, known):
    """The entries of the counts in one word of a row."""
    for part in range(PER_WORD):
        y = place * PER_WORD + whole(part)
        if y < size:
            number = word & COUNT_MASK
            if y == after:
                number = number + ONE
            total += entry(real(counted(number)), exits, known)
        if PER_WORD > ONE:
            word = word >> COUNT_BITS
    return total


def terms_of_words(row, size, after, lane, exits, squares, known, lanes):
    """The same in device memory, with several counts in a word and eight words at a time.

    It runs before the last count is stored: the transition to ``after`` is added here. So all loads run together; one
    by one they took four times as long.
    """
    total = real(0.0)
    packed = lanes.packed
    words = (size + PER_WORD - ONE) // PER_WORD
    last = words - ONE
    place = ZERO
    while place < words:
        word_0 = whole(packed[row, place, lane])
        word_1 = whole(packed[row, min(place + ONE, last), lane])
        word_2 = whole(packed[row, min(place + TWO, last), lane])
        word_3 = whole(packed[row, min(place + THREE, last), lane])
        word_4 = whole(packed[row, min(place + FOUR, last), lane])
        word_5 = whole(packed[row, min(place + FIVE, last), lane])
        word_6 = whole(packed[row, min(place + SIX, last), lane])
        word_7 = whole(packed[row, min(place + SEVEN, last), lane])
        total = add_word(word_0, place, size, after, total, exits, known)
        total = add_word(word_1, place + ONE, size, after, total, exits, known)
        total = add_word(word_2, place + TWO, size, after, total, exits, known)
        total = add_word(word_3, place + THREE, size, after, total, exits, known)
        total = add_word(word_4, place + FOUR, size, after, total, exits, known)
        total = add_word(word_5, place + FIVE, size, after, total, exits, known)
        total = add_word(word_6, place + SIX, size, after, total, exits, known)
        total = add_word(word_7, place + SEVEN, size, after, total, exits, known)
        place = place + EIGHT
    return terms(total, exits, squares, known)


def terms_of_row(row, size, after, lane, exits, squares, known, lanes):
    """``terms`` of another rule, which gets N[x,·] itself, as real numbers, because differences can be negative."""
    for y in range(size):
        lanes.reals[y, lane] = real(lanes.counts[row, y, lane])
    return terms(lanes.reals[:size, lane], exits, squares, known)


def terms_of_totals(row, size, after, lane, exits, squares, known, lanes):
    """``terms`` of a rule that never reads its row."""
    return terms(lanes.reals[:, lane], exits, squares, known)


def learn_row(chain, row, size, lane, exits, squares, known, lanes):
    """Updates one row's terms and the sums."""
    old = take_lane(lanes.term, row, lane)
    before = take_lane(lanes.total, chain, lane)
    new = row_terms(row, size, NONE, lane, exits, squares, known, lanes)
    put_lane(lanes.term, row, lane, new)
    put_lane(lanes.total, chain, lane, replace_all(before, old, new))


def learn(chain, size, lane, known, lanes):
    """Updates a chain's sums after a block of observations."""
    exits, squares, reals = lanes.exits, lanes.squares, lanes.reals
    if SUMMARY:
        for x in range(size):
            reals[x, lane] = real(exits[chain * STATES + x, lane])
            reals[size + x, lane] = real(squares[chain * STATES + x, lane])
        both = size + size
        new = summary(
            reals[:size, lane], reals[size:both, lane], signed(size), known, reals[both:, lane], lanes.wholes[:, lane]
        )
        put_lane(lanes.total, chain, lane, new)
    elif LOOKED:
        for x in range(size):
            row = chain * STATES + x
            left = exits[row, lane]
            if left != lanes.looked[row, lane]:
                lanes.looked[row, lane] = left
                learn_row(chain, row, size, lane, real(left), real(squares[row, lane]), known, lanes)


def replicate(lane, replication, seed, first, tables, lanes, outcome):
    """One replication."""
    begin(lane, replication, seed, first, tables, lanes)
    counts, exits, squares, term = lanes.counts, lanes.exits, lanes.squares, lanes.term
    total, transitions, states, nexts = lanes.total, lanes.transitions, lanes.states, lanes.nexts
    positions, gammas, indices = lanes.positions, lanes.gammas, lanes.indices
    same = take_constants(tables.constants, ZERO)
    common = tables.weights[ZERO]
    t = ZERO
    left = ZERO
    length = ONE
    chain = ZERO
    planned = ZERO
    following = ZERO
    latest = whole(CHAINS)
    for b in range(BUDGETS):
        last = whole(tables.budgets[b])
        while t < last:
            if left == ZERO:
                if BATCH > ONE:
                    if following == planned:
                        planned = plan(t, lane, tables, lanes)
                        following = ZERO
                    chain = whole(lanes.plans[following, lane])
                    following = following + ONE
                else:
                    chain = choose(t, lane, lanes)
                if BLOCKS:
                    length = max(SHORTEST, whole(BLOCK * float(transitions[chain, lane])))
                left = length
            size = size_of(tables, chain)
            left = left - ONE
            number = ZERO
            if RESTLESS:
                move_all(t, chain, latest, lane, tables, lanes)
                latest = chain
                number = whole(transitions[chain, lane])
            else:
                state = whole(states[chain, lane])
                after = whole(nexts[chain, lane])
                position = (whole(positions[chain, lane]) + whole(gammas[chain, lane])) & MASK
                if after == NONE:  # the first observation shows a state and is not a transition
                    nexts[chain, lane] = draw(position, chain, state, size, tables.table)
                else:
                    row = chain * STATES + state
                    # All loads come before all stores: the compiler cannot know that the arrays do not overlap, and
                    # would otherwise wait for one after the other.
                    count = whole(counts[row, after, lane])
                    leaving = whole(exits[row, lane]) + ONE
                    square = wide(squares[row, lane]) + wide(count + count + ONE)
                    number = whole(transitions[chain, lane]) + ONE
                    old = take_lane(term, row, lane)
                    before = take_lane(total, chain, lane)
                    if not PACKED:
                        counts[row, after, lane] = count + ONE
                    next_state = draw(position, chain, after, size, tables.table)
                    if not SUMMARY and not HELD and length == ONE:
                        known = same if ALIKE else take_constants(tables.constants, chain * CONSTANTS)
                        exit_number, square_number = real(counted(leaving)), real(squared(square))
                        new = row_terms(row, size, after, lane, exit_number, square_number, known, lanes)
                        sums = replace_all(before, old, new)
                        put_lane(term, row, lane, new)
                        put_lane(total, chain, lane, sums)
                        if LOOKED:
                            lanes.looked[row, lane] = leaving
                        if BATCH == ONE:
                            weight = common if ALIKE else tables.weights[chain]
                            indices[chain, lane] = weight * index(sums, real(counted(number)), known)
                    if PACKED:
                        counts[row, after, lane] = count + ONE
                    exits[row, lane] = leaving
                    squares[row, lane] = square
                    transitions[chain, lane] = number
                    states[chain, lane] = after
                    nexts[chain, lane] = next_state
                positions[chain, lane] = position
            t = t + ONE
            if left == ZERO and number > ZERO and (SUMMARY or HELD or length > ONE):
                if not HELD or number >= lanes.looks[chain, lane]:
                    known = take_constants(tables.constants, chain * CONSTANTS)
                    learn(chain, size, lane, known, lanes)
                    if HELD:
                        hold(chain, lane, number, tables, lanes)
                if BATCH == ONE:
                    indices[chain, lane] = value_of(chain, lane, number, tables, lanes)
            if BATCH > ONE and following == planned:
                refresh(planned, lane, tables, lanes)
        read(lane, replication, b, tables, lanes, outcome)


def run(number, seed, first, tables, given, outcome):
    """The replications of a block, with each group of arrays in shared memory or where it is given."""
    lane = whole(cuda.threadIdx.x)
    start = whole(cuda.blockIdx.x) * THREADS
    end = start + THREADS
    if ROWS_SHARED:
        counts = cuda.shared.array((SHAPE_ROWS, SHAPE_STATES, SHAPE_THREADS), count_type)
        exits = cuda.shared.array((SHAPE_ROWS, SHAPE_THREADS), count_type)
        squares = cuda.shared.array((SHAPE_ROWS, SHAPE_THREADS), square_type)
        looked = cuda.shared.array((SHAPE_LOOKED, SHAPE_THREADS), count_type)
        term = cuda.shared.array((SHAPE_ROWS, SHAPE_TERMS, SHAPE_THREADS), real_type)
        packed = given.packed
    else:
        counts = given.counts[:, :, start:end]
        exits = given.exits[:, start:end]
        squares = given.squares[:, start:end]
        looked = given.looked[:, start:end]
        term = given.term[:, :, start:end]
        packed = given.packed[:, :, start:end]
    if CHAINS_SHARED:
        total = cuda.shared.array((SHAPE_CHAINS, SHAPE_TERMS, SHAPE_THREADS), real_type)
        transitions = cuda.shared.array((SHAPE_CHAINS, SHAPE_THREADS), count_type)
        states = cuda.shared.array((SHAPE_CHAINS, SHAPE_THREADS), count_type)
        nexts = cuda.shared.array((SHAPE_CHAINS, SHAPE_THREADS), count_type)
    else:
        total = given.total[:, :, start:end]
        transitions = given.transitions[:, start:end]
        states = given.states[:, start:end]
        nexts = given.nexts[:, start:end]
    if STREAMS_SHARED:
        positions = cuda.shared.array((SHAPE_CHAINS, SHAPE_THREADS), word_type)
        gammas = cuda.shared.array((SHAPE_CHAINS, SHAPE_THREADS), word_type)
    else:
        positions = given.positions[:, start:end]
        gammas = given.gammas[:, start:end]
    if INDICES_SHARED:
        indices = cuda.shared.array((SHAPE_CHAINS, SHAPE_THREADS), real_type)
    else:
        indices = given.indices[:, start:end]
    if start + lane < number:
        lanes = Lanes(
            packed, counts, exits, squares, looked, term, total, transitions, states, nexts, positions, gammas, indices,
            given.reals[:, start:end], given.wholes[:, start:end], given.pending[:, start:end],
            given.plans[:, start:end], given.looks[:, start:end], given.held[:, start:end],
        )  # fmt: skip
        replicate(lane, start + lane, seed, first, tables, lanes, outcome)
