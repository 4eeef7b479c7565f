"""A policy's functions in the form that the loops of the CPU and the kernels of the GPU call.

Rules take and return tuples. Compiled code must know their lengths, so functions over tuples are written out by length.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..policies import Policy
from ..policies.policy import replaced

#: The index of an unknown chain, before and after its first observations are planned.
FIRST, NEVER = math.inf, -math.inf


def unbound(*arguments: Any) -> Any:
    """A placeholder for a policy's function until a loop is specialised for the policy."""
    raise AssertionError("this loop must be specialised before it is called")


def no_entry(count: float, exits: float, constants: Any) -> float:
    """A placeholder for a rule without ``entry``."""
    return 0.0


def no_floor(observations: float) -> float:
    """A placeholder for a rule without ``floor``."""
    return 0.0


@dataclass(frozen=True)
class RuleParts:
    """The parts of every loop, on the CPU and on the GPU: a policy's functions, and their arguments."""

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
    ) -> "RuleParts":
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
        """The names that every loop calls → their functions."""
        return {
            "terms": self.terms,
            "index": self.index,
            "entry": self.entry or no_entry,
            "summary": self.summary,
            "floor": self.floor or no_floor,
            "take_constants": of_length(self.constants)["take"],
            "CONSTANTS": self.constants,
            "ALIKE": self.alike,
            "FLOOR": self.floor is not None,
            "SUMMARY": self.summary is not None,
            "RESTLESS": self.restless,
        }


_FUNCTIONS = """
def take(values, start):
    return ({values},)

def put(values, start, items):
    {stores}

def take_sums(standings, place):
    return ({sums},)

def put_sums(standings, place, items):
    {sum_stores}

def totals(standings, place, rows, row, terms):
    return ({totals},)

def take_lane(values, place, lane):
    return ({lane_values},)

def put_lane(values, place, lane, items):
    {lane_stores}

def replace_all(sums, old, new):
    return ({replacements},)
"""


@lru_cache(maxsize=64)
def of_length(length: int, sums: int = 0, apart: int = 1, terms: int = 0) -> dict[str, Callable[..., Any]]:
    """take(values, start) → the tuple of values from there; put(values, start, items) stores one.

    On the CPU a chain's sums begin at ``sums`` of its record, ``apart`` floats each, and a row's terms at ``terms`` of
    its own: take_sums and put_sums are the same for the sums of a chain, and totals(…) → the running sums after one
    row's terms have changed. On the GPU arrays have a lane as their last axis: take_lane, put_lane, and replace_all,
    which gives the sums from those before and the row's terms.
    """

    def each(form: str, between: str = ", ") -> str:
        return between.join(form.replace("#", str(j)) for j in range(length))

    source = _FUNCTIONS.format(
        values=each("values[start + OFFSET_#]"),
        stores=each("values[start + OFFSET_#] = items[#]", "; ") or "pass",
        sums=each("standings[place + SUM_#]"),
        sum_stores=each("standings[place + SUM_#] = items[#]", "; ") or "pass",
        totals=each("replaced(standings[place + SUM_#], rows[row + TERM_#], terms[#])"),
        lane_values=each("values[place, OFFSET_#, lane]"),
        lane_stores=each("values[place, OFFSET_#, lane] = items[#]", "; ") or "pass",
        replacements=each("replaced(sums[#], old[#], new[#])"),
    ).replace("(,)", "()")
    names: dict[str, Any] = {"__name__": __name__, "replaced": replaced}
    for j in range(length):
        names |= {f"OFFSET_{j}": j, f"SUM_{j}": sums + apart * j, f"TERM_{j}": terms + j}
    exec(source, names)
    return {name: value for name, value in names.items() if name.islower() and callable(value) and name != "replaced"}
