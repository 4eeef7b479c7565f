"""A study in memory: the records themselves, and a heap in place of a database's indexed column.

This is the inner loop of every study without a file, so it allocates as little as possible for each transaction.
"""

import string
import time
from array import array
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields
from heapq import nsmallest
from itertools import islice
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from ..protocol import ORDERS, Result
from ..records import (
    AnswerLine,
    ChainRecord,
    Content,
    Event,
    HistoryLine,
    Observation,
    Outline,
    PathRecord,
    Prefix,
    QuestionRecord,
    RowRecord,
    StudyRecord,
    Twins,
)
from .heap import Heap

__all__ = ["MemoryStore"]

_STUDY = [field.name for field in fields(StudyRecord) if field.name not in StudyRecord.FIXED]
_CHAIN = [field.name for field in fields(ChainRecord) if field.name not in ChainRecord.FIXED]
_PATH = [field.name for field in fields(PathRecord) if field.name not in PathRecord.FIXED]
_QUESTION = [field.name for field in fields(QuestionRecord) if field.name not in QuestionRecord.FIXED]
_question_values = attrgetter(*_QUESTION)
_study_values, _chain_values, _path_values = attrgetter(*_STUDY), attrgetter(*_CHAIN), attrgetter(*_PATH)

# SQLite ignores the case of ASCII letters only, so the search in memory does the same.
_LOWER = {ord(letter): letter.lower() for letter in string.ascii_uppercase}


