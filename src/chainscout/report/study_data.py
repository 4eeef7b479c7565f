"""A study as plain data: the only source of the numbers that the terminal, the report, the page and JSON show.

What does not exist or is infinite is None.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

from ..numerals import Bound, Given, Lower, Upper, cell, sure, upper
from ..study import ChainLine, EventKind, EventLine, HistoryLine, LeaseLine, Progress, QuestionLine, StopReason
from ..study.settings import UNDECLARED, deadline_text, target_text
from ..validation import printable
from .format import duration, finite, label, moment, shown_index
from .panels import PANELS, in_one_line
from .tables import Drawing, Series, Table

if TYPE_CHECKING:
    from ..study import Study

#: The most chains whose certificates are put into words together.
FEW = 100
#: The chains that are drawn unless others are asked for.
DRAWN = 6
#: The most questions that have a card.
MOST_CARDS = 24
#: A row is known if none of its intervals is wider than this.
WIDE = 0.5
#: A curve has a point whenever the observations have grown by this factor.
GROWTH = 1.03
Sort = Literal["number", "name", "states", "observations", "certificate", "index"]
#: What a curve's points are counted in.
ACROSS = "observations of the whole study"
#: What is said beside stored certificates.
STORED = "a certificate is stored with its number of transitions, and computed again when its chain has grown"
UNKNOWN = (
    "there are chains of which nothing is certified yet: without a target, this is done from 100 transitions of a chain"
    " on, and when a study of at most 100 chains stops"
)
#: How often a row was left → the sign beside its state, and the words at its end.
MARKS = {"never": ("○", "never left: not known"), "rarely": ("◐", "rarely left: hardly known"), "often": ("", "")}


@dataclass(frozen=True)
class Overview(Progress):
    """The study as a whole."""

    certificate: float | None  # type: ignore[assignment] # as in Progress, and None if infinite
    #: As of when the stored certificates are, in words; 'now' if they are of this moment.
    as_of: str
    variability: float | None  # type: ignore[assignment]
    title: str
    #: empty: nothing was observed yet.
    state: Literal["empty", "running", "finished"]
    #: The state in words, and how much of the budget is used.
    state_words: str
    used_words: str
    #: Why the study has stopped, in words.
    ending: str | None
    #: Observations a second.
    rate: float | None
    #: An estimate of the seconds until the budget, the target or the deadline ends the study at this pace.
    seconds_left: float | None
    #: The time now and the time of the last observation, in seconds since 1970.
    now: float
    last: float | None
    notes: tuple[str, ...]
    #: What the checks of the assumptions say, in one line.
    checks: str
    #: The facts that people read on every medium: name and text.
    facts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Line(ChainLine):
    """One chain."""

    loss: float | None  # type: ignore[assignment] # as in ChainLine, and None if infinite
    certificate: float | None  # type: ignore[assignment]
    index: float | None  # type: ignore[assignment]
    ratio: float | None  # type: ignore[assignment]
    #: The name as it can be shown.
    label: str
    #: The share that the policy aims at.
    aim: float | None
    #: Why no bound of the chain holds, if a check speaks against what it assumes.
    doubt: str | None


@dataclass(frozen=True)
class Page:
    """Some of the chains."""

    #: The number of chains that the search found.
    total: int
    page: int
    pages: int
    chains: tuple[Line, ...]


@dataclass(frozen=True)
class State:
    """One state of a chain."""

    label: str
    exits: int
    #: π̂.
    stationary: float | None
    #: How well its row is known. rarely: an interval of the row is wider than one half.
    left: Literal["never", "rarely", "often"]
    #: The same as a sign and in words.
    sign: str
    mark: str


@dataclass(frozen=True)
class Window:
    """A part of a chain's matrix: the rows from ``row`` and the columns from ``column`` on."""

    row: int
    column: int
    rows: tuple[State, ...]
    columns: tuple[str, ...]
    transitions: tuple[tuple[int, ...], ...]
    matrix: tuple[tuple[float, ...], ...]
    lower: tuple[tuple[float, ...], ...]
    upper: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Chain:
    """A chain and a window of its matrix."""

    line: Line
    delta: float
    #: How sure an interval is, as it stands behind its ends.
    sure: str
    #: The numbers of states whose rows were never left, and rarely left; and both in words.
    never: int
    rarely: int
    unknown: str
    #: What is known of single probabilities and how to read the matrix, in sentences.
    words: str
    #: The facts that people read: name and text.
    facts: tuple[tuple[str, str], ...]
    window: Window


