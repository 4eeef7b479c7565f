"""Labels and positions: the user's name of a state, and its position in a row."""

from collections.abc import Collection, Hashable, Sequence
from numbers import Integral, Real
from typing import Any

from ..counts import MOST_STATES
from ..errors import InputError, UnknownChain
from ..validation import did_you_mean, label_from_text, shown, unicode_text, whole_number
from .chain import Chain
from .state import State

__all__ = [
    "Label", "checked_label", "closed_states", "find", "first_states", "from_text", "label", "position", "states",
    "unknown_chain",
]  # fmt: skip

Label = str | int

#: Longer numbers take too long to print.
_MOST_BITS = 1024
#: An unknown name is compared with the names of at most this many chains.
_MOST_COMPARED = 1000


def checked_label(name: str, value: Any) -> Label:
    """A label that can be stored for the chain of this name: a string or a whole number."""
    if isinstance(value, str):
        return unicode_text(value, "a state's label")
    if isinstance(value, Integral) and not isinstance(value, bool):
        number = int(value)
        if number.bit_length() > _MOST_BITS:
            what = f"a state of the chain {name!r} that is a whole number"
            raise InputError(f"{what} must be below 2**{_MOST_BITS}, and this one is not")
        return number
    raise InputError(f"a state of the chain {name!r} must be a string or a whole number, not {shown(value)}")


def closed_states(name: str, states: Any) -> int | tuple[Label, ...]:
    """The states of a closed chain: how many there are, or their labels."""
    if _is_number(states):
        return _number_of_states(name, states, least=1)
    labels = _labels(name, states)
    if not labels:
        raise InputError(f"the chain {name!r} needs at least one state, unless its states are to be discovered")
    return labels


def first_states(name: str, states: Any) -> tuple[Label, ...]:
    """The states of an open chain that are known beforehand; there may be none."""
    return _labels(name, range(_number_of_states(name, states, least=0)) if _is_number(states) else states)


def _is_number(states: Any) -> bool:
    return isinstance(states, Real) and not isinstance(states, bool)


def _number_of_states(name: str, states: Any, least: int) -> int:
    what = f"the states of chain {name!r}"
    return whole_number(states, what, least, meaning="how many there are", most=MOST_STATES)


def _labels(name: str, states: Any) -> tuple[Label, ...]:
    if isinstance(states, (str, bytes)) or not hasattr(states, "__iter__"):
        raise InputError(f"the states of chain {name!r} must be a number or a list of labels, not {shown(states)}")
    labels = tuple(checked_label(name, label) for label in states)
    if len(set(labels)) != len(labels):
        raise InputError(f"the states of chain {name!r} must be unique, and are {shown(labels)}")
    return labels


def find(state: State, name: Any) -> Chain:
    """The chain with this name. Raises ``UnknownChain`` if there is none."""
    chain = state.names.get(name) if isinstance(name, str) else None
    if chain is None:
        raise unknown_chain(state.names, name)
    return chain


def unknown_chain(names: Collection[str], name: Any) -> UnknownChain:
    """The error for a name that no chain has."""
    known = list(names) if len(names) <= _MOST_COMPARED else []
    its = f": its chains are {shown(known)}" if known else ""
    return UnknownChain(f"the study has no chain {shown(name)}{did_you_mean(name, known)}{its}")


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


def from_text(chain: Chain, text: str) -> Hashable:
    """The state that a text means: a label as it is written, or else a whole number."""
    if chain.labels is not None and not chain.is_open and text in chain.labels:
        return text
    if chain.is_open:
        return label_from_text(text)
    try:
        return int(text)
    except ValueError:
        return text


def label(chain: Chain, place: int) -> Hashable:
    """The label of the state at a position."""
    found: Hashable = place if chain.labels is None else chain.labels[place]
    return found


def states(chain: Chain) -> int | Sequence[Hashable]:
    """The states as ``Counts`` takes them."""
    return chain.size if chain.labels is None else chain.labels
