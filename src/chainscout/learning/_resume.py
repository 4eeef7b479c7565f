"""``learn`` for an existing study: a later end extends it; every other setting must equal the study's own.

A setting that is not given (None) is the study's own. Everything is checked before anything is changed.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from ..counts import Counts
from ..errors import InputError
from ..study import Study, StudySettings
from ..study.labels import closed_states, first_states
from ..study.questions import checked_questions
from ..study.settings import CHECKS, check_known, deadline_text, numbers_by_chain, open_chains, targets
from ..validation import real_number, shown

__all__ = ["resume"]

#: The direction in which ``learn`` may move each end of a study, and the words for the other direction.
_ENDS: dict[str, tuple[int, str, str, Callable[[float], str]]] = {
    "budget": (1, "smaller", "more", "{:g}".format),
    "target_loss": (-1, "larger", "less", "{:g}".format),
    "deadline": (1, "earlier", "later", deadline_text),
    "target_width": (-1, "larger", "less", "{:g}".format),
}


def resume(study: Study, states: Mapping[str, int | Sequence[Hashable]] | None, settings: StudySettings) -> None:
    """Extends a study as ``settings`` say. Raises ``InputError`` for settings that differ from the study's own."""
    own, names, given = study.settings, study.names, settings.given()
    further: dict[str, Any] = {}
    for what, value in given.items():
        if what in _ENDS:
            has = _ends(what, getattr(own, what), names)
            for name, end in _ends(what, value, names).items():
                if _is_further(what, has[name], end):
                    further[what] = value
        elif what != "open_states":
            _check_equal(what, getattr(own, what), value, names)
    _check_states(study, own, states or {}, settings.open_states)
    if further:
        study.extend(**further)


def _differs(what: str, has: str, given: str) -> InputError:
    return InputError(f"the study was created with {what} {has}: it cannot go on with {given}")


def _check_equal(what: str, has: Any, value: Any, names: Sequence[str]) -> None:
    """Raises ``InputError`` for a setting that differs from the study's own."""
    if what in ("weights", "costs"):
        given = numbers_by_chain(value, what, dict.fromkeys(names))
        for name in names:
            asked = given.get(name, 1.0)  # the default of a new study
            if has[name] != asked:
                raise _differs(f"the {what[:-1]}", f"{has[name]:.10g} of the chain {name!r}", f"{asked:.10g}")
    elif what == "warm_start":
        _check_warm_start(has, value, names)
    elif what == "questions":
        known, wanted = (_questions(each, names) for each in (has, value))
        if known != wanted:
            raise _differs("the questions", shown(known), shown(wanted))
    elif what == "policy":
        # A user's own rule was compared when the study was opened with it.
        if isinstance(value, str) and CHECKS[what](value).name != has:
            raise _differs("the policy", has, shown(value))
    elif CHECKS[what](value) != has:
        raise _differs(f"the {what}", shown(has), shown(value))


def _questions(given: Any, names: Sequence[str]) -> list[tuple[str, str]]:
    asked = checked_questions(given, names)
    return [(name, str(question)) for name, questions in asked.items() for question in questions]


def _check_warm_start(has: Mapping[str, Counts], given: Any, names: Sequence[str]) -> None:
    check_known(given, "warm_start", dict.fromkeys(names))
    for name in names:
        counts = given.get(name)
        if counts is not None and not isinstance(counts, Counts):
            raise InputError(f"the chain {name!r} must be warm-started from Counts, not {shown(counts)}")
        known, wanted = ({} if each is None else each.rows() for each in (has.get(name), counts))
        if known != wanted:
            before, now = (sum(sum(row.values()) for row in rows.values()) for rows in (known, wanted))
            raise _differs(f"{before} transitions", f"in the warm start of the chain {name!r}", f"another of {now}")


def _check_states(
    study: Study, own: StudySettings, given: Mapping[str, int | Sequence[Hashable]],
    open_states: bool | Sequence[str] | None,
) -> None:  # fmt: skip
    numbers = {name: number for number, name in enumerate(study.names)}
    check_known(given, "states", numbers)
    opened, were = open_chains(open_states, numbers), open_chains(own.open_states, numbers)
    closed = numbers if open_states is False else set(given) - opened
    for name in sorted({*opened, *closed}, key=numbers.__getitem__):
        if (name in were) != (name in opened):
            has, asked = ("closed", "open") if name in opened else ("open", "closed")
            raise _differs(f"{has} states", f"of the chain {name!r}", f"{asked} ones")
        if name in given:
            known = study.counts(name).states
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


def _ends(what: str, value: Any, names: Sequence[str]) -> dict[str, float | None]:
    """An end of the study; the target loss of each chain."""
    if value is not None:
        value = real_number(value, what, above=0.0) if what == "budget" else CHECKS[what](value)
    return dict(targets(value, names)) if what == "target_loss" else {"": value}


def _is_further(name: str, has: float | None, end: float | None) -> bool:
    """Whether the requested end is beyond the study's own. An end before the study's own is refused.

    Observations cost money. So there must not be more of them than the caller said, and an end that others rely on must
    not be withdrawn.
    """
    sign, worse, better, text = _ENDS[name]
    assert end is not None
    if has is not None and sign * end < sign * has:
        raise InputError(
            f"the study has the {name.replace('_', ' ')} {text(has)}, and the {worse} one of {text(end)} was given: "
            f"give {text(has)} or {better}, or change the study's own first, with extend"
        )
    return has is None or sign * end > sign * has
