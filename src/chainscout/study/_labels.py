"""Labels and positions: the user's name of a state, and its position in a row."""

from collections.abc import Hashable, Sequence
from numbers import Integral, Real
from typing import Any

from ..counts import MOST_STATES, Counts
from ..errors import InputError
from ..store import ChainRecord, Transaction
from ..validation import did_you_mean, label_from_text, shown, unicode_text, whole_number

Label = str | int

#: Longer numbers take too long to print.
MOST_BITS = 1024


def checked_label(name: str, value: Any) -> Label:
    """A label that can be stored for the chain of this name: a string or a whole number."""
    if isinstance(value, str):
        return unicode_text(value, "a state's label")
    if isinstance(value, Integral) and not isinstance(value, bool):
        number = int(value)
        if number.bit_length() > MOST_BITS:
            what = f"a state of the chain {name!r} that is a whole number"
            raise InputError(f"{what} must be below 2**{MOST_BITS}, and this one is not")
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


class Labels:
    """Converts labels to positions and back. A list of labels never changes, so it becomes a dictionary only once."""

    def __init__(self) -> None:
        self._positions: dict[int | None, dict[Hashable, int]] = {}
        self._open: dict[tuple[int, int], Hashable] = {}

    def position(self, transaction: Transaction, chain: ChainRecord, state: Hashable) -> int | None:
        """The position of a state; None for one that an open chain has not seen before."""
        if chain.open:
            return transaction.position(chain, checked_label(chain.name, state))
        if chain.labels is None:
            if type(state) is int or (isinstance(state, Integral) and not isinstance(state, bool)):
                number = int(state)
                if 0 <= number < chain.size:
                    return number
            last = chain.size - 1
            raise InputError(
                f"a state of the chain {chain.name!r} must be a whole number from 0 to {last}, not {shown(state)}"
            )
        positions = self._positions.get(chain.label_list)
        if positions is None:
            positions = self._positions[chain.label_list] = {label: x for x, label in enumerate(chain.labels)}
        try:
            position = positions.get(state)
        except TypeError:  # not hashable
            position = None
        if position is None:
            hint = did_you_mean(state, chain.labels)
            raise InputError(
                f"unknown state {shown(state)}{hint} of the chain {chain.name!r}: its states are {shown(chain.labels)}"
            )
        return position

    def from_text(self, chain: ChainRecord, text: str) -> Hashable:
        """The state that a text means: a label as it is written, or else a whole number."""
        if chain.labels is not None and not chain.open and text in chain.labels:
            return text
        if chain.open:
            return label_from_text(text)
        try:
            return int(text)
        except ValueError:
            return text

    def discover(self, transaction: Transaction, chain: ChainRecord, state: Hashable) -> int:
        """Gives a new state of an open chain its position."""
        position = chain.size
        transaction.discover(chain, position, checked_label(chain.name, state))
        transaction.study.pairs += 2 * position + 1  # S² → (S+1)²
        chain.size += 1
        return position

    def label(self, transaction: Transaction, chain: ChainRecord, position: int) -> Hashable:
        """The label of the state at a position."""
        if not chain.open:
            return position if chain.labels is None else chain.labels[position]
        key = chain.number, position
        if key not in self._open:  # an open chain only gains states, it never loses one
            self._open.update(((chain.number, x), label) for x, label in enumerate(transaction.labels(chain)))
        return self._open[key]

    def all(self, transaction: Transaction, chain: ChainRecord) -> int | Sequence[Hashable]:
        """The states as ``Counts`` takes them."""
        if chain.open:
            return transaction.labels(chain)
        return chain.size if chain.labels is None else chain.labels

    def counts(self, transaction: Transaction, chain: ChainRecord) -> Counts:
        """The chain's counts."""
        return Counts.from_rows(
            {x: row.counts for x, row in transaction.rows(chain).items()},
            self.all(transaction, chain),
            observations=chain.observations,
            paths=chain.begun,
            last=None,
            open_states=chain.open,
        )
