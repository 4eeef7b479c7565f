"""Changes of a study that are no observations: its ends and aims, and which chains are advanced."""

import math
from collections.abc import Collection, Mapping
from typing import Any

from ...errors import InputError
from ...journal.entry import METHODS, Draft, Kind, packed
from ...policies import Policy
from ...validation import shown
from .. import budget, labels
from ..checks import is_due
from ..draws import Cut
from ..state import State, Twins
from ..walker import Walker
from .tells import check_not_held, expiries, find_lease, registered

__all__ = [
    "aim", "bound", "check", "close", "extend", "go_on", "lose", "renew_rule", "repeat", "set_aside", "take_up",
]  # fmt: skip


def extend(
    state: State, now: int, *, limit: float | None = None, deadline: float | None = None,
    target_loss: float | Mapping[str, float] | None = None, target_width: float | None = None,
) -> tuple[list[Draft], None]:  # fmt: skip
    """Another budget (the whole, not the increase), target or deadline. A study that has stopped goes on."""
    ends: dict[str, float] = {}
    if (checked := budget.checked_budget(limit, priced="costs" in state.settings)) is not None:
        budget.check_affordable(checked, state.costs[0])
        budget.check_lowered(state, now, checked)
        ends["budget"] = checked
    if deadline is not None:
        ends["deadline"] = deadline
    drafts: list[Draft] = []
    if target_loss is not None and target_width is not None:
        raise InputError("a study aims at one thing: at a target loss, or at answers to its questions")
    for kind, target in (("loss", target_loss), ("width", target_width)):
        if target is not None:
            drafts += aim(state, now, kind, target)[0]
    return [*drafts, Draft(Kind.EXTENDED, more=packed(**ends))], None


def aim(state: State, now: int, kind: str, target: Any) -> tuple[list[Draft], None]:
    """Another target. Raises ``InputError`` if the study is about something else."""
    if kind == "loss" and state.aim.is_about_answers:
        raise InputError("a study aims at one thing: at a target loss, or at answers to its questions")
    if kind == "width" and not state.questions:
        raise InputError("target_width is about the answers to questions, and the study has none")
    if kind == "width" and "loss" in state.aim.targets:
        raise InputError("a study aims at one thing, and this one at a target loss")
    if isinstance(target, Mapping):
        unlike = sorted(set(target) ^ set(state.names))
        if unlike:
            raise InputError(
                f"target_loss must be one number, or one for each chain, and {shown(unlike)} are not in both"
            )
        target = dict(target)
    return [Draft(Kind.AIM, more=packed(of=kind, target=target))], None


def bound(
    state: State, now: int, name: str, cut: Cut, *, transitions: int, value: float, ratio: float | None, method: str,
    error: float = math.inf, aim: int = 0,
) -> tuple[list[Draft], None]:  # fmt: skip
    """A bound that was computed from a cut's counts. Nothing, if another process was faster, or the aim is a new one.

    ``transitions``: of the cut. ``ratio``: bound over target; None: the study has no target, or no bound holds.
    ``error``: the largest error of a probability out of a state that was left `EXITS` times.
    """
    chain = labels.find(state, name)
    if chain.done or aim != state.aim.number or chain.at_cut == (cut.number, transitions):
        return [], None
    numbers = {"bound": value, "ratio": math.inf if ratio is None else ratio, "error": error}
    finite = {key: number if math.isfinite(number) else None for key, number in numbers.items()}
    more = packed(transitions=transitions, **finite, method=method, version=METHODS)
    return [Draft(Kind.BOUND, chain.number, value=cut.number, by=aim, more=more)], None


