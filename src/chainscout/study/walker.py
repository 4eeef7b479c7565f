"""A walker in this process: a worker, or a thread or asyncio task that tells without leases.

A path belongs to who walks it. A transition x → y is counted only if the same walk saw x and then y. So a walker goes
on only with paths that it knows to be its own, and with those that the caller says it stands on. What it knows is the
memory of its process. It is no part of the study, because another process cannot know where this one's sources stand.
"""

import secrets
import sys
import warnings

from ..errors import BarePathsWarning
from ..journal.entry import Draft, Kind, packed
from .chain import Chain, Path
from .draws import Status
from .state import LEARNER, MAIN

__all__ = ["Walker"]

#: What helps a program that begins a path for every observation.
_STUDIES = (
    "a study that is opened again begins new paths; if the process stands where the study left it, say so with "
    "Study.open(where, continuing=True)"
)
_WORKERS = (
    "every worker object begins new paths; keep one for all leases, or, if the process stands where the latest path of "
    "this worker's name was left, say so with worker.lease(continuing=True)"
)
_PACKAGE = __name__.partition(".")[0]


class Walker:
    """Who tells or leases. ``name``: of a worker; plain tells have the name 'main'."""

    def __init__(
        self,
        name: str = MAIN,
        *,
        is_worker: bool = False,
        opened: int = 0,
        continuing: bool = False,
        alone: bool = False,
    ) -> None:
        self.name = name
        self.is_worker = is_worker
        #: The number of its entry; 0 before its first tell or lease is stored.
        self.number = 0
        #: The last entry of the study when this process opened it.
        self.opened = opened
        #: Whether the caller says that its processes stand where the study left them.
        self.continuing = continuing
        #: Whether its program has no other worker, so that it takes the very chain that the rule names.
        self.alone = alone
        #: The mark of its program, which says whether that still runs; empty: nobody knows.
        self.program = ""
        #: So that no two walkers write the same entry.
        self.mark = secrets.token_hex(8)
        #: The entries of all walkers of this open study, each with the chains that it told. What one of them told may
        #: be repeated by another.
        self.siblings: dict[int, set[int]] = {}
        #: Whether the study is new, so that no caller can have noted a path and step of it before.
        self.is_first = False
        #: Chain number → the path where the study had left it when this walker began; None: the latest one there is.
        self.stands: dict[int, int] | None = None
        #: Chain number → the number that its next path will have, as this walker was last told.
        self.offered: dict[int, int] = {}
        #: Chain number → the number of its path, and how many observations the path had when this walker last told one.
        self.known: dict[int, tuple[int, int]] = {}

    def walks(self, chain: Chain) -> bool:
        """Whether it has told an observation of the chain."""
        return chain.number in self.known

    def path(self, chain: Chain, continuing: bool | None = None) -> Path | None:
        """The path that it goes on with; None if its next observation begins a new one.

        ``continuing``: whether it stands on the latest path of its name; None: as it was opened.
        """
        known = self.known.get(chain.number)
        if known is not None:
            number, steps = known
            path = chain.walks.get(number)
            # If the number of steps differs, somebody else has walked the path, or this walker has lost track of it.
            if path is None or path.ended or path.steps != steps or path.lease is not None:
                return None
            return path
        continuing = self.continuing if continuing is None else continuing
        path = self.latest(chain) if continuing else None
        if path is not None and not self.is_worker and (path.slot is None or path.slot.status is Status.VOID):
            return None  # its next step has no place in the order: a lease had it, or another path has gone on
        return path

    def goes_on(self, chain: Chain) -> Path | None:
        """The latest path of its name, if it was closed and nobody has asked for a step of the chain since then."""
        path = self.latest(chain)
        return path if path is not None and path.slot is not None and path.slot.status is Status.RELEASED else None

    def latest(self, chain: Chain) -> Path | None:
        """The latest path of its name, if it has not ended and nobody has walked it since this process opened it."""
        stands = self.stands
        number = chain.newest.get(self.name, 0) if stands is None else stands.get(chain.number, 0)
        path = self._open(chain, number)
        if path is None:
            return None
        is_anothers = path.is_plain and not self.is_worker and path.told > self.opened
        return None if is_anothers else path

    def learned(self, chain: Chain) -> Path | None:
        """The latest path that `learn` left."""
        return self._open(chain, chain.newest.get(LEARNER, 0))

    @staticmethod
    def _open(chain: Chain, number: int) -> Path | None:
        path = chain.walks.get(number)
        return None if path is None or path.ended or path.lease is not None else path

    def begins(self, chain: Chain, path: int) -> bool:
        """Whether this walker's own process begins a path of this number.

        If not, the caller names a path that it noted before a crash, and its process may be a different one now.
        """
        return self.is_first or self.continuing or self.offered.get(chain.number) == path

    def warn_of_bare_paths(self, chain: Chain, number: int) -> None:
        """Warns a program that makes a new walker for every observation: it would never count a transition.

        ``number``: the path that this walker has just begun.
        """
        path = chain.walks.get(number)
        before = None if path is None else chain.walks.get(path.follows)
        if before is None or before.ended or before.steps != 1 or before.lease is not None:
            return
        if not self.is_worker and before.told > self.opened:
            return  # the path belongs to another program
        warnings.warn(
            f"two paths of the chain {chain.name!r} in a row have one observation each and brought no transition: "
            f"{_WORKERS if self.is_worker else _STUDIES}",
            BarePathsWarning,
            stacklevel=_level_of_caller(),
        )

    def draft(self) -> Draft:
        """The entry with which it begins."""
        more = {"id": self.mark} | ({"name": self.name} if self.is_worker else {})
        more |= {"program": self.program} if self.program else {}
        kind, continuing = (Kind.WORKER, 0) if self.is_worker else (Kind.SESSION, int(self.continuing))
        return Draft(kind, value=continuing, more=packed(**more))

    def remember(self, number: int, chain: int, path: int, steps: int) -> None:
        """Notes what was stored: its own number, and where its path of a chain stands."""
        self.number = number
        self.siblings.setdefault(number, set()).add(chain)
        self.known[chain] = path, steps


def _level_of_caller() -> int:
    """The stack level of the program's line that called this package, for a warning of the calling function."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == _PACKAGE:
        level, frame = level + 1, frame.f_back
    return level
