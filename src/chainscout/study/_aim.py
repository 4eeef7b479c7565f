"""The aim of a study: how far each chain is from it, when its bounds are looked at next, and which chains rest.

A chain's ratio says how far it is, in units of transitions: bound over target loss, or squared width over squared
target width (MATH §16). A chain whose ratio is at most 1 has reached the aim, and is never advanced again. The bounds
hold at all times, so it may stop when it likes; and no rule can reach the aim of a chain without its own observations.
"""

import math
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from ..errors import InputError
from ..store import ChainRecord, StudyRecord, Transaction
from ..validation import shown

if TYPE_CHECKING:
    from ._index import LiveIndex

#: The next look is due when T has grown by the root of the ratio, at least by NEAR and at most by FAR; or when the
#: ratio is expected to be 1, if that is sooner. But T grows at least by LEAST.
LEAST, NEAR, FAR = 1.001, 1.01, 2.0
#: Without an aim, bounds are computed for the history only: from T = LONG on, and then when T has grown by CALM.
CALM, LONG = 1.25, 100
#: A study with at most this many chains computes all bounds when it stops.
FEW = 100


def aims_at_answers(study: StudyRecord) -> bool:
    """Whether the study stops when its questions are answered."""
    return (study.target_width, study.limit, study.worst) != (None, None, None)


def has_aim(study: StudyRecord) -> bool:
    """Whether the study stops when bounds are small enough."""
    return study.target_loss is not None or aims_at_answers(study)


def _unread(study: StudyRecord, chain: ChainRecord) -> int:
    """How many of the chain's transitions its bounds do not read: answers do not replay a warm start."""
    return chain.prior if aims_at_answers(study) else 0


def _next_due(study: StudyRecord, chain: ChainRecord, *, asked: bool) -> int:
    """The T at which the chain's bounds are looked at next. ``asked``: whether it has questions."""
    unread = _unread(study, chain)
    own = chain.transitions - unread
    if has_aim(study):
        if chain.done:  # it moves only if somebody tells more than was asked for
            return chain.transitions + 1
        growth = max(LEAST, min(chain.ratio, max(NEAR, min(math.sqrt(chain.ratio), FAR))))
    else:
        growth = CALM
        own = own if asked else max(own, int(LONG / CALM))
    return max(chain.transitions + 1, unread + math.ceil(own * growth))


def is_due(chain: ChainRecord) -> bool:
    """Whether the chain's bounds are to be looked at now."""
    return chain.due <= chain.transitions


def rests(chain: ChainRecord, pending: int | None = None) -> bool:
    """Whether nobody advances the chain: it has reached the aim, or the draws under way bring the look that says so.

    ``pending``: how many draws are under way; None: those of leases.
    """
    if chain.done:
        return True
    pending = chain.pending if pending is None else pending
    expected = chain.transitions + pending
    return pending > 0 and chain.due <= expected and chain.enough <= expected


def begin(study: StudyRecord, live: "LiveIndex", chain: ChainRecord, *, asked: bool) -> None:
    """Places a chain before its first look at the study's aim. The caller saves the chain.

    It is done already if it has one state, or if the aim is about answers and no question is about it.
    """
    nothing_to_learn = study.target_loss is not None and chain.size == 1 and not chain.open
    chain.ratio = 0.0 if nothing_to_learn or (aims_at_answers(study) and not asked) else math.inf
    if nothing_to_learn:
        chain.certificate = 0.0
    chain.enough = 0.0 if chain.done else math.inf
    chain.due = _next_due(study, chain, asked=asked)
    if chain.transitions > _unread(study, chain):
        chain.due = chain.transitions
    if live.policy.aiming:
        chain.sums = (chain.enough, float(_unread(study, chain)))
    live.reindex(chain)
    _count(study, chain, 1)


def begin_all(transaction: Transaction, live: "LiveIndex", target: float | Mapping[str, float] | None = None) -> None:
    """Places every chain anew, because the study's aim has changed. Its chains must be looked at afterwards.

    ``target``: the new target loss of the chains, if the aim is a loss.
    """
    study = transaction.study
    wanted = {} if target is None else targets(target, [chain.name for chain in transaction.every()])
    if wanted:
        study.target_loss, study.target_most = min(wanted.values()), max(wanted.values())
    study.behind = study.missed = 0
    asked = {question.chain for question in transaction.questions()}
    for chain in transaction.every():
        chain.target = wanted.get(chain.name, 0.0)
        begin(study, live, chain, asked=chain.number in asked)
        transaction.save(chain)


def place(study: StudyRecord, live: "LiveIndex", chain: ChainRecord, ratio: float, *, asked: bool) -> None:
    """Gives a chain the ratio of the look that was just made. The caller saves the chain."""
    chain.looked = chain.transitions
    set_ratio(study, live, chain, ratio)
    chain.due = _next_due(study, chain, asked=asked)
    chain.resting = rests(chain)  # with the new moment


def set_ratio(study: StudyRecord, live: "LiveIndex", chain: ChainRecord, ratio: float) -> None:
    """Gives a chain the ratio of its last look. The caller saves the chain."""
    _count(study, chain, -1)
    chain.ratio = math.inf if study.spoilt else ratio
    _count(study, chain, 1)
    unread = _unread(study, chain)
    chain.enough = unread + chain.ratio * max(0, chain.looked - unread) if chain.ratio < math.inf else math.inf
    if live.policy.aiming:
        chain.sums = (chain.enough, float(unread))
    live.reindex(chain)


def set_aside(study: StudyRecord, chain: ChainRecord, aside: bool) -> None:
    """Sets a chain aside, or takes it up again. The caller saves the chain."""
    _count(study, chain, -1)
    study.aside += aside - chain.aside
    chain.aside = aside
    _count(study, chain, 1)


def _count(study: StudyRecord, chain: ChainRecord, change: int) -> None:
    """Counts a chain that has not reached the aim, in or out."""
    if has_aim(study) and not chain.done:
        study.missed += change * chain.aside
        study.behind += change * (not chain.aside)


def targets(given: float | Mapping[str, float], names: Collection[str]) -> dict[str, float]:
    """Chain → its target loss. ``given``: one for all chains, or one for each."""
    if not isinstance(given, Mapping):
        return dict.fromkeys(names, given)
    unlike = [name for name in given if name not in names] or [name for name in names if name not in given]
    if unlike:
        raise InputError(
            f"target_loss must be one number, or one for each chain of the study, and {shown(unlike)} are not in both:"
            f" the chains are {shown(list(names))}"
        )
    return {name: given[name] for name in names}


def news(transaction: Transaction, bounds: Mapping[str, float]) -> list[str]:
    """The chains whose bounds, times their weights, say something else of the target loss than is stored."""
    study = transaction.study
    if study.target_loss is None or study.stop_reason is not None or study.spoilt:
        return []
    return [chain.name for chain in transaction.every() if (bounds[chain.name] <= chain.target) != chain.done]