class MemoryStore:
    """The store, which is also its own transaction: there is nothing to commit.

    A writing transaction keeps a copy of each record before it hands the record out, and puts it back after an error.
    """

    read_only = False
    is_shared = False

    def __init__(self, content: Content) -> None:
        self.study = content.study
        self.floor = content.floor
        self.clock = time.time
        self.now = self.clock()
        self.chains = list(content.chains)
        self._numbers = {chain.name: chain.number for chain in self.chains}
        self._rows: dict[int, dict[int, RowRecord]] = {k: dict(found) for k, found in content.rows.items()}
        self._prior = {k: {x: dict(row.counts) for x, row in found.items()} for k, found in content.rows.items()}
        self._labels: dict[int, list[Hashable]] = {k: list(found) for k, found in content.open_labels.items()}
        self._positions = {k: {label: x for x, label in enumerate(found)} for k, found in self._labels.items()}
        self._order = Heap([-chain.index if _is_free(chain) else None for chain in self.chains])
        fewest = [float(chain.transitions) if _is_free(chain) else None for chain in self.chains]
        self._fewest = Heap(fewest) if self.floor else None
        #: The certificates of the chains that are not set aside; made when a study with a target first asks.
        self._certificates: Heap | None = None
        #: Chain → its paths, by number − 1; and the paths under a lease.
        self._paths: dict[int, list[PathRecord]] = {}
        self._held: dict[tuple[int, int], PathRecord] = {}
        #: Chain → length and digest of a prefix → the paths that begin with it.
        self._prefixes: dict[int, dict[tuple[int, int], list[int]]] = {}
        #: The log: the chain, the path, the step, the state, the time, the issue and the teller of each observation.
        self._log: tuple[array[int], array[int], array[int], array[int], array[float], array[int], array[int]] = (
            array("q"), array("q"), array("q"), array("q"), array("d"), array("q"), array("q"),
        )  # fmt: skip
        #: Chain → the places of its observations in the log.
        self._places: dict[int, array[int]] = {}
        self._events: list[Event] = []
        self._history: list[HistoryLine] = []
        self._evidence: dict[int | None, bytes] = {}
        #: The questions, and by chain; and the lines of their answers, by question.
        self._questions = list(content.questions)
        self._asked: dict[int, list[QuestionRecord]] = {}
        for question in self._questions:
            self._asked.setdefault(question.chain, []).append(question)
        self._answers: dict[int, list[AnswerLine]] = {question.number: [] for question in self._questions}
        self._reading, self._writing = nullcontext(self), _Writing(self)
        #: The copies of the running writing transaction.
        self._undo: _Writing | None = None

    def reading(self) -> AbstractContextManager["MemoryStore"]:
        self.now = self.clock()
        return self._reading

    def writing(self) -> AbstractContextManager["MemoryStore"]:
        self.now = self.clock()
        return self._writing

    def read(self, look: Callable[..., Result], arguments: Sequence[Any]) -> Result:
        self.now = self.clock()
        return look(self, *arguments)

    def write(self, chain: str, path: int | None, change: Callable[..., Result], arguments: Sequence[Any]) -> Result:
        self.now = self.clock()
        with self._writing:
            return change(self, *arguments)

    def notes(self) -> tuple[str, ...]:
        return ()

    def close(self) -> None:
        """Does nothing: a study in memory holds nothing open."""

    # -- reading

    def chain(self, name: str) -> ChainRecord | None:
        number = self._numbers.get(name)
        return None if number is None else self.numbered(number)

    def expect(self, names: Iterable[str]) -> None:
        """Does nothing: every chain is in memory."""

    def expect_rows(self, rows: Iterable[tuple[int, int]]) -> None:
        """Does nothing: every row is in memory."""

    def numbered(self, number: int) -> ChainRecord:
        chain = self.chains[number]
        undo = self._undo
        if undo is not None and number not in undo.chains:
            undo.chains[number] = _chain_values(chain)
        return chain

    def every(self) -> Iterator[ChainRecord]:
        return map(self.numbered, range(len(self.chains)))

    def row(self, chain: ChainRecord, position: int) -> RowRecord:
        rows = self._rows.get(chain.number)
        row = None if rows is None else rows.get(position)
        if row is None:
            return RowRecord()
        undo = self._undo
        if undo is not None and id(row) not in undo.counts:
            undo.counts[id(row)] = row, row.counts.copy(), row.discoveries.copy() if chain.open else None
            undo.keep_row(row)
        return row

    def rows(self, chain: ChainRecord) -> Mapping[int, RowRecord]:
        found = dict(sorted(self._rows.get(chain.number, {}).items()))
        if self._undo is not None:
            for row in found.values():
                self._undo.keep_row(row)
        return found

    def position(self, chain: ChainRecord, label: Hashable) -> int | None:
        return self._positions[chain.number].get(label)

    def labels(self, chain: ChainRecord) -> tuple[Hashable, ...]:
        return tuple(self._labels[chain.number])

    def prior(self, chain: ChainRecord) -> Mapping[int, Mapping[int, int]]:
        return self._prior.get(chain.number, {})

    def top(self, number: int, below: float | None = None) -> list[ChainRecord]:
        if below is None:
            return self._firsts(self._order, number)
        smaller = (chain for chain in self.chains if _is_free(chain) and chain.index < below)
        return [self.numbered(c.number) for c in nsmallest(number, smaller, key=lambda c: (-c.index, c.number))]

    def least(self, number: int) -> list[ChainRecord]:
        return [] if self._fewest is None else self._firsts(self._fewest, number)

    def _firsts(self, heap: Heap, number: int) -> list[ChainRecord]:
        if number == 1:
            first = heap.first()
            return [] if first is None else [self.numbered(first)]
        return [self.numbered(k) for k in heap.firsts(number)]

    def path(self, chain: ChainRecord, number: int) -> PathRecord | None:
        paths = self._paths.get(chain.number, ())
        return self._given(paths[number - 1]) if 0 < number <= len(paths) else None

    def _given(self, path: PathRecord) -> PathRecord:
        undo = self._undo
        if undo is not None and id(path) not in undo.paths:
            undo.paths[id(path)] = path, _path_values(path)
        return path

    def open_path(self, chain: ChainRecord, worker: str) -> PathRecord | None:
        given_back = None
        for path in reversed(self._paths.get(chain.number, ())):
            if path.worker != worker:
                continue
            if path.steps == 0 and path.token is None and not path.ended:
                given_back = given_back or path
                continue
            if given_back is None:
                return None if path.ended else self._given(path)
            return self._given(given_back if path.ended or path.token is not None else path)
        return None if given_back is None else self._given(given_back)

    def paths(self, chain: ChainRecord) -> Iterator[PathRecord]:
        return iter(self._paths.get(chain.number, ()))

    def held(self, until: float | None = None) -> list[PathRecord]:
        if not self._held:
            return []
        found = [p for p in self._held.values() if until is None or (p.expires is not None and p.expires <= until)]
        found.sort(key=lambda path: (path.expires, path.chain, path.number))
        return [self._given(path) for path in found]

    def drawing(self) -> Iterator[PathRecord]:
        return (path for _, paths in sorted(self._paths.items()) for path in paths if path.issued)

    def twins(self) -> Iterator[Twins]:
        found = []
        for chain, kept in self._prefixes.items():
            for (length, _), paths in kept.items():
                first, *others = sorted(paths)
                found += [Twins(chain, first, path, length) for path in others]
        return iter(sorted(found, key=itemgetter(0, 2, 3)))

    def twin(self, path: PathRecord) -> int | None:
        alike = self._prefixes.get(path.chain, {}).get((path.steps, path.digest), ())
        return min((other for other in alike if other != path.number), default=None)

    def prefixes(self, chain: ChainRecord) -> Iterator[Prefix]:
        kept = self._prefixes.get(chain.number, {})
        return iter(sorted(Prefix(chain.number, *begun, path) for begun, paths in kept.items() for path in paths))

    def walk(self, chain: ChainRecord, path: int, steps: int) -> Iterator[int]:
        _, paths, _, states, *_ = self._log
        walked = (states[place] for place in self._places.get(chain.number, ()) if paths[place] == path)
        return islice(walked, steps)

    def worst(self, *, aside: bool = False) -> float:
        if aside:
            return max((chain.certificate for chain in self.chains if chain.aside), default=0.0)
        if self._certificates is None:
            self._certificates = Heap([None if chain.aside else -chain.certificate for chain in self.chains])
        first = self._certificates.first()
        return 0.0 if first is None else self.chains[first].certificate

    def stale(self) -> Iterator[ChainRecord]:
        return (self.numbered(chain.number) for chain in self.chains if chain.certified < chain.transitions)

    def observation(self, path: PathRecord, step: int) -> Observation | None:
        lines = self.log(self.chains[path.chain], 0)
        return next((line for line in lines if (line.path, line.step) == (path.number, step)), None)

    def log(self, chain: ChainRecord | None, after: int) -> Iterator[Observation]:
        if chain is None:
            return map(self._line, range(after, len(self._log[0])))
        places = self._places.get(chain.number, ())
        return map(self._line, places[bisect_left(places, after) :])

    def draws(self, chain: ChainRecord | None, after: int) -> npt.NDArray[np.int64]:
        chains, paths, steps, states, _, issues, _ = (np.array(column, dtype=np.int64) for column in self._log)
        places = np.arange(after, len(chains)) if chain is None else np.array(self._places.get(chain.number, ()), int)
        places = places[places >= after]
        return np.stack([places + 1, *(column[places] for column in (chains, paths, steps, states, issues))])

    def _line(self, place: int) -> Observation:
        chain, path, step, state, moment, issued, teller = (column[place] for column in self._log)
        return Observation(place + 1, int(chain), int(path), int(step), int(state), moment, int(issued), int(teller))

    def history(self, chain: ChainRecord | None, after: int) -> Iterator[HistoryLine]:
        number = None if chain is None else chain.number
        return (line for line in self._history[after:] if line.chain == number)

    def questions(self, chain: ChainRecord | None = None) -> list[QuestionRecord]:
        found = list(self._questions) if chain is None else self._asked.get(chain.number, [])
        if self._undo is not None:
            for question in found:
                self._undo.questions.setdefault(question.number, (question, _question_values(question)))
        return found

    def answer_lines(self, question: int, after: int) -> Iterator[AnswerLine]:
        return (line for line in self._answers[question] if line.number > after)

    def events(self, after: int) -> Iterator[Event]:
        return iter(self._events[after:])

    def kept(self, chain: int | None) -> bytes | None:
        return self._evidence.get(chain)

    def listed(
        self, search: str, order: str, descending: bool, offset: int, limit: int
    ) -> tuple[int, list[ChainRecord]]:
        wanted = search.translate(_LOWER)
        found = [chain for chain in self.chains if wanted in chain.name.translate(_LOWER)]
        found.sort(key=attrgetter(ORDERS[order]), reverse=descending)  # stable: equal ones stay in order of number
        return len(found), found[offset : offset + limit]

    def outlines(self) -> Iterator[Outline]:
        return (Outline(c.size, c.open, c.weight, c.prior > 0) for c in self.chains)

    def check_whole(self) -> None:
        """Does nothing: memory is assumed to be sound."""

    # -- changing

    def save(self, chain: ChainRecord) -> None:
        number = chain.number
        free = _is_free(chain)
        self._order.set(number, -chain.index if free else None)
        if self._fewest is not None:
            self._fewest.set(number, float(chain.transitions + chain.pending) if free else None)
        if self._certificates is not None:
            self._certificates.set(number, None if chain.aside else -chain.certificate)

    def save_row(self, chain: ChainRecord, position: int, row: RowRecord) -> None:
        rows = self._rows.get(chain.number)
        if rows is None:
            rows = self._rows[chain.number] = {}
        before = rows.get(position)
        if before is not row:
            if self._undo is not None:
                self._undo.replaced.append((rows, position, before))
            rows[position] = row

    def discover(self, chain: ChainRecord, position: int, label: Hashable) -> None:
        self._labels[chain.number].append(label)
        self._positions[chain.number][label] = position

    def save_path(self, path: PathRecord) -> None:
        if not path.stored:
            path.stored = True
            self._paths.setdefault(path.chain, []).append(path)
        if path.token is not None:
            self._held[path.chain, path.number] = path
        elif self._held:
            self._held.pop((path.chain, path.number), None)

    def keep_prefix(self, path: PathRecord) -> None:
        self._prefixes.setdefault(path.chain, {}).setdefault((path.steps, path.digest), []).append(path.number)

    def append(self, path: PathRecord, issued: int) -> None:
        chains, paths, steps, states, times, issues, tellers = self._log
        places = self._places.get(path.chain)
        if places is None:
            places = self._places[path.chain] = array("q")
        places.append(len(chains))
        chains.append(path.chain)
        paths.append(path.number)
        steps.append(path.steps)
        states.append(path.last)  # type: ignore[arg-type]
        times.append(self.now)
        issues.append(issued)
        tellers.append(path.teller)

    def draw(self, chain: ChainRecord | None, certificate: float, variability: float) -> None:
        study = self.study
        study.lines += 1
        number, own = (None, study.observations) if chain is None else (chain.number, chain.observations)
        line = HistoryLine(study.lines, number, study.observations, self.now, own, certificate, variability)
        self._history.append(line)

    def keep(self, chain: int | None, content: bytes) -> None:
        if self._undo is not None:
            self._undo.kept.setdefault(chain, self._evidence.get(chain))
        self._evidence[chain] = content

    def save_question(self, question: QuestionRecord) -> None:
        study = self.study
        study.answers += 1
        ends = question.lower, question.upper, question.estimate
        line = AnswerLine(study.answers, question.number, study.observations, self.now, *ends)
        self._answers[question.number].append(line)

    def happened(self, kind: str, chain: ChainRecord | None = None, **detail: Any) -> None:
        self.study.events += 1
        number = None if chain is None else chain.number
        self._events.append(Event(self.study.events, self.now, kind, number, detail))

    def _shorten(self, changed: Iterable[int]) -> None:
        """Removes the additions of a transaction. The totals in the records say how long everything was before."""
        for column in self._log:
            del column[self.study.observations :]
        del self._events[self.study.events :]
        del self._history[self.study.lines :]
        for lines in self._answers.values():
            while lines and lines[-1].number > self.study.answers:
                lines.pop()
        for number in changed:
            chain = self.chains[number]
            if number in self._places:
                del self._places[number][chain.observations :]
            if number in self._paths:
                del self._paths[number][chain.paths :]
            if number in self._prefixes:
                steps = {path.number: path.steps for path in self._paths.get(number, ())}
                for begun, paths in list(self._prefixes[number].items()):
                    left = [path for path in paths if begun[0] <= steps.get(path, 0)]
                    if left:
                        self._prefixes[number][begun] = left
                    else:
                        del self._prefixes[number][begun]
            if chain.open:
                for label in self._labels[number][chain.size :]:
                    self._positions[number].pop(label, None)
                del self._labels[number][chain.size :]
            self.save(chain)


