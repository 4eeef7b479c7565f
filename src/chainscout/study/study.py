"""A live, durable study: one budget, many chains, one worker or many."""

import os
import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from types import TracebackType
from typing import Any, Self, overload

from ..answers import Answer, Question
from ..certificates import Estimate
from ..certificates.open_states import OpenEstimate
from ..counts import MOST_TRANSITIONS, Counts
from ..errors import InputError, RecomputedWarning, UnknownChain
from ..paths import Paths
from ..policies import Policy
from ..store import PATIENCE, ChainRecord, PathRecord, Store, StudyRecord, Transaction, Where, find, make
from ..validation import Duration, did_you_mean, shown, unicode_text, whole_number
from ..validation import seconds as in_seconds
from . import (
    _aim,
    _answers,
    _audit,
    _batch,
    _budget,
    _certificate,
    _diagnosis,
    _lease,
    _paths,
    _plan,
    _questions,
    _repetition,
    _selection,
    _stop,
    _transitions,
    portrait,
)
from ._certificate import StudyCertificate
from ._index import AbsentPolicy, LiveIndex, not_built_in, renew, stored_policy
from ._labels import Labels
from ._lease import Then, Worker
from ._lock import StudyLock
from ._program import running
from ._questions import Answering
from ._transitions import MAIN, Walker
from .settings import StudySettings
from .views import ChainProgress, EventKind, EventLine, LogLine, Progress, QuestionLine, Step, StopReason

__all__ = ["Study"]

#: The largest number of observations that ``ask`` plans at once.
_MOST_PLANNED = 1_000_000
#: The number of log lines that are read at a time.
_PAGE = 1000
#: An unknown name is compared with the names of at most this many chains.
_MOST_COMPARED = 1000


