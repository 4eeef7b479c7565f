"""The kernel: one thread a replication, from its first observation to its last.

Every value of a replication stands in a column of its own, ``array[element, lane]``: neighbouring threads touch
neighbouring words, so that no access conflicts, in shared memory (``in_shared``) and in device memory (``in_device``).
Whole numbers that this module names are unsigned 64-bit words in compiled code; ``whole`` and ``real`` convert to them
and to the precision that rules are compiled for. The names in capitals and the rule's functions are bound when the
kernel is specialised (``launching``). The steps are those of the CPU's loops, operation by operation.
"""

import math
from typing import Any

from ...policies.policy import replaced
from ..layout import unbound
from ..randomness import MASK, mix, sample, stream

# Bound when the kernel is specialised; these values are never used.
cuda: Any = None
terms = index = entry = summary = floor = row_terms = unbound
whole: Any = int
signed: Any = int
real: Any = float
count_type: Any = None
square_type: Any = None
real_type: Any = None
word_type: Any = None
#: K, the largest S, numbers that terms give, budgets; S + 2 whole and 4S real scratch numbers of a summary.
CHAINS = STATES = WIDTH = BUDGETS = THREADS = 1
#: Elements a lane: K·S², K·S, K·S·width, K·width.
CELLS = ROWS = TERMS = SUMS = 1
#: The same for the shapes of shared arrays, which must stay plain whole numbers: the compiler needs their values.
SHAPE_CELLS = SHAPE_ROWS = SHAPE_LOOKED = SHAPE_TERMS = SHAPE_SUMS = SHAPE_CHAINS = SHAPE_THREADS = 1
#: Whether the rule gives a summary, has a floor, is looked at in blocks; whether rows keep N_x of the last look.
SUMMARY = FLOOR = BLOCKS = LOOKED = False
BLOCK = 0.0
FIRST = math.inf
ZERO, ONE, TWO, THREE, FOUR = 0, 1, 2, 3, 4


def terms_of_entries(counts, first, size, lane, exits, squares, known):
    """``terms`` of a rule with an ``entry``, which gets Σ_y entry(N[x,y], N_x, constants)."""
    total = real(0.0)
    for y in range(size):
        total += entry(real(counts[first + y, lane]), exits, known)
    return terms(total, exits, squares, known)


def terms_of_row(counts, first, size, lane, exits, squares, known):
    """``terms`` of another rule, which gets N[x,·] itself."""
    return terms(counts[first : first + size, lane], exits, squares, known)


def learn_row(chain, x, size, lane, known, counts, exits, squares, term, total):
    """One row's terms, and the sums with them."""
    row = chain * STATES + x
    left = real(exits[row, lane])
    new = row_terms(counts, row * STATES, size, lane, left, real(squares[row, lane]), known)
    for j in range(WIDTH):
        at = row * WIDTH + j
        total[chain * WIDTH + j, lane] = replaced(total[chain * WIDTH + j, lane], term[at, lane], new[j])
        term[at, lane] = new[j]


def learn(chain, only, length, size, lane, known, counts, exits, squares, term, total, looked, reals, wholes):
    """What the observations of a chain have changed: its sums."""
    if SUMMARY:
        for x in range(size):
            reals[x, lane] = real(exits[chain * STATES + x, lane])
            reals[size + x, lane] = real(squares[chain * STATES + x, lane])
        both = size + size
        new = summary(
            reals[:size, lane], reals[size:both, lane], signed(size), known, reals[both:, lane], wholes[:, lane]
        )
        for j in range(WIDTH):
            total[chain * WIDTH + j, lane] = new[j]
    elif length == ONE:
        learn_row(chain, only, size, lane, known, counts, exits, squares, term, total)
        if LOOKED:
            looked[chain * STATES + only, lane] = exits[chain * STATES + only, lane]
    elif LOOKED:
        for x in range(size):
            row = chain * STATES + x
            if exits[row, lane] != looked[row, lane]:
                looked[row, lane] = exits[row, lane]
                learn_row(chain, x, size, lane, known, counts, exits, squares, term, total)


def choose(t, lane, indices, transitions):
    """The chain with the largest index, or the least sampled one while it is below the floor."""
    best = indices[ZERO, lane]
    chosen = ZERO
    for chain in range(ONE, CHAINS):
        value = indices[chain, lane]
        if value > best:
            best = value
            chosen = chain
    if FLOOR:
        fewest = transitions[ZERO, lane]
        behind = ZERO
        for chain in range(ONE, CHAINS):
            number = transitions[chain, lane]
            if number < fewest:
                fewest = number
                behind = chain
        if real(fewest) < floor(real(t)):
            chosen = behind
    return whole(chosen)


def read(lane, replication, b, sizes, matrices, counts, exits, transitions, seen, loss, pulls):
    """L_k = Σ_x π̂(x)‖P(x,·) − P̂(x,·)‖² and the observations of every chain, in double precision."""
    for chain in range(CHAINS):
        size = whole(sizes[chain])
        pulls[b, replication, chain] = seen[chain, lane]
        number = float(transitions[chain, lane])
        alpha = 1.0 / (3.0 * float(size))
        total = 0.0
        for x in range(size):
            row = chain * STATES + x
            left = float(exits[row, lane])
            if left > 0.0:
                distance = 0.0
                for y in range(size):
                    estimate = (float(counts[row * STATES + y, lane]) + alpha) / (left + alpha * float(size))
                    error = matrices[row * STATES + y] - estimate
                    distance += error * error
                total += left / number * distance
        loss[b, replication, chain] = total if number > 0.0 else math.nan


