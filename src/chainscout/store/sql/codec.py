"""Records to columns and back, exactly: doubles to the bit, sparse counts, labels, and a check sum of every row.

Every observation passes through this module. So, to be fast, it converts records and rows by the positions of their
values and not by their names.
"""

import json
import marshal
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any

from ...errors import FileError, InputError
from ...validation import shown
from ..records import AnswerLine, ChainRecord, Event, HistoryLine, PathRecord, QuestionRecord, RowRecord, StudyRecord
from . import schema

__all__ = [
    "answer_columns",
    "answer_line",
    "chain_columns",
    "chain_record",
    "event_record",
    "evidence_columns",
    "evidence_record",
    "history_columns",
    "history_line",
    "label_list_columns",
    "label_list_record",
    "pack_json",
    "path_columns",
    "path_record",
    "prior_columns",
    "prior_record",
    "question_columns",
    "question_record",
    "row_columns",
    "row_record",
    "stamp",
    "state_columns",
    "state_record",
    "study_columns",
    "study_fields",
    "study_record",
    "study_values",
    "unpack_json",
]

(
    _STUDY_COLUMNS,
    _CHAIN_COLUMNS,
    _PATH_COLUMNS,
    _ROW_COLUMNS,
    _PRIOR_COLUMNS,
    _LIST_COLUMNS,
    _STATE_COLUMNS,
    _LINE_COLUMNS,
) = (
    [column.name for column in table.columns]
    for table in (
        schema.study,
        schema.chain,
        schema.path,
        schema.row,
        schema.prior,
        schema.label_list,
        schema.state,
        schema.history,
    )
)
_EVIDENCE_COLUMNS = [column.name for column in schema.evidence.columns]
_ANSWER_COLUMNS = [column.name for column in schema.answer.columns]
_QUESTION_COLUMNS = [column.name for column in schema.question.columns]
_STUDY_FIELDS = [field.name for field in fields(StudyRecord)]
_CHAIN_FIELDS = [field.name for field in fields(ChainRecord) if field.name != "labels"]
_CHANGES = _STUDY_COLUMNS.index("changes")
_STUDY_FLAGS = ("shared", "priced", "weighted", "side_by_side", "spoilt")
_STUDY_FLAG_PLACES = [_STUDY_COLUMNS.index(name) for name in _STUDY_FLAGS]
_MET = _QUESTION_COLUMNS.index("met")
_ENDED = _PATH_COLUMNS.index("ended")
_STUDY_DOUBLES = [_STUDY_COLUMNS.index(name) for name in ("budget", "used", "first_cost", "reserved")]
_CONSTANTS, _SUMS, _INDEX, *_FLAGS = map(
    _CHAIN_COLUMNS.index, ("constants", "sums", "index", "open", "resting", "aside", "blocked")
)

#: All fields of a study's record; equal before and after means that nothing changed.
study_values = attrgetter(*_STUDY_FIELDS)
_chain_values = attrgetter(*_CHAIN_FIELDS)
_question_values = attrgetter(*(field.name for field in fields(QuestionRecord)))
_path_values = attrgetter(*(field.name for field in fields(PathRecord) if field.name != "stored"))


def study_columns(record: StudyRecord) -> list[Any]:
    """The study's row."""
    values = [1, schema.FORMAT, *study_values(record)]
    for place in _STUDY_FLAG_PLACES:
        values[place] = int(values[place])
    for place in _STUDY_DOUBLES:  # whole numbers come back as doubles
        if values[place] is not None:
            values[place] = float(values[place])
    return _with_check_sum(values)


def study_record(values: Sequence[Any]) -> StudyRecord:
    """The study from its row."""
    _check(values, _STUDY_COLUMNS, "the study's row")
    record = StudyRecord(*study_fields(values))
    for name in _STUDY_FLAGS:
        setattr(record, name, bool(getattr(record, name)))
    return record


def study_fields(values: Sequence[Any]) -> Sequence[Any]:
    """The fields of a study's record, as its row has them."""
    return values[2:-1]


def stamp(values: Sequence[Any]) -> tuple[Any, ...]:
    """The values of the study's row that differ after every change of the study."""
    return values[_CHANGES], values[-1]


