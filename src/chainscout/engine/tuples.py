"""Rules take and give tuples, whose lengths compiled code must know: functions over tuples, written out by length."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ..policies.policy import replaced
from .layout import FOUR, SUMS, TERMS

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
def of_length(length: int) -> dict[str, Callable[..., Any]]:
    """take(values, start) → the tuple of values from there; put(values, start, items) stores one; the same for the sums
    of a chain; totals(…) → the running sums after one row's terms have changed. On the GPU, whose arrays have a lane as
    their last axis: take_lane, put_lane, and replace_all, which gives the sums from those before and the row's terms.
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
        names |= {f"OFFSET_{j}": j, f"SUM_{j}": SUMS + FOUR * j, f"TERM_{j}": TERMS + j}
    exec(source, names)
    return {name: value for name, value in names.items() if name.islower() and callable(value) and name != "replaced"}
