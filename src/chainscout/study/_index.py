"""A policy in a live study: the functions that experiments compile are interpreted here.

A study stores only the name, the parameters and the version of its rule: nothing that a file names is ever imported. A
study with a user's own rule can be read without the rule, and continues only in a program that has it.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from .. import policies
from ..errors import InputError
from ..policies import Policy, Setting
from ..policies.policy import replaced
from ..store import ChainRecord, RowRecord, RowView, StudyRecord, Transaction
from . import _budget
from ._aim import rests

#: Twice the index of a chain that has no transition yet and one pending observation: above every real index.
UNSEEN = 1e300


class LiveIndex:
    """A policy, interpreted: it keeps the terms, sums and index of every chain that moves."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        #: Whether a transition changes only the terms of its own row.
        self._plain = policy.terms is not None and policy.block == 0
        self._factors: dict[float, float] = {1.0: 1.0}
        self._width: int | None = None
        self._move = self._mover()

    def _factor(self, weight: float) -> float:
        """ω**power, the factor of a chain's weight in its index."""
        known = self._factors.get(weight)
        if known is None:
            known = self._factors[weight] = self.policy.factor(weight)
        return known

    def index(self, chain: ChainRecord, sums: tuple[float, ...], transitions: int) -> float:
        """The index for these sums after ``transitions`` transitions."""
        if transitions == 0:
            return math.inf
        value = float(self.policy.index(sums, float(transitions), chain.constants) * self._factor(chain.weight))
        if value != value:
            raise _no_number(self.policy, chain)
        return value

    def _no_sums(self, chain: ChainRecord) -> tuple[float, ...]:
        """The sums before the first transition."""
        if self._width is None:
            self._width = self.policy.width(max(1, chain.size), chain.constants)
        return (0.0,) * self._width

    def _next_look(self, transitions: int) -> int:
        """The T at which a block that begins now ends (MATH §6, Blocks)."""
        if self.policy.block == 0:
            return 0
        return transitions + max(1, int(self.policy.block * transitions))

    def _last_look(self, look: int) -> int:
        """The T at which the block began that ends at ``look``: the inverse of ``_next_look``."""
        transitions = int(look / (1 + self.policy.block)) + 1
        while self._next_look(transitions) > look:
            transitions -= 1
        return transitions

    def expected_index(self, chain: ChainRecord, pending: int) -> float:
        """The index with T + pending instead of T. Within a block it is the index at the beginning of the block.

        A chain without a transition goes first, however many workers walk it. Among such chains, the one with the
        fewest workers goes first.
        """
        if chain.transitions == 0:
            return UNSEEN / (1 + pending) if pending else math.inf
        transitions = chain.transitions + pending
        if transitions < chain.look:
            transitions = self._last_look(chain.look)
        return self.index(chain, chain.sums, transitions)

    # -- one transition

    def count(self, transaction: Transaction, chain: ChainRecord, x: int, y: int) -> None:
        """Counts the transition from ``x`` to ``y``. An error of the rule is raised before anything is changed."""
        row = transaction.row(chain, x)
        if self._plain:
            self._move(chain, row, y)
        else:
            self._move_in_block(transaction, chain, x, row, y)
        transaction.save_row(chain, x, row)

    def _mover(self) -> Callable[[ChainRecord, RowRecord, int], None]:
        """The function that counts a transition to ``y`` in a row, for a rule without blocks.

        It is a closure, because this is the inner loop of a study in memory: bound names need no look-up.
        """
        terms_of = self.policy.terms if self.policy.entry is None else None
        row_terms, index, factor = self.policy.row_terms, self.policy.index, self._factor

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
                sums = _renewed_sums(chain.sums, row.terms, terms)
                value = float(index(sums, float(transitions + chain.pending), constants))
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
        """Counts a transition in a block. At its end the changed rows are evaluated, in the order of the states."""
        seen = row.counts.get(y, 0)
        after = replace(
            row, exits=row.exits + 1, squares=row.squares + 2 * seen + 1, counts={**row.counts, y: seen + 1}
        )
        transitions = chain.transitions + 1
        if transitions >= chain.look:
            rows = {**transaction.rows(chain), x: after}
            changed = {p: rows[p] for p in sorted(rows) if rows[p].stale or p == x}
            terms, sums = self._looked(chain, rows, changed)
            look = self._next_look(transitions)
            expected = transitions + chain.pending
            index = self.index(chain, sums, transitions if expected < look else expected)
            for position, other in changed.items():
                target = row if position == x else other
                target.terms, target.stale = terms.get(position, ()), False
                if position != x:
                    transaction.save_row(chain, position, target)
            chain.sums, chain.index, chain.look = sums, index, look
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
        """The terms of the changed rows, and the chain's sums with these terms."""
        if self.policy.summary is not None:
            return {}, self._summarise(chain, rows)
        terms, sums = {}, chain.sums
        for position, row in changed.items():
            terms[position] = self._terms(chain, row)
            sums = _renewed_sums(sums, row.terms, terms[position])
        return terms, sums

    def reindex(self, chain: ChainRecord) -> None:
        """Computes the index again after the ratio or the number of pending observations has changed."""
        chain.index = self.expected_index(chain, chain.pending)
        chain.resting = rests(chain)

    # -- whole chains

    def _terms(self, chain: ChainRecord, row: RowRecord) -> tuple[float, ...]:
        """The terms of a row."""
        view = RowView(row.counts, chain.size)
        return self.policy.row_terms(view, chain.size, float(row.exits), float(row.squares), chain.constants)

    def _summarise(self, chain: ChainRecord, rows: Mapping[int, RowRecord]) -> tuple[float, ...]:
        """``summary`` of a chain's rows."""
        assert self.policy.summary is not None
        size = chain.size
        exits, squares = [0.0] * size, [0.0] * size
        for position, row in rows.items():
            exits[position], squares[position] = float(row.exits), float(row.squares)
        return self.policy.summary(exits, squares, size, chain.constants, [0.0] * (2 * size), [0] * (2 * size))

    def constants(self, study: StudyRecord, chain: ChainRecord) -> tuple[float, ...]:
        """The policy's constants for one chain of a study."""
        horizon = _budget.horizon(study)
        return self.policy.prepare(
            Setting(chain.number, chain.size, study.chains, study.pairs, horizon, open=chain.open)
        )

    def begin(self, chain: ChainRecord, rows: Mapping[int, RowRecord]) -> None:
        """Computes terms, sums and index from the counts alone: at the beginning, or after a change of the rule."""
        sums = self._no_sums(chain)
        if self.policy.summary is not None:
            if rows:
                sums = self._summarise(chain, rows)
        else:
            for position in sorted(rows):
                row = rows[position]
                row.terms, row.stale = self._terms(chain, row), False
                sums = _renewed_sums(sums, (), row.terms)
        if not (self.policy.aiming and chain.sums):  # the sums of an aim are not a function of the counts
            chain.sums = sums
        chain.look = self._next_look(chain.transitions)
        self.reindex(chain)


