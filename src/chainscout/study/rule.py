"""A policy at work in a live study: the same two functions that experiments compile, interpreted (DESIGN)."""

import math
from collections.abc import Iterator, Sequence

from ..errors import InputError
from ..policies import Policy
from ..store import ChainRecord, RowRecord, Transaction


class RowView(Sequence[int]):
    """N[x,·] with all its zeros, over counts that have none."""

    __slots__ = ("counts", "size")

    def __init__(self, counts: dict[int, int], size: int) -> None:
        self.counts = counts
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, y):  # type: ignore[no-untyped-def]
        if 0 <= y < self.size:
            return self.counts.get(y, 0)
        raise IndexError(y)

    def __iter__(self) -> Iterator[int]:
        return (self.counts.get(y, 0) for y in range(self.size))


class Rule:
    """What a study does with its policy."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._factors: dict[float, float] = {1.0: 1.0}
        self._width: int | None = None

    def factor(self, weight: float) -> float:
        """ω**power, with square roots where they do: their bits are the same everywhere (MATH §6)."""
        known = self._factors.get(weight)
        if known is None:
            root = math.sqrt(weight)
            powers = {1.0: weight, 0.5: root, 0.75: root * math.sqrt(root)}
            power = self.policy.power
            known = self._factors[weight] = powers[power] if power in powers else weight**power
        return known

    def index(self, chain: ChainRecord, sums: tuple[float, ...], transitions: int) -> float:
        """The index of these sums after so many transitions."""
        if transitions == 0:
            return math.inf
        value = self.policy.index(sums, float(transitions), chain.constants) * self.factor(chain.weight)
        if value != value:
            raise InputError(f"the policy {self.policy.name!r} gave the chain {chain.name!r} an index that is no number")
        return value

    def no_sums(self, chain: ChainRecord) -> tuple[float, ...]:
        """The sums before the first transition."""
        if self._width is None:
            self._width = self.policy.width(max(1, chain.size), chain.constants)
        return (0.0,) * self._width

    def next_look(self, transitions: int) -> int:
        """The T at which a block that begins now is over (MATH §6, Blocks)."""
        return transitions + max(1, int(self.policy.block * transitions))

    def advance(self, transaction: Transaction, chain: ChainRecord, state: int) -> None:
        """One observation. Whatever the rule raises is raised before anything is changed."""
        x = chain.last
        if x is None:
            chain.segments += 1
            chain.barren += 1
        else:
            self._transition(transaction, chain, x, state)
            chain.barren = 0
        chain.last = state
        chain.observations += 1
        transaction.save(chain)

    def _transition(self, transaction: Transaction, chain: ChainRecord, x: int, y: int) -> None:
        row = transaction.row(chain, x)
        counts = row.counts
        seen = counts.get(y, 0)
        exits = row.exits + 1
        squares = row.squares + 2 * seen + 1
        transitions = chain.transitions + 1
        terms, sums, index, look = row.terms, chain.sums, chain.index, chain.look
        counts[y] = seen + 1
        try:
            if self.policy.terms is not None:
                terms, sums = self._renewed(chain, row, exits, squares)
            if transitions >= look:
                if self.policy.summary is not None:
                    sums = self._summary(transaction, chain, x, exits, squares)
                index = self.index(chain, sums, transitions)
                look = self.next_look(transitions)
        except BaseException:
            if seen:
                counts[y] = seen
            else:
                del counts[y]
            raise
        row.exits, row.squares, row.terms = exits, squares, terms
        chain.transitions, chain.sums, chain.index, chain.look = transitions, sums, index, look
        if chain.open and not seen:
            chain.discovered += 1
            row.discoveries[y] = chain.discovered, exits, 1
        transaction.save_row(chain, x, row)

    def _renewed(
        self, chain: ChainRecord, row: RowRecord, exits: int, squares: int
    ) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The row's terms after the transition, and the chain's sums with them in place of the old ones."""
        assert self.policy.terms is not None
        view = RowView(row.counts, chain.size)
        terms = self.policy.terms(view, float(exits), float(squares), chain.constants)
        return terms, renewed_sums(chain.sums, row.terms, terms)

    def _summary(
        self, transaction: Transaction, chain: ChainRecord, x: int, exits: int, squares: int
    ) -> tuple[float, ...]:
        found = {p: (row.exits, row.squares) for p, row in transaction.rows(chain).items()}
        found[x] = exits, squares
        return self.summarise(chain, found)

    def summarise(self, chain: ChainRecord, found: dict[int, tuple[int, int]]) -> tuple[float, ...]:
        """``summary`` of a chain's exits and squares by position."""
        assert self.policy.summary is not None
        size = chain.size
        exits, squares = [0.0] * size, [0.0] * size
        for position, (number, square) in found.items():
            exits[position], squares[position] = float(number), float(square)
        return self.policy.summary(exits, squares, size, chain.constants, [0.0] * (2 * size), [0] * (2 * size))

    def recompute(self, transaction: Transaction, chain: ChainRecord) -> None:
        """Terms, sums and index from the counts alone, when the rule or its constants have changed."""
        rows = transaction.rows(chain)
        sums = self.no_sums(chain)
        if self.policy.terms is not None:
            for x, row in rows.items():
                view = RowView(row.counts, chain.size)
                row.terms = self.policy.terms(view, float(row.exits), float(row.squares), chain.constants)
                sums = renewed_sums(sums, (), row.terms)
                transaction.save_row(chain, x, row)
        elif rows:
            sums = self.summarise(chain, {x: (row.exits, row.squares) for x, row in rows.items()})
        chain.sums = sums
        chain.index = self.index(chain, sums, chain.transitions)
        chain.look = self.next_look(chain.transitions) if chain.transitions else 0
        transaction.save(chain)


def renewed_sums(sums: tuple[float, ...], old: tuple[float, ...], new: tuple[float, ...]) -> tuple[float, ...]:
    """Running sums in which ``new`` stands for ``old``; a row that was never left has no terms."""
    if not old:
        old = (0.0,) * len(new)
    return tuple([s + (b - a) for s, a, b in zip(sums, old, new, strict=True)])
