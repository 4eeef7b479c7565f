"""``learn`` for an existing study: a later end extends it; every other setting must equal the study's own.

A setting that is not given (None) is the study's own. Everything is checked before anything is changed.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from ..counts import Counts
from ..errors import InputError
from ..policies import Policy
from ..study import Browser, Progress, Study, StudySettings
from ..study.settings import (
    CHECKS,
    check_known,
    checked_questions,
    closed_states,
    deadline_text,
    first_states,
    numbers_by_chain,
    open_chains,
    targets,
)
from ..validation import real_number, shown


def resume(study: Study, states: Mapping[str, int | Sequence[Hashable]] | None, settings: StudySettings) -> None:
    """Extends a study as ``settings`` say. Raises ``InputError`` for settings that differ from the study's own."""
    state, browser = study.progress(), Browser(study)
    given = settings.given()
    _check_rule(state, given)
    numbers = {name: number for number, name in enumerate(study.names)}
    for what, one in (("weights", "weight"), ("costs", "cost")):
        _check_each(browser, numbers, given.get(what), what, one)
    _check_states(browser, numbers, states, settings.open_states)
    _check_warm_start(browser, numbers, settings.warm_start)
    _check_questions(study, state, numbers, given)
    asked: dict[str, float] = {
        name: CHECKS[name](given[name]) for name in ("deadline", "target_width") if name in given
    }
    if "budget" in given:
        asked["budget"] = real_number(given["budget"], "budget", above=0.0)
    further: dict[str, Any] = {name: end for name, end in asked.items() if _is_further(name, getattr(state, name), end)}
    if "target_loss" in given:
        target = CHECKS["target_loss"](given["target_loss"])
        own = dict.fromkeys(numbers, state.target_loss)
        if state.target_loss != state.target_most:
            own = {name: browser.line(number).target for name, number in numbers.items()}
        beyond = [_is_further("target_loss", own[name], one) for name, one in targets(target, numbers).items()]
        if any(beyond):
            further["target_loss"] = target
    if further:
        study.extend(**further)


def _differs(what: str, has: str, given: str) -> InputError:
    return InputError(f"the study was created with {what} {has}: it cannot go on with {given}")


def _check_rule(state: Progress, given: Mapping[str, object]) -> None:
    """Compares the settings of the guarantee and of the policy."""
    policy, delta, method, paths = (given.get(name) for name in ("policy", "delta", "certificate", "paths"))
    # A user's own rule was compared when the study was opened with it.
    if policy is not None and not isinstance(policy, Policy) and CHECKS["policy"](policy).name != state.policy:
        raise _differs("the policy", state.policy, shown(policy))
    if delta is not None and CHECKS["delta"](delta) != state.delta:
        raise _differs("the delta", f"{state.delta:.10g}", shown(delta))
    if method is not None and CHECKS["certificate"](method) != state.method:
        raise _differs("the certificate", repr(state.method), shown(method))
    if paths is not None and (CHECKS["paths"](paths) == "shared") != state.shared:
        raise _differs("the paths", repr("shared" if state.shared else "own"), shown(paths))


def _check_questions(study: Study, state: Progress, numbers: Mapping[str, int], given: Mapping[str, object]) -> None:
    """Compares the questions: δ was split over them when the study was created."""
    if "questions" in given:
        asked = checked_questions(given["questions"], list(numbers))
        wanted = [(name, str(question)) for name, questions in asked.items() for question in questions]
        known = [(line.chain, line.question) for line in study.questions()]
        if known != wanted:
            raise _differs("the questions", shown(known), shown(wanted))
    for name in ("limit", "worst"):
        value = given.get(name)
        if value is not None and CHECKS[name](value) != getattr(state, name):
            raise _differs(f"the {name}", shown(getattr(state, name)), shown(value))


def _check_each(
    browser: Browser, numbers: Mapping[str, int], values: Mapping[str, float] | None, what: str, one: str
) -> None:
    if values is None:
        return
    given = numbers_by_chain(values, what, numbers)
    for name, number in numbers.items():
        has, asked = getattr(browser.line(number), one), given.get(name, 1.0)  # the default of a new study
        if has != asked:
            raise _differs(f"the {one}", f"{has:.10g} of the chain {name!r}", f"{asked:.10g}")


def _check_states(
    browser: Browser,
    numbers: Mapping[str, int],
    states: Mapping[str, int | Sequence[Hashable]] | None,
    open_states: bool | Sequence[str] | None,
) -> None:
    given = {} if states is None else states
    check_known(given, "states", numbers)
    opened = open_chains(open_states, numbers)
    closed = numbers if open_states is False else set(given) - opened
    for name in sorted({*opened, *closed}, key=numbers.__getitem__):
        if browser.line(numbers[name]).open != (name in opened):
            has, asked = ("closed", "open") if name in opened else ("open", "closed")
            raise _differs(f"{has} states", f"of the chain {name!r}", f"{asked} ones")
        if name in given:
            known = browser.states(name)
            if not _are_alike(known, name, given[name], name in opened):
                raise _differs("the states", f"{shown(list(known[:100]))} of the chain {name!r}", shown(given[name]))


def _are_alike(known: Sequence[Hashable], name: str, given: int | Sequence[Hashable], is_open: bool) -> bool:
    """Whether the given states are the study's. An open chain may have discovered more since then."""
    if is_open:
        wanted: Sequence[Hashable] = first_states(name, given)
        known = known[: len(wanted)]
    else:
        fixed = closed_states(name, given)
        wanted = range(fixed) if isinstance(fixed, int) else fixed
    # Ranges are compared as ranges, because a chain may have 10⁹ states.
    return len(known) == len(wanted) and (known == wanted or list(known) == list(wanted))


def _check_warm_start(browser: Browser, numbers: Mapping[str, int], warm_start: Mapping[str, Counts] | None) -> None:
    if warm_start is None:
        return
    check_known(warm_start, "warm_start", numbers)
    for name, number in numbers.items():
        counts, has = warm_start.get(name), browser.prior_counts(number)
        if counts is not None and not isinstance(counts, Counts):
            raise InputError(f"the chain {name!r} must be warm-started from Counts, not {shown(counts)}")
        given = {} if counts is None else counts.rows()
        if has != given:
            before, now = (sum(sum(row.values()) for row in rows.values()) for rows in (has, given))
            raise _differs(f"{before} transitions", f"in the warm start of the chain {name!r}", f"another of {now}")


#: The direction in which ``learn`` may move each end of a study, and the words for the other direction.
_ENDS: dict[str, tuple[int, str, str, Callable[[float], str]]] = {
    "budget": (1, "smaller", "more", "{:g}".format),
    "target_loss": (-1, "larger", "less", "{:g}".format),
    "deadline": (1, "earlier", "later", deadline_text),
    "target_width": (-1, "larger", "less", "{:g}".format),
}


def _is_further(name: str, has: float | None, end: float) -> bool:
    """Whether the requested end is beyond the study's own. An end before the study's own is refused.

    Observations cost money. So there must not be more of them than the caller said, and an end that others rely on must
    not be withdrawn.
    """
    sign, worse, better, text = _ENDS[name]
    if has is not None and sign * end < sign * has:
        raise InputError(
            f"the study has the {name.replace('_', ' ')} {text(has)}, and the {worse} one of {text(end)} was given: "
            f"give {text(has)} or {better}, or change the study's own first, with extend"
        )
    return has is None or sign * end > sign * has
