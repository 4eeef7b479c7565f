"""Observations: telling them, taking one back, and the end of a path."""

from collections.abc import Callable, Hashable, Iterable
from itertools import takewhile
from typing import Any, NamedTuple

from ...errors import Held, InputError, LeaseLost, OutOfStep
from ...journal.entry import Draft, End, Entry, Kind, packed
from ...validation import shown
from .. import budget, labels, stop
from ..chain import Chain, Lease, Path
from ..draws import START, Status
from ..state import State
from ..walker import Walker

__all__ = [
    "Following", "Recall", "Told", "check_not_held", "checked_pairs", "correct", "end_path", "expire", "expiries",
    "find_lease", "is_repeated", "nothing_recalled", "own_number", "registered", "tell", "tell_leased", "tell_many",
    "tell_walk",
]  # fmt: skip

#: Finds an old tell in the journal: ``recall(chain, path, step)``. None: there is none.
Recall = Callable[..., Entry | None]


class Told(NamedTuple):
    """What was told, once the drafts are stored."""

    #: The number of the walker's own entry.
    walker: int
    chain: int
    path: int
    #: How many observations the path has then.
    steps: int
    #: Whether the walker goes on with this path.
    own: bool
    #: Whether it had been told before, so that nothing is stored.
    repeated: bool = False
    #: Whether the lease had ended: the value closes its hole, and the path stays ended.
    late: bool = False


class Following(NamedTuple):
    """What follows the end of a path."""

    #: The number of the walker's own entry; 0 if it has none.
    walker: int
    #: The number of the next path; with a lease it is the lease's.
    path: int
    #: The lease's new token; 0 without a lease.
    token: int = 0


def nothing_recalled(*asked: int | str) -> Entry | None:
    """The journal of a caller that cannot read back."""
    return None


# -- plain tells


def tell(
    state: State, now: int, walker: Walker, name: str, given: Hashable, *, path: int | None = None,
    step: int | None = None, begin: bool = False, ends: bool = False, key: str | None = None,
    recall: Recall = nothing_recalled,
) -> tuple[list[Draft], Told]:  # fmt: skip
    """One observation without a lease.

    ``path``, ``step``: where it belongs, so that a retry is safe. ``begin``: it begins a new path.
    ``ends``: the path ends with it, because the process itself has ended. ``key``: the caller's name for this tell.
    """
    chain = labels.find(state, name)
    position = labels.position(chain, given)
    if (found := _with_key(state, walker.number, chain, position, key)) is not None:
        return [], found
    _check_plain(state, chain)
    before = walker.path(chain)
    known = before if path is None else chain.walks.get(path)
    if step is not None and not begin:
        number = known.number if known is not None else path
        own = own_number(state, walker)
        if number is not None and is_repeated(chain, number, step, position, recall, walker=walker, own=own):
            return [], Told(own, chain.number, number, _steps(known, step), own=False, repeated=True)
        if number is None and chain.paths and not (walker.walks(chain) or walker.is_first or walker.continuing):
            what = "steps are numbered within a path, and this study was opened again"
            raise InputError(f"{what}: name the path of {name!r} too")
        if number is None and step != 1:
            raise OutOfStep(f"the next path of the chain {name!r} begins with observation 1, not {step}")
    stop.check_telling(state)
    drafts = expiries(state, now) if state.leases else []
    budget.check_price(state, now, chain.cost, "the observation")
    number, drafts = registered(state, walker, drafts)
    if begin:
        before = walker.path(chain) or walker.latest(chain)
        if before is not None:
            drafts.append(Draft(Kind.PATH_ENDED, chain.number, before.number, End.UNKNOWN, number))
        known = None
    else:
        _check_goes_on(chain, path, known)
    drafts, position = _placed(drafts, chain, given, position)
    number_of_path, steps = (chain.paths + 1, 0) if known is None else (known.number, known.steps)
    own = path is None or (walker.begins(chain, number_of_path) if known is None else known is before)
    if known is not None and before is known and known.by != number:
        drafts.append(Draft(Kind.CONTINUED, chain.number, known.number, by=number))
    drafts.append(Draft(Kind.TOLD, chain.number, number_of_path, position, number, _key(key)))
    if ends:
        drafts.append(Draft(Kind.PATH_ENDED, chain.number, number_of_path, End.TERMINATED, number))
    return drafts, Told(number, chain.number, number_of_path, steps + 1, own)


