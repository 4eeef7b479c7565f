"""The settings of a study: one record, and the check of each setting."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any

from .. import policies
from ..counts import Counts
from ..errors import InputError
from ..policies import Policy
from ..validation import did_you_mean, failure_probability, one_of, real_number, shown, unicode_text
from . import labels
from .questions import checked_limit, checked_width, checked_worst
from .state import State

__all__ = [
    "CHECKS", "UNDECLARED", "StudySettings", "check_known", "checked_name", "deadline_text", "numbers_by_chain",
    "open_chains", "settings_of", "target_text", "targets",
]  # fmt: skip

#: The certificates that a study can promise for its closed chains; the first one is the default.
_CERTIFICATES = ("sharp", "mixture")
#: Whether every worker walks paths of its own, or a chain is one physical process that workers share.
_PATHS = ("own", "shared")


@dataclass(frozen=True, kw_only=True)
class StudySettings:
    """The settings of a study. None means 'not given': a new study takes the default, an existing one keeps its own."""

    #: Observations, or cost units if ``costs`` are given; no end if not given.
    budget: float | None = None
    #: The study stops when this loss is certified with probability 1 − ``delta``; or name → the loss of each chain.
    target_loss: float | Mapping[str, float] | None = None
    #: A datetime with a time zone, or seconds since 1970.
    deadline: Any = None
    #: The probability that a guarantee fails; 0.05 if not given.
    delta: float | None = None
    #: The certificate that the study promises and stops by: 'sharp' (if not given) or 'mixture'.
    certificate: str | None = None
    #: The rule that chooses the next chain; if not given, 'furthest' where the study has a target, and else 'scout'.
    policy: str | Policy | None = None
    #: How much a chain's loss counts; 1 for a chain that is not named.
    weights: Mapping[str, float] | None = None
    #: What an observation of a chain costs; 1 for a chain that is not named.
    costs: Mapping[str, float] | None = None
    #: 'own' (if not given): every worker has processes of its own and walks its own paths. 'shared': a chain is one
    #: physical process; one worker holds it at a time, and continues its path if the last one gave it back.
    paths: str | None = None
    #: True, or the names of the chains whose states are not all known beforehand; none if not given.
    open_states: bool | Sequence[str] | None = None
    #: Counts to begin with.
    warm_start: Mapping[str, Counts] | None = None
    #: The questions about the chains: name → a question, a line, or a list; or the same for all chains.
    questions: Any = None
    #: The study stops when every answer is at most this wide.
    target_width: float | None = None
    #: The study stops when it is known for every answer whether it is below this limit.
    limit: float | None = None
    #: The study stops when one chain is known to have the 'highest' or the 'lowest' answer of all.
    worst: str | None = None

    def given(self) -> dict[str, Any]:
        """The settings that were given, by name."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in found.items() if value is not None}

    @property
    def has_target(self) -> bool:
        """Whether the study stops when bounds are small enough."""
        return any(aim is not None for aim in (self.target_loss, self.target_width, self.limit, self.worst))

    def checked(self) -> "StudySettings":
        """The same settings, checked and with the defaults.

        Raises ``InputError`` for the first bad one. A new study checks those that depend on the chains.
        """
        values = _DEFAULTS | self.given()
        if self.policy is None and self.has_target:
            values["policy"] = policies.WITH_TARGET
        return replace(self, **{name: check(values.get(name)) for name, check in CHECKS.items()})


def settings_of(state: State) -> StudySettings:
    """The settings of a study that exists, as they are now. Its policy is a name."""
    given, aims, chains = state.settings, state.aim.targets, state.chains
    questions: dict[str, list[str]] = {}
    for number, line, *_ in given["questions"]:
        questions.setdefault(chains[number].name, []).append(line)
    warm = {
        chain.name: Counts.from_rows(chain.warm, labels.states(chain), observations=chain.prior, paths=0, last=None)
        for chain in chains
        if chain.prior
    }
    return StudySettings(
        budget=state.budget, target_loss=aims.get("loss"), deadline=state.deadline, delta=state.delta,
        certificate=given["method"], policy=given["policy"]["name"],
        weights={chain.name: chain.weight for chain in chains}, costs={chain.name: chain.cost for chain in chains},
        paths=given["paths"], open_states=[chain.name for chain in chains if chain.is_open], warm_start=warm,
        questions=questions, target_width=aims.get("width"), limit=aims.get("limit"), worst=aims.get("worst"),
    )  # fmt: skip


