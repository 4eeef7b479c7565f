"""Choices: which chain is advanced next, once a command's own effect is counted in."""

from collections.abc import Sequence, Set

from ...errors import Held, NothingFree, StudyFinished
from ...journal.entry import Draft, Kind
from .. import budget, labels, stop
from ..chain import Chain
from ..order import Order
from ..rule import not_built_in
from ..state import MOST_BARREN, State
from ..views import StopReason
from ..walker import Walker
from .tells import expiries

__all__ = ["After", "ask", "ask_many", "chosen"]

_NOBODY: frozenset[int] = frozenset()


def ask(state: State, now: int, without: Set[str] = frozenset()) -> str:
    """The chain to advance next. Raises ``StudyFinished`` or ``NothingFree`` if there is none."""
    order, chains, excluded = _asked(state, now, without)
    chain = order.first(state.observations, excluded, chains)
    if chain is None or chain.cost > budget.remaining(state, now):
        raise stop.nothing_free(state, now)
    return chain.name


def ask_many(state: State, now: int, number: int, without: Set[str] = frozenset()) -> list[str]:
    """The next ``number`` chains, one after the other. Raises an error if there is none."""
    order, chains, excluded = _asked(state, now, without)
    found = order.batch(number, state.observations, budget.remaining(state, now), excluded, chains)
    if not found:
        raise stop.nothing_free(state, now)
    return [chain.name for chain in found]


def _asked(state: State, now: int, without: Set[str]) -> tuple[Order, dict[int, Chain], frozenset[int]]:
    """The order of the chains; the chains as they are without expired leases; and those that are left out."""
    order = _order(state)
    stop.check_asking(state, now)
    chains = After(state, now).chains if state.leases else {}
    return order, chains, frozenset([labels.find(state, name).number for name in without]) if without else _NOBODY


class After:
    """The state as it will be after some drafts, as far as a choice needs it.

    ``told``: the drafts of a tell under a lease. Leases whose time is over end after them.
    """

    def __init__(self, state: State, now: int, told: Sequence[Draft] = ()) -> None:
        self.state = state
        self.now = now
        #: The chains that the drafts change, as they will be.
        self.chains: dict[int, Chain] = {}
        #: The leases that end with the drafts; what they spend; what stays promised; and all observations.
        self.ended: set[int] = set()
        self.spent = 0.0
        self.reserved = state.reserved
        self.observations = state.observations
        tellers = {draft.by for draft in told}
        self.drafts = [*told, *(draft for draft in expiries(state, now) if draft.by not in tellers)]
        for draft in self.drafts:
            if draft.kind is Kind.TOLD:
                self._tell(draft.by, draft.value)
            elif draft.kind is Kind.EXPIRED:
                self._end(draft.by)

    def _chain(self, number: int) -> Chain:
        """The chain as it will be, to be changed."""
        if number not in self.chains:
            self.chains[number] = self.state.chains[number].copied()
        return self.chains[number]

    def _end(self, token: int) -> None:
        """A lease has ended, and its path."""
        held = self.state.leases[token]
        chain = self._chain(held.chain)
        self.ended.add(token)
        self.reserved -= held.steps * chain.cost
        chain.leases -= 1
        chain.pending -= held.steps
        chain.barren += chain.walks[held.path].steps <= 1
        if chain.barren >= MOST_BARREN and chain.aside is None:
            chain.aside = "its last paths brought no transition"

    def _tell(self, token: int, position: int) -> None:
        """A lease has told its next observation."""
        held = self.state.leases[token]
        chain = self._chain(held.chain)
        path = chain.walks[held.path]
        self.spent += chain.cost
        self.reserved -= chain.cost
        self.observations += 1
        chain.pending -= 1
        chain.leases -= held.steps == 1
        chain.observations += 1
        if position >= chain.size:
            chain.size = position + 1
        if path.steps:
            chain.barren = 0
            self.chains[held.chain] = _order(self.state).counted(chain, path.last, position)
        if held.steps == 1:
            self.ended.add(token)

    def remaining(self) -> float:
        """What is left of the budget without the promises."""
        if self.state.budget is None:
            return float("inf")
        reserved = self.reserved if len(self.ended) < len(self.state.leases) else 0.0
        return budget.unspent(self.state) - self.spent - reserved

    def leases(self, worker: int) -> set[int]:
        """The chains of which this worker has a lease."""
        held = self.state.leases.values()
        return {one.chain for one in held if one.worker == worker and one.number not in self.ended}


