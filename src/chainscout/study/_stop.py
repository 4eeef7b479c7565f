"""Looks at bounds, and the end of a study: the rule that finds a reason to stop, and what lets the study continue."""

import math
from collections.abc import Iterable, Mapping

from ..errors import NothingFree, StudyFinished
from ..store import ChainRecord, Transaction
from . import _aim, _budget, _certificate, _evidence, _history, _questions, _selection, _transitions
from ._index import LiveIndex
from ._questions import Answering
from .views import EventKind, StopReason

#: What lets a stopped study continue.
_WAYS_ON = {
    StopReason.BUDGET: "extend it with a larger budget",
    StopReason.TARGET_LOSS: "extend it with a smaller target loss",
    StopReason.TARGET_LOSS_OF_THE_REST: "extend it with a smaller target loss, or take a chain up with take_up,",
    StopReason.TARGET_WIDTH: "extend it with a smaller target width",
    StopReason.TARGET_WIDTH_OF_THE_REST: "extend it with a smaller target width, or take a chain up with take_up,",
    StopReason.LIMIT: "extend it with a target width",
    StopReason.LIMIT_OF_THE_REST: "extend it with a target width, or take a chain up with take_up,",
    StopReason.WORST: "extend it with a target width",
    StopReason.DEADLINE: "extend it with a later deadline",
    StopReason.NO_BOUND: "no observation helps this study: make one without a target",
    StopReason.UNDECIDED: "take a chain up with take_up",
    StopReason.ALL_SET_ASIDE: "when a source works again, take its chain up with take_up",
    StopReason.REPEATED: "extend it with a budget or a deadline",
}


def settle(transaction: Transaction, live: LiveIndex, answering: Answering, moved: Iterable[ChainRecord] = ()) -> None:
    """Looks at the bounds that are due, and stops the study if there is a reason to.

    ``moved``: the chains that were just advanced.
    """
    study = transaction.study
    moved = list(moved)
    looked = [chain for chain in moved if _aim.is_due(chain)]
    for chain in looked:
        look(transaction, live, answering, chain)
    for chain in moved:
        if chain.resting != (resting := _aim.rests(chain)):  # plain tells beside the draws under way
            chain.resting = resting
            transaction.save(chain)
    _history.draw(transaction, looked)
    if _evidence.keep_if_due(transaction):
        _set_rejected_aside(transaction, live)
    if study.stop_reason is not None:
        return
    reason = _reason(transaction, live, answering)
    if reason in _AIMS:  # no study stops on bounds that do not hold
        _evidence.keep(transaction)
        if _set_rejected_aside(transaction, live):
            reason = _reason(transaction, live, answering)
    if reason is None:
        return
    if study.chains <= _aim.FEW:  # a small stopped study shows the bounds of its last moment
        stale = [chain for chain in transaction.every() if chain.transitions > min(chain.looked, chain.certified)]
        for chain in stale:
            look(transaction, live, answering, chain, whole=True)
        _history.draw(transaction, stale)
        _evidence.keep(transaction)
        _set_rejected_aside(transaction, live)
        reason = _reached(transaction, live, answering) or reason
    study.stop_reason = reason.value
    transaction.happened(EventKind.FINISHED.value, reason=reason.value)


def look(
    transaction: Transaction, live: LiveIndex, answering: Answering, chain: ChainRecord, *, whole: bool = False
) -> None:
    """Computes a chain's bounds as far as the study's aim needs them, and how far the chain is from the aim.

    The certificate of a study that aims at answers is for the history only. ``whole``: it is computed all the same.
    """
    study, ratio = transaction.study, math.inf
    asked = study.questions > 0 and bool(transaction.questions(chain))
    seldom = chain.transitions >= max(_aim.LONG, _aim.CALM * chain.certified)
    if (study.target_loss is not None or whole or seldom) and chain.certified < chain.transitions:
        _certificate.refresh(transaction, chain)
    if asked:
        ratio = answering.look(transaction, live, chain)
    if study.target_loss is not None:
        ratio = chain.certificate / chain.target
    elif not _aim.aims_at_answers(study):
        ratio = math.inf
    elif not asked:
        ratio = 0.0
    if ratio <= 1.0 and _aim.has_aim(study) and _evidence.doubts(transaction, [chain]):
        ratio = math.inf
    rested = chain.done
    _aim.place(study, live, chain, ratio, asked=asked)
    transaction.save(chain)
    if _aim.has_aim(study) and (chain.done or chain.aside):
        _transitions.withdraw(transaction, chain)
    elif rested:
        _transitions.ask_again(transaction, chain)


def _set_rejected_aside(transaction: Transaction, live: LiveIndex) -> bool:
    """Sets aside the chains of which no bound holds, because a check rejects what the bounds assume.

    They cannot reach the study's aim. Returns whether there were any that were not set aside for it before.
    """
    if not _aim.has_aim(transaction.study):
        return False
    doubts, found = _evidence.doubts(transaction), False
    for name, sentence in doubts.items():
        chain = transaction.chain(name)
        if chain is not None and not (chain.aside and not chain.done):
            found = True
            _aim.set_ratio(transaction.study, live, chain, math.inf)
            _transitions.set_aside(transaction, chain, sentence)
            transaction.save(chain)
            _transitions.withdraw(transaction, chain)
    return found


