"""A study's estimates as files: JSON, CSV, NumPy, problem files that ``Problem.load`` reads, models for checkers."""

import csv
import io
import json
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from .. import formats
from ..certificates.estimate import RowEstimates
from ..chains import MarkovChain
from ..errors import InputError
from ..journal import backup
from ..numerals import sure
from ..problems import Problem
from ..problems.reading import as_path
from ..problems.writing import toml_text, write_file
from ..validation import one_of, shown
from .study import Study

__all__ = ["COLUMNS", "FORMATS", "as_csv", "content", "entries", "problem", "write"]

#: The columns of a table of estimates.
COLUMNS = ("from", "to", "transitions", "estimate", "lower", "upper")

#: The largest number of matrix entries in an export. Every format holds them all in memory.
_MOST_ENTRIES = 10_000_000


def _document(study: Study) -> dict[str, Any]:
    """Estimates, intervals, counts and certificate as plain data."""
    _check_size(study)
    certificate = study.certificate()
    look, weighted = study.look(), certificate.weighted
    chains = {}
    for name in study.names:
        found = study.estimate(name)
        stands = look.chain(name)
        chains[name] = {
            "observations": stands.observations,
            "paths": stands.paths,
            "states": list(found.states),
            "matrix": found.matrix.tolist(),
            "lower": found.lower.tolist(),
            "upper": found.upper.tolist(),
            "transitions": found.transitions.tolist(),
            "certificate": _finite(weighted[name]),
            "loss": _finite(certificate.loss[name]),
        }
    return {
        "observations": look.progress.observations,
        "paths": look.progress.paths,
        "policy": look.progress.policy,
        "delta": look.progress.delta,
        "stop_reason": look.progress.stop_reason,
        "certificate": {"max": _finite(certificate.max), "notes": list(certificate.notes)},
        "chains": chains,
    }


def problem(study: Study) -> Problem:
    """The estimated chains as a problem."""
    _check_size(study)
    chains = {}
    for name in study.names:
        found = study.estimate(name)
        if not len(found.states):
            raise InputError(f"the chain {name!r} has shown no state yet: it cannot be part of a problem")
        chains[name] = MarkovChain(found.matrix, states=list(found.states))
    state = study.progress()
    return Problem(chains, source=f"estimated by chainscout from {state.observations} observations")


def _export_json(study: Study) -> bytes:
    """The document as JSON. An infinite number becomes null."""
    return json.dumps(_document(study), ensure_ascii=False, allow_nan=False, indent=2).encode() + b"\n"


def entries(estimate: RowEstimates) -> Iterator[list[tuple[Any, ...]]]:
    """Every entry of an estimate with its interval: a list for each row of the matrix, of tuples of `COLUMNS`."""
    for x, before in enumerate(estimate.states):
        part = estimate.window(range(x, x + 1), range(len(estimate.states)))
        numbers = (values[0].tolist() for values in (part.transitions, part.matrix, part.lower, part.upper))
        yield [(before, *entry) for entry in zip(estimate.states, *numbers, strict=True)]


def _export_csv(study: Study) -> bytes:
    """One line for each entry: chain, states, count, estimate and interval."""
    _check_size(study)
    rows = ([(name, *entry) for entry in row] for name in study.names for row in entries(study.estimate(name)))
    return b"".join(map(as_csv, ([("chain", *COLUMNS)], *rows)))


def _export_npz(study: Study) -> bytes:
    """Arrays by number of the chain: matrix0, lower0, …; ``names`` and states0, … are texts."""
    _check_size(study)
    arrays: dict[str, Any] = {"names": np.array(study.names)}
    for number, name in enumerate(study.names):
        found = study.estimate(name)
        for kind in ("matrix", "lower", "upper", "transitions"):
            arrays[f"{kind}{number}"] = getattr(found, kind)
        arrays[f"states{number}"] = np.array([str(state) for state in found.states])
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def _export_toml(study: Study) -> bytes:
    """The estimated chains as a problem file."""
    return toml_text(problem(study)).encode()


