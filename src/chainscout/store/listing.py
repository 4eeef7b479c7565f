"""Statements of those who only look: chains searched, sorted and paged by the database, and Λ of the estimates.

None has an index of its own: an index would cost every writer, and 100,000 chains are read in tens of milliseconds.
"""

from typing import Any

from sqlalchemy import Double, bindparam, case, cast, func, select

from .schema import chain, row

#: What chains can be sorted by, and the column that it is.
ORDERS = {
    "number": chain.c.number,
    "name": chain.c.name,
    "states": chain.c.size,
    "observations": chain.c.observations,
    "certificate": chain.c.certificate,
    "index": chain.c.index,
}

_found = chain.c.name.ilike(bindparam("pattern"), escape="\\")
number_found = select(func.count()).select_from(chain).where(_found)


def _listing(order: str, descending: bool, searched: bool) -> Any:
    column = ORDERS[order]
    listed = select(chain).order_by(column.desc() if descending else column, chain.c.number)
    listed = listed.limit(bindparam("limit")).offset(bindparam("offset"))
    return listed.where(_found) if searched else listed


#: (order, descending, searched) → statement; made once, for statements are compiled once.
LISTINGS = {
    (order, descending, searched): _listing(order, descending, searched)
    for order in ORDERS
    for descending in (False, True)
    for searched in (False, True)
}


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
