"""The order of the chains: which one is advanced next, by a study's rule (MATH §6 and §16).

The terms of a row are computed at once, entry by entry, because running sums depend on when terms are renewed: so every
process, a study that was opened again, and an experiment have the same bits. Indices and the heaps over them are lazy:
they are computed for the chains that moved, when somebody asks.
"""

import heapq
import math
from collections.abc import Callable, Mapping, Set
from typing import Any

from ..errors import InputError
from ..policies import Policy, Setting
from ..policies.furthest import LARGEST, UNBOUNDED
from ..policies.policy import replaced
from .chain import Chain, Row, RowCounts
from .draws import UNKNOWN, Hole

__all__ = ["CHEAP", "CLOSE", "UNSEEN", "Order"]

#: Twice the index of a chain that has no transition yet and one pending observation: above every real index.
UNSEEN = 1e300
#: Below the index of every chain without a transition, however many workers walk it.
_UNSEEN_LEAST = math.sqrt(UNSEEN * UNBOUNDED)
#: Another path is cheap while first observations are at most this part of a chain's transitions.
CHEAP = 0.05
#: A worker advances a chain only if its index is at least this part of the largest one; else it waits.
CLOSE = 0.95
#: A worker that prefers chains that it walks already compares at most this many.
_MOST_COMPARED = 64

_NOBODY: frozenset[int] = frozenset()
_AS_IT_IS: Mapping[int, Chain] = {}


