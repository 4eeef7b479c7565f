"""Leases: a worker's right to advance a path of a chain for a while."""

from collections.abc import Hashable, Set
from typing import NamedTuple

from ...errors import Held, InputError, LeaseLost, NothingFree, StudyFinished
from ...journal.entry import Draft, Kind, packed
from .. import budget, labels, stop
from ..chain import Chain, Path
from ..order import Order
from ..state import MOST_BARREN, State
from ..views import StopReason
from ..walker import Walker
from .tells import Recall, Told, expiries, find_lease, nothing_recalled, tell_leased

__all__ = ["Granted", "give_back", "lease", "renew", "tell_and_lease"]


class Granted(NamedTuple):
    """A lease, once the drafts are stored."""

    #: The number of its entry; and that of the worker's own entry.
    token: int
    worker: int
    chain: int
    path: int
    #: How many observations the path has, and the position of its last state; −1: it begins.
    steps: int
    last: int
    #: How many observations the lease is for, and for how many milliseconds.
    number: int
    lasts: int


def lease(
    state: State, now: int, worker: Walker, lasts: int, *, steps: int = 1, at_once: bool = False,
    chain: str | None = None, without: Set[str] = frozenset(), continuing: bool | Set[str] = False,
    key: str | None = None,
) -> tuple[list[Draft], Granted]:  # fmt: skip
    """A lease of the best chain, or of the named one. Raises an error that says why there is none.

    ``lasts``: milliseconds. ``at_once``: the steps are made before any of them is told, so their slots begin now.
    ``continuing``: the worker's process stands where the latest path of its name was left; or the chains for which that
    is true.
    """
    if key is not None and key in state.keys:
        return [], _granted_before(state, worker, key)
    after = _After(state, now)
    for draft in after.drafts:
        after.end(draft.by)
    return _granted(after, worker, lasts, steps, at_once, chain, without, continuing, key, None)


def tell_and_lease(
    state: State, now: int, worker: Walker, token: int, name: str, given: Hashable, lasts: int, *, path: int, step: int,
    steps: int = 1, without: Set[str] = frozenset(), continuing: bool | Set[str] = False,
    recall: Recall = nothing_recalled,
) -> tuple[list[Draft], tuple[Told, Granted | StudyFinished | NothingFree | Held]]:  # fmt: skip
    """Tells one observation, and takes the worker's next lease in the same append: the lease is chosen after the tell.

    If there is no lease, its place has the error that says why, and the observation is told all the same.
    """
    drafts, told = tell_leased(state, now, token, name, given, path=path, step=step, recall=recall)
    if told.repeated or told.late:
        raise LeaseLost(f"the lease of the chain {name!r} has ended: tell the observation by itself")
    after = _After(state, now, [*drafts, *(draft for draft in expiries(state, now) if draft.by != token)])
    for draft in after.drafts:
        if draft.kind is Kind.EXPIRED:
            after.end(draft.by)
    position = next(draft.value for draft in drafts if draft.kind is Kind.TOLD)
    after.tell(token, position)
    try:
        found, granted = _granted(after, worker, lasts, steps, False, None, without, continuing, None, told)
    except (StudyFinished, NothingFree, Held) as error:
        return after.drafts, (told, error)
    return found, (told, granted)


def renew(state: State, now: int, token: int, name: str, lasts: int) -> tuple[list[Draft], None]:
    """The lease lasts for ``lasts`` milliseconds from now on."""
    chain, held, path = find_lease(state, now, token, name)
    return [Draft(Kind.RENEWED, chain.number, path.number, lasts, held.number)], None


def give_back(state: State, now: int, token: int, name: str, *, lost: bool = False) -> tuple[list[Draft], None]:
    """Ends a lease. ``lost``: its worker cannot go on; the effect is that of an expired lease."""
    chain, held, path = find_lease(state, now, token, name)
    return [Draft(Kind.ABANDONED if lost else Kind.GIVEN_BACK, chain.number, path.number, by=held.number)], None


