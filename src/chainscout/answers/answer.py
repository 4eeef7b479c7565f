"""The answer to a question: an estimate, a lower and an upper bound, and the conditions under which they hold."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, overload

import numpy as np

from ..chains import MarkovChain
from ..counts import Counts
from ..diagnostics import Doubt, diagnose
from ..errors import InputError
from ..frames import frame
from ..markup import html_table
from ..numerals import Lower, Upper, ends, near, sure
from ..paths import LOST, Paths
from ..validation import failure_probability, one_of, printable, shown, whole_number
from . import exact, robust
from ._intervals import Interval, interval
from ._terms import (
    ARRIVED,
    LAW,
    ON,
    UNKNOWN,
    WHERE_PATHS_START,
    Terms,
    check_declarations,
    need_starts,
    terms_of,
)
from .grammar import parse
from .question import Cost, LongRunShare, PassageTime, Question, Reach
from .replay import AWAITED, BLOCKED, Decks, decks_of, most_holes

__all__ = ["METHODS", "Answer", "answer", "from_decks", "unchecked", "vacuous"]

#: The methods that can give an answer.
METHODS = ("exact", "replay", "row-likelihood")

#: How losses are treated: they are checked as far as the record shows, or the user declares them harmless.
_LOSSES = ("checked", "independent")

_BEFOREHAND = "as if asked beforehand: the bounds hold if the question was not chosen by looking at these data"


@dataclass(frozen=True)
class Answer:
    """The answer to a question.

    With ``guaranteed``, ``lower`` ≤ the truth ≤ ``upper`` at all times at once with probability 1 − ``delta``, whatever
    rule chose the draws, and whenever one looks.
    """

    question: Question
    #: The mean of completed returns, or the plug-in value, clipped into the interval; None if there is none.
    estimate: float | None
    lower: float
    upper: float
    delta: float
    guaranteed: bool
    #: One of `METHODS`.
    method: str
    #: Completed episodes of the replay that the interval comes from; None for other methods.
    episodes: int | None = None
    #: The state whose next exit the replay waits for. None: it does not wait, or it waits for the start of a path.
    waiting_for: Hashable | None = None
    #: Notes about the answer; if it does not hold, the first one says why.
    notes: tuple[str, ...] = ()
    #: Why the bounds do not hold: the check that rejects ('order', 'change', 'sameness' or 'age'), or 'repeated' for
    #: paths that repeat each other. None: no check speaks against them.
    code: str | None = None

    @property
    def holds(self) -> bool:
        """Whether no check speaks against what the bounds assume."""
        return self.code is None

    def without_bounds(self, doubt: Doubt | None, *more: str) -> "Answer":
        """The same answer with a reason why its bounds do not hold. Its own notes promise too much, and are left out.

        ``doubt``: the reason; None: there is none, and the answer stays as it is. ``more``: sentences after it.
        """
        if doubt is None:
            return self
        return replace(self, guaranteed=False, code=doubt.code, notes=(doubt.sentence, *more))

    @property
    def width(self) -> float:
        """The distance between the ends."""
        return self.upper - self.lower if self.upper < math.inf else math.inf

    def __repr__(self) -> str:
        return f"Answer({str(self).partition(chr(10))[0]})"

    def _repr_html_(self) -> str:
        """The answer as a table for a notebook."""
        surely = sure(self.delta) if self.guaranteed else "not known" if self.holds else "no bound holds"
        known = (self.estimate, Lower(self.lower), Upper(self.upper), surely)
        return html_table(str(self.question), ("estimate", "at least", "at most", "probability"), [known], self.notes)

    def to_json(self) -> dict[str, Any]:
        """The answer as plain data, whether it holds first."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"holds": self.holds, "code": self.code, **values, "question": str(self.question)}

    def to_pandas(self) -> Any:
        """A DataFrame with one row. `pandas.concat` combines several."""
        values = {**self.to_json(), "width": self.width, "notes": "\n".join(self.notes)}
        return frame({name: [value] for name, value in values.items()})

    def __str__(self) -> str:
        if self.method == "exact":
            return f"{self.question}: {self.lower:.10g} (exact)"
        known = "no estimate" if self.estimate is None else near(self.estimate)
        surely = f"with probability {sure(self.delta)}" if self.guaranteed else "not guaranteed"
        after = "" if self.episodes is None else f", {self.episodes:,} episodes"
        line = f"{self.question}: {known} in {ends(self.lower, self.upper)} {surely} ({self.method}{after})"
        notes = self.notes
        lines = [line] if self.holds else [notes[0], line]
        return "\n".join(map(printable, [*lines, *(f"  {note}" for note in notes[not self.holds :])]))


