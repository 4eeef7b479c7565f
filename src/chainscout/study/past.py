"""What a study remembers of its past: its last events, the pace, and the lines over time. It is a part of the fold."""

import math
from collections import deque
from typing import TYPE_CHECKING, Any

from ..journal.entry import Entry, Kind
from .aim import FEW, LONG
from .chain import Chain, Path
from .draws import Status
from .questions import Asked
from .views import AnswerLine, EventKind, EventLine, HistoryLine

if TYPE_CHECKING:
    from .state import State

__all__ = ["EVENTS", "Past"]

#: How many of the last events are remembered; older ones follow from the journal again.
EVENTS = 100
#: The pace is measured over so many observations.
_PACED = 1_001
#: The first line of the whole study comes after so many observations.
_LEAST_DRAWN = 10


class Past:
    """The past of a study, as far as it is shown. Nothing in it decides anything."""

    def __init__(self) -> None:
        #: The entry that is folded now.
        self.entry = Entry(0, 0, Kind.CREATED, 0, 0, 0, 0, "", 0)
        #: The last events, and how many there were.
        self.events: deque[EventLine] = deque(maxlen=EVENTS)
        self.happened = 0
        #: When the last observations were told, in milliseconds.
        self.times: deque[int] = deque(maxlen=_PACED)
        #: The bounds of earlier moments by chain, and those of the whole study under None; the answers by question. A
        #: look reads them later, because lines are only ever added; but the last line of the whole study may change.
        self.history: dict[int | None, list[HistoryLine]] = {}
        self.answers: dict[int, list[AnswerLine]] = {}
        #: How many observations the whole study has when its next line is due.
        self.due = 0

    def happen(self, kind: EventKind, chain: Chain | None = None, **detail: Any) -> None:
        """Adds an event."""
        self.happened += 1
        name = None if chain is None else chain.name
        self.events.append(EventLine(self.entry.number, self.entry.time / 1000, kind, name, detail))

    def happen_on(self, state: "State", path: Path, kind: EventKind, chain: Chain, **more: Any) -> None:
        """Adds an event of a path, whose next step was asked for and not told."""
        who = state.walkers[path.owner if path.lease is None else path.lease.worker].name
        issued = 0 if path.slot is None or path.slot.status is Status.VOID else path.slot.number
        place = {"worker": who, "path": path.number, "step": path.steps + 1, "issued": issued}
        self.happen(kind, chain, **place, told=state.observations, **more)

    def draw(self, state: "State", chain: Chain) -> None:
        """Adds the line of a new bound, and one of the whole study if it has grown by 1 %, or is over."""
        few = len(state.chains) <= FEW
        if chain.at_cut[1] >= (1 if few and "loss" in state.aim.targets else LONG):
            bound = math.inf if state.spoilt else chain.weight * chain.bound
            moment = self.entry.number, chain.number, state.observations, self.entry.time / 1000
            line = HistoryLine(*moment, chain.observations, bound, chain.variability)
            self.history.setdefault(chain.number, []).append(line)
        whole = self.history.get(None)
        at_once = whole is not None and whole[-1].observations == state.observations  # several bounds of one moment
        if state.observations >= self.due or (few and (state.over or at_once)):
            self.draw_all(state)

    def draw_all(self, state: "State") -> None:
        """Adds a line of the whole study, instead of another one with as many observations."""
        self.due = state.observations + max(_LEAST_DRAWN, state.observations // 100, len(state.chains))
        bound = math.inf if state.spoilt else max(chain.weight * chain.bound for chain in state.chains)
        moment = self.entry.number, None, state.observations, self.entry.time / 1000
        line = HistoryLine(*moment, state.observations, bound, sum(chain.variability for chain in state.chains))
        lines = self.history.setdefault(None, [])
        if lines and lines[-1].observations == line.observations:
            lines.pop()
        lines.append(line)

    def answer(self, state: "State", asked: Asked) -> None:
        """Adds the line of a new answer."""
        moment = self.entry.number, asked.number, state.observations, self.entry.time / 1000
        line = AnswerLine(*moment, asked.lower, asked.upper, asked.estimate)
        self.answers.setdefault(asked.number, []).append(line)
