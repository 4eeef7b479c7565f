"""A live study: ask which chain to advance, tell what was observed, stop, crash and go on."""

import json
import secrets
import time
import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Self, overload

from .. import policies
from ..checks import real_number, shown, whole_number
from ..counts import Counts
from ..errors import ConnectionLost, InputError, NothingFree, RecomputedWarning, StudyFinished
from ..policies import Policy
from ..store import ChainRecord, StudyRecord, Transaction, Where, find, make
from . import certifying, choice, creation, telling
from .absent import absent, not_built_in
from .lease import PATIENCE, Lease
from .reading import Reading

#: Seconds between two looks for a free chain, at first and at most.
POLL = (0.005, 0.25)


class Study(Reading):
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
    def open(cls, where: Where, policy: Policy | None = None, *, read_only: bool = False) -> Self:
        """An existing study; ``read_only`` can never harm it.

        A policy that is not built in must be given. Read-only it may be left out: then all can be read that does not
        need the rule.
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

    # -- asking and telling

    @overload
    def ask(self) -> str: ...

    @overload
    def ask(self, number: int) -> list[str]: ...

    def ask(self, number: int | None = None) -> str | list[str]:
        """The chain to advance next, or the next ``number``. Pure: asking twice gives the same answer."""
        if self._quick is not None and number is None:
            name = self._quick.ask()
            if name is not None:
                return name
        if not self.knows_policy:
            raise not_built_in(self._policy.name)
        with self._lock, self._store.reading() as transaction:
            telling.check_going(transaction)
            if number is None:
                chain = choice.first(transaction, self._rule(transaction.study))
                if chain is None or chain.cost > choice.remaining(transaction):
                    raise _nothing_free(transaction)
                return chain.name
            count = whole_number(number, "number", meaning="how many observations are to be made")
            chosen = choice.batch(transaction, self._rule(transaction.study), count)
            if not chosen:
                raise _nothing_free(transaction)
            return [chain.name for chain in chosen]

    def tell(self, chain: str, state: Hashable, step: int | None = None, *, token: str | None = None) -> None:
        """One observation: the state that ``chain`` is in now. Durable before it returns.

        ``step``: the observation's number in its chain, from 1; the same again is a no-op, another state an error.
        ``token``: of the lease under which the chain is held.
        """
        if self._quick is not None and step is None and token is None and self._quick.tell(chain, state):
            return
        with self._lock, self._store.writing() as transaction:
            moved = self._tell(transaction, chain, state, step, token)
            if moved is not None:
                telling.settle(transaction, self._rule(transaction.study), (moved,))

    def tell_many(self, observations: Iterable[tuple[str, Hashable]]) -> None:
        """Observations in order, (chain, state) each; all are stored at once, or none."""
        pairs = list(observations)
        with self._lock, self._store.writing() as transaction:
            study = transaction.study
            if not self._store.rolls_back:
                self._check_many(transaction, pairs)
            moved: dict[int, ChainRecord] = {}
            for chain, state in pairs:
                record = self._tell(transaction, chain, state, None, None)
                assert record is not None
                moved[record.number] = record
            _check_spent(study, study.used)
            telling.settle(transaction, self._rule(study), moved.values())

    def _tell(
        self, transaction: Transaction, name: str, state: Hashable, step: int | None, token: str | None
    ) -> ChainRecord | None:
        """The chain, if this was news."""
        chain = self._find(transaction, name)
        position = self._states.position(transaction, chain, state)
        if step is not None:
            step = whole_number(step, "step", meaning="the observation's number in its chain")
            if telling.is_repeated(transaction, chain, step, position):
                return None
        if token is None and transaction.study.stop_reason is not None:
            raise StudyFinished(transaction.study.stop_reason)
        telling.check_holder(transaction, chain, token)
        if position is None:
            position = self._states.discover(transaction, chain, state)
        telling.observe(transaction, self._rule(transaction.study), chain, position, token)
        return chain

    def _check_many(self, transaction: Transaction, pairs: list[tuple[str, Hashable]]) -> None:
        """Refuses a bad batch before the first of it is told: in memory there is nothing to roll back to."""
        study = transaction.study
        if study.stop_reason is not None:
            raise StudyFinished(study.stop_reason)
        price = 0.0
        for name, state in pairs:
            chain = self._find(transaction, name)
            self._states.position(transaction, chain, state)
            telling.check_holder(transaction, chain, None)
            price += chain.cost
        _check_spent(study, study.used + price)

    def restart(self, chain: str, *, lost: bool = False, token: str | None = None) -> None:
        """Begins a new segment: no transition is counted from the last state of the chain to the next one told.

        ``lost``: an observation was lost with the old segment; the certificate will say so.
        """
        with self._lock, self._store.writing() as transaction:
            record = self._find(transaction, chain)
            telling.check_holder(transaction, record, token)
            transaction.happened("restarted", record, lost=bool(lost))
            transaction.study.lost += bool(lost)
            telling.restart(transaction, record)
            telling.settle(transaction, self._rule(transaction.study))

    def set_aside(self, chain: str, reason: str, *, token: str | None = None) -> None:
        """Asks for the chain no more: its source has ended, or does not work. The certificate will say so."""
        with self._lock, self._store.writing() as transaction:
            record = self._find(transaction, chain)
            telling.check_holder(transaction, record, token)
            telling.set_aside(transaction, record, str(reason))
            telling.settle(transaction, self._rule(transaction.study))

    # -- leases

    def lease(self, worker: str, seconds: float = 60.0, *, steps: int = 1, wait: float | None = None) -> Lease:
        """The best chain that nobody holds, for ``steps`` observations within ``seconds``.

        ``wait``: how long to wait for a chain to become free; None: until there is one or the study is finished.
        """
        if not isinstance(worker, str) or not worker:
            raise InputError(f"a worker's name must be a string that is not empty, not {shown(worker)}")
        real_number(seconds, "seconds", above=0.0, meaning="how long the chain is held")
        steps = whole_number(steps, "steps", meaning="how many observations the lease is for")
        end = None if wait is None else time.monotonic() + real_number(wait, "wait", least=0.0, meaning="seconds")
        patience = time.monotonic() + PATIENCE
        pause = POLL[0]
        while True:
            try:
                return self._lease(worker, seconds, steps)
            except ConnectionLost:  # if a lease was granted and not heard of, it runs out by itself
                if time.monotonic() > patience:
                    raise
            except NothingFree:
                if end is not None and time.monotonic() + pause > end:
                    raise
                time.sleep(pause)
                pause = min(2 * pause, POLL[1])

    def _lease(self, worker: str, seconds: float, steps: int) -> Lease:
        refusal: Exception | None = None
        lease: Lease | None = None
        with self._lock, self._store.writing() as transaction:
            # Ended leases are swept and stops recorded even if there is nothing to give.
            telling.sweep(transaction)
            telling.settle(transaction, self._rule(transaction.study))
            try:
                telling.check_going(transaction)
                chain = choice.first(transaction, self._rule(transaction.study))
                affordable = 0 if chain is None else int(min(steps, choice.remaining(transaction) / chain.cost))
                if chain is None or affordable < 1:
                    raise _nothing_free(transaction)
            except (StudyFinished, NothingFree) as error:
                refusal = error
            else:
                token = secrets.token_hex(16)
                telling.grant(transaction, chain, worker, token, seconds, affordable)
                step, fresh = chain.observations + 1, chain.last is None
                lease = Lease(self, chain.name, token, step, affordable, fresh)
        if lease is None:
            assert refusal is not None
            raise refusal
        return lease

    def renew(self, chain: str, token: str, seconds: float = 60.0) -> None:
        """Holds a leased chain for ``seconds`` from now on."""
        real_number(seconds, "seconds", above=0.0, meaning="how long the chain is held")
        with self._lock, self._store.writing() as transaction:
            record = self._find(transaction, chain)
            telling.check_holder(transaction, record, token)
            record.expires = transaction.now + seconds
            transaction.save(record)

    def give_back(self, chain: str, token: str, *, lost: bool = False) -> None:
        """Ends a lease. ``lost``: its worker cannot go on, and what the study says of lost leases happens."""
        with self._lock, self._store.writing() as transaction:
            record = self._find(transaction, chain)
            telling.check_holder(transaction, record, token)
            if lost:
                telling.lapse(transaction, record, "lease abandoned")
            else:
                telling.free(transaction, record)
            telling.settle(transaction, self._rule(transaction.study))

    # -- stopping and going on

    def extend(self, *, budget: float | None = None, target_loss: float | None = None, deadline: Any = None) -> None:
        """Goes on with another budget (the whole, not what is added), target or deadline."""
        if budget is None and target_loss is None and deadline is None:
            raise InputError("a study is extended by a budget, a target_loss or a deadline, and none was given")
        with self._lock, self._store.writing() as transaction:
            study = transaction.study
            endless = study.budget is None
            if budget is not None:
                limit = creation.budget_of(budget, (study.least_cost, study.largest_cost) != (1.0, 1.0))
                assert limit is not None
                if limit < study.used:
                    raise InputError(f"{study.used:g} of the budget are used: it cannot become {limit:g}")
                study.budget = limit
            if target_loss is not None:
                study.target_loss = creation.target_of(target_loss)
                for chain in transaction.stale():
                    certifying.refresh(transaction, chain)
            if deadline is not None:
                study.deadline = creation.deadline_of(deadline)
            study.stop_reason = None
            if budget is not None:
                self._renew(transaction, always=endless)
                self._quick = self._make_quick()
            transaction.happened(
                "extended", budget=study.budget, target_loss=study.target_loss, deadline=study.deadline
            )
            telling.settle(transaction, self._rule(transaction.study))

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


def _matching(stored: StudyRecord, policy: Policy | None, read_only: bool) -> tuple[Policy, bool]:
    """The policy that the study was created with, and whether its rule has changed since."""
    parameters = json.loads(stored.parameters)
    if policy is None:
        if stored.policy.partition(":")[0] not in policies.names():  # a user's own may be called anything
            if read_only:
                return absent(stored), False
            raise not_built_in(stored.policy)
        rule = policies.get(stored.policy)
        return rule, rule.version != stored.version
    given = json.loads(json.dumps(dict(policy.parameters)))
    if (policy.name, given, policy.version) != (stored.policy, parameters, stored.version):
        raise InputError(
            f"the study was created with the policy {stored.policy!r}, parameters {parameters}, version "
            f"{stored.version}; the one given is {policy.name!r}, parameters {given}, version {policy.version}"
        )
    return policy, False


def _check_spent(study: StudyRecord, used: float) -> None:
    """Refuses a batch that would spend more than there is."""
    if study.budget is not None and used > study.budget * (1 + choice.SLACK):
        over = used - study.budget
        raise InputError(f"the batch costs {over:g} more than is left of the budget: nothing was changed")


def _nothing_free(transaction: Transaction) -> Exception:
    study = transaction.study
    if study.leases == 0 and study.aside < study.chains:
        return StudyFinished("budget")
    return NothingFree(f"nothing is free: {study.leases} chains are held by workers, and {study.aside} are set aside")
