"""The loop for one policy: which of the two, with what names bound, interpreted or compiled."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..compile import bound, compiled, has_file
from ..policies import Policy
from ..random import alias
from . import beginning, rounds, steps, tuples
from .layout import FOUR, SUMS, TERMS


def no_entry(count: float, exits: float, constants: Any) -> float:
    """Stands where a rule has no ``entry``."""
    return 0.0


def no_floor(observations: float) -> float:
    """Stands where a rule has no ``floor``."""
    return 0.0


@dataclass(frozen=True)
class Parts:
    """What every loop is made of, on the CPU and on the GPU: a policy's functions, and what they are given."""

    terms: Callable[..., Any] | None
    index: Callable[..., Any]
    entry: Callable[..., Any] | None
    summary: Callable[..., Any] | None
    floor: Callable[..., Any] | None
    #: How many constants there are.
    constants: int
    #: Whether all chains have the same size, constants and weight, which saves looking them up.
    alike: bool
    #: Whether all chains move at every step.
    restless: bool

    @classmethod
    def of(
        cls,
        policy: Policy,
        sizes: Sequence[int],
        known: Sequence[tuple[float, ...]],
        weights: Sequence[float],
        restless: bool,
    ) -> "Parts":
        """The parts of ``policy`` for chains of these sizes, constants and weights."""
        return cls(
            policy.terms,
            policy.index,
            policy.entry,
            policy.summary,
            policy.floor,
            len(known[0]),
            all(min(each) == max(each) for each in (sizes, known, weights)),
            restless,
        )

    @property
    def names(self) -> dict[str, Any]:
        """What the names mean that every loop calls."""
        return {
            "terms": self.terms,
            "index": self.index,
            "entry": self.entry or no_entry,
            "summary": self.summary,
            "floor": self.floor or no_floor,
            "take_constants": tuples.of_length(self.constants)["take"],
            "CONSTANTS": self.constants,
            "ALIKE": self.alike,
            "FLOOR": self.floor is not None,
            "SUMMARY": self.summary is not None,
            "RESTLESS": self.restless,
        }


@dataclass(frozen=True)
class Rule:
    """The parts of a policy, and how the CPU's loop over them is run."""

    parts: Parts
    #: How many numbers ``terms`` gives.
    width: int
    #: Whether plans of more than one observation are made; their loop looks everything up, be chains alike or not.
    planned: bool
    #: Whether the largest index is found by a tree, not by a scan.
    tree: bool

    @property
    def head(self) -> int:
        """How many floats stand before the counts in a row's record: N_x, Q_x, the terms, and N_x at the last look."""
        return TERMS + self.width + self.planned

    @property
    def standing(self) -> int:
        """How many floats the record of a chain in four lanes has: indices, T, and the sums; a power of two."""
        return 1 << (SUMS + FOUR * self.width - 1).bit_length()

    def loop(self, engine: str) -> Callable[..., None]:
        """The loop over observations, ready to be called."""
        return _loop(self, engine)


@lru_cache(maxsize=256)
def _loop(rule: Rule, engine: str) -> Callable[..., None]:
    parts, sums = rule.parts, tuples.of_length(rule.width)
    alike = parts.alike and not rule.planned
    names = parts.names | {
        "row_terms": steps.terms_of_row if parts.entry is None else steps.terms_of_entries,
        **{name: sums[name] for name in ("take_sums", "totals", "put", "put_sums")},
        "HEAD": rule.head,
        "STANDING": rule.standing,
        "ALIKE": alike,
        "ENTRIES": alike and parts.entry is not None,
        "TREE": rule.tree,
    }
    loop = rounds.rounds if rule.planned else steps.steps
    if engine == "python":
        return bound(loop, names)
    names |= {"whole": np.uint64, "signed": np.int64}
    functions = (parts.terms, parts.index, parts.entry, parts.summary, parts.floor)
    return compiled(loop, names, cache=all(has_file(function) for function in functions))


@lru_cache(maxsize=8)
def common(name: str, engine: str) -> Callable[..., None]:
    """A function that no policy changes: ``begin`` or ``fill``."""
    function = {"begin": beginning.begin, "fill": alias.fill}[name]
    return bound(function, {}) if engine == "python" else compiled(function, {}, cache=True)