def renew(transaction: Transaction, live: LiveIndex, *, always: bool) -> None:
    """Computes the constants again, because they may depend on the budget, and the indices if constants changed."""
    for chain in transaction.every():
        fresh = live.constants(transaction.study, chain)
        if always or fresh != chain.constants:
            chain.constants = fresh
            rows = transaction.rows(chain)
            live.begin(chain, rows)
            for position, row in rows.items():
                transaction.save_row(chain, position, row)
            transaction.save(chain)


def _renewed_sums(sums: tuple[float, ...], old: tuple[float, ...], new: tuple[float, ...]) -> tuple[float, ...]:
    """Running sums in which ``new`` replaces ``old``. A row that was never left has no terms."""
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


# -- the policy of a stored study


class AbsentPolicy(Policy):
    """A policy's name without its rule."""


def not_built_in(name: str) -> InputError:
    """The error for a rule that is needed but not available."""
    return InputError(
        f"the study uses the policy {name!r}, which is not built in: only a Python program that gives this policy to "
        "Study.open can go on with it"
    )


def stored_policy(stored: StudyRecord, given: str | Policy | None, read_only: bool) -> tuple[Policy, bool]:
    """The policy that the study was created with, and whether its rule has changed since.

    Raises ``InputError`` if the policy given is another one, or if a rule is needed that is not built in.
    """
    parameters = json.loads(stored.parameters)
    if given is None:
        if policies.is_built_in(stored.policy.partition(":")[0]):  # a user's own rule may have any name
            rule = policies.get(stored.policy)
            return rule, rule.version != stored.version
        if not read_only:
            raise not_built_in(stored.policy)

        def refuse(*arguments: Any) -> Any:
            raise not_built_in(stored.policy)

        absent = AbsentPolicy(stored.policy, refuse, refuse, refuse, version=stored.version, parameters=parameters)
        return absent, False
    rule = policies.get(given)
    own = json.loads(json.dumps(dict(rule.parameters)))
    changed = rule.version != stored.version
    # A name means the built-in rule as it is now; an object means itself.
    if (rule.name, own) != (stored.policy, parameters) or (changed and rule is given):
        raise InputError(
            f"the study was created with the policy {stored.policy!r}, parameters {parameters}, version "
            f"{stored.version}; the one given is {rule.name!r}, parameters {own}, version {rule.version}"
        )
    return rule, changed
