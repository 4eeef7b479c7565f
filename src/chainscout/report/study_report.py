"""A study as plain data: the only source of the numbers that pages, files and the command line show of it."""

import math
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..study import Browser, EventKind, StopReason, StudyCertificate
from ..validation import one_of, whole_number
from .bounds import Bounds
from .cells import cell, finite, label, shown_index
from .histories import Histories
from .shares import Shares
from .totals import MOST_PAIRS, Totals
from .views import Chain, Curve, Curves, Happening, Held, Line, Overview, Page, State, Window

if TYPE_CHECKING:
    from ..study import ChainLine, EventLine, Progress, Study

#: Chains up to which all certificates are computed at each moment; of more, those that the study stores count, or, for
#: want of a target, those that are computed beside the readers.
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


def _whole(value: Any) -> Any:
    """The number, as a whole one if it is."""
    return int(value) if value is not None and float(value).is_integer() else value


class StudyReport:
    """What a study shows; made once for a study, for it remembers what is dear to find."""

    def __init__(self, study: "Study", title: str, second: "Study | None" = None) -> None:
        """``second``: the same study, opened once more, for work that would keep readers waiting."""
        self._study = study
        self._title = title
        #: The study a page at a time.
        self.browser = Browser(study)
        other = None if second is None else Browser(second)
        self._shares = Shares(self.browser, other)
        self._bounds = Bounds(self.browser, other)
        self._histories = Histories(self.browser, other)

    def overview(self) -> Overview:
        """The study as a whole."""
        study = self._study
        progress, pace = study.progress(), self.browser.pace()
        self._shares.look(progress.observations)
        certificate = self._certificate(progress)
        return Overview(
            title=self._title,
            state="finished" if progress.finished else "running" if progress.observations else "empty",
            stop_reason=progress.stop_reason,
            stopped=None if progress.stop_reason is None else progress.stop_reason.words,
            policy=label(progress.policy),
            delta=progress.delta,
            chains=progress.chains,
            observations=progress.observations,
            used=_whole(progress.used),
            budget=_whole(progress.budget),
            unit=progress.unit,
            target_loss=progress.target_loss,
            deadline=progress.deadline,
            certificate=finite(certificate),
            certificate_as_of=self._bounds.as_of,
            variability=finite(self._shares.variability),
            rate=pace.rate,
            seconds_left=None if progress.finished else _seconds_left(progress, certificate, pace.rate, pace.now),
            leases=progress.leases,
            paths=progress.paths,
            lost=progress.lost,
            aside=progress.aside,
            events=progress.events,
            now=pace.now,
            last=pace.last,
            notes=self._notes(progress, certificate),
        )

    def _certificate(self, progress: "Progress") -> float | None:
        """The largest of all; None while it is not known."""
        if progress.chains <= MOST_COMPUTED:
            return max(line.certificate for line in self.browser.page(limit=MOST_COMPUTED)[1])
        if progress.certificate is not None:
            return progress.certificate
        self._bounds.look(progress.observations)
        return self._bounds.largest

    def _notes(self, progress: "Progress", certificate: float | None) -> tuple[str, ...]:
        notes = StudyCertificate(
            {}, progress.delta, "mixture", progress.lost, repeated=self._study.repeated_paths()
        ).notes
        notes += self.browser.notes()
        if certificate == math.inf:
            notes += ("there are chains without a transition, of which nothing is certified yet",)
        if progress.aside:
            notes += (
                f"{progress.aside:,} chain{'s were' if progress.aside > 1 else ' was'} set aside: the events say why",
            )
        if progress.certificate is None and progress.chains > MOST_COMPUTED:
            notes += (self._bounds_note(progress),)
        if not self._study.knows_policy:
            notes += (
                f"the policy {label(progress.policy)} is not built in, and its rule is not here: indices are those that"
                " were stored, and what it aims at is not known",
            )
        return notes

    def _bounds_note(self, progress: "Progress") -> str:
        """How far the certificates are that are computed beside the readers."""
        if self._bounds.as_of is None:
            return (
                f"certificates of {progress.chains:,} chains are being computed: {self._bounds.known:,} so far; each"
                " chain's own is of this moment, where it is shown"
            )
        return (
            f"the largest certificate, and the order by certificates, are as of observation {self._bounds.as_of:,} or"
            " later; each chain's own is of this moment"
        )

    @property
    def found(self) -> tuple[int, int | None]:
        """Changes when more is known of the study than was, though nothing was observed: tenths of certificates."""
        return 10 * self._bounds.known // max(1, len(self._bounds.values)), self._bounds.as_of

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
        note = None
        if sort == "certificate" and (progress.target_loss is None or progress.chains <= MOST_COMPUTED):
            total, found = self._by_certificate(progress, search, descending, (page - 1) * size, size)
            note = self._bounds_note(progress) if progress.chains > MOST_COMPUTED else None
        else:
            total, found = self.browser.page(search, sort, descending, (page - 1) * size, size)
        lines = tuple(self._line(line, progress.observations) for line in found)
        return Page(total, page, max(1, math.ceil(total / size)), lines, note)

    def _by_certificate(
        self, progress: "Progress", search: str, descending: bool, offset: int, size: int
    ) -> "tuple[int, list[ChainLine]]":
        """Chains of a study that stores no certificates, or of few chains."""
        if progress.chains <= MOST_COMPUTED:
            total, found = self.browser.page(search, limit=MOST_COMPUTED)
            found.sort(key=lambda line: line.certificate, reverse=descending)
            return total, found[offset : offset + size]
        self._bounds.look(progress.observations)
        numbers = self._bounds.order(self.browser.matching(search) if search else None, descending)
        return len(numbers), [self.browser.line(number) for number in numbers[offset : offset + size].tolist()]

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
            paths=line.paths,
            share=line.observations / observations if observations else None,
            plug_in=self._shares.plug_in(line),
            aim=self._shares.aim(line),
            certificate=finite(line.certificate),
            index=shown_index(line),
            leases=line.leases,
            aside=line.aside,
        )

    def chain(self, number: int, row: int = 0, column: int = 0, size: int = 30) -> Chain:
        """A chain and the window of its matrix that begins at ``row`` and ``column``."""
        whole_number(row, "row", least=0, meaning="the first state whose row is shown")
        whole_number(column, "column", least=0, meaning="the first state whose column is shown")
        if whole_number(size, "size", meaning="states of the window") > MOST_STATES:
            raise InputError(f"a window has at most {MOST_STATES} states, not {size}")
        progress, line = self._study.progress(), self.browser.line(number)
        self._shares.look(progress.observations)
        estimate = self._study.estimate(line.name)
        wide = estimate.widths() > WIDE
        known = ["never" if n == 0 else "rarely" if w else "often" for n, w in zip(estimate.exits, wide, strict=True)]
        rows, columns = range(row, row + size), range(column, column + size)
        stationary = estimate.stationary
        states = tuple(
            State(label(estimate.states[x]), int(estimate.exits[x]), finite(float(stationary[x])), known[x])  # type: ignore[arg-type]
            for x in range(len(known))[row : row + size]
        )
        tables = [tuple(map(tuple, part.tolist())) for part in estimate.window(rows, columns)]
        names = tuple(label(state) for state in estimate.states[column : column + size])
        window = Window(row, column, states, names, *tables)
        return Chain(
            self._line(line, progress.observations), progress.delta, known.count("never"), known.count("rarely"), window
        )

    def number(self, name: str) -> int:
        """The number of the chain of this name."""
        return self.browser.number_of(name)

    # -- over time

    def curves(self, numbers: tuple[int, ...] = ()) -> Curves:
        """Chains over time: those of these numbers, or those that are known worst."""
        if len(numbers) > MOST_CURVES:
            raise InputError(f"at most {MOST_CURVES} chains are drawn at once, not {len(numbers)}")
        progress = self._study.progress()
        self._shares.look(progress.observations)
        totals, complete = self._histories.totals(progress)
        lines = [self.browser.line(number) for number in numbers] if numbers else self._worst(progress)
        note = None
        if not totals.possible:
            note = (
                "plug-in η is shown as it is now: over time it needs the counts of all chains, which have more than"
                f" {MOST_PAIRS:,} entries"
            )
        curves = tuple(self._curve(line, progress, totals, complete) for line in lines)
        return Curves(progress.target_loss, curves, note)

    def _worst(self, progress: "Progress", number: int = 6) -> "list[ChainLine]":
        if progress.chains <= MOST_COMPUTED or (progress.target_loss is None and self._bounds.as_of is not None):
            return self._by_certificate(progress, "", True, 0, number)[1]
        # Before there are certificates the next to be advanced stand for the least known.
        order = "index" if progress.target_loss is None else "certificate"
        return self.browser.page("", order, True, 0, number)[1]

    def _curve(self, line: "ChainLine", progress: "Progress", totals: Totals, complete: bool) -> Curve:
        history, read = self._histories.of(line, progress)
        points = []
        for place, number in enumerate(history.observations):
            whole = totals.variability.get(number)
            points.append(
                (
                    number,
                    history.time[place],
                    history.certificate[place],
                    history.share[place],
                    history.variability[place] / whole if whole else None,
                    totals.aims[number][line.number] if number in totals.aims else None,
                )
            )
        now = progress.observations
        if read and now:
            whole = totals.variability_at(now) if totals.possible else self._shares.variability
            plug_in = line.variability / whole if whole else None
            if points and points[-1][0] == now:
                points.pop()
            share = line.observations / now
            points.append((now, history.latest, finite(line.certificate), share, plug_in, self._shares.aim(line)))
        columns = zip(*points, strict=True) if points else ((),) * 6
        return Curve(line.number, label(line.name), complete and read, *columns)

    # -- what else there is

    def leases(self, limit: int = 100) -> tuple[Held, ...]:
        """Who holds what."""
        now = self.browser.pace().now
        return tuple(
            Held(line.number, label(line.chain), line.path, label(line.worker), line.expires - now, line.promised)
            for line in self.browser.leases(limit)
        )

    def events(self, after: int = -100, limit: int = 100) -> tuple[Happening, ...]:
        """What happened after the event ``after``, oldest first; a negative number counts from the end."""
        return tuple(happening(event) for event in self._study.events(after, limit))


#: Details of an event that are said in other words, or are for programs.
HIDDEN = frozenset({"lost", "issued"})


def happening(event: "EventLine") -> Happening:
    """An event as it is shown."""
    details = {key: value for key, value in event.detail.items() if value is not None and key not in HIDDEN}
    if event.kind is EventKind.FINISHED:
        details = {key: StopReason(value).words for key, value in details.items()}
    parts = [f"{key} {label(cell(value))}" for key, value in details.items()]
    if event.detail.get("lost"):
        parts.append("an observation was lost")
    detail = ", ".join(parts)
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
