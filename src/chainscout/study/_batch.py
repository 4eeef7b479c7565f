"""A batch of observations: as the user gives it, and with the records that it needs."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from ..errors import InputError
from ..store import ChainRecord, PathRecord, Transaction
from ..validation import shown
from . import _budget, _lease, _stop, _transitions
from ._index import LiveIndex
from ._labels import Labels


def pairs(observations: Any) -> list[tuple[str, Hashable]]:
    """A batch as a list of pairs. A text of two letters is not a pair."""
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


def placed(
    transaction: Transaction,
    live: LiveIndex,
    pairs: list[tuple[str, Hashable]],
    find: Callable[[Transaction, str], ChainRecord],
    labels: Labels,
    walker: _transitions.Walker,
) -> list[tuple[ChainRecord, PathRecord, Hashable, int | None]]:
    """A batch with its paths and the positions of known states. All records that it needs are read together."""
    _stop.check_not_stopped(transaction)
    _lease.sweep(transaction, live)
    transaction.expect({name: None for name, _ in pairs if isinstance(name, str)})
    found: list[tuple[ChainRecord, PathRecord, Hashable, int | None]] = []
    chains: dict[str, tuple[ChainRecord, PathRecord]] = {}
    last: dict[int, int | None] = {}
    rows: dict[tuple[int, int], None] = {}
    price = 0.0
    for name, state in pairs:
        known = chains.get(name) if isinstance(name, str) else None
        if known is None:
            chain = find(transaction, name)
            _lease.check_plain(transaction, chain)
            known = chains[name] = chain, _transitions.own_path(transaction, chain, walker)[0]
            last[chain.number] = known[1].last
        chain, path = known
        position = labels.position(transaction, chain, state)
        x = last[chain.number]
        if x is not None:
            rows[chain.number, x] = None
        last[chain.number] = position
        price += chain.cost
        found.append((chain, path, state, position))
    _budget.check_price(transaction, price, "the batch")
    transaction.expect_rows(rows)
    return found
