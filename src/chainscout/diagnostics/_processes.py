"""The e-processes of one chain over arrays of cards in order of issue: order, sameness, change, a known matrix.

Validity asks for two things of the caller: cards come in order of issue, and the queue is cut before the first card
that is pending (``diagnose`` does both). Then each process ever reaches 1/δ with probability at most δ if the chain is
Markov and does not change (docs/diagnostics.md).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from ..compile import compiled, is_off
from . import _bets, _decks, _known

Floats = npt.NDArray[np.float64]
Wholes = npt.NDArray[np.int64]

#: The first so many labels of a row are told apart; later cards with other labels are left out.
CONTEXTS = 64
#: The last steps of the bins of ages since a path's start; one more bin has all later steps.
AGES = (16, 128, 1024)


#: A table with up to so many places for each card is filled; a larger one is sorted.
DENSE = 8


class Cards(NamedTuple):
    """Transitions of one chain in order of issue, states by position."""

    path: Wholes
    #: The number of the transition in its path, from 1.
    step: Wholes
    source: Wholes
    target: Wholes

    def predecessors(self) -> Wholes:
        """The state before the source of each card on its path; −1 where it is not known."""
        order = np.lexsort((np.arange(len(self.path)), self.path))
        path, step, source = self.path[order], self.step[order], self.source[order]
        follows = np.zeros(len(order), bool)
        follows[1:] = (path[1:] == path[:-1]) & (step[1:] == step[:-1] + 1)
        before = np.full(len(order), -1, np.int64)
        before[1:] = np.where(follows[1:], source[:-1], -1)
        found = np.empty_like(before)
        found[order] = before
        return found

    def ages(self) -> Wholes:
        """The bin of each card's age since its path's start."""
        return np.searchsorted(np.array(AGES), self.step).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Process:
    """An e-process over the cards that it judged."""

    #: The places of these cards among all, and log E after each.
    places: Wholes
    log_values: Floats
    #: The state of each row, in order of discovery, and the logarithm of its own evidence now.
    states: Wholes
    log_rows: Floats
    #: Of each row: the label that speaks most, or −1.
    labels: Wholes
    #: Cards that were left out because their row has too many labels.
    left_out: int = 0

    @property
    def log_value(self) -> float:
        """log E now."""
        return float(self.log_values[-1]) if len(self.log_values) else 0.0

    @property
    def log_largest(self) -> float:
        """The largest log E so far; it starts at zero."""
        return max(0.0, float(self.log_values.max(initial=0.0)))


@dataclass(frozen=True, slots=True)
class Change:
    """M as a process; the levels of P; and of each row the look that speaks most."""

    process: Process
    #: P after each card, not yet doubled.
    levels: Floats
    #: Of each row: its smallest p/w, the outcome, and the places of the first and the last card of that window.
    row_levels: Floats
    outcomes: Wholes
    first: Wholes
    last: Wholes

    @property
    def level(self) -> float:
        """The smallest level at which *change* rejects: twice the smaller of P and 1/max M."""
        smallest = float(self.levels[-1]) if len(self.levels) else 1.0
        return min(1.0, 2.0 * min(smallest, float(np.exp(-self.process.log_largest))))


class _Layout(NamedTuple):
    """Cards with rows, outcomes and labels numbered in order of discovery."""

    places: Wholes
    row: Wholes
    slot: Wholes
    label: Wholes
    #: Of each row: its state, how many outcomes and how many labels it has.
    states: Wholes
    outcomes: Wholes
    labels: Wholes
    #: The values behind slots and labels, row by row.
    outcome_values: Wholes
    label_values: Wholes
    left_out: int


def _ranked(group: Wholes, value: Wholes, groups: int) -> tuple[Wholes, Wholes, Wholes]:
    """Of each card, the rank of its value in its group by first occurrence; each group's number of values; the values
    themselves, group by group and in order of rank."""
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
    return rank[places], numbers, (keys[order] % span).astype(np.int64)


def _layout(source: Wholes, target: Wholes, label: Wholes, most: int = CONTEXTS) -> _Layout:
    """Cards with a label ≥ 0, up to ``most`` labels a row."""
    places = np.flatnonzero(label >= 0)
    by_state, _, _ = _ranked(np.zeros(len(places), np.int64), source[places], 1)
    rank, _, _ = _ranked(by_state, label[places], int(by_state.max(initial=-1)) + 1)
    left_out = int((rank >= most).sum())
    places = places[rank < most]
    row, _, states = _ranked(np.zeros(len(places), np.int64), source[places], 1)
    slot, outcomes, outcome_values = _ranked(row, target[places], len(states))
    context, labels, label_values = _ranked(row, label[places], len(states))
    return _Layout(
        places, row, slot, context, states, outcomes, labels, outcome_values, label_values, left_out
    )  # fmt: skip


@lru_cache(maxsize=8)
def _kernel(function: Callable[..., None]) -> Callable[..., None]:
    """A compiled kernel; with compilation off, the function itself."""
    return function if is_off() else compiled(function, {}, cache=True)


def fair_bets(source: Wholes, target: Wholes, label: Wholes) -> Process:
    """F: whether the outcome depends on a label ≥ 0 that was known before the step; −1: the card has none."""
    cards = _layout(source, target, label)
    owner = np.repeat(np.arange(len(cards.states)), cards.labels)
    first = np.cumsum(cards.labels) - cards.labels
    bets = _bets.bets_for(cards.outcomes, owner)
    trace = np.zeros(len(cards.places))
    _kernel(_bets.play)(cards.row, first[cards.row] + cards.label, cards.slot, len(trace), bets, trace)
    ratios = np.logaddexp.reduce(bets.log_ratio.reshape(-1, len(_bets.STRENGTHS)), axis=1)
    return Process(
        cards.places, trace, cards.states, bets.log_value, _strongest(ratios, owner, cards), cards.left_out
    )  # fmt: skip


def _strongest(values: Floats, owner: Wholes, cards: _Layout) -> Wholes:
    """The label with the largest value in each row."""
    order = np.lexsort((values, owner))
    return cards.label_values[order[np.cumsum(cards.labels) - 1]]


def _deck(cards: _Layout) -> tuple[_decks.Deck, _decks.Look, _decks.Scratch]:
    number, rows = len(cards.places), len(cards.states)
    order = np.argsort(cards.row, kind="stable")
    start = np.searchsorted(cards.row[order], np.arange(rows + 1)).astype(np.int64)
    factorials = gammaln(np.arange(number + 2) + 1.0)
    deck = _decks.Deck(
        start, order, cards.slot[order], cards.label[order], cards.outcomes, cards.labels, factorials
    )  # fmt: skip
    wholes = np.zeros((4, rows), np.int64)
    look = _decks.Look(
        np.zeros(number), np.full(number, np.inf), np.zeros(rows), wholes[0], wholes[1], np.full(rows, np.inf),
        wholes[2], wholes[3], np.full(rows, -1, np.int64),
    )  # fmt: skip
    widest = int(cards.outcomes.max(initial=1))
    scratch = _decks.Scratch(
        np.zeros(2 * widest), np.zeros(widest), np.zeros(widest), np.zeros(5 * _decks.SCALES * widest),
        np.zeros(2, np.int64),
    )  # fmt: skip
    return deck, look, scratch


def _product(cards: _Layout, gain: Floats) -> tuple[Floats, Floats]:
    """log of the mean of three products over rows, after each card; and log A of each row."""
    trace, amount = np.zeros(len(gain)), np.full(len(cards.states), -1.0)
    _kernel(_decks.multiply)(cards.row, gain, len(gain), amount, np.zeros(3), trace)
    with np.errstate(divide="ignore"):
        return trace, np.log(np.maximum(0.0, amount))


def decks(source: Wholes, target: Wholes, label: Wholes, declared: int | None) -> Process:
    """T: whether labels that come one after the other have the same law.

    ``declared``: how many labels were declared beforehand; None: they are discovered.
    """
    cards = _layout(source, target, label)
    deck, look, scratch = _deck(cards)
    ranks = np.arange(1.0, int(cards.labels.max(initial=0)) + 1.0)
    weights = np.full(len(ranks), 1.0 / declared) if declared else 1.0 / (ranks * (ranks + 1.0))
    _kernel(_decks.sameness)(deck, len(cards.states), weights, look, scratch)
    trace, log_rows = _product(cards, look.gain)
    at = np.cumsum(cards.labels) - cards.labels + look.least_slot
    labels = np.where(look.least_slot >= 0, cards.label_values[np.maximum(0, at)], -1)
    return Process(cards.places, trace, cards.states, log_rows, labels, cards.left_out)


def order(cards: Cards) -> Process:
    """Whether the next state depends on the state before the last one."""
    return fair_bets(cards.source, cards.target, cards.predecessors())


def sameness(source: Wholes, target: Wholes, label: Wholes, declared: int | None = None) -> Process:
    """Whether the law is the same for every label, which may be interleaved or come in sequence: (F + T)/2."""
    bets, looks = fair_bets(source, target, label), decks(source, target, label, declared)
    half = np.log(0.5)
    values = np.logaddexp(bets.log_values + half, looks.log_values + half)
    rows = np.logaddexp(bets.log_rows + half, looks.log_rows + half)
    labels = np.where((looks.log_rows > bets.log_rows) & (looks.labels >= 0), looks.labels, bets.labels)
    return Process(bets.places, values, bets.states, rows, labels, bets.left_out)


def change(source: Wholes, target: Wholes, size: int | None) -> Change:
    """Whether the law changes with time, over each row's own clock.

    ``size``: how many states there are; None: states are discovered.
    """
    cards = _layout(source, target, np.zeros(len(source), np.int64))
    deck, look, scratch = _deck(cards)
    rows = len(cards.states)
    ranks = np.arange(1.0, rows + 1.0)
    weights = 1.0 / (ranks * (ranks + 1.0)) if size is None else np.full(rows, 1.0 / size)
    _kernel(_decks.change)(deck, rows, weights, look, scratch)
    trace, log_rows = _product(cards, look.gain)
    # The window whose p-value is the smallest, or, if there is none, the one with the most evidence.
    at = np.cumsum(cards.outcomes) - cards.outcomes + np.maximum(0, look.least_slot)
    outcomes = np.where(look.least_slot >= 0, cards.outcome_values[np.minimum(at, at.max(initial=0))], -1)
    last = deck.start[:-1] + np.maximum(1, look.least_end) - 1
    first = last - np.maximum(1, look.least_window) + 1
    process = Process(cards.places, trace, cards.states, log_rows, np.full(rows, -1, np.int64))
    levels = np.minimum.accumulate(look.level) if len(look.level) else look.level
    return Change(process, levels, look.least, outcomes, deck.place[first], deck.place[last])


def reference(source: Wholes, target: Wholes, law: Floats) -> Process:
    """Whether the law is that of a matrix that is known exactly; ``law``: what it says of each card's outcome."""
    cards = _layout(source, target, np.zeros(len(source), np.int64))
    known = _known.known_for(len(cards.states), int(cards.outcomes.sum()))
    cell = (np.cumsum(cards.outcomes) - cards.outcomes)[cards.row] + cards.slot
    trace = np.zeros(len(law))
    _kernel(_known.against)(cards.row, cell, law, len(law), known, trace)
    labels = np.full(len(cards.states), -1, np.int64)
    return Process(cards.places, trace, cards.states, known.log_mean, labels)