class _Writing:
    """A writing transaction: copies of the records as they were when the transaction first handed them out."""

    __slots__ = ("_rows", "_store", "_study", "chains", "counts", "kept", "paths", "questions", "replaced")

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._study: tuple[Any, ...] = ()
        #: Chain number → the fields of its record.
        self.chains: dict[int, tuple[Any, ...]] = {}
        #: id of a path → the path and its fields.
        self.paths: dict[int, tuple[PathRecord, tuple[Any, ...]]] = {}
        #: Question number → the question and its fields.
        self.questions: dict[int, tuple[QuestionRecord, tuple[Any, ...]]] = {}
        #: id of a row → the row and the fields that are replaced when it changes.
        self._rows: dict[int, tuple[RowRecord, tuple[Any, ...]]] = {}
        #: id of a row → the row and its dictionaries, which are changed in place.
        self.counts: dict[int, tuple[RowRecord, dict[int, int], dict[int, tuple[int, int, int]] | None]] = {}
        #: Rows that were added or replaced: where, at which position, and what was there.
        self.replaced: list[tuple[dict[int, RowRecord], int, RowRecord | None]] = []
        #: Chain → the standing of its checks.
        self.kept: dict[int | None, bytes | None] = {}

    def __enter__(self) -> MemoryStore:
        store = self._store
        self._study = _study_values(store.study)
        store._undo = self
        return store

    def keep_row(self, row: RowRecord) -> None:
        if id(row) not in self._rows:
            self._rows[id(row)] = row, (row.exits, row.squares, row.terms, row.stale)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._store._undo = None
        if kind is not None:
            self._roll_back()
        for copies in (self.chains, self.paths, self._rows, self.counts, self.replaced, self.questions, self.kept):
            if copies:
                copies.clear()

    def _roll_back(self) -> None:
        store = self._store
        _put_back(store.study, _STUDY, self._study)
        for rows, position, before in reversed(self.replaced):
            if before is None:
                rows.pop(position, None)
            else:
                rows[position] = before
        for row, values in self._rows.values():
            row.exits, row.squares, row.terms, row.stale = values
        for row, counts, discoveries in self.counts.values():
            row.counts.clear()  # in place, because the row's view reads the same dictionary
            row.counts.update(counts)
            if discoveries is not None:
                row.discoveries = discoveries
        for path, values in self.paths.values():
            _put_back(path, _PATH, values)
        for question, values in self.questions.values():
            _put_back(question, _QUESTION, values)
        for number, values in self.chains.items():
            _put_back(store.chains[number], _CHAIN, values)
        for chain, content in self.kept.items():
            store._evidence.pop(chain, None)
            if content is not None:
                store._evidence[chain] = content
        store._shorten(self.chains)
        held = store._held | {(path.chain, path.number): path for path, _ in self.paths.values()}
        store._held = {
            (chain, number): path
            for (chain, number), path in held.items()
            if path.token is not None and number <= store.chains[chain].paths
        }


def _is_free(chain: ChainRecord) -> bool:
    """Whether `top` and `least` know the chain."""
    return not (chain.aside or chain.blocked or chain.resting)


def _put_back(record: Any, names: list[str], values: tuple[Any, ...]) -> None:
    for name, value in zip(names, values, strict=True):
        setattr(record, name, value)
