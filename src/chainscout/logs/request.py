"""A request for counts: the columns of the log, and the rules for unbroken paths."""

import datetime
import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from ..errors import InputError
from ..validation import did_you_mean, duration, one_of, real_number, shown, whole_number

__all__ = ["MISSING", "NATIVE", "CountRequest", "Kind", "checked_lag", "kind_named"]


#: What a row without a state is: an error, or the end of a path.
MISSING = ("error", "break")
#: What columns are for. The first three are always needed.
_ROLES = ("chain", "time", "state", "path", "order")


class Kind(enum.Enum):
    """The kind of a column's values, as far as counting needs it."""

    INTEGER = "whole numbers"
    FLOAT = "numbers"
    DECIMAL = "decimal numbers"
    BOOLEAN = "yes or no"
    TEXT = "text"
    MOMENT = "times"
    DATE = "dates"
    #: Values with a text form (UUIDs, enumerations, times of day). Labels are that text.
    OTHER = "values of another type"
    UNUSABLE = "nested or binary values"


#: The names of types in DuckDB and Spark.
_NAMES = {
    Kind.INTEGER: "tinyint, smallint, int, integer, bigint, utinyint, usmallint, uinteger, ubigint, hugeint",
    Kind.FLOAT: "float, double",
    Kind.DECIMAL: "decimal",
    Kind.BOOLEAN: "boolean",
    Kind.TEXT: "varchar, string, char",
    Kind.MOMENT: "timestamp, timestamp_s, timestamp_ms, timestamp_ns, timestamp_ntz, timestamp with time zone",
    Kind.DATE: "date",
    Kind.OTHER: "uuid, enum, time, interval, null",
}
_KINDS = {name: kind for kind, names in _NAMES.items() for name in names.split(", ")}


def kind_named(name: str) -> Kind:
    """The kind of a type of DuckDB or Spark."""
    return _KINDS.get(name.lower(), Kind.UNUSABLE)


_NUMBERS = (Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL)
_MOMENTS = (Kind.MOMENT, Kind.DATE)
#: Labels of these kinds are kept; all others become text.
NATIVE = (Kind.INTEGER, Kind.FLOAT, Kind.BOOLEAN, Kind.TEXT)


def checked_lag(lag: int) -> int:
    """The steps of a transition. Raises ``InputError`` for less than one."""
    return whole_number(lag, "lag", meaning="how many steps lie between the two states of a transition")


@dataclass(frozen=True)
class CountRequest:
    """The names of the columns and the rules by which rows become paths.

    A path is the rows of one chain (and with one value of the column ``path``, if there is one) in the order of
    ``time`` (and then of ``order``). A step of more than ``gap`` in time breaks a path. With ``missing="break"``, a row
    without a state does too. In an unbroken path of states x₀ x₁ …, ``lag`` L counts (x₀,x_L), (x_L,x_2L), … If
    ``sliding``, it counts every (x_i,x_{i+L}), which are L interleaved paths.
    """

    chain: str
    time: str
    state: str
    path: str | None = None
    order: str | None = None
    lag: int = 1
    sliding: bool = False
    gap: float | datetime.timedelta | None = None
    missing: str = "error"

    @classmethod
    def checked(cls, *, gap: float | str | datetime.timedelta | None = None, **rules: Any) -> Self:
        """The request of these arguments. Raises ``InputError`` for invalid ones."""
        rules["lag"] = checked_lag(rules.get("lag", 1))
        one_of(rules.get("missing", "error"), "missing", MISSING)
        named = {role: rules.get(role) for role in _ROLES}
        if not any(named[role] for role in _ROLES[:3]):
            raise InputError(
                "a log with columns needs their names: chain=, time= and state=; walks in memory are counted by"
                " cs.Paths.from_walks(walks).counts()"
            )
        for role, name in named.items():
            if (role in _ROLES[:3] or name is not None) and (not isinstance(name, str) or not name):
                raise InputError(f"{role} must be the name of a column, not {shown(name)}")
        meaning = "a longer step in time begins a new path"
        if isinstance(gap, str | datetime.timedelta):
            gap = duration(gap, "gap", meaning=meaning)
        elif gap is not None:
            number = real_number(gap, "gap", least=0.0, meaning=meaning)
            gap = int(number) if number.is_integer() else number
        return cls(gap=gap, **rules)

    @property
    def columns(self) -> list[str]:
        """The columns that are read, each once."""
        return list(dict.fromkeys(name for role in _ROLES if (name := getattr(self, role)) is not None))

    @property
    def correlated(self) -> bool:
        """Whether the transitions overlap."""
        return self.sliding and self.lag > 1

    def need_columns(self, names: Iterable[str]) -> None:
        """Raises ``InputError`` for a column that is not among ``names``."""
        known = list(names)
        for role in _ROLES:
            name = getattr(self, role)
            if name is not None and name not in known:
                hint = f"{did_you_mean(name, known)}: its columns are {shown(known)}"
                raise InputError(f"the log has no {role} column {shown(name)}{hint}")

    def check(self, kinds: Mapping[str, Kind], text_times: bool = False) -> None:
        """Raises ``InputError`` for missing or unsuitable columns. ``text_times``: text is read as ISO 8601."""
        self.need_columns(kinds)
        for role in _ROLES:
            name = getattr(self, role)
            if name is None:
                continue
            if kinds[name] is Kind.UNUSABLE:
                raise InputError(
                    f"the {role} column {shown(name)} holds nested or binary values; text, numbers or times are needed"
                )
            if role in ("time", "order") and kinds[name] not in _NUMBERS + _MOMENTS:
                if kinds[name] is Kind.TEXT and text_times:
                    continue
                raise InputError(
                    f"the {role} column {shown(name)} must hold numbers or times, which have one order everywhere,"
                    f" not {kinds[name].value}"
                )
        if self.gap is not None:
            self._check_gap(kinds[self.time])

    def _check_gap(self, kind: Kind) -> None:
        duration = isinstance(self.gap, datetime.timedelta)
        if duration == (kind in _NUMBERS):
            span = "a duration such as '30min', '2h' or '1d', or a datetime.timedelta"
            wanted = "a number" if kind in _NUMBERS else span
            raise InputError(
                f"gap (a longer step in time begins a new path) must be {wanted},"
                f" since the time column {shown(self.time)} holds {kind.value}, not {shown(self.gap)}"
            )
