"""The audit of a study: reads the whole log, computes everything again, and compares it with what is stored."""

from ..counts import Counts
from ..errors import FileError, InputError
from ..store import ChainRecord, HistoryLine, Observation, Prefix, Transaction
from . import _aim, _evidence
from ._repetition import CHECKPOINTS, digested, unlikely


class _Replay:
    """One chain's paths, rebuilt from the log line by line."""

    def __init__(self, chain: ChainRecord, prior: Counts) -> None:
        self.chain = chain
        self.size = prior.size
        self.rows = {x: dict(row) for x, row in prior.rows().items()}
        self.total = prior.total
        self.observations = 0
        #: Path → its observations, its last state and the digest of all of them.
        self.paths: dict[int, tuple[int, int, int]] = {}
        self.prefixes: list[Prefix] = []

    def follow(self, line: Observation) -> None:
        """Counts one line of the log."""
        steps, last, digest = self.paths.get(line.path, (0, None, 0))
        what = f"path {line.path} of the chain {self.chain.name!r}"
        if line.step != steps + 1 or not 1 <= line.path <= self.chain.paths:
            raise _damaged(f"the log of {what} is broken at its observation {line.step}")
        if not 0 <= line.state < self.size:
            raise _damaged(f"observation {line.step} of {what} has a state that does not exist")
        if last is not None:
            row = self.rows.setdefault(last, {})
            row[line.state] = row.get(line.state, 0) + 1
            self.total += 1
        digest = digested(digest, line.state)
        self.paths[line.path] = line.step, line.state, digest
        if line.step in CHECKPOINTS:
            self.prefixes.append(Prefix(self.chain.number, line.step, digest, line.path))
        self.observations += 1


def audit(transaction: Transaction) -> None:
    """Raises ``FileError`` if anything that the study stores differs from its log."""
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
    used = first_cost = 0.0
    drawn = bytearray(study.issues // 8 + 1)  # one bit for each issued draw
    for line in transaction.log(None, 0):
        number += 1
        if line.number != number or line.chain not in replays:
            raise _damaged(f"the log is broken at observation {number}")
        replays[line.chain].follow(line)
        place, bit = line.issued >> 3, 1 << (line.issued & 7)
        unknown = line.issued == 0 and line.step > 1  # a plain tell continued a path of a lease
        if not unknown and (not 1 <= line.issued <= study.issues or drawn[place] & bit):
            raise _damaged(f"observation {number} is not of a draw of its own")
        drawn[place] |= bit
        cost = replays[line.chain].chain.cost
        used += cost
        first_cost += cost if line.step == 1 else 0.0
    if number != study.observations or abs(used - study.used) > 1e-6 * max(1.0, used):
        raise _damaged(f"the log has {number} observations, and the study says {study.observations}")
    if abs(first_cost - study.first_cost) > 1e-6 * max(1.0, first_cost):
        raise _damaged(
            f"the study says that its first observations cost {study.first_cost:g}, and they cost {first_cost:g}"
        )
    if sum(len(replay.paths) for replay in replays.values()) != study.paths:
        raise _damaged(f"the study says that {study.paths} paths have begun, and its log has another number")
    _check_answers(transaction)
    _check_aim(transaction)
    lines = _check_history(transaction, None)
    for replay in replays.values():
        chain = replay.chain
        lines += _check_history(transaction, chain)
        kept = {x: row.counts for x, row in transaction.rows(chain).items()}
        if kept != replay.rows or replay.total != chain.transitions:
            raise _damaged(f"the counts of the chain {chain.name!r} are not those of its log")
        if replay.observations != chain.observations:
            raise _damaged(f"the totals of the chain {chain.name!r} are not those of its log")
        walked = {path.number: (path.steps, path.last, path.digest) for path in transaction.paths(chain) if path.steps}
        if walked != replay.paths or list(transaction.prefixes(chain)) != sorted(replay.prefixes):
            raise _damaged(f"the paths of the chain {chain.name!r} are not those of its log")
    if lines != study.lines:
        raise _damaged(f"the history has {lines} lines, and the study says {study.lines}")
    if study.spoilt != any(True for _ in unlikely(transaction)):
        says = "repeat" if study.spoilt else "do not repeat"
        raise _damaged(f"the study says that its paths {says} each other, and its log says otherwise")
    _evidence.check(transaction)


def _check_aim(transaction: Transaction) -> None:
    """Raises ``FileError`` unless the study knows how many chains have not reached its aim."""
    study = transaction.study
    left = [chain.aside for chain in transaction.every() if not chain.done] if _aim.has_aim(study) else []
    if (len(left) - sum(left), sum(left)) != (study.behind, study.missed):
        raise _damaged(f"{len(left)} chains have not reached the aim, and the study says {study.behind + study.missed}")


def _check_answers(transaction: Transaction) -> None:
    """Raises ``FileError`` unless every question's answer equals its last line and no line is missing."""
    study, records, lines = transaction.study, transaction.questions(), 0
    for record in records:
        found = list(transaction.answer_lines(record.number, 0))
        lines += len(found)
        if found and tuple(found[-1][4:]) != (record.lower, record.upper, record.estimate):
            raise _damaged(f"the answer to question {record.number} is not the last one that was written")
    if len(records) != study.questions or lines != study.answers:
        raise _damaged(f"the study says that there are {study.answers} lines of answers, and there are {lines}")


def _check_history(transaction: Transaction, chain: ChainRecord | None) -> int:
    """The number of history lines of a chain or of the whole study. Raises ``FileError`` for impossible lines."""
    study, number = transaction.study, 0
    last = HistoryLine(0, None, 0, 0.0, 0, 0.0, 0.0)
    for line in transaction.history(chain, 0):
        number += 1
        if line.number <= last.number or line.observations < last.observations or line.own < last.own:
            raise _damaged(f"line {line.number} of the history is not what the line before it allows")
        last = line
    told = study.observations if chain is None else chain.observations
    if last.observations > study.observations or last.own > told:
        raise _damaged(f"line {last.number} of the history is of more observations than there are")
    return number


def _check_labels(transaction: Transaction, chain: ChainRecord) -> None:
    """Raises ``FileError`` unless every state of a labelled chain has its own label."""
    labels = transaction.labels(chain) if chain.open else chain.labels
    if labels is not None and not len(set(labels)) == len(labels) == chain.size:
        raise _damaged(f"the labels of the chain {chain.name!r} are not those of its {chain.size} states")


def _damaged(what: str) -> FileError:
    """The error for a study that differs from its log."""
    return FileError(f"the study is damaged: {what}")