@dataclass(frozen=True)
class Curve:
    """A chain over time: one entry for each point in each list, None where there is no such number."""

    number: int
    label: str
    #: The share that the policy aims at with the current estimates.
    aim: float | None
    #: Observations of the whole study.
    observations: tuple[int, ...]
    #: Seconds since 1970; None for now.
    time: tuple[float | None, ...]
    certificate: tuple[float | None, ...]
    #: The chain's share of the observations, and its plug-in share η̂ with the estimates of then.
    share: tuple[float, ...]
    plug_in: tuple[float | None, ...]


@dataclass(frozen=True)
class Curves:
    """Some chains over time."""

    target_loss: float | None
    curves: tuple[Curve, ...]


@dataclass(frozen=True)
class Card(QuestionLine):
    """A registered question with its answer, now and over time."""

    lower: float | None  # type: ignore[assignment] # as in QuestionLine, and None if infinite
    upper: float | None  # type: ignore[assignment]
    waiting_for: str | None
    #: How far the answer is, in a sentence.
    words: str
    #: The aims of the study.
    target_width: float | None
    limit: float | None
    #: Over time: observations of the whole study, and the ends and the estimate then, where they were finite.
    observations: tuple[int, ...]
    lowers: tuple[float, ...]
    uppers: tuple[float, ...]
    estimates: tuple[float | None, ...]


@dataclass(frozen=True)
class Drawings:
    """What is drawn over time: the certificates, the share of each chain, the answer to each question."""

    certificate: Drawing
    shares: tuple[Drawing, ...]
    questions: tuple[Drawing, ...]


@dataclass(frozen=True)
class Held(LeaseLine):
    """A lease."""

    label: str
    #: Seconds until it runs out; negative if it has run out.
    seconds_left: float


@dataclass(frozen=True)
class Happening:
    """An event."""

    number: int
    time: float
    kind: str
    chain: str | None
    detail: str


