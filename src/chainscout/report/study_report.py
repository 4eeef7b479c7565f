"""A study as plain data: the only source of the numbers that pages, files and the command line show of it."""

import math
from typing import TYPE_CHECKING, Any

from ..checks import one_of, whole_number
from ..errors import InputError
from ..study.certifying import StudyCertificate
from .cells import label
from .histories import Histories
from .shares import Shares
from .views import Chain, Curve, Curves, Happening, Held, Line, Overview, Page, State, Window

if TYPE_CHECKING:
    from ..study import ChainLine, EventLine, Progress, Study

#: Chains up to which all certificates are computed at once where the study stores none, for want of a target.
MOST_COMPUTED = 500
#: The most chains on a page, chains drawn over time, and states of a window.
MOST_LINES = 200
MOST_CURVES = 12
MOST_STATES = 60
#: Characters of a name that are looked for.
LONGEST_SEARCH = 200
#: A row is known if its intervals are no wider than this.
WIDE = 0.5

SORTS = ("number", "name", "states", "observations", "certificate", "index")


def finite(value: float | None) -> float | None:
    """The number, or None if it is infinite or no number."""
    return value if value is not None and math.isfinite(value) else None


def _whole(value: Any) -> Any:
    """The number, as a whole one if it is."""
    return int(value) if value is not None and float(value).is_integer() else value


