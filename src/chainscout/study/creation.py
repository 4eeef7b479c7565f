"""A new study: everything it is given is checked before anything is made."""

import json
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from numbers import Integral, Real
from typing import Any

from ..certificates.certificate import need_certifiable
from ..counts import MOST_STATES, MOST_TRANSITIONS, Counts
from ..errors import InputError
from ..policies import Policy, Setting
from ..store import ChainRecord, Content, RowRecord, StudyRecord
from ..validation import did_you_mean, failure_probability, one_of, real_number, shown, unicode_text, whole_number
from .rule import Rule

Label = str | int

ON_LOST_LEASE = ("restart", "continue")


def budget_of(value: Any, costs: bool) -> float | None:
    """A budget: whole observations, or cost units where observations have costs; None for no end."""
    if value is None:
        return None
    if costs:
        return real_number(value, "budget", above=0.0, meaning="in cost units")
    return whole_number(value, "budget", meaning="observations", most=MOST_TRANSITIONS)


def check_affordable(budget: float | None, least: float) -> None:
    """Refuses a budget that does not pay for one observation, at ``least``, or for more than can be counted."""
    if budget is None:
        return
    if budget < least:
        raise InputError(f"the budget {budget:g} does not pay for one observation, which costs {least:g}")
    if budget / least > MOST_TRANSITIONS:
        raise InputError(
            f"the budget {budget:g} pays for {budget / least:g} observations at {least:g} each, and at most"
            f" {MOST_TRANSITIONS} can be counted"
        )


def target_of(value: Any) -> float | None:
    """A target loss, or None."""
    meaning = "the loss whose certificate ends the study"
    return None if value is None else real_number(value, "target_loss", above=0.0, meaning=meaning)


def deadline_of(value: Any) -> float | None:
    """A deadline in seconds since 1970, from a number or a datetime with a time zone."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise InputError(f"a deadline must have a time zone, and {value.isoformat()} has none")
        return value.timestamp()
    return None if value is None else real_number(value, "deadline", meaning="seconds since 1970")


def deadline_text(seconds: float) -> str:
    """A deadline as it can be read, and given again."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):  # beyond the years that have a date
        return f"{seconds:g} seconds since 1970"


def label_of(value: Any) -> Label:
    """A label that can be stored: a string or a whole number."""
    if isinstance(value, str):
        return unicode_text(value, "a state's label")
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    raise InputError(f"a state's label must be a string or a whole number, not {shown(value)}")


def new_content(
    chains: Mapping[str, int | Sequence[Hashable]],
    policy: Policy,
    *,
    budget: float | None,
    delta: float,
    target_loss: float | None,
    deadline: Any,
    weights: Mapping[str, float] | None,
    costs: Mapping[str, float] | None,
    on_lost_lease: str,
    open_states: bool | Sequence[str],
    warm_start: Mapping[str, Counts] | None,
) -> Content:
    """The records of a new study."""
    if not isinstance(chains, Mapping):
        raise InputError(f"chains must be a mapping from names to states, not {shown(chains)}")
    if not chains:
        raise InputError("a study needs at least one chain, and none was given")
    failure_probability(delta)
    one_of(on_lost_lease, "on_lost_lease", ON_LOST_LEASE)
    opened = opened_of(open_states, chains)
    omega = each_of(weights, "weights", chains)
    price = each_of(costs, "costs", chains)
    least, largest = min(price.values(), default=1.0), max(price.values(), default=1.0)
    if len(price) < len(chains):
        least, largest = min(least, 1.0), max(largest, 1.0)
    limit = budget_of(budget, costs is not None)
    check_affordable(limit, least)
    prepared = _Chains(chains, opened)
    closed = [size * size for number, size in enumerate(prepared.sizes) if number not in prepared.open_labels]
    study = StudyRecord(
        chains=len(chains),
        pairs=sum(size * size for size in prepared.sizes),
        closed=len(closed),
        closed_pairs=sum(closed),
        delta=delta,
        policy=policy.name,
        parameters=json.dumps(dict(policy.parameters), sort_keys=True),
        version=policy.version,
        on_lost_lease=on_lost_lease,
        budget=limit,
        target_loss=target_of(target_loss),
        deadline=deadline_of(deadline),
        least_cost=least,
        largest_cost=largest,
    )
    rows = _warm(warm_start, prepared)
    rule = Rule(policy.facing(horizon(study)))
    constants = Constants(rule.policy, study)

    def records() -> Iterator[ChainRecord]:
        for number, name in enumerate(prepared.names):
            chain = ChainRecord(number, name, prepared.sizes[number], open=name in opened)
            chain.labels, chain.label_list = prepared.labels_of(number)
            chain.weight, chain.cost = omega.get(name, 1.0), price.get(name, 1.0)
            chain.constants = constants.of(chain)
            if number in rows:
                _warm_chain(chain, rows[number])
            rule.begin(chain, rows.get(number, {}))
            yield chain

    return Content(study, records(), prepared.label_lists, prepared.open_labels, rows, policy.floor is not None)


