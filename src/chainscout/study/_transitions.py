"""The effect of a tell: it continues a path and counts a transition, or begins a path. Also the end of a path.

A transition x → y is counted only if the same walk saw x and then y. An observation that is not known to continue a
path begins a new path. That costs one observation, and never falsifies a bound on transitions. A law of starts is
another matter: restarts that depend on what was seen falsify it, so a question must declare that paths start alike.
"""

import heapq
import secrets
import sys
import warnings
from collections.abc import Set
from typing import Any

from ..errors import BarePathsWarning, InputError, OutOfStep
from ..store import ChainRecord, PathRecord, Transaction
from . import _aim
from ._index import LiveIndex
from ._repetition import CHECKPOINTS, digested, keep_beginning
from .views import EventKind

PACKAGE = __name__.partition(".")[0]
#: The walker of the paths of plain tells.
MAIN = "main"
#: A chain is set aside after this many consecutive paths that ended without a transition (MATH §1).
MOST_BARREN = 10


class Walker:
    """One open study, or one worker. It remembers its own path of each chain, and continues no other path.

    ``since``: the caller said that the processes stand where the study left them, when it had this many observations.
    So the latest path of the same name is continued if nobody has walked it since then. None: the caller did not say
    so.
    """

    def __init__(self, name: str, *, warns: bool = True, alone: bool = False) -> None:
        self.name = name
        #: Whether it warns about paths without a transition.
        self.warns = warns
        #: Whether its program has no other worker, so that it takes the very chain that the rule names.
        self.alone = alone
        self.since: int | None = None
        #: The number that is stored with its plain tells, and how many observations the study had when it was opened.
        self.teller = 1 + secrets.randbits(62)
        self.opened = 0
        #: Whether the study is new, so that no caller can have noted a path and step of it before.
        self.is_first = False
        #: Chain number → the number that its next path will have, as this walker was last told.
        self._offered: dict[int, int] = {}
        #: Chain number → the token of its latest lease, until the lease has ended as far as the walker knows.
        self.tokens: dict[int, str] = {}
        #: Chain → the number of its path, and how many observations it had when this walker last told one.
        self._known: dict[str, tuple[int, int]] = {}
        #: The indices of its chains as it last saw them, and a heap of them. Old entries are dropped when they come up.
        self._indices: dict[int, float] = {}
        self._order: list[tuple[float, int]] = []

    def best(self, without: Set[int] = frozenset()) -> int | None:
        """The number of the chain with the largest index among those that it walks, as far as it knows."""
        heap, known = self._order, self._indices
        skipped = []
        while heap:
            key, number = heap[0]
            if known.get(number) == -key:
                if number not in without:
                    break
                skipped.append(heap[0])
            heapq.heappop(heap)
        found = heap[0][1] if heap else None
        for entry in skipped:
            heapq.heappush(heap, entry)
        return found

    def note(self, chain: ChainRecord) -> bool:
        """Notes the index of a chain that it walks. Returns whether the index was known already."""
        knew = self._indices.get(chain.number) == chain.index
        if not knew:
            self._indices[chain.number] = chain.index
            heapq.heappush(self._order, (-chain.index, chain.number))
        return knew

    def walks(self, chain: ChainRecord) -> bool:
        """Whether it has told an observation of the chain."""
        return chain.name in self._known

    def latest(self, chain: str) -> int | None:
        """The number of the path that it walked last, if it has told an observation of the chain."""
        known = self._known.get(chain) if isinstance(chain, str) else None
        return None if known is None else known[0]

    def path(self, transaction: Transaction, chain: ChainRecord) -> PathRecord | None:
        """The path that it continues; None if its next observation begins a new one."""
        known = self._known.get(chain.name)
        if known is not None:
            number, steps = known
            path = transaction.path(chain, number)
            # If the number of steps differs, somebody else has walked the path, or this walker has lost track of it.
            if path is None or path.ended or path.steps != steps:
                return None
        elif self.since is None:
            return None
        else:
            path = transaction.open_path(chain, self.name)
            if path is not None and transaction.study.observations != self.since:
                later = transaction.log(chain, self.since)
                path = None if any(line.path == path.number for line in later) else path
        return None if path is None or path.token is not None else path  # a leased path belongs to its holder

    def remember(self, chain: str, path: PathRecord) -> None:
        """Notes where its path stands. Call it after the transaction is stored."""
        self._known[chain] = path.number, path.steps

    def offer(self, chain: ChainRecord) -> tuple[int, int]:
        """The path number and step at which its next path begins."""
        self._offered[chain.number] = chain.paths + 1
        return chain.paths + 1, 1

    def begins(self, chain: ChainRecord, number: int) -> bool:
        """Whether this walker's own process begins a path of this number.

        If not, the caller names a path that it noted before a crash, and its process may be a different one now.
        """
        return self.is_first or self.since is not None or self._offered.get(chain.number) == number

    def holds(self, transaction: Transaction, chain: ChainRecord) -> bool:
        """Whether it holds a lease of the chain. The caller has ended expired leases."""
        token = self.tokens.get(chain.number)
        return token is not None and any(path.token == token for path in transaction.held())


