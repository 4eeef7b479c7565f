"""Statements of those who only look: chains searched, sorted and paged by the database, and Λ of the estimates.

None has an index of its own: an index would cost every writer, and 100,000 chains are read in tens of milliseconds.
"""

import string
from typing import Any

from sqlalchemy import Double, bindparam, case, cast, func, select

from .schema import chain, log, row

#: What chains can be sorted by, and the column that it is.
ORDERS = {
    "number": chain.c.number,
    "name": chain.c.name,
    "states": chain.c.size,
    "observations": chain.c.observations,
    "certificate": chain.c.certificate,
    "index": chain.c.index,
}

# SQLite's LIKE does not tell small letters of ASCII from capital ones; PostgreSQL has ILIKE for that. The search reads
# names alone, which the index of the names has; the chains that it finds are then fetched.
_MATCHES = {
    "sqlite": chain.c.name.like(bindparam("pattern"), escape="\\"),
    "postgresql": chain.c.name.ilike(bindparam("pattern"), escape="\\"),
}
#: dialect → statement.
NUMBER_FOUND = {dialect: select(func.count()).select_from(chain).where(match) for dialect, match in _MATCHES.items()}
MATCHING = {
    dialect: select(chain.c.number).where(match).order_by(chain.c.number) for dialect, match in _MATCHES.items()
}

# Every observation is a transition but the first of each segment: more transitions were there before.
outlines = select(
    chain.c.size, chain.c.open, chain.c.weight, chain.c.transitions > chain.c.observations - chain.c.segments
).order_by(chain.c.number)
moved = (
    select(log.c.chain)
    .where(log.c.number > bindparam("after"), log.c.number <= bindparam("until"))
    .distinct()
    .order_by(log.c.chain)
)


def _listing(order: str, descending: bool, match: Any) -> Any:
    column = ORDERS[order]
    listed = select(chain).order_by(column.desc() if descending else column, chain.c.number)
    listed = listed.limit(bindparam("limit")).offset(bindparam("offset"))
    return listed if match is None else listed.where(chain.c.number.in_(select(chain.c.number).where(match)))


#: (order, descending, dialect or None where nothing is searched) → statement; made once, as they are compiled once.
LISTINGS = {
    (order, descending, dialect): _listing(order, descending, match)
    for order in ORDERS
    for descending in (False, True)
    for dialect, match in [*_MATCHES.items(), (None, None)]
}

_SMALL = {ord(c): c.lower() for c in string.ascii_uppercase}


def small(text: str) -> str:
    """The text with small letters; only those of ASCII, for SQLite knows no others."""
    return text.translate(_SMALL)


def pattern(search: str) -> str:
    """A LIKE pattern for names that contain ``search``."""
    for special in "\\%_":
        search = search.replace(special, f"\\{special}")
    return f"%{search}%"


# Σ_k ω_k·ΣĜ_k over the smoothed estimates (r = αS = 1/3). A row that was never left is uniform, its Ĝ is 1 − 1/S:
# Σ_k ω_k(S_k − 1) counts all rows as such, and every stored row then brings what it differs by.
_size = cast(chain.c.size, Double)
_exits = cast(row.c.exits, Double)
_weight = 1.0 / 3.0
_alpha = _weight / _size
# The form of rows.smoothed_gini.
_gini = (_exits * _exits - row.c.squares + (_weight - _alpha) * (2.0 * _exits + _weight)) / (
    (_exits + _weight) * (_exits + _weight)
)
unvisited_variability = select(func.sum(chain.c.weight * case((chain.c.size > 0, _size - 1.0), else_=0.0)))
visited_variability = select(func.sum(chain.c.weight * (_gini - (1.0 - 1.0 / _size)))).select_from(
    row.join(chain, row.c.chain == chain.c.number)
)
