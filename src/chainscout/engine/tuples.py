"""Rules take and give tuples, whose lengths compiled code must know: functions over tuples, written out by length."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ..policies.policy import replaced
from .layout import SUMS, TERMS

_FUNCTIONS = '''
def take(values, start):
    return ({values},)

def put(values, start, items):
    {stores}

def totals(reals, record, rows, row, terms):
    return ({totals},)
'''


@lru_cache(maxsize=64)
def of_length(length: int) -> dict[str, Callable[..., Any]]:
    """take(values, start) → the tuple of values from there; put(values, start, items) stores one; totals(…) → the
    running sums after one row's terms have changed."""
    each = range(length)
    source = _FUNCTIONS.format(
        values=", ".join(f"values[start + OFFSET_{j}]" for j in each) or "",
        stores="; ".join(f"values[start + OFFSET_{j}] = items[{j}]" for j in each) or "pass",
        totals=", ".join(
            f"replaced(reals[record + SUM_{j}], rows[row + TERM_{j}], terms[{j}])" for j in each
        ),
    ).replace("(,)", "()")
    names: dict[str, Any] = {"__name__": __name__, "replaced": replaced}
    for j in each:
        names |= {f"OFFSET_{j}": j, f"SUM_{j}": SUMS + j, f"TERM_{j}": TERMS + j}
    exec(source, names)
    return {name: names[name] for name in ("take", "put", "totals")}
