"""Labels and positions: what a user calls a state, and where it stands in a row."""

from collections.abc import Hashable, Sequence
from numbers import Integral

from ..counts import Counts
from ..errors import InputError
from ..store import ChainRecord, Transaction
from ..validation import did_you_mean, label_from_text, shown
from .creation import label_of


class States:
    """Looks labels up; lists of labels never change, so each is turned round once."""

    def __init__(self) -> None:
        self._positions: dict[int, dict[Hashable, int]] = {}
        self._open: dict[tuple[int, int], Hashable] = {}

    def position(self, transaction: Transaction, chain: ChainRecord, state: Hashable) -> int | None:
        """The position of a state; None for one that an open chain has not seen before."""
        if chain.open:
            return transaction.position(chain, label_of(state))
        if chain.labels is None:
            if type(state) is int or (isinstance(state, Integral) and not isinstance(state, bool)):
                number = int(state)
                if 0 <= number < chain.size:
                    return number
            last = chain.size - 1
            raise InputError(
                f"a state of the chain {chain.name!r} must be a whole number from 0 to {last}, not {shown(state)}"
            )
        position = self.known(chain, state)
        if position is None:
            assert chain.labels is not None
            hint = did_you_mean(state, chain.labels)
            raise InputError(
                f"unknown state {shown(state)}{hint} of the chain {chain.name!r}: its states are {shown(chain.labels)}"
            )
        return position

    def known(self, chain: ChainRecord, state: Hashable) -> int | None:
        """The position of a label in the chain's list of labels; None if it is not there."""
        assert chain.label_list is not None
        assert chain.labels is not None
        positions = self._positions.get(chain.label_list)
        if positions is None:
            positions = self._positions[chain.label_list] = {label: x for x, label in enumerate(chain.labels)}
        try:
            return positions.get(state)
        except TypeError:  # not hashable
            return None

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
        transaction.discover(chain, position, label_of(state))
        transaction.study.pairs += 2 * position + 1  # S² → (S+1)²
        chain.size += 1
        return position

    def label(self, transaction: Transaction, chain: ChainRecord, position: int) -> Hashable:
        """What the user calls the state at a position."""
        if not chain.open:
            return position if chain.labels is None else chain.labels[position]
        key = chain.number, position
        if key not in self._open:  # the states of an open chain are only ever added to
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
            segments=chain.segments,
            last=chain.last,
            open_states=chain.open,
        )
