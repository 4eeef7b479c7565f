"""The e-processes of one chain over arrays of cards in order of issue: order, sameness, change, a known matrix.

Validity needs two things from the caller: cards come in order of issue, and the queue is cut before the first pending
card (``diagnose`` does both). Then, if the chain is Markov and does not change, each process ever reaches 1/δ with
probability at most δ (docs/diagnostics.md).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..compile import compiled, is_off
from . import _bets, _decks, _known
from ._numbering import CONTEXTS, Floats, Layout, Numbering, Wholes, layout, moved, starts

#: The last steps of the bins of ages since a path's start; one more bin has all later steps.
AGES = (16, 128, 1024)


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
    """M as a process; the levels of P; and the strongest look of each row."""

    process: Process
    #: P after each card, not yet doubled; and the smallest level at which *change* rejects.
    levels: Floats
    level: float
    #: Of each row: its smallest p/w, the outcome, and the places of the first and the last card of that window.
    row_levels: Floats
    outcomes: Wholes
    first: Wholes
    last: Wholes


class Fed(NamedTuple):
    """The judged cards of one call, as places among the given cards; and log E after each."""

    places: Wholes
    log_values: Floats


@lru_cache(maxsize=8)
def _compiled(function: Callable[..., None]) -> Callable[..., None]:
    """A compiled kernel; with compilation off, the function itself."""
    return function if is_off() else compiled(function, {}, cache=True)


def _kernel(function: Callable[..., None], cards: int) -> Callable[..., None]:
    """The function that judges this number of cards. For none, nothing is compiled."""
    return _compiled(function) if cards else function


@lru_cache(maxsize=4)
def _table(power: int) -> Floats:
    """log n! for n below 2^power."""
    from scipy.special import gammaln  # here, because it loads slowly

    return np.asarray(gammaln(np.arange(2**power) + 1.0))


class FairBets:
    """F, continued card by card: whether the outcome depends on a label that was known before the step."""

    def __init__(self) -> None:
        self.numbering = Numbering.empty()
        self.bets = _bets.bets_for(self.numbering.outcomes, np.empty(0, np.int64))
        self.left_out = 0

    def feed(self, source: Wholes, target: Wholes, label: Wholes) -> Fed:
        """Plays the next cards. A label of −1: the card has none."""
        cards = layout(self.numbering, source, target, label)
        self._make_room(cards.numbering)
        self.left_out += cards.left_out
        first = starts(cards.numbering.labels)
        trace = np.zeros(len(cards.places))
        _kernel(_bets.play, len(trace))(
            cards.row, first[cards.row] + cards.label, cards.slot, len(trace), self.bets, trace
        )  # fmt: skip
        return Fed(cards.places, trace)

    def _make_room(self, numbering: Numbering) -> None:
        """Moves all numbers to their places in a larger numbering."""
        if numbering.has_room_of(self.numbering):
            self.numbering = numbering
            return
        old, known, rows = self.bets, self.numbering, len(numbering.states)
        owner = np.repeat(np.arange(rows), numbering.labels)
        known_owner = np.repeat(np.arange(len(known.states)), known.labels)
        new = _bets.bets_for(numbering.outcomes, owner)
        new.log_weight[:], new.log_total[:] = old.log_weight, old.log_total
        for name in ("seen", "exits", "bets", "log_wealth", "log_value", "unseen_drift"):
            getattr(new, name)[: len(known.states)] = getattr(old, name)
        key, known_key = np.arange(rows), np.arange(len(known.states))
        for name in ("counts", "drift"):
            getattr(new, name)[:] = moved(getattr(old, name), known_key, known.outcomes, key, numbering.outcomes)
        # A context is named by its row and its label's rank.
        context = owner * CONTEXTS + np.arange(len(owner)) - starts(numbering.labels)[owner]
        known_context = known_owner * CONTEXTS + np.arange(len(known_owner)) - starts(known.labels)[known_owner]
        for name, width in (("context_exits", 1), ("log_ratio", len(_bets.STRENGTHS))):
            widths, known_widths = np.full(len(context), width), np.full(len(known_context), width)
            getattr(new, name)[:] = moved(getattr(old, name), known_context, known_widths, context, widths)
        new.context_counts[:] = moved(
            old.context_counts, known_context, known.outcomes[known_owner], context, numbering.outcomes[owner]
        )
        self.bets, self.numbering = new, numbering


class _Looks:
    """T, M and P, continued card by card: the memory of looks at decks, and the mean of three products over rows."""

    def __init__(self) -> None:
        self.numbering = Numbering.empty()
        #: Of each row: its cards, and A.
        self.cards = np.empty(0, np.int64)
        self.amount = np.empty(0)
        self.log_products = np.zeros(3)
        #: The rings of all rows, flat; and what looks at sameness have reached.
        self.counts = np.empty(0)
        self.reached = np.empty(0, np.int64)
        self.left_out = 0

    def _lengths(self, cards: Wholes) -> Wholes:
        """How many lengths of windows or prefixes a row with this many cards needs."""
        longest = np.frexp(cards.astype(np.float64))[1] - 1  # ⌊log₂⌋, −1 without a card
        return np.asarray(np.maximum(0, longest - 1), np.int64)  # from 4 = 2² cards on

    def _rings(self, numbering: Numbering, lengths: Wholes) -> tuple[Wholes, Wholes]:
        """The key of each ring, and how many places it has."""
        raise NotImplementedError

    def _look(self, cards: Layout) -> tuple[_decks.Deck, _decks.Look, _decks.Rings]:
        """Room for the next cards."""
        numbering, rows, number = cards.numbering, len(cards.numbering.states), len(cards.places)
        before, amount = np.zeros(rows, np.int64), np.full(rows, -1.0)
        before[: len(self.cards)], amount[: len(self.cards)] = self.cards, self.amount
        after = before + np.bincount(cards.row, minlength=rows)
        lengths = self._lengths(after)
        rings, widths = self._rings(numbering, lengths)
        known_lengths = self._lengths(self.cards)
        counts = self.counts
        if not (numbering.has_room_of(self.numbering) and np.array_equal(lengths, known_lengths)):
            counts = moved(counts, *self._rings(self.numbering, known_lengths), rings, widths)
        reached = np.zeros(2 * (CONTEXTS + 1) * rows, np.int64)
        reached[: len(self.reached)] = self.reached
        order = np.argsort(cards.row, kind="stable")
        start = np.searchsorted(cards.row[order], np.arange(rows + 1)).astype(np.int64)
        factorials = _table(int(after.max(initial=0) + 2).bit_length())
        deck = _decks.Deck(
            start, order, cards.slot[order], cards.label[order], numbering.outcomes, numbering.labels, before,
            factorials,
        )  # fmt: skip
        wholes = np.zeros((4, rows), np.int64)
        look = _decks.Look(
            np.zeros(number), np.full(number, np.inf), np.zeros(rows), wholes[0], wholes[1], np.full(rows, np.inf),
            wholes[2], wholes[3], np.full(rows, -1, np.int64),
        )  # fmt: skip
        first = starts(widths)[np.searchsorted(rings // _MOST_RINGS, np.arange(rows))] if rows else before
        widest = int(numbering.outcomes.max(initial=1))
        memory = _decks.Rings(first, lengths, counts, reached, *(np.zeros(widest) for _ in range(3)))
        self.numbering, self.cards, self.amount, self.counts, self.reached = numbering, after, amount, counts, reached
        self.left_out += cards.left_out
        return deck, look, memory

    def _multiply(self, cards: Layout, gain: Floats) -> Fed:
        """log of the mean of three products over rows, after each card."""
        trace = np.zeros(len(gain))
        _kernel(_decks.multiply, len(gain))(cards.row, gain, len(gain), self.amount, self.log_products, trace)
        return Fed(cards.places, trace)

    @property
    def log_rows(self) -> Floats:
        """log A of each row."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.maximum(0.0, self.amount)))