@overload
def answer(
    data: MarkovChain | Paths | Counts,
    question: Question | str,
    *,
    delta: float = 0.05,
    method: str | None = None,
    asked: int | None = None,
    losses: str = "checked",
) -> Answer: ...


@overload
def answer(
    data: MarkovChain | Paths | Counts,
    question: list[Question | str],
    *,
    delta: float = 0.05,
    method: str | None = None,
    asked: int | None = None,
    losses: str = "checked",
) -> list[Answer]: ...


def answer(
    data: MarkovChain | Paths | Counts,
    question: Question | str | list[Question | str],
    *,
    delta: float = 0.05,
    method: str | None = None,
    asked: int | None = None,
    losses: str = "checked",
) -> Answer | list[Answer]:
    """The answer to a question, or to several.

    With `Paths`, the checks of `chainscout.diagnose` read the draws that the answer is made from. If one of them
    rejects, `Answer.holds` is false, and the answer says so first.

    ``data``: a `MarkovChain` (the exact value), `Paths` (replay), or `Counts` (without their order: wider bounds).
    ``question``: a question, or its line, or a list. In a list, question j has δ/(j(j+1)), so that all hold together.
    ``delta``: the probability that the bounds fail.
    ``method``: one of `METHODS`; None: the best guaranteed method for these data.
    ``asked``: the number of issue after which the question was asked: only cards issued later are read. 0: it was asked
    before the first draw. None: the answer is labelled 'as if asked beforehand'.
    ``losses``: 'checked': a lost draw is skipped, unless a later draw of its row was known when it was given up. This
    assumes that giving up depended on no later draw that was issued and not known. A hole (`paths.HOLE`), as every lost
    draw of a study is, is never skipped: up to three of them may have any value, and a later one ends its row.
    'independent': the caller declares
    that no loss depended on the values drawn, or on how long a draw took; all lost draws are skipped.
    """
    delta = failure_probability(delta)
    asked_all = question if isinstance(question, list) else [question]
    shares = [delta / (j * (j + 1)) for j in range(1, len(asked_all) + 1)] if isinstance(question, list) else [delta]
    found = [
        unchecked(data, one, delta=share, method=method, asked=asked, losses=losses)
        for one, share in zip(asked_all, shares, strict=True)
    ]
    if isinstance(data, Paths):
        doubt = diagnose(data if asked is None else data.after(asked), delta=delta).doubt()
        found = [one.without_bounds(doubt) for one in found]
    return found if isinstance(question, list) else found[0]


def unchecked(
    data: Any, question: Question | str, *, delta: float, method: str | None, asked: int | None, losses: str
) -> Answer:
    """`answer` to one question, without the checks of the data."""
    delta = failure_probability(delta)
    if method is not None:
        one_of(method, "method", METHODS)
    one_of(losses, "losses", _LOSSES)
    if asked is not None:
        asked = whole_number(asked, "asked", least=0, meaning="the number of issue after which the question was asked")
    question = parse(question) if isinstance(question, str) else question
    if isinstance(data, MarkovChain):
        return _exact(data, terms_of(question, data.states), method)
    if isinstance(data, Paths):
        rows = data.counts().rows()
        later = () if asked is None else _first_seen_after(data, asked)
        data = data if asked is None else data.after(asked)
        terms = need_starts(terms_of(question, data.states, open_states=data.open_states))
        check_declarations(terms, lambda x: rows.get(x, {}), later)
        if method in (None, "replay"):
            if data.unordered is None:
                return _replayed(data, terms, delta, asked is not None, losses == "independent")
            if method == "replay":
                raise InputError(f"these paths cannot be replayed: {data.unordered}")
            found = _from_counts(data.counts(), terms, delta, None)
            return replace(found, notes=(f"not replayed: {data.unordered}", *found.notes))
        return _from_counts(data.counts(), terms, delta, method)
    if isinstance(data, Counts):
        if data.correlated:
            raise InputError(
                "these transitions overlap in time, so that nothing can be answered from them with a bound"
            )
        terms = terms_of(question, data.states, open_states=data.open_states)
        rows = data.rows()
        check_declarations(terms, lambda x: rows.get(x, {}))
        return _from_counts(data, terms, delta, method)
    raise InputError(f"a question is answered for a MarkovChain, Paths or Counts, not for {shown(data)}")


