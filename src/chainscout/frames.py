"""Tables for pandas, an optional dependency. Columns of labels are kept unchanged."""

from collections.abc import Iterable, Mapping
from typing import Any

from .errors import MissingExtraError


def pandas_library(what: str) -> Any:
    """The module pandas, which ``what`` needs."""
    try:
        import pandas
    except ImportError:
        raise MissingExtraError(what, "pandas") from None
    return pandas


def frame(columns: Mapping[str, Iterable[Any]]) -> Any:
    """A DataFrame of these columns. Arrays stay as they are; lists are labels, and no conversion changes them."""
    pandas = pandas_library("to_pandas")
    return pandas.DataFrame({name: _column(pandas, values) for name, values in columns.items()})


def label_index(labels: Iterable[Any]) -> Any:
    """Labels as a pandas index. A tuple is one label; None stays None, and a large whole number stays whole."""
    pandas = pandas_library("to_pandas")
    kept = list(labels)
    index = pandas.Index(kept, tupleize_cols=False)
    return index if list(index) == kept else pandas.Index(kept, tupleize_cols=False, dtype=object)


def _column(pandas: Any, values: Iterable[Any]) -> Any:
    if not isinstance(values, list):
        return values
    column = pandas.Series(values, dtype=object)
    kinds = {type(value) for value in values}
    if kinds == {str}:
        return column.astype("str")
    return column.astype("int64") if kinds == {int} and _fits(values) else column


def _fits(numbers: list[int]) -> bool:
    return min(numbers) >= -(2**63) and max(numbers) < 2**63
