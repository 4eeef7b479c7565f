"""Sources that repeat themselves, for learning again and for learning at once."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np

import chainscout as cs
from chainscout.sources import Recorded, simulated

CHAIN = cs.MarkovChain([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.4, 0.4, 0.2]], initial=[0, 0, 1])
RECORDED = np.random.default_rng(5).integers(0, 3, 200).tolist()


def recorded():
    return {"a": Recorded([RECORDED[:70], RECORDED[70:]])}


def simulated_chain():
    return simulated({"a": CHAIN}, seed=3)


def threads(executor):
    return ThreadPoolExecutor(2) if executor else nullcontext()
