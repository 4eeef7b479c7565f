"""The loop: pick the largest index, advance that chain, update one row's terms, then the sums and that chain's index.

Four lanes (replications) are processed together, written out as four copies of each line. These designs were tried; the
numbers are nanoseconds per step of ba-mc (scout) at K = S = 5, where *bare* simulation takes 3.8
(benchmarks/bench_engine.py):
- one lane after the other in one loop, scalar: 56 (36). The next choice waits about 130 cycles for the last index. A
  step has 150 instructions, so the processor's window of about 320 holds only two lanes;
- stages over 16 to 32 lanes through arrays in memory, for LLVM's loop vectoriser: 31 (19). Half of the instructions
  move data in and out of those arrays;
- values in registers. LLVM's superword vectoriser (which numba leaves off, see ``compile``) makes one vector operation
  of four scalar ones: 18 (15). The detour of the new indices through ``board`` gives the vectoriser a place to start;
  without it, square roots and divisions stay scalar: 22 (24). It fails if anything is stored before all four lanes have
  read;
- fewer instructions: all choices before all steps, constants looked up once if chains are alike, one offset for index,
  T and sums, offsets in a lane's record, four matches at a time: 14.7 (10.8).
Unsigned offsets avoid numba's checks for negative ones. Two to four groups at a time hide each other's latency: with
one group a step takes 1.6 × as long, and eight groups are no faster than four. Hence ``state.TOGETHER``.

The names ``terms``, ``index``, ``entry``, ``take``, … are bound when the loop is specialised (``state.CpuLoop``).
"""

from typing import Any, NamedTuple

from ...random.splitmix import MASK, mix, sample
from ..rule import unbound
from .argmax import climb, scan_four
from .layout import (
    BASE,
    EXITS,
    FOUR,
    FOURTH,
    GAMMA,
    GROUP_WORDS,
    ONE,
    POSITION,
    ROW,
    SECOND,
    SIZE,
    SQUARES,
    START,
    TERMS,
    THIRD,
    THREE,
    TRANSITIONS,
    TWO,
    ZERO,
)

# Bound when the loop is specialised; these values are never used.
terms = index = row_terms = take_constants = totals = put = put_sums = entry = unbound
#: The number of values before the counts in a row's record; of floats in a chain's record of four lanes; of constants.
HEAD = STANDING = CONSTANTS = 0
#: Whether all chains have the same size, constants and weight; whether entries are then summed; whether there is a
#: tree.
ALIKE = ENTRIES = TREE = False


def terms_of_entries(rows, first, size, exits, squares, constants):
    """``terms`` of a rule with an ``entry``, which gets Σ_y entry(N[x,y], N_x, constants)."""
    total = 0.0
    for y in range(size):
        total += entry(rows[first + y], exits, constants)
    return terms(total, exits, squares, constants)


def terms_of_row(rows, first, size, exits, squares, constants):
    """``terms`` of another rule, which gets N[x,·] itself."""
    return terms(rows[first : first + size], exits, squares, constants)


def advance(word, place, common, table, words, standings, rows):
    """One transition of a chain that was observed before, drawn and counted.

    ``word`` and ``place``: the chain's records in ``words`` and ``standings``. → the row's place, N_x, Q_x, T, S.
    """
    position = (words[word + POSITION] + words[word + GAMMA]) & MASK
    words[word + POSITION] = position
    size = common if ALIKE else words[word + SIZE]
    before = words[word + ROW]
    after = sample(mix(position), size, table, before + HEAD)
    words[word + ROW] = words[word + START] + after * (size + HEAD)
    row = words[word + BASE] + before
    count = rows[row + HEAD + after]
    rows[row + HEAD + after] = count + 1.0
    exits = rows[row + EXITS] + 1.0
    rows[row + EXITS] = exits
    squares = rows[row + SQUARES] + (count + (count + 1.0))
    rows[row + SQUARES] = squares
    transitions = standings[place + TRANSITIONS] + 1.0
    standings[place + TRANSITIONS] = transitions
    return row, exits, squares, transitions, size


class Steps(NamedTuple):
    """The arguments of the loop: sizes, data that all lanes read, the state of the lanes, scratch space, a trace."""

    groups: Any
    #: How many groups are interleaved.
    together: Any
    chains: Any
    leaves: Any
    table: Any
    constants: Any
    weights: Any
    words: Any
    standings: Any
    rows: Any
    tree: Any
    #: The chain that each lane observes next; the new indices of a group.
    chosen: Any
    board: Any
    #: Whether ``choices`` and ``values`` record every choice and its index.
    tracing: Any
    choices: Any
    values: Any


