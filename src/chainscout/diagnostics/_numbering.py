"""Rows, outcomes and labels, numbered in order of discovery, for cards that come in one part or in many."""

from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Wholes = npt.NDArray[np.int64]

#: The first labels of a row, up to this number, are distinguished. Later cards with other labels are left out.
CONTEXTS = 64
#: A table with up to this many places per card is filled. For a larger one, the pairs are sorted.
DENSE = 8


class Numbering(NamedTuple):
    """The rows that were discovered, and in each of them its outcomes and its labels, in order of discovery."""

    #: The state of each row; how many outcomes and how many labels each row has.
    states: Wholes
    outcomes: Wholes
    labels: Wholes
    #: The values behind outcomes and labels, row by row.
    outcome_values: Wholes
    label_values: Wholes

    @classmethod
    def empty(cls) -> Self:
        """Before the first card."""
        return cls(*(np.empty(0, np.int64) for _ in cls._fields))

    def has_room_of(self, other: "Numbering") -> bool:
        """Whether nothing is new: the same numbers of rows, outcomes and labels."""
        return np.array_equal(self.outcomes, other.outcomes) and np.array_equal(self.labels, other.labels)


class Layout(NamedTuple):
    """Cards by the numbers of their rows, outcomes and labels."""

    #: The places of the cards that have a label, among all that were given.
    places: Wholes
    row: Wholes
    slot: Wholes
    label: Wholes
    #: The numbering after these cards.
    numbering: Numbering
    #: Cards that were left out because their row has too many labels.
    left_out: int


def layout(known: Numbering, source: Wholes, target: Wholes, label: Wholes, most: int = CONTEXTS) -> Layout:
    """The layout of new cards with a label ≥ 0, with up to ``most`` labels per row, after the known ones."""
    rows = len(known.states)
    owner_of_label = np.repeat(np.arange(rows), known.labels)
    owner_of_outcome = np.repeat(np.arange(rows), known.outcomes)
    places = np.flatnonzero(label >= 0)
    row, _, states = _ranked(np.zeros(rows, np.int64), known.states, np.zeros(len(places), np.int64), source[places], 1)
    context, labels, label_values = _ranked(owner_of_label, known.label_values, row, label[places], len(states))
    kept = context < most  # a row's first card is always kept, so the rows are the same
    left_out = len(kept) - int(kept.sum())
    if left_out:
        places, row = places[kept], row[kept]
        context, labels, label_values = _ranked(owner_of_label, known.label_values, row, label[places], len(states))
    slot, outcomes, outcome_values = _ranked(owner_of_outcome, known.outcome_values, row, target[places], len(states))
    numbering = Numbering(states, outcomes, labels, outcome_values, label_values)
    return Layout(places, row, slot, context, numbering, left_out)


def _ranked(
    known_group: Wholes, known_value: Wholes, group: Wholes, value: Wholes, groups: int
) -> tuple[Wholes, Wholes, Wholes]:
    """Of each card, the rank of its value in its group by first occurrence; each group's number of values; the values
    themselves, group by group and in order of rank. Known values come first, in their order."""
    before = len(known_group)
    group, value = np.concatenate([known_group, group]), np.concatenate([known_value, value])
    if not len(group):
        return np.empty(0, np.int64), np.zeros(groups, np.int64), np.empty(0, np.int64)
    span = int(value.max()) + 1
    places = group * span + value
    if groups * span > DENSE * len(group):  # a table would be mostly empty: number the pairs that occur
        keys, places = np.unique(places, return_inverse=True)
    else:
        keys = np.arange(groups * span)
    first = np.full(len(keys), len(group))
    first[places[::-1]] = np.arange(len(group))[::-1]
    found = np.flatnonzero(first < len(group))
    order = found[np.lexsort((first[found], keys[found] // span))]
    owners = keys[order] // span
    numbers = np.bincount(owners, minlength=groups).astype(np.int64)
    rank = np.empty(len(keys), np.int64)
    rank[order] = np.arange(len(order)) - (np.cumsum(numbers) - numbers)[owners]
    return rank[places][before:], numbers, (keys[order] % span).astype(np.int64)


def starts(widths: Wholes) -> Wholes:
    """The position at which each group begins in a flat array, for groups of these widths."""
    return np.cumsum(widths) - widths


def moved(values: Floats, key: Wholes, width: Wholes, new_key: Wholes, new_width: Wholes) -> Floats:
    """A flat array of groups, in a flat array in which there are more groups, or wider ones; new places are zero.

    ``key``, ``width``: what names each group, rising, and how many places it has.
    """
    found = np.zeros(int(new_width.sum()))
    if len(values):
        shift = starts(new_width)[np.searchsorted(new_key, key)] - starts(width)
        found[np.repeat(shift, width) + np.arange(len(values))] = values
    return found