def chain_columns(record: ChainRecord, floor: bool) -> list[Any]:
    """A chain's row. ``floor``: whether the policy asks for the least sampled chain."""
    least = record.transitions + record.pending if floor else None
    values = [*_chain_values(record), least, int(record.certified < record.transitions)]
    for place in _FLAGS:
        values[place] = int(values[place])
    values[_CONSTANTS], values[_SUMS] = _pack_floats(record.constants), _pack_floats(record.sums)
    values[_INDEX] = record.index + 0.0  # SQLite has no −0.0
    return _with_check_sum(values)


def chain_record(values: Sequence[Any]) -> ChainRecord:
    """A chain from its row, without its labels."""
    _check(values, _CHAIN_COLUMNS, f"the row of chain {values[0]!r}")
    found = list(values[:-3])
    for place in _FLAGS:
        found[place] = bool(found[place])
    found[_CONSTANTS] = _unpack("d", found[_CONSTANTS])
    found[_SUMS] = _unpack("d", found[_SUMS])
    return ChainRecord(*found)


def path_columns(record: PathRecord) -> list[Any]:
    """A path's row."""
    values = list(_path_values(record))
    values[_ENDED] = int(record.ended)
    return _with_check_sum(values)


def path_record(values: Sequence[Any]) -> PathRecord:
    """A path from its row."""
    _check(values, _PATH_COLUMNS, f"the row of path {values[1]!r} of chain {values[0]!r}")
    record = PathRecord(*values[:-1])
    record.ended, record.stored = bool(record.ended), True
    return record


def question_columns(record: QuestionRecord) -> list[Any]:
    """A question's row."""
    values = list(_question_values(record))
    values[_MET] = int(record.met)
    return _with_check_sum(values)


def question_record(values: Sequence[Any]) -> QuestionRecord:
    """A question from its row."""
    _check(values, _QUESTION_COLUMNS, f"the row of question {values[0]!r}")
    record = QuestionRecord(*values[:-1])
    record.met = bool(record.met)
    return record


def row_columns(chain: int, state: int, record: RowRecord) -> list[Any]:
    """The row of one state of a chain."""
    counts, discoveries = record.counts, record.discoveries
    values = [
        chain,
        state,
        record.exits,
        record.squares,
        _pack_counts(counts),
        _pack_floats(record.terms),
        int(record.stale),
        _pack_discoveries(discoveries) if discoveries else b"",
    ]
    return _with_check_sum(values)


def row_record(values: Sequence[Any]) -> RowRecord:
    """The row of one state of a chain, from its columns."""
    _check(values, _ROW_COLUMNS, f"the row of state {values[1]!r} of chain {values[0]!r}")
    _, _, exits, squares, counts, terms, stale, discoveries, _ = values
    return RowRecord(
        exits,
        squares,
        _unpack_counts(counts),
        _unpack("d", terms),
        bool(stale),
        _unpack_discoveries(discoveries) if discoveries else {},
        stored=True,
    )


def event_record(number: int, time: float, kind: str, chain: int | None, detail: str) -> Event:
    """An event from its columns."""
    return Event(number, time, kind, chain, unpack_json(detail))


def evidence_columns(chain: int | None, content: bytes) -> list[Any]:
    """The row of the standing of the checks, of a chain or of all chains together."""
    return _with_check_sum([-1 if chain is None else chain, content])


def evidence_record(values: Sequence[Any]) -> bytes:
    """The standing of the checks, from its row."""
    values = [values[0], bytes(values[1]), values[2]]
    _check(values, _EVIDENCE_COLUMNS, f"where the checks of chain {values[0]!r} stand")
    return bytes(values[1])


def answer_columns(line: AnswerLine) -> list[Any]:
    """An answer at an earlier moment."""
    return _with_check_sum(list(line))


def answer_line(values: Sequence[Any]) -> AnswerLine:
    """An answer at an earlier moment, from its columns."""
    _check(values, _ANSWER_COLUMNS, f"line {values[0]!r} of the answers")
    return AnswerLine(*values[:-1])


def history_columns(line: HistoryLine) -> list[Any]:
    """A line of history."""
    return _with_check_sum([*line])


def history_line(values: Sequence[Any]) -> HistoryLine:
    """A line of history, from its columns."""
    _check(values, _LINE_COLUMNS, f"line {values[0]!r} of the history")
    return HistoryLine(*values[:-1])


