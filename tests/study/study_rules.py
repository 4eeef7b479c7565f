"""Small policies for the tests of studies: a sum over rows, a summary with blocks, and one that looks at the clock."""

import math

from chainscout import policies
from chainscout.policies import Policy


def _constants(setting):
    return 1.0 - 1.0 / setting.size, 1.0 / (3.0 * setting.size), float(setting.size)


def _terms(row, exits, squares, constants):
    cap, alpha, size = constants
    weight = exits + 1.0 / 3.0
    gini = 1.0 - (squares + 2.0 * alpha * exits + size * alpha * alpha) / (weight * weight)
    return (min(cap, gini + 2.0 / exits),)


def _index(sums, transitions, constants):
    root = math.sqrt(sums[0])
    return root * math.sqrt(root) / transitions


RULE = Policy("gini-rule", index=_index, terms=_terms, constants=_constants, power=0.75, parameters={"c": 2.0})


def _two_terms(row, exits, squares, constants):
    seen = 0.0
    for count in row:
        if count > 0:
            seen += 1.0
    return seen, math.sqrt(exits)


TWO_TERMS = Policy("two-terms", index=lambda sums, t, _: (sums[0] + sums[1]) / t, terms=_two_terms)


def _summary(exits, squares, size, constants, reals, wholes):
    total = 0.0
    for x in range(size):
        if exits[x] > 0.0:
            total += 1.0 - squares[x] / (exits[x] * exits[x]) + 1.0 / exits[x]
    return (total,)


BLOCKS = Policy("blocks", index=lambda sums, t, _: sums[0] / t, summary=_summary, block=0.05)

FLOOR = Policy("floor", index=_index, terms=_terms, constants=_constants, floor=lambda t: math.sqrt(t) + 1.0)

ROW_BLOCKS = policies.get("ba-mc:block=0.05")

RULES = [RULE, TWO_TERMS, BLOCKS, ROW_BLOCKS, FLOOR]
