"""Registered questions: a study gets them before its first draw, and keeps their answers up to date (MATH §11).

An answer is computed again at each look at its chain (`_aim`). It is a function of the chain's cards alone. So it does
not matter which process computes it, or whether the study was reopened in between. Its bounds hold at all times at
once, so a study may use them to decide when to stop.
"""

import math
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ..answers import Answer, Question, parse
from ..answers.answer import unchecked
from ..answers.replay import BLOCKED
from ..answers.running import Running
from ..diagnostics import Doubt
from ..errors import InputError, MixedUnitsWarning, PolicyWarning
from ..policies import Policy
from ..store import ChainRecord, QuestionRecord, StudyRecord, Transaction
from ..validation import did_you_mean, one_of, real_number, shown
from . import _aim, _evidence, _paths, _transitions
from ._cards import ChainCards, Readings
from ._index import LiveIndex
from ._labels import Labels
from ._repetition import repeated_chains
from .views import QuestionLine

if TYPE_CHECKING:
    from .settings import StudySettings

#: A chain is set aside if the state that its replay waits for was not left during this many transitions, or during this
#: share of all transitions of the chain, whichever is more.
MOST_WAITED, MOST_WAITED_SHARE = 1_000, 0.5
#: The ratio of a question that is not answered well enough is more than 1, however close its answer is.
ABOVE = math.nextafter(1.0, 2.0)
#: Which answer is the worst.
WORST = ("highest", "lowest")


# -- checks of what the user gives


