"""The standing of a study's checks, stored with the study, so that a reader need not read the whole log.

The checks of all chains together read the draws in the order of issue, up to the first pending one. From time to time
the transaction of an observation stores everything that they need to continue. A reader continues from there in memory.
The stored standing and the log after it give the same result as one pass over the whole log.
"""

import math
import zlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..diagnostics import Diagnosis
from ..diagnostics.standing import (
    AGES,
    CHECKS,
    ChainStanding,
    Fed,
    Labelled,
    Standing,
    given_up,
    left_out,
    not_guaranteed,
    packed,
    pending,
    unpacked,
    why_waiting,
)
from ..errors import FileError
from ..store import ChainRecord, PathRecord, StudyRecord, Transaction
from ._paths import CONTINUED_PLAINLY, PLAIN_SIDE_BY_SIDE
from ._transitions import MAIN

#: The checks continue in a transaction when the number of observations has doubled since the last time. The first time
#: is at this many observations, or at this many for each chain if that is more.
LEAST, LEAST_OF_CHAIN = 1024, 128
#: Later they continue after this many observations, or this many for each chain, or one for this many stored bytes.
PACE, PACE_OF_CHAIN, BYTES_A_STEP = 16_384, 256, 1024
#: Larger studies, and studies that would need more bytes, store nothing.
MOST_CHAINS, MOST_BYTES = 1_000, 64 * 2**20

Wholes = npt.NDArray[np.int64]


def first_look(chains: int) -> int | None:
    """The number of observations at which a new study first stores its statistics; None: never."""
    return max(LEAST, LEAST_OF_CHAIN * chains) if chains <= MOST_CHAINS else None


class _Chain:
    """The standing of one chain."""

    def __init__(self, record: ChainRecord, content: bytes | None) -> None:
        self.record = record
        size = None if record.open else record.size
        self.standing = ChainStanding(size)
        #: Path → the number of its first observation in the log, how many observations were judged, and its last two
        #: states (−1: none). A path that has ended and was judged completely is not here.
        self.paths: dict[int, tuple[int, int, int, int]] = {}
        #: The log numbers of the latest first observation of any path and of a plain path, up to `_Study.since`.
        self.begun, self.begun_plain = 0, 0
        self.workers: dict[str, int] = {}
        if content is not None:
            (self.begun, self.begun_plain, workers), arrays = _read(content)
            self.workers = {name: place for place, name in enumerate(workers)}
            paths = arrays.pop("paths").reshape(-1, 5).tolist()
            self.paths = {path: (first, steps, last, before) for path, first, steps, last, before in paths}
            self.standing = ChainStanding.of(arrays, size)

    def content(self) -> bytes:
        """All of it as bytes."""
        paths = np.array([(path, *found) for path, found in self.paths.items()], np.int64).ravel()
        values = self.begun, self.begun_plain, list(self.workers)
        return packed(values, {**self.standing.arrays(), "paths": paths})


class _Study:
    """The standing of all chains together."""

    def __init__(self, study: StudyRecord, content: bytes | None) -> None:
        self.standing = Standing(study.chains)
        #: Every draw with a smaller number of issue was judged, or needs no judgement.
        self.end = 1
        #: Every observation up to this one in the log, and every event up to that one, was processed.
        self.since = self.events = 0
        #: Draws ahead that were given up: number of issue, and how many observations were told by then.
        self.lost: list[tuple[int, int]] = []
        #: The pending draw for which the checks wait: chain, path and number of issue.
        self.pending: tuple[int, int, int] | None = None
        #: Why the checks have ended; and whether the order of issue is not known.
        self.why: str | None = None
        self.unordered = False
        #: How many bytes are stored for each chain.
        self.sizes = np.zeros(study.chains, np.int64)
        if content is not None:
            values, arrays = _read(content)
            self.end, self.since, self.events, lost, pending, self.why, self.unordered = values
            self.lost = [(issued, told) for issued, told in lost]
            self.pending = None if pending is None else tuple(pending)
            self.sizes = arrays.pop("sizes")
            self.standing = Standing.of(arrays, study.chains)

    def content(self) -> bytes:
        """All of it as bytes."""
        values = self.end, self.since, self.events, self.lost, self.pending, self.why, self.unordered
        return packed(values, {**self.standing.arrays(), "sizes": self.sizes})