def chosen(
    after: After, worker: Walker, steps: int, name: str | None, without: Set[str], continuing: bool
) -> tuple[Chain, int]:
    """The chain for a worker, and how many of its steps the budget pays for.

    ``continuing``: the latest path of the worker's name counts as its own.
    Raises ``Held`` if the worker itself holds what is free.
    """
    state, order = after.state, _order(after.state)
    why = _reason(after)
    if why is not None:
        raise why
    left = after.remaining()
    own = after.leases(worker.number)
    excluded = frozenset(labels.find(state, one).number for one in without)
    if name is not None:
        return _named(after, name, own, steps, left)
    best = chain = _preferred(after, order, worker, left, excluded, continuing)
    while chain is not None and chain.number in own:  # a worker has one process a chain
        excluded |= {chain.number}
        chain = _preferred(after, order, worker, left, excluded, continuing)
    if chain is None and best is not None:
        raise Held(f"the worker {worker.name!r} holds the chain {best.name!r} already, and has one process a chain")
    affordable = 0 if chain is None else int(min(steps, left / chain.cost))
    if chain is None or affordable < 1:
        raise stop.nothing_free(state, after.now, len(excluded))
    busy = {held.chain for held in state.leases.values() if held.number not in after.ended}
    if first := order.ahead(chain, busy, excluded, after.chains):
        named = ", ".join(repr(other.name) for other in first[: budget.MOST_NAMED])
        if all(other.number in own for other in first):
            what = f"the worker {worker.name!r} holds {named}, which come first"
            raise Held(f"{what}: it must tell them before {chain.name!r}")
        come, are = ("comes", "is") if len(first) == 1 else ("come", "are")
        raise NothingFree(f"nothing is free: {named} {come} before {chain.name!r}, and {are} at work")
    return chain, affordable


def _preferred(
    after: After, order: Order, worker: Walker, left: float, without: Set[int], continuing: bool
) -> Chain | None:
    """The next chain, or one with nearly the same index that the worker already walks."""
    first = order.first(after.observations, without, after.chains)
    if first is None or worker.alone or after.state.shared or (continuing and worker.latest(first) is not None):
        return first
    return order.preferred(after.observations, worker.walks, left, without, after.chains)


def _named(after: After, name: str, own: Set[int], steps: int, left: float) -> tuple[Chain, int]:
    """The chain that the worker asked for by name, whatever its place in the order."""
    chain = labels.find(after.state, name)
    chain = after.chains.get(chain.number, chain)
    if chain.number in own:
        raise Held(f"the worker holds the chain {name!r} already, and has one process a chain")
    if chain.is_taken:
        why = "is done" if chain.done else "is set aside" if chain.aside is not None else "is at work, or waits"
        raise NothingFree(f"the chain {name!r} {why}")
    affordable = int(min(steps, left / chain.cost))
    if affordable < 1:
        raise stop.nothing_free(after.state, after.now)
    return chain, affordable


def _reason(after: After) -> StudyFinished | None:
    """Why the study has stopped, once the drafts are stored."""
    state = after.state
    why = stop.reason(state, after.now)
    if why is None and budget.unspent(state) - after.spent < state.costs[0]:
        why = StopReason.BUDGET
    return None if why is None else stop.finished(state, why)


def _order(state: State) -> Order:
    """The order of the chains. Raises ``InputError`` for a state that was folded without the rule."""
    if state.order is None:
        raise not_built_in(state.settings["policy"]["name"])
    return state.order
