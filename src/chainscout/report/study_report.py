"""A study as plain data: the only source of the numbers that pages, files and the command line show of it."""

import math
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from ..errors import InputError
from ..study import Browser, EventKind, StopReason
from ..study.settings import deadline_text
from ..validation import one_of, whole_number
from . import shares
from .cells import cell, duration, finite, given, label, moment, shown_index
from .diagnosis import in_one_line
from .panels import PANELS
from .tables import Table
from .views import Card, Chain, Curve, Curves, Happening, Held, Line, Overview, Page, State, Window

if TYPE_CHECKING:
    from ..diagnostics import Diagnosis
    from ..store import HistoryLine
    from ..study import ChainLine, EventLine, Progress, QuestionLine, Study

#: The most chains on a page, chains drawn over time, and states of a window.
MOST_LINES = 200
MOST_CURVES = 12
MOST_STATES = 60
#: Chains of which all are put into words together.
FEW = 100
#: Chains that are drawn unless others are asked for.
DRAWN = 6
#: Questions that have a card.
MOST_CARDS = 24
#: Characters of a name that are looked for.
LONGEST_SEARCH = 200
#: A row is known if its intervals are no wider than this.
WIDE = 0.5
#: A curve has a point when the observations have grown by this factor.
GROWTH = 1.03

Sort = Literal["number", "name", "states", "observations", "certificate", "index"]


def _whole(value: Any) -> Any:
    """The number, as a whole one if it is."""
    return int(value) if value is not None and float(value).is_integer() else value


#: What is said beside stored certificates.
STORED = "certificates are stored, and computed again when their chains have grown: each says of how many transitions"
UNKNOWN = (
    "there are chains of which nothing is certified yet: without a target, this is done from 100 transitions of a chain"
    " on, and when a study of at most 100 chains stops"
)


