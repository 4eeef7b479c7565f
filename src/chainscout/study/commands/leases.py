"""Leases: a worker's right to advance a path of a chain for a while."""

from collections.abc import Callable, Hashable, Set
from typing import NamedTuple

from ...errors import LeaseLost
from ...journal.entry import Draft, End, Kind, packed
from ..chain import Chain, Path
from ..draws import Status
from ..state import State
from ..walker import Walker
from .choices import After, chosen
from .tells import Recall, Told, find_lease, nothing_recalled, tell_leased

__all__ = ["Granted", "give_back", "give_back_all", "give_up_gone", "lease", "renew", "tell_and_lease"]


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
) -> tuple[list[Draft], Granted]:  # fmt: skip
    """A lease of the best chain, or of the named one. Raises an error that says why there is none.

    ``lasts``: milliseconds. ``at_once``: the steps are made before any of them is told, so their slots begin now.
    ``continuing``: the worker's process stands where the latest path of its name was left; or the chains for which that
    is true.
    """
    return _granted(After(state, now), worker, lasts, steps, at_once, chain, without, continuing, None)


def tell_and_lease(
    state: State, now: int, worker: Walker, token: int, name: str, given: Hashable, lasts: int, *, path: int, step: int,
    continuing: bool | Set[str] = False, observations: int | None = None, recall: Recall = nothing_recalled,
) -> tuple[list[Draft], tuple[Told, Granted | Exception]]:  # fmt: skip
    """Tells one observation, and takes the worker's next lease in the same append: the lease is chosen after the tell.

    If there is no lease, its place has the error that says why, and the observation is told all the same.
    """
    drafts, told = tell_leased(
        state, now, token, name, given, path=path, step=step, observations=observations, recall=recall
    )
    if told.repeated or told.late:
        raise LeaseLost(f"the lease of the chain {name!r} has ended: tell the observation by itself")
    after = After(state, now, drafts)
    try:
        found, granted = _granted(after, worker, lasts, 1, False, None, frozenset(), continuing, told)
    except Exception as error:  # a rule may raise any, and no observation is lost by it
        return after.drafts, (told, error)
    return found, (told, granted)


def renew(state: State, now: int, token: int, name: str, lasts: int) -> tuple[list[Draft], None]:
    """The lease lasts for ``lasts`` milliseconds from now on."""
    chain, held, path = find_lease(state, now, token, name)
    return [Draft(Kind.RENEWED, chain.number, path.number, lasts, held.number)], None


def give_up_gone(
    state: State, now: int, is_gone: Callable[[str], bool], repeating: Set[str] = frozenset()
) -> tuple[list[Draft], None]:
    """Ends the leases and the paths of programs that are gone, as they would have if they had not been killed.

    ``is_gone``: whether the program with a mark is known to be gone. ``repeating``: the chains whose sources give the
    same state again, so that no step is lost.
    """
    gone = {walker.number for walker in state.walkers.values() if walker.program and is_gone(walker.program)}
    drafts = []
    for chain in state.chains if gone else ():
        for path in chain.walks.values():
            if path.owner not in gone or path.ended or path.slot is None is path.lease:
                continue
            if path.lease is not None:
                kind = Kind.GIVEN_BACK if chain.name in repeating else Kind.ABANDONED
                drafts.append(Draft(kind, chain.number, path.number, by=path.lease.number))
            elif path.slot is not None and path.slot.status is Status.PENDING:
                end = End.UNKNOWN if chain.name in repeating else End.LOST
                drafts.append(Draft(Kind.PATH_ENDED, chain.number, path.number, end, path.owner))
    return drafts, None


def give_back(state: State, now: int, token: int, name: str, *, lost: bool = False) -> tuple[list[Draft], None]:
    """Ends a lease. ``lost``: its worker cannot go on; the effect is that of an expired lease."""
    chain, held, path = find_lease(state, now, token, name)
    return [Draft(Kind.ABANDONED if lost else Kind.GIVEN_BACK, chain.number, path.number, by=held.number)], None


def give_back_all(state: State, now: int, worker: int) -> tuple[list[Draft], None]:
    """Ends every lease of a worker that made no further step, the latest first. A lease that has run out stays lost."""
    held = [lease for lease in state.leases.values() if lease.worker == worker and lease.expires > now]
    return [Draft(Kind.GIVEN_BACK, one.chain, one.path, by=one.number) for one in reversed(held)], None


def _granted(
    after: After, worker: Walker, lasts: int, steps: int, at_once: bool, name: str | None, without: Set[str],
    continuing: bool | Set[str], told: Told | None,
) -> tuple[list[Draft], Granted]:  # fmt: skip
    """A lease after other drafts. ``told``: what they tell."""
    state, drafts = after.state, after.drafts
    chain, affordable = chosen(after, worker, steps, name, without, bool(continuing))
    stays = continuing if isinstance(continuing, bool) else chain.name in continuing
    path, last, path_steps = _path(state, chain, worker, stays)
    if told is not None and told.chain == chain.number:
        position = next(draft.value for draft in drafts if draft.kind is Kind.TOLD)
        path, last, path_steps = told.path, position, told.steps
    if not worker.number:
        drafts = [*drafts, worker.draft()]
    number = worker.number or state.head.number + len(drafts)
    options = {"steps": affordable} if affordable > 1 else {}
    more = packed(**options, **({"at_once": True} if at_once else {}))
    drafts = [*drafts, Draft(Kind.LEASE, chain.number, path, lasts, number, "" if more == "{}" else more)]
    token = state.head.number + len(drafts)
    return drafts, Granted(token, number, chain.number, path, path_steps, last, affordable, lasts)


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
