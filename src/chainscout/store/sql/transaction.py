"""A study in a database. A transaction reads the records it needs, changes them in memory, then writes them."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain as chained
from itertools import islice
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
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
from .cache import MOST_KEPT, Cache
from .database import Database
from .statements import Bulk

__all__ = ["SqlTransaction"]

#: The number of rows fetched at a time when all of them are read.
_PAGE = 1000
_chain_key, _path_key = itemgetter(0), itemgetter(0, 1)
_seldom_of_chain = itemgetter(*map(statements.set_chain.columns.index, statements.SELDOM_OF_CHAIN))
_seldom_of_path = itemgetter(*map(statements.set_path.columns.index, statements.SELDOM_OF_PATH))


class SqlTransaction:
    """One transaction: each record is read once, and everything that changed is written together."""

    def __init__(
        self,
        database: Database,
        cache: Cache,
        floor: bool,
        now: float,
        study: StudyRecord,
        foreseen: Mapping[str, list[Any]],
    ) -> None:
        self.study = study
        self.now = now
        self._database = database
        self._floor = floor
        self._cache = cache
        cache.move_to(study.changes)
        self._chains, self._numbers, self._rows, self._paths = cache.chains, cache.numbers, cache.rows, cache.paths
        #: Whether anything was saved.
        self._saved = False
        self._changed: dict[int, ChainRecord] = {}
        self._changed_rows: dict[tuple[int, int], RowRecord] = {}
        self._changed_paths: dict[tuple[int, int], PathRecord] = {}
        self._changed_questions: dict[int, QuestionRecord] = {}
        #: Statements that add rows, and the rows to write.
        self._added: dict[Bulk, list[Sequence[Any]]] = {}
        self._foreseen = foreseen
        for values in foreseen.get("needed", ()):
            self._note_needed(values)

    def _note_needed(self, values: Any) -> None:
        """Notes a chain, its path and the row of the path's last state, which were read with the beginning."""
        chain, path, row = (values[part] for part in statements.PARTS_OF_NEEDED)
        self._known(chain)
        if path[0] is not None:
            walked = self._walked(path)
            if walked.last is not None:
                key = walked.chain, walked.last
                self._rows[key] = RowRecord() if row[0] is None else codec.row_record(row)

    def _all(self, statement: Executable, **parameters: Any) -> list[Any]:
        """The rows that a statement finds, after all changes so far are written to the database."""
        self._flush()
        return list(self._database.run(statement, parameters).fetchall())

    def _pages(self, statement: Executable, key: int, after: int, **parameters: Any) -> Iterator[list[Any]]:
        """The rows that a statement finds after a number, page by page. ``key``: the place of the number in a row."""
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
        found = self._database.run(statements.chain_by_name, [name]).fetchone()
        return None if found is None else self._known(found)

    def expect(self, names: Iterable[str]) -> None:
        new = (name for name in names if self._numbers.get(name) not in self._chains)
        wanted = [[name] for name in new if self._database.can_store(name)]
        for values in self._database.find_many(statements.chain_by_name, wanted):
            self._known(values)

    def numbered(self, number: int) -> ChainRecord:
        if number in self._chains:
            return self._chains[number]
        found = self._database.run(statements.chain_by_number, [number]).fetchone()
        if found is None:
            raise FileError(f"the study is damaged: chain {number} is missing")
        return self._known(found)

    def _known(self, values: Any) -> ChainRecord:
        """The one record of a chain, however often its row is read."""
        number = values[0]
        known = self._chains.get(number)
        if known is None:
            known = codec.chain_record(values)
            known.labels = self._label_list(known.label_list)
            self._chains[number] = known
            self._numbers[known.name] = number
        return known

    def _label_list(self, number: int | None) -> tuple[Hashable, ...] | None:
        if number is None:
            return None
        known = self._cache.label_lists.get(number)
        if known is None:
            found = self._database.run(statements.get_label_list, {"number": number}).fetchone()
            if found is None:
                raise FileError(f"the study is damaged: the list of labels {number} is missing")
            known = self._cache.label_lists[number] = codec.label_list_record(found)
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

    def top(self, number: int, below: float | None = None) -> list[ChainRecord]:
        if below is not None:
            return [self._known(values) for values in self._all(statements.top_below, limit=number, below=below)]
        if number == 1 and "best" in self._foreseen and not self._saved:
            found = self._foreseen["best"]  # all columns, or only the number
            return [self._known(values) if len(values) > 1 else self.numbered(values[0]) for values in found]
        return [self._known(values) for values in self._all(statements.top, limit=number)]

    def least(self, number: int) -> list[ChainRecord]:
        return [self._known(values) for values in self._all(statements.least, limit=number)]

    def worst(self, *, aside: bool = False) -> float:
        if aside:
            found = self._all(statements.worst_aside, limit=1)
            return float(found[0][1]) if found else 0.0
        # Chains that were saved but not written yet are removed from the result of the database.
        known = [chain.certificate for chain in self._changed.values() if not chain.aside]
        found = self._database.run(statements.worst, {"limit": 1 + len(self._changed)}).fetchall()
        others = (value for number, value in found if number not in self._changed)
        return max([*islice(others, 1), *known], default=0.0)

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
        if until == self.now and "expired" in self._foreseen:
            paths = (self._walked(values) for values in self._foreseen["expired"])
            return [
                path for path in paths if path.token is not None and path.expires is not None and path.expires <= until
            ]
        found = self._all(statements.held) if until is None else self._all(statements.expired, until=until)
        return [self._walked(values) for values in found]

    def drawing(self) -> Iterator[PathRecord]:
        return map(self._walked, self._all(statements.drawing))

    def twins(self) -> Iterator[Twins]:
        return (Twins(*found) for found in self._all(statements.twins))

    def twin(self, path: PathRecord) -> int | None:
        wanted = Prefix(path.chain, path.steps, path.digest, path.number)._asdict()
        ((found,),) = self._database.run(statements.twin, wanted).fetchall()
        return None if found is None else int(found)

    def prefixes(self, chain: ChainRecord) -> Iterator[Prefix]:
        return (Prefix(*found) for found in self._all(statements.get_prefixes, chain=chain.number))

    def walk(self, chain: ChainRecord, path: int, steps: int) -> Iterator[int]:
        after, wanted = 0, {"chain": chain.number, "path": path}
        while steps > 0:
            page = {**wanted, "after": after, "limit": min(steps, _PAGE)}
            found = self._database.run(statements.path_log_after, page).fetchall()
            yield from (state for _, state in found)
            steps = steps - len(found) if len(found) == page["limit"] else 0
            after = found[-1][0] if found else after

    # -- rows and states

    def row(self, chain: ChainRecord, position: int) -> RowRecord:
        key = chain.number, position
        known = self._rows.get(key)
        if known is None:
            found = self._database.run(statements.get_row, key).fetchone()
            known = self._rows[key] = RowRecord() if found is None else codec.row_record(found)
        return known

    def expect_rows(self, rows: Iterable[tuple[int, int]]) -> None:
        wanted = [key for key in rows if key not in self._rows]
        self._rows.update((key, RowRecord()) for key in wanted)
        for values in self._database.find_many(statements.get_row, wanted):
            self._rows[values[0], values[1]] = codec.row_record(values)

    def rows(self, chain: ChainRecord) -> Mapping[int, RowRecord]:
        whole = self._cache.whole.get(chain.number)
        if whole is None:
            found = self._database.run(statements.get_rows, {"chain": chain.number}).fetchall()
            whole = {
                values[1]: self._rows.get((chain.number, values[1])) or codec.row_record(values) for values in found
            }
            for (number, position), row in self._changed_rows.items():  # they may not be written yet
                if number == chain.number:
                    whole[position] = row
            if len(self._rows) + len(whole) <= MOST_KEPT:
                self._cache.whole[chain.number] = whole
                self._rows.update(((chain.number, position), row) for position, row in whole.items())
        return dict(sorted(whole.items()))

    def position(self, chain: ChainRecord, label: Hashable) -> int | None:
        key = chain.number, codec.pack_json(label)
        position = self._cache.positions.get(key)
        if position is None:  # no flush is needed: discovered states are known already
            found = self._database.run(statements.get_position, {"chain": key[0], "label": key[1]}).fetchone()
            if found is not None:
                position = self._cache.positions[key] = codec.state_record(found)[0]
        return position

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

    def draws(self, chain: ChainRecord | None, after: int) -> npt.NDArray[np.int64]:
        if chain is None:
            pages = self._pages(statements.draws_after, 0, after)
        else:
            pages = self._pages(statements.chain_draws_after, 0, after, chain=chain.number)
        flat = chained.from_iterable(chained.from_iterable(pages))
        return np.ascontiguousarray(np.fromiter(flat, dtype=np.int64).reshape(-1, 6).T)

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
        return (codec.answer_line(values) for page in pages for values in page)

    # -- queries of readers

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
        self._cache.label_lists.clear()
        self._database.check_whole()
        codec.study_record(self._database.run(statements.get_study).fetchone())

    # -- changing

    def save(self, chain: ChainRecord) -> None:
        self._changed[chain.number] = chain
        self._saved = True

    def save_row(self, chain: ChainRecord, position: int, row: RowRecord) -> None:
        self._changed_rows[chain.number, position] = row
        self._rows[chain.number, position] = row
        whole = self._cache.whole.get(chain.number)
        if whole is not None:
            whole[position] = row

    def discover(self, chain: ChainRecord, position: int, label: Hashable) -> None:
        self._add(statements.add_state, codec.state_columns(chain.number, position, label))
        self._cache.positions[chain.number, codec.pack_json(label)] = position

    def save_path(self, path: PathRecord) -> None:
        self._changed_paths[path.chain, path.number] = path
        self._paths[path.chain, path.number] = path
        self._saved = True

    def keep_prefix(self, path: PathRecord) -> None:
        self._add(statements.add_prefix, Prefix(path.chain, path.steps, path.digest, path.number))

    def append(self, path: PathRecord, issued: int) -> None:
        number, teller = self.study.observations, path.teller
        values = (number, path.chain, path.number, path.steps, path.last, self.now, issued, teller)
        self._add(statements.add_observation, values)

    def draw(self, chain: ChainRecord | None, certificate: float, variability: float) -> None:
        study = self.study
        study.lines += 1
        number, own = (None, study.observations) if chain is None else (chain.number, chain.observations)
        line = HistoryLine(study.lines, number, study.observations, self.now, own, certificate, variability)
        self._add(statements.add_history, codec.history_columns(line))

    def save_question(self, question: QuestionRecord) -> None:
        study = self.study
        study.answers += 1
        ends = question.lower, question.upper, question.estimate
        line = AnswerLine(study.answers, question.number, study.observations, self.now, *ends)
        self._add(statements.add_answer, codec.answer_columns(line))
        self._changed_questions[question.number] = question
        self._saved = True

    def keep(self, chain: int | None, content: bytes) -> None:
        columns = codec.evidence_columns(chain, content)
        self._database.run(statements.drop_evidence, {"chain": columns[0]})
        self._database.run(statements.add_evidence, columns)

    def happened(self, kind: str, chain: ChainRecord | None = None, **detail: Any) -> None:
        self.study.events += 1
        number = None if chain is None else chain.number
        self._add(statements.add_event, (self.study.events, self.now, kind, number, codec.pack_json(detail)))

    def _flush(self) -> None:
        """Writes the saved records, so that the database can search them."""
        if self._saved or self._added or self._changed_rows:
            changes = self._changes()
            if changes:
                self._database.change(changes)

    def _changes(self) -> list[tuple[Bulk, Sequence[Sequence[Any]]]]:
        """The changes that were saved but not written yet: statements, each with its sets of parameters."""
        cache = self._cache
        changes: list[tuple[Bulk, Sequence[Sequence[Any]]]] = []
        if self._changed:
            lines = [codec.chain_columns(chain, self._floor) for chain in self._changed.values()]
            whole, short = statements.set_chain, statements.move_chain
            changes.append(_sparingly(whole, short, lines, _chain_key, _seldom_of_chain, cache.seldom_of_chains))
            self._changed = {}
        if self._changed_paths:
            old = []
            for path in self._changed_paths.values():
                if path.stored:
                    old.append(codec.path_columns(path))
                else:
                    path.stored = True
                    self._add(statements.add_path, codec.path_columns(path))
            whole, short = statements.set_path, statements.move_path
            if old:
                changes.append(_sparingly(whole, short, old, _path_key, _seldom_of_path, cache.seldom_of_paths))
            self._changed_paths = {}
        if self._changed_rows:
            old = []
            for (chain, state), row in self._changed_rows.items():
                if row.stored:
                    old.append(codec.row_columns(chain, state, row))
                else:
                    row.stored = True
                    self._add(statements.add_row, codec.row_columns(chain, state, row))
            if old:
                changes.append((statements.set_row, old))
            self._changed_rows = {}
        if self._changed_questions:
            questions = [codec.question_columns(question) for question in self._changed_questions.values()]
            changes.append((statements.set_question, questions))
            self._changed_questions = {}
        changes += self._added.items()
        self._added = {}
        return changes

    def _add(self, statement: Bulk, columns: Sequence[Any]) -> None:
        """Adds a row to the rows that are written next."""
        rows = self._added.get(statement)
        if rows is None:
            self._added[statement] = [columns]
        else:
            rows.append(columns)

    def finish(self) -> None:
        """Writes everything; the commit follows."""
        changes, study, cache = self._changes(), self.study, self._cache
        if self._saved or codec.study_values(study) != codec.study_fields(cache.known_row):
            study.changes += 1
            columns = codec.study_columns(study)
            changes.append((statements.set_study, [columns]))
            cache.note(tuple(columns), study, is_own=True)
        self._database.conclude(changes)
        cache.changes = study.changes


def _sparingly(
    whole: Bulk,
    short: Bulk,
    lines: Sequence[Sequence[Any]],
    key: Callable[[Any], Any],
    seldom: Callable[[Any], Any],
    known: dict[Any, Any],
) -> tuple[Bulk, Sequence[Sequence[Any]]]:
    """The update of these rows. Columns that seldom change are named only for rows in which they have changed.

    ``known``: the stored values of these columns, as far as they are known.
    """
    is_known = len(lines) == 1 and known.get(key(lines[0])) == seldom(lines[0])
    for line in lines:
        known[key(line)] = seldom(line)
    return short if is_known else whole, lines
