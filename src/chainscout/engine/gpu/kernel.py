"""The kernel: one thread a replication, from its first observation to its last.

Every value of a replication stands in a lane of its own, the last axis of every array. In shared memory neighbouring
threads touch neighbouring words, so that no access conflicts; in device memory a replication's rows are records
(``memory.Layout``), because neighbouring threads are at different rows. Whole numbers that this module names are
unsigned 64-bit words in compiled code; ``whole`` and ``real`` convert to them and to the precision that rules are
compiled for. The names in capitals and the rule's functions are bound when the kernel is specialised
(``specialising``). The steps are those of the CPU's loops, operation by operation, but for the order of two that do not
meet: a chain's next state is drawn when it is left, not when it is next observed, so that the draw and the rule's
arithmetic hide each other's latency.
"""

import math
from typing import Any

from ..layout import unbound
from ..randomness import MASK, mix, sample, stream
from ..rounds import FIRST, NEVER

# Bound when the kernel is specialised; these values are never used.
cuda: Any = None
terms = index = entry = summary = floor = row_terms = take_constants = take_lane = put_lane = replace_all = unbound
whole: Any = int
signed: Any = int
real: Any = float
#: N_x and T, and Σ_y N[x,y]², in the narrowest type that converts to ``real`` fast.
counted: Any = int
squared: Any = int
count_type: Any = None
square_type: Any = None
real_type: Any = None
word_type: Any = None
#: K, the largest S, numbers that terms give, constants, budgets, threads of a block, chains of a batch.
CHAINS = STATES = WIDTH = CONSTANTS = BUDGETS = THREADS = BATCH = 1
#: The rows that a thread clears itself: all in shared memory, none in device memory, which is handed over cleared: word
#: by word that would take longer than the steps.
CLEARED = 0
#: The same for the shapes of shared arrays, which must stay plain whole numbers: the compiler needs their values.
SHAPE_CHAINS = SHAPE_STATES = SHAPE_ROWS = SHAPE_LOOKED = SHAPE_TERMS = SHAPE_THREADS = 1
#: Whether all chains have the same size, constants and weight; whether the rule gives a summary or has a floor; whether
#: looks last longer than one observation; whether rows keep N_x of the last look; whether all chains move at every
#: step; whether counts are wanted rather than losses.
ALIKE = SUMMARY = FLOOR = BLOCKS = LOOKED = RESTLESS = KEEP_COUNTS = False
BLOCK = 0.0
SHORTEST = 1
#: Which of the state's arrays stand in shared memory (``memory.Layout``).
ROWS_SHARED = CHAINS_SHARED = STREAMS_SHARED = INDICES_SHARED = False
#: Whether rows are read as words of several counts, how many there are in a word, and where they stand in it.
PACKED = False
PER_WORD = COUNT_BITS = COUNT_MASK = 1
#: The next state of a chain that was never observed: the largest word of its type.
NONE = 0
ZERO, ONE, TWO, THREE, FOUR, FIVE, SIX, SEVEN, EIGHT = 0, 1, 2, 3, 4, 5, 6, 7, 8


def size_of(sizes, chain):
    """S_k, known to the compiler where all are alike: it then unrolls the loops over states."""
    if ALIKE:
        return STATES
    return whole(sizes[chain])


def terms_of_entries(counts, packed, row, size, after, lane, exits, squares, known):
    """``terms`` of a rule with an ``entry``, which gets Σ_y entry(N[x,y], N_x, constants)."""
    total = real(0.0)
    for y in range(size):
        total += entry(real(counts[row, y, lane]), exits, known)
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


def terms_of_words(counts, packed, row, size, after, lane, exits, squares, known):
    """The same in device memory, with several counts a word and eight words at a time, before the last count is stored:
    the transition to ``after`` is added here. So all loads are under way together; one by one they took four times as
    long.
    """
    total = real(0.0)
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


def terms_of_row(counts, packed, row, size, after, lane, exits, squares, known):
    """``terms`` of another rule, which gets N[x,·] itself."""
    return terms(counts[row, :size, lane], exits, squares, known)


def learn_row(chain, row, size, lane, known, exits, squares, counts, packed, term, total):
    """One row's terms, and the sums with them."""
    old = take_lane(term, row, lane)
    before = take_lane(total, chain, lane)
    new = row_terms(counts, packed, row, size, NONE, lane, exits, squares, known)
    put_lane(term, row, lane, new)
    put_lane(total, chain, lane, replace_all(before, old, new))


