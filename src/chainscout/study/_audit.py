"""Whether a study is what its log says: reads the whole log, and computes everything that is kept of it again."""

from ..counts import Counts
from ..errors import FileError, InputError
from ..store import ChainRecord, Observation, Transaction
from . import _evidence


class _Replay:
    """One chain's paths, followed line by line."""

    def __init__(self, chain: ChainRecord, prior: Counts) -> None:
        self.chain = chain
        self.size = prior.size
        self.rows = {x: dict(row) for x, row in prior.rows().items()}
        self.total = prior.total
        self.observations = 0
        #: Path → its observations and its last state.
        self.paths: dict[int, tuple[int, int]] = {}

    def follow(self, line: Observation) -> None:
        """Counts one line of the log."""
        steps, last = self.paths.get(line.path, (0, None))
        what = f"path {line.path} of the chain {self.chain.name!r}"
        if line.step != steps + 1 or not 1 <= line.path <= self.chain.paths:
            raise _damaged(f"the log of {what} is broken at its observation {line.step}")
        if not 0 <= line.state < self.size:
            raise _damaged(f"observation {line.step} of {what} has a state that does not exist")
        if last is not None:
            row = self.rows.setdefault(last, {})
            row[line.state] = row.get(line.state, 0) + 1
            self.total += 1
        self.paths[line.path] = line.step, line.state
        self.observations += 1


def audit(transaction: Transaction) -> None:
    """Raises ``FileError`` if anything that the study keeps is not what its log says."""
    transaction.check_whole()
    study = transaction.study
    replays = {}
    for chain in transaction.every():
        _check_labels(transaction, chain)
        known = transaction.prior(chain)
        try:
            prior = Counts.from_rows(known, max(1, chain.size), observations=0, paths=0, last=None)
        except InputError as error:
            raise _damaged(f"the counts that the chain {chain.name!r} began with are none: {error}") from None
        if prior.total != chain.prior:
            raise _damaged(f"the counts that the chain {chain.name!r} began with are not all there")
        replays[chain.number] = _Replay(chain, prior)
    number = 0
    used = 0.0
    drawn = bytearray(study.issues // 8 + 1)  # a bit for each draw that was issued
    for line in transaction.log(None, 0):
        number += 1
        if line.number != number or line.chain not in replays:
            raise _damaged(f"the log is broken at observation {number}")
        replays[line.chain].follow(line)
        place, bit = line.issued >> 3, 1 << (line.issued & 7)
        if not 1 <= line.issued <= study.issues or drawn[place] & bit:
            raise _damaged(f"observation {number} is not of a draw of its own")
        drawn[place] |= bit
        used += replays[line.chain].chain.cost
    if number != study.observations or abs(used - study.used) > 1e-6 * max(1.0, used):
        raise _damaged(f"the log has {number} observations, and the study says {study.observations}")
    if sum(len(replay.paths) for replay in replays.values()) != study.paths:
        raise _damaged(f"the study says that {study.paths} paths have begun, and its log has another number")
    for replay in replays.values():
        chain = replay.chain
        kept = {x: row.counts for x, row in transaction.rows(chain).items()}
        if kept != replay.rows or replay.total != chain.transitions:
            raise _damaged(f"the counts of the chain {chain.name!r} are not those of its log")
        if replay.observations != chain.observations:
            raise _damaged(f"the totals of the chain {chain.name!r} are not those of its log")
        walked = {path.number: (path.steps, path.last) for path in transaction.paths(chain) if path.steps}
        if walked != replay.paths:
            raise _damaged(f"the paths of the chain {chain.name!r} are not those of its log")
    _evidence.check(transaction)


def _check_labels(transaction: Transaction, chain: ChainRecord) -> None:
    """Raises ``FileError`` unless every state of a chain with labels has one of its own."""
    labels = transaction.labels(chain) if chain.open else chain.labels
    if labels is not None and not len(set(labels)) == len(labels) == chain.size:
        raise _damaged(f"the labels of the chain {chain.name!r} are not those of its {chain.size} states")


def _damaged(what: str) -> FileError:
    """The error for a study that is not what its log says."""
    return FileError(f"the study is damaged: {what}")
