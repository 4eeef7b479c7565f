"""Records to columns and back, with a check sum that tells when a stored row is not what was written."""

from collections.abc import Hashable, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any

from ..errors import FileError
from . import encoding
from .records import ChainRecord, Event, Observation, RowRecord, StudyRecord
from .schema import FORMAT
from .statements import CHAIN_COLUMNS, ROW_COLUMNS, STUDY_COLUMNS

_STUDY_FIELDS = [field.name for field in fields(StudyRecord)]
_CHAIN_FIELDS = [field.name for field in fields(ChainRecord) if field.name != "labels"]
# Every observation passes through here, so records become rows and rows records by their places, not by their names.
study_values = attrgetter(*_STUDY_FIELDS)
_chain_values = attrgetter(*_CHAIN_FIELDS)
_STUDY_DOUBLES = [STUDY_COLUMNS.index(name) for name in ("budget", "used", "reserved")]
_CONSTANTS, _SUMS, _INDEX, _LEAST, _OPEN, _ASIDE = map(
    CHAIN_COLUMNS.index, ("constants", "sums", "index", "least", "open", "aside")
)
assert ["id", "format", *_STUDY_FIELDS, "check_sum"] == STUDY_COLUMNS
assert [*_CHAIN_FIELDS[:_LEAST], "least", *_CHAIN_FIELDS[_LEAST:], "check_sum"] == CHAIN_COLUMNS


def study_columns(record: StudyRecord) -> dict[str, Any]:
    """The study's row."""
    values = [1, FORMAT, *study_values(record)]
    for place in _STUDY_DOUBLES:  # whole numbers come back as doubles
        if values[place] is not None:
            values[place] = float(values[place])
    return _summed(values, STUDY_COLUMNS)


def study_record(values: Sequence[Any]) -> StudyRecord:
    """The study from its row."""
    _check(values, STUDY_COLUMNS, "the study's row")
    return StudyRecord(*values[2:-1])


def chain_columns(record: ChainRecord, floor: bool) -> dict[str, Any]:
    """A chain's row; ``floor``: whether the policy looks at the least sampled chain."""
    values = list(_chain_values(record))
    values.insert(_LEAST, record.transitions if floor else None)
    values[_OPEN], values[_ASIDE] = int(record.open), int(record.aside)
    values[_CONSTANTS], values[_SUMS] = encoding.pack_floats(record.constants), encoding.pack_floats(record.sums)
    values[_INDEX] = record.index + 0.0  # SQLite has no −0.0
    return _summed(values, CHAIN_COLUMNS)


def chain_record(values: Sequence[Any]) -> ChainRecord:
    """A chain from its row; its labels are filled in by whoever knows the lists."""
    _check(values, CHAIN_COLUMNS, f"the row of chain {values[0]!r}")
    found = list(values[:-1])
    found[_OPEN], found[_ASIDE] = bool(found[_OPEN]), bool(found[_ASIDE])
    found[_CONSTANTS] = encoding.unpack_floats(found[_CONSTANTS])
    found[_SUMS] = encoding.unpack_floats(found[_SUMS])
    del found[_LEAST]
    return ChainRecord(*found)


def row_columns(chain: int, state: int, record: RowRecord) -> dict[str, Any]:
    """The row of one state."""
    values = [
        chain,
        state,
        record.exits,
        record.squares,
        encoding.pack_counts(record.counts),
        encoding.pack_floats(record.terms),
        int(record.stale),
        encoding.pack_discoveries(record.discoveries),
    ]
    return _summed(values, ROW_COLUMNS)


def row_record(values: Sequence[Any]) -> RowRecord:
    """One state's row."""
    _check(values, ROW_COLUMNS, f"the row of state {values[1]!r} of chain {values[0]!r}")
    _, _, exits, squares, counts, terms, stale, discoveries, _ = values
    return RowRecord(
        exits,
        squares,
        encoding.unpack_counts(counts),
        encoding.unpack_floats(terms),
        bool(stale),
        encoding.unpack_discoveries(discoveries),
        stored=True,
    )


def observation_columns(entry: Observation) -> dict[str, Any]:
    """A line of the log."""
    return entry._asdict()


def event_record(values: Sequence[Any]) -> Event:
    """An event from its row."""
    number, time, kind, chain, detail = values
    return Event(number, time, kind, chain, encoding.unpack_json(detail))


def label_tuple(text: str) -> tuple[Hashable, ...]:
    """A stored list of labels."""
    return tuple(encoding.unpack_json(text))


def _summed(values: list[Any], columns: list[str]) -> dict[str, Any]:
    values.append(encoding.check_sum(values))
    return dict(zip(columns, values, strict=True))


def _check(values: Sequence[Any], columns: list[str], what: str) -> None:
    if len(values) != len(columns) or encoding.check_sum(values[:-1]) != values[-1]:
        raise FileError(f"the study is damaged: {what} is not what was written")