def main_path(transaction: Transaction, chain: ChainRecord, walker: Walker) -> PathRecord | None:
    """The path that plain calls refer to: the chain's only path, or the one that the walker continues."""
    if not transaction.study.shared:
        return walker.path(transaction, chain)
    path = transaction.path(chain, chain.paths)
    return None if path is None or path.ended else path


def left_path(transaction: Transaction, chain: ChainRecord, walker: Walker) -> PathRecord | None:
    """The path that ends when the process is started again: `main_path`, or the latest path of plain tells."""
    path = main_path(transaction, chain, walker)
    if path is None and not transaction.study.shared:
        path = transaction.open_path(chain, walker.name)
    return None if path is None or path.token is not None else path


def next_place(transaction: Transaction, chain: ChainRecord, walker: Walker) -> tuple[int, int]:
    """The path and the step of a walker's next observation."""
    path = main_path(transaction, chain, walker)
    return walker.offer(chain) if path is None else (path.number, path.steps + 1)


def own_path(
    transaction: Transaction, chain: ChainRecord, walker: Walker, number: int | None = None
) -> tuple[PathRecord, bool]:
    """The path that a plain tell continues, or a new one; and whether the walker continues it from now on.

    ``number``: the path that the caller continues. Unless it is the walker's own path, or begins here, this is a retry,
    which does not say where the process is now.
    """
    own = walker.path(transaction, chain)
    path = own if number is None else transaction.path(chain, number)
    if path is None:
        if number is not None and number != chain.paths + 1:
            what = f"the chain {chain.name!r} has no path {number}"
            raise OutOfStep(f"{what}: its next one has the number {chain.paths + 1}")
        warn_of_bare_paths(transaction, chain, walker)
        return begin(transaction, chain, walker.name), number is None or walker.begins(chain, number)
    if path.ended or path.token is not None:
        raise OutOfStep(f"path {path.number} of the chain {chain.name!r} has ended, or is held by a lease")
    return path, own is path


def warn_of_bare_paths(transaction: Transaction, chain: ChainRecord, walker: Walker) -> None:
    """Warns a program that makes a new walker for every observation: it would never count a transition."""
    before = None if walker.walks(chain) or chain.paths == 0 else transaction.open_path(chain, walker.name)
    if before is None or before.steps != 1 or before.token is not None:
        return
    if walker.name == MAIN:
        line = transaction.observation(before, 1)
        if line is None or line.number > walker.opened:
            return  # the path belongs to another program
        advice = (
            "a study that is opened again begins new paths; if the process stands where the study left it, say so with "
            "Study.open(where, continuing=True)"
        )
    else:
        advice = (
            "every worker object begins new paths; keep one for all leases, or, if the process stands where the latest "
            "path of this worker's name was left, say so with worker.lease(continuing=True)"
        )
    warnings.warn(
        f"two paths of the chain {chain.name!r} in a row have one observation each and brought no transition: {advice}",
        BarePathsWarning,
        stacklevel=_level_of_caller(),
    )


