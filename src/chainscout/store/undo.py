"""What a transaction in memory was given, as it was: so that one that ends with an error has changed nothing.

Records are changed in place, so each is looked at before it is handed out: a tuple of its fields, and for a row whose
counts can change a copy of these.
"""

from dataclasses import fields
from operator import attrgetter
from typing import Any

from .records import ChainRecord, RowRecord, StudyRecord

_STUDY = tuple(field.name for field in fields(StudyRecord))
_CHAIN = tuple(field.name for field in fields(ChainRecord))
#: Of a row, what is replaced when it changes; its counts and discoveries change themselves.
_ROW = ("exits", "squares", "terms", "stale", "stored")
_of_study, _of_chain, _of_row = attrgetter(*_STUDY), attrgetter(*_CHAIN), attrgetter(*_ROW)


class Undo:
    """The way back to where a transaction began."""

    def __init__(self, study: StudyRecord) -> None:
        self._study = study
        self._study_was = _of_study(study)
        self._chains: dict[int, tuple[ChainRecord, tuple[Any, ...]]] = {}
        self._rows: dict[tuple[int, int], tuple[RowRecord, tuple[Any, ...]] | None] = {}
        self._counts: dict[tuple[int, int], tuple[dict[int, int], dict[int, tuple[int, int, int]]]] = {}

    def keep(self, chain: ChainRecord) -> ChainRecord:
        """The chain, which may now be changed."""
        if chain.number not in self._chains:
            self._chains[chain.number] = chain, _of_chain(chain)
        return chain

    def keep_row(self, chain: int, position: int, row: RowRecord | None, counts: bool) -> None:
        """The row may now be changed, or made if there is None; ``counts``: its counts too."""
        key = chain, position
        if key not in self._rows:
            self._rows[key] = None if row is None else (row, _of_row(row))
        if counts and row is not None and key not in self._counts and self._rows[key] is not None:
            self._counts[key] = dict(row.counts), dict(row.discoveries)

    def back(self, known_rows: dict[int, dict[int, RowRecord]]) -> list[ChainRecord]:
        """Puts all records back into place; the chains that were handed out."""
        _put_back(self._study, _STUDY, self._study_was)
        for (chain, position), kept in self._rows.items():
            if kept is None:
                known_rows.get(chain, {}).pop(position, None)
                continue
            row, values = kept
            _put_back(row, _ROW, values)
            if (chain, position) in self._counts:
                counts, row.discoveries = self._counts[chain, position]
                row.counts.clear()  # in place, for the row's view looks at the same dictionary
                row.counts.update(counts)
        for record, values in self._chains.values():
            _put_back(record, _CHAIN, values)
        return [record for record, _ in self._chains.values()]


def _put_back(record: Any, names: tuple[str, ...], values: tuple[Any, ...]) -> None:
    for name, value in zip(names, values, strict=True):
        setattr(record, name, value)
