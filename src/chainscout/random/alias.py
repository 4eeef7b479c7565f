"""Alias tables (Walker 1977, Vose 1991): a draw from any law on S outcomes takes one look-up, whatever S is."""

import numpy as np
import numpy.typing as npt

from .splitmix import HALF, ONE, ZERO

#: The probability of a column is cut into this many parts.
FULL = 1 << 32


def parts(laws: npt.NDArray[np.float64]) -> npt.NDArray[np.uint64]:
    """Laws on S outcomes (last axis) in parts of 1/(S·2³²) that sum to one exactly.

    The remainder from rounding goes to the likeliest outcome. An outcome of probability zero has no part.
    """
    size = laws.shape[-1]
    whole = np.rint(laws * (size * float(FULL))).astype(np.int64).reshape(-1, size)
    likeliest = laws.reshape(-1, size).argmax(axis=1)
    whole[np.arange(len(whole)), likeliest] += size * FULL - whole.sum(axis=1)
    return np.asarray(whole.reshape(laws.shape), np.uint64)


def table(laws: npt.NDArray[np.float64]) -> npt.NDArray[np.uint64]:
    """The words of the alias tables for laws on S outcomes, row by row, S words each."""
    number, size = laws.shape
    words, scratch = [0] * (number * size), [0] * size
    fill(words, 0, size, number, size, parts(laws).ravel().tolist(), scratch, scratch.copy())
    return np.array(words, np.uint64)


def fill(table, first, stride, number, size, shares, small, large):
    """Fills ``number`` tables of ``size`` words each, ``stride`` apart and starting at ``first``, from ``shares``.

    ``shares`` are the result of ``parts``. A word is a threshold (high half) and the other outcome (low half);
    ``splitmix.sample`` reads it. If one outcome fills a column, both sides lead to that outcome. ``small`` and
    ``large`` are scratch space for S words.
    """
    for law in range(number):
        start = law * size
        lows = ZERO
        highs = ZERO
        for y in range(size):
            if shares[start + y] < FULL:
                small[lows] = y
                lows = lows + ONE
            else:
                large[highs] = y
                highs = highs + ONE
        place = first + law * stride
        while lows > ZERO:
            lows = lows - ONE
            y = small[lows]
            other = large[highs - ONE]
            table[place + y] = (shares[start + y] << HALF) | other
            shares[start + other] = shares[start + other] - (FULL - shares[start + y])
            if shares[start + other] < FULL:
                highs = highs - ONE
                small[lows] = other
                lows = lows + ONE
        for j in range(highs):
            table[place + large[j]] = large[j]