def _check_goes_on(chain: Chain, number: int | None, path: Path | None) -> None:
    """Raises ``OutOfStep`` if a plain tell can neither go on with the path of this number, nor begin it."""
    what = f"path {number if path is None else path.number} of the chain {chain.name!r}"
    if path is None:
        if number is not None and number <= chain.paths:
            raise OutOfStep(f"{what} has ended")
        if number is not None and number > chain.paths + 1:
            last = f"its next one has the number {chain.paths + 1}"
            raise OutOfStep(f"the chain {chain.name!r} has no path {number}: {last}")
    elif path.ended or path.lease is not None or not path.is_plain:
        raise OutOfStep(f"{what} has ended, is held by a lease, or belongs to a worker")
    elif path.slot is None or path.slot.status is Status.VOID:
        raise OutOfStep(
            f"{what} was closed, and another path of the chain went on since then: its next step has no place any more,"
            " so begin a new path"
        )


def checked_pairs(observations: Any) -> list[tuple[str, Hashable]]:
    """A batch as a list of pairs. A text of two letters is not a pair."""
    if not isinstance(observations, Iterable):
        raise InputError(f"observations must be pairs (chain, state), not {shown(observations)}")
    found = []
    for number, thing in enumerate(observations, start=1):
        pair: Any = None if isinstance(thing, str) else thing
        try:
            chain, state = pair
        except (TypeError, ValueError):
            what = f"observation {number} of the batch"
            raise InputError(f"{what} must be a pair (chain, state), not {shown(thing)}: nothing was changed") from None
        found.append((chain, state))
    return found


def tell_many(
    state: State, now: int, walker: Walker, pairs: Iterable[tuple[str, Hashable]]
) -> tuple[list[Draft], list[Told]]:
    """Observations in order, (chain, state) each: all of them, or none. Returns where the path of each chain stands."""
    stop.check_telling(state)
    number, drafts = registered(state, walker, expiries(state, now))
    paths: dict[int, tuple[int, int]] = {}
    new: dict[tuple[int, Hashable], int] = {}
    price = 0.0
    for name, given in pairs:
        chain = labels.find(state, name)
        position = labels.position(chain, given)
        price += chain.cost
        if chain.number not in paths:
            _check_plain(state, chain)
            path = walker.path(chain)
            _check_goes_on(chain, None, path)
            paths[chain.number] = (chain.paths + 1, 0) if path is None else (path.number, path.steps)
            if path is not None and path.by != number:
                drafts.append(Draft(Kind.CONTINUED, chain.number, path.number, by=number))
        if position is None:  # a batch can repeat a new state
            position = new.get((chain.number, given))
            if position is None:
                earlier = sum(other == chain.number for other, _ in new)
                drafts, position = _placed(drafts, chain, given, None, earlier)
                new[chain.number, given] = position
        path_number, steps = paths[chain.number]
        paths[chain.number] = path_number, steps + 1
        drafts.append(Draft(Kind.TOLD, chain.number, path_number, position, number))
    budget.check_price(state, now, price, "the batch")
    return drafts, [Told(number, chain, path, steps, own=True) for chain, (path, steps) in paths.items()]


# -- tells under a lease


