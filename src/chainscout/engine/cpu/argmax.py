"""The largest index in four lanes at a time: a scan, or a tournament tree for many chains.

Both give the smallest chain number among equal indices, so they always choose the same chains.
"""

from .layout import FOUR, ONE, THREE, TWO, ZERO

#: The distance between the records of neighbouring chains; bound when a loop is specialised.
STANDING = 0


def scan_one(standings, first, leaves):
    """The chain with the largest index in the lane whose values begin at ``first``. ``leaves`` is 4j + 1."""
    best = standings[first]
    chosen = ZERO
    place = first
    for chain in range(ONE, leaves, FOUR):
        value = standings[place + STANDING]
        chosen = chain if value > best else chosen
        best = value if value > best else best
        value = standings[place + STANDING * TWO]
        chosen = chain + ONE if value > best else chosen
        best = value if value > best else best
        value = standings[place + STANDING * THREE]
        chosen = chain + TWO if value > best else chosen
        best = value if value > best else best
        value = standings[place + STANDING * FOUR]
        chosen = chain + THREE if value > best else chosen
        best = value if value > best else best
        place = place + STANDING * FOUR
    return chosen


def match(standings, place, chain, best, chosen):
    """Compares one more chain with the best so far, in each lane. Written out lane by lane, so that LLVM vectorises."""
    best_0, best_1, best_2, best_3 = best
    chosen_0, chosen_1, chosen_2, chosen_3 = chosen
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
    return (best_0, best_1, best_2, best_3), (chosen_0, chosen_1, chosen_2, chosen_3)


def scan_four(standings, first, leaves):
    """The chains with the largest index in the four lanes of a group. ``leaves`` is 4j + 1: four matches a turn."""
    best = standings[first], standings[first + ONE], standings[first + TWO], standings[first + THREE]
    chosen = ZERO, ZERO, ZERO, ZERO
    place = first
    for chain in range(ONE, leaves, FOUR):
        best, chosen = match(standings, place + STANDING, chain, best, chosen)
        best, chosen = match(standings, place + STANDING * TWO, chain + ONE, best, chosen)
        best, chosen = match(standings, place + STANDING * THREE, chain + TWO, best, chosen)
        best, chosen = match(standings, place + STANDING * FOUR, chain + THREE, best, chosen)
        place = place + STANDING * FOUR
    return chosen


def climb(tree, standings, first, nodes, leaves, chain):
    """Replays the matches from a chain whose index has changed up to the root, in the tree of one lane.

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