def horizon(study: StudyRecord) -> int | None:
    """The most observations that the budget allows; None if it has no end."""
    return None if study.budget is None else max(1, math.floor(study.budget / study.least_cost))


class Constants:
    """A policy's constants for each chain of a study."""

    def __init__(self, policy: Policy, study: StudyRecord) -> None:
        self._policy = policy
        self._study = study

    def of(self, chain: ChainRecord) -> tuple[float, ...]:
        """The constants of one chain."""
        study = self._study
        return self._policy.prepare(
            Setting(chain.number, chain.size, study.chains, study.pairs, horizon(study), open=chain.open)
        )


class _Chains:
    """The chains as they were given, checked; equal lists of labels are kept once."""

    def __init__(self, chains: Mapping[str, int | Sequence[Hashable]], opened: frozenset[str]) -> None:
        self.names: list[str] = []
        self.label_lists: dict[int, tuple[Label, ...]] = {}
        self.open_labels: dict[int, tuple[Hashable, ...]] = {}
        self._lists: list[int | None] = []
        known: dict[tuple[Label, ...], int] = {}
        sizes: list[int] = []
        for number, (name, states) in enumerate(chains.items()):
            self.names.append(name_of(name))
            if name in opened:
                labels = labels_beforehand(name, states)
                self.open_labels[number] = labels
                sizes.append(len(labels))
                self._lists.append(None)
                continue
            fixed = fixed_states(name, states)
            if isinstance(fixed, int):
                sizes.append(fixed)
                self._lists.append(None)
            else:
                place = known.setdefault(fixed, len(known))
                self.label_lists[place] = fixed
                self._lists.append(place)
                sizes.append(len(fixed))
        self.sizes = tuple(sizes)

    def labels_of(self, number: int) -> tuple[tuple[Hashable, ...] | None, int | None]:
        """The labels of a chain and the number of their list."""
        place = self._lists[number]
        return (None, None) if place is None else (self.label_lists[place], place)

    def states_of(self, number: int) -> Sequence[Hashable]:
        """The states of a chain as ``Counts`` has them."""
        place = self._lists[number]
        if number in self.open_labels:
            return self.open_labels[number]
        return range(self.sizes[number]) if place is None else self.label_lists[place]


def name_of(value: Any) -> str:
    """A chain's name."""
    if not isinstance(value, str) or not value:
        raise InputError(f"a chain's name must be a string that is not empty, not {shown(value)}")
    return unicode_text(value, "a chain's name")


def fixed_states(name: str, states: Any) -> int | tuple[Label, ...]:
    """The states of a chain that are known beforehand: how many there are, or their labels."""
    if _is_number(states):
        return _number_of_states(name, states, least=1)
    labels = _labels(name, states)
    if not labels:
        raise InputError(f"the chain {name!r} needs at least one state, unless its states are to be discovered")
    return labels


