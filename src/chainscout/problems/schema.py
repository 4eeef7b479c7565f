"""The content of a problem file: from the plain data of a file to checked chains, with every error and its place.

pydantic checks keys and types, and ``MarkovChain`` checks values. Bad rows of a matrix are listed here one by one,
because ``MarkovChain`` stops at the first.
"""

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, PlainValidator, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from ..chains import MarkovChain
from ..chains.chain import ROW_TOLERANCE
from ..errors import ChainscoutError, InputError, RenormalisedWarning
from ..validation import did_you_mean, shown
from .problem import Problem

#: The version of the format that this version of chainscout reads and writes.
FORMAT = 1
#: The texts at the top of a file, each optional.
TEXTS = ("name", "description", "source")


def label(value: object) -> str | int:
    """A state's label as a file can hold it."""
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise PydanticCustomError("label", "a state's label must be a string or an integer")


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class Head(_Strict):
    """The top of a file."""

    format: Literal[1]
    name: str = ""
    description: str = ""
    source: str = ""
    chains: dict[str, Any]


class ChainEntry(_Strict):
    """A chain of a file."""

    states: list[Annotated[str | int, PlainValidator(label)]] | None = None
    initial: list[float] | None = None
    tolerance: float | None = None
    matrix: list[list[float]]


class Errors:
    """The errors of one file. Each is one line: file, place, sentence."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.lines: list[str] = []

    def add(self, place: str, sentence: str) -> None:
        """Adds one error. ``place`` is empty if the error is about the whole file."""
        self.lines.append(self.line(place, sentence))

    def line(self, place: str, sentence: str) -> str:
        """``file: place: sentence``."""
        return ": ".join(part for part in (self.file, place, sentence) if part)

    @contextmanager
    def at(self, place: str) -> Iterator[None]:
        """Adds an error that is raised inside the block, with this place."""
        try:
            yield
        except ChainscoutError as error:
            self.add(place, str(error))

    def check(self, model: type[BaseModel], data: Any, place: str = "") -> set[str]:
        """Adds the errors that ``model`` finds in ``data``. Returns the affected keys."""
        try:
            model.model_validate(data)
        except ValidationError as error:
            details = error.errors(include_url=False, include_context=False)
            for detail in details:
                self.add(place_of(*detail["loc"], within=place), _sentence(detail, model))
            return {str(detail["loc"][0]) for detail in details if detail["loc"]}
        return set()


def check_document(data: Any, errors: Errors) -> dict[str, dict[str, Any]]:
    """The chains' entries of a file, without wrong keys and values. Each of these is added to ``errors``."""
    if not isinstance(data, dict):
        errors.add("", f"a problem file holds a table of keys at its top, not {shown(data)}")
        return {}
    if "chains" in errors.check(Head, data) or "chains" not in data:
        return {}
    if not data["chains"]:
        errors.add("chains", "a problem must have at least one chain, and this table is empty")
    entries = {}
    for name, entry in data["chains"].items():
        place = place_of("chains", name)
        if not name:
            errors.add(place, "a chain's name must be a non-empty string, not ''")
        wrong = errors.check(ChainEntry, entry, place)
        entries[name] = {key: entry[key] for key in entry if key not in wrong} if isinstance(entry, dict) else {}
    return entries


def chain_of(entry: dict[str, Any], place: str, errors: Errors) -> MarkovChain | None:
    """The chain of a checked entry, or None if it has no matrix or an error was added."""
    if "matrix" not in entry:
        return None
    rows, states, tolerance = entry["matrix"], entry.get("states"), entry.get("tolerance")
    before = len(errors.lines)
    if not rows:
        errors.add(place_of("matrix", within=place), "a transition matrix must have at least one state, not none")
        return None
    for key in ("states", "initial", "tolerance"):
        if entry.get(key) is not None:
            try:
                MarkovChain.from_table(np.eye(len(rows)), **{key: entry[key]})
            except InputError as error:
                errors.add(_within(place, key), str(error))
    labels = states if states is not None and len(states) == len(rows) else range(len(rows))
    matrix = _within(place, "matrix")
    for sentence in _row_errors(rows, labels, ROW_TOLERANCE if tolerance is None else tolerance):
        errors.add(matrix, sentence)
    if len(errors.lines) > before:
        return None
    if tolerance is None:
        return MarkovChain(rows, entry.get("initial"), states)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        chain = MarkovChain.from_table(rows, tolerance=tolerance, initial=entry.get("initial"), states=states)
    for warning in caught:
        warnings.warn(errors.line(matrix, str(warning.message)), RenormalisedWarning, stacklevel=2)
    return chain


