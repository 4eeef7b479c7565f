"""What ``learn`` is given for a study that exists: a later end extends it, all else must be what the study has.

What is not given (None) is the study's own. Everything is looked at before anything is changed.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from .. import policies
from ..counts import Counts
from ..errors import InputError
from ..policies import Policy
from ..validation import failure_probability, one_of, real_number, shown
from . import creation
from .study import Study
from .views import Progress


def go_on(
    study: Study,
    states: Mapping[str, int | Sequence[Hashable]] | None,
    open_states: bool | Sequence[str] | None,
    options: Mapping[str, Any],
) -> None:
    """Extends a study as far as ``options`` say so; refuses what it was not created with."""
    state = study.progress()
    _check_rule(state, options)
    numbers = {name: number for number, name in enumerate(study.names)}
    _check_each(study, numbers, options, "weights", "weight")
    _check_each(study, numbers, options, "costs", "cost")
    _check_states(study, numbers, states, open_states)
    _check_warm_start(study, numbers, options.get("warm_start"))
    budget = options.get("budget")
    asked = {
        "budget": None if budget is None else real_number(budget, "budget", above=0.0),
        "target_loss": creation.target_of(options.get("target_loss")),
        "deadline": creation.deadline_of(options.get("deadline")),
    }
    further = {name: end for name, end in asked.items() if end is not None and _is_further(state, name, end)}
    if further:
        study.extend(**further)


def _differs(what: str, has: str, given: str) -> InputError:
    return InputError(f"the study was created with {what} {has}: it cannot go on with {given}")


def _check_rule(state: Progress, options: Mapping[str, Any]) -> None:
    policy, delta, lost = options.get("policy"), options.get("delta"), options.get("on_lost_lease")
    # A user's own rule was looked at when the study was opened with it.
    if policy is not None and not isinstance(policy, Policy) and policies.get(policy).name != state.policy:
        raise _differs("the policy", state.policy, shown(policy))
    if delta is not None and failure_probability(delta) != state.delta:
        raise _differs("the delta", f"{state.delta:.10g}", shown(delta))
    if lost is not None and one_of(lost, "on_lost_lease", creation.ON_LOST_LEASE) != state.on_lost_lease:
        raise _differs("on_lost_lease", repr(state.on_lost_lease), shown(lost))


def _check_each(study: Study, numbers: Mapping[str, int], options: Mapping[str, Any], what: str, one: str) -> None:
    if options.get(what) is None:
        return
    given = creation.each_of(options[what], what, numbers)
    for name, number in numbers.items():
        has, asked = getattr(study.line(number), one), given.get(name, 1.0)  # as for a new study
        if has != asked:
            raise _differs(f"the {one}", f"{has:.10g} of the chain {name!r}", f"{asked:.10g}")


def _check_states(
    study: Study,
    numbers: Mapping[str, int],
    states: Mapping[str, int | Sequence[Hashable]] | None,
    open_states: bool | Sequence[str] | None,
) -> None:
    given = {} if states is None else states
    creation.check_known(given, "states", numbers)
    opened = creation.opened_of(False if open_states is None else open_states, numbers)
    closed = numbers if open_states is False else set(given) - opened
    for name in sorted({*opened, *closed}, key=numbers.__getitem__):
        if study.line(numbers[name]).open != (name in opened):
            has, asked = ("closed", "open") if name in opened else ("open", "closed")
            raise _differs(f"{has} states", f"of the chain {name!r}", f"{asked} ones")
        if name in given:
            known = study.known_states(name)
            if not _are_alike(known, name, given[name], name in opened):
                raise _differs("the states", f"{shown(list(known[:100]))} of the chain {name!r}", shown(given[name]))


def _are_alike(known: Sequence[Hashable], name: str, given: int | Sequence[Hashable], is_open: bool) -> bool:
    """Whether the states that were given are the study's; of an open chain, others may have been discovered since."""
    if is_open:
        wanted: Sequence[Hashable] = creation.labels_beforehand(name, given)
        known = known[: len(wanted)]
    else:
        fixed = creation.fixed_states(name, given)
        wanted = range(fixed) if isinstance(fixed, int) else fixed
    # Ranges are compared as such: a chain may have a thousand million states.
    return len(known) == len(wanted) and (known == wanted or list(known) == list(wanted))


def _check_warm_start(study: Study, numbers: Mapping[str, int], warm_start: Mapping[str, Counts] | None) -> None:
    if warm_start is None:
        return
    creation.check_known(warm_start, "warm_start", numbers)
    for name, number in numbers.items():
        counts, has = warm_start.get(name), study.prior_counts(number)
        if counts is not None and not isinstance(counts, Counts):
            raise InputError(f"the chain {name!r} must be warm-started from Counts, not {shown(counts)}")
        given = {} if counts is None else counts.rows()
        if has != given:
            before, now = (sum(sum(row.values()) for row in rows.values()) for rows in (has, given))
            raise _differs(f"{before} transitions", f"in the warm start of the chain {name!r}", f"another of {now}")


#: Which way each end of a study can be moved by learning, and the words for the other one.
_ENDS: dict[str, tuple[int, str, str, Callable[[float], str]]] = {
    "budget": (1, "smaller", "more", "{:g}".format),
    "target_loss": (-1, "larger", "less", "{:g}".format),
    "deadline": (1, "earlier", "later", creation.deadline_text),
}


def _is_further(state: Progress, name: str, end: float) -> bool:
    """Whether an end that is asked for is behind the study's own; one that comes before it is refused.

    Observations cost money: there are to be no more of them than was said, and nothing is taken back that others work
    with.
    """
    has = getattr(state, name)
    sign, worse, better, text = _ENDS[name]
    if has is not None and sign * end < sign * has:
        raise InputError(
            f"the study has the {name.replace('_', ' ')} {text(has)}, and the {worse} one of {text(end)} was given: "
            f"give {text(has)} or {better}, or change the study's own first, with extend"
        )
    return has is None or sign * end > sign * has