#: A row has fewer rings than this.
_MOST_RINGS = 2**14


class LabelDecks(_Looks):
    """T, continued card by card: whether labels that come one after the other have the same law.

    ``declared``: how many labels were declared beforehand; None: they are discovered.
    """

    def __init__(self, declared: int | None) -> None:
        super().__init__()
        self.declared = declared

    def _rings(self, numbering: Numbering, lengths: Wholes) -> tuple[Wholes, Wholes]:
        """One side for all cards of the row, and two for each label; each has its counts now and at each length."""
        rings = (1 + 2 * numbering.labels) * (1 + lengths)
        owner = np.repeat(np.arange(len(rings)), rings)
        place = np.arange(len(owner)) - starts(rings)[owner]
        side, ring = np.divmod(place, 1 + lengths[owner])
        return owner * _MOST_RINGS + side * 64 + ring, numbering.outcomes[owner]

    def feed(self, source: Wholes, target: Wholes, label: Wholes) -> tuple[Fed, _decks.Look]:
        """Looks at the next cards."""
        cards = layout(self.numbering, source, target, label)
        deck, look, memory = self._look(cards)
        ranks = np.arange(1.0, int(cards.numbering.labels.max(initial=0)) + 1.0)
        weights = np.full(len(ranks), 1.0 / self.declared) if self.declared else 1.0 / (ranks * (ranks + 1.0))
        _kernel(_decks.sameness, len(cards.places))(deck, len(deck.outcomes), weights, look, memory)
        return self._multiply(cards, look.gain), look


