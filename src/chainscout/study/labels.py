"""Labels and positions: the user's name of a state, and its position in a row."""

from collections.abc import Hashable, Sequence
from numbers import Integral
from typing import Any

from ..errors import InputError, UnknownChain
from ..validation import did_you_mean, shown
from ._labels import checked_label
from .chain import Chain
from .state import State

__all__ = ["find", "label", "position", "states"]

#: An unknown name is compared with the names of at most this many chains.
_MOST_COMPARED = 1000


def find(state: State, name: Any) -> Chain:
    """The chain with this name. Raises ``UnknownChain`` if there is none."""
    chain = state.names.get(name) if isinstance(name, str) else None
    if chain is None:
        known = list(state.names) if len(state.names) <= _MOST_COMPARED else []
        its = f": its chains are {shown(known)}" if known else ""
        raise UnknownChain(f"the study has no chain {shown(name)}{did_you_mean(name, known)}{its}")
    return chain


def position(chain: Chain, given: Hashable) -> int | None:
    """The position of a state; None for one that an open chain has not seen before."""
    if chain.positions is None:
        if type(given) is int or (isinstance(given, Integral) and not isinstance(given, bool)):
            number = int(given)
            if 0 <= number < chain.size:
                return number
        what = f"a whole number from 0 to {chain.size - 1}"
        raise InputError(f"a state of the chain {chain.name!r} must be {what}, not {shown(given)}")
    if chain.is_open:
        return chain.positions.get(checked_label(chain.name, given))
    try:
        found = chain.positions.get(given)
    except TypeError:  # not hashable
        found = None
    if found is None:
        hint = did_you_mean(given, chain.positions)
        raise InputError(
            f"unknown state {shown(given)}{hint} of the chain {chain.name!r}: its states are {shown(chain.labels)}"
        )
    return found


def label(chain: Chain, place: int) -> Hashable:
    """The label of the state at a position."""
    found: Hashable = place if chain.labels is None else chain.labels[place]
    return found


def states(chain: Chain) -> int | Sequence[Hashable]:
    """The states as ``Counts`` takes them."""
    return chain.size if chain.labels is None else chain.labels
