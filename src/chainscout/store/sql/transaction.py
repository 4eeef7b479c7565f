"""A study in a database. A transaction reads what it must, changes it in memory, and writes it before the commit."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from operator import itemgetter
from typing import Any

from sqlalchemy.sql import Executable

from ...errors import FileError
from ..records import (
    AnswerLine,
    ChainRecord,
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
from . import codec, statements
from .database import Database
from .statements import Bulk

__all__ = ["SqlStore", "SqlTransaction"]

#: Rows fetched at a time where all of them are read.
_PAGE = 1000
_chain_key, _path_key = itemgetter("number"), itemgetter("chain", "number")
_seldom_of_chain = itemgetter(*statements.SELDOM_OF_CHAIN)
_seldom_of_path = itemgetter(*statements.SELDOM_OF_PATH)
#: How many records a store keeps between transactions.
_MOST_KEPT = 50_000


class _Cache:
    """The records that transactions have read. They are still true while nobody else has changed the study."""

    def __init__(self) -> None:
        #: `StudyRecord.changes` when the records were read; −1: nothing is kept.
        self.changes = -1
        self.chains: dict[int, ChainRecord] = {}
        self.numbers: dict[str, int] = {}
        self.rows: dict[tuple[int, int], RowRecord] = {}
        self.paths: dict[tuple[int, int], PathRecord] = {}
        #: What the database has in the columns that seldom change, as far as it is known.
        self.seldom_of_chains: dict[int, tuple[Any, ...]] = {}
        self.seldom_of_paths: dict[tuple[int, int], tuple[Any, ...]] = {}

    def move_to(self, changes: int) -> None:
        """Forgets the records if the study has changed since, or if there are too many."""
        if changes != self.changes or len(self.chains) + len(self.rows) + len(self.paths) > _MOST_KEPT:
            self.forget()
            self.changes = changes

    def forget(self) -> None:
        """The next transaction reads everything again."""
        self.changes = -1
        self.chains.clear()
        self.numbers.clear()
        self.rows.clear()
        self.paths.clear()
        self.seldom_of_chains.clear()
        self.seldom_of_paths.clear()


class SqlTransaction:
    """One transaction: each record is read once, and everything that changed is written together."""

    def __init__(self, store: "SqlStore", study: StudyRecord) -> None:
        self.study = study
        self.now = store.database.now()
        self._store = store
        self._database = store.database
        self._before = codec.study_values(study)
        cache = self._cache = store.cache
        cache.move_to(study.changes)
        self._chains, self._numbers, self._rows, self._paths = cache.chains, cache.numbers, cache.rows, cache.paths
        self._saved = False
        self._changed: dict[int, ChainRecord] = {}
        self._changed_rows: dict[tuple[int, int], RowRecord] = {}
        self._changed_paths: dict[tuple[int, int], PathRecord] = {}
        self._lines: list[dict[str, Any]] = []
        self._prefixes: list[dict[str, Any]] = []
        self._history: list[dict[str, Any]] = []
        self._answers: list[dict[str, Any]] = []
        self._changed_questions: dict[int, QuestionRecord] = {}

    def _all(self, statement: Executable, **parameters: Any) -> list[Any]:
        """What a statement finds, with all changes so far in the database."""
        self._flush()
        return list(self._database.run(statement, parameters).fetchall())

    def _pages(self, statement: Executable, key: int, after: int, **parameters: Any) -> Iterator[list[Any]]:
        """What a statement finds after a number, a page at a time. ``key``: the place of the number in a row."""
        while True:
            found = self._all(statement, after=after, limit=_PAGE, **parameters)
            yield found
            if len(found) < _PAGE:
                return
            after = found[-1][key]

    # -- chains

    def chain(self, name: str) -> ChainRecord | None:
        number = self._numbers.get(name)
        if number is not None and number in self._chains:
            return self._chains[number]
        if not self._database.can_store(name):
            return None
        found = self._database.run(statements.chain_by_name, {"name": name}).fetchone()
        return None if found is None else self._known(found)

    def expect(self, names: Iterable[str]) -> None:
        new = (name for name in names if self._numbers.get(name) not in self._chains)
        wanted = [{"name": name} for name in new if self._database.can_store(name)]
        for values in self._database.find_many(statements.chain_by_name, wanted):
            self._known(values)

    def numbered(self, number: int) -> ChainRecord:
        if number in self._chains:
            return self._chains[number]
        found = self._database.run(statements.chain_by_number, {"number": number}).fetchone()
        if found is None:
            raise FileError(f"the study is damaged: chain {number} is missing")
        return self._known(found)

    def _known(self, values: Any) -> ChainRecord:
        """The one record of a chain, however often its row is read."""
        number = values[0]
        known = self._chains.get(number)
        if known is None:
            known = codec.chain_record(values)
            known.labels = self._store.label_list(known.label_list)
            self._chains[number] = known
            self._numbers[known.name] = number
        return known

    def every(self) -> Iterator[ChainRecord]:
        return self._by_number(statements.chains_after)

    def stale(self) -> Iterator[ChainRecord]:
        return self._by_number(statements.stale_after)

    def _by_number(self, statement: Executable) -> Iterator[ChainRecord]:
        for page in self._pages(statement, 0, -1):
            yield from map(self._known, page)
            if len(page) == _PAGE and not self._changed:  # a pass over a million chains keeps none of them
                self._chains.clear()

    def top(self, number: int) -> list[ChainRecord]:
        if number == 1 and self._database.foreseen is not None:  # a transaction that reads, so nothing has changed
            return [self._known(values) for values in self._database.foreseen]
        return [self._known(values) for values in self._all(statements.top, limit=number)]

    def least(self, number: int) -> list[ChainRecord]:
        return [self._known(values) for values in self._all(statements.least, limit=number)]

    def worst(self, *, aside: bool = False) -> float:
        found = self._all(statements.worst_aside if aside else statements.worst)
        return float(found[0][0]) if found else 0.0

    # -- paths

    def path(self, chain: ChainRecord, number: int) -> PathRecord | None:
        known = self._paths.get((chain.number, number))
        if known is None:
            found = self._database.run(statements.get_path, {"chain": chain.number, "number": number}).fetchone()
            known = None if found is None else self._walked(found)
        return known

    def _walked(self, values: Any) -> PathRecord:
        """The one record of a path, however often its row is read."""
        key = values[0], values[1]
        known = self._paths.get(key)
        if known is None:
            known = self._paths[key] = codec.path_record(values)
        return known

    def open_path(self, chain: ChainRecord, worker: str) -> PathRecord | None:
        found = self._all(statements.latest_path, chain=chain.number, worker=worker)
        latest = self._walked(found[0]) if found else None
        if latest is None or latest.ended:
            return None
        if latest.steps == 0 and latest.token is None:  # it was given back
            found = self._all(statements.latest_used_path, chain=chain.number, worker=worker)
            used = self._walked(found[0]) if found else latest
            return latest if used.ended or used.token is not None else used
        return latest

    def paths(self, chain: ChainRecord) -> Iterator[PathRecord]:
        return map(self._walked, self._all(statements.get_paths, chain=chain.number))

    def held(self, until: float | None = None) -> list[PathRecord]:
        if not self.study.leases:
            return []
        found = self._all(statements.held) if until is None else self._all(statements.expired, until=until)
        return [self._walked(values) for values in found]

    def drawing(self) -> Iterator[PathRecord]:
        return map(self._walked, self._all(statements.drawing))

    def twins(self) -> Iterator[Twins]:
        return (Twins(*found) for found in self._all(statements.twins))

    def prefixes(self, chain: ChainRecord) -> Iterator[Prefix]:
        return (Prefix(*found) for found in self._all(statements.get_prefixes, chain=chain.number))

    def walk(self, chain: ChainRecord, path: int) -> Iterator[int]:
        pages = self._pages(statements.path_log_after, 0, 0, chain=chain.number, path=path)
        return (state for page in pages for _, state in page)

    # -- rows and states

    def row(self, chain: ChainRecord, position: int) -> RowRecord:
        key = chain.number, position
        known = self._rows.get(key)
        if known is None:
            found = self._database.run(statements.get_row, {"chain": key[0], "state": key[1]}).fetchone()
            known = self._rows[key] = RowRecord() if found is None else codec.row_record(found)
        return known

    def expect_rows(self, rows: Iterable[tuple[int, int]]) -> None:
        wanted = [key for key in rows if key not in self._rows]
        self._rows.update((key, RowRecord()) for key in wanted)
        parameters = [{"chain": chain, "state": state} for chain, state in wanted]
        for values in self._database.find_many(statements.get_row, parameters):
            self._rows[values[0], values[1]] = codec.row_record(values)

    def rows(self, chain: ChainRecord) -> Mapping[int, RowRecord]:
        return {values[1]: codec.row_record(values) for values in self._all(statements.get_rows, chain=chain.number)}

    def position(self, chain: ChainRecord, label: Hashable) -> int | None:
        key = {"chain": chain.number, "label": codec.pack_json(label)}  # nothing to flush: `discover` writes at once
        found = self._database.run(statements.get_position, key).fetchone()
        return None if found is None else codec.state_record(found)[0]

    def labels(self, chain: ChainRecord) -> tuple[Hashable, ...]:
        found = [codec.state_record(values) for values in self._all(statements.get_states, chain=chain.number)]
        if [position for position, _ in found] != list(range(chain.size)):
            raise FileError(f"the study is damaged: a state of the chain {chain.name!r} is missing")
        return tuple(label for _, label in found)

    def prior(self, chain: ChainRecord) -> Mapping[int, Mapping[int, int]]:
        return dict(map(codec.prior_record, self._all(statements.get_prior, chain=chain.number)))

    # -- the log and the events

    def observation(self, path: PathRecord, step: int) -> Observation | None:
        found = self._all(statements.get_observation, chain=path.chain, path=path.number, step=step)
        return Observation(*found[0]) if found else None

    def log(self, chain: ChainRecord | None, after: int) -> Iterator[Observation]:
        if chain is None:
            pages = self._pages(statements.log_after, 0, after)
        else:
            pages = self._pages(statements.chain_log_after, 0, after, chain=chain.number)
        return (Observation(*values) for page in pages for values in page)

    def history(self, chain: ChainRecord | None, after: int) -> Iterator[HistoryLine]:
        if chain is None:
            pages = self._pages(statements.history_of_all, 0, after)
        else:
            pages = self._pages(statements.history_after, 0, after, chain=chain.number)
        return (codec.history_line(values) for page in pages for values in page)

    def events(self, after: int) -> Iterator[Event]:
        pages = self._pages(statements.events_after, 0, after)
        return (codec.event_record(*values) for page in pages for values in page)

    def kept(self, chain: int | None) -> bytes | None:
        found = self._all(statements.get_evidence, chain=-1 if chain is None else chain)
        return codec.evidence_record(found[0]) if found else None

    # -- questions and answers

    def questions(self, chain: ChainRecord | None = None) -> list[QuestionRecord]:
        if not self.study.questions:
            return []
        if chain is None:
            found = self._all(statements.get_questions)
        else:
            found = self._all(statements.questions_of, chain=chain.number)
        return [codec.question_record(values) for values in found]

    def answer_lines(self, question: int, after: int) -> Iterator[AnswerLine]:
        pages = self._pages(statements.answers_after, 0, after, question=question)
        return (AnswerLine(*values) for page in pages for values in page)

    # -- what only readers ask

    def listed(
        self, search: str, order: str, descending: bool, offset: int, limit: int
    ) -> tuple[int, list[ChainRecord]]:
        searched = {"pattern": statements.pattern(search)} if search else {}
        statement = statements.LISTINGS[order, descending, bool(search)]
        found = self._all(statement, limit=limit, offset=offset, **searched)
        number = offset + len(found) if search else self.study.chains
        if search and (len(found) == limit or (offset and not found)):
            ((number,),) = self._all(statements.number_found, **searched)
        return number, [self._known(values) for values in found]

    def outlines(self) -> Iterator[Outline]:
        found = self._all(statements.outlines)
        return (Outline(size, bool(is_open), weight, bool(warm)) for size, is_open, weight, warm in found)

    def check_whole(self) -> None:
        self._cache.forget()
        self._store.forget_labels()
        self._database.check_whole()

    # -- changing

    def save(self, chain: ChainRecord) -> None:
        self._changed[chain.number] = chain
        self._saved = True

    def save_row(self, chain: ChainRecord, position: int, row: RowRecord) -> None:
        self._changed_rows[chain.number, position] = row
        self._rows[chain.number, position] = row

    def discover(self, chain: ChainRecord, position: int, label: Hashable) -> None:
        self._database.run(statements.add_state, codec.state_columns(chain.number, position, label))

    def save_path(self, path: PathRecord) -> None:
        self._changed_paths[path.chain, path.number] = path
        self._paths[path.chain, path.number] = path
        self._saved = True

    def keep_prefix(self, path: PathRecord) -> None:
        self._prefixes.append(Prefix(path.chain, path.steps, path.digest, path.number)._asdict())

    def append(self, path: PathRecord, issued: int) -> None:
        values = {
            "number": self.study.observations,
            "chain": path.chain,
            "path": path.number,
            "step": path.steps,
            "state": path.last,
            "time": self.now,
            "issued": issued,
            "teller": path.teller,
        }
        self._lines.append(values)

    def draw(self, chain: ChainRecord | None, certificate: float, variability: float) -> None:
        study = self.study
        study.lines += 1
        number, own = (None, study.observations) if chain is None else (chain.number, chain.observations)
        line = HistoryLine(study.lines, number, study.observations, self.now, own, certificate, variability)
        self._history.append(codec.history_columns(line))

    def save_question(self, question: QuestionRecord) -> None:
        study = self.study
        study.answers += 1
        ends = question.lower, question.upper, question.estimate
        line = AnswerLine(study.answers, question.number, study.observations, self.now, *ends)
        self._answers.append(line._asdict())
        self._changed_questions[question.number] = question
        self._saved = True

    def keep(self, chain: int | None, content: bytes) -> None:
        columns = codec.evidence_columns(chain, content)
        self._database.run(statements.drop_evidence, {"chain": columns["chain"]})
        self._database.run(statements.add_evidence, columns)

    def happened(self, kind: str, chain: ChainRecord | None = None, **detail: Any) -> None:
        self.study.events += 1
        values = {
            "number": self.study.events,
            "time": self.now,
            "kind": kind,
            "chain": None if chain is None else chain.number,
            "detail": codec.pack_json(detail),
        }
        self._database.run(statements.add_event, values)

    def _flush(self) -> None:
        """Writes what was saved, so that the database can search it."""
        database, cache = self._database, self._cache
        if self._changed:
            floor = self._store.floor
            chains = [codec.chain_columns(chain, floor) for chain in self._changed.values()]
            self._run_sparingly(
                statements.set_chain,
                statements.move_chain,
                chains,
                _chain_key,
                _seldom_of_chain,
                cache.seldom_of_chains,
            )
            self._changed.clear()
        if self._changed_paths:
            paths = [(path, codec.path_columns(path)) for path in self._changed_paths.values()]
            database.run_many(statements.add_path, [columns for path, columns in paths if not path.stored])
            stored = [columns for path, columns in paths if path.stored]
            self._run_sparingly(
                statements.set_path, statements.move_path, stored, _path_key, _seldom_of_path, cache.seldom_of_paths
            )
            for path in self._changed_paths.values():
                path.stored = True
            self._changed_paths.clear()
        if self._changed_rows:
            new: list[dict[str, Any]] = []
            old: list[dict[str, Any]] = []
            for (chain, state), row in self._changed_rows.items():
                (old if row.stored else new).append(codec.row_columns(chain, state, row))
                row.stored = True
            database.run_many(statements.add_row, new)
            database.run_many(statements.set_row, old)
            self._changed_rows.clear()
        if self._lines:
            database.run_many(statements.add_observation, self._lines)
            self._lines = []
        if self._prefixes:
            database.run_many(statements.add_prefix, self._prefixes)
            self._prefixes = []
        if self._history:
            database.run_many(statements.add_history, self._history)
            self._history = []
        if self._changed_questions:
            changed = [codec.question_columns(question) for question in self._changed_questions.values()]
            database.run_many(statements.set_question, changed)
            self._changed_questions.clear()
        if self._answers:
            database.run_many(statements.add_answer, self._answers)
            self._answers = []

    def _run_sparingly(
        self,
        whole: Bulk,
        short: Bulk,
        lines: list[dict[str, Any]],
        key: Callable[[Any], Any],
        seldom: Callable[[Any], Any],
        known: dict[Any, Any],
    ) -> None:
        """Updates rows; where the columns that seldom change are as the database has them, without naming them."""
        if len(lines) == 1:
            (line,) = lines
            place, values = key(line), seldom(line)
            self._database.run(short if known.get(place) == values else whole, line)
            known[place] = values
            return
        self._database.run_many(whole, lines)
        for line in lines:
            known[key(line)] = seldom(line)

    def finish(self) -> None:
        """Writes everything; the commit follows."""
        self._database.read_no_more()
        self._flush()
        if self._saved or codec.study_values(self.study) != self._before:
            self.study.changes += 1
            self._database.run(statements.set_study, codec.study_columns(self.study))
        self._cache.changes = self.study.changes


class SqlStore:
    """A study in SQLite or PostgreSQL."""

    is_shared = True

    def __init__(self, database: Database, *, floor: bool = False) -> None:
        self.database = database
        self.read_only = database.read_only
        self.floor = floor
        self.cache = _Cache()
        self._label_lists: dict[int, tuple[Hashable, ...]] = {}

    @contextmanager
    def reading(self) -> Iterator[SqlTransaction]:
        try:
            with self.database.transaction(False, statements.get_study) as found:
                yield self._begun(found)
        except FileError:
            self.cache.forget()  # the records may have been read at two different moments
            raise

    @contextmanager
    def writing(self) -> Iterator[SqlTransaction]:
        # Where a transaction does not lock out other writers by itself, all writers queue for the study's row.
        first = statements.lock_study if self.database.locks_rows else statements.get_study
        try:
            with self.database.transaction(True, first) as found:
                transaction = self._begun(found)
                yield transaction
                transaction.finish()
        except BaseException:
            self.cache.forget()  # its records were changed, and the study was not
            raise

    def _begun(self, found: Any) -> SqlTransaction:
        if found is None:
            raise FileError(f"there is no study in {self.database.where}")
        return SqlTransaction(self, codec.study_record(found))

    def forget_labels(self) -> None:
        """Reads lists of labels again."""
        self._label_lists.clear()

    def label_list(self, number: int | None) -> tuple[Hashable, ...] | None:
        """A list of labels. It never changes, so it is read once."""
        if number is None:
            return None
        if number not in self._label_lists:
            found = self.database.run(statements.get_label_list, {"number": number}).fetchone()
            if found is None:
                raise FileError(f"the study is damaged: the list of labels {number} is missing")
            self._label_lists[number] = codec.label_list_record(found)
        return self._label_lists[number]

    def notes(self) -> tuple[str, ...]:
        return self.database.notes()

    def close(self) -> None:
        self.database.close()
