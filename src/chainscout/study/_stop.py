"""The end of a study: the rule that finds a reason to stop, and what lets the study continue."""

from collections.abc import Iterable

from ..errors import NothingFree, StudyFinished
from ..store import ChainRecord, StudyRecord, Transaction
from . import _budget, _certificate, _evidence, _history, _selection
from ._index import LiveIndex
from ._questions import Answering
from ._solutions import Solutions
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
    StopReason.ALL_SET_ASIDE: "when a source works again, take its chain up with take_up",
    StopReason.REPEATED: "extend it with a budget or a deadline",
}


def settle(
    transaction: Transaction,
    live: LiveIndex,
    moved: Iterable[ChainRecord] = (),
    solutions: Solutions | None = None,
    answering: Answering | None = None,
) -> None:
    """Stops the study if there is a reason to. ``moved``: the chains that were just advanced."""
    study = transaction.study
    looked = study.aside > 0 and not moved
    if study.questions and answering is not None and answering.refresh_due(transaction, live, moved):
        looked = True
    _history.draw(transaction, _certificate.refresh_due(transaction, moved, solutions))
    _evidence.keep_if_due(transaction)
    if study.stop_reason is not None:
        return
    reason = _reason(transaction, live, looked)
    if reason is not None:
        if study.chains <= _certificate.FEW:  # a small stopped study shows the certificates of its last moment
            _history.draw(transaction, _certificate.refresh_each(transaction))
            _evidence.keep(transaction)
        if study.unmet and answering is not None and study.chains <= _certificate.FEW:
            answering.refresh_all(transaction, live)
            reason = _answered(transaction, True) or reason
        study.stop_reason = reason.value
        transaction.happened(EventKind.FINISHED.value, reason=reason.value)


def _reason(transaction: Transaction, live: LiveIndex, looked: bool) -> StopReason | None:
    """The reason to stop now, or None. ``looked``: answers were just computed, or a chain was set aside."""
    study = transaction.study
    if study.spoilt and study.budget is None and study.deadline is None and _has_aim(study):
        return StopReason.REPEATED
    if study.questions:
        answered = _answered(transaction, looked)
        if answered is not None:
            return answered
    if study.target_loss is not None and not study.spoilt and _certificate.is_met(transaction, study.target_loss):
        if _certificate.largest(transaction) <= study.target_loss:
            return StopReason.TARGET_LOSS
        # A chain that was set aside does not move any more and may never meet the target: nothing is left to do.
        if study.aside < study.chains:
            return StopReason.TARGET_LOSS_OF_THE_REST
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
        return StopReason.ALL_SET_ASIDE
    return None


def _has_aim(study: StudyRecord) -> bool:
    """Whether the study stops when bounds are small enough."""
    return any(aim is not None for aim in (study.target_loss, study.target_width, study.limit, study.worst))


def _answered(transaction: Transaction, looked: bool) -> StopReason | None:
    """The reason to stop if the questions of all chains, or of all that are not set aside, are answered well enough."""
    study = transaction.study
    if study.spoilt:  # no answer of a repeated chain has bounds, however narrow they look
        return None
    if study.worst is not None:
        return StopReason.WORST if study.unmet == 0 else None
    whole, rest = StopReason.TARGET_WIDTH, StopReason.TARGET_WIDTH_OF_THE_REST
    if study.limit is not None:
        whole, rest = StopReason.LIMIT, StopReason.LIMIT_OF_THE_REST
    elif study.target_width is None:
        return None
    if study.unmet == 0:
        return whole
    if not looked or not 0 < study.aside < study.chains:
        return None
    left = (record for record in transaction.questions() if not record.met)
    return rest if all(transaction.numbered(record.chain).aside for record in left) else None


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
    if study.leases == 0 and study.aside < study.chains and not without:
        return _finished(transaction, StopReason.BUDGET)
    held = "1 lease is held by a worker" if study.leases == 1 else f"{study.leases} leases are held by workers"
    if study.leases and _budget.remaining(transaction) < study.least_cost:
        held += ", and what is left of the budget is promised to them"
    return NothingFree(f"nothing is free: {held}, and {study.aside} are set aside")


def check_not_stopped(transaction: Transaction) -> None:
    """Raises ``StudyFinished`` if a stop is recorded. A passed deadline stops asking, but not telling."""
    if transaction.study.stop_reason is not None:
        raise _finished(transaction, StopReason(transaction.study.stop_reason))
