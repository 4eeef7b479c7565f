"""Tables and drawings as plain data. Everything that is shown to a person consists of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from ..errors import InputError
from .format import Struck, finite


@dataclass(frozen=True)
class Series:
    """One line of a drawing. With ``low`` and ``high`` it has a band."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()

    @classmethod
    def of(cls, label: str, x: Iterable[float], y: Iterable[float | None]) -> "Series":
        """A line through the points that exist."""
        known = [(at, value) for at, value in zip(x, y, strict=True) if value is not None]
        return cls(label, tuple(at for at, _ in known), tuple(value for _, value in known))


@dataclass(frozen=True)
class Drawing:
    """A chart of lines."""

    title: str
    #: What the horizontal axis shows.
    across: str
    lines: tuple[Series, ...]
    notes: tuple[str, ...] = ()
    #: A level that the lines are compared with, and its name.
    level: float | None = None
    level_name: str = "target"
    #: Whether the vertical axis is logarithmic; if it is not, where it begins and ends (None: at the largest value).
    logarithmic: bool = False
    bottom: float = 0.0
    top: float | None = None
    #: Whether the horizontal axis is logarithmic.
    growing: bool = False
    #: Whether the chart is one of several side by side.
    small: bool = False


#: Heading → the field of a record that stands under it, or a function of the record.
Columns = Mapping[str, str | Callable[[Any], Any]]


@dataclass(frozen=True)
class Table:
    """Rows of plain values under named columns. None means 'does not exist'."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    notes: tuple[str, ...] = ()
    drawing: Drawing | None = None
    #: The number of columns, from the left, that say what a row is about. A table in parts has them in every part.
    keys: int = 1

    @classmethod
    def of(
        cls, title: str, records: Iterable[Any], columns: Columns, notes: Iterable[str] = (), **others: Any
    ) -> "Table":
        """A row for each record. A number that is infinite does not exist."""
        getters = [attrgetter(column) if isinstance(column, str) else column for column in columns.values()]
        rows = tuple(tuple(finite(get(record)) for get in getters) for record in records)
        return cls(title, tuple(columns), rows, tuple(notes), **others)

    @classmethod
    def by_column(cls, title: str, columns: Mapping[str, Iterable[Any]], notes: Iterable[str] = ()) -> "Table":
        """``columns``: heading → the values under it, one for each row."""
        return cls(title, tuple(columns), tuple(zip(*columns.values(), strict=True)), tuple(notes))

    def is_numeric(self, place: int) -> bool:
        """Whether a column holds numbers only, and is aligned to the right."""
        return bool(self.rows) and all(isinstance(row[place], (int, float)) or row[place] is None for row in self.rows)

    def records(self) -> list[dict[str, Any]]:
        """One dictionary a row. A bound that does not hold is None, and ``code`` says why."""
        found = []
        for row in self.rows:
            codes = [value.code for value in row if isinstance(value, Struck)]
            values = (None if isinstance(value, Struck) else value for value in row)
            found.append(dict(zip(self.columns, values, strict=True)) | ({"code": codes[0]} if codes else {}))
        return found


def if_any(quantity: Callable[[], Any]) -> Any:
    """The quantity, or None if it is infinite or does not exist (at all, or at this budget)."""
    try:
        return finite(quantity())
    except InputError:
        return None