def tell_leased(
    state: State, now: int, token: int, name: str, given: Hashable, *, path: int | None = None, step: int | None = None,
    begin: bool = False, ends: bool = False, late: bool = False, observations: int | None = None,
    key: str | None = None, recall: Recall = nothing_recalled,
) -> tuple[list[Draft], Told]:  # fmt: skip
    """One observation under a lease.

    ``path``: None: the lease's. ``begin``: the path ends, and the state begins another one under the lease.
    ``observations``: how many the chain must have. A recording needs this, because it gives each of its states once.
    ``late``: also after the lease has expired or was abandoned. Then the value closes the hole that was left, and the
    path stays ended.
    """
    chain = labels.find(state, name)
    position = labels.position(chain, given)
    lease = state.leases.get(token)
    worker = lease.worker if lease is not None else 0
    if (found := _with_key(state, worker, chain, position, key)) is not None:
        return [], found
    number = path if path is not None else lease.path if lease is not None else 0
    known = chain.walks.get(number)
    if step is not None and is_repeated(chain, number, step, position, recall, token):
        return [], Told(worker, chain.number, number, _steps(known, step), own=True, repeated=True)
    drafts: list[Draft] = []
    is_late = lease is None or lease.expires <= now
    if is_late:
        if not late:
            raise _lease_lost(chain, lease, now)
        if known is None or known.slot is None or known.slot.by != token or known.last == START:
            raise _lease_lost(chain, lease, now)
        if lease is None and not known.ended:  # its worker said that it made no step
            raise _lease_lost(chain, lease, now)
        drafts = expiries(state, now)
        try:
            budget.check_price(state, now, chain.cost, "the observation")
        except Exception:
            raise _lease_lost(chain, lease, now) from None
    elif known is None or known.lease is not lease:
        raise _lease_lost(chain, None, now)
    elif lease is not None and lease.at_once:
        raise OutOfStep(f"the steps of this lease of the chain {name!r} are told together, with tell_walk")
    if observations is not None and chain.observations != observations:
        raise OutOfStep(f"the chain {chain.name!r} was advanced by somebody else")
    steps = known.steps
    if begin:
        drafts, following = _renewed(state, now, chain, known, End.UNKNOWN)
        number, token, steps = following.path, following.token, 0
    drafts, place = _placed(drafts, chain, given, position)
    drafts.append(Draft(Kind.TOLD, chain.number, number, place, token, _key(key)))
    if ends and not is_late:
        drafts.append(Draft(Kind.PATH_ENDED, chain.number, number, End.TERMINATED, token))
    return drafts, Told(worker, chain.number, number, steps + 1, own=not is_late, late=is_late)


def tell_walk(
    state: State, now: int, token: int, name: str, given: Iterable[Hashable], *, path: int
) -> tuple[list[Draft], Told]:
    """The next observations of a lease together; one that is told at once is told so, as a whole."""
    chain, lease, known = find_lease(state, now, token, name)
    wanted = list(given)
    if known.number != path or not 0 < len(wanted) <= lease.steps or (lease.at_once and len(wanted) < lease.steps):
        raise OutOfStep(
            f"the lease of the chain {name!r} is for {lease.steps} observations of path {known.number}, not for "
            f"{len(wanted)} of path {path}"
        )
    drafts: list[Draft] = []
    new: dict[Hashable, int] = {}
    for one in wanted:
        position = labels.position(chain, one)
        if position is None and (position := new.get(one)) is None:
            drafts, position = _placed(drafts, chain, one, None, len(new))
            new[one] = position
        drafts.append(Draft(Kind.TOLD, chain.number, path, position, token))
    return drafts, Told(lease.worker, chain.number, path, known.steps + len(wanted), own=True)


def find_lease(state: State, now: int, token: int, name: str) -> tuple[Chain, Lease, Path]:
    """A lease that holds its path now. Raises ``LeaseLost`` if it has ended."""
    chain, lease = labels.find(state, name), state.leases.get(token)
    if lease is None or lease.chain != chain.number or lease.expires <= now:
        raise _lease_lost(chain, lease, now)
    return chain, lease, chain.walks[lease.path]


