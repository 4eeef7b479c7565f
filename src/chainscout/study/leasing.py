"""Leases: the best free chain for a while, for one of many workers."""

import secrets
import time

from ..errors import ConnectionLost, InputError, NothingFree, StudyFinished
from ..validation import real_number, shown, unicode_text, whole_number
from . import choice, telling
from .advancing import Advancing, nothing_free
from .lease import PATIENCE, Lease

#: Seconds between two looks for a free chain, at first and at most.
POLL = (0.005, 0.25)


class Leasing(Advancing):
    """A study as far as many workers advance it."""

    def lease(self, worker: str, seconds: float = 60.0, *, steps: int = 1, wait: float | None = None) -> Lease:
        """The best chain that nobody holds, for ``steps`` observations within ``seconds``.

        ``wait``: how long to wait for a chain to become free; None: until there is one or the study is finished.
        """
        if not isinstance(worker, str) or not worker:
            raise InputError(f"a worker's name must be a string that is not empty, not {shown(worker)}")
        unicode_text(worker, "a worker's name")
        real_number(seconds, "seconds", above=0.0, meaning="how long the chain is held")
        steps = whole_number(steps, "steps", meaning="how many observations the lease is for")
        end = None if wait is None else time.monotonic() + real_number(wait, "wait", least=0.0, meaning="seconds")
        patience = time.monotonic() + PATIENCE
        pause = POLL[0]
        while True:
            try:
                return self._lease(worker, seconds, steps)
            except ConnectionLost:  # if a lease was granted and not heard of, it runs out by itself
                if time.monotonic() > patience:
                    raise
            except NothingFree:
                if end is not None and time.monotonic() + pause > end:
                    raise
                time.sleep(pause)
                pause = min(2 * pause, POLL[1])

    def _lease(self, worker: str, seconds: float, steps: int) -> Lease:
        refusal: Exception | None = None
        lease: Lease | None = None
        with self._lock, self._store.writing() as transaction:
            # Ended leases are swept and stops recorded even if there is nothing to give.
            telling.sweep(transaction)
            telling.settle(transaction, self._rule(transaction.study))
            try:
                telling.check_going(transaction)
                chain = choice.first(transaction, self._rule(transaction.study))
                affordable = 0 if chain is None else int(min(steps, choice.remaining(transaction) / chain.cost))
                if chain is None or affordable < 1:
                    raise nothing_free(transaction)
            except (StudyFinished, NothingFree) as error:
                refusal = error
            else:
                token = secrets.token_hex(16)
                telling.grant(transaction, chain, worker, token, seconds, affordable)
                step, fresh = chain.observations + 1, chain.last is None
                lease = Lease(self, chain.name, token, step, affordable, fresh)
        if lease is None:
            assert refusal is not None
            raise refusal
        return lease

    def renew(self, chain: str, token: str, seconds: float = 60.0) -> None:
        """Holds a leased chain for ``seconds`` from now on."""
        real_number(seconds, "seconds", above=0.0, meaning="how long the chain is held")
        with self._lock, self._store.writing() as transaction:
            record = self._find(transaction, chain)
            telling.check_holder(transaction, record, token)
            record.expires = transaction.now + seconds
            transaction.save(record)

    def give_back(self, chain: str, token: str, *, lost: bool = False) -> None:
        """Ends a lease. ``lost``: its worker cannot go on, and what the study says of lost leases happens."""
        with self._lock, self._store.writing() as transaction:
            record = self._find(transaction, chain)
            telling.check_holder(transaction, record, token)
            if lost:
                telling.lapse(transaction, record, "lease abandoned")
            else:
                telling.free(transaction, record)
            telling.settle(transaction, self._rule(transaction.study))