def check(
    state: State, now: int, observations: int, results: dict[str, Any], doubts: Mapping[str, tuple[str, str]]
) -> tuple[list[Draft], None]:
    """The checks of all chains. Nothing, if another process was faster.

    With an aim, the chains that they speak against are set aside: no observation helps them to reach it.

    ``observations``: how many were read. ``doubts``: chain → the code of the check, and why no bound of it holds.
    """
    if not is_due(state):
        return [], None
    found = [(labels.find(state, name), *doubt) for name, doubt in doubts.items()]
    named = [(chain.number, *doubt) for chain, *doubt in found]
    drafts = [Draft(Kind.CHECKED, more=packed(observations=observations, **results, doubts=named, version=METHODS))]
    for chain, _, sentence in found:
        if state.aim.targets and chain.aside is None and (chain.latched is not None or not chain.done):
            drafts.append(Draft(Kind.SET_ASIDE, chain.number, more=packed(reason=sentence)))
    return drafts, None


def renew_rule(state: State, now: int, policy: Policy) -> tuple[list[Draft], bool]:
    """A writer has another version of the rule: choices are its own from here on. Returns whether that is news."""
    if policy.version == state.version:
        return [], False
    return [Draft(Kind.RULE, value=policy.version, more=packed(name=policy.name))], True


def repeat(state: State, now: int, twins: Twins) -> tuple[list[Draft], None]:
    """Two paths repeat each other, so no bound holds. Nothing, if that is no news."""
    if not state.names_more(twins.chain, twins.second):
        return [], None
    more = packed(states=twins.length)
    return [Draft(Kind.REPEATED, twins.chain, twins.second, twins.first, more=more)], None


def lose(state: State, now: int, walker: Walker, name: str) -> tuple[list[Draft], None]:
    """An observation was made and can never be told."""
    return [Draft(Kind.LOST, labels.find(state, name).number, by=walker.number)], None


def set_aside(
    state: State, now: int, name: str, reason: str, *, ended: bool = False, token: int | None = None
) -> tuple[list[Draft], None]:
    """The chain is not advanced any more.

    ``ended``: its source has no more states. ``token``: of a lease that is given back with it.
    """
    chain = labels.find(state, name)
    drafts = expiries(state, now)
    if token is None:
        check_not_held(state, now, chain)
    else:
        chain, lease, path = find_lease(state, now, token, name)
        drafts.append(Draft(Kind.GIVEN_BACK, chain.number, path.number, by=lease.number))
    if chain.aside is None:
        drafts.append(Draft(Kind.SET_ASIDE, chain.number, value=int(ended), by=token or 0, more=packed(reason=reason)))
    return drafts, None


def take_up(state: State, now: int, name: str) -> tuple[list[Draft], None]:
    """The chain is advanced again, and a study that stopped for lack of it goes on."""
    chain = labels.find(state, name)
    return [Draft(Kind.TAKEN_UP, chain.number)] if chain.aside is not None else [], None


def close(state: State, now: int, walkers: Mapping[int, Collection[int]]) -> tuple[list[Draft], None]:
    """These walkers end in good order: they made no step of their open slots. ``walkers``: number → their chains.

    The processes of a session that continues outlive it, and may be at work.
    """
    drafts = []
    for number, chains in sorted(walkers.items()):
        paths = [
            [one, numbers]
            for one in sorted(chains)
            if (numbers := [p.number for p in state.chains[one].walks.values() if p.owner == number and not p.ended])
        ]
        if paths and not state.walkers[number].continuing:
            drafts.append(Draft(Kind.CLOSED, by=number, more=packed(paths=paths)))
    return drafts, None


def go_on(state: State, now: int, walker: Walker, name: str | None = None) -> tuple[list[Draft], int]:
    """The processes stand where plain tells left them: their next steps are asked for now, unless they were before.

    ``name``: only of this chain. Returns the number of the walker's own entry; 0 if it has none.
    """
    chains = state.chains if name is None else [labels.find(state, name)]
    left = [(chain, path) for chain in chains if (path := walker.goes_on(chain)) is not None]
    drafts: list[Draft] = []
    if not left:
        return drafts, walker.number
    number, drafts = registered(state, walker, drafts)
    drafts += [Draft(Kind.CONTINUED, chain.number, path.number, by=number) for chain, path in left]
    return drafts, number
