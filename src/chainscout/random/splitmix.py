"""The source of the chains' next states: a counter-based generator and alias tables.

A chain's u-th draw is a function of (seed, replication, chain, u) alone. So every policy sees the same paths, and a run
can be cut anywhere. All arithmetic is modulo 2⁶⁴. Python's integers are masked. In compiled code every whole number
that this module names is an unsigned 64-bit word, so the masks do nothing.

The generator is SplitMix64 (Steele, Lea & Flood, OOPSLA 2014): the u-th output of a stream is mix(position + u·gamma).
Every (seed, replication, chain) has a position *and* a gamma of its own. With one common gamma all streams would be
pieces of the same cycle of length 2⁶⁴, and of 2²⁰ pieces of length 2²⁴ two would overlap with probability 0.6.
It was chosen by measurement: 64 bits take 0.6 ns, against 1.4 ns for Squares (Widynski 2020) and 1.3 ns for Philox
4×32-10 (Salmon et al. 2011; benchmarks/bench_engine.py). It passes BigCrush (Steele, Lea & Flood), and known answers
are published.
"""

#: The modulus minus one, and half a word.
MASK = 0xFFFFFFFFFFFFFFFF
LOW = 0xFFFFFFFF
HALF = 32

#: 2⁶⁴ over the golden ratio, made odd: the gamma of the published known answers.
GOLDEN = 0x9E3779B97F4A7C15
#: Stafford's variant 13 of the finaliser of MurmurHash3.
MIX_1, MIX_2 = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
SHIFT_1, SHIFT_2, SHIFT_3 = 30, 27, 31
#: The finaliser of MurmurHash3 itself, used to make gammas.
MURMUR_1, MURMUR_2 = 0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53
MURMUR_SHIFT = 33
#: Two different constants (the fractional parts of √2 and √3), so that position and gamma have independent hashes.
POSITION_SALT, GAMMA_SALT = 0x6A09E667F3BCC908, 0xBB67AE8584CAA73B
ZERO, ONE = 0, 1
ALTERNATING = 0xAAAAAAAAAAAAAAAA
FEWEST_CHANGES = 24
BITS = 64


def mix(z):
    """A bijection of the 64-bit words that scatters a counter."""
    z = ((z ^ (z >> SHIFT_1)) * MIX_1) & MASK
    z = ((z ^ (z >> SHIFT_2)) * MIX_2) & MASK
    return z ^ (z >> SHIFT_3)


def mix_gamma(z):
    """An odd word with at least 24 changes between neighbouring bits: near-periodic gammas make correlated streams."""
    z = ((z ^ (z >> MURMUR_SHIFT)) * MURMUR_1) & MASK
    z = ((z ^ (z >> MURMUR_SHIFT)) * MURMUR_2) & MASK
    z = (z ^ (z >> MURMUR_SHIFT)) | ONE
    changes = z ^ (z >> ONE)
    number = ZERO
    for bit in range(BITS):
        number = number + ((changes >> bit) & ONE)
    return z ^ ALTERNATING if number < FEWEST_CHANGES else z


def hashed(salt, seed, replication, chain):
    """A word for a stream. For one seed and salt, streams of the same replication never share it."""
    z = mix((seed + salt) & MASK)
    z = mix((z + (replication + ONE) * GOLDEN) & MASK)
    return mix((z + (chain + ONE) * GOLDEN) & MASK)


def stream(seed, replication, chain):
    """Position and gamma of one chain in one replication: its u-th draw, u = 1, 2, …, is mix(position + u·gamma)."""
    return (
        hashed(POSITION_SALT, seed, replication, chain),
        mix_gamma(hashed(GAMMA_SALT, seed, replication, chain)),
    )


def sample(draw, size, table, start):
    """One of ``size`` outcomes by the alias method (Walker 1977) from the ``size`` words of ``table`` from ``start``.

    A word of the table is a threshold (high half) and the other outcome (low half). The draw's high half times ``size``
    gives the column (high half of the product) and a fraction (low half), so that probabilities are resolved to 2⁻³².
    The code selects between two values instead of branching: a branch would be mispredicted half of the time, which
    would double the cost.
    """
    product = (draw >> HALF) * size
    column = product >> HALF
    word = table[start + column]
    return column if (product & LOW) < (word >> HALF) else word & LOW
