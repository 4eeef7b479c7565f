"""Environments under fixed policies: each policy is a chain. Needs the extra ``gym``."""

from typing import Any

import numpy as np
import numpy.typing as npt

from ...chains import MarkovChain
from ...errors import InputError, MissingExtraError
from ...validation import real_number, shown, whole_number
from .entry import Chains, Entry

#: The environments' action numbers, by name.
FROZEN_LAKE_ACTIONS = ("left", "down", "right", "up")
CLIFF_WALKING_ACTIONS = ("up", "right", "down", "left")


def frozen_lake(size: Any = 4, slippery: Any = True, epsilon: Any = 0.2) -> Chains:
    """The 4 × 4 or 8 × 8 lake."""
    width = whole_number(size, "size", meaning="the lake's width")
    if width not in (4, 8):
        raise InputError(f"size (the lake's width) must be 4 or 8, not {width}")
    if not isinstance(slippery, bool):
        raise InputError(f"slippery (whether moves go astray) must be true or false, not {shown(slippery)}")
    try:
        from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv
    except ImportError:
        raise MissingExtraError("problem frozen-lake", "gym") from None
    return _chains(FrozenLakeEnv(map_name=f"{width}x{width}", is_slippery=slippery), FROZEN_LAKE_ACTIONS, epsilon)


def cliff_walking(epsilon: Any = 0.2) -> Chains:
    """The 4 × 12 cliff; a fall leads back to the start."""
    try:
        from gymnasium.envs.toy_text.cliffwalking import CliffWalkingEnv
    except ImportError:
        raise MissingExtraError("problem cliff-walking", "gym") from None
    return _chains(CliffWalkingEnv(), CLIFF_WALKING_ACTIONS, epsilon)


def _chains(environment: Any, actions: tuple[str, ...], epsilon: Any) -> Chains:
    """A chain for the random policy and, for each action, one for that action except with probability ``epsilon``."""
    try:
        moves, start = environment.P, np.array(environment.initial_state_distrib, dtype=np.float64)
    finally:
        environment.close()
    astray = real_number(epsilon, "epsilon", above=0.0, below=1.0, meaning="the probability of a random action instead")
    number = len(actions)
    policies = {"random": np.full(number, 1 / number)}
    for action, name in enumerate(actions):
        policies[name] = np.full(number, astray / number)
        policies[name][action] += 1 - astray
    return {name: _chain(moves, start, policy) for name, policy in policies.items()}


def _chain(moves: Any, start: npt.NDArray[np.float64], policy: npt.NDArray[np.float64]) -> MarkovChain:
    """The chain of cells under a policy. A terminal cell leads back to the start; unreachable cells are left out."""
    matrix = np.zeros((len(start), len(start)))
    terminal = set()
    for cell, choices in moves.items():
        for action, outcomes in choices.items():
            for probability, following, _, terminated in outcomes:
                matrix[cell, following] += policy[action] * probability
                if terminated:
                    terminal.add(int(following))
    matrix[list(terminal)] = start
    reached = start > 0
    while (wider := reached | (matrix[reached] > 0).any(axis=0)).sum() > reached.sum():
        reached = wider
    cells = np.flatnonzero(reached)
    rows = matrix[np.ix_(cells, cells)]
    return MarkovChain(rows / rows.sum(axis=1, keepdims=True), start[cells], cells.tolist())


ENVIRONMENTS = (
    Entry(
        "frozen-lake",
        frozen_lake,
        "Cells of FrozenLake under five fixed policies: random, and each direction with some random moves. An episode"
        " that ends starts again.",
        "Environment FrozenLake of Gymnasium (Farama Foundation), transition probabilities read from the environment.",
    ),
    Entry(
        "cliff-walking",
        cliff_walking,
        "Cells of CliffWalking under five fixed policies: random, and each direction with some random moves. A fall or"
        " a finish starts again.",
        "Environment CliffWalking of Gymnasium (Farama Foundation), after R. S. Sutton and A. G. Barto, Reinforcement"
        " Learning: An Introduction, 2nd edition, MIT Press 2018, example 6.6; transition probabilities read from the"
        " environment.",
    ),
)
