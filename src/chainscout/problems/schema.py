"""What a problem file holds, checked: from the plain data of a file to chains, with every error and its place.

pydantic checks keys and types; ``MarkovChain`` checks what they mean. Bad rows of a matrix are listed here one by one,
because ``MarkovChain`` stops at the first.
"""

import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, PlainValidator, ValidationError
from pydantic_core import PydanticCustomError

from ..chains import MarkovChain
from ..chains.chain import ROW_TOLERANCE
from ..checks import shown
from ..errors import InputError, RenormalisedWarning
from .problem import Problem

#: The version of the format that this version of chainscout reads and writes.
FORMAT = 1


def _label(value: object) -> str | int:
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise PydanticCustomError("label", "a state's label must be a string or an integer")


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", hide_input_in_errors=True)


class Head(_Strict):
    """The top of a file."""

    format: Literal[1]
    name: str = ""
    description: str = ""
    source: str = ""
    chains: dict[str, dict[str, Any]]


class ChainNotes(_Strict):
    """A chain without its matrix, which a directory keeps in a CSV file."""

    states: list[Annotated[str | int, PlainValidator(_label)]] | None = None
    initial: list[float] | None = None
    tolerance: float | None = None


class ChainEntry(ChainNotes):
    """A chain of a TOML or JSON file."""

    matrix: list[list[float]]