def look_at_all(transaction: Transaction, live: LiveIndex, answering: Answering, *, whole: bool = False) -> None:
    """Looks at every chain that has a transition, because the study's aim is new."""
    for chain in transaction.every():
        if chain.transitions:
            look(transaction, live, answering, chain, whole=whole)


def aim_anew(
    transaction: Transaction,
    live: LiveIndex,
    answering: Answering,
    target_loss: float | Mapping[str, float] | None,
    target_width: float | None,
) -> None:
    """Gives the study a new target, if there is one, and looks at its chains."""
    if target_loss is not None:
        _aim.begin_all(transaction, live, target_loss)
    elif target_width is not None:
        _questions.aim_at_width(transaction, live, target_width)
    else:
        return
    look_at_all(transaction, live, answering)
    for chain in transaction.every():
        _transitions.ask_again(transaction, chain)


#: The reason to stop when the aim is reached: for every chain, or for all but the chains that were set aside.
_REACHED = {
    "target_loss": (StopReason.TARGET_LOSS, StopReason.TARGET_LOSS_OF_THE_REST),
    "target_width": (StopReason.TARGET_WIDTH, StopReason.TARGET_WIDTH_OF_THE_REST),
    "limit": (StopReason.LIMIT, StopReason.LIMIT_OF_THE_REST),
}


#: The reasons that say something of bounds.
_AIMS = frozenset({StopReason.WORST, *(reason for pair in _REACHED.values() for reason in pair)})


def _reached(transaction: Transaction, live: LiveIndex, answering: Answering) -> StopReason | None:
    """The reason to stop if every chain, or every chain that is not set aside, has reached the study's aim."""
    study = transaction.study
    if study.spoilt or not _aim.has_aim(study):
        return None
    if study.worst is not None:
        if study.unmet > 0:
            return StopReason.UNDECIDED if study.behind == 0 else None
        asked = {transaction.numbered(question.chain).name for question in transaction.questions()}
        return StopReason.UNDECIDED if asked & _evidence.doubts(transaction).keys() else StopReason.WORST
    if study.behind or study.missed == study.chains:
        return None
    if study.missed:  # they may have moved since the last look
        for chain in transaction.every():
            if chain.aside and chain.transitions > chain.looked:
                look(transaction, live, answering, chain)
    whole, rest = next(reasons for aim, reasons in _REACHED.items() if getattr(study, aim) is not None)
    return rest if study.missed else whole


def _reason(transaction: Transaction, live: LiveIndex, answering: Answering) -> StopReason | None:
    """The reason to stop now, or None."""
    study = transaction.study
    if study.spoilt and _aim.has_aim(study) and (study.behind == 0 or (study.budget, study.deadline) == (None, None)):
        return StopReason.REPEATED
    reached = _reached(transaction, live, answering)
    if reached is not None:
        return reached
    if study.budget is not None:
        left = _budget.unspent(study)
        if left < study.least_cost:
            return StopReason.BUDGET
        if left < study.largest_cost:
            following = _selection.first(transaction, live)
            if following is not None and following.cost > left:
                return StopReason.BUDGET
    if study.deadline is not None and transaction.now >= study.deadline:
        return StopReason.DEADLINE
    if study.aside == study.chains:
        rejected = _aim.has_aim(study) and _evidence.doubts(transaction)
        return StopReason.NO_BOUND if rejected else StopReason.ALL_SET_ASIDE
    return None


def stop_reason(transaction: Transaction) -> StopReason | None:
    """Why the study stopped. A deadline that has passed counts even before it is recorded."""
    study = transaction.study
    if study.stop_reason is not None:
        return StopReason(study.stop_reason)
    if study.deadline is not None and transaction.now >= study.deadline:
        return StopReason.DEADLINE
    return None


def check_going(transaction: Transaction) -> None:
    """Raises ``StudyFinished`` if the study has stopped."""
    reason = stop_reason(transaction)
    if reason is not None:
        raise _finished(transaction, reason)


def words(transaction: Transaction, reason: StopReason) -> str:
    """The reason in words: they promise nothing if paths repeat each other, and say what is left of the budget."""
    study = transaction.study
    found = reason.words_without_bound if study.spoilt else reason.words
    left = _budget.left_over(study)
    if reason is StopReason.BUDGET and left:
        found += f"; the {left:.6g} {study.unit} left do not pay for the next observation"
    return found


def _finished(transaction: Transaction, reason: StopReason) -> StudyFinished:
    """The error that says why a study stopped, and what lets it continue."""
    return StudyFinished(f"the study is finished ({words(transaction, reason)}); {_WAYS_ON[reason]} to go on", reason)


def nothing_free(transaction: Transaction, without: int = 0) -> Exception:
    """The error that says why no chain is available: the budget is used, or every chain is held or set aside.

    ``without``: how many chains the caller excludes.
    """
    study = transaction.study
    if study.budget is not None and study.leases == 0 and study.aside < study.chains and not without:
        return _finished(transaction, StopReason.BUDGET)
    held = "1 lease is held by a worker" if study.leases == 1 else f"{study.leases} leases are held by workers"
    if study.leases and _budget.remaining(transaction) < study.least_cost:
        held += ", and what is left of the budget is promised to them"
    return NothingFree(f"nothing is free: {held}, and {study.aside} are set aside")


def check_not_stopped(transaction: Transaction) -> None:
    """Raises ``StudyFinished`` if a stop is recorded. A passed deadline stops asking, but not telling."""
    if transaction.study.stop_reason is not None:
        raise _finished(transaction, StopReason(transaction.study.stop_reason))