class Study:
    """One budget, many chains. ``create`` makes a study, ``open`` continues one; several workers can share it.

    Every method may be called from any thread. A change is durable before the method returns. A method that raises an
    error has changed nothing, except that expired leases end when somebody asks for a lease.
    """

    # -- beginning, opening, ending

    def __init__(self, store: Store, policy: Policy) -> None:
        """Use ``create`` or ``open``."""
        self._store = store
        self._policy = policy
        self._labels = Labels()
        self._main = Walker(MAIN)
        self._answering = Answering(self._labels)
        self._lock = StudyLock()
        # A rule may need other functions without a budget, and a budget can be added while the study is open.
        self._with_budget, self._without_budget = (LiveIndex(policy.facing(end)) for end in (1, None))

    @classmethod
    def create(
        cls, where: Where, chains: Mapping[str, int | Sequence[Hashable]], budget: float | None = None,
        policy: str | Policy | None = None, delta: float | None = None, *,
        target_loss: float | Mapping[str, float] | None = None,
        deadline: Any = None, certificate: str | None = None, weights: Mapping[str, float] | None = None,
        costs: Mapping[str, float] | None = None, paths: str | None = None,
        open_states: bool | Sequence[str] | None = None, warm_start: Mapping[str, Counts] | None = None,
        questions: Any = None, target_width: float | None = None, limit: float | None = None, worst: str | None = None,
    ) -> Self:  # fmt: skip
        """A new study.

        ``where``: a path (SQLite), a postgresql:// address, or None (in memory).
        ``chains``: name → how many states there are, or their labels.
        The other parameters are the fields of ``StudySettings``, with their defaults.
        """
        settings = StudySettings(
            budget=budget, policy=policy, delta=delta, target_loss=target_loss, deadline=deadline,
            certificate=certificate, weights=weights, costs=costs, paths=paths, open_states=open_states,
            warm_start=warm_start, questions=questions, target_width=target_width, limit=limit, worst=worst,
        )  # fmt: skip
        return cls.from_settings(where, chains, settings)

    @classmethod
    def from_settings(
        cls, where: Where, chains: Mapping[str, int | Sequence[Hashable]], settings: StudySettings
    ) -> Self:
        """A new study with these settings."""
        given = settings.checked()
        rule = given.policy
        assert isinstance(rule, Policy)
        study = cls(make(where, given.content(chains)), rule)
        study._main.is_first = True
        with study._store.writing() as transaction:
            transaction.happened(EventKind.CREATED.value, policy=rule.name)
            live = study._live(transaction.study)
            if transaction.study.warm:
                _stop.look_at_all(transaction, live, study._answering, whole=True)
            if _aim.has_aim(transaction.study):  # it may be reached already, as that of chains of one state
                study._settle(transaction, live)
        return study

    @classmethod
    def open(
        cls,
        where: Where,
        policy: str | Policy | None = None,
        *,
        read_only: bool = False,
        continuing: bool = False,
        patience: Duration = PATIENCE,
    ) -> Self:
        """The existing study at ``where``. Its chains begin new paths at their next tells.

        ``policy``: needed if the study's policy is not built in. It must be the policy that created the study.
        ``read_only``: the study cannot be changed through this object. A policy that is not built in may be left out.
        ``continuing``: the processes stand where the study left them, so plain tells continue the paths of plain tells.
        ``patience``: how long a change waits for other writers before it raises ``Busy`` and changes nothing.
        """
        waits = in_seconds(patience, "patience", meaning="seconds that a change waits for other writers")
        store = find(where, read_only, waits)
        try:
            with store.reading() as transaction:
                stored = transaction.study
            rule, changed = stored_policy(stored, policy, read_only)
            store.floor = rule.floor is not None
            study = cls(store, rule)
            study._main.opened = stored.observations
            study._main.since = stored.observations if continuing else None
            if changed and not read_only:
                study._recompute()
        except BaseException:
            store.close()
            raise
        return study

    def __reduce__(self) -> Any:
        raise InputError("a study cannot be pickled: give the other process its path or address, to open it there")

    # A line, a table, and tables for notebooks; ``study.live()`` shows one that is updated there.
    __repr__, __str__, _repr_html_, live = portrait.line, portrait.text, portrait.html, portrait.live

    def close(self) -> None:
        """Closes the connection to the database. The study can be opened again."""
        with self._lock:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def extend(
        self, *, budget: float | None = None, target_loss: float | Mapping[str, float] | None = None,
        deadline: Any = None, target_width: float | None = None,
    ) -> None:  # fmt: skip
        """Sets another budget (the whole, not the increase), target or deadline. A finished study continues."""
        given = StudySettings(budget=budget, target_loss=target_loss, deadline=deadline, target_width=target_width)
        if not given.given():
            raise InputError("a study is extended by a budget, a target or a deadline, and none was given")
        checked = given.checked()
        target, end = checked.target_loss, checked.deadline
        with self._lock, self._store.writing() as transaction:
            study = transaction.study
            _questions.check_new_aim(study, target, checked.target_width)
            limit = _budget.checked_budget(budget, priced=study.priced)
            _budget.check_affordable(limit, study.least_cost)
            if limit is not None:
                _budget.check_lowered(transaction, limit)
            study.stop_reason = None
            if end is not None:
                study.deadline = end
            if limit is not None:
                endless, study.budget = study.budget is None, limit
                renew(transaction, self._live(study), always=endless)
            _stop.aim_anew(transaction, self._live(study), self._answering, target, checked.target_width)
            transaction.happened(
                EventKind.EXTENDED.value, budget=study.budget, target_loss=study.target_loss, deadline=study.deadline,
                target_width=study.target_width,
            )  # fmt: skip
            self._settle(transaction, self._live(study))

    def _recompute(self) -> None:
        """Computes all indices again, because the built-in rule has changed since the study was last open."""
        policy = self._policy
        with self._store.writing() as transaction:
            study = transaction.study
            old, study.version = study.version, policy.version
            renew(transaction, self._live(study), always=True)
            transaction.happened(EventKind.RECOMPUTED.value, policy=policy.name, old=old, new=policy.version)
        warnings.warn(
            f"the rule {policy.name!r} has changed from version {old} to {policy.version} since this study was last "
            "open: its indices were computed anew",
            RecomputedWarning,
            stacklevel=3,
        )

    def _settle(self, transaction: Transaction, live: LiveIndex, moved: Sequence[ChainRecord] = ()) -> None:
        _stop.settle(transaction, live, self._answering, moved)

    def _live(self, study: StudyRecord) -> LiveIndex:
        return self._without_budget if study.budget is None else self._with_budget

    def _find(self, transaction: Transaction, name: str) -> ChainRecord:
        chain = transaction.chain(name) if isinstance(name, str) else None
        if chain is None:
            few = transaction.study.chains <= _MOST_COMPARED
            known = [known.name for known in transaction.every()] if few else []
            its = f": its chains are {shown(known)}" if few else ""
            raise UnknownChain(f"the study has no chain {shown(name)}{did_you_mean(name, known)}{its}")
        return chain

    # -- asking and telling

    @overload
    def ask(self, *, without: Set[str] = frozenset()) -> str: ...

    @overload
    def ask(self, number: int, *, without: Set[str] = frozenset()) -> list[str]: ...

    def ask(self, number: int | None = None, *, without: Set[str] = frozenset()) -> str | list[str]:
        """The chain to advance next, or the next ``number`` of them. Pure: asking twice gives the same answer.

        ``without``: chains that are excluded.
        """
        if number is not None:
            number = whole_number(number, "number", meaning="how many observations are to be made", most=_MOST_PLANNED)
        if not self.knows_policy:
            raise not_built_in(self._policy.name)
        if number is None:
            with self._lock:
                return self._store.read(self._ask, (None, without))
        with self._lock, self._store.reading() as transaction:
            return self._ask(transaction, number, without)

    def _ask(self, transaction: Transaction, number: int | None, without: Set[str]) -> str | list[str]:
        _stop.check_going(transaction)
        live = self._live(transaction.study)
        excluded = frozenset([self._find(transaction, name).number for name in without] if without else ())
        if number is None:
            chain = _selection.first(transaction, live, excluded)
            if chain is not None and chain.cost <= _budget.remaining(transaction):
                return chain.name
        elif chosen := _selection.batch(transaction, live, number, excluded):
            return [chain.name for chain in chosen]
        raise _stop.nothing_free(transaction)

    def tell(
        self,
        chain: str,
        state: Hashable,
        path: int | None = None,
        step: int | None = None,
        *,
        token: str | None = None,
        begin: bool = False,
    ) -> Step:
        """Adds one observation: the state that ``chain`` is in now. It is durable before this returns.

        Returns the path and the step of the path's next observation.

        It continues the path that this open study walks on the chain, or begins one: the first tell of a chain begins a
        path, unless the study was opened with ``continuing=True``.

        ``path``, ``step``: the path's number, and the observation's number in it, from 1. They make a retry safe: the
        same observation again changes nothing, and another state at a step that was told is an error.
        ``token``: the token of the lease that holds the path.
        ``begin``: the process was started again, and the state begins a new path. The study gives the path its number.
        """
        if begin and (path is not None or step is not None):
            raise InputError("a state that begins a path has neither path nor step: the study gives the path's number")
        if path is not None:
            path = whole_number(path, "path", meaning="the number of a path in its chain", most=MOST_TRANSITIONS)
        if step is not None:
            step = whole_number(step, "step", meaning="the observation's number in its path", most=MOST_TRANSITIONS)
        with self._lock:
            told, own = self._tell(chain, state, path, step, token, begin=begin)
            if token is None and own:
                self._main.remember(chain, told)
            return Step(told.number, told.steps + 1)

    def continue_path(self, chain: str) -> ChainProgress:
        """Declares that the process of this chain stands where plain tells left it. Returns that place."""
        with self._lock, self._store.reading() as transaction:
            record = self._find(transaction, chain)
            path = transaction.open_path(record, MAIN)
            if path is not None and not self._main.walks(record):
                self._main.remember(chain, path)
            return self._progress_of(transaction, record)

    def _tell(
        self, name: str, state: Hashable, number: int | None, step: int | None, token: str | None, *,
        begin: bool = False, observations: int | None = None, then: Then | None = None,
    ) -> tuple[PathRecord, bool]:  # fmt: skip
        """The path, and whether the teller continues it; a retry does not say so. The caller holds the lock."""
        walked = self._main.latest(name) if number is None else number
        given = name, state, number, step, token, begin, observations, then
        return self._store.write(name, walked, self._told, given)

    def _told(
        self, transaction: Transaction, name: str, state: Hashable, number: int | None, step: int | None,
        token: str | None, begin: bool, observations: int | None, then: Then | None,
    ) -> tuple[PathRecord, bool]:  # fmt: skip
        chain = self._find(transaction, name)
        position = self._labels.position(transaction, chain, state)
        live = self._live(transaction.study)
        if begin:
            following = _lease.leave(transaction, live, chain, self._main, token)
            number = None if following is None else following.number
        if token is None:
            _lease.check_plain(transaction, chain)
            if step is not None:
                known = self._main.path(transaction, chain) if number is None else transaction.path(chain, number)
                if known is not None and _transitions.is_repeated(transaction, chain, known, step, position):
                    _transitions.check_retry(transaction, chain, known, step, self._main)
                    return known, False
                if known is None and number is None:
                    _transitions.check_named(chain, self._main)
            _stop.check_not_stopped(transaction)
            _lease.sweep(transaction, live)
            _budget.check_price(transaction, chain.cost, "the observation")
            path, own = _transitions.own_path(transaction, chain, self._main, number)
            if step is not None:  # raises unless it is the next one
                _transitions.is_repeated(transaction, chain, path, step, position)
            path.teller = self._main.teller
        else:
            path, repeated = _lease.path_to_tell(transaction, chain, number, step, position, token)
            if repeated:
                return path, False
            _transitions.check_observations(chain, observations)
            own = True
            _lease.spend(transaction, chain, path)
        if position is None:
            position = self._labels.discover(transaction, chain, state)
        _transitions.observe(transaction, live, chain, path, position)
        if token is not None and path.promised == 0:
            _lease.free(transaction, live, chain, path)
        self._settle(transaction, live, (chain,))
        if then is not None:
            then(transaction, path)
        return path, own

    def tell_many(self, observations: Iterable[tuple[str, Hashable]]) -> None:
        """Adds observations in order, (chain, state) each: all of them, or none."""
        pairs = _batch.pairs(observations)
        moved: dict[int, tuple[ChainRecord, PathRecord]] = {}
        with self._lock:
            with self._store.writing() as transaction:
                live = self._live(transaction.study)
                for chain, path, state, position in _batch.placed(
                    transaction, live, pairs, self._find, self._labels, self._main
                ):
                    if position is None:
                        position = self._labels.position(transaction, chain, state)  # a batch can repeat a new state
                    if position is None:
                        position = self._labels.discover(transaction, chain, state)
                    path.teller = self._main.teller
                    _transitions.observe(transaction, live, chain, path, position)
                    moved[chain.number] = chain, path
                self._settle(transaction, live, [chain for chain, _ in moved.values()])
            for record, path in moved.values():
                self._main.remember(record.name, path)

    def restart(self, chain: str, *, lost: bool = False, token: str | None = None) -> Step:
        """Ends the path: no transition is counted from its last state to the next one told, which begins another path.

        Returns the path and the step of the next observation.
        ``lost``: an observation was lost with the path; the certificate will say so.
        ``token``: of the lease that holds the path. Without a token, the path is the one that this open study walks, or
        else the latest path of plain tells; in a study with shared paths, the chain's only path.
        """
        following = self._restart(chain, token, lost)
        if following is None:
            place = self.chain(chain)
            return Step(place.path, place.step)
        return Step(following.number, following.steps + 1)

    def _restart(self, name: str, token: str | None, lost: bool) -> PathRecord | None:
        """The next path under the lease, or None without a lease."""
        with self._lock, self._store.writing() as transaction:
            chain, live = self._find(transaction, name), self._live(transaction.study)
            following = _lease.leave(transaction, live, chain, self._main, token, lost)
            self._settle(transaction, live)
        return following

    def lose(self, chain: str) -> None:
        """Notes that an observation was made but can never be told. The certificate will say so."""
        with self._lock, self._store.writing() as transaction:
            transaction.happened(EventKind.OBSERVATION_LOST.value, self._find(transaction, chain))
            transaction.study.lost += 1

    def set_aside(self, chain: str, reason: str, *, ended: bool = False, token: str | None = None) -> None:
        """Stops asking for the chain: its source has ended, or does not work. The certificate will say so.

        ``take_up`` takes it up again. ``ended``: the source works and has no more states, as a recording at its end.
        ``token``: of a lease that is given back with it.
        """
        with self._lock, self._store.writing() as transaction:
            record, live = self._find(transaction, chain), self._live(transaction.study)
            if token is None:
                _lease.sweep(transaction, live)
                _lease.check_not_held(transaction, record)
            else:
                _lease.give_back(transaction, live, record, _lease.held_path(transaction, record, token))
            _transitions.set_aside(transaction, record, str(reason), ended=ended)
            self._settle(transaction, live)

    def take_up(self, chain: str) -> None:
        """Takes up a chain that was set aside: it is asked for again, and a study that stopped for it goes on."""
        with self._lock, self._store.writing() as transaction:
            _transitions.take_up(transaction, self._find(transaction, chain))
            study = transaction.study
            if study.stop_reason is not None and StopReason(study.stop_reason).lacks_chains:
                study.stop_reason = None
            self._settle(transaction, self._live(study))

    # -- leases

    def worker(self, name: str, *, renews: bool = True) -> Worker:
        """A worker of this study, which takes leases: ``with study.worker("rig 7") as worker: …``.

        ``renews``: whether it renews its leases by itself, in a thread, while this process lives.
        """
        if not isinstance(name, str) or not name:
            raise InputError(f"a worker's name must be a string that is not empty, not {shown(name)}")
        if "\0" in name:
            raise InputError(f"a worker's name cannot have the character NUL in it, as in {shown(name)}")
        if name == MAIN:
            raise InputError(f"a worker's name cannot be {MAIN!r}, because the paths of plain tells have that name")
        return Worker(self, unicode_text(name, "a worker's name"), renews)

    @contextmanager
    def _program(self, repeating: Set[str]) -> Iterator[str]:
        """The mark of a call of ``learn`` for its workers. First the leases of calls that were killed end."""
        with self._lock, self._store.writing() as transaction:
            live = self._live(transaction.study)
            _lease.give_up_old(transaction, live, repeating)
            self._settle(transaction, live)
        with running() as mark:
            yield mark

    def renew(self, chain: str, token: str, seconds: Duration = 60.0) -> None:
        """Holds a leased chain for ``seconds`` from now on."""
        held = in_seconds(seconds, "seconds", meaning="how long the chain is held")
        with self._lock, self._store.writing() as transaction:
            path = _lease.held_path(transaction, self._find(transaction, chain), token)
            path.expires = transaction.now + held
            transaction.save_path(path)

    def give_back(self, chain: str, token: str, *, lost: bool = False) -> None:
        """Ends a lease. ``lost``: its worker cannot continue; the effect is that of an expired lease."""
        with self._lock, self._store.writing() as transaction:
            record, live = self._find(transaction, chain), self._live(transaction.study)
            path = _lease.held_path(transaction, record, token)
            if lost:
                _lease.lapse(transaction, live, path, EventKind.LEASE_ABANDONED)
            else:
                _lease.give_back(transaction, live, record, path)
            self._settle(transaction, live)

    # -- what is known

    def estimate(self, chain: str) -> Estimate | OpenEstimate:
        """The estimated matrix of a chain, with intervals that hold for all chains at once with probability 1 − δ."""
        with self._lock, self._store.reading() as transaction:
            return _certificate.estimate(transaction, self._find(transaction, chain), self._labels)

    def certificate(self) -> StudyCertificate:
        """The bound on each chain's loss at this moment.

        A chain whose bound has reached its target is not advanced any more. So a study whose bounds have all reached
        their targets is finished, unless it is read only.
        """
        with self._lock:
            with self._store.reading() as transaction:
                found = _diagnosis.noted(transaction, _certificate.certificate(transaction, transaction.every()))
                news = _aim.news(transaction, found.weighted)
            self._look_at(news)
        return replace(found, only_read=bool(news) and self._store.read_only)

    def _look_at(self, chains: Sequence[str]) -> None:
        """Stores the bounds of these chains, which were just computed, and stops the study if they reach its aim."""
        if not chains or self._store.read_only or not self.knows_policy:
            return
        with self._lock, self._store.writing() as transaction:
            live = self._live(transaction.study)
            for name in chains:
                _stop.look(transaction, live, self._answering, self._find(transaction, name))
            self._settle(transaction, live)

    plan = _plan.plan

    def repeated_paths(self, chain: str | None = None) -> tuple[str, ...]:
        """A sentence for each pair of paths that repeat each other, for example because two workers have one seed.

        ``chain``: check this chain only. If there is a sentence, no bound holds.
        """
        with self._lock, self._store.reading() as transaction:
            return _repetition.repeated(transaction, None if chain is None else self._find(transaction, chain))

    def counts(self, chain: str) -> Counts:
        """The transitions of a chain, warm start included."""
        with self._lock, self._store.reading() as transaction:
            return self._labels.counts(transaction, self._find(transaction, chain))

    def paths(self, chain: str) -> Paths:
        """Every draw of a chain in the order of issue, pending and lost ones included; without the warm start."""
        with self._lock, self._store.reading() as transaction:
            return _paths.chain_paths(transaction, self._find(transaction, chain), self._labels)

    diagnose = _diagnosis.diagnose
    checks = _diagnosis.checks

    def answer(self, chain: str, question: Question | str, *, delta: float | None = None, method: str | None = None,
               asked: int | None = None, losses: str = "checked") -> Answer:  # fmt: skip
        """The answer to a question about a chain, from its log. That to a registered question counts for the aim.

        ``question``: a question, or its line. ``delta``: the probability that its bounds fail; None: the study's δ, or
        for a registered question its share of δ. ``method``, ``asked``, ``losses``: see ``chainscout.answer``. The
        counts of a warm start are not read.
        """
        return _answers.answered(self, chain, question, delta, method=method, asked=asked, losses=losses)

    def questions(self) -> list[QuestionLine]:
        """The registered questions with their answers, as stored at the last look at their chains."""
        with self._lock, self._store.reading() as transaction:
            return self._answering.lines(transaction)

    def answers(self, question: Question | str, *, losses: str = "checked") -> dict[str, Answer]:
        """The answers of all K chains to one question, with δ/K each, so that all hold together."""
        return _answers.of_all_chains(self, question, losses)

    def export(self, path: str | os.PathLike[str], *, chain: str | None = None, start: Hashable = None) -> None:
        """Writes the estimates to a file. Its name's ending is the format: docs/studies.md, docs/model-checkers.md.

        ``chain``, ``start``: for the formats of model checkers, which hold one chain: its name, and its initial state
        (None: the states in which its paths began).
        """
        from .export import write

        write(self, path, chain=chain, start=start)

    def chain(self, name: str) -> ChainProgress:
        """Where one chain stands."""
        with self._lock, self._store.reading() as transaction:
            return self._progress_of(transaction, self._find(transaction, name))

    def _progress_of(self, transaction: Transaction, chain: ChainRecord) -> ChainProgress:
        path = _transitions.main_path(transaction, chain, self._main)
        position = None if path is None else path.last
        last = None if position is None else self._labels.label(transaction, chain, position)
        number, step = _transitions.next_place(transaction, chain, self._main)
        return ChainProgress.of(chain, states=chain.size, paths=chain.begun, path=number, step=step, last=last)

    def progress(self) -> Progress:
        """Where the study stands."""
        with self._lock, self._store.reading() as transaction:
            certificate, stopped = _certificate.largest(transaction), _stop.stop_reason(transaction)
            return Progress.of(transaction.study, certificate=certificate, stop_reason=stopped)

    @property
    def stop_reason(self) -> StopReason | None:
        """Why the study stopped; None while it continues."""
        with self._lock, self._store.reading() as transaction:
            return _stop.stop_reason(transaction)

    @property
    def finished(self) -> bool:
        """Whether there is nothing more to ask."""
        return self.stop_reason is not None

    @property
    def names(self) -> list[str]:
        """The chains, by number."""
        with self._lock, self._store.reading() as transaction:
            return [chain.name for chain in transaction.every()]

    def states(self, chain: str) -> list[Hashable]:
        """The chain's states, as far as they are known."""
        with self._lock, self._store.reading() as transaction:
            known = self._labels.all(transaction, self._find(transaction, chain))
            return list(range(known) if isinstance(known, int) else known)

    def state_from_text(self, chain: str, text: str) -> Hashable:
        """The state that a text stands for: a label of the chain, or else a whole number."""
        with self._lock, self._store.reading() as transaction:
            return self._labels.from_text(self._find(transaction, chain), text)

    def indices(self) -> dict[str, float]:
        """Each chain's index, as the policy sees it now."""
        with self._lock, self._store.reading() as transaction:
            return {chain.name: chain.index for chain in transaction.every()}

    def allocation(self) -> dict[str, int]:
        """Each chain's observations so far."""
        with self._lock, self._store.reading() as transaction:
            return {chain.name: chain.observations for chain in transaction.every()}

    @property
    def policy(self) -> Policy:
        """The policy that chooses the chains."""
        return self._policy

    @property
    def knows_policy(self) -> bool:
        """Whether the policy's rule is available. A study that is only read does not need it."""
        return not isinstance(self._policy, AbsentPolicy)

    @property
    def is_shared(self) -> bool:
        """Whether other processes can advance the study at the same time."""
        return self._store.is_shared

    # -- the log and the events

    def log(self, chain: str | None = None, after: int = 0) -> Iterator[LogLine]:
        """All observations in order, or those of one chain.

        ``after``: begins after the observation with this number.
        """
        while True:
            with self._lock, self._store.reading() as transaction:
                record = None if chain is None else self._find(transaction, chain)
                lines = []
                for line in islice(transaction.log(record, after), _PAGE):
                    owner = transaction.numbered(line.chain)
                    state = self._labels.label(transaction, owner, line.state)
                    lines.append(LogLine(line.number, owner.name, line.path, line.step, state, line.time, line.issued))
            yield from lines
            if len(lines) < _PAGE:
                return
            after = lines[-1].number

    def events(self, after: int = 0, limit: int | None = None) -> list[EventLine]:
        """The other events, in order.

        ``after``: begins after the event with this number; a negative number counts from the end.
        ``limit``: the largest number of events.
        """
        with self._lock, self._store.reading() as transaction:
            after = after if after >= 0 else max(0, transaction.study.events + after)
            return [EventLine.stored(transaction, event) for event in islice(transaction.events(after), limit)]

    def audit(self) -> None:
        """Reads the whole log, and raises ``FileError`` if anything that the study stores differs from it."""
        with self._lock, self._store.reading() as transaction:
            _audit.audit(transaction)
