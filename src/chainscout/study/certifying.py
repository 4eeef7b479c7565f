"""The certificate in a live study: refreshed now and then, and never believed when it is stale (MATH §7)."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..certificates import ASSUMPTION, Certificate
from ..certificates.mixture import bound_from_exits
from ..store import ChainRecord, RowRecord, StudyRecord, Transaction


@dataclass(frozen=True)
class StudyCertificate(Certificate):
    """A certificate with what must be said beside it."""

    #: Observations that were lost: with a worker or a source that died, or because another worker came first.
    lost: int = 0
    #: Chains set aside: their segments brought no transition, or their sources ended.
    aside: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What the certificate rests on, in sentences."""
        notes = [f"assumes that {ASSUMPTION}"]
        if self.lost:
            many = "1 observation was" if self.lost == 1 else f"{self.lost:,} observations were"
            notes.append(f"{many} lost: if that depended on their values, the bound may fail")
        if self.aside:
            notes.append(f"set aside, and not sampled any more: {', '.join(self.aside)}")
        return tuple(notes)


def bound(study: StudyRecord, chain: ChainRecord, rows: Mapping[int, RowRecord]) -> float:
    """ω_k·b_k from the rows left at least once, in the order of their positions."""
    log_inverse = math.log(study.chains / study.delta)
    exits = [rows[x].exits for x in sorted(rows)]
    return chain.weight * bound_from_exits(exits, chain.size, log_inverse, open_states=chain.open)


def refresh(transaction: Transaction, chain: ChainRecord) -> None:
    """Computes the chain's certificate anew."""
    chain.certificate = bound(transaction.study, chain, transaction.rows(chain))
    chain.certified = chain.transitions
    transaction.save(chain)


def is_due(chain: ChainRecord) -> bool:
    """Whether T has grown by 1 % since the certificate was computed."""
    return chain.transitions >= chain.certified + max(1, chain.certified // 100)


def largest(transaction: Transaction) -> float:
    """The largest stored certificate of all chains. Each is less than 1 % old."""
    return max(transaction.worst(), transaction.worst(aside=True))


def met_target(transaction: Transaction, moved: Iterable[ChainRecord]) -> str | None:
    """The reason to stop if the target is certified; ``moved``: the chains that were just advanced.

    A chain that was set aside moves no more, and may never meet the target. When all others do, there is nothing left
    to do, but the target is not what was reached.
    """
    study = transaction.study
    target = study.target_loss
    if target is None:
        return None
    for chain in moved:
        if is_due(chain) or chain.aside:
            refresh(transaction, chain)
    if transaction.worst() > target:
        return None
    for chain in transaction.stale():
        refresh(transaction, chain)
    if transaction.worst() > target:
        return None
    if largest(transaction) <= target:
        return "target_loss"
    return "target_loss_of_the_rest" if study.aside < study.chains else None