class ChangeLooks(_Looks):
    """M and P, continued card by card: whether the law changes with time, on each row's own clock.

    ``size``: how many states there are; None: states are discovered.
    """

    def __init__(self, size: int | None) -> None:
        super().__init__()
        self.size = size
        #: P now, not yet doubled, and the largest log M.
        self.smallest = np.inf
        self.log_largest = 0.0

    def _rings(self, numbering: Numbering, lengths: Wholes) -> tuple[Wholes, Wholes]:
        """The counts now, and those at the last five quarters of each length of windows."""
        rings = 1 + 5 * lengths
        owner = np.repeat(np.arange(len(rings)), rings)
        return owner * _MOST_RINGS + np.arange(len(owner)) - starts(rings)[owner], numbering.outcomes[owner]

    def feed(self, source: Wholes, target: Wholes) -> tuple[Fed, Floats, _decks.Deck, _decks.Look]:
        """Looks at the next cards. The second result is P after each of them."""
        cards = layout(self.numbering, source, target, np.zeros(len(source), np.int64))
        deck, look, memory = self._look(cards)
        rows = len(deck.outcomes)
        ranks = np.arange(1.0, rows + 1.0)
        weights = 1.0 / (ranks * (ranks + 1.0)) if self.size is None else np.full(rows, 1.0 / self.size)
        _kernel(_decks.change, len(cards.places))(deck, rows, weights, look, memory)
        fed = self._multiply(cards, look.gain)
        levels = np.minimum.accumulate(np.minimum(look.level, self.smallest)) if len(look.level) else look.level
        self.smallest = float(levels[-1]) if len(levels) else self.smallest
        self.log_largest = max(self.log_largest, float(fed.log_values.max(initial=0.0)))
        return fed, levels, deck, look

    @property
    def level(self) -> float:
        """The smallest level at which *change* rejects: twice the smaller of P and 1/max M."""
        return min(1.0, 2.0 * min(self.smallest, math.exp(-self.log_largest)))


def fair_bets(source: Wholes, target: Wholes, label: Wholes) -> Process:
    """F: whether the outcome depends on a label ≥ 0 that was known before the step; −1: the card has none."""
    process = FairBets()
    fed = process.feed(source, target, label)
    bets, known = process.bets, process.numbering
    ratios = np.logaddexp.reduce(bets.log_ratio.reshape(-1, len(_bets.STRENGTHS)), axis=1)
    owner = np.repeat(np.arange(len(known.states)), known.labels)
    strongest = np.lexsort((ratios, owner))[np.cumsum(known.labels) - 1]  # the label with the largest value in its row
    return Process(
        fed.places, fed.log_values, known.states, bets.log_value, known.label_values[strongest], process.left_out
    )  # fmt: skip


def decks(source: Wholes, target: Wholes, label: Wholes, declared: int | None) -> Process:
    """T: whether labels that come one after the other have the same law.

    ``declared``: how many labels were declared beforehand; None: they are discovered.
    """
    process = LabelDecks(declared)
    fed, look = process.feed(source, target, label)
    known = process.numbering
    at = starts(known.labels) + look.least_slot
    labels = np.where(look.least_slot >= 0, known.label_values[np.maximum(0, at)], -1)
    return Process(fed.places, fed.log_values, known.states, process.log_rows, labels, process.left_out)


