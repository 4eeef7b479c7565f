"""A policy at work in a live study: the same two functions that experiments compile, interpreted."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from ..errors import InputError
from ..policies import Policy
from ..policies.policy import replaced
from ..store import ChainRecord, RowRecord, RowView, Transaction


class Rule:
    """What a study does with its policy."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        #: Whether an observation changes the terms of its own row and nothing else.
        self.plain = policy.terms is not None and policy.block == 0
        self._factors: dict[float, float] = {1.0: 1.0}
        self._width: int | None = None
        self.move = self._mover()

    def factor(self, weight: float) -> float:
        """ω**power, what a chain's weight does to its index."""
        known = self._factors.get(weight)
        if known is None:
            known = self._factors[weight] = self.policy.factor(weight)
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
        if self.policy.block == 0:
            return 0
        return transitions + max(1, int(self.policy.block * transitions))

    # -- one observation

    def advance(self, transaction: Transaction, chain: ChainRecord, state: int) -> None:
        """One observation. Whatever the rule raises is raised before anything is changed."""
        x = chain.last
        if x is None:
            chain.segments += 1
            chain.barren += 1
        else:
            row = transaction.row(chain, x)
            if self.plain:
                self.move(chain, row, state)
            else:
                self._move_in_block(transaction, chain, x, row, state)
            transaction.save_row(chain, x, row)
            chain.barren = 0
        chain.last = state
        chain.observations += 1
        transaction.save(chain)

    def _mover(self) -> Callable[[ChainRecord, RowRecord, int], None]:
        """``move``: a transition to ``y`` out of the state whose row is given, for a rule that looks at every one.

        A closure, because this is the inner loop of a study in memory: names that it binds once it need not look up.
        """
        terms_of = self.policy.terms if self.policy.entry is None else None
        row_terms, index, factor = self.policy.row_terms, self.policy.index, self.factor

        def move(chain: ChainRecord, row: RowRecord, y: int) -> None:
            counts = row.counts
            seen = counts.get(y, 0)
            exits = row.exits + 1
            squares = row.squares + 2 * seen + 1
            transitions = chain.transitions + 1
            constants = chain.constants
            view = row.view
            if view is None or view.size != chain.size:
                view = row.view = RowView(counts, chain.size)
            counts[y] = seen + 1
            try:
                if terms_of is not None:
                    terms = terms_of(view, float(exits), float(squares), constants)
                else:
                    terms = row_terms(view, chain.size, float(exits), float(squares), constants)
                sums = renewed_sums(chain.sums, row.terms, terms)
                value = index(sums, float(transitions), constants)
                if value != value:
                    raise _no_number(self.policy, chain)
            except BaseException:
                if seen:
                    counts[y] = seen
                else:
                    del counts[y]
                raise
            chain.index = value if chain.weight == 1.0 else value * factor(chain.weight)
            row.exits, row.squares, row.terms = exits, squares, terms
            chain.transitions, chain.sums = transitions, sums
            if not seen and chain.open:
                _discover(chain, row, y)

        return move

    def _move_in_block(self, transaction: Transaction, chain: ChainRecord, x: int, row: RowRecord, y: int) -> None:
        """A transition in a block; at its end the rows that changed are looked at, in the order of the states."""
        seen = row.counts.get(y, 0)
        after = replace(
            row, exits=row.exits + 1, squares=row.squares + 2 * seen + 1, counts={**row.counts, y: seen + 1}
        )
        transitions = chain.transitions + 1
        if transitions >= chain.look:
            rows = {**transaction.rows(chain), x: after}
            changed = {p: rows[p] for p in sorted(rows) if rows[p].stale or p == x}
            terms, sums = self._looked(chain, rows, changed)
            index = self.index(chain, sums, transitions)
            for position, other in changed.items():
                target = row if position == x else other
                target.terms, target.stale = terms.get(position, ()), False
                if position != x:
                    transaction.save_row(chain, position, target)
            chain.sums, chain.index, chain.look = sums, index, self.next_look(transitions)
        else:
            row.stale = True
        row.counts[y] = seen + 1
        row.exits, row.squares = after.exits, after.squares
        chain.transitions = transitions
        if not seen and chain.open:
            _discover(chain, row, y)

    def _looked(
        self, chain: ChainRecord, rows: Mapping[int, RowRecord], changed: Mapping[int, RowRecord]
    ) -> tuple[dict[int, tuple[float, ...]], tuple[float, ...]]:
        """The changed rows' terms, and the chain's sums with them in place of the old ones."""
        if self.policy.summary is not None:
            return {}, self.summarise(chain, rows)
        terms, sums = {}, chain.sums
        for position, row in changed.items():
            terms[position] = self.terms(chain, row)
            sums = renewed_sums(sums, row.terms, terms[position])
        return terms, sums

    # -- whole chains

    def terms(self, chain: ChainRecord, row: RowRecord) -> tuple[float, ...]:
        """The terms of a row."""
        view = RowView(row.counts, chain.size)
        return self.policy.row_terms(view, chain.size, float(row.exits), float(row.squares), chain.constants)

    def summarise(self, chain: ChainRecord, rows: Mapping[int, RowRecord]) -> tuple[float, ...]:
        """``summary`` of a chain's rows."""
        assert self.policy.summary is not None
        size = chain.size
        exits, squares = [0.0] * size, [0.0] * size
        for position, row in rows.items():
            exits[position], squares[position] = float(row.exits), float(row.squares)
        return self.policy.summary(exits, squares, size, chain.constants, [0.0] * (2 * size), [0] * (2 * size))

    def begin(self, chain: ChainRecord, rows: Mapping[int, RowRecord]) -> None:
        """Terms, sums and index from the counts alone: at the beginning, or when the rule has changed."""
        sums = self.no_sums(chain)
        if self.policy.summary is not None:
            if rows:
                sums = self.summarise(chain, rows)
        else:
            for position in sorted(rows):
                row = rows[position]
                row.terms, row.stale = self.terms(chain, row), False
                sums = renewed_sums(sums, (), row.terms)
        chain.sums = sums
        chain.index = self.index(chain, sums, chain.transitions)
        chain.look = self.next_look(chain.transitions)


def renewed_sums(sums: tuple[float, ...], old: tuple[float, ...], new: tuple[float, ...]) -> tuple[float, ...]:
    """Running sums in which ``new`` stands for ``old``; a row that was never left has no terms."""
    if not old:
        old = (0.0,) * len(new)
    if len(new) == 1:  # most rules
        return (replaced(sums[0], old[0], new[0]),)
    return tuple([replaced(s, a, b) for s, a, b in zip(sums, old, new, strict=True)])


def _discover(chain: ChainRecord, row: RowRecord, y: int) -> None:
    """Numbers a pair of states that was seen for the first time."""
    chain.discovered += 1
    row.discoveries[y] = chain.discovered, row.exits, 1


def _no_number(policy: Policy, chain: ChainRecord) -> InputError:
    return InputError(f"the policy {policy.name!r} gave the chain {chain.name!r} an index that is no number")
