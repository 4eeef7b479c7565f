"""A replication's chains: how they begin, how they move, what is read of them at a budget."""

import math
from typing import Any

from ...random.splitmix import MASK, mix, sample, stream
from ..rounds import FIRST

# Bound when the kernel is specialised; these values are never used.
whole: Any = int
signed: Any = int
wide: Any = int
real: Any = float
#: K, the largest S, numbers that terms give, chains of a batch.
CHAINS = STATES = WIDTH = BATCH = 1
#: The rows that a thread clears itself: all in shared memory, none in device memory, which is handed over cleared: word
#: by word that would take longer than the steps.
CLEARED = 0
#: Whether all chains have the same size; whether rows keep N_x of the last look; whether there are blocks in batches;
#: whether all chains move at every step; whether counts are wanted rather than losses.
ALIKE = LOOKED = HELD = RESTLESS = KEEP_COUNTS = False
#: The next state of a chain that was never observed: the largest word of its type.
NONE = 0
ZERO, ONE = 0, 1


def size_of(sizes, chain):
    """S_k, known to the compiler where all are alike: it then unrolls the loops over states."""
    if ALIKE:
        return STATES
    return whole(sizes[chain])


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
                squares[row, lane] = wide(squares[row, lane]) + wide(count + count + ONE)
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
    pending, looks,
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
            if HELD:
                looks[chain, lane] = ZERO
    for row in range(CLEARED):
        exits[row, lane] = ZERO
        squares[row, lane] = ZERO
        if LOOKED:
            looked[row, lane] = ZERO
        for j in range(WIDTH):
            term[row, j, lane] = real(0.0)
        for y in range(STATES):
            counts[row, y, lane] = ZERO
