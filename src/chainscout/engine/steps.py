"""The loop: pick the largest index, advance that chain, update one row's terms, then the sums and that chain's index.

Four lanes (replications) are worked on side by side, written out as four copies of each line. What was tried, in
multiples of *bare* simulation at K = S = 5 (benchmarks/RESULTS.md has today's figures):
- one lane, scalar: about 13 for ba-mc; the next choice waits for the last index, some 130 cycles;
- lanes one after the other inside one loop: 8 to 10; a step is 150 instructions, so that the processor's window of
  about 320 holds two lanes and no more;
- stages over 16 to 32 lanes through arrays in memory, which LLVM's loop vectoriser takes: 6 (3.5 for scout); half the
  instructions move data in and out of the arrays;
- this: values stay in registers, and LLVM's superword vectoriser (which numba leaves off, see ``compiling``) makes one
  vector operation of four scalar ones: 2.6 (2.0 for scout). The detour of the new indices through ``board`` gives that
  vectoriser a place to start from: without it, square roots and divisions stay scalar, 3.9.
Unsigned places save numba's checks for negative ones (1.3 × on the whole). Two groups at a time hide one's latency.

The names ``terms``, ``index``, ``entry``, ``take``, … are bound when the loop is specialised (``specialising``).
"""

from collections.abc import Callable
from typing import Any

from .choosing import climb, scan_four
from .layout import (
    EXITS,
    FOUR,
    GAMMA,
    ONE,
    POSITION,
    ROW,
    SIZE,
    SQUARES,
    START,
    SUMS,
    TERMS,
    THREE,
    TRANSITIONS,
    TWO,
    WORDS,
    ZERO,
)
from .randomness import MASK, mix, sample

# Bound when the loop is specialised; these values are never used.
terms: Callable[..., Any]
index: Callable[..., Any]
row_terms: Callable[..., Any]
take_constants: Callable[..., Any]
totals: Callable[..., Any]
put: Callable[..., Any]
entry: Callable[..., Any]
#: Places before the counts in a row's record; floats in a chain's record; constants of a chain.
HEAD = REALS = CONSTANTS = 0
#: Whether terms are made of entries and all chains have the same number of states; whether there is a tree.
ALIKE = TREE = False


def terms_of_entries(rows, first, size, exits, squares, constants):  # type: ignore[no-untyped-def]
    """``terms`` of a rule with an ``entry``, which gets Σ_y entry(N[x,y], N_x, constants)."""
    total = 0.0
    for y in range(size):
        total += entry(rows[first + y], exits, constants)
    return terms(total, exits, squares, constants)


def terms_of_row(rows, first, size, exits, squares, constants):  # type: ignore[no-untyped-def]
    """``terms`` of another rule, which gets N[x,·] itself."""
    return terms(rows[first : first + size], exits, squares, constants)


def advance(lane, chain, chains, span, table, words, reals, rows):  # type: ignore[no-untyped-def]
    """One transition of a chain that was observed before, drawn and counted.

    → the chain's places in ``words`` and ``reals``, the row's place, N_x, Q_x, T, S.
    """
    number = lane * chains + chain
    word = number * WORDS
    position = (words[word + POSITION] + words[word + GAMMA]) & MASK
    words[word + POSITION] = position
    size = words[word + SIZE]
    before = words[word + ROW]
    after = sample(mix(position), size, table, before + HEAD)
    words[word + ROW] = words[word + START] + after * (size + HEAD)
    row = lane * span + before
    count = rows[row + HEAD + after]
    rows[row + HEAD + after] = count + 1.0
    exits = rows[row + EXITS] + 1.0
    rows[row + EXITS] = exits
    squares = rows[row + SQUARES] + (count + (count + 1.0))
    rows[row + SQUARES] = squares
    record = number * REALS
    transitions = reals[record + TRANSITIONS] + 1.0
    reals[record + TRANSITIONS] = transitions
    return record, row, exits, squares, transitions, size


