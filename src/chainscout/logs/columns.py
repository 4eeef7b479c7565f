"""Columns of a log in memory, as whole numbers that sort like their values."""

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..validation import shown
from .request import Kind

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Column:
    """A column of labels: each value's place among the sorted labels, or −1 if the value is missing."""

    codes: Codes
    labels: Sequence[Any]
    kind: Kind


def label_column(values: Any, name: str) -> Column:
    """A column of labels. Values that are not text, numbers or truth values become text."""
    array, absent = _array(values, name)
    if array.dtype == object:
        kept = [_native(value, name) for value in array[~absent].tolist()]
        try:
            labels = sorted(set(kept))
        except TypeError:
            raise InputError(
                f"the column {shown(name)} mixes values that have no order, such as text and numbers"
            ) from None
        places = {label: place for place, label in enumerate(labels)}
        found: Any = [places[label] for label in kept]
    else:
        unique, found = np.unique(array[~absent], return_inverse=True)
        labels = [_native(value, name) for value in unique.tolist()]
        if unique.dtype.kind == "M":
            labels = [str(value) for value in unique.astype("datetime64[us]").tolist()]
    codes = np.full(len(array), -1, dtype=np.int64)
    codes[~absent] = found
    return Column(codes, labels, _kind_of(labels))


def time_column(values: Any, name: str) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_], Kind]:
    """Numbers or moments, which of the two they are, and which values are missing."""
    array, absent = _array(values, name)
    if array.dtype == object:
        array = _moments_or_numbers(array, absent, name)
    if array.dtype.kind == "M":
        return array, absent, Kind.MOMENT
    if array.dtype.kind in "iu":
        return array, absent, Kind.INTEGER
    return array, absent, Kind.FLOAT if array.dtype.kind == "f" else Kind.TEXT


def as_array(values: Any) -> npt.NDArray[Any]:
    """The values unchanged. NumPy alone would show masked values, and turn numbers beside text into text."""
    if isinstance(values, np.ma.MaskedArray):
        hidden = np.array(values.data, dtype=object)
        hidden[np.ma.getmaskarray(values)] = None
        return hidden
    array = np.asarray(values)
    if isinstance(values, list | tuple) and array.dtype.kind == "U" and not all(isinstance(v, str) for v in values):
        array = np.empty(len(values), dtype=object)
        array[:] = values
    return array


def _array(values: Any, name: str) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    array = as_array(values)
    if array.ndim != 1:
        raise InputError(f"the column {shown(name)} must be one-dimensional, not of shape {array.shape}")
    if array.dtype.kind not in "biufUMO":
        raise InputError(f"the column {shown(name)} must hold text, numbers or times, not values of type {array.dtype}")
    if hasattr(values, "isna"):  # pandas knows which values are missing
        return array, np.asarray(values.isna(), dtype=bool)
    return array, _absent(array)


def _absent(array: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    if array.dtype.kind == "f":
        return np.asarray(np.isnan(array))
    if array.dtype.kind == "M":
        return np.asarray(np.isnat(array))
    if array.dtype == object:
        absent = [value is None or (isinstance(value, float) and math.isnan(value)) for value in array.tolist()]
        return np.array(absent, dtype=bool)
    return np.zeros(len(array), dtype=bool)


def _native(value: Any, name: str) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str | int | float):
        return value
    if isinstance(value, bytes | list | tuple | dict | set | np.ndarray):
        raise InputError(f"the column {shown(name)} must hold text, numbers or times, not {shown(value)}")
    return str(value)


def _kind_of(labels: Sequence[Any]) -> Kind:
    for kind, types in ((Kind.BOOLEAN, bool), (Kind.INTEGER, int), (Kind.FLOAT, (int, float)), (Kind.TEXT, str)):
        if all(isinstance(label, types) for label in labels):
            return kind
    raise InputError(f"labels must be all text or all numbers, not {shown(labels)}")


def _moments_or_numbers(array: npt.NDArray[Any], absent: npt.NDArray[np.bool_], name: str) -> npt.NDArray[Any]:
    kept = array[~absent].tolist()
    if all(isinstance(value, datetime.date) for value in kept):
        moments = np.full(len(array), np.datetime64("NaT"), dtype="datetime64[us]")
        moments[~absent] = [_universal(value) for value in kept]
        return moments
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in kept):
        whole = all(isinstance(value, int) for value in kept)
        numbers = np.zeros(len(array), dtype=np.int64 if whole else np.float64)
        try:
            numbers[~absent] = kept
        except OverflowError:
            raise InputError(f"the column {shown(name)} holds numbers of more than 64 bits") from None
        return numbers
    return array.astype(str)


def _universal(value: datetime.date) -> datetime.date:
    """A moment in universal time, because NumPy has no time zones."""
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.UTC).replace(tzinfo=None)
    return value
