"""Whether a study is what its log says: reads the whole log, and computes everything that is kept of it again."""

from ..counts import Counts
from ..errors import FileError, InputError
from ..store import ChainRecord, Transaction


class _Replay:
    """One chain's path, followed line by line."""

    def __init__(self, chain: ChainRecord, prior: Counts) -> None:
        self.chain = chain
        self.counts = prior
        self.steps = 0
        self.segments = 0

    def follow(self, step: int, segment: int, state: int) -> None:
        """One line of the log."""
        if step != self.steps + 1 or segment not in (self.segments, self.segments + 1) or segment < 1:
            raise _damaged(f"the log of the chain {self.chain.name!r} is broken at its observation {step}")
        if not 0 <= state < self.counts.size:
            raise _damaged(f"observation {step} of the chain {self.chain.name!r} has a state that does not exist")
        if segment != self.segments:
            self.counts.restart()
        self.counts.record(state)
        self.steps, self.segments = step, segment


def audit(transaction: Transaction) -> None:
    """Raises ``FileError`` if anything that the study keeps is not what its log says."""
    transaction.check_whole()
    study = transaction.study
    replays = {}
    for chain in transaction.every():
        known = transaction.prior(chain)
        try:
            prior = Counts.from_rows(known, max(1, chain.size), observations=0, segments=0, last=None)
        except InputError as error:
            raise _damaged(f"the counts that the chain {chain.name!r} began with are none: {error}") from None
        replays[chain.number] = _Replay(chain, prior)
    number = 0
    used = 0.0
    for line in transaction.log(None, 0):
        number += 1
        if line.number != number or line.chain not in replays:
            raise _damaged(f"the log is broken at observation {number}")
        replays[line.chain].follow(line.step, line.segment, line.state)
        used += replays[line.chain].chain.cost
    if number != study.observations or abs(used - study.used) > 1e-6 * max(1.0, used):
        raise _damaged(f"the log has {number} observations, and the study says {study.observations}")
    for replay in replays.values():
        chain, counts = replay.chain, replay.counts
        kept = {x: row.counts for x, row in transaction.rows(chain).items()}
        if kept != counts.rows() or counts.total != chain.transitions:
            raise _damaged(f"the counts of the chain {chain.name!r} are not those of its log")
        if (replay.steps, replay.segments) != (chain.observations, chain.segments):
            raise _damaged(f"the totals of the chain {chain.name!r} are not those of its log")


def _damaged(what: str) -> FileError:
    """The error for a study that is not what its log says."""
    return FileError(f"the study is damaged: {what}")
