"""Asking which chain to advance, and telling what was observed."""

from collections.abc import Hashable, Iterable
from typing import Any, overload

from ..errors import InputError, NothingFree, StudyFinished
from ..store import ChainRecord, Transaction
from ..validation import shown, whole_number
from . import choice, telling
from .absent import not_built_in
from .reading import Reading


class Advancing(Reading):
    """A study as far as one worker advances it."""

    @overload
    def ask(self) -> str: ...

    @overload
    def ask(self, number: int) -> list[str]: ...

    def ask(self, number: int | None = None) -> str | list[str]:
        """The chain to advance next, or the next ``number``. Pure: asking twice gives the same answer."""
        if self._quick is not None and number is None:
            name = self._quick.ask()
            if name is not None:
                return name
        if not self.knows_policy:
            raise not_built_in(self._policy.name)
        with self._lock, self._store.reading() as transaction:
            telling.check_going(transaction)
            if number is None:
                chain = choice.first(transaction, self._rule(transaction.study))
                if chain is None or chain.cost > choice.remaining(transaction):
                    raise nothing_free(transaction)
                return chain.name
            count = whole_number(number, "number", meaning="how many observations are to be made")
            chosen = choice.batch(transaction, self._rule(transaction.study), count)
            if not chosen:
                raise nothing_free(transaction)
            return [chain.name for chain in chosen]

    def tell(self, chain: str, state: Hashable, step: int | None = None, *, token: str | None = None) -> None:
        """One observation: the state that ``chain`` is in now. Durable before it returns.

        ``step``: the observation's number in its chain, from 1; the same again is a no-op, another state an error.
        ``token``: of the lease under which the chain is held.
        """
        if self._quick is not None and step is None and token is None and self._quick.tell(chain, state):
            return
        with self._lock, self._store.writing() as transaction:
            moved = self._tell(transaction, chain, state, step, token)
            if moved is not None:
                telling.settle(transaction, self._rule(transaction.study), (moved,))

    def tell_many(self, observations: Iterable[tuple[str, Hashable]]) -> None:
        """Observations in order, (chain, state) each; all are stored at once, or none."""
        pairs = _pairs(observations)
        with self._lock, self._store.writing() as transaction:
            rule = self._rule(transaction.study)
            moved: dict[int, ChainRecord] = {}
            for chain, state, position in self._checked(transaction, pairs):
                if position is None:
                    position = self._states.position(transaction, chain, state)  # two of a batch can be the same news
                if position is None:
                    position = self._states.discover(transaction, chain, state)
                telling.observe(transaction, rule, chain, position, None)
                moved[chain.number] = chain
            telling.settle(transaction, rule, moved.values())

    def _checked(
        self, transaction: Transaction, pairs: list[tuple[str, Hashable]]
    ) -> list[tuple[ChainRecord, Hashable, int | None]]:
        """A batch with the positions of its states, of those that are known; what will be needed is read together."""
        study = transaction.study
        if study.stop_reason is not None:
            raise StudyFinished(study.stop_reason)
        transaction.expect({name: None for name, _ in pairs if isinstance(name, str)})
        found: list[tuple[ChainRecord, Hashable, int | None]] = []
        chains: dict[str, ChainRecord] = {}
        last: dict[int, int | None] = {}
        rows: dict[tuple[int, int], None] = {}
        price = 0.0
        for name, state in pairs:
            chain = chains.get(name) if isinstance(name, str) else None
            if chain is None:
                chain = chains[name] = self._find(transaction, name)
                telling.check_holder(transaction, chain, None)
                last[chain.number] = chain.last
            position = self._states.position(transaction, chain, state)
            x = last[chain.number]
            if x is not None:
                rows[chain.number, x] = None
            last[chain.number] = position
            price += chain.cost
            found.append((chain, state, position))
        _check_price(transaction, price, "the batch")
        transaction.expect_rows(rows)
        return found

    def _tell(
        self, transaction: Transaction, name: str, state: Hashable, step: int | None, token: str | None
    ) -> ChainRecord | None:
        """The chain, if this was news."""
        chain = self._find(transaction, name)
        position = self._states.position(transaction, chain, state)
        if step is not None:
            step = whole_number(step, "step", meaning="the observation's number in its chain")
            if telling.is_repeated(transaction, chain, step, position):
                return None
        if token is None and transaction.study.stop_reason is not None:
            raise StudyFinished(transaction.study.stop_reason)
        telling.check_holder(transaction, chain, token)
        if token is None:  # what a holder tells was promised
            _check_price(transaction, chain.cost, "the observation")
        if position is None:
            position = self._states.discover(transaction, chain, state)
        telling.observe(transaction, self._rule(transaction.study), chain, position, token)
        return chain

    def restart(self, chain: str, *, lost: bool = False, token: str | None = None) -> None:
        """Begins a new segment: no transition is counted from the last state of the chain to the next one told.

        ``lost``: an observation was lost with the old segment; the certificate will say so.
        """
        with self._lock, self._store.writing() as transaction:
            record = self._find(transaction, chain)
            telling.check_holder(transaction, record, token)
            transaction.happened("restarted", record, lost=bool(lost))
            transaction.study.lost += bool(lost)
            telling.restart(transaction, record)
            telling.settle(transaction, self._rule(transaction.study))

    def lose(self, chain: str) -> None:
        """Notes that an observation was made and can never be told: others have advanced the chain, or hold it.

        Their path goes on; the certificate will say that something was lost.
        """
        with self._lock, self._store.writing() as transaction:
            transaction.happened("observation lost", self._find(transaction, chain))
            transaction.study.lost += 1

    def set_aside(self, chain: str, reason: str, *, token: str | None = None) -> None:
        """Asks for the chain no more: its source has ended, or does not work. The certificate will say so."""
        with self._lock, self._store.writing() as transaction:
            record = self._find(transaction, chain)
            telling.check_holder(transaction, record, token)
            telling.set_aside(transaction, record, str(reason))
            telling.settle(transaction, self._rule(transaction.study))


def _pairs(observations: Any) -> list[tuple[str, Hashable]]:
    """A batch as a list of pairs; a text of two letters is none."""
    if not isinstance(observations, Iterable):
        raise InputError(f"observations must be pairs (chain, state), not {shown(observations)}")
    found = []
    for number, thing in enumerate(observations, start=1):
        pair: Any = None if isinstance(thing, str) else thing
        try:
            chain, state = pair
        except (TypeError, ValueError):
            what = f"observation {number} of the batch"
            raise InputError(f"{what} must be a pair (chain, state), not {shown(thing)}: nothing was changed") from None
        found.append((chain, state))
    return found


def _check_price(transaction: Transaction, price: float, what: str) -> None:
    """Refuses what would spend more than there is, or what is promised to others."""
    over, left = price - choice.remaining(transaction), f"{what} costs %g more than is left of the budget"
    if price > choice.unspent(transaction.study):
        raise InputError(f"{left % (price - choice.unspent(transaction.study))}: nothing was changed")
    if over > 0:
        raise NothingFree(f"{left % over}, less what is promised to leases: nothing was changed")


def nothing_free(transaction: Transaction) -> Exception:
    """Why there is no chain to be had just now: the budget is used, or all are held or set aside."""
    study = transaction.study
    if study.leases == 0 and study.aside < study.chains:
        return StudyFinished("budget")
    held = f"{study.leases} chains are held by workers"
    if study.leases and choice.remaining(transaction) < study.least_cost:
        held += ", and what is left of the budget is promised to them"
    return NothingFree(f"nothing is free: {held}, and {study.aside} are set aside")