def _lease_lost(chain: Chain, lease: Lease | None, now: int) -> LeaseLost:
    if lease is not None and lease.chain == chain.number:
        late = (now - lease.expires) / 1000
        return LeaseLost(f"the lease of the chain {chain.name!r} ran out {late:.3g} seconds ago: nothing was changed")
    return LeaseLost(f"the lease of the chain {chain.name!r} has ended, if there was one: nothing was changed")


# -- ends and corrections


def end_path(
    state: State, now: int, walker: Walker, name: str, end: End, *, token: int | None = None
) -> tuple[list[Draft], Following]:
    """The path ends: the next observation begins another one.

    Without a lease, the path is the walker's own, or else the latest one of plain tells or of `learn`. With a lease,
    the rest of the lease goes over to a new path, under a new token.
    """
    if token is None:
        chain = labels.find(state, name)
        check_not_held(state, now, chain)
        path = walker.path(chain)
        if path is None:
            path = chain.walks.get(chain.paths) if state.shared else walker.latest(chain) or walker.learned(chain)
        drafts = expiries(state, now)
        if path is None or path.ended or path.lease is not None:  # its lease has expired: it ends with that
            drafts += [Draft(Kind.LOST, chain.number, by=walker.number)] if end is End.LOST else []
            return drafts, Following(walker.number, chain.paths + 1)
        number, drafts = registered(state, walker, drafts)
        drafts.append(Draft(Kind.PATH_ENDED, chain.number, path.number, end, number))
        return drafts, Following(number, chain.paths + 1)
    chain, _, path = find_lease(state, now, token, name)
    return _renewed(state, now, chain, path, end)


def _renewed(state: State, now: int, chain: Chain, path: Path, end: End) -> tuple[list[Draft], Following]:
    """The path ends, and the rest of its lease goes over to a new one."""
    lease = path.lease
    assert lease is not None
    left, following = max(1, lease.expires - now), chain.paths + 1
    more = packed(steps=lease.steps, **({"at_once": True} if lease.at_once else {})) if lease.steps > 1 else ""
    drafts = [
        Draft(Kind.PATH_ENDED, chain.number, path.number, end, lease.number),
        Draft(Kind.LEASE, chain.number, following, left, lease.worker, more),
    ]
    return drafts, Following(lease.worker, following, state.head.number + 2)


def correct(
    state: State, now: int, walker: Walker, name: str, *, path: int, step: int, reason: str = ""
) -> tuple[list[Draft], None]:
    """Takes back a path's latest observation: another state was meant. Its slot is a hole, and the path ends."""
    chain = labels.find(state, name)
    known = chain.walks.get(path)
    if known is None or known.ended:
        raise OutOfStep(
            f"path {path} of the chain {name!r} has ended, and only a path's latest observation is corrected"
        )
    if step != known.steps:
        raise OutOfStep(
            f"the latest observation of path {path} of the chain {name!r} has the number {known.steps}, not {step}"
        )
    right = known.lease.number if known.lease is not None else walker.number
    more = packed(reason=reason) if reason else ""
    return [Draft(Kind.CORRECTED, chain.number, path, step, right, more)], None


# -- what several commands need


def expiries(state: State, now: int) -> list[Draft]:
    """The entries that end the leases whose time is over."""
    found = [state.leases[number] for number in budget.expired(state, now)]
    return [Draft(Kind.EXPIRED, lease.chain, lease.path, by=lease.number) for lease in found]


def expire(state: State, now: int) -> tuple[list[Draft], None]:
    """Ends the leases whose time is over, because a command that fails for them ends none."""
    return expiries(state, now), None


def registered(state: State, walker: Walker, drafts: list[Draft]) -> tuple[int, list[Draft]]:
    """The number of the walker, and the drafts with the entry that gives it one."""
    number = own_number(state, walker)
    if number:
        return number, drafts
    drafts = [*drafts, walker.draft()]
    return state.head.number + len(drafts), drafts


