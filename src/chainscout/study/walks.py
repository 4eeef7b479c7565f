"""The draws of a chain as answers and checks read them: in the order of issue, holes included (MATH §11 and §15)."""

import math
from collections.abc import Sequence

import numpy as np

from ..paths import HOLE, PENDING, START, Paths
from . import labels
from .chain import Chain
from .draws import UNKNOWN, Card, Status
from .state import State

__all__ = ["in_order", "open_cards", "source_key", "walked_paths"]


def source_key(state: State, chain: Chain) -> str:
    """The key of our own coins, as in `Paths.key`."""
    return f"{state.settings['id']}:{chain.number}"


def in_order(card: Card) -> tuple[int, float]:
    """The place of a card in the order of issue."""
    return card.number, card.step or math.inf


def open_cards(chain: Chain) -> list[Card]:
    """The draws that were issued and have no value, but for those that are void for their rows.

    A path that was leased and has no state yet is a draw of the law of starts.
    """
    found = [
        Card(hole.number, hole.path, 0, hole.source, UNKNOWN, 0, 0, hole.status, hole.is_early)
        for hole in chain.draws.holes
        if hole.is_slot and not hole.is_row_void and hole.status is not Status.RELEASED
    ]
    found += [
        Card(path.lease.number, path.number, 1, START, UNKNOWN, 0, 0, Status.PENDING)
        for path in chain.walks.values()
        if path.steps == 0 and path.lease is not None
    ]
    return sorted([*found, *chain.draws.gone], key=in_order)


def walked_paths(state: State, chain: Chain, waiting: Sequence[Card] | None = None) -> Paths:
    """Every draw of the chain whose row is known. The state must record draws. The warm start is not included.

    ``waiting``: the draws without a value; None: those that answers read.

    The clock of tells is the numbers of the entries. A lost draw counts as given up when all values were known, but for
    an early one, which was given up before all of them. A slot that is void for its row is left out. The order ends
    before the first lease whose steps are told in one go and are not told yet, because nobody knows its rows.
    """
    waiting = open_cards(chain) if waiting is None else waiting
    cards = sorted([*(chain.draws.cards or ()), *waiting], key=in_order)
    end = next((place for place, card in enumerate(cards) if card.source == UNKNOWN), len(cards))
    del cards[end:]
    lengths: dict[int, int] = {}
    owners: dict[int, int] = {}
    for card in cards:
        if card.told:
            lengths[card.path] = max(lengths.get(card.path, 0), card.step)
            owners.setdefault(card.path, card.walker)
    numbers = {path: place for place, path in enumerate(sorted(lengths))}
    # A hole of a corrected observation belongs to no path that has a number here: it is a path of its own.
    strays = [card for card in cards if card.path not in numbers]
    rows = []
    for card in cards:
        path = numbers.get(card.path)
        if path is None:
            path = len(numbers) + strays.index(card)
        step = card.step - 1 if card.told or card.source == START else lengths.get(card.path, 1)
        target = card.target if card.told else PENDING if card.status is Status.PENDING else HOLE
        told = state.head.number if target == HOLE and not card.is_early else card.told
        rows.append((path, step, START if card.source < 0 else card.source, target, told, card.number))
    table = np.array(rows, dtype=np.int64).reshape(-1, 6)
    names = [state.walkers[owners[path]].name for path in sorted(lengths)] + ["nobody"] * len(strays)
    workers = tuple(dict.fromkeys(names)) or ("main",)
    return Paths(
        labels.states(chain), path=table[:, 0], step=table[:, 1], source=table[:, 2], target=table[:, 3],
        told=table[:, 4], issued=table[:, 5], worker=[workers.index(name) for name in names], workers=workers,
        open_states=chain.is_open, key=source_key(state, chain),
    )  # fmt: skip
