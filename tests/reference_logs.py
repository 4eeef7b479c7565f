"""Counting the transitions of a log, slow and obvious: what every engine is tested against."""

import datetime
from collections.abc import Iterable
from typing import Any, NamedTuple

from chainscout import Counts


class Row(NamedTuple):
    """A row of a log; ``path`` and ``order`` are constant where a test has no such column."""

    chain: Any
    time: Any
    state: Any
    path: Any = 0
    order: Any = 0


def unbroken_paths(rows: Iterable[Row], gap: float | datetime.timedelta | None = None) -> dict[str, list[list[Any]]]:
    """The paths of each chain: ordered in time, cut at paths, gaps and rows without a state."""
    paths: dict[str, list[list[Any]]] = {}
    before: Row | None = None
    for row in sorted(rows, key=lambda row: (row.chain, row.path, row.time, row.order)):
        same = before is not None and (before.chain, before.path) == (row.chain, row.path)
        far = same and gap is not None and row.time - before.time > gap
        if row.state is not None:
            if not same or far or before.state is None:
                paths.setdefault(str(row.chain), []).append([])
            paths[str(row.chain)][-1].append(row.state)
        before = row
    return paths


def counts(
    rows: Iterable[Row], *, lag: int = 1, sliding: bool = False, gap: float | datetime.timedelta | None = None
) -> dict[str, Counts]:
    """Each unbroken path thinned to every ``lag``-th state; a sliding lag takes all ``lag`` thinned paths."""
    found = {}
    for name, paths in unbroken_paths(rows, gap).items():
        thinned = [path[j::lag] for path in paths for j in range(lag if sliding else 1)]
        states = sorted({state for path in thinned for state in path})
        found[name] = Counts(states, open_states=True, correlated=sliding and lag > 1)
        for path in thinned:
            for state in path:
                found[name].record(state)
            found[name].restart()
    return found