_DEFAULTS: dict[str, Any] = {
    "delta": 0.05, "certificate": _CERTIFICATES[0], "policy": policies.DEFAULT, "paths": _PATHS[0]
}  # fmt: skip


def _checked_target(value: Any) -> float | dict[str, float] | None:
    meaning = "the loss whose certificate ends the study"
    if isinstance(value, Mapping):
        return {
            name: real_number(one, f"target_loss of chain {name!r}", above=0.0, meaning=meaning)
            for name, one in value.items()
        }
    return None if value is None else real_number(value, "target_loss", above=0.0, meaning=meaning)


def target_text(least: float, most: float | None) -> str:
    """The target losses of a study's chains in words."""
    return f"{least:g}" if most is None or least == most else f"{least:g} to {most:g}"


def _checked_deadline(value: Any) -> float | None:
    """A deadline in seconds since 1970."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise InputError(f"a deadline must have a time zone, and {value.isoformat()} has none")
        return value.timestamp()
    return None if value is None else real_number(value, "deadline", meaning="seconds since 1970")


#: Setting → its check, which returns the normal form. The other settings are checked against the chains.
CHECKS: dict[str, Callable[[Any], Any]] = {
    "delta": failure_probability,
    "certificate": lambda value: one_of(value, "certificate", _CERTIFICATES),
    "policy": policies.for_study,
    "target_loss": _checked_target,
    "target_width": checked_width,
    "limit": checked_limit,
    "worst": checked_worst,
    "deadline": _checked_deadline,
    "paths": lambda value: one_of(value, "paths", _PATHS),
}


def deadline_text(seconds: float) -> str:
    """A deadline as a text that people can read and give again."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):  # beyond the years that have a date
        return f"{seconds:g} seconds since 1970"


def checked_name(value: Any) -> str:
    """A chain's name."""
    if not isinstance(value, str) or not value:
        raise InputError(f"a chain's name must be a string that is not empty, not {shown(value)}")
    return unicode_text(value, "a chain's name")


#: What a loss costs if the states are not declared (benchmarks/bench_stopping.py aims).
UNDECLARED = (
    "it takes up to twice as many observations to certify them, mostly 1.1 to 1.4 times: give states={…} if you know"
    " all states"
)


def open_chains(open_states: Any, chains: Mapping[str, Any]) -> frozenset[str]:
    """The names of the chains whose states are open."""
    if isinstance(open_states, bool) or open_states is None:
        return frozenset(chains) if open_states else frozenset()
    if isinstance(open_states, str) or not hasattr(open_states, "__iter__"):
        raise InputError(f"open_states must be True, False or names of chains, not {shown(open_states)}")
    opened = frozenset(open_states)
    check_known(opened, "open_states", chains)
    return opened


def numbers_by_chain(values: Mapping[str, float] | None, what: str, chains: Mapping[str, Any]) -> dict[str, float]:
    """A number > 0 for some of the chains: weights or costs."""
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise InputError(f"{what} must be a mapping from names of chains to numbers > 0, not {shown(values)}")
    check_known(values, what, chains)
    return {name: real_number(value, f"{what} of chain {name!r}", above=0.0) for name, value in values.items()}


def check_known(names: Any, what: str, chains: Mapping[str, Any]) -> None:
    """Raises ``InputError`` for names of chains that do not exist."""
    unknown = [name for name in names if name not in chains]
    if unknown:
        hint = did_you_mean(unknown[0], chains)
        raise InputError(f"{what} names chains that the study does not have: {shown(unknown)}{hint}")


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
