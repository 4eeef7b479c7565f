"""Records to columns and back, with a check sum that tells when a stored row is not what was written."""

from collections.abc import Hashable, Sequence
from dataclasses import fields
from typing import Any

from ..errors import FileError
from . import encoding
from .records import ChainRecord, Event, Observation, RowRecord, StudyRecord
from .schema import FORMAT
from .statements import CHAIN_COLUMNS, ROW_COLUMNS, STUDY_COLUMNS

_STUDY_FIELDS = [field.name for field in fields(StudyRecord)]


def study_columns(record: StudyRecord) -> dict[str, Any]:
    """The study's row."""
    values: dict[str, Any] = {name: getattr(record, name) for name in _STUDY_FIELDS}
    for name in ("budget", "used", "reserved"):  # whole numbers come back as doubles
        values[name] = None if values[name] is None else float(values[name])
    return _summed({"id": 1, "format": FORMAT, **values}, STUDY_COLUMNS)


def study_record(values: Sequence[Any]) -> StudyRecord:
    """The study from its row."""
    row = _checked(values, STUDY_COLUMNS, "the study's row")
    return StudyRecord(**{name: row[name] for name in _STUDY_FIELDS})


def chain_columns(record: ChainRecord, floor: bool) -> dict[str, Any]:
    """A chain's row; ``floor``: whether the policy looks at the least sampled chain."""
    return _summed(
        {
            "number": record.number,
            "name": record.name,
            "size": record.size,
            "label_list": record.label_list,
            "open": int(record.open),
            "weight": record.weight,
            "cost": record.cost,
            "constants": encoding.pack_floats(record.constants),
            "transitions": record.transitions,
            "observations": record.observations,
            "segments": record.segments,
            "last": record.last,
            "sums": encoding.pack_floats(record.sums),
            "index": record.index + 0.0,  # SQLite has no −0.0
            "look": record.look,
            "least": record.transitions if floor else None,
            "certificate": record.certificate,
            "certified": record.certified,
            "token": record.token,
            "worker": record.worker,
            "expires": record.expires,
            "promised": record.promised,
            "barren": record.barren,
            "aside": int(record.aside),
            "discovered": record.discovered,
        },
        CHAIN_COLUMNS,
    )


def chain_record(values: Sequence[Any]) -> ChainRecord:
    """A chain from its row; its labels are filled in by whoever knows the lists."""
    row = _checked(values, CHAIN_COLUMNS, f"the row of chain {values[0]!r}")
    row.update(
        open=bool(row["open"]),
        aside=bool(row["aside"]),
        constants=encoding.unpack_floats(row["constants"]),
        sums=encoding.unpack_floats(row["sums"]),
    )
    del row["least"]
    return ChainRecord(**row)


def row_columns(chain: int, state: int, record: RowRecord) -> dict[str, Any]:
    """The row of one state."""
    return _summed(
        {
            "chain": chain,
            "state": state,
            "exits": record.exits,
            "squares": record.squares,
            "counts": encoding.pack_counts(record.counts),
            "terms": encoding.pack_floats(record.terms),
            "stale": int(record.stale),
            "discoveries": encoding.pack_discoveries(record.discoveries),
        },
        ROW_COLUMNS,
    )


def row_record(values: Sequence[Any]) -> RowRecord:
    """One state's row."""
    row = _checked(values, ROW_COLUMNS, f"the row of state {values[1]!r} of chain {values[0]!r}")
    return RowRecord(
        row["exits"],
        row["squares"],
        encoding.unpack_counts(row["counts"]),
        encoding.unpack_floats(row["terms"]),
        bool(row["stale"]),
        encoding.unpack_discoveries(row["discoveries"]),
        stored=True,
    )


def observation_columns(entry: Observation) -> dict[str, Any]:
    """A line of the log."""
    return {
        "number": entry.number,
        "chain": entry.chain,
        "step": entry.step,
        "segment": entry.segment,
        "state": entry.state,
        "time": entry.time,
    }


def event_record(values: Sequence[Any]) -> Event:
    """An event from its row."""
    number, time, kind, chain, detail = values
    return Event(number, time, kind, chain, encoding.unpack_json(detail))


def label_tuple(text: str) -> tuple[Hashable, ...]:
    """A stored list of labels."""
    return tuple(encoding.unpack_json(text))


def _summed(values: dict[str, Any], columns: list[str]) -> dict[str, Any]:
    values["check_sum"] = encoding.check_sum(values[name] for name in columns[:-1])
    return values


def _checked(values: Sequence[Any], columns: list[str], what: str) -> dict[str, Any]:
    if len(values) != len(columns) or encoding.check_sum(values[:-1]) != values[-1]:
        raise FileError(f"the study is damaged: {what} is not what was written")
    return dict(zip(columns[:-1], values[:-1], strict=True))