def learn(chain, size, lane, known, counts, packed, exits, squares, term, total, looked, reals, wholes):
    """What a block of observations of a chain has changed: its sums."""
    if SUMMARY:
        for x in range(size):
            reals[x, lane] = real(exits[chain * STATES + x, lane])
            reals[size + x, lane] = real(squares[chain * STATES + x, lane])
        both = size + size
        new = summary(
            reals[:size, lane], reals[size:both, lane], signed(size), known, reals[both:, lane], wholes[:, lane]
        )
        put_lane(total, chain, lane, new)
    elif LOOKED:
        for x in range(size):
            row = chain * STATES + x
            left = exits[row, lane]
            if left != looked[row, lane]:
                looked[row, lane] = left
                leaving, square = real(left), real(squares[row, lane])
                learn_row(chain, row, size, lane, known, leaving, square, counts, packed, term, total)


def choose(t, lane, indices, transitions, pending):
    """The chain with the largest index, or the least sampled one while it is below the floor."""
    best = indices[ZERO, lane]
    chosen = ZERO
    chain = ONE
    while chain < CHAINS:  # a range over words makes three times the instructions
        value = indices[chain, lane]
        chosen = chain if value > best else chosen
        best = value if value > best else best
        chain = chain + ONE
    if FLOOR:
        fewest = sampled(ZERO, lane, transitions, pending)
        behind = ZERO
        for chain in range(ONE, CHAINS):
            number = sampled(whole(chain), lane, transitions, pending)
            if number < fewest:
                fewest = number
                behind = whole(chain)
        if real(fewest) < floor(real(t)):
            chosen = behind
    return chosen


def sampled(chain, lane, transitions, pending):
    """T, with what is pending."""
    number = whole(transitions[chain, lane])
    if BATCH > ONE:
        number = number + whole(pending[chain, lane])
    return number


def value_of(chain, lane, number, constants, weights, total):
    """A chain's index times its weight, with ``number`` for T."""
    known = take_constants(constants, chain * CONSTANTS)
    return weights[chain] * index(take_lane(total, chain, lane), real(counted(number)), known)


def plan(t, lane, constants, weights, total, transitions, nexts, indices, pending, plans):
    """The chains of a batch (MATH §6): T counts what is pending and all else is frozen. → how many there are.

    A chain of which nothing is known gets the two observations of the warm-up, and no more before they are in.
    """
    planned = ZERO
    while planned < BATCH:
        chain = choose(t, lane, indices, transitions, pending)
        if indices[chain, lane] == NEVER:
            break
        plans[planned, lane] = chain
        planned = planned + ONE
        waiting = whole(pending[chain, lane]) + ONE
        pending[chain, lane] = waiting
        number = whole(transitions[chain, lane])
        if number > ZERO:
            indices[chain, lane] = value_of(chain, lane, number + waiting, constants, weights, total)
        elif waiting >= TWO or nexts[chain, lane] != NONE:
            indices[chain, lane] = NEVER
    for step in range(planned):
        pending[whole(plans[step, lane]), lane] = ZERO
    return planned


def refresh(planned, lane, constants, weights, total, transitions, indices, plans):
    """The indices of a batch's chains after its observations are in."""
    for step in range(planned):
        chain = whole(plans[step, lane])
        number = whole(transitions[chain, lane])
        indices[chain, lane] = FIRST
        if number > ZERO:
            indices[chain, lane] = value_of(chain, lane, number, constants, weights, total)


def draw(position, chain, state, size, table):
    """The state that a chain goes to from ``state``."""
    return whole(sample(mix(position), size, table, (chain * STATES + state) * STATES))


def move_all(
    t, chain, latest, lane, sizes, table, counts, exits, squares, transitions, states, nexts, positions, gammas
):  # fmt: skip
    """One observation where all chains move at every step but the first; ``nexts`` counts observations.

    A transition counts if the chain was observed at the step before, too.
    """
    for other in range(CHAINS):
        if t > ZERO:
            state = whole(states[other, lane])
            position = (whole(positions[other, lane]) + whole(gammas[other, lane])) & MASK
            positions[other, lane] = position
            after = draw(position, whole(other), state, size_of(sizes, other), table)
            states[other, lane] = after
            if other == chain and latest == chain:
                row = chain * STATES + state
                count = whole(counts[row, after, lane])
                counts[row, after, lane] = count + ONE
                exits[row, lane] = whole(exits[row, lane]) + ONE
                squares[row, lane] = whole(squares[row, lane]) + count + count + ONE
                transitions[chain, lane] = whole(transitions[chain, lane]) + ONE
    nexts[chain, lane] = whole(nexts[chain, lane]) + ONE