def own_number(state: State, walker: Walker) -> int:
    """The number of the walker's own entry; 0 if it has none.

    The walker itself may not know that its first append was stored, because the answer was lost.
    """
    if walker.number:
        return walker.number
    later = takewhile(lambda number: number > walker.opened, reversed(state.walkers))
    return next((number for number in later if state.walkers[number].mark == walker.mark), 0)


def _placed(
    drafts: list[Draft], chain: Chain, given: Hashable, position: int | None, earlier: int = 0
) -> tuple[list[Draft], int]:
    """A state's position, and the drafts with the entry of a state that an open chain has not seen before."""
    if position is not None:
        return drafts, position
    place = chain.size + earlier
    return [*drafts, Draft(Kind.LABEL, chain.number, value=place, more=packed(label=given))], place


def _key(key: str | None) -> str:
    return "" if key is None else packed(key=key)


def _steps(path: Path | None, step: int) -> int:
    return step if path is None else path.steps


def _with_key(state: State, walker: int, chain: Chain, position: int | None, key: str | None) -> Told | None:
    """The tell that has this key already, if there is one. ``walker``: the number of its own entry."""
    found = None if key is None else state.keys.get(key)
    if found is None:
        return None
    what = f"the key {key!r} was given before, to an observation of {state.chains[found.chain].name!r}"
    if found.chain != chain.number:
        raise OutOfStep(what)
    if found.state != position:
        raise OutOfStep(f"{what} with another state")
    return Told(walker, found.chain, found.path, found.step, own=False, repeated=True)


def is_repeated(
    chain: Chain, number: int, step: int, position: int | None, recall: Recall, token: int | None = None,
    walker: Walker | None = None, own: int = 0,
) -> bool:  # fmt: skip
    """Whether this observation was told before. Raises ``OutOfStep`` for another state at its step, or for a gap.

    ``token``: of the lease that tells it. Raises ``LeaseLost`` if it was told under another one.
    ``walker``, ``own``: who tells it without a lease, and the number of its entry. Raises ``OutOfStep`` if another
    program has told it since this one opened the study: then it is an observation of another process.
    """
    path = chain.walks.get(number)
    steps = 0 if path is None else path.steps
    what = f"path {number} of the chain {chain.name!r}"
    if step == steps + 1 and (path is not None or number > chain.paths):
        return False
    if step > steps and (path is not None or number == chain.paths + 1):
        raise OutOfStep(f"the next observation of {what} has the number {steps + 1}, not {step}")
    if path is not None and step == steps:
        known, by, told = path.last, path.by, path.told
    elif (entry := recall(chain.number, number, step)) is not None:
        known, by, told = entry.value, entry.by, entry.number
    elif token is not None:
        return False  # nobody told it: whether the lease may is another question
    else:
        raise OutOfStep(f"{what} has no observation {step}")
    if known != position:
        raise OutOfStep(f"observation {step} of {what} was told before, with another state")
    if token is not None and by != token:
        raise LeaseLost(f"observation {step} of {what} was told before, under another lease: nothing was changed")
    if walker is not None and told > walker.opened and by not in walker.siblings and by != own:
        raise OutOfStep(f"observation {step} of {what} was told by somebody else meanwhile: nothing was changed")
    return True


def _check_plain(state: State, chain: Chain) -> None:
    """Raises ``Held`` if the chain is one shared process: a plain tell cannot know that nobody else moved it."""
    if state.shared:
        raise Held(
            f"the chain {chain.name!r} is one process that workers share (paths='shared'), and only the holder of a "
            "lease can say where it is: take one with worker.lease() or 'ask --lease WORKER', and tell under it"
        )


def check_not_held(state: State, now: int, chain: Chain) -> None:
    """Raises ``Held`` if the chain is one process and a worker holds it."""
    if state.shared:
        for lease in state.leases.values():
            if lease.chain == chain.number and lease.expires > now:
                name = state.walkers[lease.worker].name
                raise Held(f"the chain {chain.name!r} is held by {name!r}: only its lease can advance it")