#: Format of the whole study → the function that writes it.
_WHOLE: dict[str, Callable[[Study], bytes]] = {
    "json": _export_json,
    "csv": _export_csv,
    "npz": _export_npz,
    "toml": _export_toml,
}
#: The format of the journal itself: a line for each entry.
_JOURNAL = "jsonl"
#: The names of all formats. Those of model checkers hold one chain.
FORMATS = (*_WHOLE, _JOURNAL, *(suffix[1:] for suffix in formats.WRITTEN))


def content(study: Study, kind: str, *, chain: str | None = None, start: Hashable = None) -> bytes:
    """The content of a file of this format."""
    if kind == _JOURNAL:
        _check_all(kind, chain, start)
        return "".join(backup.lines(study._keeper.pages())).encode()
    if kind in _WHOLE:
        return _of_all(study, kind, chain, start)
    return formats.content(_model(study, chain, start), f".{kind}")


def write(
    study: Study,
    path: str | os.PathLike[str],
    *,
    kind: str | None = None,
    chain: str | None = None,
    start: Hashable = None,
) -> None:
    """Write a file, in the format that its name ends in unless ``kind`` names one."""
    where = as_path(path)
    chosen = one_of(kind or where.suffix[1:], "the end of the file's name" if kind is None else "the format", FORMATS)
    if chosen not in ("json", "csv", "npz") and where.suffix != f".{chosen}":
        raise InputError(f"the name of such a file must end in .{chosen}, not {shown(str(path))}")
    if chosen == _JOURNAL:
        _check_all(chosen, chain, start)
        backup.write_lines(study._keeper.pages(), where)
    elif chosen in _WHOLE:
        write_file(where, _of_all(study, chosen, chain, start))
    else:
        write_file(where, formats.content(_model(study, chain, start), where.suffix))


def _of_all(study: Study, kind: str, chain: str | None, start: Hashable) -> bytes:
    _check_all(kind, chain, start)
    return _WHOLE[kind](study)


def _check_all(kind: str, chain: str | None, start: Hashable) -> None:
    for what, given in (("chain", chain), ("start", start)):
        if given is not None:
            raise InputError(f"a file in the format {kind} has all chains: {what} is for the formats of model checkers")


def _model(study: Study, chain: str | None, start: Hashable) -> formats.Model:
    """One chain with its intervals. Its initial states are ``start``, or those in which its paths began."""
    if chain is None and len(study.names) > 1:
        raise InputError(
            f"a model checker's file holds one chain, and this study has {len(study.names)}: name the chain"
        )
    _check_size(study)
    name = study.names[0] if chain is None else chain
    found = study.estimate(name)
    if study.counts(name).open_states:
        raise InputError(
            f"an interval model has all states of its chain, and the chain {name!r} may have others than those seen:"
            " create the study with the chain's states"
        )
    states = list(found.states)
    if start is None:
        initial = sorted({x for x in study.paths(name).starts.tolist() if x >= 0}) or range(len(states))
    else:
        initial = [study.counts(name).index_of(start)]
    look = study.look()
    worth = (
        f"all intervals of the {'chain' if look.doubts else 'study'} hold together with probability {sure(found.delta)}"
    )
    worth = next(iter(look.repeated), look.doubts.get(name, worth))
    note = f"chain {name!r} after {look.chain(name).observations} observations: {worth}"
    return formats.Model.of_states(states, found.lower, found.upper, initial, " ".join(note.split()))


def as_csv(lines: Iterable[Sequence[Any]]) -> bytes:
    """Lines of comma-separated values."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(map(_plain, values) for values in lines)
    return text.getvalue().encode("utf-8", "backslashreplace")


def _plain(value: Any) -> Any:
    """A value for a CSV file. If a spreadsheet would read a text as a formula, an apostrophe is put before it."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return value


def _check_size(study: Study) -> None:
    """Raises ``InputError`` if the matrices have too many entries."""
    entries = sum(line.states**2 for line in study.look().chains)
    if entries > _MOST_ENTRIES:
        raise InputError(
            f"an export has every entry of every matrix, at most {_MOST_ENTRIES:,} of them, and this study's have"
            f" {entries:,}: 'chainscout serve' gives single matrices to download, and in Python"
            " study.estimate(name).window(rows, columns) gives a part of one"
        )


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
