"""The certificate in a live study: stored, refreshed on a 1 % schedule, never relied on when it is old (MATH §7)."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice, pairwise

from ..certificates import ASSUMPTION, Certificate
from ..certificates.mixture import bound_from_exits
from ..store import ChainRecord, PathRecord, RowRecord, StudyRecord, Transaction, plug_in_variability

#: Without a target, certificates are computed from this T on, and from the beginning if there are at most so many
#: chains: they say little before, and one costs as much as many observations.
LONG = FEW = 100

#: Two paths repeat each other if they begin alike and chance would bring that less often than this.
UNLIKELY = 1e-9
#: Pairs of paths that are looked at.
MOST_TWINS = 20


@dataclass(frozen=True)
class StudyCertificate(Certificate):
    """A certificate with what must be said beside it."""

    #: Observations that were lost: with a worker or a source that died, or because another worker came first.
    lost: int = 0
    #: Chains set aside: their paths brought no transition, or their sources ended.
    aside: tuple[str, ...] = ()
    #: Sentences about paths that repeat each other, as workers with one seed do.
    repeated: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What the certificate rests on, in sentences."""
        notes = [f"assumes that {ASSUMPTION}"]
        if self.lost:
            many = "1 observation was" if self.lost == 1 else f"{self.lost:,} observations were"
            notes.append(f"{many} lost: if that depended on their values, the bound may fail")
        if self.aside:
            notes.append(f"set aside, and not sampled any more: {', '.join(self.aside)}")
        notes.extend(self.repeated)
        return tuple(notes)


def bound(study: StudyRecord, chain: ChainRecord, rows: Mapping[int, RowRecord]) -> float:
    """ω_k·b_k from the rows left at least once, in the order of their positions."""
    log_inverse = math.log(study.chains / study.delta)
    exits = [rows[x].exits for x in sorted(rows)]
    return chain.weight * bound_from_exits(exits, chain.size, log_inverse, open_states=chain.open)


def refresh(transaction: Transaction, chain: ChainRecord) -> None:
    """Computes and stores the chain's certificate and variability."""
    study, rows = transaction.study, transaction.rows(chain)
    chain.certificate = bound(study, chain, rows)
    before, chain.variability = chain.variability, chain.weight * plug_in_variability(chain.size, rows)
    study.variability += chain.variability - before
    chain.certified = chain.transitions
    transaction.save(chain)


def is_shown(study: StudyRecord, chain: ChainRecord) -> bool:
    """Whether the chain's certificate is kept without a target, and drawn over time."""
    return chain.transitions >= LONG or study.chains <= FEW


def refresh_due(transaction: Transaction, moved: Iterable[ChainRecord]) -> list[ChainRecord]:
    """Refreshes those of the chains that are due, and gives them.

    A chain is due if its T has grown by 1 % since its certificate was computed, without a target by 5 %, or if it is
    set aside.
    """
    study, found = transaction.study, []
    part = 20 if study.target_loss is None else 100
    for chain in moved:
        kept = study.target_loss is not None or is_shown(study, chain)
        if kept and (chain.aside or chain.transitions >= chain.certified + max(1, chain.certified // part)):
            refresh(transaction, chain)
            found.append(chain)
    return found


def refresh_all(transaction: Transaction) -> list[ChainRecord]:
    """Refreshes every chain that moved since its certificate was computed, and gives them."""
    found = list(transaction.stale())
    for chain in found:
        refresh(transaction, chain)
    return found


def is_met(transaction: Transaction, target: float) -> bool:
    """Whether every chain that is not set aside has a fresh certificate of at most ``target``."""
    if transaction.worst() > target:
        return False
    refresh_all(transaction)
    return transaction.worst() <= target


def largest(transaction: Transaction) -> float:
    """The largest stored certificate of all chains. A chain that moves has one less than 1 % old."""
    found = transaction.worst()
    return max(found, transaction.worst(aside=True)) if transaction.study.aside else found


def certificate(transaction: Transaction) -> StudyCertificate:
    """What is known of each chain's loss, times its weight, at this moment."""
    study = transaction.study
    losses: dict[str, float] = {}
    aside = []
    for chain in transaction.every():
        fresh = 0 < chain.transitions == chain.certified
        losses[chain.name] = chain.certificate if fresh else bound(study, chain, transaction.rows(chain))
        if chain.aside:
            aside.append(chain.name)
    return StudyCertificate(losses, study.delta, "mixture", study.lost, tuple(aside), repeated(transaction))


def repeated(transaction: Transaction) -> tuple[str, ...]:
    """A sentence for each two paths that repeat each other, unless that is likely by chance."""
    if transaction.study.paths <= transaction.study.chains:
        return ()
    found = []
    for number, first, second in transaction.twins()[:MOST_TWINS]:
        chain = transaction.numbered(number)
        if _chance(transaction, chain, second) < UNLIKELY:
            found.append(
                f"paths {first} and {second} of {chain.name} begin with the same {PathRecord.PREFIX} states: workers"
                " with one seed repeat each other, and then no bound holds"
            )
    return tuple(found)


def _chance(transaction: Transaction, chain: ChainRecord, path: int) -> float:
    """How likely the first states of a path are, by the estimate, given the first of them."""
    lines = (line.state for line in transaction.log(chain, 0) if line.path == path)
    states = list(islice(lines, PathRecord.PREFIX))
    rows = transaction.rows(chain)
    logarithm = 0.0
    for x, y in pairwise(states):
        row = rows[x]
        logarithm += math.log((row.counts.get(y, 0) + 1 / (3 * chain.size)) / (row.exits + 1 / 3))
    return math.exp(logarithm)