class StudyReport:
    """What a study shows. Made once for a study: it remembers for a while what takes long to find."""

    def __init__(self, study: "Study", title: str) -> None:
        self._study = study
        self._title = title
        #: The study a page at a time.
        self.browser = Browser(study)
        self._lock = threading.Lock()
        #: Observations, and chain → the share that the policy tends to if the estimates of then are the truth.
        self._aims: tuple[int, dict[int, float]] | None = None

    def overview(self) -> Overview:
        """The study as a whole."""
        progress, pace = self._study.progress(), self.browser.pace()
        found = Overview.of(
            progress,
            title=self._title,
            state="finished" if progress.finished else "running" if progress.observations else "empty",
            stopped=None if progress.stop_reason is None else progress.stop_reason.words,
            policy=label(progress.policy),
            used=_whole(progress.used),
            budget=_whole(progress.budget),
            certificate=finite(progress.certificate),
            variability=finite(progress.variability),
            rate=pace.rate,
            seconds_left=None if progress.finished else _seconds_left(progress, pace.rate, pace.now),
            now=pace.now,
            last=pace.last,
            notes=self._notes(progress),
            checks=in_one_line(self.checks()),
            facts=(),
        )
        return replace(found, facts=tuple((name, cell(value)) for name, value in (*facts(found), *pace_facts(found))))

    def checks(self) -> "Diagnosis | None":
        """The checks of all chains together, as the study keeps them."""
        return self.browser.checks()

    def _notes(self, progress: "Progress") -> tuple[str, ...]:
        known = self.browser.certificate(None if progress.chains <= FEW else ())
        notes: tuple[str, ...] = (
            (f"as of the transitions named: {known.in_words()}",)
            if any(map(math.isfinite, known.loss.values()))
            else ()
        )
        notes += (*known.notes, *self.browser.notes(), STORED)
        if progress.certificate == math.inf:
            notes += (UNKNOWN if progress.target_loss is None else UNKNOWN.partition(":")[0],)
        if progress.aside:
            notes += (
                f"{progress.aside:,} chain{'s were' if progress.aside > 1 else ' was'} set aside: the events say why",
            )
        if not self._study.knows_policy:
            notes += (
                f"the policy {label(progress.policy)} is not built in, and its rule is not here: indices are those that"
                " were stored, and what it aims at is not known",
            )
        return notes

    # -- chains

    def page(
        self, search: str = "", sort: str = "number", descending: bool = False, page: int = 1, size: int = 25
    ) -> Page:
        """Some chains, searched by name and sorted."""
        one_of(sort, "sort", get_args(Sort))
        whole_number(page, "page", meaning="from 1")
        whole_number(size, "size", meaning="chains on a page")
        if size > MOST_LINES or page > 10**9:
            raise InputError(f"a page has at most {MOST_LINES} chains and a number below 10⁹, not {size} and {page}")
        if len(search) > LONGEST_SEARCH:
            raise InputError(f"a search has at most {LONGEST_SEARCH} characters, not {len(search):,}")
        progress = self._study.progress()
        total, found = self.browser.page(search, sort, descending, (page - 1) * size, size)
        return Page(total, page, max(1, math.ceil(total / size)), tuple(self._line(line, progress) for line in found))

    def _line(self, line: "ChainLine", progress: "Progress") -> Line:
        return Line.of(
            line,
            label=label(line.name),
            share=line.observations / progress.observations if progress.observations else None,
            plug_in=line.variability / progress.variability if progress.variability > 0 else None,
            aim=self._aim(progress).get(line.number),
            certificate=finite(line.certificate),
            index=shown_index(line),
        )

    def _aim(self, progress: "Progress") -> dict[int, float]:
        """What the policy aims at, found anew when the observations have grown by 1 %: it needs all chains at once."""
        with self._lock:
            known = self._aims
            if known is None or progress.observations >= known[0] + max(1, known[0] // 100):
                known = self._aims = progress.observations, shares.aims(self.browser)
            return known[1]

    def words(self, line: "ChainLine") -> str:
        """What is known of a chain's single probabilities, in a sentence."""
        if not line.certified:
            return "Nothing is certified of this chain yet."
        known = self.browser.certificate([line.number]).in_words()
        return known if line.open else f"After {line.certified:,} transitions: {known}"

    def chain(self, number: int, row: int = 0, column: int = 0, size: int = 30) -> Chain:
        """A chain and the window of its matrix that begins at ``row`` and ``column``."""
        whole_number(row, "row", least=0, meaning="the first state whose row is shown")
        whole_number(column, "column", least=0, meaning="the first state whose column is shown")
        if whole_number(size, "size", meaning="states of the window") > MOST_STATES:
            raise InputError(f"a window has at most {MOST_STATES} states, not {size}")
        progress, line = self._study.progress(), self.browser.line(number)
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
            line=self._line(line, progress),
            delta=progress.delta,
            never=known.count("never"),
            rarely=known.count("rarely"),
            words=self.words(line),
            window=window,
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
        if numbers:
            lines = [self.browser.line(number) for number in numbers]
        else:
            lines = self.browser.page("", "certificate", True, 0, DRAWN)[1]
        whole = self.browser.history(None)
        return Curves(progress.target_loss, tuple(self._curve(line, progress, whole) for line in lines))

    def _curve(self, line: "ChainLine", progress: "Progress", whole: "list[HistoryLine]") -> Curve:
        """The chain at its own lines of history and at those of the whole study, thinned out, and now."""
        points: list[tuple[int, float | None, float | None, float, float | None]] = []
        own, total = None, None
        for at in sorted([*whole, *self.browser.history(line.number)], key=lambda at: at.number):
            if at.chain is None:
                total = at.variability
            else:
                own = at
            if own is not None and (not points or at.observations >= GROWTH * points[-1][0]):
                plug_in = own.variability / total if total else None
                share = own.own / at.observations
                points.append((at.observations, at.time, finite(own.certificate), share, plug_in))
        now = self._line(line, progress)
        if now.share is not None:
            if points and points[-1][0] == progress.observations:
                points.pop()
            points.append((progress.observations, None, now.certificate, now.share, now.plug_in))
        columns = zip(*points, strict=True) if points else ((),) * 5
        return Curve(line.number, label(line.name), now.aim, *columns)

    # -- what else there is

    def questions(self) -> "list[QuestionLine]":
        """The registered questions with their answers as stored."""
        return self._study.questions()

    def cards(self) -> tuple[Card, ...]:
        """A card for each of the first questions."""
        progress = self._study.progress()
        return tuple(self._card(line, progress) for line in self.questions()[:MOST_CARDS])

    def _card(self, line: "QuestionLine", progress: "Progress") -> Card:
        points: list[tuple[int, float, float, float | None]] = []
        for at in self.browser.answers(line.number):
            if math.isfinite(at.upper) and (not points or at.observations >= GROWTH * points[-1][0]):
                points.append((at.observations, at.lower, at.upper, at.estimate))
        if math.isfinite(line.upper) and line.transitions:
            points.append((max(1, progress.observations), line.lower, line.upper, line.estimate))
        columns = zip(*points, strict=True) if points else ((),) * 4
        return Card(
            line.number,
            label(line.chain),
            line.question,
            line.delta,
            finite(line.estimate),
            finite(line.lower),
            finite(line.upper),
            finite(line.width),
            line.episodes,
            line.transitions,
            line.met,
            None if line.waiting_for is None else label(line.waiting_for),
            line.notes,
            progress.target_width,
            progress.limit,
            *columns,
        )

    def panels(self) -> tuple[Table, ...]:
        """What is shown beside the chains: the panels that have something to show."""
        return tuple(table for panel in PANELS if (table := panel(self)) is not None)

    def leases(self, limit: int = 100) -> tuple[Held, ...]:
        """Who holds what."""
        now = self.browser.pace().now
        return tuple(
            Held.of(line, label=label(line.chain), worker=label(line.worker), seconds_left=line.expires - now)
            for line in self.browser.leases(limit)
        )

    def events(self, after: int = -100, limit: int = 100) -> tuple[Happening, ...]:
        """What happened after the event ``after``, oldest first; a negative number counts from the end."""
        return tuple(happening(event) for event in self._study.events(after, limit))


def facts(study: Overview) -> list[tuple[str, Any]]:
    """What people read of the study as a whole, on every medium."""
    spent = f"{cell(study.used)} of {cell(study.budget)}" if study.budget is not None else study.used
    return [
        ("chains", study.chains),
        ("observations", study.observations),
        (f"budget used ({study.unit})", spent),
        ("certificate (largest)", study.certificate),
        ("method", study.method),
        ("target loss", given(study.target_loss)),
        *_aims(study),
        ("policy", study.policy),
        ("δ", given(study.delta)),
        ("Λ of the estimates", study.variability),
        ("deadline", None if study.deadline is None else deadline_text(study.deadline)),
        ("paths begun (first observations)", study.paths),
        *([("cost of first observations (cost units)", study.first_cost)] if study.unit == "cost units" else ()),
        ("leases held by workers", study.leases),
        ("lost observations", study.lost),
        ("set aside", study.aside),
        ("checks of what the bounds assume", study.checks),
        ("finished", study.stopped or "no"),
    ]


def pace_facts(study: Overview) -> list[tuple[str, Any]]:
    """What changes while nobody observes, and is shown where it is seen at once."""
    return [
        ("time left (estimate)", duration(study.seconds_left)),
        ("observations a second", study.rate),
        ("last observation", None if study.last is None else f"{moment(study.last)} UTC"),
    ]


def _aims(study: Overview) -> list[tuple[str, Any]]:
    """What the questions must be answered to, if there are any."""
    if not study.questions:
        return []
    answered = None if study.worst is not None else f"{study.questions - study.unmet} of {study.questions}"
    aims = {"target width": study.target_width, "limit": study.limit, "worst": study.worst}
    aims["questions answered well enough"] = answered
    return [(name, value) for name, value in aims.items() if value is not None]


#: Details of an event that are said in other words, or are for programs.
HIDDEN = frozenset({"lost", "issued", "told"})


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


def _seconds_left(progress: "Progress", rate: float | None, now: float) -> float | None:
    """Until the first of budget, target and deadline; b falls as 1/T, so that a target is met at T·b/target."""
    found = []
    if progress.deadline is not None:
        found.append(max(0.0, progress.deadline - now))
    if rate and progress.observations:
        if progress.budget is not None:
            found.append((progress.budget - progress.used) / (progress.used / progress.observations) / rate)
        if progress.target_loss and math.isfinite(progress.certificate):
            found.append(max(0.0, progress.observations * (progress.certificate / progress.target_loss - 1) / rate))
    return min(found, default=None)