class _After:
    """The state as it is after some drafts, as far as a choice needs it."""

    def __init__(self, state: State, now: int, drafts: list[Draft] | None = None) -> None:
        self.state = state
        self.now = now
        self.drafts = expiries(state, now) if drafts is None else drafts
        #: The chains that the drafts change, as they will be.
        self.chains: dict[int, Chain] = {}
        self.ended: set[int] = set()
        self.spent = 0.0
        self.reserved = state.reserved
        self.observations = state.observations

    def chain(self, number: int) -> Chain:
        """The chain as it will be, to be changed."""
        if number not in self.chains:
            self.chains[number] = self.state.chains[number].copied()
        return self.chains[number]

    def end(self, token: int) -> None:
        """A lease has ended, and its path."""
        held = self.state.leases[token]
        chain = self.chain(held.chain)
        self.ended.add(token)
        self.reserved -= held.steps * chain.cost
        chain.leases -= 1
        chain.pending -= held.steps
        chain.barren += chain.walks[held.path].steps <= 1
        if chain.barren >= MOST_BARREN and chain.aside is None:
            chain.aside = "its last paths brought no transition"

    def tell(self, token: int, position: int) -> None:
        """A lease has told its next observation."""
        held = self.state.leases[token]
        chain = self.chain(held.chain)
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


def _granted(
    after: _After, worker: Walker, lasts: int, steps: int, at_once: bool, name: str | None, without: Set[str],
    continuing: bool | Set[str], key: str | None, told: Told | None,
) -> tuple[list[Draft], Granted]:  # fmt: skip
    """A lease after other drafts. ``told``: what they tell."""
    state, drafts = after.state, after.drafts
    chain, affordable = _choose(after, worker, steps, name, without)
    stays = continuing if isinstance(continuing, bool) else chain.name in continuing
    path, last, path_steps = _path(state, chain, worker, stays)
    if told is not None and told.chain == chain.number:
        position = next(draft.value for draft in drafts if draft.kind is Kind.TOLD)
        path, last, path_steps = told.path, position, told.steps
    if not worker.number:
        drafts = [*drafts, worker.draft()]
    number = worker.number or state.head.number + len(drafts)
    options = {"steps": affordable} if affordable > 1 else {}
    more = packed(**options, **({"at_once": True} if at_once else {}), **({"key": key} if key else {}))
    drafts = [*drafts, Draft(Kind.LEASE, chain.number, path, lasts, number, "" if more == "{}" else more)]
    token = state.head.number + len(drafts)
    return drafts, Granted(token, number, chain.number, path, path_steps, last, affordable, lasts)


def _choose(after: _After, worker: Walker, steps: int, name: str | None, without: Set[str]) -> tuple[Chain, int]:
    """The chain for a worker, and how many of its steps the budget pays for.

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
    best = chain = _preferred(after, order, worker, left, excluded)
    while chain is not None and chain.number in own:  # a worker has one process a chain
        excluded |= {chain.number}
        chain = _preferred(after, order, worker, left, excluded)
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


def _preferred(after: _After, order: Order, worker: Walker, left: float, without: Set[int]) -> Chain | None:
    if worker.alone or after.state.shared:
        return order.first(after.observations, without, after.chains)
    return order.preferred(after.observations, worker.walks, left, without, after.chains)


def _named(after: _After, name: str, own: Set[int], steps: int, left: float) -> tuple[Chain, int]:
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


def _reason(after: _After) -> StudyFinished | None:
    """Why the study has stopped, once the drafts are stored."""
    state = after.state
    why = stop.reason(state, after.now)
    if why is None and budget.unspent(state) - after.spent < state.costs[0]:
        why = StopReason.BUDGET
    return None if why is None else stop.finished(state, why)


def _path(state: State, chain: Chain, worker: Walker, continuing: bool) -> tuple[int, int, int]:
    """The path that the worker goes on with under a lease, or a new one; its last state, and its observations."""
    path: Path | None
    if state.shared:  # the chain's only process is where its last holder gave it back
        path = chain.walks.get(chain.paths)
        if path is not None and (path.ended or path.lease is not None):  # its lease has expired
            path = None
    else:
        path = worker.path(chain, continuing and not worker.walks(chain))
    return (chain.paths + 1, -1, 0) if path is None else (path.number, path.last, path.steps)


def _granted_before(state: State, worker: Walker, key: str) -> Granted:
    """The lease that was granted with this key, if it still holds."""
    token = state.keys[key][0]
    held = state.leases.get(token)
    if held is None:
        raise LeaseLost(f"the lease with the key {key!r} has ended")
    path = state.chains[held.chain].walks[held.path]
    return Granted(token, held.worker, held.chain, held.path, path.steps, path.last, held.steps, held.lasts)


def _order(state: State) -> Order:
    """The order of the chains. Raises ``InputError`` for a state that was folded without the rule."""
    if state.order is None:
        name = state.settings["policy"]["name"]
        raise InputError(
            f"the study uses the policy {name!r}, which is not built in: only a Python program that gives this policy"
            " to Study.open can go on with it"
        )
    return state.order
