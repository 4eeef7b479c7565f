"""A live study: how it begins, is opened again, and goes on after its end."""

import json
import warnings
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Self

from .. import policies
from ..counts import Counts
from ..errors import InputError, RecomputedWarning
from ..policies import Policy
from ..store import StudyRecord, Transaction, Where, find, make
from . import certifying, choice, creation, telling
from .absent import absent, not_built_in
from .leasing import Leasing


class Study(Leasing):
    """One budget, many chains. ``create`` makes a study, ``open`` goes on with one; several workers can share it."""

    # -- beginning and ending

    @classmethod
    def create(
        cls,
        where: Where,
        chains: Mapping[str, int | Sequence[Hashable]],
        budget: float | None = None,
        policy: str | Policy = "scout",
        delta: float = 0.05,
        *,
        target_loss: float | None = None,
        deadline: Any = None,
        weights: Mapping[str, float] | None = None,
        costs: Mapping[str, float] | None = None,
        on_lost_lease: str = "restart",
        open_states: bool | Sequence[str] = False,
        warm_start: Mapping[str, Counts] | None = None,
    ) -> Self:
        """A new study.

        ``where``: a path (SQLite), a postgresql:// address, or None (in memory). ``chains``: name → how many states
        there are, or their labels. ``budget``: observations, or cost units if ``costs`` are given; None for no end.
        ``target_loss``: the study stops when this loss is certified with probability 1 − ``delta``. ``deadline``: a
        datetime, or seconds since 1970. ``weights``: how much a chain's loss counts (1 if not given).
        ``on_lost_lease``: whether a chain whose worker died restarts a segment or continues. ``open_states``: True, or
        the names of the chains whose states are not all known beforehand. ``warm_start``: counts to begin with.
        """
        rule = policies.get(policy)
        content = creation.new_content(
            chains,
            rule,
            budget=budget,
            delta=delta,
            target_loss=target_loss,
            deadline=deadline,
            weights=weights,
            costs=costs,
            on_lost_lease=on_lost_lease,
            open_states=open_states,
            warm_start=warm_start,
        )
        study = cls(make(where, content), rule)
        with study._store.writing() as transaction:
            transaction.happened("created", policy=rule.name)
            if content.study.target_loss is not None:
                for chain in transaction.stale():
                    certifying.refresh(transaction, chain)
        return study

    @classmethod
    def open(cls, where: Where, policy: str | Policy | None = None, *, read_only: bool = False) -> Self:
        """An existing study; ``read_only`` can never harm it.

        A policy that is not built in must be given; one that is given must be the study's. Read-only it may be left
        out: then all can be read that does not need the rule.
        """
        store = find(where, read_only)
        try:
            with store.reading() as transaction:
                stored = transaction.study
            rule, changed = _matching(stored, policy, read_only)
            store.floor = rule.floor is not None
            study = cls(store, rule)
            if changed and not read_only:
                study._recompute(rule)
        except BaseException:
            store.close()
            raise
        return study

    # -- stopping and going on

    def extend(self, *, budget: float | None = None, target_loss: float | None = None, deadline: Any = None) -> None:
        """Goes on with another budget (the whole, not what is added), target or deadline."""
        if budget is None and target_loss is None and deadline is None:
            raise InputError("a study is extended by a budget, a target loss or a deadline, and none was given")
        target, end = creation.target_of(target_loss), creation.deadline_of(deadline)
        with self._lock:
            with self._store.writing() as transaction:
                study = transaction.study
                limit = creation.budget_of(budget, (study.least_cost, study.largest_cost) != (1.0, 1.0))
                creation.check_affordable(limit, study.least_cost)
                if limit is not None:
                    choice.check_lowered(transaction, limit)
                study.stop_reason = None
                if end is not None:
                    study.deadline = end
                if target is not None:
                    study.target_loss = target
                    for chain in transaction.stale():
                        certifying.refresh(transaction, chain)
                if limit is not None:
                    endless, study.budget = study.budget is None, limit
                    self._renew(transaction, always=endless)
                transaction.happened(
                    "extended", budget=study.budget, target_loss=study.target_loss, deadline=study.deadline
                )
                telling.settle(transaction, self._rule(study))
            self._quick = self._make_quick()

    def _renew(self, transaction: Transaction, *, always: bool) -> None:
        """Constants anew, for they may depend on the budget, and indices with them: of all chains, or as needed."""
        rule = self._rule(transaction.study)
        constants = creation.Constants(rule.policy, transaction.study)
        for chain in transaction.every():
            fresh = constants.of(chain)
            if always or fresh != chain.constants:
                chain.constants = fresh
                rows = transaction.rows(chain)
                rule.begin(chain, rows)
                for position, row in rows.items():
                    transaction.save_row(chain, position, row)
                transaction.save(chain)

    def _recompute(self, policy: Policy) -> None:
        with self._store.writing() as transaction:
            study = transaction.study
            old, study.version = study.version, policy.version
            self._renew(transaction, always=True)
            transaction.happened("indices recomputed", policy=policy.name, old=old, new=policy.version)
        warnings.warn(
            f"the rule {policy.name!r} has changed from version {old} to {policy.version} since this study was last "
            "open: its indices were computed anew",
            RecomputedWarning,
            stacklevel=3,
        )


def _matching(stored: StudyRecord, policy: str | Policy | None, read_only: bool) -> tuple[Policy, bool]:
    """The policy that the study was created with, and whether its rule has changed since."""
    parameters = json.loads(stored.parameters)
    if policy is None:
        if stored.policy.partition(":")[0] not in policies.names():  # a user's own may be called anything
            if read_only:
                return absent(stored), False
            raise not_built_in(stored.policy)
        rule = policies.get(stored.policy)
        return rule, rule.version != stored.version
    rule = policies.get(policy)
    given = json.loads(json.dumps(dict(rule.parameters)))
    changed = rule.version != stored.version
    # A name means the built-in rule as it is now; an object means itself.
    if (rule.name, given) != (stored.policy, parameters) or (changed and rule is policy):
        raise InputError(
            f"the study was created with the policy {stored.policy!r}, parameters {parameters}, version "
            f"{stored.version}; the one given is {rule.name!r}, parameters {given}, version {rule.version}"
        )
    return rule, changed
