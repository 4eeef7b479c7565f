"""A policy at work in a live study: the same two functions that experiments compile, interpreted (DESIGN)."""

import math
from collections.abc import Callable

from ..errors import InputError
from ..policies import Policy
from ..store import ChainRecord, RowRecord, RowView, Transaction


class Rule:
    """What a study does with its policy."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._factors: dict[float, float] = {1.0: 1.0}
        self._width: int | None = None
        self.move = self._mover()

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
            raise _no_number(self.policy, chain)
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
            row = transaction.row(chain, x)
            if self.policy.summary is not None and chain.transitions + 1 >= chain.look:
                self._move_and_summarise(transaction, chain, row, x, state)
            else:
                self.move(chain, row, state)
            transaction.save_row(chain, x, row)
            chain.barren = 0
        chain.last = state
        chain.observations += 1
        transaction.save(chain)

    def _mover(self) -> Callable[[ChainRecord, RowRecord, int], None]:
        """``move``: one transition of a chain to ``y``, out of the state whose row is given.

        A closure, because this is the inner loop of a study in memory: names that it binds once it need not look up.
        """
        terms, index, next_look, factor = self.policy.terms, self.policy.index, self.next_look, self.factor
        blocks = self.policy.block > 0

        def move(chain: ChainRecord, row: RowRecord, y: int) -> None:
            counts = row.counts
            seen = counts.get(y, 0)
            exits = row.exits + 1
            squares = row.squares + 2 * seen + 1
            transitions = chain.transitions + 1
            constants = chain.constants
            sums = chain.sums
            counts[y] = seen + 1
            try:
                if terms is not None:
                    view = row.view
                    if view is None or view.size != chain.size:
                        view = row.view = RowView(counts, chain.size)
                    new = terms(view, float(exits), float(squares), constants)
                    sums = renewed_sums(sums, row.terms, new)
                    if transitions >= chain.look:
                        value = index(sums, float(transitions), constants)
                        if value != value:
                            raise _no_number(self.policy, chain)
                        chain.index = value if chain.weight == 1.0 else value * factor(chain.weight)
                        if blocks:
                            chain.look = next_look(transitions)
                    row.terms = new
            except BaseException:
                if seen:
                    counts[y] = seen
                else:
                    del counts[y]
                raise
            row.exits, row.squares = exits, squares
            chain.transitions, chain.sums = transitions, sums
            if not seen and chain.open:
                chain.discovered += 1
                row.discoveries[y] = chain.discovered, exits, 1

        return move

    def _move_and_summarise(self, transaction: Transaction, chain: ChainRecord, row: RowRecord, x: int, y: int) -> None:
        """A transition at the end of a block, where a rule that is no sum over rows looks at all of them."""
        found = {p: (other.exits, other.squares) for p, other in transaction.rows(chain).items()}
        found[x] = row.exits + 1, row.squares + 2 * row.counts.get(y, 0) + 1
        sums = self.summarise(chain, found)
        index = self.index(chain, sums, chain.transitions + 1)
        self.move(chain, row, y)
        chain.sums, chain.index, chain.look = sums, index, self.next_look(chain.transitions)

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
    if len(new) == 1:  # most rules
        return (sums[0] + (new[0] - old[0]),)
    return tuple([s + (b - a) for s, a, b in zip(sums, old, new, strict=True)])


def _no_number(policy: Policy, chain: ChainRecord) -> InputError:
    return InputError(f"the policy {policy.name!r} gave the chain {chain.name!r} an index that is no number")
