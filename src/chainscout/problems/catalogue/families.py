"""Seeded random families. Chain k is a function of the seed, k and its own parameters: more chains do not change it."""

from typing import Any

import numpy as np

from ...chains import MarkovChain
from ...errors import InputError
from ...validation import real_number, whole_number
from .entry import Chains, Entry, sizes


def dirichlet(chains: Any = 5, states: Any = 5, concentration: Any = 1.0, seed: Any = 0) -> Chains:
    """Rows drawn from the symmetric Dirichlet law: the smaller the concentration, the nearer to deterministic."""
    number, size = sizes(chains, states)
    shape = _concentration(concentration)
    return {
        name: MarkovChain(generator.dirichlet(np.full(size, shape), size))
        for name, generator in _generators(number, seed).items()
    }


def reversible(chains: Any = 5, states: Any = 5, concentration: Any = 1.0, seed: Any = 0) -> Chains:
    """P(x,y) = w(x,y)/Σ_y w(x,y) with symmetric weights w drawn from the gamma law of shape ``concentration``."""
    number, size = sizes(chains, states)
    shape = _concentration(concentration)
    result = {}
    for name, generator in _generators(number, seed).items():
        upper = np.triu(generator.gamma(shape, size=(size, size)))
        weights = upper + np.triu(upper, 1).T
        result[name] = MarkovChain(weights / weights.sum(axis=1, keepdims=True))
    return result


def sparse(chains: Any = 5, states: Any = 20, exits_per_state: Any = 3, seed: Any = 0) -> Chains:
    """Each state has ``exits_per_state`` successors with Dirichlet weights; one is next on a cycle of all states."""
    number, size = sizes(chains, states, least_states=2)
    exits = whole_number(exits_per_state, "exits_per_state", least=2, meaning="the states that follow each state")
    if exits > size:
        raise InputError(f"exits_per_state must be at most the number of states, {size}, not {exits}")
    result = {}
    for name, generator in _generators(number, seed).items():
        cycle = generator.permutation(size)
        matrix = np.zeros((size, size))
        for x, following in zip(cycle, np.roll(cycle, -1), strict=True):
            others = np.delete(np.arange(size), following)
            targets = [following, *generator.choice(others, exits - 1, replace=False)]
            matrix[x, targets] = generator.dirichlet(np.ones(exits))
        result[name] = MarkovChain(matrix)
    return result


def _concentration(value: Any) -> float:
    # Below 0.05, gamma variates can be smaller than the smallest double, and a row would be all zeros.
    return real_number(value, "concentration", least=0.05, meaning="the shape of the law of the weights")


def _generators(number: int, seed: Any) -> dict[str, np.random.Generator]:
    start = whole_number(seed, "seed", least=0, meaning="the number that the random matrices follow from")
    return {f"chain-{k + 1}": np.random.default_rng([start, k]) for k in range(number)}


FAMILIES = (
    Entry(
        "dirichlet",
        dirichlet,
        "Random chains whose rows are drawn from a symmetric Dirichlet law.",
        "Generated; a function of the parameters and the seed.",
    ),
    Entry(
        "reversible",
        reversible,
        "Random reversible chains, from symmetric random weights.",
        "Generated; a function of the parameters and the seed.",
    ),
    Entry(
        "sparse",
        sparse,
        "Random irreducible chains with few possible transitions from each state.",
        "Generated; a function of the parameters and the seed.",
    ),
)
