"""The largest index, of four lanes at a time: a scan, or a tournament tree for many chains.

Both give the smallest chain number among equal indices, so that they choose the same chains to the bit.
"""

from .layout import FOUR, ONE, THREE, TWO, ZERO

#: How far the records of neighbouring chains are apart; bound when a loop is specialised.
STANDING = 0


def scan_one(standings, first, chains):
    """The chain with the largest index of the lane whose values begin at ``first``."""
    best = standings[first]
    chosen = ZERO
    place = first
    for chain in range(ONE, chains):
        place = place + STANDING
        value = standings[place]
        if value > best:
            best = value
            chosen = chain
    return chosen


def match(standings, place, chain, best_0, best_1, best_2, best_3, chosen_0, chosen_1, chosen_2, chosen_3):
    """One more chain against the best so far, in each lane. Written out lane by lane: LLVM makes vectors of this."""
    value_0 = standings[place]
    value_1 = standings[place + ONE]
    value_2 = standings[place + TWO]
    value_3 = standings[place + THREE]
    chosen_0 = chain if value_0 > best_0 else chosen_0
    chosen_1 = chain if value_1 > best_1 else chosen_1
    chosen_2 = chain if value_2 > best_2 else chosen_2
    chosen_3 = chain if value_3 > best_3 else chosen_3
    best_0 = value_0 if value_0 > best_0 else best_0
    best_1 = value_1 if value_1 > best_1 else best_1
    best_2 = value_2 if value_2 > best_2 else best_2
    best_3 = value_3 if value_3 > best_3 else best_3
    return best_0, best_1, best_2, best_3, chosen_0, chosen_1, chosen_2, chosen_3


def scan_four(standings, first, leaves):
    """The chains with the largest index in the four lanes of a group. ``leaves`` is 4j + 1: four matches a turn."""
    best_0 = standings[first]
    best_1 = standings[first + ONE]
    best_2 = standings[first + TWO]
    best_3 = standings[first + THREE]
    chosen_0 = chosen_1 = chosen_2 = chosen_3 = ZERO
    state = best_0, best_1, best_2, best_3, chosen_0, chosen_1, chosen_2, chosen_3
    place = first
    for chain in range(ONE, leaves, FOUR):
        state = match(standings, place + STANDING, chain, *state)
        state = match(standings, place + STANDING * TWO, chain + ONE, *state)
        state = match(standings, place + STANDING * THREE, chain + TWO, *state)
        state = match(standings, place + STANDING * FOUR, chain + THREE, *state)
        place = place + STANDING * FOUR
    return state[4], state[5], state[6], state[7]


def climb(tree, standings, first, nodes, leaves, chain):
    """The matches on the way from a chain whose index has changed to the root, in the tree of one lane.

    ``nodes`` and ``first`` are where the lane's nodes and indices begin. Node 1 is the root, 2j and 2j + 1 are below
    node j, and the leaf of chain k is node ``leaves`` + k, ``leaves`` a power of two.
    """
    node = (leaves + chain) >> ONE
    while node > ZERO:
        below = nodes + (node << ONE) * FOUR
        left = tree[below]
        right = tree[below + FOUR]
        tree[nodes + node * FOUR] = (
            right if standings[first + right * STANDING] > standings[first + left * STANDING] else left
        )
        node = node >> ONE