def checked_questions(given: Any, chains: Sequence[str]) -> dict[str, list[Question]]:
    """Chain → its questions. ``given``: a mapping from names of chains, or one question or list for all chains."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        given = dict.fromkeys(chains, given)
    unknown = [name for name in given if name not in chains]
    if unknown:
        hint = did_you_mean(unknown[0], chains)
        raise InputError(f"questions names chains that the study does not have: {shown(unknown)}{hint}")
    found = {}
    for name in chains:
        asked = given.get(name, [])
        listed = [asked] if isinstance(asked, str | Question) else asked
        if not isinstance(listed, Sequence):
            raise InputError(
                f"the questions of chain {name!r} must be a question, a line or a list of them, not {shown(asked)}"
            )
        questions = [parse(one) if isinstance(one, str) else one for one in listed]
        for question in questions:
            if not isinstance(question, Question):
                raise InputError(
                    f"a question must be a Reach, PassageTime, Cost or LongRunShare, or a line of text, not "
                    f"{shown(question)}"
                )
        if len({str(question) for question in questions}) < len(questions):
            raise InputError(f"a question of chain {name!r} is given twice")
        if questions:
            found[name] = questions
    return found


def checked_width(value: Any) -> float | None:
    """A target width."""
    meaning = "how wide every answer may be at the end"
    return None if value is None else real_number(value, "target_width", above=0.0, meaning=meaning)


def checked_limit(value: Any) -> float | None:
    """A limit."""
    meaning = "the number of which every answer is to be known to be below it or not"
    return None if value is None else real_number(value, "limit", meaning=meaning)


def checked_worst(value: Any) -> str | None:
    """Which answer is the worst."""
    return None if value is None else one_of(value, "worst", WORST)


def check_goals(settings: "StudySettings", asked: Mapping[str, Sequence[Question]]) -> None:
    """Raises ``InputError`` for aims that contradict each other or do not fit the questions."""
    aims = [name for name in ("target_loss", "target_width", "limit", "worst") if getattr(settings, name) is not None]
    if len(aims) > 1:
        raise InputError(f"a study aims at one thing, and {' and '.join(aims)} are given")
    if not asked and aims and aims != ["target_loss"]:
        raise InputError(f"{aims[0]} is about the answers to questions, and the study has none")
    policy = settings.policy
    assert isinstance(policy, Policy)
    if policy.aiming and not aims:
        raise InputError(
            f"the policy {policy.name!r} advances the chain that is furthest from a target, and the study has none:"
            " give a target, or another policy"
        )
    if aims and aims != ["target_loss"] and not policy.aiming:
        warnings.warn(
            f"the policy {policy.name!r} chooses chains by their counts, and not by how far their answers are from the"
            " aim: if the budget ends first, some may be far from it; without policy=, the furthest goes first",
            PolicyWarning,
            stacklevel=2,
        )
    if aims == ["worst"] and (len(asked) < 2 or any(len(questions) != 1 for questions in asked.values())):
        raise InputError("worst compares chains: at least two of them must have one question each")
    units = {question.unit: None for questions in asked.values() for question in questions}
    if aims == ["target_width"] and len(units) > 1:
        warnings.warn(
            f"a study has one target width, and its answers are in different units ({', '.join(units)}): the width"
            f" {settings.target_width:g} may be narrow for one unit and wide for another, and the narrow one takes most"
            " observations; make one study for each unit",
            MixedUnitsWarning,
            stacklevel=2,
        )


def shares(delta: float, chains: int, number: int) -> list[float]:
    """The share of δ for each of a chain's questions: δ/K for the chain, of which the j-th question has 1/(j(j+1)).

    The last question has the rest, because no question is registered later.
    """
    part = delta / chains
    return [part / (j * (j + 1)) for j in range(1, number)] + [part / number]


def question_records(
    asked: Mapping[str, Sequence[Question]], delta: float, chains: Sequence[str], states: Mapping[str, tuple[Any, bool]]
) -> list[QuestionRecord]:
    """The records of new questions. ``states``: chain → its states, and whether there may be others."""
    found: list[QuestionRecord] = []
    for number, name in enumerate(chains):
        questions = asked.get(name)
        if questions is None:
            continue
        known, is_open = states[name]
        for question, share in zip(questions, shares(delta, len(asked), len(questions)), strict=True):
            if is_open and question.complete:
                raise InputError(
                    f"'complete' in the question {str(question)!r} says that no other states than those seen will come,"
                    f" and chain {name!r} has shown none yet: give the chain its states instead of opening it"
                )
            try:
                low, high = Running(question, known, share, open_states=is_open).ends
            except InputError as error:
                raise InputError(f"the question {str(question)!r} cannot be put to chain {name!r}: {error}") from None
            found.append(QuestionRecord(len(found) + 1, number, str(question), share, low, high))
    return found


# -- the questions of an open study


class Answering:
    """The questions of an open study: the state of their replays, and when their answers are due."""

    def __init__(self, labels: Labels) -> None:
        self._labels = labels
        self._readings = Readings()
        #: Question → its replay over the known states.
        self._running: dict[int, Running] = {}
        #: Question → why it has no answer, if the data contradict what it declares.
        self._refused: dict[int, str] = {}

    def look(self, transaction: Transaction, live: LiveIndex, chain: ChainRecord) -> float:
        """Computes the answers about a chain. Returns how far they are from the study's aim, in transitions."""
        study = transaction.study
        cards = self._readings.of(transaction, chain)
        records = transaction.questions(chain)
        for record in records:
            found = self._answered(transaction, chain, record, cards)
            record.lower, record.upper = float(found.lower), float(found.upper)
            record.estimate = None if found.estimate is None else float(found.estimate)
            record.episodes, record.notes = found.episodes, "\n".join(found.notes)
            record.transitions = chain.transitions
            self._wait(transaction, chain, record, cards, found)
            if study.worst is None:
                met = _is_met(study, record)
                study.unmet += record.met - met
                record.met = met
            transaction.save_question(record)
        if study.worst is not None:
            self._compare(transaction, live, chain)
        if _aim.aims_at_answers(study) and not chain.aside:
            self._set_aside(transaction, chain, records, cards)
        between = None if study.worst is None else _between(transaction.questions(), study.worst)
        return max(_ratio(study, record, between) for record in records)

    def _answered(
        self, transaction: Transaction, chain: ChainRecord, record: QuestionRecord, cards: ChainCards
    ) -> Answer:
        """The answer at this moment; one without bounds if the data contradict the question or the assumptions."""
        running = self._running_of(transaction, chain, record)
        self._refused.pop(record.number, None)
        try:
            if cards.unordered is None:
                return running.answer(cards.decks, cards.lost)
            paths = _paths.chain_paths(transaction, chain, self._labels)
            return unchecked(paths, running.question, delta=record.delta, method=None, asked=0, losses="checked")
        except InputError as error:
            self._refused[record.number] = str(error)
            return running.unknown(str(error))

    def _running_of(self, transaction: Transaction, chain: ChainRecord, record: QuestionRecord) -> Running:
        known = self._labels.all(transaction, chain)
        states = range(known) if isinstance(known, int) else known
        running = self._running.get(record.number)
        # A failed transaction may have discovered other states. So a replay is kept only for the same known states.
        if running is None or running.states != states:
            running = Running(parse(record.line), states, record.delta, open_states=chain.open)
            self._running[record.number] = running
        return running

    def _wait(
        self,
        transaction: Transaction,
        chain: ChainRecord,
        record: QuestionRecord,
        cards: ChainCards,
        found: Answer,
    ) -> None:
        """Notes which state the replay waits for, and since when."""
        waits = None
        if found.waiting_for is not None:
            waits = self._labels.position(transaction, chain, found.waiting_for)
        number = 0 if waits is None or cards.unordered is not None else int(cards.decks.count[waits])
        if (waits, number) != (record.waits, record.cards):
            record.waits, record.cards, record.since = waits, number, chain.transitions

    def _set_aside(
        self, transaction: Transaction, chain: ChainRecord, records: Sequence[QuestionRecord], cards: ChainCards
    ) -> None:
        """Sets a chain aside that would take the whole budget, because more of its draws settle no question.

        An awaited state is not left any more, or the data contradict what a question declares.
        """
        for record in records:
            if record.number in self._refused:
                _transitions.set_aside(transaction, chain, self._refused[record.number])
                return
            if record.met or record.waits is None:
                continue
            if cards.unordered is None and cards.decks.ends[record.waits] == BLOCKED:
                state = shown(self._labels.label(transaction, chain, record.waits))
                why = (
                    f"a question waits for an exit of {state}, of which a draw was given up when a later one was known"
                )
                _transitions.set_aside(transaction, chain, why)
                return
            waited = chain.transitions - record.since
            if waited >= _most_waited(chain):
                state = shown(self._labels.label(transaction, chain, record.waits))
                why = f"a question waits for an exit of {state}, and the last {waited:,} transitions brought none"
                _transitions.set_aside(transaction, chain, why)
                return

    def _compare(self, transaction: Transaction, live: LiveIndex, looked: ChainRecord) -> None:
        """Checks whether one chain is known to be the worst. Questions of chains that cannot be the worst are met.

        ``looked``: the chain whose answer is new. The others are placed again here.
        """
        study = transaction.study
        records = transaction.questions()
        left = contenders(records, study.worst == "highest")
        study.unmet = len(left) - 1
        between = _between(records, str(study.worst))
        for record in records:
            met = record.number not in left
            if met != record.met:
                record.met = met
                transaction.save_question(record)
            chain = transaction.numbered(record.chain)
            if chain is not looked and chain.looked:
                _aim.set_ratio(study, live, chain, _ratio(study, record, between))
                transaction.save(chain)

    def answered(self, transaction: Transaction, chain: ChainRecord, question: Question) -> tuple[Answer | None, bool]:
        """The answer to a registered question at this moment; None if the question is not registered.

        Also whether it says something else of the study's aim than the stored one.
        """
        line = str(question)
        for record in transaction.questions(chain):
            if record.line == line:
                found = self._answered(transaction, chain, record, self._readings.of(transaction, chain))
                return found, _is_news(transaction.study, record, found)
        return None, False

    def growth(self, transaction: Transaction, width: float | None) -> "Growth":
        """The factor by which each chain must grow until its questions have this width, or meet the study's aim."""
        study = transaction.study
        if not study.questions:
            raise InputError("a plan for answers needs questions, and the study has none")
        width = study.target_width if width is None else width
        limit = study.limit
        records = transaction.questions()
        if width is not None:
            aim = f"answers at most {width:g} wide"
        elif limit is not None:
            aim = f"knowing of every answer whether it is below {limit:g}"
        elif study.worst is not None:
            aim, limit = f"knowing which chain has the {study.worst} answer", _between(records, study.worst)
        else:
            raise InputError("a plan for answers needs a target width: none was given, and the study has no aim")

        def good(lower: float, upper: float) -> bool:
            if width is not None:
                return upper - lower <= width
            return limit is not None and (upper < limit or lower >= limit)

        found, waiting = {}, {}
        for record in records:
            chain = transaction.numbered(record.chain)
            cards = self._readings.of(transaction, chain)
            running = self._running_of(transaction, chain, record)
            factor = math.nan if cards.unordered is not None else running.growth(cards.decks, good, width)
            if record.waits is not None:
                waiting[chain.name, record.line] = self._labels.label(transaction, chain, record.waits)
                if chain.transitions - record.since >= _most_waited(chain):
                    factor = math.inf
            found[chain.name, record.line] = factor
        return Growth(aim, found, waiting)

    def lines(self, transaction: Transaction) -> list[QuestionLine]:
        """The questions with their answers as they are stored."""
        repeated = repeated_chains(transaction)
        checks = _evidence.stored(transaction)
        found = []
        for record in transaction.questions():
            chain = transaction.numbered(record.chain)
            doubt = None if checks is None else checks.doubt(chain.name)
            doubt = Doubt("repeated", repeated[chain.number]) if chain.number in repeated else doubt
            found.append(self._line(transaction, chain, record, doubt))
        return found

    def _line(
        self, transaction: Transaction, chain: ChainRecord, record: QuestionRecord, doubt: Doubt | None
    ) -> QuestionLine:
        """``doubt``: why no bound of this chain holds; None if they hold."""
        waits: Hashable | None = None
        if record.waits is not None:
            waits = self._labels.label(transaction, chain, record.waits)
        notes = tuple(record.notes.split("\n")) if record.notes else ()
        shown = {"chain": chain.name, "question": record.line, "waiting_for": waits, "holds": doubt is None}
        if doubt is not None:
            return QuestionLine.of(record, **shown, met=False, notes=(doubt.sentence,), code=doubt.code)
        return QuestionLine.of(record, **shown, notes=notes, code=None)


