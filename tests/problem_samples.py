"""A chain, and its labels and matrix as a CSV table, for tests of problem files."""

from chainscout import MarkovChain

CHANNEL = MarkovChain([[0.9, 0.1], [0.4, 0.6]], [1.0, 0.0], ["good", "bad"])
CSV_TEXT = "state,good,bad\ngood,0.9,0.1\nbad,0.4,0.6\n"
