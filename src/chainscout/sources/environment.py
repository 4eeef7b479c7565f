"""A Gymnasium environment under a fixed policy as a source: its states are the encoded observations."""

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from ..errors import InputError, MissingExtraError
from ..validation import seed_number, shown
from .source import Place, Source

__all__ = ["Environment"]


class Environment(Source):
    """Each episode is a path: when one ends, the environment is reset, and its first state follows."""

    def __init__(
        self,
        environment: Any,
        policy: Callable[[Any], Any] | None = None,
        encode: Callable[[Any], Hashable] | None = None,
        seed: int | None = None,
    ) -> None:
        """``policy``: observation → action (None: uniformly random, from ``seed``).

        ``encode``: observation → state (None: the observation itself, which must be a whole number or a string).
        """
        if isinstance(environment, str):
            environment = _make(environment)
        if not (callable(getattr(environment, "reset", None)) and callable(getattr(environment, "step", None))):
            raise InputError(f"an environment must have reset and step, and {shown(environment)} has not")
        self._environment = environment
        self._policy = policy
        self._encode = encode or _plain
        self._origin = None if seed is None else seed_number(seed)
        self.is_seeded = seed is not None
        self._observation: Any = None
        self._begin(self._origin)

    def _begin(self, seed: int | None) -> None:
        """The next state is the first one after a reset with this seed."""
        self._seed, self._over = seed, True
        if self._policy is None:
            self._environment.action_space.seed(seed)

    def advance(self) -> tuple[Hashable, bool]:
        """One step, or a reset after the end of an episode."""
        if self._over:
            self._observation, _ = self._environment.reset(seed=self._seed)
            self._seed, self._over = None, False  # a second reset with the same seed would give the same episode
            return self._encode(self._observation), True
        sampled = self._policy is None
        action = self._environment.action_space.sample() if sampled else self._policy(self._observation)  # type: ignore[misc]
        self._observation, _, terminated, truncated, _ = self._environment.step(action)
        self._over = bool(terminated or truncated)
        return self._encode(self._observation), False

    def restart(self) -> None:
        """The next state is the first one after a reset."""
        self._over = True

    def resume(self, place: Place) -> bool:
        """Begins another episode, because an environment cannot be brought to a state.

        With a seed, every path at which a program begins has a seed of its own: no episode is counted twice.
        """
        if self._origin is not None:
            other = int(np.random.SeedSequence([self._origin, place.path]).generate_state(1)[0])
            self._begin(self._origin if place.path == 1 else other)
        return False

    def close(self) -> None:
        """Closes the environment."""
        self._environment.close()


def _make(name: str) -> Any:
    try:
        import gymnasium
    except ImportError:
        raise MissingExtraError("a Gymnasium environment", "gym") from None
    try:
        return gymnasium.make(name)
    except gymnasium.error.Error as error:
        raise InputError(f"there is no environment {name!r}: {error}") from None


def _plain(observation: Any) -> Hashable:
    if isinstance(observation, (int, str, np.integer)):
        return observation if isinstance(observation, str) else int(observation)
    raise InputError(f"observations like {shown(observation)} need an encoder that makes states of them")
