"""What changes a study: observations, restarts, leases that begin and end, and the stops."""

from collections.abc import Iterable

from ..errors import Held, LeaseLost, OutOfStep, StudyFinished
from ..store import ChainRecord, Transaction
from . import certifying, choice
from .rule import Rule

#: After so many segments in a row without a transition a chain is set aside (MATH §1).
BARREN = 10


def check_holder(transaction: Transaction, chain: ChainRecord, token: str | None) -> None:
    """Refuses who does not hold the chain; a lease that has run out, and whose holder does not ask, is ended."""
    if chain.token is not None and chain.expires is not None and chain.expires <= transaction.now and token is None:
        lapse(transaction, chain)
    if token is None:
        if chain.token is not None:
            raise Held(f"the chain {chain.name!r} is held by {chain.worker!r}: only its lease can advance it")
        return
    if token != chain.token:
        if chain.expires is not None and chain.expires > transaction.now:
            raise LeaseLost(
                f"the token is not that of the lease that holds the chain {chain.name!r} now: its own lease has ended, "
                "if there was one, and nothing was changed"
            )
        raise LeaseLost(f"the lease of the chain {chain.name!r} has ended: nothing was changed")
    if chain.expires is not None and chain.expires <= transaction.now:
        late = transaction.now - chain.expires
        raise LeaseLost(f"the lease of the chain {chain.name!r} ran out {late:.3g} seconds ago: nothing was changed")


def is_repeated(transaction: Transaction, chain: ChainRecord, step: int | None, position: int | None) -> bool:
    """Whether this observation was told before; another state at the same step, or a gap, is an error."""
    if step is None or step == chain.observations + 1:
        return False
    if step > chain.observations:
        raise OutOfStep(
            f"the next observation of the chain {chain.name!r} has the number {chain.observations + 1}, not {step}"
        )
    known = transaction.observation(chain, step)
    if known is None or known.state != position:
        raise OutOfStep(f"observation {step} of the chain {chain.name!r} was told before, with another state")
    return True


def observe(transaction: Transaction, rule: Rule, chain: ChainRecord, state: int, token: str | None) -> None:
    """One observation, at the position ``state``; everything about it was checked."""
    study = transaction.study
    rule.advance(transaction, chain, state)
    study.observations += 1
    study.used += chain.cost
    transaction.append(chain, state)
    if token is not None:
        chain.promised -= 1
        study.reserved -= chain.cost
        if chain.promised == 0:
            free(transaction, chain)


def restart(transaction: Transaction, chain: ChainRecord) -> None:
    """Ends the segment. A chain whose last segments brought no transition is set aside."""
    if chain.last is not None:
        chain.last = None
        if chain.barren >= BARREN:
            set_aside(transaction, chain, f"its last {chain.barren} segments brought no transition")
    transaction.save(chain)


def set_aside(transaction: Transaction, chain: ChainRecord, reason: str) -> None:
    """The chain is not asked for any more."""
    if not chain.aside:
        chain.aside = True
        transaction.study.aside += 1
        transaction.happened("set aside", chain, reason=reason)
        if transaction.study.target_loss is not None:
            certifying.refresh(transaction, chain)  # it is looked at no more when others move
        transaction.save(chain)


def grant(transaction: Transaction, chain: ChainRecord, worker: str, token: str, seconds: float, steps: int) -> None:
    """Gives the chain to a worker."""
    study = transaction.study
    chain.token, chain.worker, chain.expires = token, worker, transaction.now + seconds
    chain.promised = steps
    study.leases += 1
    study.reserved += steps * chain.cost
    transaction.save(chain)


def free(transaction: Transaction, chain: ChainRecord) -> None:
    """Ends a lease; what it had not used goes back to the budget."""
    study = transaction.study
    study.leases -= 1
    study.reserved -= chain.promised * chain.cost
    if study.leases == 0:
        study.reserved = 0.0  # sums of costs are rounded
    chain.token = chain.worker = chain.expires = None
    chain.promised = 0
    transaction.save(chain)


def lapse(transaction: Transaction, chain: ChainRecord, kind: str = "lease expired") -> None:
    """The holder is gone, and what it had observed last may be lost with it."""
    transaction.happened(kind, chain, worker=chain.worker)
    free(transaction, chain)
    transaction.study.lost += 1
    if transaction.study.on_lost_lease == "restart":
        restart(transaction, chain)


def sweep(transaction: Transaction) -> None:
    """Ends the leases that have run out."""
    for chain in transaction.held(until=transaction.now):
        lapse(transaction, chain)


def settle(transaction: Transaction, rule: Rule, moved: Iterable[ChainRecord] = ()) -> None:
    """Stops the study if it is time, and says why."""
    if transaction.study.stop_reason is not None:
        return
    reason = _reason(transaction, rule, moved)
    if reason is not None:
        transaction.study.stop_reason = reason
        transaction.happened("finished", reason=reason)


def _reason(transaction: Transaction, rule: Rule, moved: Iterable[ChainRecord]) -> str | None:
    study = transaction.study
    met = certifying.met_target(transaction, moved)
    if met is not None:
        return met
    if study.budget is not None:
        left = choice.unspent(study)
        if left < study.least_cost:
            return "budget"
        if left < study.largest_cost:
            following = choice.first(transaction, rule)
            if following is not None and following.cost > left:
                return "budget"
    if study.deadline is not None and transaction.now >= study.deadline:
        return "deadline"
    if study.aside == study.chains:
        return "every chain was set aside"
    return None


def stopped(transaction: Transaction) -> str | None:
    """Why the study stopped; a deadline that has passed counts before anybody has recorded it."""
    study = transaction.study
    if study.stop_reason is None and study.deadline is not None and transaction.now >= study.deadline:
        return "deadline"
    return study.stop_reason


def check_going(transaction: Transaction) -> None:
    """Refuses to go on with a finished study."""
    reason = stopped(transaction)
    if reason is not None:
        raise StudyFinished(reason)