def steps(first, last, run):
    """Observations ``first`` … ``last`` − 1 of every lane, ``run.together`` groups at a time."""
    groups, chains, leaves = run.groups, run.chains, run.leaves
    table, words, standings, rows, tree = run.table, run.words, run.standings, run.rows, run.tree
    constants, weights, chosen, board = run.constants, run.weights, run.chosen, run.board
    # Every chain is observed twice first, in their order: a chain with T = 0 has index +∞ (MATH §1).
    warm = chains * TWO
    common = words[SIZE]
    same = take_constants(constants, ZERO)
    weight = weights[ZERO]
    begun = ZERO
    while begun < groups:
        ended = min(begun + run.together, groups)
        for t in range(first, last):
            if t >= warm and not TREE:
                for group in range(begun, ended):
                    lane = group * FOUR
                    chain_0, chain_1, chain_2, chain_3 = scan_four(standings, group * leaves * STANDING, leaves)
                    chosen[lane] = chain_0
                    chosen[lane + ONE] = chain_1
                    chosen[lane + TWO] = chain_2
                    chosen[lane + THREE] = chain_3
            elif t < warm:
                for lane in range(begun * FOUR, ended * FOUR):
                    chosen[lane] = t >> ONE
            else:
                for lane in range(begun * FOUR, ended * FOUR):
                    chosen[lane] = tree[(lane >> TWO) * leaves * FOUR * TWO + FOUR + (lane & THREE)]
            if run.tracing:
                for lane in range(begun * FOUR, ended * FOUR):
                    run.choices[(t - first) * groups * FOUR + lane] = chosen[lane]
                    run.values[(t - first) * groups * FOUR + lane] = standings[
                        ((lane >> TWO) * leaves + chosen[lane]) * STANDING + (lane & THREE)
                    ]
            if t < warm and t & ONE == ZERO:
                continue  # the first observation of a chain shows its state and is not a transition
            for group in range(begun, ended):
                value = group * leaves * STANDING
                node = group * leaves * FOUR * TWO
                word = group * chains * GROUP_WORDS
                lane = group * FOUR
                chain_0 = chosen[lane]
                chain_1 = chosen[lane + ONE]
                chain_2 = chosen[lane + TWO]
                chain_3 = chosen[lane + THREE]
                place_0 = value + chain_0 * STANDING
                place_1 = value + chain_1 * STANDING + ONE
                place_2 = value + chain_2 * STANDING + TWO
                place_3 = value + chain_3 * STANDING + THREE
                row_0, exits_0, squares_0, transitions_0, size_0 = advance(
                    word + chain_0 * GROUP_WORDS, place_0, common, table, words, standings, rows
                )
                row_1, exits_1, squares_1, transitions_1, size_1 = advance(
                    word + chain_1 * GROUP_WORDS + SECOND, place_1, common, table, words, standings, rows
                )
                row_2, exits_2, squares_2, transitions_2, size_2 = advance(
                    word + chain_2 * GROUP_WORDS + THIRD, place_2, common, table, words, standings, rows
                )
                row_3, exits_3, squares_3, transitions_3, size_3 = advance(
                    word + chain_3 * GROUP_WORDS + FOURTH, place_3, common, table, words, standings, rows
                )
                known_0 = same if ALIKE else take_constants(constants, chain_0 * CONSTANTS)
                known_1 = same if ALIKE else take_constants(constants, chain_1 * CONSTANTS)
                known_2 = same if ALIKE else take_constants(constants, chain_2 * CONSTANTS)
                known_3 = same if ALIKE else take_constants(constants, chain_3 * CONSTANTS)
                if ENTRIES:
                    total_0 = total_1 = total_2 = total_3 = 0.0
                    for y in range(HEAD, common + HEAD):
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
                sums_0 = totals(standings, place_0, rows, row_0, terms_0)
                sums_1 = totals(standings, place_1, rows, row_1, terms_1)
                sums_2 = totals(standings, place_2, rows, row_2, terms_2)
                sums_3 = totals(standings, place_3, rows, row_3, terms_3)
                value_0 = (weight if ALIKE else weights[chain_0]) * index(sums_0, transitions_0, known_0)
                value_1 = (weight if ALIKE else weights[chain_1]) * index(sums_1, transitions_1, known_1)
                value_2 = (weight if ALIKE else weights[chain_2]) * index(sums_2, transitions_2, known_2)
                value_3 = (weight if ALIKE else weights[chain_3]) * index(sums_3, transitions_3, known_3)
                board[ZERO] = value_0
                board[ONE] = value_1
                board[TWO] = value_2
                board[THREE] = value_3
                put(rows, row_0 + TERMS, terms_0)
                put(rows, row_1 + TERMS, terms_1)
                put(rows, row_2 + TERMS, terms_2)
                put(rows, row_3 + TERMS, terms_3)
                put_sums(standings, place_0, sums_0)
                put_sums(standings, place_1, sums_1)
                put_sums(standings, place_2, sums_2)
                put_sums(standings, place_3, sums_3)
                standings[place_0] = board[ZERO]
                standings[place_1] = board[ONE]
                standings[place_2] = board[TWO]
                standings[place_3] = board[THREE]
                if TREE:
                    climb(tree, standings, value, node, leaves, chain_0)
                    climb(tree, standings, value + ONE, node + ONE, leaves, chain_1)
                    climb(tree, standings, value + TWO, node + TWO, leaves, chain_2)
                    climb(tree, standings, value + THREE, node + THREE, leaves, chain_3)
        begun = ended
