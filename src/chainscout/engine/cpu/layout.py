"""The layout of the flat arrays of the CPU's loops, and the beginning of a replication. Whole numbers here are unsigned
words in compiled code.

One replication is a *lane*, four lanes are a *group*: four doubles fill a vector register.

``words``: for every group, chain and lane a record of WORDS unsigned words: its random stream and its position.
``standings``: for every group and chain the index, T and the running sums. Each of them is four neighbouring floats,
one
    per lane, so that one offset serves all three.
``rows``: for every lane, chain and state a record of floats: N_x, Q_x = Σ_y N[x,y]², the row's terms, then N[x,·].
    Counts are floats because rules receive floats: no conversion in the loop. They are exact below 2⁵³, and Q below
    N_x ≈ 9·10⁷; beyond that each addition to Q is correctly rounded.
``table``: alias words at the same positions as the counts that they lead to, shared by all lanes.
``tree``: for every group and node four neighbouring chains, one per lane.
"""

from ...random.splitmix import MASK, mix, sample, stream

ZERO, ONE, TWO, THREE, FOUR = 0, 1, 2, 3, 4

#: A chain's record in ``words``: the stream, the place of the current state's row and of the first (in ``table``), S,
#: how often it was observed, where the lane's ``rows`` begin. Eight words are a cache line.
POSITION, GAMMA, ROW, START, SIZE, SEEN, BASE = 0, 1, 2, 3, 4, 5, 6
WORDS = 8
#: The records of the second, third and fourth lane of a group stand behind the first lane's.
SECOND, THIRD, FOURTH = 8, 16, 24
GROUP_WORDS = 32


def record(lane, chain, chains):
    """The position in ``words`` at which the record of a lane's chain begins."""
    return ((lane >> TWO) * chains + chain) * GROUP_WORDS + (lane & THREE) * WORDS


#: A chain's record in ``standings``: four indices, four T, then the sums; its length is a power of two.
TRANSITIONS, SUMS = 4, 8

#: A row's record in ``rows``: N_x and Q_x, then the terms; with blocks, N_x when the terms were last computed; counts.
EXITS, SQUARES, TERMS = 0, 1, 2


def begin(seed, replication, lanes, chains, head, laws, law_starts, words):
    """Streams and first states of replications ``replication``, ``replication`` + 1, … in ``words``: the state before
    the first observation.

    The first draw of a stream is the first state; ``laws`` has the alias table of every chain's initial law.
    """
    for lane in range(lanes):
        for chain in range(chains):
            word = record(lane, chain, chains)
            position, gamma = stream(seed, replication + lane, chain)
            position = (position + gamma) & MASK
            size = words[word + SIZE]
            state = sample(mix(position), size, laws, law_starts[chain])
            words[word + POSITION] = position
            words[word + GAMMA] = gamma
            words[word + ROW] = words[word + START] + state * (size + head)
