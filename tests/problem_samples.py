"""A chain for tests of problem files."""

from chainscout import MarkovChain

CHANNEL = MarkovChain([[0.9, 0.1], [0.4, 0.6]], [1.0, 0.0], ["good", "bad"])
