"""One chain of a study, in memory: its counts, its paths and their leases, and how far it is from the study's aim."""

import math
from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from ..rows import smoothed_gini
from .draws import START, Draws, Hole
from .questions import Asked

__all__ = ["Chain", "Lease", "Owner", "Path", "Row", "RowCounts"]

#: What most chains and rows have none of. There may be 100,000 of them.
_EMPTY: Any = MappingProxyType({})


class RowCounts(Sequence[float]):
    """N[x,·] as a rule reads it: floats with all zeros, over counts that hold no zeros."""

    __slots__ = ("counts", "size")

    def __init__(self, counts: dict[int, int], size: int) -> None:
        self.counts = counts
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, y):  # type: ignore[no-untyped-def]
        if 0 <= y < self.size:
            return float(self.counts.get(y, 0))
        raise IndexError(y)

    def __iter__(self) -> Iterator[float]:
        return (float(self.counts.get(y, 0)) for y in range(self.size))


class Row:
    """One row N[x,·] of a chain, with everything that was told."""

    __slots__ = ("counts", "discoveries", "exits", "squares", "stale", "terms", "view")

    def __init__(self) -> None:
        self.exits = 0
        self.squares = 0
        #: y → N[x,y], for each y that was seen.
        self.counts: dict[int, int] = {}
        #: The rule's terms, and whether the row has changed since (within a block).
        self.terms: tuple[float, ...] = ()
        self.stale = False
        #: y → (the pair's number in order of discovery, N_x and N[x,y] just after it); chains with open states only.
        self.discoveries: dict[int, tuple[int, int, int]] = _EMPTY
        #: The row as rules see it, once a rule has looked at it.
        self.view: RowCounts | None = None

    def copied(self) -> "Row":
        """A row that a preview may change."""
        other = Row()
        other.exits, other.squares, other.terms, other.stale = self.exits, self.squares, self.terms, self.stale
        other.counts = dict(self.counts)
        return other


class Lease:
    """A worker's right to advance a path for a while."""

    __slots__ = ("at_once", "chain", "expires", "lasts", "number", "path", "steps", "worker")

    def __init__(
        self, number: int, worker: int, chain: int, path: int, expires: int, lasts: int, steps: int, at_once: bool
    ) -> None:
        #: The number of its entry, which is its token.
        self.number = number
        self.worker = worker
        self.chain = chain
        self.path = path
        #: In milliseconds: when it ends, and how long it was granted or renewed for.
        self.expires = expires
        self.lasts = lasts
        #: How many observations it can still tell, and whether they are told in one go.
        self.steps = steps
        self.at_once = at_once


class Path:
    """One unbroken walk of a chain by one walker, as long as somebody may go on with it or fill its slot."""

    __slots__ = (
        "before", "by", "digest", "ended", "follows", "is_plain", "last", "lease", "number", "owner", "slot", "steps",
        "told", "told_slot",
    )  # fmt: skip

    def __init__(self, number: int, owner: int, is_plain: bool, follows: int = 0) -> None:
        self.number = number
        #: The path before it that has a walker of the same name; 0: there is none.
        self.follows = follows
        #: The session or worker that began it; in a study with shared paths, the worker that leased it last.
        self.owner = owner
        #: Whether plain tells walk it.
        self.is_plain = is_plain
        #: How many observations it has, and the positions of the last state and the one before; `START` before.
        self.steps = 0
        self.last = self.before = START
        #: The entry that told its last observation, the session or lease that told it, and the slot of its draw.
        self.told = 0
        self.by = 0
        self.told_slot = 0
        #: Its open slot, if its next step was asked for.
        self.slot: Hole | None = None
        self.lease: Lease | None = None
        self.ended = False
        #: A digest of all its states in order.
        self.digest = 0