def read(lane, replication, b, sizes, matrices, counts, exits, transitions, nexts, indices, loss, pulls, kept):
    """The observations of every chain, and L_k = Σ_x π̂(x)‖P(x,·) − P̂(x,·)‖² in double precision, or the counts."""
    for chain in range(CHAINS):
        size = size_of(sizes, chain)
        number = whole(transitions[chain, lane])
        if RESTLESS:
            pulls[b, replication, chain] = nexts[chain, lane]
        elif nexts[chain, lane] != NONE:
            pulls[b, replication, chain] = number + ONE
        else:
            pulls[b, replication, chain] = ZERO
        if math.isnan(indices[chain, lane]):
            pulls[b, replication, chain] = signed(-1)
        if KEEP_COUNTS:
            for x in range(size):
                for y in range(size):
                    kept[b, replication, chain, x, y] = counts[chain * STATES + x, y, lane]
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
                        error = matrices[row * STATES + y] - estimate
                        distance += error * error
                    total += left / float(number) * distance
            loss[b, replication, chain] = total if number > ZERO else math.nan


def begin(
    lane, replication, seed, first, sizes, laws,
    counts, exits, squares, looked, term, total, transitions, states, nexts, positions, gammas, indices,
    pending,
):  # fmt: skip
    """The state before the first observation."""
    for chain in range(CHAINS):
        position, gamma = stream(whole(seed), whole(first) + replication, whole(chain))
        position = (position + gamma) & MASK
        states[chain, lane] = sample(mix(position), size_of(sizes, chain), laws, chain * STATES)
        nexts[chain, lane] = ZERO if RESTLESS else NONE
        positions[chain, lane] = position
        gammas[chain, lane] = gamma
        transitions[chain, lane] = ZERO
        indices[chain, lane] = FIRST
        for j in range(WIDTH):
            total[chain, j, lane] = real(0.0)
        if BATCH > ONE:
            pending[chain, lane] = ZERO
    for row in range(CLEARED):
        exits[row, lane] = ZERO
        squares[row, lane] = ZERO
        if LOOKED:
            looked[row, lane] = ZERO
        for j in range(WIDTH):
            term[row, j, lane] = real(0.0)
        for y in range(STATES):
            counts[row, y, lane] = ZERO