def _read(content: bytes) -> tuple[Any, dict[str, npt.NDArray[Any]]]:
    try:
        return unpacked(content)
    except (ValueError, zlib.error):
        raise FileError("the study is damaged: where its checks stand cannot be read") from None


# -- storing and reading


def keep_if_due(transaction: Transaction) -> bool:
    """Continues the checks and stores their standing, if enough observations were told since the last time."""
    due = transaction.study.judge_at
    if due is None or transaction.study.observations < due:
        return False
    keep(transaction)
    return True


def keep(transaction: Transaction) -> None:
    """Continues the checks and stores their standing, unless they have ended."""
    study = transaction.study
    if study.judge_at is None:
        return
    found = _Study(study, transaction.kept(None))
    chains = _go_on(transaction, found)
    for number, chain in chains.items():
        content = chain.content()
        found.sizes[number] = len(content)
        transaction.keep(number, content)
    written = int(found.sizes[list(chains)].sum())
    if found.why is None and found.sizes.sum() > MOST_BYTES:
        found.why = f"more than {MOST_BYTES >> 20} MB would have to be kept"
    transaction.keep(None, found.content())
    pace = min(max(study.observations, LEAST), max(PACE, PACE_OF_CHAIN * study.chains))
    pace = max(pace, written // BYTES_A_STEP)
    study.judge_at = None if found.why is not None else study.observations + pace


def look(transaction: Transaction) -> Diagnosis | None:
    """The result of the checks of all chains together now; None if nothing is stored because of too many chains."""
    study = transaction.study
    if study.chains > MOST_CHAINS:
        return None
    found = _Study(study, transaction.kept(None))
    _go_on(transaction, found)
    return _diagnosis(transaction, found)


def stored(transaction: Transaction) -> Diagnosis | None:
    """The last stored result of the checks of all chains together; None if there is none. Compiles nothing."""
    content = transaction.kept(None)
    return None if content is None else _diagnosis(transaction, _Study(transaction.study, content), since=True)


def doubts(transaction: Transaction, chains: Iterable[ChainRecord] | None = None) -> dict[str, str]:
    """Chain → why no bound of it holds, of the chains that a stored check speaks against.

    ``chains``: only these. Of several chains, the checks of all together say which: a chain is blamed if every mean of
    chains that includes it reaches 1/δ (MATH §13).
    """
    found = stored(transaction)
    if found is None or not found.against:
        return {}
    named = ((chain.name, found.doubt(chain.name)) for chain in (transaction.every() if chains is None else chains))
    return {name: doubt.sentence for name, doubt in named if doubt is not None}


def _diagnosis(transaction: Transaction, found: _Study, *, since: bool = False) -> Diagnosis:
    """``since``: transitions may have arrived after the result was stored."""
    study = transaction.study
    name = transaction.numbered(0).name if study.chains == 1 else None
    checks = found.standing.checks(name, study.delta / len(CHECKS), found.unordered)
    waiting = study.observations - study.paths - int(found.standing.cards[1])  # the check 'change' omits no card
    remarks = []
    if found.unordered:
        remarks.append(not_guaranteed(name, str(found.why)))
    elif waiting and since and found.why is None:
        remarks.append(f"Of {waiting:,} transitions nothing is said: they came since this was kept, or waited then.")
    elif waiting:
        why = found.why if found.pending is None else pending(found.pending[2])
        remarks.append(why_waiting(name, waiting, str(why), together=name is None))
    remarks += left_out(checks)
    result = Diagnosis(tuple(checks), study.delta, len(CHECKS), {}, waiting, tuple(remarks), (), ())
    if name is None and result.against:
        names = [chain.name for chain in transaction.every()]
        result = replace(result, blamed=found.standing.blamed(names, study.delta / len(CHECKS)))
    return result


def check(transaction: Transaction) -> None:
    """Raises ``FileError`` if the stored standing differs from the log."""
    content = transaction.kept(None)
    if content is None:
        return
    kept, again = _Study(transaction.study, content), _Study(transaction.study, None)
    if not kept.unordered:
        _go_on(transaction, again, kept.end)
        if again.unordered:  # the order was lost after this was stored
            return
        mine, theirs = kept.standing.arrays(), again.standing.arrays()
        if not all(np.allclose(mine[name], theirs[name], rtol=1e-6, atol=1e-6) for name in mine):
            raise FileError("the study is damaged: where its checks stand is not what its log says")


# -- continuing


class _Tail:
    """The lines of the log since `_Study.since`, as columns, in the order of the log."""

    def __init__(self, transaction: Transaction, since: int) -> None:
        self.number, self.chain, self.path, self.step, self.state, self.issued = transaction.draws(None, since)
        walked = dict.fromkeys(zip(self.chain.tolist(), self.path.tolist(), strict=True))
        self.workers = {key: _record(transaction, *key).worker for key in walked}


def _record(transaction: Transaction, chain: int, path: int) -> PathRecord:
    found = transaction.path(transaction.numbered(chain), path)
    if found is None:
        raise FileError(f"the study is damaged: path {path} of chain {chain} is missing")
    return found


def _go_on(transaction: Transaction, found: _Study, limit: int | None = None) -> dict[int, _Chain]:
    """Judges every draw up to the first one that is pending, or up to the number of issue ``limit``.

    Returns the chains that were read.
    """
    if found.why is not None or _is_pending(transaction, found.pending):
        return {}
    study, tail = transaction.study, _Tail(transaction, found.since)
    chains = {
        number: _Chain(transaction.numbered(number), transaction.kept(number) if found.events else None)
        for number in np.unique(tail.chain).tolist()
    }
    found.why = None if study.shared else _why_unordered(tail, chains)
    if found.why is not None:
        found.unordered = True
        return {}
    end = _end(transaction, found, tail)
    end = end if limit is None else min(end, limit)
    fed = {number: _feed(tail, chain, found.end, end, study.shared) for number, chain in chains.items()}
    found.standing.add({number: each for number, each in fed.items() if len(each[1])}, study.delta / len(CHECKS))
    found.end = end
    found.lost = [(issued, told) for issued, told in found.lost if issued >= end]
    ahead = tail.number[tail.issued >= end]
    since = int(ahead[0]) - 1 if len(ahead) else int(tail.number.max(initial=found.since))
    for number, chain in chains.items():
        _forget(transaction, tail, number, chain, since)
    found.since = since
    return chains


def _why_unordered(tail: _Tail, chains: dict[int, _Chain]) -> str | None:
    """Why the order of issue is not known (`_paths.why_unordered`), found line by line."""
    if (tail.issued == 0).any():
        return CONTINUED_PLAINLY
    for number, chain in chains.items():
        own = tail.chain == number
        lines, path, step = tail.number[own], tail.path[own], tail.step[own]
        plain = np.array([tail.workers[number, which] == MAIN for which in path.tolist()])
        first = {which: found[0] for which, found in chain.paths.items()}
        first |= dict(zip(path[step == 1].tolist(), lines[step == 1].tolist(), strict=True))
        # If a path was forgotten, all its lines were read before.
        begun = np.array([first.get(which, math.inf) for which in path.tolist()])
        latest = np.maximum.accumulate(np.maximum(chain.begun, np.where(step == 1, lines, 0)))
        latest_plain = np.maximum.accumulate(np.maximum(chain.begun_plain, np.where((step == 1) & plain, lines, 0)))
        if ((step > 1) & (np.where(plain, latest, latest_plain) > begun)).any():
            return PLAIN_SIDE_BY_SIDE
    return None


def _is_left(transaction: Transaction, record: PathRecord) -> bool:
    """Whether a path of plain tells may be abandoned, because there is a later one. A path that is leased never is."""
    if record.worker != MAIN or record.token is not None or transaction.study.shared:
        return False
    latest = transaction.open_path(transaction.numbered(record.chain), MAIN)
    return latest is None or latest.number != record.number


def _is_pending(transaction: Transaction, draw: tuple[int, int, int] | None) -> bool:
    """Whether a pending draw is still pending."""
    if draw is None:
        return False
    chain, path, issued = draw
    record = _record(transaction, chain, path)
    return record.issued == issued and not _is_left(transaction, record)


def _end(transaction: Transaction, found: _Study, tail: _Tail) -> int:
    """The number of issue of the first draw that is pending or was lost late: everything before it can be judged."""
    for event in transaction.events(found.events):
        issued = event.detail.get("issued", 0)
        if issued >= found.end and event.detail["step"] > 1:  # the draw of a first state is not judged
            found.lost.append((issued, event.detail["told"]))
    found.events = transaction.study.events
    lost, waiting = list(found.lost), []
    for record in transaction.drawing():
        if record.steps == 0 or record.issued < found.end:
            continue
        plain = []
        if _is_left(transaction, record):
            begun = (tail.chain == record.chain) & (tail.step == 1) & (tail.path > record.number)
            plain = [
                (path, number)
                for path, number in zip(tail.path[begun].tolist(), tail.number[begun].tolist(), strict=True)
                if tail.workers[record.chain, path] == MAIN
            ]
        if plain:
            lost.append((record.issued, min(plain)[1] - 1))
        else:  # a later path without an observation has not begun
            waiting.append((record.issued, record.chain, record.number))
    order = np.argsort(tail.issued)
    issued = tail.issued[order]
    known = np.minimum.accumulate(tail.number[order][::-1])[::-1]  # the first moment at which a later draw was known
    late = []
    for number, told in lost:
        at = int(np.searchsorted(issued, number, side="right"))
        if at < len(known) and known[at] <= told:
            late.append(number)
    first = min(waiting, default=None)
    found.pending = None if first is None else (first[1], first[2], first[0])
    if late and (first is None or min(late) < first[0]):
        found.why, found.pending = given_up(min(late)), None
        return min(late)
    return transaction.study.issues + 1 if first is None else first[0]


def _feed(tail: _Tail, chain: _Chain, start: int, end: int, shared: bool) -> tuple[ChainStanding, Wholes, list[Fed]]:
    """Judges a chain's draws from one number of issue up to another."""
    number = chain.record.number
    own = tail.chain == number
    for line in np.flatnonzero(own & (tail.step == 1)).tolist():
        chain.paths.setdefault(int(tail.path[line]), (int(tail.number[line]), 1, int(tail.state[line]), -1))
    chosen = np.flatnonzero(own & (tail.step > 1) & (tail.issued >= start) & (tail.issued < end))
    path, step, state = tail.path[chosen], tail.step[chosen], tail.state[chosen]
    # Path by path: the source of a step is the state before it; for the first step it is the path's last known state.
    order = np.lexsort((step, path))
    path, step, state = path[order], step[order], state[order]
    begins = np.ones(len(path), bool)
    begins[1:] = path[1:] != path[:-1]
    source, before = np.zeros(len(path), np.int64), np.zeros(len(path), np.int64)
    source[1:] = state[:-1]
    known = [chain.paths.get(which, (0, 0, 0, 0)) for which in path[begins].tolist()]
    if [steps + 1 for _, steps, _, _ in known] != step[begins].tolist():
        raise FileError(f"the study is damaged: where the checks of the chain {chain.record.name!r} stand is no path's")
    source[begins] = [last for _, _, last, _ in known]
    before[1:] = source[:-1]
    before[begins] = [earlier for _, _, _, earlier in known]
    ends = np.flatnonzero(np.append(begins[1:], True)) if len(path) else np.empty(0, np.int64)
    for (first, _, _, _), at in zip(known, ends.tolist(), strict=True):
        chain.paths[int(path[at])] = first, int(step[at]), int(state[at]), int(source[at])
    workers = np.zeros(len(path), np.int64)
    if not shared:
        named = [chain.workers.setdefault(tail.workers[number, which], len(chain.workers)) for which in path.tolist()]
        workers = np.array(named, np.int64)
    issued = tail.issued[chosen][order]
    places = np.argsort(issued)
    ages = np.searchsorted(np.array(AGES), step - 1)
    cards = Labelled(*(array[places] for array in (source, state, before, workers, path, ages)))
    return chain.standing, issued[places], chain.standing.feed(cards)


def _forget(transaction: Transaction, tail: _Tail, number: int, chain: _Chain, since: int) -> None:
    """Notes the latest paths that were begun, and forgets the paths that have ended."""
    begun = (tail.chain == number) & (tail.step == 1) & (tail.number <= since)
    for path, line in zip(tail.path[begun].tolist(), tail.number[begun].tolist(), strict=True):
        chain.begun = max(chain.begun, line)
        if tail.workers[number, path] == MAIN:
            chain.begun_plain = max(chain.begun_plain, line)
    for path, (_, steps, _, _) in list(chain.paths.items()):
        record = _record(transaction, number, path)
        if record.ended and record.steps == steps:
            del chain.paths[path]
