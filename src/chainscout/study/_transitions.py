"""What a tell does to a chain: it counts a transition, or begins a segment; and what breaks a path."""

from ..errors import OutOfStep
from ..store import ChainRecord, Transaction
from . import _certificate
from ._index import LiveIndex
from .views import EventKind

#: A chain is set aside after so many segments in a row without a transition (MATH §1).
MOST_BARREN = 10


def observe(transaction: Transaction, live: LiveIndex, chain: ChainRecord, state: int) -> None:
    """Adds one observation, of the state at this position. The caller has checked everything."""
    study = transaction.study
    if chain.last is None:
        chain.segments += 1
        chain.barren += 1
    else:
        live.count(transaction, chain, chain.last, state)  # what the rule raises, it raises before anything is changed
        chain.barren = 0
    chain.last = state
    chain.observations += 1
    transaction.save(chain)
    study.observations += 1
    study.used += chain.cost
    transaction.append(chain, state)


def is_repeated(transaction: Transaction, chain: ChainRecord, step: int, position: int | None) -> bool:
    """Whether this observation was told before. Raises ``OutOfStep`` for another state at its step, or for a gap."""
    if step == chain.observations + 1:
        return False
    if step > chain.observations:
        raise OutOfStep(
            f"the next observation of the chain {chain.name!r} has the number {chain.observations + 1}, not {step}"
        )
    known = transaction.observation(chain, step)
    if known is None or known.state != position:
        raise OutOfStep(f"observation {step} of the chain {chain.name!r} was told before, with another state")
    return True


def restart(transaction: Transaction, chain: ChainRecord) -> None:
    """Ends the segment. A chain whose last segments brought no transition is set aside."""
    if chain.last is not None:
        chain.last = None
        if chain.barren >= MOST_BARREN:
            set_aside(transaction, chain, f"its last {chain.barren} segments brought no transition")
    transaction.save(chain)


def set_aside(transaction: Transaction, chain: ChainRecord, reason: str) -> None:
    """Takes the chain out of the choice."""
    if not chain.aside:
        chain.aside = True
        transaction.study.aside += 1
        transaction.happened(EventKind.SET_ASIDE.value, chain, reason=reason)
        if transaction.study.target_loss is not None:
            _certificate.refresh(transaction, chain)  # it is not refreshed when other chains move
        transaction.save(chain)
