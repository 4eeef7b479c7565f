"""The first entry of a study: everything that it fixes."""

import json
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from ...certificates.certificate import need_certifiable
from ...counts import Counts
from ...errors import InputError
from ...journal.entry import FORMAT, Draft, Kind, packed
from ...policies import Policy
from ...validation import shown
from .. import budget
from ..labels import Label, closed_states, first_states
from ..questions import check_goals, checked_questions, registered
from ..settings import StudySettings, check_known, checked_name, numbers_by_chain, open_chains, targets

__all__ = ["AIMS", "create"]

#: Setting of a target → kind of aim.
AIMS = {"target_loss": "loss", "target_width": "width", "limit": "limit", "worst": "worst"}


def create(settings: StudySettings, chains: Mapping[str, int | Sequence[Hashable]], mark: str) -> list[Draft]:
    """The first entry of a study. Raises ``InputError`` if the settings, which are ``checked``, do not fit the chains.

    ``mark``: a random text, which no other study has.
    """
    if not isinstance(chains, Mapping):
        raise InputError(f"chains must be a mapping from names to states, not {shown(chains)}")
    if not chains:
        raise InputError("a study needs at least one chain, and none was given")
    policy, delta = settings.policy, settings.delta
    assert isinstance(policy, Policy)
    assert delta is not None
    weights = numbers_by_chain(settings.weights, "weights", chains)
    costs = numbers_by_chain(settings.costs, "costs", chains)
    prices = {*costs.values(), 1.0} if len(costs) < len(chains) else {*costs.values()}
    limit = budget.checked_budget(settings.budget, priced=settings.costs is not None)
    budget.check_affordable(limit, min(prices))
    states = _States(chains, open_chains(settings.open_states, chains))
    warm = _warm_rows(settings.warm_start, states)
    asked = checked_questions(settings.questions, list(chains))
    check_goals(settings, asked)
    known = {name: (states.of(name), name in states.open) for name in asked}
    aims = {kind: value for name, kind in AIMS.items() if (value := getattr(settings, name)) is not None}
    if isinstance(settings.target_loss, Mapping):
        aims["loss"] = targets(settings.target_loss, chains)
    more = {
        "format": FORMAT, "id": mark, "states": states.lists, "chains": states.places, "delta": delta,
        "method": settings.certificate, "paths": settings.paths, "budget": limit, "deadline": settings.deadline,
        "weights": {name: weight for name, weight in weights.items() if weight != 1.0}, "warm": warm,
        "policy": {
            "name": policy.name, "parameters": json.loads(json.dumps(dict(policy.parameters))),
            "version": policy.version,
        },
        "aims": aims,
        "questions": registered(asked, delta, list(chains), known) if asked else [],
    }  # fmt: skip
    if settings.costs is not None:
        more["costs"] = {name: cost for name, cost in costs.items() if cost != 1.0}
    return [Draft(Kind.CREATED, more=packed(**more))]


class _States:
    """The states of all chains, checked. Equal sets of states are written once."""

    def __init__(self, chains: Mapping[str, int | Sequence[Hashable]], opened: frozenset[str]) -> None:
        #: Each set as the entry has it; and name → its place in that list.
        self.lists: list[Any] = []
        self.places: dict[str, int] = {}
        self.open: dict[str, tuple[Label, ...]] = {}
        places: dict[Any, int] = {}
        for name, given in chains.items():
            checked_name(name)
            if name in opened:
                states: Any = first_states(name, given)
                self.open[name] = states
            else:
                states = closed_states(name, given)
            key = name in opened, states
            if key not in places:
                places[key] = len(self.lists)
                listed = "open" if name in opened else "labels"
                self.lists.append(states if isinstance(states, int) else {listed: list(states)})
            self.places[name] = places[key]

    def of(self, name: str) -> Sequence[Hashable]:
        """The states of a chain as ``Counts`` has them."""
        if name in self.open:
            return self.open[name]
        known = self.lists[self.places[name]]
        return range(known) if isinstance(known, int) else tuple(known["labels"])


def _warm_rows(warm_start: Mapping[str, Counts] | None, states: _States) -> dict[str, list[Any]]:
    """Chain → the rows that it begins with: [x, [[y, N[x,y]], …]]."""
    if warm_start is None:
        return {}
    if not isinstance(warm_start, Mapping):
        raise InputError(f"warm_start must be a mapping from names of chains to Counts, not {shown(warm_start)}")
    check_known(warm_start, "warm_start", states.places)
    found: dict[str, list[Any]] = {}
    for name in states.places:
        counts = warm_start.get(name)
        if counts is None:
            continue
        own = states.of(name)
        if not isinstance(counts, Counts) or list(counts.states) != list(own):
            given = shown(counts.states) if isinstance(counts, Counts) else shown(counts)
            raise InputError(f"the chain {name!r} must be warm-started from Counts over {shown(own)}, not {given}")
        need_certifiable({name: counts}, "mixture")
        if counts.open_states and name not in states.open:
            raise InputError(
                f"the chain {name!r} must be warm-started from counts whose states were known beforehand, and these are"
                " only the ones seen: give it open states"
            )
        found[name] = [
            [x, [[int(y), int(n)] for y, n in sorted(row.items())]] for x, row in sorted(counts.rows().items())
        ]
    return found