class StudyReport:
    """What a study shows at one moment: one look. Only the matrix of a chain is estimated when somebody reads it."""

    def __init__(self, study: "Study", title: str) -> None:
        self.study = study
        self._title = title
        self.look = study.look()

    def overview(self) -> Overview:
        """The study as a whole."""
        look = self.look
        progress, pace = look.progress, look.pace
        words = "running" if progress.observations else "nothing observed yet"
        found = Overview.of(
            progress,
            title=printable(self._title),
            state="finished" if progress.finished else "running" if progress.observations else "empty",
            state_words=words if look.ending is None else f"finished: {look.ending}",
            used_words=_used(progress),
            ending=look.ending,
            policy=label(progress.policy),
            used=_whole(progress.used),
            budget=_whole(progress.budget),
            certificate=None if look.doubts else finite(Bound(progress.certificate)),
            as_of=look.as_of(),
            variability=finite(progress.variability),
            rate=pace.rate,
            seconds_left=pace.seconds_left(progress, look.needed()),
            now=pace.now,
            last=pace.last,
            notes=self._notes(),
            checks=in_one_line(look.checks),
            facts=(),
        )
        return replace(found, facts=_texts((*facts(found), *pace_facts(found))))

    def promise(self, words: str) -> str:
        """The words, with 1 − δ for {sure}; if the data contradict what bounds assume, that no bound holds."""
        look = self.look
        if not look.repeated and look.doubts:
            return look.promise()
        return look.repeated[0] if look.repeated else words.format(sure=sure(look.progress.delta))

    def _notes(self) -> tuple[str, ...]:
        progress = self.look.progress
        known = self.look.certificate(None if progress.chains <= FEW else ())
        is_bound = any(map(math.isfinite, known.loss.values())) and not known.repeated
        notes: tuple[str, ...] = (known.in_words(),) if is_bound else ()
        notes += (*known.notes, *self.look.notes, STORED)
        if progress.certificate == math.inf and not progress.spoilt:
            notes += (UNKNOWN if progress.target_loss is None else UNKNOWN.partition(":")[0],)
        if progress.target_loss is not None and progress.closed < progress.chains and progress.method == "sharp":
            opened = progress.chains - progress.closed
            notes += (f"the states of {opened:,} chain{'s' * (opened > 1)} were not declared, so {UNDECLARED}",)
        if progress.aside:
            notes += (
                f"{progress.aside:,} chain{'s were' if progress.aside > 1 else ' was'} set aside: the events say why",
            )
        if not self.study.knows_policy:
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
        total, found = self.look.page(search, sort, descending, (page - 1) * size, size)
        return Page(total, page, max(1, math.ceil(total / size)), tuple(map(self.line, found)))

    def line(self, line: ChainLine) -> Line:
        """One chain."""
        doubt = self.look.doubts.get(line.name)
        return Line.of(
            line,
            label=label(line.name),
            aim=self.look.shares().get(line.number),
            doubt=doubt,
            loss=None if doubt else finite(Bound(line.loss)),
            certificate=None if doubt else finite(Bound(line.certificate)),
            index=shown_index(line),
            ratio=finite(line.ratio),
        )

    def columns(self) -> dict[str, str]:
        """The columns of a table of chains: heading → field. With weights, the loss itself has its bound too."""
        return {
            "chain": "label", "states": "states", "observations": "observations", "share": "share", "η̂": "plug_in",
            "aim": "aim", "certificate": "certificate",
            **({"loss ≤": "loss"} if self.look.progress.weighted else {}),
            "as of transition": "certified", "index": "index", "leases": "leases", "set aside": "aside",
        }  # fmt: skip

    def words(self, line: ChainLine) -> str:
        """What is known of a chain's single probabilities, in a sentence."""
        if not line.certified:
            return "Nothing is certified of this chain yet."
        return self.look.certificate([line.number]).in_words()

    def chain(self, chain: int | str, row: int = 0, column: int = 0, size: int = 30) -> Chain:
        """The chain of this number or name, and the window of its matrix that begins at ``row`` and ``column``."""
        line, progress = self.line(self.look.chain(chain)), self.look.progress
        estimate = self.study.estimate(line.name)
        wide = estimate.widths() > WIDE
        known = ["never" if n == 0 else "rarely" if w else "often" for n, w in zip(estimate.exits, wide, strict=True)]
        rows, columns = range(row, row + size), range(column, column + size)
        stationary = estimate.stationary
        states = tuple(
            State(label(estimate.states[x]), int(estimate.exits[x]), finite(float(stationary[x])), left, *MARKS[left])  # type: ignore[arg-type]
            for x, left in enumerate(known[row : row + size], row)
        )
        tables = [tuple(map(tuple, part.tolist())) for part in estimate.window(rows, columns)]
        names = tuple(label(state) for state in estimate.states[column : column + size])
        never, rarely = known.count("never"), known.count("rarely")
        unknown = ((never, "never left"), (rarely, "rarely left"))
        repeated = bool(self.look.repeated) or line.doubt is not None
        holds = "" if repeated else f", which holds at all times at once with probability {sure(progress.delta)}"
        return Chain(
            line=line,
            delta=progress.delta,
            sure="but no bound holds" if repeated else f"with probability {sure(progress.delta)}",
            never=never,
            rarely=rarely,
            unknown=", ".join(f"{number:,} of {line.states:,} rows {left}" for number, left in unknown if number),
            words=f"{self.words(line)} Estimated probabilities. A cell under the pointer or with the focus shows its"
            f" interval{holds}. A row is rarely left"
            " (◐) while one of its intervals is wider than ½. A row that was never left (○) is not known at all.",
            facts=_texts(chain_facts(line)),
            window=Window(row, column, states, names, *tables),
        )

    # -- over time

    def curves(self, chain: tuple[int, ...] = ()) -> Curves:
        """Chains over time: those of these numbers, or the least known ones."""
        look = self.look
        lines = [*map(look.chain, chain)] or look.page(order="certificate", descending=True, limit=DRAWN)[1]
        whole = look.history(None)
        level = look.progress.target_loss if look.progress.target_loss == look.progress.target_most else None
        return Curves(level, tuple(self._curve(line, [*whole, *look.history(line.number)]) for line in lines))

    def _curve(self, line: ChainLine, history: list[HistoryLine]) -> Curve:
        """The chain at some of these lines of history, its own and those of the whole study, and now."""
        points: list[tuple[int, float | None, float | None, float, float | None]] = []
        own, total = None, None
        for at in sorted(filter(attrgetter("observations"), history), key=attrgetter("number")):
            if at.chain is None:
                total = at.variability
            else:
                own = at
            if own is not None and (not points or at.observations >= GROWTH * points[-1][0]):
                plug_in = own.variability / total if total else None
                share = own.own / own.observations  # of one moment: the study may have grown by half since
                points.append((at.observations, at.time, finite(Bound(own.certificate)), share, plug_in))
        now, observations = self.line(line), self.look.progress.observations
        if now.share is not None:
            if points and points[-1][0] == observations:
                points.pop()
            points.append((observations, None, now.certificate, now.share, now.plug_in))
        columns = zip(*points, strict=True) if points else ((),) * 5
        return Curve(line.number, label(line.name), now.aim, *columns)

    # -- what else there is

    def cards(self) -> tuple[Card, ...]:
        """A card for each of the first questions."""
        return tuple(map(self._card, self.look.questions[:MOST_CARDS]))

    def _card(self, line: QuestionLine) -> Card:
        progress = self.look.progress
        points: list[tuple[int, Lower, Upper, float | None]] = []
        for at in self.look.answers(line.number):
            if math.isfinite(at.upper) and (not points or at.observations >= GROWTH * points[-1][0]):
                points.append((at.observations, Lower(at.lower), Upper(at.upper), at.estimate))
        if math.isfinite(line.upper) and line.transitions:
            points.append((max(1, progress.observations), Lower(line.lower), Upper(line.upper), line.estimate))
        observations, lowers, uppers, estimates = zip(*points, strict=True) if points else ((),) * 4
        width = "infinitely wide" if line.width == math.inf else f"{upper(line.width)} wide"
        wanted = "" if progress.target_width is None else f", and is to be {progress.target_width:g} wide"
        surely = f" with probability {sure(line.delta)}"
        return Card.of(
            line,
            chain=label(line.chain),
            estimate=finite(line.estimate),
            lower=finite(Lower(line.lower)),
            upper=finite(Upper(line.upper)),
            waiting_for=None if line.waiting_for is None else label(line.waiting_for),
            words=line.notes[0] if not line.holds else f"{'Done' if line.met else 'Not done'}: {width}{surely}{wanted}",
            target_width=progress.target_width,
            limit=progress.limit,
            observations=observations,
            lowers=lowers,
            uppers=uppers,
            estimates=estimates,
        )

    def drawings(self, numbers: tuple[int, ...] = ()) -> Drawings:
        """What is drawn over time: the chains of these numbers, and the least known ones if there is room."""
        found = self.curves()
        curves, total = found.curves, self.look.progress.chains
        known = {curve.number for curve in curves}
        if more := tuple(dict.fromkeys(number for number in numbers if number not in known)):
            asked = [*self.curves(more).curves, *(curve for curve in curves if curve.number in numbers)]
            others = [curve for curve in curves if curve.number not in numbers]
            curves = (*asked, *others[: max(0, DRAWN - len(asked))])
        some = f", {len(curves)} of {total:,} chains" if more else f", the {len(curves)} least known chains"
        some = some if total > len(curves) else ""
        bounds = tuple(Series.of(curve.label, curve.observations, curve.certificate) for curve in curves)
        return Drawings(
            Drawing(f"Certificate{some}", ACROSS, bounds, level=found.target_loss, logarithmic=True),
            tuple(map(_draw_shares, curves)),
            tuple(map(_draw_answer, self.cards())),
        )

    def panels(self) -> tuple[Table, ...]:
        """The panels that have something to show."""
        return tuple(table for panel in PANELS if (table := panel(self)) is not None)

    def leases(self, limit: int = 100) -> tuple[Held, ...]:
        """The leases that workers hold."""
        now = self.look.pace.now
        return tuple(
            Held.of(line, label=label(line.chain), worker=label(line.worker), seconds_left=line.expires - now)
            for line in self.look.leases[:limit]
        )

    def events(self, after: int | None = None, limit: int | None = None) -> tuple[Happening, ...]:
        """The last events of this moment, oldest first; or those after the entry ``after``, as in `Study.events`."""
        found = self.look.events if after is None else self.study.events(after, limit)
        return tuple(_happening(event, self.look.progress) for event in found)


