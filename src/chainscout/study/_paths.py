"""The draws of a chain in the order of issue, from a study's log, its events and the leases of this moment."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ..paths import LOST, PENDING, START, Paths
from ..store import ChainRecord, PathRecord, Transaction
from ._labels import Labels
from ._transitions import MAIN

IntegerArray = npt.NDArray[np.int64]

#: The reasons why the order of issue is not known.
CONTINUED_PLAINLY = "a plain tell continued a path of a lease, so it is not known when its draw was issued"
PLAIN_SIDE_BY_SIDE = (
    "plain tells of a path were told between observations of another path of the chain, so it is not known when their "
    "draws were issued; leases say it"
)

# A table of cards has the columns: number of issue, path, step, source, target, and when the value became known.


def chain_paths(transaction: Transaction, chain: ChainRecord, labels: Labels) -> Paths:
    """Every draw of the chain that was issued. The counts of a warm start are not included."""
    number, _, path, step, state, issued = transaction.draws(chain, 0)
    known = list(transaction.paths(chain))
    told = _told_cards(number, path, step, state, issued)
    unordered = None if transaction.study.shared else _why_unordered(known, number, path, issued)
    others = _other_cards(transaction, chain, known, told)
    cards = np.concatenate([told, others])
    key = cards[:, 5 if unordered else 0]
    cards = cards[np.argsort(key, kind="stable")]
    names = {name: position for position, name in enumerate(dict.fromkeys(record.worker for record in known))}
    states = labels.all(transaction, chain)
    return Paths(
        states,
        issued=cards[:, 0],
        path=cards[:, 1],
        step=cards[:, 2],
        source=cards[:, 3],
        target=cards[:, 4],
        told=cards[:, 5],
        worker=np.array([names[record.worker] for record in known], dtype=np.int64),
        workers=tuple(names),
        open_states=chain.open,
        unordered=unordered,
        key=source_key(transaction, chain),
    )


def source_key(transaction: Transaction, chain: ChainRecord) -> str:
    """The key of a chain's own coins: the study's random number, and the chain's."""
    return f"{transaction.study.key}:{chain.number}"


def _told_cards(
    number: IntegerArray, path: IntegerArray, step: IntegerArray, state: IntegerArray, issued: IntegerArray
) -> IntegerArray:
    """The cards whose values are known, in the order of the log."""
    order = np.lexsort((step, path))
    source = np.full(len(number), START, dtype=np.int64)
    later = order[1:][step[order[1:]] > 1]
    source[later] = state[order[:-1][step[order[1:]] > 1]]
    return np.column_stack([issued, path - 1, step - 1, source, state, number])


def _why_unordered(
    known: list[PathRecord], number: IntegerArray, path: IntegerArray, issued: IntegerArray
) -> str | None:
    """Why the order of issue is not known; None if it is known.

    A plain tell does not say when its draw started. If no other path of the chain is told between the first and the
    last observation of a path of plain tells, each of its draws started after the tell before it.
    """
    if not len(number):
        return None
    if (issued == 0).any():
        return CONTINUED_PLAINLY
    if not any(record.worker == MAIN for record in known):
        return None
    paths, first = np.unique(path, return_index=True)
    last = len(path) - 1 - np.unique(path[::-1], return_index=True)[1]
    order = np.argsort(first)
    first, last = first[order], last[order]
    plain = np.array([known[which - 1].worker == MAIN for which in paths[order].tolist()])
    latest = np.maximum.accumulate(last)
    latest_plain = np.maximum.accumulate(np.where(plain, last, -1))
    overlaps = (plain[1:] & (latest[:-1] > first[1:])) | (latest_plain[:-1] > first[1:])
    if overlaps.any():
        return PLAIN_SIDE_BY_SIDE
    return None


def _other_cards(
    transaction: Transaction, chain: ChainRecord, known: list[PathRecord], told: IntegerArray
) -> IntegerArray:
    """The draws that were issued but are not in the log: given up, or pending."""
    wanted = []
    for event in transaction.events(0):
        if event.chain == chain.number and event.detail.get("issued"):
            detail = event.detail
            wanted.append((detail["issued"], detail["path"] - 1, detail["step"] - 1, LOST, detail["told"]))
    left = {} if transaction.study.shared else _left_plain_paths(known, told)  # a path of a lease is not left
    for record in known:
        if record.issued:
            place = record.number - 1
            when = left.get(place) if record.token is None else None
            target, moment = (PENDING, 0) if when is None else (LOST, when)
            wanted.append((record.issued, place, record.steps, target, moment))
    states = {(path, step): state for _, path, step, _, state, _ in _before(told, wanted)}
    cards = [
        (issued, path, step, states.get((path, step - 1), START), target, moment)
        for issued, path, step, target, moment in wanted
    ]
    return np.array(cards, dtype=np.int64).reshape(-1, 6)


def _before(told: IntegerArray, wanted: list[tuple[int, int, int, int, int]]) -> list[list[int]]:
    """The told cards just before the places of other cards."""
    width = np.int64(told[:, 2].max(initial=0) + 2)
    places = np.array([path * width + step - 1 for _, path, step, _, _ in wanted if step], dtype=np.int64)
    found: list[list[int]] = told[np.isin(told[:, 1] * width + told[:, 2], places)].tolist()
    return found


def _left_plain_paths(known: list[PathRecord], told: IntegerArray) -> dict[int, int]:
    """The plain paths that were left because a later one was begun → how many values had been told by then."""
    plain = {record.number - 1 for record in known if record.worker == MAIN}
    begun = [(moment, path) for path, moment in told[told[:, 2] == 0][:, [1, 5]].tolist() if path in plain]
    begun.sort()
    return {path: after - 1 for (_, path), (after, _) in pairwise(begun)}