class Order:
    """A rule, interpreted: the terms and sums of every chain, and the chains by their indices.

    Some methods take ``instead``: chain number → the chain as a command will leave it. So a command can choose after
    its own effect, before anything is stored.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        #: The rule for the study's horizon. A rule may need other functions without a budget.
        self.rule = policy
        #: The chains that moved since somebody asked.
        self.moved: set[int] = set()
        #: (chain, state) → the error of the rule when it last saw this row.
        self.errors: dict[tuple[int, int], Exception] = {}
        self._chains: list[Chain] = []
        self._factors: dict[float, float] = {1.0: 1.0}
        self._indices = _Heap(0)
        self._finite = _Heap(0)
        self._fewest = _Heap(0)
        self._terms = self._term_function()

    # -- constants, terms and sums

    def begin(self, chains: list[Chain], pairs: int, horizon: int | None) -> None:
        """The chains of a new study, with their warm starts."""
        self._chains = chains
        self.renew(pairs, horizon, always=True)
        self.resume(chains, horizon)

    def resume(self, chains: list[Chain], horizon: int | None) -> None:
        """Chains whose constants, terms and sums are known."""
        self._chains = chains
        self._face(horizon)
        self._indices, self._finite, self._fewest = (_Heap(len(chains)) for _ in range(3))
        self.moved = set(range(len(chains)))

    def _face(self, horizon: int | None) -> None:
        self.rule = self.policy.facing(horizon)
        self._factors = {1.0: 1.0}
        self._terms = self._term_function()

    def renew(self, pairs: int, horizon: int | None, *, always: bool) -> None:
        """Computes the constants again, which may depend on the horizon; and terms and sums where constants changed.

        ``always``: everywhere, because the rule has other functions now.
        """
        self._face(horizon)
        known: dict[tuple[float, ...], tuple[float, ...]] = {}
        width: int | None = None
        for chain in self._chains:
            setting = Setting(chain.number, chain.size, len(self._chains), pairs, horizon, open=chain.is_open)
            constants = self.rule.prepare(setting)
            if not always and constants == chain.constants:
                continue
            chain.constants = known.setdefault(constants, constants)
            if width is None:
                width = self.rule.width(max(1, chain.size), constants)
            if not (self.rule.aiming and chain.sums):  # the sums of an aim are not a function of the counts
                chain.sums = (0.0,) * width
            for row in chain.rows.values():
                row.terms, row.stale = (), True
            if chain.rows:
                self._evaluate(chain, sorted(chain.rows))
            chain.look = self._next_look(chain.transitions)
            self.moved.add(chain.number)

    def count(self, chain: Chain, x: int, row: Row) -> None:
        """Renews terms and sums after a transition out of x was counted. Never raises: see `errors`."""
        terms = self._terms
        if terms is not None:
            view = row.view
            if view is None or view.size != chain.size:
                view = row.view = RowCounts(row.counts, chain.size)
            try:
                new = terms(view, float(row.exits), float(row.squares), chain.constants)
                chain.sums = _renewed(chain.sums, row.terms, new)
            except Exception as error:
                self.errors[chain.number, x] = error
                return
            row.terms = new
            if self.errors:
                self.errors.pop((chain.number, x), None)
            return
        row.stale = True
        if chain.transitions >= chain.look:
            changed = sorted(state for state, other in chain.rows.items() if other.stale)
            if self._evaluate(chain, changed):
                chain.look = self._next_look(chain.transitions)

    def forget(self, chain: Chain, x: int, row: Row) -> None:
        """The row has no exits any more, because its only one was taken back."""
        if row.terms:
            chain.sums = _renewed(chain.sums, row.terms, (0.0,) * len(row.terms))
        self.errors.pop((chain.number, x), None)

    def _term_function(self) -> Callable[[RowCounts, float, float, Any], tuple[float, ...]] | None:
        """The terms of one row, for a rule whose terms are renewed at each transition; else None."""
        rule = self.rule
        if rule.block or rule.terms is None:
            return None
        if rule.entry is None:
            return rule.terms
        return lambda row, exits, squares, constants: rule.row_terms(row, row.size, exits, squares, constants)

    def _evaluate(self, chain: Chain, changed: list[int]) -> bool:
        """Renews the terms of the changed rows, in the order of the states. Returns whether the rule raised nothing."""
        rule, x = self.rule, changed[0]
        try:
            if rule.summary is not None:
                chain.sums = self._summary(chain)
            for x in changed:
                row = chain.rows[x]
                if rule.summary is None:
                    view = RowCounts(row.counts, chain.size)
                    new = rule.row_terms(view, chain.size, float(row.exits), float(row.squares), chain.constants)
                    chain.sums = _renewed(chain.sums, row.terms, new)
                    row.terms = new
                row.stale = False
                self.errors.pop((chain.number, x), None)
        except Exception as error:
            self.errors[chain.number, x] = error
            return False
        return True

    def _summary(self, chain: Chain) -> tuple[float, ...]:
        assert self.rule.summary is not None
        size = chain.size
        exits, squares = [0.0] * size, [0.0] * size
        for x, row in chain.rows.items():
            exits[x], squares[x] = float(row.exits), float(row.squares)
        return self.rule.summary(exits, squares, size, chain.constants, [0.0] * (2 * size), [0] * (2 * size))

    def counted(self, chain: Chain, x: int, y: int) -> Chain:
        """A preview: the chain as it is after one more transition from x to y, and the look that is due then."""
        errors, after = dict(self.errors), chain.copied()
        row = chain.rows[x].copied() if x in chain.rows else Row()
        row.squares += 2 * row.counts.get(y, 0) + 1
        row.counts[y] = row.counts.get(y, 0) + 1
        row.exits += 1
        after.rows, after.transitions = {**chain.rows, x: row}, chain.transitions + 1
        if self.rule.block:
            after.rows = {state: other.copied() for state, other in after.rows.items()}
            row = after.rows[x]
        self.count(after, x, row)
        self.errors = errors
        if after.wanted is None and after.transitions >= after.due:
            after.wanted = Hole(0, UNKNOWN)
        return after

    # -- indices

    def _next_look(self, transitions: int) -> int:
        """The T at which a block that begins now ends (MATH §6, Blocks)."""
        return transitions + max(1, int(self.rule.block * transitions)) if self.rule.block else 0

    def _last_look(self, look: int) -> int:
        """The T at which the block began that ends at ``look``: the inverse of ``_next_look``."""
        transitions = int(look / (1 + self.rule.block)) + 1
        while self._next_look(transitions) > look:
            transitions -= 1
        return transitions

    def index(self, chain: Chain, pending: int | None = None) -> float:
        """The chain's index with T + pending instead of T; within a block that of the block's beginning.

        A chain without a transition goes first, however many workers walk it; of several, the one with the fewest.
        ``pending``: None: the draws that leases will bring.
        """
        pending = chain.pending if pending is None else pending
        if chain.transitions == 0:
            return UNSEEN / (1 + pending) if pending else math.inf
        transitions = chain.transitions + pending
        if transitions < chain.look:
            transitions = self._last_look(chain.look)
        value = float(self.rule.index(chain.sums, float(transitions), chain.constants))
        if chain.weight != 1.0:
            value *= self._factor(chain.weight)
        if value != value:
            raise InputError(f"the policy {self.rule.name!r} gave the chain {chain.name!r} an index that is no number")
        return value

    def _factor(self, weight: float) -> float:
        """ω**power, the factor of a chain's weight in its index."""
        known = self._factors.get(weight)
        if known is None:
            known = self._factors[weight] = self.rule.factor(weight)
        return known

    def check(self) -> None:
        """Raises what the rule raised, if it raised something."""
        if self.errors:
            raise next(iter(self.errors.values()))

    def _refresh(self) -> None:
        """Brings the heaps up to date. Raises what the rule raised, for a row or for an index."""
        self.check()
        for number in sorted(self.moved) if len(self.moved) > 1 else self.moved:
            chain = self._chains[number]
            key = None if chain.is_taken else -self.index(chain)
            self._indices.set(number, key)
            if self.rule.aiming:
                self._finite.set(number, key if key is not None and -key < LARGEST else None)
            if self.rule.floor is not None:
                self._fewest.set(number, None if key is None else float(chain.transitions + chain.pending))
        self.moved.clear()

    def _best(
        self, heap: "_Heap", count: int, without: Set[int], instead: Mapping[int, Chain]
    ) -> list[tuple[float, int, Chain]]:
        """The first ``count`` chains of a heap, with their keys and numbers, in order."""
        found = heap.firsts(count, without, instead)
        chains = [(heap.key(number), number, self._chains[number]) for number in found]
        for number, chain in instead.items():
            if number in without or chain.is_taken:
                continue
            if heap is self._fewest:
                chains.append((float(chain.transitions + chain.pending), number, chain))
            elif (index := self.index(chain)) < LARGEST or heap is self._indices:
                chains.append((-index, number, chain))
        return sorted(chains, key=lambda entry: entry[:2])[:count] if instead else chains

    # -- choices

    def first(
        self, observations: int, without: Set[int] = _NOBODY, instead: Mapping[int, Chain] = _AS_IT_IS
    ) -> Chain | None:
        """The chain to advance next; None if none is free. Ties go to the smallest number."""
        self._refresh()
        if self.rule.floor is not None:
            fewest = self._best(self._fewest, 1, without, instead)
            if fewest and fewest[0][0] < self.rule.floor(float(observations)):
                return fewest[0][2]
        if not (without or instead):
            number = self._indices.first()
            found = [] if number is None else [(self._indices.key(number), number, self._chains[number])]
        else:
            found = self._best(self._indices, 1, without, instead)
        if not found:
            return None
        key, _, chain = found[0]
        if self.rule.aiming and LARGEST < -key < _UNSEEN_LEAST:
            # An infinite ratio counts as the largest finite one, and the chain with fewer transitions goes first.
            others = [chain, *(other for _, _, other in self._best(self._finite, 1, without, instead))]
            return min(others, key=lambda other: (other.transitions + other.pending, other.number))
        return chain

    def ahead(
        self, chain: Chain, busy: Set[int], without: Set[int] = _NOBODY, instead: Mapping[int, Chain] = _AS_IT_IS
    ) -> list[Chain]:
        """The chains that come so far before a free chain that a worker waits for them. ``busy``: chains with leases.

        Advancing this chain would spend what those need. An infinite index holds nobody up, because the first draws of
        a chain say nothing of its index. A rule with a floor orders chains by their transitions too, and nobody waits.
        """
        if self.rule.floor is not None:
            return []
        rivals = [instead.get(number, self._chains[number]) for number in sorted(busy)]
        rivals = [other for other in rivals if not (other.aside or other.rests())]
        rivals += [other for _, _, other in self._best(self._indices, 1, without | busy, instead)]
        own = self.index(chain)
        indices = [(self.index(other), other) for other in rivals]
        return [other for index, other in indices if index < LARGEST and own < CLOSE * index]

    def preferred(
        self, observations: int, walks: Callable[[Chain], bool], left: float, without: Set[int] = _NOBODY,
        instead: Mapping[int, Chain] = _AS_IT_IS,
    ) -> Chain | None:  # fmt: skip
        """The chain for a worker: the next one, or one with nearly the same index that the worker already walks.

        A new path costs a first observation, which brings no transition: W workers on K chains pay up to W·K of them.
        ``walks``: whether the worker walks a chain. ``left``: what the budget can pay.
        """
        chain = self.first(observations, without, instead)
        if chain is None or walks(chain) or self.rule.floor is not None:
            return chain
        found = [other for _, _, other in self._best(self._indices, _MOST_COMPARED, without, instead)]
        found = [other for other in found if other.cost <= left]
        if chain.transitions == 0:  # among affordable chains: first its own, then one that nobody has begun
            unseen = [other for other in found if other.transitions == 0] or [chain]
            return min(unseen, key=lambda c: (not walks(c), c.observations + c.pending, c.number))
        if chain.begun + 1 <= CHEAP * chain.transitions:
            return chain
        least = CLOSE * self.index(chain)
        return next((other for other in found if walks(other) and self.index(other) >= least), chain)

    def batch(
        self, number: int, observations: int, left: float, without: Set[int] = _NOBODY,
        instead: Mapping[int, Chain] = _AS_IT_IS,
    ) -> list[Chain]:  # fmt: skip
        """The next ``number`` chains: pending observations count in T, and everything else is frozen."""
        self._refresh()
        best = self._best(self._indices, number, without, instead)
        chains = {k: chain for _, k, chain in best}
        keys = {k: key for key, k, _ in best}
        floor, fewest = self.rule.floor, list[tuple[float, int]]()
        if floor is not None:
            for _, k, chain in self._best(self._fewest, number, without, instead):
                if k not in chains:
                    chains[k], keys[k] = chain, -self.index(chain)
            fewest = [(float(chain.transitions + chain.pending), k) for k, chain in chains.items()]
            heapq.heapify(fewest)
        extra = dict.fromkeys(chains, 0)
        order = [(key, k) for k, key in keys.items()]
        heapq.heapify(order)
        chosen: list[Chain] = []

        def expected(k: int) -> int:
            return chains[k].transitions + chains[k].pending + extra[k]

        while len(chosen) < number and order:
            while order[0][0] != keys[order[0][1]]:
                heapq.heappop(order)
            _, k = order[0]
            if floor is not None:
                while fewest[0][0] != expected(fewest[0][1]):
                    heapq.heappop(fewest)
                if fewest[0][0] < floor(float(observations)):
                    k = fewest[0][1]
            chain = chains[k]
            if chain.cost > left or keys[k] == math.inf:
                break
            left -= chain.cost
            chosen.append(chain)
            extra[k] += 1
            keys[k] = -self._batch_index(chain, extra[k])
            heapq.heappush(order, (keys[k], k))
            if floor is not None:
                heapq.heappush(fewest, (float(expected(k)), k))
        return chosen

    def _batch_index(self, chain: Chain, extra: int) -> float:
        """The index with this many more observations; −∞: they bring the look that says whether it is done.

        A chain without a transition gets only the observations that bring its first one.
        """
        if chain.transitions == 0:
            return math.inf if extra + min(chain.observations, 1) < 2 else -math.inf
        pending = chain.pending + extra
        return -math.inf if chain.rests(pending) else self.index(chain, pending)