def _most_waited(chain: ChainRecord) -> float:
    """After this many transitions without an exit of the awaited state, none is expected."""
    return max(MOST_WAITED, MOST_WAITED_SHARE * chain.transitions)


class Growth(NamedTuple):
    """The factors by which chains must grow, as far as they can be predicted."""

    #: The aim, in words.
    aim: str
    #: (chain, question) → the factor; and the state for whose exit it waits, if there is one.
    growth: dict[tuple[str, str], float]
    waiting: dict[tuple[str, str], Hashable]


def _between(records: Sequence[QuestionRecord], worst: str) -> float | None:
    """The middle between the worst estimate and the next one; None before there are two of them."""
    known = sorted((r.estimate for r in records if r.estimate is not None), reverse=worst == "highest")
    return (known[0] + known[1]) / 2 if len(known) > 1 else None


def contenders(records: Sequence[QuestionRecord], highest: bool) -> set[int]:
    """The questions whose answers may be the worst: no other answer is known to be worse."""
    if highest:
        limit = max(record.lower for record in records)
        return {record.number for record in records if record.upper >= limit}
    limit = min(record.upper for record in records)
    return {record.number for record in records if record.lower <= limit}


def _is_met(study: StudyRecord, record: QuestionRecord) -> bool:
    if study.target_width is not None:
        return record.width <= study.target_width
    if study.limit is not None:
        return record.upper < study.limit or record.lower >= study.limit
    return False