def replicate(
    lane, replication, seed, first, budgets, sizes, table, laws, constants, weights, matrices, loss, pulls,
    counts, exits, squares, looked, term, total, transitions, seen, states, positions, gammas, indices, reals, wholes,
):  # fmt: skip
    """One replication."""
    for chain in range(CHAINS):
        size = whole(sizes[chain])
        position, gamma = stream(whole(seed), whole(first) + replication, whole(chain))
        position = (position + gamma) & MASK
        states[chain, lane] = sample(mix(position), size, laws, chain * STATES)
        positions[chain, lane] = position
        gammas[chain, lane] = gamma
        transitions[chain, lane] = ZERO
        seen[chain, lane] = ZERO
        indices[chain, lane] = FIRST
    for cell in range(CELLS):
        counts[cell, lane] = ZERO
    for row in range(ROWS):
        exits[row, lane] = ZERO
        squares[row, lane] = ZERO
        if LOOKED:
            looked[row, lane] = ZERO
    for place in range(TERMS):
        term[place, lane] = real(0.0)
    for place in range(SUMS):
        total[place, lane] = real(0.0)
    t = ZERO
    left = ZERO
    length = ONE
    chain = ZERO
    for b in range(BUDGETS):
        last = whole(budgets[b])
        while t < last:
            if left == ZERO:
                chain = choose(t, lane, indices, transitions)
                length = ONE
                if BLOCKS:
                    length = max(ONE, whole(BLOCK * float(transitions[chain, lane])))
                left = length
            only = whole(states[chain, lane])
            size = whole(sizes[chain])
            if seen[chain, lane] > ZERO:
                position = (whole(positions[chain, lane]) + whole(gammas[chain, lane])) & MASK
                positions[chain, lane] = position
                row = chain * STATES + only
                after = whole(sample(mix(position), size, table, row * STATES))
                count = whole(counts[row * STATES + after, lane])
                counts[row * STATES + after, lane] = count + ONE
                exits[row, lane] = whole(exits[row, lane]) + ONE
                squares[row, lane] = whole(squares[row, lane]) + count + count + ONE
                transitions[chain, lane] = whole(transitions[chain, lane]) + ONE
                states[chain, lane] = after
            seen[chain, lane] = whole(seen[chain, lane]) + ONE
            left = left - ONE
            t = t + ONE
            if left == ZERO and transitions[chain, lane] > ZERO:
                known = constants[chain]
                learn(
                    chain, only, length, size, lane, known, counts, exits, squares, term, total, looked, reals, wholes
                )  # fmt: skip
                sums = total[chain * WIDTH : chain * WIDTH + WIDTH, lane]
                indices[chain, lane] = weights[chain] * index(sums, real(transitions[chain, lane]), known)
        read(lane, replication, b, sizes, matrices, counts, exits, transitions, seen, loss, pulls)


def in_shared(
    number, seed, first, budgets, sizes, table, laws, constants, weights, matrices, loss, pulls, reals, wholes
):
    """All that a replication changes at every step stands in shared memory."""
    counts = cuda.shared.array((SHAPE_CELLS, SHAPE_THREADS), count_type)
    exits = cuda.shared.array((SHAPE_ROWS, SHAPE_THREADS), count_type)
    squares = cuda.shared.array((SHAPE_ROWS, SHAPE_THREADS), square_type)
    looked = cuda.shared.array((SHAPE_LOOKED, SHAPE_THREADS), count_type)
    term = cuda.shared.array((SHAPE_TERMS, SHAPE_THREADS), real_type)
    total = cuda.shared.array((SHAPE_SUMS, SHAPE_THREADS), real_type)
    transitions = cuda.shared.array((SHAPE_CHAINS, SHAPE_THREADS), count_type)
    seen = cuda.shared.array((SHAPE_CHAINS, SHAPE_THREADS), count_type)
    states = cuda.shared.array((SHAPE_CHAINS, SHAPE_THREADS), count_type)
    positions = cuda.shared.array((SHAPE_CHAINS, SHAPE_THREADS), word_type)
    gammas = cuda.shared.array((SHAPE_CHAINS, SHAPE_THREADS), word_type)
    indices = cuda.shared.array((SHAPE_CHAINS, SHAPE_THREADS), real_type)
    lane = whole(cuda.threadIdx.x)
    replication = whole(cuda.blockIdx.x) * THREADS + lane
    if replication < number:
        replicate(
            lane, replication, seed, first, budgets, sizes, table, laws, constants, weights, matrices, loss, pulls,
            counts, exits, squares, looked, term, total, transitions, seen, states, positions, gammas, indices,
            reals[:, replication - lane : replication - lane + THREADS],
            wholes[:, replication - lane : replication - lane + THREADS],
        )  # fmt: skip


def in_device(
    number, seed, first, budgets, sizes, table, laws, constants, weights, matrices, loss, pulls, reals, wholes,
    counts, exits, squares, looked, term, total, transitions, seen, states, positions, gammas, indices,
):  # fmt: skip
    """The same in device memory, for problems that are too large."""
    lane = whole(cuda.blockIdx.x) * THREADS + whole(cuda.threadIdx.x)
    if lane < number:
        replicate(
            lane, lane, seed, first, budgets, sizes, table, laws, constants, weights, matrices, loss, pulls,
            counts, exits, squares, looked, term, total, transitions, seen, states, positions, gammas, indices,
            reals, wholes,
        )  # fmt: skip
