"""The largest index, of four lanes at a time: a scan, or a tournament tree for many chains.

Both give the smallest chain number among equal indices, so that they choose the same chains to the bit.
"""

from .layout import FOUR, ONE, THREE, TWO, ZERO

# The names below stand for functions or numbers that are bound when a loop is specialised.


def scan_one(indices, first, chains):  # type: ignore[no-untyped-def]
    """The chain with the largest index of the lane whose values begin at ``first``."""
    best = indices[first]
    chosen = ZERO
    place = first
    for chain in range(ONE, chains):
        place = place + FOUR
        value = indices[place]
        if value > best:
            best = value
            chosen = chain
    return chosen


def scan_four(indices, first, chains):  # type: ignore[no-untyped-def]
    """The same for the four lanes of a group. Written out lane by lane: this is what LLVM turns into vectors."""
    best_0 = indices[first]
    best_1 = indices[first + ONE]
    best_2 = indices[first + TWO]
    best_3 = indices[first + THREE]
    chosen_0 = ZERO
    chosen_1 = ZERO
    chosen_2 = ZERO
    chosen_3 = ZERO
    place = first
    for chain in range(ONE, chains):
        place = place + FOUR
        value_0 = indices[place]
        value_1 = indices[place + ONE]
        value_2 = indices[place + TWO]
        value_3 = indices[place + THREE]
        chosen_0 = chain if value_0 > best_0 else chosen_0
        chosen_1 = chain if value_1 > best_1 else chosen_1
        chosen_2 = chain if value_2 > best_2 else chosen_2
        chosen_3 = chain if value_3 > best_3 else chosen_3
        best_0 = value_0 if value_0 > best_0 else best_0
        best_1 = value_1 if value_1 > best_1 else best_1
        best_2 = value_2 if value_2 > best_2 else best_2
        best_3 = value_3 if value_3 > best_3 else best_3
    return chosen_0, chosen_1, chosen_2, chosen_3


def climb(tree, indices, values, nodes, leaves, chain):  # type: ignore[no-untyped-def]
    """The matches on the way from a chain whose index has changed to the root, in the tree of one lane.

    ``nodes`` and ``values`` are where the lane's nodes and indices begin. Node 1 is the root, 2j and 2j + 1 are below
    node j, and the leaf of chain k is node ``leaves`` + k, ``leaves`` a power of two.
    """
    node = (leaves + chain) >> ONE
    while node > ZERO:
        below = nodes + (node << ONE) * FOUR
        left = tree[below]
        right = tree[below + FOUR]
        tree[nodes + node * FOUR] = right if indices[values + right * FOUR] > indices[values + left * FOUR] else left
        node = node >> ONE
