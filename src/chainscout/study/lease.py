"""A lease, a worker's right to advance a chain for a while: how it is granted, used, checked and ended."""

import time
from collections.abc import Hashable
from enum import Enum
from types import TracebackType
from typing import TYPE_CHECKING, Self

from ..errors import ConnectionLost, Held, LeaseLost
from ..store import ChainRecord, Transaction
from . import _transitions
from .views import EventKind

if TYPE_CHECKING:
    from .study import Study

__all__ = ["Lease", "LeaseStatus"]

#: Seconds to go on telling an observation to a database that went away.
PATIENCE = 30.0


class LeaseStatus(Enum):
    """What has become of a lease, as far as its worker knows. Whether its time is over only the study can tell."""

    HELD = "held"
    #: All its observations were told.
    USED = "used"
    #: The worker gave it back, or gave it up.
    ENDED = "ended"


class Lease:
    """Held from ``study.lease`` until its observations are told, it is given back, or its time is over."""

    def __init__(self, study: "Study", chain: str, token: str, step: int, steps: int, restarted: bool) -> None:
        self._study = study
        self.status = LeaseStatus.HELD
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
        """Tells one observation, which is durable on return. After a lost connection it is told again, counted once."""
        if self.status is not LeaseStatus.HELD:
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
        if self.steps == 0:
            self.status = LeaseStatus.USED

    def restart(self, lost: bool = False) -> None:
        """Begins a new segment. ``lost``: an observation was lost with the old one."""
        self._study.restart(self.chain, lost=lost, token=self.token)
        self.restarted = True

    def renew(self, seconds: float = 60.0) -> None:
        """Holds the chain for ``seconds`` from now on."""
        self._study.renew(self.chain, self.token, seconds)

    def give_back(self) -> None:
        """Frees the chain. Its path goes on from where it is."""
        self._end(lost=False)

    def abandon(self) -> None:
        """Frees the chain as if its worker had died: the study does what it does with lost leases."""
        self._end(lost=True)

    def _end(self, lost: bool) -> None:
        if self.status is LeaseStatus.HELD:
            self._study.give_back(self.chain, self.token, lost=lost)
            self.status, self.steps = LeaseStatus.ENDED, 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._end(lost=kind is not None)
        except (LeaseLost, ConnectionLost):  # it ends by itself, and the error on its way out says more
            if kind is None:
                raise


# -- what happens to a lease in a transaction


def grant(transaction: Transaction, chain: ChainRecord, worker: str, token: str, seconds: float, steps: int) -> None:
    """Gives the chain to a worker, for ``steps`` observations within ``seconds``."""
    study = transaction.study
    chain.token, chain.worker, chain.expires = token, worker, transaction.now + seconds
    chain.promised = steps
    study.leases += 1
    study.reserved += steps * chain.cost
    transaction.save(chain)


def spend(transaction: Transaction, chain: ChainRecord) -> None:
    """Takes one observation off the lease; the last one frees the chain."""
    chain.promised -= 1
    transaction.study.reserved -= chain.cost
    if chain.promised == 0:
        free(transaction, chain)


def free(transaction: Transaction, chain: ChainRecord) -> None:
    """Ends the lease. What it did not use goes back to the budget."""
    study = transaction.study
    study.leases -= 1
    study.reserved -= chain.promised * chain.cost
    if study.leases == 0:
        study.reserved = 0.0  # sums of costs are rounded
    chain.token = chain.worker = chain.expires = None
    chain.promised = 0
    transaction.save(chain)


def lapse(transaction: Transaction, chain: ChainRecord, kind: EventKind = EventKind.LEASE_EXPIRED) -> None:
    """Ends the lease of a worker that is gone. What the worker observed last may be lost."""
    transaction.happened(kind.value, chain, worker=chain.worker)
    free(transaction, chain)
    transaction.study.lost += 1
    if transaction.study.on_lost_lease == "restart":
        _transitions.restart(transaction, chain)


def sweep(transaction: Transaction) -> None:
    """Ends every lease whose time is over."""
    for chain in transaction.held(until=transaction.now):
        lapse(transaction, chain)


def check_holder(transaction: Transaction, chain: ChainRecord, token: str | None) -> None:
    """Raises ``Held`` or ``LeaseLost`` if the token is not the holder's. Without a token, an expired lease ends."""
    expired = chain.expires is not None and chain.expires <= transaction.now
    if token is None:
        if chain.token is not None and expired:
            lapse(transaction, chain)
        if chain.token is not None:
            raise Held(f"the chain {chain.name!r} is held by {chain.worker!r}: only its lease can advance it")
    elif token != chain.token:
        if chain.token is not None and not expired:
            raise LeaseLost(
                f"the token is not that of the lease that holds the chain {chain.name!r} now: its own lease has ended, "
                "if there was one, and nothing was changed"
            )
        raise LeaseLost(f"the lease of the chain {chain.name!r} has ended: nothing was changed")
    elif expired:
        late = transaction.now - (chain.expires or 0.0)
        raise LeaseLost(f"the lease of the chain {chain.name!r} ran out {late:.3g} seconds ago: nothing was changed")