class StudyReport:
    """What a study shows; made once for a study, for it remembers what is dear to find."""

    def __init__(self, study: "Study", title: str, second: "Study | None" = None) -> None:
        """``second``: the same study, opened once more, for work that would keep readers waiting."""
        self._study = study
        self._title = title
        self._shares = Shares(study, second)
        self._histories = Histories(study)

    def overview(self) -> Overview:
        """The study as a whole."""
        study = self._study
        progress, pace = study.progress(), study.pace()
        self._shares.look(progress.observations)
        certificate = self._certificate(progress)
        return Overview(
            title=self._title,
            state="finished" if progress.finished else "running" if progress.observations else "empty",
            stop_reason=progress.stop_reason,
            policy=progress.policy,
            delta=progress.delta,
            chains=progress.chains,
            observations=progress.observations,
            used=_whole(progress.used),
            budget=_whole(progress.budget),
            unit="observations" if progress.used == progress.observations else "cost units",
            target_loss=progress.target_loss,
            deadline=progress.deadline,
            certificate=finite(certificate),
            variability=finite(self._shares.variability),
            rate=pace.rate,
            seconds_left=None if progress.finished else _seconds_left(progress, certificate, pace.rate, pace.now),
            leases=progress.leases,
            lost=progress.lost,
            aside=progress.aside,
            events=progress.events,
            now=pace.now,
            last=pace.last,
            notes=self._notes(progress, certificate),
        )

    def _certificate(self, progress: "Progress") -> float | None:
        """The largest of all; of more chains than can be computed at once, the largest that is stored."""
        if progress.chains > MOST_COMPUTED:
            return progress.certificate
        return max(line.certificate for line in self._study.browse(limit=MOST_COMPUTED)[1])

    def _notes(self, progress: "Progress", certificate: float | None) -> tuple[str, ...]:
        notes = StudyCertificate({}, progress.delta, "mixture", progress.lost).notes
        if certificate == math.inf:
            notes += ("there are chains without a transition, of which nothing is certified yet",)
        if progress.aside:
            notes += (f"{progress.aside:,} chains were set aside, for their segments brought no transition",)
        if progress.certificate is None and progress.chains > MOST_COMPUTED:
            notes += (
                f"without a target the largest certificate of more than {MOST_COMPUTED:,} chains is not computed; each"
                " chain's is, where it is shown",
            )
        return notes

    # -- chains

    def page(
        self, search: str = "", sort: str = "number", descending: bool = False, page: int = 1, size: int = 25
    ) -> Page:
        """Some chains, searched by name and sorted."""
        one_of(sort, "sort", SORTS)
        whole_number(page, "page", meaning="from 1")
        whole_number(size, "size", meaning="chains on a page")
        if size > MOST_LINES or page > 10**9:
            raise InputError(f"a page has at most {MOST_LINES} chains and a number below 10⁹, not {size} and {page}")
        if len(search) > LONGEST_SEARCH:
            raise InputError(f"a search has at most {LONGEST_SEARCH} characters, not {len(search):,}")
        progress = self._study.progress()
        self._shares.look(progress.observations)
        if sort == "certificate" and (progress.target_loss is None or progress.chains <= MOST_COMPUTED):
            total, found = self._by_certificate(progress, search, descending, (page - 1) * size, size)
        else:
            total, found = self._study.browse(search, sort, descending, (page - 1) * size, size)
        lines = tuple(self._line(line, progress.observations) for line in found)
        return Page(total, page, max(1, math.ceil(total / size)), lines)

    def _by_certificate(
        self, progress: "Progress", search: str, descending: bool, offset: int, size: int
    ) -> "tuple[int, list[ChainLine]]":
        if progress.chains > MOST_COMPUTED:
            raise InputError(
                f"more than {MOST_COMPUTED:,} chains are sorted by certificate only in a study with a target, which"
                " stores them"
            )
        total, found = self._study.browse(search, limit=MOST_COMPUTED)
        found.sort(key=lambda line: line.certificate, reverse=descending)
        return total, found[offset : offset + size]

    def _line(self, line: "ChainLine", observations: int) -> Line:
        return Line(
            number=line.number,
            name=line.name,
            label=label(line.name),
            states=line.size,
            open=line.open,
            weight=line.weight,
            cost=line.cost,
            observations=line.observations,
            transitions=line.transitions,
            segments=line.segments,
            share=line.observations / observations if observations else None,
            plug_in=self._shares.plug_in(line),
            aim=self._shares.aim(line),
            certificate=finite(line.certificate),
            index=finite(line.index),
            worker=None if line.worker is None else label(line.worker),
            aside=line.aside,
        )

    def chain(self, number: int, row: int = 0, column: int = 0, size: int = 30) -> Chain:
        """A chain and the window of its matrix that begins at ``row`` and ``column``."""
        whole_number(row, "row", least=0, meaning="the first state whose row is shown")
        whole_number(column, "column", least=0, meaning="the first state whose column is shown")
        if whole_number(size, "size", meaning="states of the window") > MOST_STATES:
            raise InputError(f"a window has at most {MOST_STATES} states, not {size}")
        progress, line = self._study.progress(), self._study.line(number)
        self._shares.look(progress.observations)
        estimate = self._study.estimate(line.name)
        wide = (estimate.upper - estimate.lower).max(axis=1, initial=0.0) > WIDE
        known = ["never" if n == 0 else "rarely" if w else "often" for n, w in zip(estimate.exits, wide, strict=True)]
        labels = [label(state) for state in estimate.states]
        rows, columns = slice(row, row + size), slice(column, column + size)
        states = tuple(
            State(labels[x], int(estimate.exits[x]), finite(float(estimate.stationary[x])), known[x])  # type: ignore[arg-type]
            for x in range(len(labels))[rows]
        )
        parts = (estimate.transitions, estimate.matrix, estimate.lower, estimate.upper)
        tables = [tuple(map(tuple, part[rows, columns].tolist())) for part in parts]
        window = Window(row, column, states, tuple(labels[columns]), *tables)
        return Chain(
            self._line(line, progress.observations), progress.delta, known.count("never"), known.count("rarely"), window
        )

    def number(self, name: str) -> int:
        """The number of the chain of this name."""
        return self._study.number_of(name)

    # -- over time

    def curves(self, numbers: tuple[int, ...] = ()) -> Curves:
        """Chains over time: those of these numbers, or those that are known worst."""
        if len(numbers) > MOST_CURVES:
            raise InputError(f"at most {MOST_CURVES} chains are drawn at once, not {len(numbers)}")
        progress = self._study.progress()
        self._shares.look(progress.observations)
        lines = [self._study.line(number) for number in numbers] if numbers else self._worst(progress)
        return Curves(progress.target_loss, tuple(self._curve(line, progress) for line in lines))

    def _worst(self, progress: "Progress", number: int = 6) -> "list[ChainLine]":
        if progress.chains <= MOST_COMPUTED:
            return self._by_certificate(progress, "", True, 0, number)[1]
        # Before there are certificates the next to be advanced stand for the least known.
        order = "index" if progress.target_loss is None else "certificate"
        return self._study.browse("", order, True, 0, number)[1]

    def _curve(self, line: "ChainLine", progress: "Progress") -> Curve:
        history, complete = self._histories.of(line)
        points = list(zip(history.observations, history.time, history.certificate, history.share, strict=True))
        if complete and points and progress.observations > points[-1][0]:
            share = line.observations / progress.observations
            points.append((progress.observations, history.latest, finite(line.certificate), share))
        observations, moments, certificates, shares = zip(*points, strict=True) if points else ((), (), (), ())
        return Curve(
            line.number,
            label(line.name),
            complete,
            observations,
            moments,
            certificates,
            shares,
            self._shares.plug_in(line),
            self._shares.aim(line),
        )

    # -- what else there is

    def leases(self, limit: int = 100) -> tuple[Held, ...]:
        """Who holds what."""
        now = self._study.pace().now
        return tuple(
            Held(line.number, label(line.name), label(line.worker or ""), (line.expires or now) - now, line.promised)
            for line in self._study.held(limit)
        )

    def events(self, after: int = -100, limit: int = 100) -> tuple[Happening, ...]:
        """What happened after the event ``after``, oldest first; a negative number counts from the end."""
        return tuple(happening(event) for event in self._study.events_after(after, limit))


def happening(event: "EventLine") -> Happening:
    """An event as it is shown."""
    detail = ", ".join(f"{key} {label(value)}" for key, value in event.detail.items() if value is not None)
    chain = None if event.chain is None else label(event.chain)
    return Happening(event.number, event.time, event.kind, chain, detail)


def _seconds_left(progress: "Progress", certificate: float | None, rate: float | None, now: float) -> float | None:
    """Until the first of budget, target and deadline; b falls as 1/T, so that a target is met at T·b/target."""
    found = []
    if progress.deadline is not None:
        found.append(max(0.0, progress.deadline - now))
    if rate and progress.observations:
        if progress.budget is not None:
            found.append((progress.budget - progress.used) / (progress.used / progress.observations) / rate)
        if progress.target_loss and certificate is not None and math.isfinite(certificate):
            found.append(max(0.0, progress.observations * (certificate / progress.target_loss - 1) / rate))
    return min(found, default=None)
