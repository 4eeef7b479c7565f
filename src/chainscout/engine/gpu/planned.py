"""The choice of the next chain: the one with the largest index, or the chains of a batch."""

from typing import Any

from ..rule import FIRST, NEVER, unbound

# Bound when the kernel is specialised; these values are never used.
index = floor = take_constants = take_lane = unbound
whole: Any = int
real: Any = float
counted: Any = int
#: K, the number of constants, the chains of a batch; whether the rule has a floor.
CHAINS = CONSTANTS = BATCH = 1
FLOOR = False
#: Whether there are blocks in batches: a block may span several batches.
HELD = False
BLOCK = 0.0
#: The next state of a chain that was never observed: the largest word of its type.
NONE = 0
ZERO, ONE, TWO = 0, 1, 2


def choose(t, lane, lanes):
    """The chain with the largest index, or the least sampled one while it is below the floor."""
    indices = lanes.indices
    best = indices[ZERO, lane]
    chosen = ZERO
    chain = ONE
    while chain < CHAINS:  # a range over words would need three times as many instructions
        value = indices[chain, lane]
        chosen = chain if value > best else chosen
        best = value if value > best else best
        chain = chain + ONE
    if FLOOR:
        fewest = sampled(ZERO, lane, lanes)
        behind = ZERO
        for chain in range(ONE, CHAINS):
            number = sampled(whole(chain), lane, lanes)
            if number < fewest:
                fewest = number
                behind = whole(chain)
        if real(fewest) < floor(real(t)):
            chosen = behind
    return chosen


def sampled(chain, lane, lanes):
    """T, including pending observations."""
    number = whole(lanes.transitions[chain, lane])
    if BATCH > ONE:
        number = number + whole(lanes.pending[chain, lane])
    return number


def value_of(chain, lane, number, tables, lanes):
    """A chain's index times its weight, with ``number`` instead of T."""
    known = take_constants(tables.constants, chain * CONSTANTS)
    return tables.weights[chain] * index(take_lane(lanes.total, chain, lane), real(counted(number)), known)


def plan(t, lane, tables, lanes):
    """Plans the chains of a batch (MATH §6): T includes the pending observations, the rest is frozen. → their number.

    Within its block a chain's index is not evaluated. An unknown chain gets the two observations of the warm-up, and no
    more before they are in.
    """
    transitions, indices, pending, plans = lanes.transitions, lanes.indices, lanes.pending, lanes.plans
    planned = ZERO
    while planned < BATCH:
        chain = choose(t, lane, lanes)
        if indices[chain, lane] == NEVER and transitions[chain, lane] == ZERO:
            break
        plans[planned, lane] = chain
        planned = planned + ONE
        waiting = whole(pending[chain, lane]) + ONE
        pending[chain, lane] = waiting
        number = whole(transitions[chain, lane])
        if number > ZERO:
            if not HELD or number + waiting >= lanes.looks[chain, lane]:
                indices[chain, lane] = value_of(chain, lane, number + waiting, tables, lanes)
        elif waiting >= TWO or lanes.nexts[chain, lane] != NONE:
            indices[chain, lane] = NEVER
    for step in range(planned):
        pending[whole(plans[step, lane]), lane] = ZERO
    return planned


def hold(chain, lane, number, tables, lanes):
    """Begins a block: computes a chain's index, which is held until the block ends."""
    lanes.held[chain, lane] = value_of(chain, lane, number, tables, lanes)
    lanes.looks[chain, lane] = number + max(ONE, whole(BLOCK * float(number)))


def refresh(planned, lane, tables, lanes):
    """Updates the indices of a batch's chains after its observations."""
    indices = lanes.indices
    for step in range(planned):
        chain = whole(lanes.plans[step, lane])
        number = whole(lanes.transitions[chain, lane])
        indices[chain, lane] = FIRST
        if number > ZERO:
            if HELD:
                indices[chain, lane] = lanes.held[chain, lane]
            else:
                indices[chain, lane] = value_of(chain, lane, number, tables, lanes)