def mean_over_chains(chain: Wholes, log_value: Floats, weights: Floats) -> Floats:
    """log Σ_k w_k·E_k over time: the events say which chain's log E has which value from then on.

    Every chain starts at E = 1, and the weights sum to at most one; the largest of the result is the largest *of the
    mean*.
    """
    trace = np.zeros(len(chain))
    leaves = 1 << max(1, (len(weights) - 1).bit_length())
    log_tree = np.full(2 * leaves, -np.inf)
    with np.errstate(divide="ignore"):
        log_tree[leaves : leaves + len(weights)] = np.log(weights)
    for node in range(leaves - 1, 0, -1):
        log_tree[node] = np.logaddexp(log_tree[2 * node], log_tree[2 * node + 1])
    log_weights = log_tree[leaves : leaves + len(weights)].copy()
    _kernel(_sums)(chain, log_value, log_weights, len(chain), leaves, log_tree, trace)
    return trace


def _sums(chain: Any, log_value: Any, log_weights: Any, number: int, leaves: int, log_tree: Any, trace: Any) -> None:
    """Sums of exponentials in a tree, so that a value that falls leaves no rounding of what it was."""
    for j in range(number):
        k = chain[j]
        node = leaves + k
        log_tree[node] = log_weights[k] + log_value[j]
        node //= 2
        while node >= 1:
            log_tree[node] = _log_sum(log_tree[2 * node], log_tree[2 * node + 1])
            node //= 2
        trace[j] = log_tree[1]


def _log_sum(first: float, second: float) -> float:
    """log (e^first + e^second)."""
    top = max(first, second)
    if top == math.inf or top == -math.inf:
        return top
    return top + math.log(math.exp(first - top) + math.exp(second - top))
