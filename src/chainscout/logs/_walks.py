"""The rows of a log as paths of chains in their order, for the checks of the Markov assumption."""

import itertools
import re
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..paths import START, Paths
from ..validation import shown
from .results import States, states_of

#: Text that is a whole number in its usual form, as in ``_spool``.
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")


class Step(NamedTuple):
    """One row of a log, in the order of chains, paths and times."""

    chain: Hashable
    #: The number of the path in its chain, and of the moment among the chain's moments.
    path: int
    moment: int
    #: Whether this row begins an unbroken path.
    begins: int
    #: None: the row has no state.
    state: Hashable | None
    #: Whether the row is tied with the one before it, or lacks a chain, a time, a path or an order.
    fault: int


class Walks(NamedTuple):
    """One chain's rows as whole numbers, and the states of these numbers."""

    path: np.ndarray[Any, np.dtype[np.int64]]
    moment: np.ndarray[Any, np.dtype[np.int64]]
    begins: np.ndarray[Any, np.dtype[np.bool_]]
    state: np.ndarray[Any, np.dtype[np.int64]]
    labels: list[Hashable]


class Found(NamedTuple):
    """The rows of all chains, and how many rows cannot be used."""

    chains: dict[str, Walks]
    faults: int
    stateless: int


def gathered(steps: Iterable[Sequence[Any]]) -> Found:
    """The rows chain by chain. A row takes 25 bytes, and 150 while its chain is read."""
    chains: dict[str, Walks] = {}
    faults = stateless = 0
    for name, rows in itertools.groupby(map(Step._make, steps), key=lambda step: step.chain):
        path, moment, begins, state = [], [], [], []
        labels: dict[Hashable, int] = {}
        for step in rows:
            if step.fault or name is None:
                faults += 1
            elif step.state is None:
                stateless += 1
            else:
                path.append(step.path)
                moment.append(step.moment)
                begins.append(step.begins)
                state.append(labels.setdefault(step.state, len(labels)))
        if state:
            numbers = (np.array(values, dtype=np.int64) for values in (path, moment, state))
            first, second, third = numbers
            chains[str(name)] = Walks(first, second, np.array(begins, dtype=bool), third, list(labels))
    return Found(chains, faults, stateless)


def paths_of(found: Found, states: States, untyped: bool) -> dict[str, Paths]:
    """The chains' draws in the order of issue. ``untyped``: labels come from text, where '12' may mean a number."""
    every = {label for walks in found.chains.values() for label in walks.labels}
    whole = untyped and all(_WHOLE.fullmatch(str(label)) for label in every)
    return {name: _paths(name, walks, states, whole) for name, walks in found.chains.items()}


def _paths(name: str, walks: Walks, states: States, whole: bool) -> Paths:
    """One chain's draws. A draw starts when the state before it is known, so that moment is its place."""
    labels = [int(str(label)) if whole else label for label in walks.labels]
    given = states_of(name, states)
    known: int | Sequence[Hashable] = sorted(labels) if given is None else given  # type: ignore[type-var]
    place = {label: number for number, label in enumerate(range(known) if isinstance(known, int) else known)}
    strange = next((label for label in labels if label not in place), None)
    if strange is not None:
        raise InputError(f"chain {shown(name)}: {shown(strange)} is not among its states {shown(list(place))}")
    target = np.array([place[label] for label in labels], dtype=np.int64)[walks.state]
    begins = walks.begins.copy()
    begins[0] = True
    number = np.cumsum(begins) - 1
    first = np.flatnonzero(begins)
    step = np.arange(len(target)) - first[number]
    source = np.where(begins, START, np.roll(target, 1))
    issued = np.where(begins, walks.moment, np.roll(walks.moment, 1))
    order = np.lexsort((number, issued))
    told = np.empty(len(target), dtype=np.int64)
    told[np.lexsort((number, walks.moment))] = np.arange(1, len(target) + 1)
    return Paths(
        known,
        path=number[order],
        step=step[order],
        source=source[order],
        target=target[order],
        told=told[order],
        open_states=given is None,
        key=name,
    )