class Chain:
    """One chain: its fixed facts, its counts, its paths and draws, and how far it is from what the study is for."""

    __slots__ = (
        "aside", "at_cut", "barren", "bound", "constants", "cost", "discovered", "done", "draws", "due",
        "ended", "enough", "error", "is_open", "labels", "latched", "leases", "look", "looked", "name", "newest",
        "number", "observations", "paths", "pending", "positions", "prefixes", "prior", "questions", "ratio", "rows",
        "shared", "shown", "size", "sums", "target", "transitions", "variability", "walks", "wanted", "wanted_at",
        "warm", "weight",
    )  # fmt: skip

    def __init__(self, number: int, name: str, size: int) -> None:
        self.number = number
        self.name = name
        self.size = size
        #: The states' labels, and label → position; None: the states are numbers. Whether new states may appear.
        self.labels: list[Any] | None = None
        self.positions: dict[Any, int] | None = None
        self.is_open = False
        self.weight = self.cost = 1.0
        #: ω·L is to be at most this; 0: the chain has no target loss.
        self.target = 0.0
        #: Its registered questions; and whether it is one process that workers share.
        self.questions: list[Asked] = []
        self.shared = False
        #: The counts of its warm start, and how many transitions they are.
        self.warm: dict[int, dict[int, int]] = _EMPTY
        self.prior = 0
        #: The rule's constants, the sums of its terms, and the T at which they are renewed (MATH §6, Blocks).
        self.constants: tuple[float, ...] = ()
        self.sums: tuple[float, ...] = ()
        self.look = 0
        #: Everything that was told, the warm start included.
        self.transitions = 0
        self.observations = 0
        self.rows: dict[int, Row] = {}
        #: How many pairs of states were discovered (open states only).
        self.discovered = 0
        #: How many paths have a number; and those that may go on or have an open slot, by number.
        self.paths = 0
        self.walks: dict[int, Path] = {}
        #: Name of a walker → its latest path, but for those that were given back before their first observation.
        self.newest: dict[str, int] = {}
        self.draws = Draws()
        #: (number of states, digest) → the paths that began so, at some lengths.
        self.prefixes: dict[tuple[int, int], list[int]] = _EMPTY
        #: How many leases there are, and how many observations they may still bring.
        self.leases = 0
        self.pending = 0
        #: How many paths in a row ended without a transition; why the chain is set aside; whether its source has ended.
        self.barren = 0
        self.aside: str | None = None
        self.ended = False
        #: The bound on its loss at the last look, infinite before it; the largest error of a probability out of a state
        #: that was left `EXITS` times; and ω·ΣĜ of its estimate then.
        self.bound = self.error = math.inf
        self.variability = 0.0
        #: How far it was from the aim at the last look; the T of the cut that was looked at; and the T at which the
        #: aim is expected to be reached.
        self.ratio = math.inf
        self.looked = 0
        self.enough = math.inf
        #: The cut of the last look, and its T: the same look again changes nothing.
        self.at_cut = (0, 0)
        #: The T at which the next look is due. Then the end of the cut to look at is kept until somebody has looked.
        self.due: float = math.inf
        self.wanted: Hole | None = None
        self.wanted_at = 0
        #: Whether the aim is reached; the cut where it was stays known.
        self.done = False
        self.latched: Hole | None = None
        #: What a look shows of its holes, after what it follows from; nothing else reads it.
        self.shown: tuple[Any, ...] = ()

    @property
    def begun(self) -> int:
        """How many paths have an observation: every other observation is a transition."""
        return self.observations - self.transitions + self.prior

    @property
    def is_taken(self) -> bool:
        """Whether nobody may advance it now: it is set aside, or rests, or its only process is leased."""
        return self.aside is not None or (self.shared and self.leases > 0) or self.rests()

    def rests(self, pending: int | None = None) -> bool:
        """Whether nobody advances it: it is done, or the draws under way bring the look that says so (MATH §16).

        ``pending``: how many draws are under way; None: those of leases.
        """
        if self.done:
            return True
        pending = self.pending if pending is None else pending
        expected = self.transitions + pending
        return (pending > 0 or self.wanted is not None) and self.due <= expected and self.enough <= expected

    def plug_in(self) -> float:
        """ΣĜ of the smoothed estimate (r = αS = 1/3). A row that the chain never left counts as uniform."""
        if self.size < 2:
            return 0.0
        weight = 1 / 3
        known = (
            smoothed_gini(float(r.exits), float(r.squares), weight / self.size, weight) for r in self.rows.values()
        )
        return sum(known) + (self.size - len(self.rows)) * (1 - 1 / self.size)

    def copied(self) -> "Chain":
        """A chain that a preview may change: its rows, paths and draws are still those of the state."""
        other = Chain.__new__(Chain)
        for name in Chain.__slots__:
            setattr(other, name, getattr(self, name))
        return other


class Owner(NamedTuple):
    """Who walks paths, as the journal knows it: a worker, or a program that tells without leases."""

    number: int
    name: str
    is_worker: bool
    #: Whether its processes stood where the study left them when it began.
    continuing: bool
    #: The mark of its program, which says whether that still runs; empty: nobody knows.
    program: str
    #: The random text by which it knows its own entry.
    mark: str
