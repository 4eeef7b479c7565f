"""The data of one chain with their order: every draw that was issued, in the order of issue (MATH §11).

**A card** is one draw: the state that a path left, and the state that it went to. **The order of issue** is the order
in which the draws *started*. It does not depend on when their values became known:

- The first draw of a lease starts when the lease is granted.
- A later draw of the same lease starts when the observation before it is told.
- If one process is advanced at a time, a draw starts when the one before it was told.

A slow draw keeps its place before a quick one that started later. In this order, the values of each state's cards are
independent draws from the state's row, whatever rule chose the chains, the restarts and the moment to stop. In the
order in which values *arrive* they are not: if slow values are the bad ones, the bad ones come last.

A card without a known value has its place too. Such a card is pending or lost.
"""

from collections.abc import Hashable, Iterable, Sequence
from itertools import product
from numbers import Integral
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from .counts import Counts
from .errors import InputError
from .validation import shown, unique_labels, whole_number

__all__ = ["HOLE", "LOST", "PENDING", "START", "Paths"]

_IntegerArray = npt.NDArray[np.int64]

#: The source of the card that begins a path.
START = -1
#: The target of a card that was issued but not told yet.
PENDING = -1
#: The target of a card that was issued and will never be told: given back, cancelled, or lost with its worker.
LOST = -2
#: The target of a lost card that may have been drawn, or that somebody gave up when later cards had been issued. Who
#: reads the cards of a row may not skip it (MATH §15).
HOLE = -3


#: The largest number of states that a lifted chain can have.
_MOST_LIFTED = 1_000_000


