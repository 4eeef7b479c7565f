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

from typing import Any

from ...random.splitmix import MASK
from ..layout import unbound
from .learning import learn
from .observing import begin, draw, move_all, read, size_of
from .planning import choose, hold, plan, refresh, value_of

# Bound when the kernel is specialised; these values are never used.
cuda: Any = None
index = row_terms = take_constants = take_lane = put_lane = replace_all = unbound
whole: Any = int
real: Any = float
#: N_x and T, and Σ_y N[x,y]², in the narrowest type that converts to ``real`` fast.
counted: Any = int
squared: Any = int
#: Σ_y N[x,y]² while it is added to: a word, or a float where it can be beyond 2⁶⁴.
wide: Any = int
count_type: Any = None
square_type: Any = None
real_type: Any = None
word_type: Any = None
#: K, the largest S, constants, budgets, threads of a block, chains of a batch.
CHAINS = STATES = CONSTANTS = BUDGETS = THREADS = BATCH = 1
#: The same for the shapes of shared arrays, which must stay plain whole numbers: the compiler needs their values.
SHAPE_CHAINS = SHAPE_STATES = SHAPE_ROWS = SHAPE_LOOKED = SHAPE_TERMS = SHAPE_THREADS = 1
#: Whether all chains have the same size, constants and weight; whether the rule gives a summary; whether looks last
#: longer than one observation; whether rows keep N_x of the last look; whether there are blocks in batches; whether all
#: chains move at every step.
ALIKE = SUMMARY = BLOCKS = LOOKED = HELD = RESTLESS = False
BLOCK = 0.0
SHORTEST = 1
#: Which of the state's arrays stand in shared memory (``memory.Layout``); whether rows are read as words of several
#: counts.
ROWS_SHARED = CHAINS_SHARED = STREAMS_SHARED = INDICES_SHARED = False
PACKED = False
#: The next state of a chain that was never observed: the largest word of its type.
NONE = 0
ZERO, ONE = 0, 1


def replicate(
    lane, replication, seed, first, budgets, sizes, table, laws, constants, weights, matrices, loss, pulls, kept,
    reals, wholes, pending, plans, looks, held, packed,
    counts, exits, squares, looked, term, total, transitions, states, nexts, positions, gammas, indices,
):  # fmt: skip
    """One replication."""
    begin(
        lane, replication, seed, first, sizes, laws,
        counts, exits, squares, looked, term, total, transitions, states, nexts, positions, gammas, indices,
        pending, looks,
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
                            t, lane, constants, weights, total, transitions, nexts, indices, pending, plans, looks,
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
                    square = wide(squares[row, lane]) + wide(count + count + ONE)
                    number = whole(transitions[chain, lane]) + ONE
                    old = take_lane(term, row, lane)
                    before = take_lane(total, chain, lane)
                    if not PACKED:
                        counts[row, after, lane] = count + ONE
                    next_state = draw(position, chain, after, size, table)
                    if not SUMMARY and not HELD and length == ONE:
                        known = same if ALIKE else take_constants(constants, chain * CONSTANTS)
                        new = row_terms(
                            counts, packed, reals, row, size, after, lane,
                            real(counted(leaving)), real(squared(square)), known,
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
            if left == ZERO and number > ZERO and (SUMMARY or HELD or length > ONE):
                if not HELD or number >= looks[chain, lane]:
                    known = take_constants(constants, chain * CONSTANTS)
                    learn(chain, size, lane, known, counts, packed, exits, squares, term, total, looked, reals, wholes)
                    if HELD:
                        hold(chain, lane, number, constants, weights, total, looks, held)
                if BATCH == ONE:
                    indices[chain, lane] = value_of(chain, lane, number, constants, weights, total)
            if BATCH > ONE and following == planned:
                refresh(planned, lane, constants, weights, total, transitions, indices, plans, held)
        read(lane, replication, b, sizes, matrices, counts, exits, transitions, nexts, indices, loss, pulls, kept)


def run(
    number, seed, first, budgets, sizes, table, laws, constants, weights, matrices, loss, pulls, kept,
    reals, wholes, pending, plans, looks, held, packed,
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
            kept, reals[:, start:end], wholes[:, start:end], pending[:, start:end], plans[:, start:end],
            looks[:, start:end], held[:, start:end], words,
            counts, exits, squares, looked, term, total, transitions, states, nexts, positions, gammas, indices,
        )  # fmt: skip