def prior_columns(chain: int, state: int, record: RowRecord) -> list[Any]:
    """The row of the warm-start counts of one state of a chain."""
    return _with_check_sum([chain, state, _pack_counts(record.counts)])


def prior_record(values: Sequence[Any]) -> tuple[int, dict[int, int]]:
    """A state's position, and its warm-start counts."""
    _check(values, _PRIOR_COLUMNS, f"what state {values[1]!r} of chain {values[0]!r} began with")
    return values[1], _unpack_counts(values[2])


def label_list_columns(number: int, labels: Sequence[Any]) -> list[Any]:
    """A list of labels."""
    return _with_check_sum([number, pack_json(labels)])


def label_list_record(values: Sequence[Any]) -> tuple[Any, ...]:
    """A list of labels, from its row."""
    _check(values, _LIST_COLUMNS, f"the list of labels {values[0]!r}")
    return tuple(unpack_json(values[1]))


def state_columns(chain: int, position: int, label: Any) -> list[Any]:
    """One state of a chain with open states."""
    return _with_check_sum([chain, position, pack_json(label)])


def state_record(values: Sequence[Any]) -> tuple[int, Any]:
    """The position and the label of an open state, from its row."""
    _check(values, _STATE_COLUMNS, f"the label of state {values[1]!r} of chain {values[0]!r}")
    return values[1], unpack_json(values[2])


def _pack_counts(counts: Mapping[int, int]) -> bytes:
    return struct.pack(f"<{2 * len(counts)}q", *counts, *counts.values())  # the positions, then the counts


def _unpack_counts(blob: bytes) -> dict[int, int]:
    """A row's counts: y → N[x,y]."""
    values = _unpack("q", blob)
    half = len(values) // 2
    return dict(zip(values[:half], values[half:], strict=True))


def pack_json(value: Any) -> str:
    """A label, a list of labels or the detail of an event as JSON, which keeps 1 and "1" apart."""
    return json.dumps(value, ensure_ascii=False)


def unpack_json(text: str) -> Any:
    """The inverse of `pack_json`. Raises `FileError` if the text is damaged."""
    try:
        return json.loads(text)
    except ValueError:
        raise FileError("the study is damaged: a stored text is not the JSON that was written") from None


def _pack_floats(values: Sequence[float]) -> bytes:
    """Doubles, little-endian: every database returns the same bits."""
    return struct.pack(f"<{len(values)}d", *values)


def _unpack(kind: str, blob: bytes) -> tuple[Any, ...]:
    return struct.unpack(f"<{len(blob) // 8}{kind}", blob)


def _pack_discoveries(discoveries: Mapping[int, tuple[int, int, int]]) -> bytes:
    """Four numbers for each pair: its position, the number of the discovery, and the exits and the count then."""
    flat = [value for y, found in discoveries.items() for value in (y, *found)]
    return struct.pack(f"<{len(flat)}q", *flat)


def _unpack_discoveries(blob: bytes) -> dict[int, tuple[int, int, int]]:
    flat = _unpack("q", blob)
    return {flat[i]: (flat[i + 1], flat[i + 2], flat[i + 3]) for i in range(0, len(flat), 4)}


#: The format of `marshal` with the number 2: binary numbers, and the same bytes for equal values.
_MARSHAL = 2


#: The kinds of values that a database gives back as they were. `marshal` would take others for bytes.
_KINDS = frozenset({int, float, str, bytes, type(None)})


def _with_check_sum(values: list[Any]) -> list[Any]:
    """A row's values and their check sum."""
    if not _KINDS.issuperset(map(type, values)):
        strange = next(value for value in values if type(value) not in _KINDS)
        kind = type(strange).__name__
        raise InputError(f"a study stores Python's own numbers and texts, not {shown(strange)} of the kind {kind}")
    values.append(_check_sum(values))
    return values


def _check_sum(values: list[Any]) -> int:
    """CRC-32 of a row's values. So a changed bit in a database page is noticed before its numbers are used.

    Every observation computes four of these, and `marshal` takes a fifth of the time of `repr`.
    """
    return zlib.crc32(marshal.dumps(values, _MARSHAL))


def _check(values: Sequence[Any], columns: list[str], what: str) -> None:
    if len(values) != len(columns) or _check_sum([*values[:-1]]) != values[-1]:
        raise FileError(f"the study is damaged: {what} is not what was written")
