"""Recorded trajectories as a source: arrays, lists of arrays (as deeptime has them), CSV and Parquet files."""

import csv
import math
import stat
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import specs
from ..errors import FileError, InputError, MissingExtraError, SourceEnded
from ..validation import label_from_text, shown
from .source import Place, Repeating

__all__ = ["Recorded", "read_recorded"]


class Recorded(Repeating):
    """Recorded paths, one after the other. Each begins a path, and the source ends with the last of them.

    Every state is given once: after a break, the rest of a recorded path is a new path.
    """

    is_used_up = True

    def __init__(self, paths: Any) -> None:
        """``paths``: one path (an array or a list of states), or a list of paths."""
        self._paths = [list(path) for path in _paths(paths)]
        self._path = 0
        self._place = 0
        self._broken = False

    def __len__(self) -> int:
        return sum(map(len, self._paths))

    def advance(self) -> tuple[Hashable, bool]:
        """The next recorded state."""
        while self._path < len(self._paths):
            path = self._paths[self._path]
            if self._place < len(path):
                fresh, self._broken = self._broken or self._place == 0, False
                self._place += 1
                return path[self._place - 1], fresh
            self._path, self._place = self._path + 1, 0
        raise SourceEnded(f"all {len(self)} recorded states were given")

    def restart(self) -> None:
        """Breaks the path: the next state begins a path, wherever it was recorded."""
        self._broken = True

    def resume(self, place: Place) -> bool:
        """Continues after the observations of a study. Raises ``InputError`` if they were not recorded here."""
        used = place.observations + (self.skipped or 0)
        if used > len(self):
            before = f", behind {self.skipped} that were used before" if self.skipped else ""
            raise InputError(
                f"the study was told {place.observations} observations of it{before}, and {len(self)} are recorded"
            )
        number = 0
        while used > len(self._paths[number]):
            used -= len(self._paths[number])
            number += 1
        continues = place.last is not None and self._paths[number][used - 1] == place.last
        if place.last is not None and not continues and place.step == place.observations + 1:
            raise InputError(
                f"observation {place.observations} is {shown(self._paths[number][used - 1])} in the recording, and the "
                f"study was told {shown(place.last)}: a recording must begin with what the study has, or begin another "
                "study"
            )
        self._path, self._place, self._broken = number, used, not continues
        return continues or place.last is None


def read_recorded(
    path: str | Path, *, chain: str = "chain", state: str = "state", time: str | None = None
) -> dict[str, Recorded]:
    """Sources from a CSV or Parquet file: one row per observation, with columns for chain, state and (if given) time.

    A column ``path``, if there is one, separates the paths of a chain. In a CSV file blanks around chains, states and
    paths do not count. A state is a whole number if it is written as one, and a text otherwise: 7 is a number, 007 and
    1_000 are other states. Times are all numbers, or all texts, which are sorted as texts.
    """
    file = Path(path)
    try:
        if not stat.S_ISREG(file.stat().st_mode):  # a pipe or a device may have no end
            raise FileError(f"{file} could not be read: a recording is a file, and this is none")
    except FileNotFoundError:
        raise FileError(f"there is no file {file}") from None
    except (OSError, ValueError) as error:  # a name that is too long, or that no file can have
        raise FileError(f"{shown(str(file))} could not be read: {getattr(error, 'strerror', None) or error}") from None
    rows = _parquet(file) if file.suffix == ".parquet" else _csv(file, chain, state)
    paths: dict[str, dict[Any, list[tuple[Any, Hashable]]]] = {}
    kind: type | None = None
    for number, row in enumerate(rows):
        missing = [column for column in (chain, state, *([time] if time else [])) if row.get(column) in (None, "")]
        if missing:
            raise FileError(f"row {number + 1} of {file} has no {' and no '.join(missing)}")
        when = number if time is None else _time(row[time])
        previous, kind = kind, str if isinstance(when, str) else object
        if time is not None and (previous not in (None, kind) or when != when):
            what = "is no number, and those before are" if kind is str else "has no place among those before"
            raise FileError(f"row {number + 1} of {file} cannot be put in order: its {time} {shown(row[time])} {what}")
        own = paths.setdefault(str(row[chain]), {})
        own.setdefault(row.get("path"), []).append((when, row[state]))
    if not paths:
        raise FileError(f"{file} has no rows")
    return {
        name: Recorded([[s for _, s in sorted(path, key=lambda pair: pair[0])] for path in own.values()])
        for name, own in paths.items()
    }


def _csv(file: Path, chain: str, state: str) -> Iterator[dict[str, Any]]:
    try:
        with file.open(newline="", encoding="utf-8") as lines:
            for row in csv.DictReader(lines):
                for column in (chain, state, "path"):  # many files have a blank after each comma
                    if isinstance(row.get(column), str):
                        row[column] = row[column].strip()
                if isinstance(row.get(state), str):  # a CSV file has only texts, so numbers are recognised by form
                    row[state] = label_from_text(row[state])
                yield row
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise FileError(f"{file} could not be read: {error}") from None


def _parquet(file: Path) -> Iterator[dict[str, Any]]:
    try:
        import duckdb
    except ImportError:
        raise MissingExtraError("a Parquet file", "logs") from None
    try:
        found = duckdb.execute("SELECT * FROM read_parquet(?)", [str(file)])
        columns = [column[0] for column in found.description]
        while page := found.fetchmany(10_000):
            for values in page:
                yield dict(zip(columns, values, strict=True))
    except duckdb.Error as error:
        raise FileError(f"{file} could not be read: {str(error).splitlines()[0]}") from None


def _time(value: Any) -> Any:
    """A number if the text is one, so that 9 comes before 10."""
    number = specs.number(value) if isinstance(value, str) and "_" not in value else None
    return value if number is None or not math.isfinite(number) else number


def _paths(paths: Any) -> Sequence[Any]:
    if isinstance(paths, np.ndarray):
        if paths.ndim not in (1, 2):
            raise InputError(f"recorded states must be an array of one path or of equal paths, not {paths.ndim}-fold")
        return [paths.tolist()] if paths.ndim == 1 else paths.tolist()
    if isinstance(paths, (list, tuple)) and paths:
        if all(isinstance(path, np.ndarray) for path in paths):
            return [path.tolist() for path in paths]
        if all(isinstance(path, (list, tuple)) for path in paths):
            return paths
        if not any(isinstance(path, (list, tuple, np.ndarray)) for path in paths):
            return [paths]
    raise InputError(f"recorded states must be an array, a list of states, or a list of those, not {shown(paths)}")