def _is_news(study: StudyRecord, record: QuestionRecord, found: Answer) -> bool:
    """Whether an answer of this moment says something else of the study's aim than the stored one."""
    if not _aim.aims_at_answers(study) or study.stop_reason is not None or study.spoilt:
        return False
    if study.worst is not None:  # which chain is the worst depends on all answers
        return (found.lower, found.upper) != (record.lower, record.upper)
    return _is_met(study, replace(record, lower=float(found.lower), upper=float(found.upper))) != record.met


def _ratio(study: StudyRecord, record: QuestionRecord, between: float | None) -> float:
    """How far an answer is from the study's aim, in transitions: the squared ratio of a width (MATH §16).

    For a decision, the width is the distance from the estimate to the end that must not reach the limit. ``between``:
    what stands for the limit if the worst chain is wanted.
    """
    limit = between if study.limit is None else study.limit
    if study.target_width is not None:
        found = (record.width / study.target_width) ** 2
    elif limit is None or record.estimate is None or record.estimate == limit:
        found = math.inf
    else:
        far = record.upper if record.estimate < limit else record.lower
        found = ((far - record.estimate) / (limit - record.estimate)) ** 2
    return min(found, 1.0) if record.met else max(found, ABOVE)


def check_new_aim(study: StudyRecord, target_loss: Any, target_width: float | None) -> None:
    """Raises ``InputError`` for a new aim of another kind."""
    if target_width is not None and not study.questions:
        raise InputError("target_width is about the answers to questions, and the study has none")
    by_answers = _aim.aims_at_answers(study)
    if (target_width is not None and target_loss is not None) or (target_loss is not None and by_answers):
        raise InputError("a study aims at one thing: at a target loss, or at answers to its questions")
    if target_width is not None and study.target_loss is not None:
        raise InputError("a study aims at one thing, and this one at a target loss")


def aim_at_width(transaction: Transaction, live: LiveIndex, width: float) -> None:
    """Gives a study another aim: every answer is at most ``width`` wide. Its chains must be looked at afterwards."""
    study = transaction.study
    study.target_width, study.limit, study.worst = width, None, None
    records = transaction.questions()
    for record in records:
        record.met = False
        transaction.save_question(record)
    study.unmet = len(records)
    _aim.begin_all(transaction, live)