def facts(study: Overview) -> list[tuple[str, Any]]:
    """The facts of the study as a whole that every medium shows."""
    spent = f"{cell(study.used)} of {cell(study.budget)}" if study.budget is not None else study.used
    return [
        ("chains", study.chains),
        ("observations", study.observations),
        (f"budget used ({study.unit})", spent),
        (f"certificate (largest{', of weighted losses' if study.weighted else ''})", study.certificate),
        ("certificate as of", study.as_of),
        ("method", study.method),
        ("target loss", None if study.target_loss is None else target_text(study.target_loss, study.target_most)),
        *_reached(study),
        *_aims(study),
        ("policy", study.policy),
        ("δ", Given(study.delta)),
        ("Λ of the estimates", study.variability),
        ("deadline", None if study.deadline is None else deadline_text(study.deadline)),
        ("paths begun (first observations)", study.paths),
        *([("cost of first observations (cost units)", study.first_cost)] if study.unit == "cost units" else ()),
        ("leases held by workers", study.leases),
        ("lost observations", study.lost),
        ("set aside", study.aside),
        ("checks of what the bounds assume", study.checks),
        ("finished", "no" if study.ending is None else study.ending),
    ]


def pace_facts(study: Overview) -> list[tuple[str, Any]]:
    """The facts that change while nobody observes. The terminal does not show them."""
    return [
        ("time left (estimate)", duration(study.seconds_left)),
        ("observations a second", study.rate),
        ("last observation", None if study.last is None else f"{moment(study.last)} UTC"),
    ]