def _level_of_caller() -> int:
    """The stack level of the program's line that called this package, for a warning of the calling function."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == PACKAGE:
        level, frame = level + 1, frame.f_back
    return level


def begin(transaction: Transaction, chain: ChainRecord, walker: str) -> PathRecord:
    """A new path, without an observation. If the chain is one process, the path before it ends."""
    if transaction.study.shared:
        before = transaction.path(chain, chain.paths)
        if before is not None and not before.ended:
            transaction.happened(EventKind.PATH_ENDED.value, chain, **next_draw(transaction, before), lost=False)
            before.ended, before.issued = True, 0
            transaction.save_path(before)
    chain.paths += 1
    return PathRecord(chain.number, chain.paths, walker)


def issue(transaction: Transaction, path: PathRecord) -> None:
    """Gives the next draw of a path its place in the order of issue."""
    transaction.study.issues += 1
    path.issued = transaction.study.issues


def withdraw(transaction: Transaction, chain: ChainRecord) -> None:
    """Takes back the next draw of a chain that rests, so that the checks do not wait for a draw that nobody makes.

    Whether the chain rests follows from its own draws before this one, or from checks that went no further than this
    one; so does whether the draw is made. The worst chain depends on others too: then no later draw may be issued.
    """
    study = transaction.study
    path = transaction.open_path(chain, MAIN)
    if path is None or not path.issued or path.token is not None or path.number < chain.paths or chain.leases:
        return
    if study.worst is None or path.issued == study.issues:
        path.issued = 0
        transaction.save_path(path)


def ask_again(transaction: Transaction, chain: ChainRecord) -> None:
    """Issues the draw of a chain that rested, and is asked for again."""
    path = transaction.open_path(chain, MAIN)
    if path is not None and not path.issued and path.steps and path.token is None and not (chain.done or chain.aside):
        issue(transaction, path)
        transaction.save_path(path)


def next_draw(transaction: Transaction, path: PathRecord) -> dict[str, Any]:
    """Identifies the draw of a path that was issued but not told, and how many observations were told at its end."""
    place = {"worker": path.worker, "path": path.number, "step": path.steps + 1, "issued": path.issued}
    return {**place, "told": transaction.study.observations}


def observe(transaction: Transaction, live: LiveIndex, chain: ChainRecord, path: PathRecord, state: int) -> None:
    """Adds one observation, of the state at this position. The caller has checked everything."""
    study = transaction.study
    if path.last is None:
        study.paths += 1
        study.first_cost += chain.cost
        live.reindex(chain)
    else:
        live.count(transaction, chain, path.last, state)  # an error of the rule comes before any change
        chain.barren = 0
    if path.last is not None and path.token is None and path.number < chain.paths and not study.shared:
        study.side_by_side = True  # another path of the chain was begun since this one, and this one goes on
    # A plain tell can continue a path after its lease has ended. Nobody knows when its draw was issued; 0 says so.
    # The draw of a plain path that was withdrawn is issued here, because nobody has asked for it.
    continued = path.last is not None and path.token is None and path.worker != MAIN
    issued_unknown = path.issued == 0 and continued and not study.shared
    if path.issued == 0 and not issued_unknown:
        issue(transaction, path)
    path.last = state
    path.steps += 1
    path.digest = digested(path.digest, state)
    chain.observations += 1
    transaction.save(chain)
    transaction.save_path(path)
    study.observations += 1
    study.used += chain.cost
    transaction.append(path, path.issued)
    if path.token is None or path.promised:  # the next draw begins now
        issue(transaction, path)
    if path.steps in CHECKPOINTS:  # at the end, because this may write the records
        keep_beginning(transaction, chain, path)


def check_named(chain: ChainRecord, walker: Walker) -> None:
    """Raises ``InputError`` for a step without a path, unless the walker has walked one or nobody has."""
    if chain.paths and not (walker.walks(chain) or walker.is_first or walker.since is not None):
        raise InputError(
            f"steps are numbered within a path, and this study was opened again: name the path of {chain.name!r} too"
        )


def check_observations(chain: ChainRecord, observations: int | None) -> None:
    """Raises ``OutOfStep`` unless the chain has this many observations. None: no check."""
    if observations is not None and chain.observations != observations:
        raise OutOfStep(f"the chain {chain.name!r} was advanced by somebody else")


def is_repeated(
    transaction: Transaction, chain: ChainRecord, path: PathRecord, step: int | None, state: int | None
) -> bool:
    """Whether this observation was told before. Raises ``OutOfStep`` for another state at its step, or for a gap."""
    if step is None or step == path.steps + 1:
        return False
    what = f"path {path.number} of the chain {chain.name!r}"
    if step > path.steps:
        raise OutOfStep(f"the next observation of {what} has the number {path.steps + 1}, not {step}")
    known = path.last if step == path.steps else None
    if step < path.steps:
        line = transaction.observation(path, step)
        known = None if line is None else line.state
    if known is None or known != state:
        raise OutOfStep(f"observation {step} of {what} was told before, with another state")
    return True


def teller_of(transaction: Transaction, path: PathRecord, step: int) -> int:
    """The teller of this observation, which must exist."""
    line = None if step == path.steps else transaction.observation(path, step)
    return path.teller if line is None else line.teller


def check_retry(transaction: Transaction, chain: ChainRecord, path: PathRecord, step: int, walker: Walker) -> None:
    """Raises ``OutOfStep`` if another program told the observation since this one opened the study.

    It is a true retry if this open study told it, or if it was there when the study was opened (after a crash).
    """
    if teller_of(transaction, path, step) != walker.teller:
        line = transaction.observation(path, step)
        if line is None or line.number > walker.opened:
            what = f"observation {step} of path {path.number} of the chain {chain.name!r}"
            raise OutOfStep(f"{what} was told by somebody else meanwhile: nothing was changed")


def end(transaction: Transaction, chain: ChainRecord, path: PathRecord) -> None:
    """Ends a path. A chain whose last paths ended without a transition is set aside."""
    path.ended, path.issued = True, 0
    if path.steps <= 1:  # this includes a path that never gave its first state
        chain.barren += 1
        if chain.barren >= MOST_BARREN:
            set_aside(transaction, chain, f"its last {chain.barren} paths brought no transition")
    transaction.save_path(path)
    transaction.save(chain)


def set_aside(transaction: Transaction, chain: ChainRecord, reason: str, *, ended: bool = False) -> None:
    """Excludes the chain from the choice. ``ended``: its source has given all its states."""
    if not chain.aside:
        _aim.set_aside(transaction.study, chain, True)
        transaction.happened(EventKind.SET_ASIDE.value, chain, reason=reason, ended=ended)
        transaction.save(chain)


def take_up(transaction: Transaction, chain: ChainRecord) -> None:
    """Includes a chain that was set aside in the choice again."""
    if chain.aside:
        _aim.set_aside(transaction.study, chain, False)
        chain.barren = 0
        transaction.happened(EventKind.TAKEN_UP.value, chain)
        transaction.save(chain)
        ask_again(transaction, chain)