def labels_beforehand(name: str, states: Any) -> tuple[Label, ...]:
    """The states of a chain with open states that are known beforehand; there may be none."""
    return _labels(name, range(_number_of_states(name, states, least=0)) if _is_number(states) else states)


def _is_number(states: Any) -> bool:
    return isinstance(states, Real) and not isinstance(states, bool)


def _number_of_states(name: str, states: Any, least: int) -> int:
    what = f"the states of chain {name!r}"
    return whole_number(states, what, least, meaning="how many there are", most=MOST_STATES)


def _labels(name: str, states: Any) -> tuple[Label, ...]:
    if isinstance(states, (str, bytes)) or not hasattr(states, "__iter__"):
        raise InputError(f"the states of chain {name!r} must be a number or a list of labels, not {shown(states)}")
    labels = tuple(label_of(label) for label in states)
    if len(set(labels)) != len(labels):
        raise InputError(f"the states of chain {name!r} must be unique, and are {shown(labels)}")
    return labels


def opened_of(open_states: Any, chains: Mapping[str, Any]) -> frozenset[str]:
    """The names of the chains whose states are open."""
    if isinstance(open_states, bool):
        return frozenset(chains) if open_states else frozenset()
    if isinstance(open_states, str) or not hasattr(open_states, "__iter__"):
        raise InputError(f"open_states must be True, False or names of chains, not {shown(open_states)}")
    opened = frozenset(open_states)
    check_known(opened, "open_states", chains)
    return opened


def each_of(values: Mapping[str, float] | None, what: str, chains: Mapping[str, Any]) -> dict[str, float]:
    """A number > 0 for some of the chains: weights or costs."""
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise InputError(f"{what} must be a mapping from names of chains to numbers > 0, not {shown(values)}")
    check_known(values, what, chains)
    return {name: real_number(value, f"{what} of chain {name!r}", above=0.0) for name, value in values.items()}


def check_known(names: Any, what: str, chains: Mapping[str, Any]) -> None:
    """Refuses names of chains that there are not."""
    unknown = [name for name in names if name not in chains]
    if unknown:
        hint = did_you_mean(unknown[0], chains)
        raise InputError(f"{what} names chains that the study does not have: {shown(unknown)}{hint}")


def _warm(warm_start: Mapping[str, Counts] | None, chains: _Chains) -> dict[int, dict[int, RowRecord]]:
    if warm_start is None:
        return {}
    if not isinstance(warm_start, Mapping):
        raise InputError(f"warm_start must be a mapping from names of chains to Counts, not {shown(warm_start)}")
    check_known(warm_start, "warm_start", dict.fromkeys(chains.names))
    found: dict[int, dict[int, RowRecord]] = {}
    for number, name in enumerate(chains.names):
        counts = warm_start.get(name)
        if counts is None:
            continue
        states = chains.states_of(number)
        if not isinstance(counts, Counts) or list(counts.states) != list(states):
            given = shown(counts.states) if isinstance(counts, Counts) else shown(counts)
            raise InputError(f"the chain {name!r} must be warm-started from Counts over {shown(states)}, not {given}")
        need_certifiable({name: counts}, "mixture")
        if counts.open_states and number not in chains.open_labels:
            raise InputError(
                f"the chain {name!r} must be warm-started from counts whose states were known beforehand, and these are"
                " only the ones seen: give it open states"
            )
        found[number] = {
            x: RowRecord(sum(row.values()), sum(n * n for n in row.values()), dict(sorted(row.items())))
            for x, row in sorted(counts.rows().items())
        }
    return found


def _warm_chain(chain: ChainRecord, rows: dict[int, RowRecord]) -> None:
    """The chain as if its counts had been observed in segments before the study."""
    for row in rows.values():
        chain.transitions += row.exits
        if chain.open:
            for y in row.counts:
                chain.discovered += 1
                row.discoveries[y] = chain.discovered, row.exits, row.counts[y]