def _reached(study: Overview) -> list[tuple[str, Any]]:
    """How many chains have reached the study's aim, if it has one that every chain must reach."""
    if (study.target_loss, study.target_width, study.limit) == (None, None, None):
        return []
    return [("chains that have reached the aim", f"{study.chains - study.behind - study.missed} of {study.chains}")]


def _aims(study: Overview) -> list[tuple[str, Any]]:
    """The aims of the answers, if there are questions."""
    if not study.questions:
        return []
    aimed = study.target_width is not None or study.limit is not None
    answered = f"{study.questions - study.unmet} of {study.questions}" if aimed and study.worst is None else None
    aims = {"target width": study.target_width, "limit": study.limit, "worst": study.worst}
    aims["questions answered well enough"] = answered
    return [(name, value) for name, value in aims.items() if value is not None]


def chain_facts(line: Line) -> list[tuple[str, Any]]:
    """The facts of one chain."""
    return [
        ("certificate", line.certificate),
        *([("loss ≤", line.loss)] if line.weight != 1 else ()),
        ("as of transition", line.certified),
        ("observations", line.observations),
        ("transitions", line.transitions),
        ("paths", line.paths),
        ("share", line.share),
        ("η̂ (plug-in share)", line.plug_in),
        ("aim of the policy", line.aim),
        ("index", line.index),
        *([("target loss", Given(line.target))] if line.target else ()),
        ("weight", Given(line.weight)),
        ("states", f"{cell(line.states)} so far" if line.open else line.states),
        ("leases", line.leases),
        ("set aside", line.aside),
    ]


