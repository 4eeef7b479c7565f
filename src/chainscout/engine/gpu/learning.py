"""What observations change: a row's terms and a chain's sums."""

from typing import Any

from ..layout import unbound

# Bound when the kernel is specialised; these values are never used.
terms = entry = summary = row_terms = take_lane = put_lane = replace_all = unbound
signed: Any = int
whole: Any = int
real: Any = float
counted: Any = int
#: The largest S; whether the rule gives a summary; whether rows keep N_x of the last look.
STATES = 1
SUMMARY = LOOKED = False
#: How many counts there are in a word of a row in device memory, and where they stand in it.
PER_WORD = COUNT_BITS = COUNT_MASK = 1
#: The state that no row has: the largest word of its type.
NONE = 0
ZERO, ONE, TWO, THREE, FOUR, FIVE, SIX, SEVEN, EIGHT = 0, 1, 2, 3, 4, 5, 6, 7, 8


def terms_of_entries(counts, packed, reals, row, size, after, lane, exits, squares, known):
    """``terms`` of a rule with an ``entry``, which gets Σ_y entry(N[x,y], N_x, constants)."""
    total = real(0.0)
    for y in range(size):
        total += entry(real(counts[row, y, lane]), exits, known)
    return terms(total, exits, squares, known)


def add_word(word, place, size, after, total, exits, known):
    """The entries of the counts in one word of a row."""
    for part in range(PER_WORD):
        y = place * PER_WORD + whole(part)
        if y < size:
            number = word & COUNT_MASK
            if y == after:
                number = number + ONE
            total += entry(real(counted(number)), exits, known)
        if PER_WORD > ONE:
            word = word >> COUNT_BITS
    return total


def terms_of_words(counts, packed, reals, row, size, after, lane, exits, squares, known):
    """The same in device memory, with several counts a word and eight words at a time, before the last count is stored:
    the transition to ``after`` is added here. So all loads are under way together; one by one they took four times as
    long.
    """
    total = real(0.0)
    words = (size + PER_WORD - ONE) // PER_WORD
    last = words - ONE
    place = ZERO
    while place < words:
        word_0 = whole(packed[row, place, lane])
        word_1 = whole(packed[row, min(place + ONE, last), lane])
        word_2 = whole(packed[row, min(place + TWO, last), lane])
        word_3 = whole(packed[row, min(place + THREE, last), lane])
        word_4 = whole(packed[row, min(place + FOUR, last), lane])
        word_5 = whole(packed[row, min(place + FIVE, last), lane])
        word_6 = whole(packed[row, min(place + SIX, last), lane])
        word_7 = whole(packed[row, min(place + SEVEN, last), lane])
        total = add_word(word_0, place, size, after, total, exits, known)
        total = add_word(word_1, place + ONE, size, after, total, exits, known)
        total = add_word(word_2, place + TWO, size, after, total, exits, known)
        total = add_word(word_3, place + THREE, size, after, total, exits, known)
        total = add_word(word_4, place + FOUR, size, after, total, exits, known)
        total = add_word(word_5, place + FIVE, size, after, total, exits, known)
        total = add_word(word_6, place + SIX, size, after, total, exits, known)
        total = add_word(word_7, place + SEVEN, size, after, total, exits, known)
        place = place + EIGHT
    return terms(total, exits, squares, known)


def terms_of_row(counts, packed, reals, row, size, after, lane, exits, squares, known):
    """``terms`` of another rule, which gets N[x,·] itself: as real numbers, with which a difference can be negative."""
    for y in range(size):
        reals[y, lane] = real(counts[row, y, lane])
    return terms(reals[:size, lane], exits, squares, known)


def terms_of_totals(counts, packed, reals, row, size, after, lane, exits, squares, known):
    """``terms`` of a rule that never looks at the row which it is given."""
    return terms(reals[:, lane], exits, squares, known)


def learn_row(chain, row, size, lane, known, exits, squares, counts, packed, reals, term, total):
    """One row's terms, and the sums with them."""
    old = take_lane(term, row, lane)
    before = take_lane(total, chain, lane)
    new = row_terms(counts, packed, reals, row, size, NONE, lane, exits, squares, known)
    put_lane(term, row, lane, new)
    put_lane(total, chain, lane, replace_all(before, old, new))


def learn(chain, size, lane, known, counts, packed, exits, squares, term, total, looked, reals, wholes):
    """What a block of observations of a chain has changed: its sums."""
    if SUMMARY:
        for x in range(size):
            reals[x, lane] = real(exits[chain * STATES + x, lane])
            reals[size + x, lane] = real(squares[chain * STATES + x, lane])
        both = size + size
        new = summary(
            reals[:size, lane], reals[size:both, lane], signed(size), known, reals[both:, lane], wholes[:, lane]
        )
        put_lane(total, chain, lane, new)
    elif LOOKED:
        for x in range(size):
            row = chain * STATES + x
            left = exits[row, lane]
            if left != looked[row, lane]:
                looked[row, lane] = left
                leaving, square = real(left), real(squares[row, lane])
                learn_row(chain, row, size, lane, known, leaving, square, counts, packed, reals, term, total)
