"""Problems that were constructed to show one thing each."""

from typing import Any

import numpy as np

from ...chains import MarkovChain
from ...errors import InputError
from ...validation import real_number, whole_number
from .entry import Chains, Entry, numbers, sizes, unlike


def two_state(epsilons: Any = (0.5, 0.1, 0.02)) -> Chains:
    """[[1/2, 1/2], [ε, 1−ε]] for each ε. π = (2ε/(1+2ε), 1/(1+2ε)), not what the paper prints (MATH §2)."""
    values = numbers(epsilons, "epsilons", "the probability of leaving the lazy state, one a chain")
    unlike(values, "epsilons")
    return {
        f"epsilon={value!r}": MarkovChain([[0.5, 0.5], [value, 1 - value]], states=["s1", "s2"]) for value in values
    }


def gilbert_elliott(failure: Any = (0.001, 0.02, 0.1, 0.4), recovery: Any = (0.05, 0.2, 0.5, 0.6)) -> Chains:
    """A channel good → bad with probability ``failure``, bad → good with ``recovery``, for each pair of the two."""
    falls = numbers(failure, "failure", "the probability from good to bad, one a channel")
    rises = numbers(recovery, "recovery", "the probability from bad to good, one a channel")
    if len(falls) != len(rises):
        raise InputError(
            f"failure and recovery must be as many, one of each a channel, not {len(falls)} and {len(rises)}"
        )
    pairs = list(zip(falls, rises, strict=True))
    unlike(pairs, "the pairs of failure and recovery")
    return {
        f"failure={p!r} recovery={q!r}": MarkovChain([[1 - p, p], [q, 1 - q]], states=["good", "bad"]) for p, q in pairs
    }


def unlike_variabilities(states: Any = 5, noise: Any = 0.02) -> Chains:
    """A sticky, a cyclic and a uniform chain. The first two do the usual thing except with probability ``noise``."""
    _, size = sizes(3, states, least_states=2)
    noise = real_number(noise, "noise", above=0.0, below=1.0, meaning="the probability of not doing the usual thing")
    stray = noise / (size - 1)
    sticky = np.full((size, size), stray)
    np.fill_diagonal(sticky, 1 - noise)
    return {
        "sticky": MarkovChain(sticky),
        "cyclic": MarkovChain(np.roll(sticky, 1, axis=1)),
        "uniform": MarkovChain(np.full((size, size), 1 / size)),
    }


def birth_death(birth: Any = (0.1, 0.2, 0.3, 0.4), death: Any = 0.3, states: Any = 6) -> Chains:
    """One up with probability ``birth`` (one per chain), one down with ``death``, else stay; π ∝ (birth/death)^x."""
    ups = numbers(birth, "birth", "the probability of a step up, one a chain")
    unlike(ups, "birth")
    down = real_number(death, "death", above=0.0, below=1.0, meaning="the probability of a step down")
    _, size = sizes(len(ups), states, least_states=2)
    if max(ups) + down > 1:
        raise InputError(
            f"birth and death are probabilities of one step, but {max(ups)} and {down} sum to more than one"
        )
    chains = {}
    for up in ups:
        matrix = np.diag(np.full(size - 1, up), 1) + np.diag(np.full(size - 1, down), -1)
        chains[f"birth={up!r}"] = MarkovChain(matrix + np.diag(1 - matrix.sum(axis=1)))
    return chains


def nearly_decomposable(coupling: Any = (0.1, 0.01, 0.001), blocks: Any = 2, size: Any = 3) -> Chains:
    """Blocks of equally likely states. With probability ``coupling`` (one for each chain) a step leaves its block."""
    leaks = numbers(coupling, "coupling", "the probability of leaving a block, one a chain")
    unlike(leaks, "coupling")
    number = whole_number(blocks, "blocks", least=2, meaning="the number of blocks")
    within = whole_number(size, "size", meaning="the number of states of a block")
    _, total = sizes(len(leaks), number * within)
    same = np.kron(np.eye(number), np.ones((within, within)))
    return {
        f"coupling={leak!r}": MarkovChain(same * ((1 - leak) / within) + (1 - same) * (leak / (total - within)))
        for leak in leaks
    }


def equal(chains: Any = 4, states: Any = 3) -> Chains:
    """Equal chains: from x to y with probability ∝ 1/(1 + (y−x mod S))."""
    number, size = sizes(chains, states)
    weights = 1 / (1 + np.arange(size))
    matrix = np.stack([np.roll(weights / weights.sum(), x) for x in range(size)])
    return {f"chain-{k + 1}": MarkovChain(matrix) for k in range(number)}


CONSTRUCTED = (
    Entry(
        "two-state",
        two_state,
        "Two states, the second left with probability ε only: a chain can be nearly deterministic where it stays and"
        " hard to learn where it hardly ever is.",
        "M. S. Talebi and O.-A. Maillard, Learning Multiple Markov Chains via Adaptive Allocation, NeurIPS 2019,"
        " section 2, the example of the loss functions. (Its stationary law is (2ε/(1+2ε), 1/(1+2ε)).)",
    ),
    Entry(
        "gilbert-elliott",
        gilbert_elliott,
        "Channels that are good or bad, from long rare bursts to nearly memoryless.",
        "E. N. Gilbert, Capacity of a burst-noise channel, Bell System Technical Journal 39 (1960) 1253-1265; E. O."
        " Elliott, Estimates of error rates for codes on burst-noise channels, Bell System Technical Journal 42 (1963)"
        " 1977-1997; the two-state form is that of M. Mushkin and I. Bar-David, Capacity and coding for the"
        " Gilbert-Elliott channels, IEEE Transactions on Information Theory 35 (1989) 1277-1290. The parameters are"
        " ours.",
    ),
    Entry(
        "unlike",
        unlike_variabilities,
        "A sticky, a cyclic and a uniform chain: the last holds nearly all the variability, so uniform allocation"
        " wastes most of its budget.",
        "Constructed for chainscout.",
    ),
    Entry(
        "birth-death",
        birth_death,
        "Birth-and-death chains of unlike drift, reversible, some with states that are hardly ever visited.",
        "The chains are those of D. A. Levin, Y. Peres and E. L. Wilmer, Markov Chains and Mixing Times, American"
        " Mathematical Society 2009, section 2.5. The parameters are ours.",
    ),
    Entry(
        "nearly-decomposable",
        nearly_decomposable,
        "Blocks of states that are hardly ever left: the same work to learn each row, but a path can stay in one block"
        " for the whole budget.",
        "After H. A. Simon and A. Ando, Aggregation of variables in dynamic systems, Econometrica 29 (1961) 111-138."
        " The parameters are ours.",
    ),
    Entry(
        "equal",
        equal,
        "Equal chains, where uniform allocation is optimal and adapting can only lose.",
        "Constructed for chainscout.",
    ),
)