def _given(value: float | None) -> Given | None:
    """A number that somebody set, or None."""
    return None if value is None else Given(value)


def _texts(facts: Iterable[tuple[str, Any]]) -> tuple[tuple[str, str], ...]:
    return tuple((name, cell(value)) for name, value in facts)


def _whole(value: Any) -> Any:
    """A float without a fraction becomes an integer."""
    return int(value) if value is not None and float(value).is_integer() else value


def _used(progress: Progress) -> str:
    """How much of the budget is used, in words."""
    used, budget = cell(_whole(progress.used)), _whole(progress.budget)
    if not budget:
        return f"{used} {progress.unit} used, without a budget"
    return f"{used} of {cell(budget)} {progress.unit} used ({cell(_whole(100 * progress.used / budget))} %)"


def _draw_shares(curve: Curve) -> Drawing:
    """A chain's share, and the shares that it is compared with."""
    values: dict[str, Iterable[float | None]] = {"share": curve.share, "η̂": curve.plug_in}
    if curve.aim is not None:
        values["aim"] = (curve.aim,) * len(curve.observations)
    lines = tuple(Series.of(name, curve.observations, found) for name, found in values.items())
    return Drawing(curve.label, ACROSS, lines, top=min(1.0, _top(lines) or 1.0), small=True)


def _draw_answer(card: Card) -> Drawing:
    """The interval of an answer, and its limit."""
    ends = (("at most", card.uppers), ("estimate", card.estimates), ("at least", card.lowers))
    lines = tuple(Series.of(name, card.observations, values) for name, values in ends)
    return Drawing(
        f"{card.chain}: {printable(card.question)}",
        ACROSS,
        lines,
        notes=(card.words, *card.notes),
        level=card.limit,
        level_name="limit",
        bottom=min((0.0, *card.lowers)),
        top=_top(lines, card.limit or 0.0),
        small=True,
    )


def _top(lines: Iterable[Series], least: float = 0.0) -> float | None:
    """The end of an axis: not below ``least``. Early points do not count: a single chain may have all observations."""
    points = [(x, y) for line in lines for x, y in zip(line.x, line.y, strict=True)]
    end = max((x for x, _ in points), default=0.0)
    return 1.15 * max([least, *(y for x, y in points if x >= end / 20)]) or None


#: Details of an event that are shown in other words, or are for programs only.
HIDDEN = frozenset({"lost", "issued", "told", "ended"})


def _happening(event: EventLine, progress: Progress) -> Happening:
    """An event as it is shown. If paths of the study repeat each other, nothing is certified."""
    details = {key: value for key, value in event.detail.items() if value is not None and key not in HIDDEN}
    if event.kind is EventKind.FINISHED:
        reasons = {key: StopReason(value) for key, value in details.items()}
        details = {key: _reason(why, progress) for key, why in reasons.items()}
    parts = [f"{key} {label(cell(value))}" for key, value in details.items()]
    if event.detail.get("lost"):
        parts.append("an observation was lost")
    detail = ", ".join(parts)
    chain = None if event.chain is None else label(event.chain)
    return Happening(event.number, event.time, event.kind, chain, detail)


def _reason(why: StopReason, progress: Progress) -> str:
    """Why the study stopped once, in words."""
    if why is StopReason.BUDGET and progress.unit == "cost units":  # some may have been left
        return "the budget does not pay for the next observation"
    return why.words_without_bound if progress.spoilt else why.words
