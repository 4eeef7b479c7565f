"""A request for counts: the columns of the log, and the rules for unbroken paths."""

import datetime
import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import InputError
from ..validation import did_you_mean, shown

MISSING = ("error", "break")


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


NUMBERS = (Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL)
MOMENTS = (Kind.MOMENT, Kind.DATE)
#: Labels of these kinds are kept; all others become text.
NATIVE = (Kind.INTEGER, Kind.FLOAT, Kind.BOOLEAN, Kind.TEXT)


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

    @property
    def columns(self) -> list[str]:
        """The columns that are read, each once."""
        named = (self.chain, self.time, self.state, self.path, self.order)
        return list(dict.fromkeys(name for name in named if name is not None))

    @property
    def correlated(self) -> bool:
        """Whether the transitions overlap."""
        return self.sliding and self.lag > 1

    def check(self, kinds: Mapping[str, Kind], text_times: bool = False) -> None:
        """Raises ``InputError`` for missing or unsuitable columns. ``text_times``: text is read as ISO 8601."""
        for role in ("chain", "time", "state", "path", "order"):
            name = getattr(self, role)
            if name is None:
                continue
            if name not in kinds:
                known = f"{did_you_mean(name, kinds)}: its columns are {shown(list(kinds))}"
                raise InputError(f"the log has no {role} column {shown(name)}{known}")
            if kinds[name] is Kind.UNUSABLE:
                raise InputError(
                    f"the {role} column {shown(name)} holds nested or binary values; text, numbers or times are needed"
                )
            if role in ("time", "order") and kinds[name] not in NUMBERS + MOMENTS:
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
        if duration == (kind in NUMBERS):
            span = "a duration such as '30min', '2h' or '1d', or a datetime.timedelta"
            wanted = "a number" if kind in NUMBERS else span
            raise InputError(
                f"gap (a longer step in time begins a new path) must be {wanted},"
                f" since the time column {shown(self.time)} holds {kind.value}, not {shown(self.gap)}"
            )


def is_stream(where: Any) -> bool:
    """Whether this is a table with the Arrow C stream protocol.

    A pandas frame is not: it needs pyarrow for the protocol, and NumPy reads its columns without pyarrow.
    """
    return (hasattr(where, "__arrow_c_stream__") and not hasattr(where, "iloc")) or is_lazy(where)


def is_lazy(where: Any) -> bool:
    """Whether this is a lazy frame of polars, which is computed when it is collected."""
    return hasattr(where, "collect_schema") and hasattr(where, "collect") and hasattr(where, "select")


def is_session(thing: object) -> bool:
    """Whether this is a Spark session, without importing Spark."""
    return type(thing).__name__ == "SparkSession" and type(thing).__module__.startswith("pyspark.")


def is_table(where: Any) -> bool:
    """Whether this is a mapping of columns or a data frame."""
    return isinstance(where, Mapping) or (hasattr(where, "columns") and hasattr(where, "__getitem__"))
