"""The settings of a study: one record, the check of each setting, and the stored records made from them."""

import json
import secrets
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any

from .. import policies
from ..certificates.certificate import need_certifiable
from ..counts import Counts
from ..errors import InputError
from ..policies import Policy
from ..store import ChainRecord, Content, RowRecord, StudyRecord, plug_in_variability
from ..validation import did_you_mean, failure_probability, one_of, real_number, shown, unicode_text
from ._aim import begin, targets
from ._budget import check_affordable, checked_budget, horizon
from ._evidence import first_look
from ._index import LiveIndex
from ._labels import Label, closed_states, first_states
from ._questions import (
    check_goals,
    checked_limit,
    checked_questions,
    checked_width,
    checked_worst,
    question_records,
)

__all__ = [
    "CHECKS",
    "UNDECLARED",
    "StudySettings",
    "check_affordable",
    "check_known",
    "checked_budget",
    "checked_name",
    "checked_questions",
    "closed_states",
    "deadline_text",
    "first_states",
    "numbers_by_chain",
    "open_chains",
    "target_text",
    "targets",
]

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

        Raises ``InputError`` for the first bad one. ``content`` checks the settings that depend on the chains.
        """
        values = _DEFAULTS | self.given()
        if self.policy is None and self.has_target:
            values["policy"] = policies.WITH_TARGET
        return replace(self, **{name: check(values.get(name)) for name, check in CHECKS.items()})

    def content(self, chains: Mapping[str, int | Sequence[Hashable]]) -> Content:
        """The records of a new study with these chains; the settings must be ``checked``."""
        if not isinstance(chains, Mapping):
            raise InputError(f"chains must be a mapping from names to states, not {shown(chains)}")
        if not chains:
            raise InputError("a study needs at least one chain, and none was given")
        policy, delta, method = self.policy, self.delta, self.certificate
        assert isinstance(policy, Policy)
        assert delta is not None
        assert method is not None
        weights = numbers_by_chain(self.weights, "weights", chains)
        costs = numbers_by_chain(self.costs, "costs", chains)
        losses = {} if self.target_loss is None else targets(self.target_loss, chains)
        prices = {*costs.values(), 1.0} if len(costs) < len(chains) else {*costs.values()}
        budget = checked_budget(self.budget, priced=self.costs is not None)
        check_affordable(budget, min(prices))
        states = _States(chains, open_chains(self.open_states, chains))
        closed = [size * size for number, size in enumerate(states.sizes) if number not in states.open]
        study = StudyRecord(
            chains=len(chains),
            pairs=sum(size * size for size in states.sizes),
            closed=len(closed),
            closed_pairs=sum(closed),
            delta=delta,
            method=method,
            policy=policy.name,
            parameters=json.dumps(dict(policy.parameters), sort_keys=True),
            judge_at=first_look(len(chains)),
            version=policy.version,
            key=secrets.randbits(62),
            shared=self.paths == "shared",
            budget=budget,
            target_loss=min(losses.values(), default=None),
            target_most=max(losses.values(), default=None),
            target_width=self.target_width,
            limit=self.limit,
            worst=self.worst,
            deadline=self.deadline,
            least_cost=min(prices),
            largest_cost=max(prices),
            priced=self.costs is not None,
            weighted=any(weight != 1 for weight in weights.values()),
        )
        rows = _warm_rows(self.warm_start, states)
        study.warm = len(rows)
        asked = checked_questions(self.questions, list(chains))
        check_goals(self, asked)
        known = {name: (states.of(number), number in states.open) for number, name in enumerate(chains)}
        questions = question_records(asked, delta, list(chains), known) if asked else []
        study.questions = study.unmet = len(questions)
        if self.worst is not None:
            study.unmet -= 1
        live = LiveIndex(policy.facing(horizon(study)))

        def records() -> Iterator[ChainRecord]:
            for number, name in enumerate(states.names):
                place = states.places[number]
                chain = ChainRecord(number, name, states.sizes[number], place, open=number in states.open)
                chain.labels = None if place is None else states.lists[place]
                chain.weight, chain.cost = weights.get(name, 1.0), costs.get(name, 1.0)
                chain.constants = live.constants(study, chain)
                chain.target = losses.get(name, 0.0)
                _begin_warm(chain, rows.get(number, {}))
                live.begin(chain, rows.get(number, {}))
                begin(study, live, chain, asked=name in asked)
                chain.variability = chain.weight * plug_in_variability(chain.size, rows.get(number, {}))
                study.variability += chain.variability
                yield chain

        floor = policy.floor is not None
        return Content(study, records(), states.lists, states.open, rows, floor, questions)


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


# -- the records of a new study


class _States:
    """The states of all chains, checked. Equal lists of labels are stored once."""

    def __init__(self, chains: Mapping[str, int | Sequence[Hashable]], opened: frozenset[str]) -> None:
        self.names = [checked_name(name) for name in chains]
        self.sizes: list[int] = []
        #: Place → a list of labels; and each chain's place, None for numbered or open states.
        self.lists: dict[int, tuple[Label, ...]] = {}
        self.places: list[int | None] = []
        #: Chain → the states of an open chain that are known beforehand.
        self.open: dict[int, tuple[Hashable, ...]] = {}
        known: dict[tuple[Label, ...], int] = {}
        for number, (name, given) in enumerate(chains.items()):
            place = None
            if name in opened:
                self.open[number] = first_states(name, given)
                size = len(self.open[number])
            elif isinstance(states := closed_states(name, given), int):
                size = states
            else:
                place = known.setdefault(states, len(known))
                self.lists[place] = states
                size = len(states)
            self.sizes.append(size)
            self.places.append(place)

    def of(self, number: int) -> Sequence[Hashable]:
        """The states of a chain as ``Counts`` has them."""
        if number in self.open:
            return self.open[number]
        place = self.places[number]
        return range(self.sizes[number]) if place is None else self.lists[place]


def _warm_rows(warm_start: Mapping[str, Counts] | None, states: _States) -> dict[int, dict[int, RowRecord]]:
    """Chain → the rows that it begins with."""
    if warm_start is None:
        return {}
    if not isinstance(warm_start, Mapping):
        raise InputError(f"warm_start must be a mapping from names of chains to Counts, not {shown(warm_start)}")
    check_known(warm_start, "warm_start", dict.fromkeys(states.names))
    found: dict[int, dict[int, RowRecord]] = {}
    for number, name in enumerate(states.names):
        counts = warm_start.get(name)
        if counts is None:
            continue
        own = states.of(number)
        if not isinstance(counts, Counts) or list(counts.states) != list(own):
            given = shown(counts.states) if isinstance(counts, Counts) else shown(counts)
            raise InputError(f"the chain {name!r} must be warm-started from Counts over {shown(own)}, not {given}")
        need_certifiable({name: counts}, "mixture")
        if counts.open_states and number not in states.open:
            raise InputError(
                f"the chain {name!r} must be warm-started from counts whose states were known beforehand, and these are"
                " only the ones seen: give it open states"
            )
        found[number] = {
            x: RowRecord(sum(row.values()), sum(n * n for n in row.values()), dict(sorted(row.items())))
            for x, row in sorted(counts.rows().items())
        }
    return found


def _begin_warm(chain: ChainRecord, rows: dict[int, RowRecord]) -> None:
    """Adds the counts of a warm start, as if they had been observed before the study."""
    for row in rows.values():
        chain.transitions += row.exits
        chain.prior += row.exits
        if chain.open:
            for y in row.counts:
                chain.discovered += 1
                row.discoveries[y] = chain.discovered, row.exits, row.counts[y]
