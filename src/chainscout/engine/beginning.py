"""The state before the first observation: every chain's stream, and the state that its first observation will show."""

from ..random.splitmix import MASK, mix, sample, stream
from .layout import GAMMA, POSITION, ROW, SIZE, START, record


def begin(seed, replication, lanes, chains, head, laws, law_starts, words):
    """Streams and first states of replications ``replication``, ``replication`` + 1, … in ``words``.

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
