"""The checks of what the bounds of a study assume: is each chain a Markov chain that does not change? (MATH §13)

The checks of all chains together read the draws in the order of issue, up to the first one that is pending. What they
need to continue is in the memory of who makes them, and follows from the journal in one pass. Only results are stored.

A slot without a value is skipped only if that cannot depend on its value or on later ones (MATH §15, rule 5): it was
lost, or left by its program, when no later slot of its chain had a value or was under way; or nobody makes its step
now, and nothing of its chain comes after it. E-values of other chains do not contain it.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..diagnostics import Diagnosis
from ..diagnostics.standing import (
    AGES,
    CHECKS,
    ChainStanding,
    Fed,
    Labelled,
    Standing,
    Wholes,
    checks_of,
    given_up,
    left_out,
    pending,
    skipped,
    unread,
    why_waiting,
)
from ..journal.entry import Entry, Head
from ..paths import Paths
from .aim import FEW
from .chain import Chain
from .draws import START, UNKNOWN, Card, Hole, Status
from .state import State
from .walks import walked_paths

__all__ = ["Checks", "Results", "is_due", "is_skipped", "judged_paths", "stored_diagnosis"]

#: Draws are judged when so many have been read, so that a long journal needs little memory.
_MANY = 200_000


def is_due(state: State) -> bool:
    """Whether somebody should make the checks now: a study that may stop needs them, and a small one that has ended."""
    chains = len(state.chains)
    if state.observations >= state.check_due or state.aim.is_unverified(chains):
        return True
    return state.over and chains <= FEW and state.checked_at != state.observations


def is_skipped(state: State, chain: Chain, hole: Hole) -> bool:
    """Whether the checks go past this slot, which has no value."""
    if hole.status is not Status.PENDING:
        return hole.is_early or hole.status is not Status.LOST
    if hole.is_early:
        return True
    rests = chain.done or chain.aside is not None
    path = chain.walks.get(hole.path)
    return rests and path is not None and path.is_plain and chain.draws.is_last(hole)


def judged_paths(state: State, chain: Chain) -> Paths:
    """Every draw of the chain that checks read, in the order of issue. The state must record draws."""
    waiting = [
        Card(hole.number, hole.path, 0, hole.source, UNKNOWN, 0, 0, hole.status, hole.is_early)
        for hole in chain.draws.holes
        if hole.is_slot
        and (not is_skipped(state, chain, hole) or (hole.status is Status.LOST and hole.source != UNKNOWN))
    ]
    paths = walked_paths(state, chain, waiting)
    return paths.by_one_worker() if state.shared else paths  # nobody says who made which draw


class _Chain:
    """The checks of one chain, as far as they are."""

    def __init__(self, size: int | None) -> None:
        self.standing = ChainStanding(size)
        #: Path → the position of its worker's name, and the number and the source of its last draw that was judged.
        self.walks: dict[int, tuple[int, int, int]] = {}
        self.workers: dict[str, int] = {}
        #: The place of the last draw that was judged.
        self.last = 0, 0

    def feed(self, state: State, cards: list[Card]) -> tuple[ChainStanding, Wholes, list[Fed]]:
        """Judges the next draws, in order. Returns the numbers of those that were judged, and the results."""
        rows: list[tuple[int, ...]] = []
        for card in cards:
            if card.source == START:
                name = "" if state.shared else state.walkers[card.walker].name  # nobody says who made which draw
                worker = self.workers.setdefault(name, len(self.workers))
                self.walks[card.path] = worker, card.step, -1
                continue
            if (card.number, card.step) <= self.last:
                continue  # its slot was skipped, and later ones were judged: its value comes too late
            self.last = card.number, card.step
            worker, step, before = self.walks[card.path]
            before = before if step == card.step - 1 else -1
            rows.append((card.number, card.source, card.target, before, worker, card.path, card.step - 1))
            self.walks[card.path] = worker, card.step, card.source
        columns = np.ascontiguousarray(np.array(rows, np.int64).reshape(-1, 7).T)
        ages = np.searchsorted(np.array(AGES), columns[6])
        labelled = Labelled(columns[1], columns[2], columns[3], columns[4], columns[5], ages)
        return self.standing, columns[0], self.standing.feed(labelled)


class Results(NamedTuple):
    """What the checks say of this moment."""

    diagnosis: Diagnosis
    #: How many observations were read.
    observations: int
    #: As an entry stores it: numbers, and which chains are blamed. And chain → why no bound of it holds.
    stored: dict[str, Any]
    doubts: dict[str, tuple[str, str]]


class Checks:
    """The checks of a study, as far as one process has made them. Any thread may call it.

    ``pages``: gives the entries after a head, some thousands at a time.
    """

    def __init__(self, pages: Callable[[Head], Iterable[list[Entry]]]) -> None:
        self._pages = pages
        self._lock = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        self._state = State(recording=True)
        self._chains: list[_Chain] = []
        self._standing: Standing | None = None
        #: Every draw with a smaller number was judged, or skipped.
        self._end = 0

    def now(self) -> Results:
        """Judges what has come since the last call."""
        with self._lock:
            try:
                waiting = 0
                for page in self._pages(self._state.head):
                    self._state.apply(page)
                    waiting += len(page)
                    if waiting > _MANY:
                        self._judge()
                        waiting = 0
                return self._results(self._judge())
            except BaseException:
                self._begin()  # it may have stopped half-way
                raise

    def _judge(self) -> tuple[Standing, Hole | None]:
        """Judges the draws up to the first slot that cannot be skipped. Returns that slot."""
        state = self._state
        if self._standing is None:
            self._standing = Standing(len(state.chains))
            self._chains = [_Chain(None if chain.is_open else chain.size) for chain in state.chains]
        firsts = (
            next((hole for hole in chain.draws.holes if not is_skipped(state, chain, hole)), None)
            for chain in state.chains
        )
        first = min((hole for hole in firsts if hole is not None), key=lambda hole: hole.number, default=None)
        before, self._end = self._end, max(self._end, state.head.number + 1 if first is None else first.number)
        fed = {}
        for chain, own in zip(state.chains, self._chains, strict=True):
            cards = chain.draws.cards
            if not cards:
                continue
            ready = sorted(card for card in cards if card.number < self._end or card.source == START)
            chain.draws.cards = [card for card in cards if card.number >= self._end and card.source != START]
            standing, numbers, found = own.feed(state, ready)
            if len(numbers):  # the value of a slot that was skipped until now is judged now
                fed[chain.number] = standing, np.maximum(numbers, before), found
            if not chain.draws.cards:
                own.walks = {path: walk for path, walk in own.walks.items() if path in chain.walks}
        self._standing.add(fed, state.delta / len(CHECKS))
        return self._standing, first

    def _results(self, judged: tuple[Standing, Hole | None]) -> Results:
        (standing, first), state = judged, self._state
        name = state.chains[0].name if len(state.chains) == 1 else None
        waiting = _known(state) - standing.judged
        remarks = []
        if waiting and first is not None:
            why = pending(first.number) if first.status is Status.PENDING else given_up(first.number)
            remarks.append(why_waiting(name, waiting, why, together=name is None))
        left = [hole.number for chain in state.chains for hole in chain.draws.holes if hole.is_early]
        if many := sum(number < self._end for number in left):
            remarks.append(skipped(many))
        level = state.delta / len(CHECKS)
        names = [chain.name for chain in state.chains]
        blamed = {} if name is not None else standing.blamed(names, level)
        stored = {
            "results": standing.numbers(),
            "waiting": waiting,
            "remarks": remarks,
            "blamed": [
                [CHECKS.index(key), [state.names[one].number for one in found]] for key, found in blamed.items()
            ],
        }
        diagnosis = _diagnosis(state, stored)
        doubts = {each: diagnosis.doubt(each) for each in (names if diagnosis.against else ())}
        found = {each: (doubt.code, doubt.sentence) for each, doubt in doubts.items() if doubt is not None}
        return Results(diagnosis, state.observations, stored, found)


def stored_diagnosis(state: State) -> Diagnosis | None:
    """The last stored result of the checks of all chains together; None if there is none."""
    return None if state.checked is None else _diagnosis(state, state.checked)


def _known(state: State) -> int:
    """How many transitions were told."""
    return sum(chain.transitions - chain.prior for chain in state.chains)


def _diagnosis(state: State, stored: Mapping[str, Any]) -> Diagnosis:
    """The diagnosis that stored numbers stand for, in words."""
    name = state.chains[0].name if len(state.chains) == 1 else None
    checks = checks_of(stored["results"], name, state.delta / len(CHECKS))
    waiting = max(0, _known(state) - max((check.cards for check in checks), default=0))
    newer = [unread(waiting)] if waiting > stored["waiting"] else []
    remarks = (*newer, *stored["remarks"][bool(newer and stored["waiting"]) :], *left_out(checks))
    blamed = {CHECKS[place]: tuple(state.chains[one].name for one in found) for place, found in stored["blamed"]}
    return Diagnosis(tuple(checks), state.delta, len(CHECKS), blamed, waiting, remarks, (), ())
