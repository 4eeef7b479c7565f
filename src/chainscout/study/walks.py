"""The draws of a chain as answers and checks read them: in the order of issue, holes included (MATH §11 and §15)."""

import numpy as np

from ..paths import LOST, PENDING, START, Paths
from . import labels
from .chain import Chain
from .draws import UNKNOWN, Card, Status
from .state import State

__all__ = ["walked_paths"]


def walked_paths(state: State, chain: Chain) -> Paths:
    """Every draw of the chain whose row is known. The state must record draws. The warm start is not included.

    The clock of tells is the numbers of the entries. A slot that is void for its row is left out. The order ends before
    the first lease whose steps are told in one go and are not told yet, because nobody knows its rows.
    """
    cards: list[Card] = []
    for card in chain.draws.ordered():
        if card.target == UNKNOWN and card.source == UNKNOWN:
            break
        if not card.is_row_void and card.status is not Status.RELEASED:
            cards.append(card)
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
        step = card.step - 1 if card.told else lengths.get(card.path, 1)
        target = card.target if card.told else PENDING if card.status is Status.PENDING else LOST
        rows.append((path, step, START if card.source < 0 else card.source, target, card.told))
    table = np.array(rows, dtype=np.int64).reshape(-1, 5)
    names = [state.walkers[owners[path]].name for path in sorted(lengths)] + ["nobody"] * len(strays)
    workers = tuple(dict.fromkeys(names)) or ("main",)
    return Paths(
        labels.states(chain), path=table[:, 0], step=table[:, 1], source=table[:, 2], target=table[:, 3],
        told=table[:, 4], worker=[workers.index(name) for name in names], workers=workers, open_states=chain.is_open,
        key=f"{state.settings['id']}:{chain.number}",
    )  # fmt: skip