def _exact(chain: MarkovChain, terms: Terms, method: str | None) -> Answer:
    if method not in (None, "exact"):
        raise InputError(f"the answer for a known matrix is exact: method must be 'exact', not {shown(method)}")
    check_declarations(terms, lambda x: dict(enumerate(np.asarray(chain.matrix)[x].tolist())))
    found = exact.value(np.asarray(chain.matrix), terms, np.asarray(chain.initial))
    return Answer(terms.question, found, found, found, 0.0, True, "exact")


def _first_seen_after(paths: Paths, asked: int) -> Sequence[Hashable]:
    """The states that were not seen by this number of issue, and were seen later."""
    early = paths.issued <= asked
    known, all_seen = (np.union1d(paths.source[which], paths.target[which]) for which in (early, np.ones_like(early)))
    return [paths.states[x] for x in np.setdiff1d(all_seen, known).tolist() if x >= 0]


def _certain(terms: Terms) -> float | None:
    """The answer if no draw matters: a start in the target, no steps, or one state whose cost counts."""
    question = terms.question
    if isinstance(question, LongRunShare) or terms.start in (UNKNOWN, WHERE_PATHS_START):
        return None
    law = terms.law if terms.start == LAW else np.eye(terms.size)[terms.start]
    if isinstance(question, Cost):
        return float(law @ terms.cost) if question.steps == 1 else None
    over = not (law[terms.kind == ON] > 0).any()
    if isinstance(question, Reach):
        return float(law[terms.kind == ARRIVED].sum()) if over or question.within == 0 else None
    assert isinstance(question, PassageTime)
    return None if not over else 0.0 if law[terms.kind == ARRIVED].sum() == law.sum() else math.inf


def vacuous(terms: Terms) -> tuple[float, float]:
    """The ends of an answer without any data."""
    question = terms.question
    if isinstance(question, Cost):
        length = question.steps if question.steps is not None else 1 / (1 - float(question.discount or 0.0))
        return length * terms.least, length * terms.largest
    return 0.0, math.inf if isinstance(question, PassageTime) else 1.0


def _replayed(paths: Paths, terms: Terms, delta: float, beforehand: bool, independent: bool) -> Answer:
    holes = most_holes(paths.size, paths.open_states, terms.question)
    decks = decks_of(paths, independent_losses=independent, holes=holes)
    lost = int((paths.target == LOST).sum()) if not independent else paths.lost
    return from_decks(decks, terms, delta, beforehand=beforehand, independent=independent, lost=lost)


