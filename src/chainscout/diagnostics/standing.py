"""The standing of the checks of several chains: the data that they need to continue with the next cards.

The numbers are the same for one call or for many.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from . import _processes
from ._check import Check, Kind, exponential, rejected_chains
from ._numbering import Floats, Wholes
from ._processes import AGES, ChangeLooks, FairBets, Fed, LabelDecks
from ._sentences import given_up, left_out, pending, sentence, skipped, unread, why_waiting

__all__ = [
    "AGES", "CHECKS", "DECLARED", "MOMENTS", "ChainStanding", "Fed", "Labelled", "Numbers", "Standing", "Thinned",
    "Wholes", "checks_of", "given_up", "left_out", "pending", "skipped", "thinned", "unread", "why_waiting",
]  # fmt: skip

#: A check's history has at most this many moments, and the latest one.
MOMENTS = 200
#: The checks that are always made: what they are about and what they compare.
CHECKS = (
    (Kind.ORDER, "predecessor"),
    (Kind.CHANGE, "time"),
    (Kind.SAMENESS, "worker"),
    (Kind.SAMENESS, "path"),
    (Kind.SAMENESS, "age"),
)
#: How many labels were declared beforehand, for those that *sameness* compares; None: they are discovered.
DECLARED = {"worker": None, "path": None, "age": len(AGES) + 1}


#: The result of a check: its place in `CHECKS`, log of the mean e-value and of its largest value, the level; how many
#: cards were judged and left out, and since which number of issue it rejects (0: it does not); and its history.
Numbers = tuple[int, float, float, float, int, int, int, Sequence[Sequence[float]]]


class Labelled(NamedTuple):
    """Transitions of one chain in order of issue, with the labels that were known before each."""

    source: Wholes
    target: Wholes
    #: The state before the source on the same path; −1 where it is not known.
    predecessor: Wholes
    worker: Wholes
    path: Wholes
    age: Wholes


class Thinned:
    """Values over time, thinned as they grow: every 1st, 2nd, 4th, … card, so that at most `MOMENTS` are stored."""

    def __init__(self) -> None:
        self.stride = 1
        self.number = 0
        self.issued = np.empty(0, np.int64)
        self.values = np.empty(0)
        self.last: tuple[int, float] | None = None

    def add(self, issued: Wholes, values: Floats) -> None:
        """Adds cards by their numbers of issue."""
        if not len(issued):
            return
        chosen = (self.number + 1 + np.arange(len(issued))) % self.stride == 0
        self.number += len(issued)
        self.last = int(issued[-1]), float(values[-1])
        self.issued = np.concatenate([self.issued, issued[chosen]])
        self.values = np.concatenate([self.values, values[chosen]])
        while len(self.issued) > MOMENTS:
            self.stride *= 2
            self.issued, self.values = self.issued[1::2], self.values[1::2]

    def moments(self) -> tuple[tuple[int, float], ...]:
        """(number of issue, value), the latest one included."""
        found = [(int(number), float(value)) for number, value in zip(self.issued, self.values, strict=True)]
        if self.last is not None and (not found or found[-1][0] != self.last[0]):
            found.append(self.last)
        return tuple(found)


class ChainStanding:
    """The checks of one chain, continued. ``size``: how many states there are; None: states are discovered."""

    def __init__(self, size: int | None) -> None:
        self.order = FairBets()
        self.change = ChangeLooks(size)
        self.same = {by: (FairBets(), LabelDecks(declared)) for by, declared in DECLARED.items()}
        #: Of each thing that *sameness* compares: the first label, −1 before it, and whether there was another one.
        self.first = dict.fromkeys(DECLARED, -1)
        self.several = dict.fromkeys(DECLARED, False)

    def feed(self, cards: Labelled) -> list[Fed]:
        """Judges the next transitions. Returns the result of each of `CHECKS` after each of them."""
        fed = [
            self.order.feed(cards.source, cards.target, cards.predecessor),
            self.change.feed(cards.source, cards.target)[0],
        ]
        for by, (bets, looks) in self.same.items():
            label = getattr(cards, by)
            if len(label):
                self.first[by] = int(label[0]) if self.first[by] < 0 else self.first[by]
                self.several[by] |= bool((label != self.first[by]).any())
            fed.append(_processes.halves(bets.feed(cards.source, cards.target, label), looks.feed(
                cards.source, cards.target, label)[0]))  # fmt: skip
        return fed

    @property
    def left_out(self) -> list[int]:
        """How many cards each of `CHECKS` left out."""
        return [self.order.left_out, 0, *(bets.left_out for bets, _ in self.same.values())]

    @property
    def compares(self) -> list[bool]:
        """Whether each of `CHECKS` has anything to compare."""
        return [True, True, *self.several.values()]


class Standing:
    """The checks of all chains together, continued: the mean of the chains' e-values, and its largest value."""

    def __init__(self, chains: int) -> None:
        self.chains = chains
        number = len(CHECKS)
        #: log E of each check and chain; of each check the largest log of the mean, and how many cards were judged and
        #: left out; and whether it has anything to compare.
        self.log_values = np.zeros((number, chains))
        self.log_largest = np.zeros(number)
        self.log_mean = np.zeros(number)
        #: The level of *change* of each chain.
        self.levels = np.ones(chains)
        self.cards = np.zeros(number, np.int64)
        self.left_out = np.zeros((number, chains), np.int64)
        self.compares = np.zeros(number, np.int64)
        #: The number of issue at which the mean of each check first reached 1/δ; 0: it has not.
        self.since = np.zeros(number, np.int64)
        self.history = [Thinned() for _ in CHECKS]

    def add(self, fed: Mapping[int, tuple[ChainStanding, Wholes, list[Fed]]], delta: float) -> None:
        """Adds the results of chains for their next cards: by the chain's number, with the cards' numbers of issue.

        ``delta``: the level at which a check rejects.
        """
        weights = np.full(self.chains, 1.0 / self.chains)
        for number in range(len(CHECKS)):
            chain, issued, values = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0)]
            for k, (standing, numbers, found) in fed.items():
                issued.append(numbers[found[number].places])
                values.append(found[number].log_values)
                chain.append(np.full(len(issued[-1]), k, np.int64))
                self.left_out[number, k] = standing.left_out[number]
                self.compares[number] |= standing.compares[number]
            numbers = np.concatenate(issued)
            order = np.argsort(numbers, kind="stable")
            owner, value = np.concatenate(chain)[order], np.concatenate(values)[order]
            trace = _processes.mean_over_chains(owner, value, weights, self.log_values[number])
            self.log_values[number, owner] = value  # the last of several values of a chain remains
            self.log_mean[number] = trace[-1] if len(trace) else self.log_mean[number]
            self.log_largest[number] = max(self.log_largest[number], trace.max(initial=0.0))
            self.cards[number] += len(trace)
            self.history[number].add(numbers[order], trace)
            reached = np.flatnonzero(trace >= -math.log(delta))
            if len(reached) and not self.since[number]:
                self.since[number] = numbers[order[reached[0]]]
        for k, (standing, _, _) in fed.items():
            self.levels[k] = standing.change.level

    @property
    def level(self) -> float:
        """The level of *change* of all chains together: the smallest of each chain's level over its weight."""
        return float(self.levels.min()) * self.chains

    def blamed(self, names: Sequence[str], delta: float) -> dict[tuple[Kind, str], tuple[str, ...]]:
        """The chains that each check speaks against at level ``delta``, if it rejects for all chains together."""
        found: dict[tuple[Kind, str], tuple[str, ...]] = {}
        for number, (kind, by) in enumerate(CHECKS):
            if kind is Kind.CHANGE:
                found[kind, by] = tuple(
                    name for name, one in zip(names, self.levels, strict=True) if one * self.chains <= delta
                )
            elif math.exp(-self.log_largest[number]) <= delta:
                now = dict(zip(names, map(exponential, self.log_values[number]), strict=True))
                found[kind, by] = rejected_chains(now, delta)
        return {key: value for key, value in found.items() if value}

    @property
    def judged(self) -> int:
        """How many transitions were judged."""
        return int(self.cards[CHECKS.index((Kind.CHANGE, "time"))])  # it leaves none out

    def numbers(self) -> list[Numbers]:
        """The results of the checks as plain numbers, of those that have anything to compare."""
        found: list[Numbers] = []
        for number, (kind, _) in enumerate(CHECKS):
            if self.compares[number] or kind is not Kind.SAMENESS:
                level = self.level if kind is Kind.CHANGE else math.exp(-self.log_largest[number])
                values = float(self.log_mean[number]), float(self.log_largest[number]), min(1.0, float(level))
                counts = int(self.cards[number]), int(self.left_out[number].sum()), int(self.since[number])
                found.append((number, *values, *counts, self.history[number].moments()))
        return found


def checks_of(results: Iterable[Numbers], chain: str | None, delta: float) -> list[Check]:
    """The checks that these numbers stand for. ``chain``: the name of the only chain."""
    found = []
    for place, log_mean, log_largest, level, cards, omitted, since, history in results:
        kind, by = CHECKS[place]
        text = sentence(chain, kind, by, level, delta, (), False, together=chain is None)
        moments = tuple((int(number), float(value)) for number, value in history)
        found.append(
            Check(
                chain, kind, by, exponential(log_mean), exponential(log_largest), level, text, (), cards, omitted,
                since or None, moments,
            )
        )  # fmt: skip
    return found


def thinned(issued: Wholes, values: Floats) -> tuple[tuple[int, float], ...]:
    """(number of issue, value) at up to `MOMENTS` moments, and the latest."""
    found = Thinned()
    found.add(issued, values)
    return found.moments()