def replicate(
    lane, replication, seed, first, budgets, sizes, table, laws, constants, weights, matrices, loss, pulls, kept,
    reals, wholes, pending, plans, packed,
    counts, exits, squares, looked, term, total, transitions, states, nexts, positions, gammas, indices,
):  # fmt: skip
    """One replication."""
    begin(
        lane, replication, seed, first, sizes, laws,
        counts, exits, squares, looked, term, total, transitions, states, nexts, positions, gammas, indices,
        pending,
    )  # fmt: skip
    same = take_constants(constants, ZERO)
    common = weights[ZERO]
    t = ZERO
    left = ZERO
    length = ONE
    chain = ZERO
    planned = ZERO
    following = ZERO
    latest = whole(CHAINS)
    for b in range(BUDGETS):
        last = whole(budgets[b])
        while t < last:
            if left == ZERO:
                if BATCH > ONE:
                    if following == planned:
                        planned = plan(
                            t, lane, constants, weights, total, transitions, nexts, indices, pending, plans
                        )  # fmt: skip
                        following = ZERO
                    chain = whole(plans[following, lane])
                    following = following + ONE
                else:
                    chain = choose(t, lane, indices, transitions, pending)
                if BLOCKS:
                    length = max(SHORTEST, whole(BLOCK * float(transitions[chain, lane])))
                left = length
            size = size_of(sizes, chain)
            left = left - ONE
            number = ZERO
            if RESTLESS:
                move_all(
                    t, chain, latest, lane, sizes, table, counts, exits, squares, transitions, states, nexts,
                    positions, gammas,
                )  # fmt: skip
                latest = chain
                number = whole(transitions[chain, lane])
            else:
                state = whole(states[chain, lane])
                after = whole(nexts[chain, lane])
                position = (whole(positions[chain, lane]) + whole(gammas[chain, lane])) & MASK
                if after == NONE:  # the first observation reveals a state and is no transition
                    nexts[chain, lane] = draw(position, chain, state, size, table)
                else:
                    row = chain * STATES + state
                    # All that is needed is loaded before anything is stored: the compiler cannot know that the arrays
                    # lie apart, and would wait for one after the other.
                    count = whole(counts[row, after, lane])
                    leaving = whole(exits[row, lane]) + ONE
                    square = whole(squares[row, lane]) + count + count + ONE
                    number = whole(transitions[chain, lane]) + ONE
                    old = take_lane(term, row, lane)
                    before = take_lane(total, chain, lane)
                    if not PACKED:
                        counts[row, after, lane] = count + ONE
                    next_state = draw(position, chain, after, size, table)
                    if not SUMMARY and length == ONE:
                        known = same if ALIKE else take_constants(constants, chain * CONSTANTS)
                        new = row_terms(
                            counts, packed, row, size, after, lane, real(counted(leaving)), real(squared(square)), known
                        )  # fmt: skip
                        sums = replace_all(before, old, new)
                        put_lane(term, row, lane, new)
                        put_lane(total, chain, lane, sums)
                        if LOOKED:
                            looked[row, lane] = leaving
                        if BATCH == ONE:
                            weight = common if ALIKE else weights[chain]
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
            if left == ZERO and number > ZERO and (SUMMARY or length > ONE):
                known = take_constants(constants, chain * CONSTANTS)
                learn(chain, size, lane, known, counts, packed, exits, squares, term, total, looked, reals, wholes)
                if BATCH == ONE:
                    indices[chain, lane] = value_of(chain, lane, number, constants, weights, total)
            if BATCH > ONE and following == planned:
                refresh(planned, lane, constants, weights, total, transitions, indices, plans)
        read(lane, replication, b, sizes, matrices, counts, exits, transitions, nexts, indices, loss, pulls, kept)


def run(
    number, seed, first, budgets, sizes, table, laws, constants, weights, matrices, loss, pulls, kept,
    reals, wholes, pending, plans, packed,
    device_counts, device_exits, device_squares, device_looked, device_term, device_total, device_transitions,
    device_states, device_nexts, device_positions, device_gammas, device_indices,
):  # fmt: skip
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
        words = packed
    else:
        counts = device_counts[:, :, start:end]
        exits = device_exits[:, start:end]
        squares = device_squares[:, start:end]
        looked = device_looked[:, start:end]
        term = device_term[:, :, start:end]
        words = packed[:, :, start:end]
    if CHAINS_SHARED:
        total = cuda.shared.array((SHAPE_CHAINS, SHAPE_TERMS, SHAPE_THREADS), real_type)
        transitions = cuda.shared.array((SHAPE_CHAINS, SHAPE_THREADS), count_type)
        states = cuda.shared.array((SHAPE_CHAINS, SHAPE_THREADS), count_type)
        nexts = cuda.shared.array((SHAPE_CHAINS, SHAPE_THREADS), count_type)
    else:
        total = device_total[:, :, start:end]
        transitions = device_transitions[:, start:end]
        states = device_states[:, start:end]
        nexts = device_nexts[:, start:end]
    if STREAMS_SHARED:
        positions = cuda.shared.array((SHAPE_CHAINS, SHAPE_THREADS), word_type)
        gammas = cuda.shared.array((SHAPE_CHAINS, SHAPE_THREADS), word_type)
    else:
        positions = device_positions[:, start:end]
        gammas = device_gammas[:, start:end]
    if INDICES_SHARED:
        indices = cuda.shared.array((SHAPE_CHAINS, SHAPE_THREADS), real_type)
    else:
        indices = device_indices[:, start:end]
    if start + lane < number:
        replicate(
            lane, start + lane, seed, first, budgets, sizes, table, laws, constants, weights, matrices, loss, pulls,
            kept, reals[:, start:end], wholes[:, start:end], pending[:, start:end], plans[:, start:end], words,
            counts, exits, squares, looked, term, total, transitions, states, nexts, positions, gammas, indices,
        )  # fmt: skip
