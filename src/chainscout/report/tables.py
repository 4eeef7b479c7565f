"""The plain table that everything shown to a person is made of."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from ..errors import InputError


@dataclass(frozen=True)
class Drawing:
    """Lines that are drawn with a table where there is room: positive numbers on a logarithmic axis."""

    title: str
    across: str
    #: Of each line its name, and its points.
    names: tuple[str, ...]
    x: tuple[tuple[float, ...], ...]
    y: tuple[tuple[float, ...], ...]
    #: A level that lines are held against, and what it is called.
    level: float
    level_name: str


@dataclass(frozen=True)
class Table:
    """Rows of plain values under named columns; None is 'does not exist'."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    notes: tuple[str, ...] = ()
    drawing: Drawing | None = None
    #: The columns that say what a row is about, from the left. A table in parts has them in every part.
    keys: int = 1

    @classmethod
    def of(cls, title: str, records: Iterable[Any], columns: Mapping[str, str], notes: Iterable[str] = ()) -> "Table":
        """A row for each record; ``columns``: heading → the field that stands under it."""
        values = attrgetter(*columns.values())
        return cls(title, tuple(columns), tuple(map(values, records)), tuple(notes))

    def is_numeric(self, place: int) -> bool:
        """Whether a column holds numbers only, to be set flush right."""
        return all(isinstance(row[place], (int, float)) or row[place] is None for row in self.rows)

    def records(self) -> list[dict[str, Any]]:
        """One dictionary a row."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def if_any(quantity: Callable[[], Any]) -> Any:
    """The quantity, or None where it does not exist (here or at this budget) or is infinite."""
    try:
        value = quantity()
    except InputError:
        return None
    return None if isinstance(value, float) and not math.isfinite(value) else value