def _renewed(sums: tuple[float, ...], old: tuple[float, ...], new: tuple[float, ...]) -> tuple[float, ...]:
    """Running sums in which ``new`` replaces ``old``, as `replaced` does it; a row without terms adds to them."""
    if len(new) == 1:
        return (replaced(sums[0], old[0] if old else 0.0, new[0]),)
    if not old:
        return tuple([total + after for total, after in zip(sums, new, strict=True)])
    return tuple([(total - before) + after for total, before, after in zip(sums, old, new, strict=True)])


class _Heap:
    """The numbers 0 … n−1 in the order of (key, number). Keys change one at a time; None: the number is left out."""

    __slots__ = ("_entries", "_keys")

    def __init__(self, size: int) -> None:
        self._keys: list[float | None] = [None] * size
        #: Pairs (key, number); one whose key is not the number's own any more is dropped when it comes up.
        self._entries: list[tuple[float, int]] = []

    def key(self, number: int) -> float:
        """The key of a number that is not left out."""
        key = self._keys[number]
        assert key is not None
        return key

    def set(self, number: int, key: float | None) -> None:
        """Gives the number another key."""
        if key == self._keys[number]:
            return
        self._keys[number] = key
        if key is None:
            return
        entries = self._entries
        if entries and entries[0][1] == number:  # most often the chain that moved is the one that was first
            heapq.heapreplace(entries, (key, number))
            return
        heapq.heappush(entries, (key, number))
        if len(entries) > 2 * len(self._keys) + 64:
            self._entries = [(key, number) for number, key in enumerate(self._keys) if key is not None]
            heapq.heapify(self._entries)

    def first(self) -> int | None:
        """The number with the smallest key."""
        entries, keys = self._entries, self._keys
        while entries:
            key, number = entries[0]
            if keys[number] == key:
                return number
            heapq.heappop(entries)
        return None

    def firsts(self, count: int, without: Set[int], others: Mapping[int, object]) -> list[int]:
        """The ``count`` numbers with the smallest keys, in order, but for those of ``without`` and ``others``."""
        found: list[int] = []
        taken: list[tuple[float, int]] = []
        while len(found) < count and (number := self.first()) is not None:
            entry = heapq.heappop(self._entries)
            if taken and taken[-1] == entry:  # an entry can occur twice, one right after the other
                continue
            taken.append(entry)
            if number not in without and number not in others:
                found.append(number)
        for entry in taken:
            heapq.heappush(self._entries, entry)
        return found