def steps(  # type: ignore[no-untyped-def]
    first, last, groups, together, chains, leaves, span, table, words, reals, rows, indices, tree, constants, weights,
    board, tracing, choices, values,
):  # fmt: skip
    """Observations ``first`` … ``last`` − 1 of every lane, ``together`` groups at a time."""
    # Every chain is observed twice first, in their order: a chain with T = 0 has index +∞ (MATH §1).
    warm = chains * TWO
    begun = ZERO
    while begun < groups:
        ended = min(begun + together, groups)
        for t in range(first, last):
            for group in range(begun, ended):
                value = group * leaves * FOUR
                node = value * TWO
                lane_0 = group * FOUR
                lane_1 = lane_0 + ONE
                lane_2 = lane_0 + TWO
                lane_3 = lane_0 + THREE
                if t < warm:
                    chain_0 = chain_1 = chain_2 = chain_3 = t >> ONE
                elif TREE:
                    chain_0 = tree[node + FOUR]
                    chain_1 = tree[node + FOUR + ONE]
                    chain_2 = tree[node + FOUR + TWO]
                    chain_3 = tree[node + FOUR + THREE]
                else:
                    chain_0, chain_1, chain_2, chain_3 = scan_four(indices, value, chains)
                place_0 = value + chain_0 * FOUR
                place_1 = value + chain_1 * FOUR + ONE
                place_2 = value + chain_2 * FOUR + TWO
                place_3 = value + chain_3 * FOUR + THREE
                if tracing:
                    seen = (t - first) * groups * FOUR + lane_0
                    choices[seen] = chain_0
                    choices[seen + ONE] = chain_1
                    choices[seen + TWO] = chain_2
                    choices[seen + THREE] = chain_3
                    values[seen] = indices[place_0]
                    values[seen + ONE] = indices[place_1]
                    values[seen + TWO] = indices[place_2]
                    values[seen + THREE] = indices[place_3]
                if t < warm and t & ONE == ZERO:
                    continue  # the first observation of a chain reveals its state and is no transition
                record_0, row_0, exits_0, squares_0, transitions_0, size_0 = advance(
                    lane_0, chain_0, chains, span, table, words, reals, rows
                )
                record_1, row_1, exits_1, squares_1, transitions_1, size_1 = advance(
                    lane_1, chain_1, chains, span, table, words, reals, rows
                )
                record_2, row_2, exits_2, squares_2, transitions_2, size_2 = advance(
                    lane_2, chain_2, chains, span, table, words, reals, rows
                )
                record_3, row_3, exits_3, squares_3, transitions_3, size_3 = advance(
                    lane_3, chain_3, chains, span, table, words, reals, rows
                )
                known_0 = take_constants(constants, chain_0 * CONSTANTS)
                known_1 = take_constants(constants, chain_1 * CONSTANTS)
                known_2 = take_constants(constants, chain_2 * CONSTANTS)
                known_3 = take_constants(constants, chain_3 * CONSTANTS)
                if ALIKE:
                    total_0 = total_1 = total_2 = total_3 = 0.0
                    for y in range(HEAD, size_0 + HEAD):
                        total_0 += entry(rows[row_0 + y], exits_0, known_0)
                        total_1 += entry(rows[row_1 + y], exits_1, known_1)
                        total_2 += entry(rows[row_2 + y], exits_2, known_2)
                        total_3 += entry(rows[row_3 + y], exits_3, known_3)
                    terms_0 = terms(total_0, exits_0, squares_0, known_0)
                    terms_1 = terms(total_1, exits_1, squares_1, known_1)
                    terms_2 = terms(total_2, exits_2, squares_2, known_2)
                    terms_3 = terms(total_3, exits_3, squares_3, known_3)
                else:
                    terms_0 = row_terms(rows, row_0 + HEAD, size_0, exits_0, squares_0, known_0)
                    terms_1 = row_terms(rows, row_1 + HEAD, size_1, exits_1, squares_1, known_1)
                    terms_2 = row_terms(rows, row_2 + HEAD, size_2, exits_2, squares_2, known_2)
                    terms_3 = row_terms(rows, row_3 + HEAD, size_3, exits_3, squares_3, known_3)
                sums_0 = totals(reals, record_0, rows, row_0, terms_0)
                sums_1 = totals(reals, record_1, rows, row_1, terms_1)
                sums_2 = totals(reals, record_2, rows, row_2, terms_2)
                sums_3 = totals(reals, record_3, rows, row_3, terms_3)
                value_0 = weights[chain_0] * index(sums_0, transitions_0, known_0)
                value_1 = weights[chain_1] * index(sums_1, transitions_1, known_1)
                value_2 = weights[chain_2] * index(sums_2, transitions_2, known_2)
                value_3 = weights[chain_3] * index(sums_3, transitions_3, known_3)
                board[ZERO] = value_0
                board[ONE] = value_1
                board[TWO] = value_2
                board[THREE] = value_3
                put(rows, row_0 + TERMS, terms_0)
                put(rows, row_1 + TERMS, terms_1)
                put(rows, row_2 + TERMS, terms_2)
                put(rows, row_3 + TERMS, terms_3)
                put(reals, record_0 + SUMS, sums_0)
                put(reals, record_1 + SUMS, sums_1)
                put(reals, record_2 + SUMS, sums_2)
                put(reals, record_3 + SUMS, sums_3)
                indices[place_0] = board[ZERO]
                indices[place_1] = board[ONE]
                indices[place_2] = board[TWO]
                indices[place_3] = board[THREE]
                if TREE:
                    climb(tree, indices, value, node, leaves, chain_0)
                    climb(tree, indices, value + ONE, node + ONE, leaves, chain_1)
                    climb(tree, indices, value + TWO, node + TWO, leaves, chain_2)
                    climb(tree, indices, value + THREE, node + THREE, leaves, chain_3)
        begun = ended