def document(problem: Problem) -> dict[str, Any]:
    """The plain data of a problem, as in its files. Defaults are left out."""
    data: dict[str, Any] = {"format": FORMAT}
    data |= {key: text for key in TEXTS if (text := getattr(problem, key))}
    data["chains"] = {name: _entry(name, chain) for name, chain in problem.chains.items()}
    return data


def place_of(*location: str | int, within: str = "") -> str:
    """``chains.north.matrix, row 2, column 1``."""
    place = within
    ranks = ["column", "row"] if location[:1] == ("matrix",) else ["item"]
    for part in location:
        place = f"{place}, {ranks.pop()} {part + 1}" if isinstance(part, int) else _within(place, part)
    return place


def _within(place: str, key: str) -> str:
    quoted = key if re.fullmatch(r"[\w-]+", key) else repr(key)
    return f"{place}.{quoted}" if place else quoted


def _entry(name: str, chain: MarkovChain) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    if chain.states != tuple(range(chain.size)):
        try:
            entry["states"] = [label(state) for state in chain.states]
        except PydanticCustomError:
            raise InputError(
                "a file can hold only strings and integers as state labels, but those of chain"
                f" {shown(name)} are {shown(list(chain.states))}"
            ) from None
    if (chain.initial != 1 / chain.size).any():
        entry["initial"] = chain.initial.tolist()
    return entry | {"matrix": chain.matrix.tolist()}


def _row_errors(rows: list[list[float]], labels: Sequence[Any], tolerance: float) -> Iterator[str]:
    """A sentence for each row that is not a probability law over the states."""
    for x, row in enumerate(rows):
        name = shown(labels[x])
        if len(row) != len(rows):
            yield f"row {name} has {len(row)} entries, but a matrix of {len(rows)} rows needs {len(rows)} in each"
            continue
        values = np.array(row, dtype=np.float64)
        bad = np.flatnonzero(~((values >= 0) & (values <= 1 + tolerance))).tolist()
        for y in bad:
            yield f"row {name} holds probabilities, but that of {shown(labels[y])} is {values[y]:g}"
        total = 1.0 if bad else float(values.sum())
        if abs(total - 1) > tolerance:
            hint = "; a table that is off by rounding needs a 'tolerance'" if tolerance == ROW_TOLERANCE else ""
            yield f"row {name} sums to {total:.12g}, but each row must sum to one within {tolerance:g}{hint}"


#: pydantic's kinds of errors, in the words of a person who wrote the file.
_EXPECTED = {
    "string_type": "a string",
    "int_type": "a whole number",
    "float_type": "a number",
    "list_type": "a list",
    "too_short": "a list of at least one item",
    "dict_type": "a table of keys",
    "datetime_type": "a date and time with a time zone, as 2026-05-01T18:00:00+02:00 without quotes",
}


def _sentence(detail: ErrorDetails, model: type[BaseModel]) -> str:
    kind, given = detail["type"], shown(detail["input"])
    if kind == "missing":
        return "this key is required, and it is missing"
    if kind == "extra_forbidden":
        hint = did_you_mean(detail["loc"][-1], model.model_fields)
        return f"unknown key{hint}; the keys known here are {', '.join(model.model_fields)}"
    if kind == "literal_error":
        return f"this version of chainscout reads format {FORMAT}, not {given}"
    if kind == "model_type":
        return f"a chain must be a table of keys, not {given}"
    if kind in _EXPECTED:
        return f"this must be {_EXPECTED[kind]}, not {given}"
    return f"{detail['msg'][0].lower()}{detail['msg'][1:]}, not {given}"
