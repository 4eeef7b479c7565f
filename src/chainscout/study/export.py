"""A study's estimates as files: JSON, CSV, NumPy, and problem files that ``Problem.load`` reads."""

import csv
import io
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from ..chains import MarkovChain
from ..errors import InputError
from ..problems import Problem
from ..problems.writing import toml_text
from .browser import Browser
from .study import Study

__all__ = ["FORMATS", "plain", "problem"]

#: Entries of all matrices up to which they are written: every format has them all in memory.
_MOST_ENTRIES = 10_000_000


def _document(study: Study) -> dict[str, Any]:
    """Estimates, intervals, counts and certificate as plain data."""
    _check_size(study)
    certificate = study.certificate()
    state = study.progress()
    chains = {}
    for name in study.names:
        found = study.estimate(name)
        stands = study.chain(name)
        chains[name] = {
            "observations": stands.observations,
            "paths": stands.paths,
            "states": list(found.states),
            "matrix": found.matrix.tolist(),
            "lower": found.lower.tolist(),
            "upper": found.upper.tolist(),
            "transitions": found.transitions.tolist(),
            "certificate": _finite(certificate.loss[name]),
        }
    return {
        "observations": state.observations,
        "paths": state.paths,
        "policy": state.policy,
        "delta": state.delta,
        "stop_reason": state.stop_reason,
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
    """The document as JSON; an infinite number is null."""
    return json.dumps(_document(study), ensure_ascii=False, allow_nan=False, indent=2).encode() + b"\n"


def _export_csv(study: Study) -> bytes:
    """One line an entry: chain, states, count, estimate and interval."""
    _check_size(study)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("chain", "from", "to", "transitions", "estimate", "lower", "upper"))
    for name in study.names:
        found = study.estimate(name)
        for x, before in enumerate(found.states):
            for y, after in enumerate(found.states):
                numbers = (found.matrix[x, y], found.lower[x, y], found.upper[x, y])
                writer.writerow(
                    (plain(name), plain(before), plain(after), found.transitions[x, y], *map(float, numbers))
                )
    return text.getvalue().encode()


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


#: What each format writes.
FORMATS: dict[str, Callable[[Study], bytes]] = {
    "json": _export_json,
    "csv": _export_csv,
    "npz": _export_npz,
    "toml": _export_toml,
}


def plain(value: Any) -> Any:
    """A value for a CSV file. A text that a spreadsheet would take for a formula gets an apostrophe before it."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return value


def _check_size(study: Study) -> None:
    """Refuses matrices that are too many or too large to be written entry by entry."""
    entries = sum(outline.size**2 for outline in Browser(study).outlines())
    if entries > _MOST_ENTRIES:
        raise InputError(
            f"an export has every entry of every matrix, at most {_MOST_ENTRIES:,} of them, and this study's have"
            f" {entries:,}: 'chainscout serve' gives single matrices to download, and in Python"
            " study.estimate(name).window(rows, columns) gives a part of one"
        )


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