def from_decks(
    decks: Decks, terms: Terms, delta: float, *, beforehand: bool = True, independent: bool = False, lost: int = 0
) -> Answer:
    """The answer from a chain's cards, which may grow: each replay continues where it waited before.

    ``beforehand``: the question was asked before the first card was issued. ``independent``: the user declares that no
    loss depended on the values drawn. ``lost``: how many lost draws are skipped, and not holes.
    """
    notes = terms.notes() if beforehand else (*terms.notes(), _BEFOREHAND)
    known = _certain(terms)
    if known is not None:
        return Answer(terms.question, known, known, known, delta, True, "replay", 0, None, ())
    if terms.start == UNKNOWN:
        low, high = vacuous(terms)
        where = getattr(terms.question, "start", None)
        said = "the start of the question is a state that was not seen yet"
        return Answer(terms.question, None, low, high, delta, True, "replay", 0, where, (said, *notes))
    found = interval(decks, terms, delta)
    if found.lower > found.upper:
        raise InputError(
            "the lower bound is above the upper one: these data are not draws of one chain whose steps depend on its "
            "state alone, or something else that the bounds assume fails"
        )
    waits = None if found.waits is None or found.waits == terms.size else terms.label(found.waits)
    if lost:
        notes += (_losses_note(lost, independent),)
    if decks.holes:
        draws = "1 draw was" if len(decks.holes) == 1 else f"{len(decks.holes)} draws were"
        notes += (f"{draws} lost: the bounds hold whatever the lost states were",)
    return Answer(
        terms.question,
        None if found.mean is None else min(max(found.mean, found.lower), found.upper),
        found.lower,
        found.upper,
        delta,
        True,
        "replay",
        found.episodes,
        waits,
        (*found.notes, *_waiting(decks, terms, found), *notes),
    )


def _losses_note(lost: int, independent: bool) -> str:
    number = "1 draw was" if lost == 1 else f"{lost:,} draws were"
    untold = f"{number} given up, because a path ended before its next state was told"
    if independent:
        return f"{untold}: the bounds hold if this never depended on anything that was drawn, as declared"
    return f"{untold}: the bounds hold if this depends neither on the state that was not told nor on draws issued later"


#: The phrase for a question without a start.
_FIRST = "the start of a path"


def _waiting(decks: Decks, terms: Terms, found: Interval) -> tuple[str, ...]:
    """A sentence that says what the replay waits for."""
    if found.waits is None:
        return ()
    end = int(decks.ends[found.waits])
    row = _FIRST if found.waits == terms.size else f"an exit of {shown(terms.label(found.waits))}"
    if end == BLOCKED:
        why = "a draw of it was given up when a later one was known"
        if found.waits in decks.stops:
            why = f"its draw {decks.stops[found.waits]} was lost"
        why += ", so that later draws cannot be read"
        return (
            f"the replay stands still at {row}: {why}, unless losses='independent' is declared (--losses independent)",
        )
    standing = ", where a draw has been issued" if end == AWAITED else ""
    no_start = "; no start was named, so that only the first states of paths count" if row == _FIRST else ""
    return (f"the replay waits for {row}{standing}{no_start}",)


def _from_counts(counts: Counts, terms: Terms, delta: float, method: str | None) -> Answer:
    if method in ("exact", "replay"):
        raise InputError(f"counts have no order, so that they cannot be answered by {method!r}")
    known = _certain(terms)
    if known is not None:
        return Answer(terms.question, known, known, known, delta, True, "row-likelihood")
    if terms.start in (UNKNOWN, WHERE_PATHS_START) and not isinstance(terms.question, LongRunShare):
        raise InputError("counts without their order do not say where paths start: give the question a start")
    low, high = vacuous(terms)
    notes = terms.notes()
    if isinstance(terms.question, LongRunShare):
        notes += ("counts without their order do not bound a long-run share",)
    elif terms.open:
        notes += ("nothing is certain: the chain may have states that were never seen, unless declared complete",)
    else:
        low, high = robust.interval(counts, terms, delta)
        if math.isinf(high):
            notes += ("the upper bound is infinite: some row allows a walk that never arrives",)
    value = _plug_in(counts, terms)
    return Answer(
        terms.question,
        None if value is None else min(max(value, low), high),
        low,
        high,
        delta,
        True,
        "row-likelihood",
        notes=notes,
    )


def _plug_in(counts: Counts, terms: Terms) -> float | None:
    """The value for the relative frequencies; None if a row was never left, or if there is no single value."""
    if not counts.total or (counts.exits[(terms.kind == ON) & ~terms.absorbing] == 0).any():
        return None
    try:
        return exact.value(counts.matrix(0.0), terms)
    except InputError:
        return None