class Paths:
    """The draws of one chain in the order of issue. It is immutable, and so are its arrays.

    The arrays have one place for each card, in the order of issue. The first card of a path is the draw of its first
    state. States are given by their positions in ``states``.
    """

    __slots__ = (
        "issued", "key", "open_states", "path", "size", "source", "states", "step", "target", "told", "unordered",
        "worker", "workers",
    )  # fmt: skip

    #: How many states there are, and their labels or ``range(size)``.
    size: int
    states: Sequence[Hashable]
    #: Whether the chain may have more states than those seen so far.
    open_states: bool
    #: The number of each card's path, from 0.
    path: _IntegerArray
    #: Each card's number in its path, from 0 for the first state. A lost card and the one drawn in its place share it.
    step: _IntegerArray
    #: The state that each card left; `START` for the card that begins a path.
    source: _IntegerArray
    #: The state that each card went to; `PENDING`, `LOST` or `HOLE` where it is not known.
    target: _IntegerArray
    #: The numbers of issue, which never fall. Numbers may be missing: they belong to other chains' draws, or to draws
    #: that were never made. Draws that were asked for at once have the same number.
    issued: _IntegerArray
    #: When each value became known, on the clock of tells: 1 for the first value that was told, 2 for the second, ….
    #: For a lost card: how many values had been told when it was given up. For a pending card: 0.
    told: _IntegerArray
    #: Who walked each path: a position in ``workers``.
    worker: _IntegerArray
    workers: tuple[str, ...]
    #: A sentence that says why the order of issue is not known; cards are then in the order of tells. None: it is
    #: known.
    unordered: str | None
    #: The identity of the data's source, as text: our own coins (a start that is drawn from a law) depend on it. It is
    #: fixed before the first draw, and differs between sources that are asked the same question.
    key: str

    def __init__(
        self,
        states: int | Sequence[Hashable],
        *,
        path: npt.ArrayLike,
        step: npt.ArrayLike,
        source: npt.ArrayLike,
        target: npt.ArrayLike,
        issued: npt.ArrayLike | None = None,
        told: npt.ArrayLike | None = None,
        worker: npt.ArrayLike | None = None,
        workers: Sequence[str] = ("main",),
        open_states: bool = False,
        unordered: str | None = None,
        key: str = "",
    ) -> None:
        """Cards in the order of issue.

        ``states``: how many there are (numbered from 0), or their labels.
        ``path``, ``step``, ``source``, ``target``: the arrays of the cards, as the attributes say.
        ``issued``: the numbers of issue; None: 1, 2, … ``told``: None: the values were told in the order of issue.
        ``worker``: the position in ``workers`` for each path; None: the first one walked all paths.
        ``open_states``: whether the chain may have other states.
        ``unordered``: why the order of issue is not known.
        ``key``: the identity of the source. Choose it before you see the data.
        """
        if _is_number(states):
            positions: Sequence[Hashable] = range(whole_number(states, "states", meaning="the number of states"))
        else:
            positions = () if open_states and len(states) == 0 else unique_labels(states)  # type: ignore[arg-type]
        given: dict[str, Any] = {"path": path, "step": step, "source": source, "target": target}
        cards = {name: _whole(values, name) for name, values in given.items()}
        given |= {"issued": issued, "told": told, "worker": worker}
        number = len(cards["path"])
        cards["issued"] = np.arange(1, number + 1) if issued is None else _whole(issued, "issued")
        cards["told"] = _in_order(cards["target"]) if told is None else _whole(told, "told")
        lengths = {name: len(values) for name, values in cards.items()}
        if len(set(lengths.values())) > 1:
            raise InputError(f"the arrays of cards must have one place for each card, and have {lengths}")
        size = len(positions)
        _check(cards["source"], START, size - 1, "source", "a state's position, or START")
        _check(cards["target"], HOLE, size - 1, "target", "a state's position, PENDING, LOST or HOLE")
        _check(cards["path"], 0, None, "path", "the path's number from 0")
        _check(cards["step"], 0, None, "step", "the card's number in its path from 0")
        _check(cards["told"], 0, None, "told", "when the value became known")
        if unordered is None and (cards["issued"][1:] < cards["issued"][:-1]).any():
            raise InputError("issued must rise from card to card, because cards are given in the order of issue")
        paths = int(cards["path"].max(initial=-1)) + 1
        walkers = np.zeros(paths, dtype=np.int64) if worker is None else _whole(worker, "worker")
        names = tuple(workers)
        if len(walkers) < paths:
            raise InputError(f"worker must have a place for each of the {paths} paths, and has {len(walkers)}")
        _check(walkers, 0, len(names) - 1, "worker", "a position in workers")
        for name, values in {**cards, "worker": walkers}.items():
            frozen = np.ascontiguousarray(values, dtype=np.int64)
            if frozen.flags.writeable and frozen is given.get(name):  # the caller's own array, which may change
                frozen = frozen.copy()
            frozen.setflags(write=False)
            object.__setattr__(self, name, frozen)
        fixed = {"size": size, "states": positions, "workers": names, "open_states": bool(open_states)}
        for name, value in {**fixed, "unordered": unordered, "key": key}.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"paths do not change: {name} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"paths do not change: {name} cannot be deleted")

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, ({name: getattr(self, name) for name in self.__slots__},)

    @classmethod
    def from_walks(
        cls,
        walks: Iterable[Iterable[Hashable]],
        states: int | Sequence[Hashable] | None = None,
        *,
        workers: Sequence[str] | None = None,
        open_states: bool | None = None,
        key: str = "",
    ) -> Self:
        """Recorded walks, each a list of states, that were made one after the other in the order given.

        ``states``: how many there are, or their labels; None: the labels that occur, in the order of their first
        occurrence. ``workers``: who made each walk. ``open_states``: whether the chain may have other states; None:
        only if ``states`` is None. ``key``: the identity of the source, chosen before the data are seen.

        If several walks were made side by side, their order is not this one, and what is replayed from it is not
        guaranteed. One walk alone is always right.
        """
        if isinstance(walks, str | bytes) or not isinstance(walks, Iterable):
            raise InputError(f"walks must be a list of lists of states, not {shown(walks)}")
        rows, labels = _positions(walks, states)
        lengths = np.array([len(row) for row in rows], dtype=np.int64)
        target = np.concatenate([*rows, np.empty(0, np.int64)])  # a copy, of one walk too
        first = np.cumsum(lengths) - lengths
        source = np.empty_like(target)
        source[1:] = target[:-1]
        source[first[lengths > 0]] = START
        who = np.zeros(len(rows), dtype=np.int64)
        names: tuple[str, ...] = ("main",)
        if workers is not None:
            if len(workers) != len(rows):
                raise InputError(f"workers must name who made each of the {len(rows)} walks, not {shown(workers)}")
            names = tuple(dict.fromkeys(workers))
            place = {name: position for position, name in enumerate(names)}
            who = np.array([place[name] for name in workers], dtype=np.int64)
        path = np.repeat(np.arange(len(rows)), lengths)
        step = np.arange(len(target)) - np.repeat(first, lengths)
        for array in (path, step, source, target):
            array.setflags(write=False)
        return cls(
            labels,
            path=path,
            step=step,
            source=source,
            target=target,
            worker=who,
            workers=names,
            open_states=states is None if open_states is None else open_states,
            key=key,
        )

    # -- what there is

    def __len__(self) -> int:
        """How many cards there are: those that begin a path, pending and lost ones included."""
        return len(self.path)

    @property
    def transitions(self) -> int:
        """How many transitions were seen: cards with a source and a known target."""
        return int(((self.source >= 0) & (self.target >= 0)).sum())

    @property
    def pending(self) -> int:
        """How many cards were issued and not told yet."""
        return int((self.target == PENDING).sum())

    @property
    def lost(self) -> int:
        """How many cards will never be told."""
        return int((self.target <= LOST).sum())

    @property
    def starts(self) -> _IntegerArray:
        """The first state of each path; `PENDING` where it is not known."""
        starts = np.full(len(self.worker), PENDING, dtype=np.int64)
        begun = (self.source == START) & (self.target >= 0)
        starts[self.path[begun]] = self.target[begun]
        return starts

    def counts(self) -> Counts:
        """The transitions without their order."""
        seen = (self.source >= 0) & (self.target >= 0)
        pairs, numbers = np.unique(self.source[seen] * self.size + self.target[seen], return_counts=True)
        rows: dict[int, dict[int, int]] = {}
        for pair, number in zip(pairs.tolist(), numbers.tolist(), strict=True):
            rows.setdefault(pair // self.size, {})[pair % self.size] = number
        return Counts.from_rows(
            rows,
            self.size if isinstance(self.states, range) else self.states,
            observations=int((self.target >= 0).sum()),
            paths=int(((self.source == START) & (self.target >= 0)).sum()),
            last=None,
            open_states=self.open_states,
        )

    def after(self, issued: int) -> "Paths":
        """The cards that were issued after this number of issue, for a question that was asked at that moment."""
        return self._chosen(self.issued > issued)

    def by_one_worker(self) -> "Paths":
        """The same draws, all by one worker. For data that do not say who made which draw."""
        content = {name: getattr(self, name) for name in self.__slots__}
        return _restored({**content, "worker": np.zeros_like(self.worker), "workers": ("main",)})

    def lifted(self, order: int = 2) -> "Paths":
        """The same draws with ``order`` consecutive states as one state, so that a process with memory can be learned.

        A process whose next state depends on its last two states is a Markov chain over pairs. It can be counted,
        certified and diagnosed like any other chain. The states are tuples, the oldest state first. There are all
        tuples or, if states are open, those that were seen. A path begins when it has shown ``order`` states.
        """
        order = whole_number(order, "order", least=2, meaning="how many states make one")
        if not self.open_states and self.size**order > _MOST_LIFTED:
            raise InputError(
                f"{self.size} states make {self.size**order:,} tuples of {order}, and at most {_MOST_LIFTED:,} can be"
                " states"
            )
        seen = self.target >= 0
        width = int(self.step.max(initial=0)) + 1
        keys = self.path[seen] * width + self.step[seen]
        sorting = np.argsort(keys)
        keys, states = keys[sorting], self.target[seen][sorting]

        def shown_at(back: int) -> _IntegerArray:
            """The state of each card's path ``back`` steps before the card; −1 if it is not known."""
            wanted = self.path * width + self.step - back
            at = np.minimum(np.searchsorted(keys, wanted), max(0, len(keys) - 1))
            known = (self.step >= back) & (len(keys) > 0)
            known[known] = keys[at[known]] == wanted[known]
            return np.where(known, states[at] if len(states) else -1, -1)

        # A card's source is the tuple of steps t − order … t − 1. Its target is the tuple of steps t − order + 1 … t.
        window = np.array([shown_at(back) for back in range(order, 0, -1)]).reshape(order, len(self))
        powers = self.size ** np.arange(order - 1, -1, -1)
        source = np.where((window >= 0).all(axis=0), powers @ window, START)
        recent = (window[1:] >= 0).all(axis=0)
        target = np.where(seen, powers @ np.vstack([window[1:], np.where(seen, self.target, 0)[None]]), self.target)
        labels: Sequence[Hashable] = list(product(self.states, repeat=order))
        if self.open_states:
            used = np.unique(np.concatenate([source[recent & (source >= 0)], target[recent & seen]]))
            digits = [(used // power) % self.size for power in powers]
            labels = [tuple(self.states[int(part)] for part in parts) for parts in zip(*digits, strict=True)]
            source = np.where(source >= 0, np.searchsorted(used, source), source)
            target = np.where(seen, np.searchsorted(used, target), target)
        cards = {"source": source, "target": target, "step": self.step - (order - 1)}
        cards |= {name: getattr(self, name) for name in ("path", "issued", "told")}
        content: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        return _restored({**content, "states": labels, **{name: values[recent] for name, values in cards.items()}})

    def _chosen(self, which: npt.NDArray[np.bool_]) -> "Paths":
        """The cards that are chosen."""
        arrays = {name: getattr(self, name)[which] for name in ("path", "step", "source", "target", "issued", "told")}
        others = {name: getattr(self, name) for name in ("worker", "workers", "open_states", "unordered", "key")}
        return Paths(self.size if isinstance(self.states, range) else self.states, **arrays, **others)

    def late_losses(self, *, by_row: bool) -> npt.NDArray[np.bool_]:
        """A mask over the cards: the lost cards that were given up when a later card was known already.

        Such a loss may depend on the later value (someone cancels a draw after looking at another). So the lost card
        must not be skipped: a reader that takes the cards in order must stop there for ever. The other lost cards may
        be skipped if their loss depends neither on their own value nor on later cards that were issued and not known.

        ``by_row``: a later card *of the same source*, for what reads each row's cards in their order; False: any later
        card, for what reads all cards in one order.
        """
        never = np.int64(self.told.max(initial=0) + 1)
        known = np.where(self.target >= 0, self.told, never)
        order = np.argsort(self.source, kind="stable") if by_row else np.arange(len(self))
        # The earliest moment at which a later card was known: a running minimum from the end, restarted in each row.
        groups = self.source[order] - START if by_row else np.zeros(len(self), dtype=np.int64)
        raised = known[order] + groups * (never + 1)
        later = np.minimum.accumulate(raised[::-1])[::-1] - groups * (never + 1)
        earliest = np.empty(len(self), dtype=np.int64)
        earliest[order] = later
        return np.asarray((self.target <= LOST) & (earliest <= self.told))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Paths):
            return NotImplemented
        return all(
            np.array_equal(mine, theirs) if isinstance(mine, np.ndarray) else mine == theirs
            for mine, theirs in ((getattr(self, name), getattr(other, name)) for name in self.__slots__)
        )

    __hash__ = None  # type: ignore[assignment]  # arrays have none

    def __repr__(self) -> str:
        parts = [f"{self.size} states", f"{len(self.worker)} paths", f"{self.transitions} transitions"]
        parts += [f"{self.pending} pending"] * bool(self.pending) + [f"{self.lost} lost"] * bool(self.lost)
        return f"Paths({', '.join(parts)}{', order not known' * (self.unordered is not None)})"


def _restored(content: dict[str, Any]) -> Paths:
    """Paths from a pickle."""
    states = content.pop("states")
    content.pop("size")
    return Paths(len(states) if isinstance(states, range) else states, **content)


def _is_number(states: Any) -> bool:
    return isinstance(states, Integral) and not isinstance(states, bool)


def _whole(values: Any, name: str) -> _IntegerArray:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InputError(f"{name} must be a list of whole numbers, not {shown(values)}")
    return array.astype(np.int64, copy=False)


def _in_order(target: _IntegerArray) -> _IntegerArray:
    """When each value became known if all were told in the order of issue."""
    known = np.cumsum(target >= 0, dtype=np.int64)
    known[target == PENDING] = 0
    return known


def _check(values: _IntegerArray, least: int, most: int | None, name: str, meaning: str) -> None:
    if not values.size:
        return
    low, high = int(values.min()), int(values.max())
    if low < least or (most is not None and high > most):
        value = low if low < least else high
        limits = f"at least {least}" if most is None else f"from {least} to {most}"
        raise InputError(f"{name} ({meaning}) must be whole numbers {limits}, not {value}")


def _positions(
    walks: Iterable[Iterable[Hashable]], states: int | Sequence[Hashable] | None
) -> tuple[list[_IntegerArray], int | Sequence[Hashable]]:
    """The positions of the states of each walk, and the states."""
    if _is_number(states):
        size = whole_number(states, "states", meaning="the number of states")
        return [_numbered(walk, size) for walk in walks], size
    labels: dict[Hashable, int] = {}
    if states is not None:
        labels = {label: position for position, label in enumerate(unique_labels(states))}
    known = Counts(list(labels)) if states is not None else None
    rows = []
    for walk in walks:
        try:
            listed = list(walk.tolist() if isinstance(walk, np.ndarray) else walk)
            if isinstance(walk, str | bytes):
                raise TypeError
            if known is None:
                row = [labels.setdefault(label, len(labels)) for label in listed]
            else:
                row = [labels[label] if label in labels else known.index_of(label) for label in listed]
        except TypeError:
            raise InputError(f"a walk must be a list of states, not {shown(walk)}") from None
        rows.append(np.array(row, dtype=np.int64))
    if not labels:
        raise InputError("walks without a state do not say what the states are: give them with states=")
    return rows, list(labels)


def _numbered(walk: Any, size: int) -> _IntegerArray:
    """A walk over states that are numbered from 0."""
    array = np.asarray(walk if isinstance(walk, np.ndarray) else list(walk) if isinstance(walk, Iterable) else walk)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InputError(f"a walk must be a list of states from 0 to {size - 1}, not {shown(walk)}")
    low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
    if low < 0 or high >= size:
        value = low if low < 0 else high
        raise InputError(f"a state must be a whole number from 0 to {size - 1}, not {value}")
    return array.astype(np.int64, copy=False)