def order(cards: Cards) -> Process:
    """Whether the next state depends on the state before the last one."""
    return fair_bets(cards.source, cards.target, cards.predecessors())


def halves(bets: Fed, looks: Fed) -> Fed:
    """(F + T)/2 over the same cards."""
    half = math.log(0.5)
    return Fed(bets.places, np.logaddexp(bets.log_values + half, looks.log_values + half))


def sameness(source: Wholes, target: Wholes, label: Wholes, declared: int | None = None) -> Process:
    """Whether the law is the same for every label, which may be interleaved or come in sequence: (F + T)/2."""
    bets, looks = fair_bets(source, target, label), decks(source, target, label, declared)
    half = math.log(0.5)
    _, values = halves(Fed(bets.places, bets.log_values), Fed(looks.places, looks.log_values))
    rows = np.logaddexp(bets.log_rows + half, looks.log_rows + half)
    labels = np.where((looks.log_rows > bets.log_rows) & (looks.labels >= 0), looks.labels, bets.labels)
    return Process(bets.places, values, bets.states, rows, labels, bets.left_out)


def change(source: Wholes, target: Wholes, size: int | None) -> Change:
    """Whether the law changes with time, over each row's own clock.

    ``size``: how many states there are; None: states are discovered.
    """
    looks = ChangeLooks(size)
    fed, levels, deck, look = looks.feed(source, target)
    known = looks.numbering
    # The window whose p-value is the smallest, or, if there is none, the one with the most evidence.
    at = starts(known.outcomes) + np.maximum(0, look.least_slot)
    outcomes = np.where(look.least_slot >= 0, known.outcome_values[np.minimum(at, at.max(initial=0))], -1)
    last = deck.start[:-1] + np.maximum(1, look.least_end) - 1
    first = last - np.maximum(1, look.least_window) + 1
    none = np.full(len(known.states), -1, np.int64)
    process = Process(fed.places, fed.log_values, known.states, looks.log_rows, none)
    return Change(process, levels, looks.level, look.least, outcomes, deck.place[first], deck.place[last])


def reference(source: Wholes, target: Wholes, law: Floats) -> Process:
    """Whether the law is that of an exactly known matrix. ``law``: the known probability of each card's outcome."""
    cards = layout(Numbering.empty(), source, target, np.zeros(len(source), np.int64))
    states, outcomes = cards.numbering.states, cards.numbering.outcomes
    known = _known.known_for(len(states), int(outcomes.sum()))
    trace = np.zeros(len(law))
    cell = starts(outcomes)[cards.row] + cards.slot
    _kernel(_known.against, len(law))(cards.row, cell, law, len(law), known, trace)
    return Process(cards.places, trace, states, known.log_mean, np.full(len(states), -1, np.int64))


def mean_over_chains(chain: Wholes, log_value: Floats, weights: Floats, stand: Floats | None = None) -> Floats:
    """log Σ_k w_k·E_k over time. Each event gives one chain's new log E.

    The weights sum to at most one; the largest of the result is the largest *of the mean*. ``stand``: each chain's
    log E before the first event; None: every chain starts at E = 1.
    """
    trace = np.zeros(len(chain))
    leaves = 1 << max(1, (len(weights) - 1).bit_length())
    log_tree = np.full(2 * leaves, -np.inf)
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights)
    log_tree[leaves : leaves + len(weights)] = log_weights if stand is None else log_weights + stand
    for node in range(leaves - 1, 0, -1):
        log_tree[node] = _log_sum(log_tree[2 * node], log_tree[2 * node + 1])
    _kernel(_sums, len(chain))(chain, log_value, log_weights, len(chain), leaves, log_tree, trace)
    return trace


def _sums(chain: Any, log_value: Any, log_weights: Any, number: int, leaves: int, log_tree: Any, trace: Any) -> None:
    """Sums of exponentials in a tree, so that a large value leaves no rounding error when it falls."""
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
