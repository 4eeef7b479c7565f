"""A worker's exclusive right to advance a chain for a while."""

import time
from collections.abc import Hashable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from ..errors import ConnectionLost, LeaseLost

if TYPE_CHECKING:
    from .leasing import Leasing

#: Seconds to go on telling an observation to a database that went away.
PATIENCE = 30.0


class Lease:
    """Held from ``study.lease`` until its observations are told, it is given back, or its time is over."""

    def __init__(self, study: "Leasing", chain: str, token: str, step: int, steps: int, restarted: bool) -> None:
        self._study = study
        self.chain = chain
        #: What proves that the chain is held.
        self.token = token
        #: The number in its chain of the observation that comes next.
        self.step = step
        #: Observations that can still be told.
        self.steps = steps
        #: Whether the next observation begins a new segment: the source must be at a fresh start.
        self.restarted = restarted

    def tell(self, state: Hashable) -> None:
        """One observation; durable before it returns. After a lost connection it is told again, and counted once."""
        if self.steps == 0:
            raise LeaseLost(f"the observations that this lease of the chain {self.chain!r} was for have been told")
        patience = time.monotonic() + PATIENCE
        while True:
            try:
                self._study.tell(self.chain, state, step=self.step, token=self.token)
                break
            except ConnectionLost:
                if time.monotonic() > patience:
                    raise
        self.step += 1
        self.steps -= 1
        self.restarted = False

    def restart(self, lost: bool = False) -> None:
        """Begins a new segment; ``lost``: an observation was lost with the old one."""
        self._study.restart(self.chain, lost=lost, token=self.token)
        self.restarted = True

    def renew(self, seconds: float = 60.0) -> None:
        """Holds the chain for ``seconds`` from now on."""
        self._study.renew(self.chain, self.token, seconds)

    def give_back(self) -> None:
        """Frees the chain; its path goes on from where it is."""
        if self.steps:
            self._study.give_back(self.chain, self.token)
            self.steps = 0

    def abandon(self) -> None:
        """Frees the chain as if its worker had died: what the study says of lost leases happens."""
        if self.steps:
            self._study.give_back(self.chain, self.token, lost=True)
            self.steps = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.give_back()
            else:
                self.abandon()
        except LeaseLost:
            if kind is None:
                raise
        except ConnectionLost:  # it runs out by itself
            if kind is None:
                raise
