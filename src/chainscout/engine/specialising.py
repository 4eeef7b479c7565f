"""The loop for one policy: which of the two, with what names bound, interpreted or compiled."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..policies import Policy
from . import alias, beginning, rounds, steps, tuples
from .compiling import bound, compiled, has_file
from .layout import FOUR, SUMS, TERMS

#: From this many chains on a tournament tree is faster than a scan. Measured with scout at S = 5, scan and tree, in
#: nanoseconds a step: K = 16: 15, 27; 32: 22, 31; 64: 37, 34; 128: 74, 42; 256: 149, 53.
TREE_FROM = 64


@dataclass(frozen=True)
class Rule:
    """The parts of a policy that its loop is made of, and how the loop is run."""

    terms: Callable[..., Any] | None
    index: Callable[..., Any]
    entry: Callable[..., Any] | None
    summary: Callable[..., Any] | None
    floor: Callable[..., Any] | None
    #: How many numbers ``terms`` gives and how many constants there are.
    width: int
    constants: int
    #: Whether plans of more than one observation are made, and whether all chains move at every step.
    planned: bool
    restless: bool
    #: Whether all chains have the same size, constants and weight, which saves looking them up; whether there is a
    #: tree.
    alike: bool
    tree: bool

    @classmethod
    def of(
        cls,
        policy: Policy,
        sizes: Sequence[int],
        known: Sequence[tuple[float, ...]],
        weights: Sequence[float],
        planned: bool,
        restless: bool,
    ) -> "Rule":
        """The rule of ``policy`` for chains of these sizes, constants and weights."""
        planned = planned or restless or policy.block > 0 or policy.summary is not None or policy.floor is not None
        return cls(
            policy.terms,
            policy.index,
            policy.entry,
            policy.summary,
            policy.floor,
            policy.width(sizes[0], known[0]),
            len(known[0]),
            planned,
            restless,
            not planned and all(min(each) == max(each) for each in (sizes, known, weights)),
            len(sizes) >= TREE_FROM,
        )

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


def no_entry(count: float, exits: float, constants: Any) -> float:
    """Stands where a rule has no ``entry``."""
    return 0.0


def no_floor(observations: float) -> float:
    """Stands where a rule has no ``floor``."""
    return 0.0


@lru_cache(maxsize=256)
def _loop(rule: Rule, engine: str) -> Callable[..., None]:
    sums, constants = tuples.of_length(rule.width), tuples.of_length(rule.constants)
    names: dict[str, Any] = {
        "terms": rule.terms,
        "index": rule.index,
        "entry": rule.entry or no_entry,
        "summary": rule.summary,
        "floor": rule.floor or no_floor,
        "row_terms": steps.terms_of_row if rule.entry is None else steps.terms_of_entries,
        "take_constants": constants["take"],
        "take_sums": sums["take_sums"],
        "totals": sums["totals"],
        "put": sums["put"],
        "put_sums": sums["put_sums"],
        "HEAD": rule.head,
        "STANDING": rule.standing,
        "CONSTANTS": rule.constants,
        "ALIKE": rule.alike,
        "ENTRIES": rule.alike and rule.entry is not None,
        "TREE": rule.tree,
        "FLOOR": rule.floor is not None,
        "SUMMARY": rule.summary is not None,
        "RESTLESS": rule.restless,
    }
    loop = rounds.rounds if rule.planned else steps.steps
    if engine == "python":
        return bound(loop, names)
    names |= {"whole": np.uint64, "signed": np.int64}
    functions = (rule.terms, rule.index, rule.entry, rule.summary, rule.floor)
    return compiled(loop, names, cache=all(has_file(function) for function in functions))


@lru_cache(maxsize=8)
def common(name: str, engine: str) -> Callable[..., None]:
    """A function that no policy changes: ``begin`` or ``fill``."""
    function = {"begin": beginning.begin, "fill": alias.fill}[name]
    return bound(function, {}) if engine == "python" else compiled(function, {}, cache=True)