class Errors:
    """The errors of a problem's files, each one line: file, place, sentence."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.lines: list[str] = []

    def add(self, place: str, sentence: str) -> None:
        """One error; ``place`` may be empty when the file as a whole is meant."""
        self.lines.append(": ".join(part for part in (self.file, place, sentence) if part))

    def check(self, model: type[BaseModel], data: Any, place: str = "") -> set[str]:
        """Add what ``model`` finds wrong with ``data``; returns the keys that are affected."""
        try:
            model.model_validate(data)
        except ValidationError as error:
            details = error.errors(include_url=False, include_context=False)
            for detail in details:
                where = _place(place, detail["loc"])
                self.add(where, _sentence(detail["type"], detail["msg"], detail["input"], model))
            return {str(detail["loc"][0]) for detail in details if detail["loc"]}
        return set()


def problem_of(data: Any, errors: Errors, matrices: bool = True) -> tuple[Problem | None, dict[str, dict[str, Any]]]:
    """The problem that a TOML or JSON file's data describe, and its chains' checked data.

    With ``matrices=False`` the file is the note in a directory of CSV matrices, and there is no problem yet.
    """
    if not isinstance(data, dict):
        errors.add("", f"a problem file holds a table of keys at its top, not {shown(data)}")
        return None, {}
    wrong = errors.check(Head, data)
    entries = data.get("chains")
    if "chains" in wrong or not isinstance(entries, dict):
        return None, {}
    if not entries:
        errors.add("chains", "a problem must have at least one chain, and this table is empty")
    kept: dict[str, dict[str, Any]] = {}
    for name, entry in entries.items():
        place = _place("", ("chains", name))
        if not name:
            errors.add(place, "a chain's name must be a non-empty string, not ''")
        model = ChainEntry if matrices else ChainNotes
        bad = errors.check(model, entry, place)
        kept[name] = {key: value for key, value in entry.items() if key not in bad and value is not None}
    if not matrices:
        return None, kept
    chains = {name: chain_of(entry, errors, name) for name, entry in kept.items()}
    if errors.lines:
        return None, kept
    return Problem({name: chain for name, chain in chains.items() if chain}, **texts(data)), kept


def texts(data: dict[str, Any]) -> dict[str, str]:
    """The name, description and source of a file."""
    return {key: data.get(key, "") for key in ("name", "description", "source")}


def chain_of(
    entry: dict[str, Any], errors: Errors, name: str, lines: Sequence[int] | None = None
) -> MarkovChain | None:
    """The chain of a checked entry, or None when an error was added. ``lines``: the line of each row in a CSV file."""
    if "matrix" not in entry:
        return None
    place = _place("", ("chains", name)) if lines is None else ""
    rows, states = entry["matrix"], entry.get("states")
    initial, tolerance = entry.get("initial"), entry.get("tolerance")
    before = len(errors.lines)

    def attempt(key: str, **arguments: Any) -> None:
        try:
            MarkovChain.from_table(np.eye(len(rows)), **arguments)
        except InputError as error:
            errors.add(f"{place}.{key}".strip("."), str(error))

    matrix_place = f"{place}.matrix".strip(".") if lines is None else ""
    if not rows:
        errors.add(matrix_place, "a transition matrix must be square with at least one state, and this one is empty")
        return None
    attempt("states", states=states)
    attempt("initial", initial=initial)
    if tolerance is not None:
        attempt("tolerance", tolerance=tolerance)
    labels = states if states is not None and len(states) == len(rows) else range(len(rows))
    for row, sentence in _row_errors(rows, labels, ROW_TOLERANCE if tolerance is None else tolerance):
        errors.add(matrix_place if lines is None else f"line {lines[row]}", sentence)
    if len(errors.lines) > before:
        return None
    if tolerance is None:
        return MarkovChain(rows, initial, states)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        chain = MarkovChain.from_table(rows, tolerance=tolerance, initial=initial, states=states)
    for warning in caught:
        text = ": ".join(part for part in (errors.file, matrix_place, str(warning.message)) if part)
        warnings.warn(text, RenormalisedWarning, stacklevel=2)
    return chain


def document(problem: Problem) -> dict[str, Any]:
    """The plain data of a problem, as its files hold them; what would be the default is left out."""
    data: dict[str, Any] = {"format": FORMAT}
    data |= {key: text for key in ("name", "description", "source") if (text := getattr(problem, key))}
    data["chains"] = {name: _entry(name, chain) for name, chain in problem.chains.items()}
    return data


def _entry(name: str, chain: MarkovChain) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    if chain.states != tuple(range(chain.size)):
        entry["states"] = [_saved_label(name, label) for label in chain.states]
    if (chain.initial != 1 / chain.size).any():
        entry["initial"] = chain.initial.tolist()
    return entry | {"matrix": chain.matrix.tolist()}


def _saved_label(name: str, label: Any) -> str | int:
    if isinstance(label, np.integer):
        return int(label)
    try:
        return _label(label)
    except PydanticCustomError:
        raise InputError(
            f"a file can hold only strings and integers as state labels, but chain {shown(name)} has {shown(label)}"
        ) from None


def _row_errors(rows: list[list[float]], labels: Sequence[Any], tolerance: float) -> Iterator[tuple[int, str]]:
    """Each row that is not a probability law over as many states as there are rows."""
    for x, row in enumerate(rows):
        label = shown(labels[x])
        if len(row) != len(rows):
            yield x, f"row {label} has {len(row)} entries, but a matrix of {len(rows)} rows needs {len(rows)} in each"
            continue
        values = np.array(row, dtype=np.float64)
        bad = np.flatnonzero(~(values >= 0) | ~np.isfinite(values))
        for y in bad:
            yield x, f"row {label} holds probabilities, but that of {shown(labels[y])} is {values[y]:g}"
        total = values.sum()
        if not len(bad) and abs(total - 1) > tolerance:
            hint = "; a table that is off by rounding needs a 'tolerance'" if tolerance == ROW_TOLERANCE else ""
            yield x, f"row {label} sums to {total:.12g}, but each row must sum to one within {tolerance:g}{hint}"


def _place(prefix: str, location: Sequence[str | int]) -> str:
    """``chains.north.matrix, row 2, column 1``."""
    text, ranks = prefix, iter(("row", "column") if "matrix" in location[:3] else ("item",))
    for part in location:
        if isinstance(part, int):
            text += f", {next(ranks, 'item')} {part + 1}"
        else:
            key = part if re.fullmatch(r"[\w-]+", part) else repr(part)
            text += f".{key}" if text else key
    return text


def _sentence(kind: str, message: str, given: object, model: type[BaseModel]) -> str:
    if kind == "missing":
        return "this key is required, and it is missing"
    if kind == "extra_forbidden":
        return f"unknown key; the keys known here are {', '.join(model.model_fields)}"
    if kind == "literal_error":
        return f"this version of chainscout reads format {FORMAT}, not {shown(given)}"
    return f"{message[0].lower()}{message[1:]}, not {shown(given)}"
