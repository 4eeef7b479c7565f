"""A live, durable study: one budget, many chains, one worker or many."""

import math
import os
import secrets
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, overload

from ..answers import Answer, Question
from ..certificates import Estimate
from ..certificates.open_states import OpenEstimate
from ..chains import MarkovChain
from ..counts import MOST_TRANSITIONS, Counts
from ..diagnostics import Diagnosis, diagnose
from ..errors import ChainscoutError, InputError, NothingFree, RecomputedWarning
from ..journal import backup, opening
from ..journal.entry import START, Kind, sealed, unpacked
from ..journal.journal import PATIENCE, Journal
from ..journal.opening import Where
from ..paths import Paths
from ..policies import Policy
from ..validation import Duration, shown, unicode_text, whole_number
from ..validation import seconds as in_seconds
from . import commands, labels, portrait, rule, stop
from .aim import MOST_CHECKED
from .bounds import Due, Found, costs_of_holes, counts_of, due
from .bounds import found as computed
from .certificate import StudyCertificate, certificate_of, estimate_of, repeated_paths
from .checks import judged_paths
from .keeper import Keeper, Result, no_garbage
from .look import Look, Shares, look_at, progress_of
from .planning import plan
from .process import is_gone, running
from .replays import answered
from .settings import StudySettings, settings_of
from .state import MAIN, State
from .views import ChainProgress, EventLine, LogLine, Progress, QuestionLine, Restarted, Step, StopReason
from .walker import Walker
from .walks import walked_paths
from .worker import Worker, ending, is_learners

__all__ = ["Study"]

#: The largest number of observations that ``ask`` plans at once.
_MOST_PLANNED = 1_000_000


class Study:
    """One budget, many chains. ``create`` makes a study, ``open`` continues one; several workers can share it.

    Every method may be called from any thread. A change is durable before the method returns, and a method that raises
    an error has changed nothing. Each thread and each asyncio task that tells without a lease walks paths of its own.
    """

    def __init__(self, keeper: Keeper, *, continuing: bool = False, is_first: bool = False) -> None:
        """Use ``create`` or ``open``.

        ``keeper``: has its journal and its state. ``continuing``: as in ``open``. ``is_first``: whether it is new.
        """
        self._keeper = keeper
        self._is_first = is_first
        self._opened = keeper.state().head.number
        self._closed = False
        #: The entries of its walkers with their chains, and thread or asyncio task → its walker.
        self._sessions: dict[int, set[int]] = {}
        self._shares = Shares(keeper.policy)
        self._walkers: weakref.WeakKeyDictionary[Any, Walker] = weakref.WeakKeyDictionary()
        #: The walker of whoever tells first. Only this one can stand where the study was left.
        self._first: Walker | None = self._new_walker(continuing=continuing)
        if continuing and not keeper.journal.read_only:
            self._first.number = keeper.do(commands.go_on, self._first)
            chains = keeper.state().chains
            self._first.stands = {chain.number: chain.newest[MAIN] for chain in chains if MAIN in chain.newest}

    @classmethod
    def create(
        cls, where: Where, chains: Mapping[str, int | Sequence[Hashable]], budget: float | None = None,
        policy: str | Policy | None = None, delta: float | None = None, *,
        target_loss: float | Mapping[str, float] | None = None, deadline: Any = None, certificate: str | None = None,
        weights: Mapping[str, float] | None = None, costs: Mapping[str, float] | None = None, paths: str | None = None,
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
        checked = settings.checked()
        assert isinstance(checked.policy, Policy)
        drafts = commands.create(checked, chains, secrets.token_hex(8))
        if isinstance(settings.policy, Policy):  # a rule of the caller's own is tried before anything is made
            trial = State(checked.policy)
            trial.apply(sealed(START, 0, drafts))
            assert trial.order is not None
            trial.order.check()
        journal = opening.create(where, *drafts)
        study = cls(Keeper(journal, checked.policy), is_first=True)
        study._keeper.settle()
        return study

    @classmethod
    def open(
        cls, where: Where, policy: str | Policy | None = None, *, read_only: bool = False, continuing: bool = False,
        patience: Duration = PATIENCE,
    ) -> Self:  # fmt: skip
        """The existing study at ``where``. Its chains begin new paths at their next tells.

        ``policy``: needed if the study's policy is not built in. It must be the policy that created the study.
        ``read_only``: the study cannot be changed through this object. A policy that is not built in may be left out.
        ``continuing``: the processes stand where the study left them, so plain tells continue the paths of plain tells.
        ``patience``: how long a change waits for other writers before it raises ``Busy`` and changes nothing.
        """
        waits = in_seconds(patience, "patience", meaning="seconds that a change waits for other writers")
        return cls._of(opening.open_journal(where, read_only, waits), policy, continuing=continuing)

    @classmethod
    def restore(cls, path: str | os.PathLike[str], where: Where, policy: str | Policy | None = None) -> Self:
        """A new study at ``where`` with the entries of a file of lines, which ``export("….jsonl")`` wrote.

        ``policy``: needed if the study's policy is not built in.
        """
        file = Path(path)
        settings = unpacked(backup.first_entry(file).more)
        rule.needed(settings, settings["policy"]["version"], policy, read_only=False)
        return cls._of(backup.restore(file, where), policy)

    @classmethod
    def _of(cls, journal: Journal, policy: str | Policy | None, *, continuing: bool = False) -> Self:
        """The study of a journal. Closes the journal if the policy is not the study's."""
        try:
            (first,) = journal.read(START, 1)
            settings = unpacked(first.more)
            version = settings["policy"]["version"]
            found = rule.needed(settings, version, policy, read_only=journal.read_only)
            study = cls(Keeper(journal, found), continuing=continuing)
            if found is not None and not journal.read_only and study._keeper.do(commands.renew_rule, found):
                warnings.warn(
                    f"the rule {found.name!r} has another version, {found.version}, than the one that chose in this "
                    "study before: its indices were computed anew",
                    RecomputedWarning,
                    stacklevel=3,
                )
        except BaseException:
            journal.close()
            raise
        return study

    # A line, a table, and tables for notebooks; ``study.live()`` shows one that is updated there.
    __repr__, __str__, _repr_html_, live = portrait.line, portrait.text, portrait.html, portrait.live

    def __reduce__(self) -> Any:
        raise InputError("a study cannot be pickled: give the other process its path or address, to open it there")

    def close(self) -> None:
        """Ends in good order. The study can be opened again."""
        if self._closed:
            return
        self._closed = True
        if not self._keeper.journal.read_only:
            with suppress(ChainscoutError):  # then nobody says whether the steps were made
                self._keeper.do(commands.close, self._sessions)
        self._keeper.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:  # nobody says whether the steps were made
            self._keeper.close()

    def _walker(self) -> Walker:
        """The walker of this asyncio task, or else of this thread."""
        asyncio = sys.modules.get("asyncio")  # it loads slowly, and no task runs where nobody has loaded it
        # Without the error that `current_task` raises where no event loop runs.
        loop = None if asyncio is None else asyncio._get_running_loop()
        who: Any = (asyncio and loop and asyncio.current_task(loop)) or threading.current_thread()
        walker = self._walkers.get(who)
        if walker is None:
            walker = self._walkers[who] = self._first or self._new_walker()
            self._first = None
        return walker

    def _new_walker(self, *, continuing: bool = False) -> Walker:
        walker = Walker(MAIN, opened=self._opened, continuing=continuing)
        walker.is_first, walker.siblings = self._is_first, self._sessions
        return walker

    # -- asking and telling

    @overload
    def ask(self, *, without: Set[str] = frozenset()) -> str: ...

    @overload
    def ask(self, number: int, *, without: Set[str] = frozenset()) -> list[str]: ...

    def ask(self, number: int | None = None, *, without: Set[str] = frozenset()) -> str | list[str]:
        """The chain to advance next, or the next ``number`` of them. Pure: asking twice gives the same answer.

        ``without``: chains that are left out.
        """
        if number is not None:
            number = whole_number(number, "number", meaning="how many observations are to be made", most=_MOST_PLANNED)
        try:
            return self._asked(number, without)
        except NothingFree:
            if self._keeper.journal.read_only:
                raise
            self._keeper.settle()  # another process may have died before it looked at the bounds that it had to
            return self._asked(number, without)

    def _asked(self, number: int | None, without: Set[str]) -> str | list[str]:
        if number is None:
            return self._keeper.read(commands.ask, without)
        return self._keeper.read(commands.ask_many, number, without)

    def tell(
        self, chain: str, state: Hashable, path: int | None = None, step: int | None = None, *,
        token: int | None = None, begin: bool = False, ends: bool = False, key: str | None = None,
    ) -> Step:  # fmt: skip
        """Adds one observation: the state that ``chain`` is in now. It is durable before this returns.

        Returns the path and the step of the path's next observation.
        ``path``, ``step``: the path's number, and the observation's number in it, from 1. They make a retry safe.
        ``token``: of the lease that holds the path.
        ``begin``: the process was started again, and the state begins a new path. If the lease is for more
        observations, ``restart`` and then tell, because the lease has another token then.
        ``ends``: the path ends with this state, because the process itself has ended.
        ``key``: any text; the same observation with the same key is told once.
        """
        if path is None and step is None and token is None and key is None and not (begin or ends):
            walker = self._walker()
            told = self._keeper.do(commands.tell, walker, chain, state)
            return self._goes_on(walker, told)
        if begin and (path is not None or step is not None):
            raise InputError("a state that begins a path has neither path nor step: the study gives the path's number")
        if path is not None:
            path = whole_number(path, "path", meaning="the number of a path in its chain", most=MOST_TRANSITIONS)
        if step is not None:
            step = whole_number(step, "step", meaning="the observation's number in its path", most=MOST_TRANSITIONS)
        if key is not None:
            if not isinstance(key, str):
                raise InputError(f"a key must be a string, not {shown(key)}")
            key = unicode_text(key, "a key")
        given: dict[str, Any] = {
            "path": path, "step": step, "begin": begin, "ends": ends, "key": key, "recall": self._keeper.recall
        }  # fmt: skip
        if token is not None:
            told = self._keeper.do(commands.tell_leased, _checked_token(token), chain, state, **given)
            self._keeper.settle()
            return Step(told.path, told.steps + 1)
        walker = self._walker()
        return self._goes_on(walker, self._keeper.do(commands.tell, walker, chain, state, **given))

    def _goes_on(self, walker: Walker, told: commands.Told) -> Step:
        """Notes where a walker's path stands, and settles. Returns the place of its next observation."""
        is_new = told.steps == 1 and told.own and told.chain not in walker.known
        _remember(walker, told)
        if is_new:
            self._see(lambda state: walker.warn_of_bare_paths(state.chains[told.chain], told.path))
        self._keeper.settle()
        return Step(told.path, told.steps + 1)

    def tell_many(self, observations: Iterable[tuple[str, Hashable]]) -> None:
        """Adds observations in order, (chain, state) each: all of them, or none."""
        walker, pairs = self._walker(), commands.checked_pairs(observations)
        known = set(walker.known)
        found = self._keeper.do(commands.tell_many, walker, pairs)
        for told in found:
            _remember(walker, told)
        with self._keeper.lock():
            chains = self._keeper.state().chains
            for told in found:
                if told.chain not in known:
                    walker.warn_of_bare_paths(chains[told.chain], told.path)
        self._keeper.settle()

    @overload
    def restart(self, chain: str, *, lost: bool = False, due: bool = False) -> Step: ...

    @overload
    def restart(self, chain: str, *, lost: bool = False, due: bool = False, token: int) -> Restarted: ...

    def restart(
        self, chain: str, *, lost: bool = False, due: bool = False, token: int | None = None
    ) -> Step | Restarted:
        """Ends the path: the next observation begins another one. Returns its path and step, and a lease's new token.

        The step that was asked for last is a hole, because it may have been made (docs/studies.md).
        ``lost``: an observation was lost with it; the certificate counts it. ``due``: the path ended by a rule that
        looks at this path alone, as a number of steps: there is no hole. ``token``: of the lease that holds the path.
        """
        walker, end = self._walker(), ending(lost=lost, due=due)
        if token is None:
            following = self._keeper.do(commands.end_path, walker, chain, end)
            walker.number = following.walker
            return Step(following.path, 1)
        following = self._keeper.do(commands.end_path, walker, chain, end, token=_checked_token(token))
        return Restarted(following.path, 1, following.token)

    def renew(self, chain: str, token: int, seconds: Duration = 60.0) -> None:
        """Holds a leased chain for ``seconds`` from now on."""
        held = in_seconds(seconds, "seconds", meaning="how long the chain is held")
        self._keeper.do(commands.renew, _checked_token(token), chain, int(held * 1000))

    def give_back(self, chain: str, token: int, *, lost: bool = False) -> None:
        """Ends a lease. ``lost``: its worker cannot go on; the effect is that of an expired lease."""
        self._keeper.do(commands.give_back, _checked_token(token), chain, lost=lost)

    def continue_path(self, chain: str) -> ChainProgress:
        """Declares that the process of this chain stands where plain tells left it. Returns that place."""
        walker = self._walker()
        walker.number = self._keeper.do(commands.go_on, walker, chain)

        def look(state: State) -> None:
            known = labels.find(state, chain)
            path = walker.path(known, continuing=True)
            if path is not None:
                walker.remember(walker.number, known.number, path.number, path.steps)

        self._see(look)
        return self.chain(chain)

    def correct(self, chain: str, path: int, step: int, reason: str = "") -> None:
        """Takes back the latest observation of a path, its number ``step``: another state was meant. The path ends."""
        why = unicode_text(str(reason), "a reason")
        self._keeper.do(commands.correct, self._walker(), chain, path=path, step=step, reason=why)

    def lose(self, chain: str) -> None:
        """Notes that an observation was made but can never be told."""
        self._keeper.do(commands.lose, self._walker(), chain)

    def set_aside(self, chain: str, reason: str, *, ended: bool = False, token: int | None = None) -> None:
        """Stops asking for the chain.

        ``ended``: its source has given all its states. ``token``: of a lease that is given back with it.
        """
        held = None if token is None else _checked_token(token)
        self._keeper.do(commands.set_aside, chain, unicode_text(str(reason), "a reason"), ended=ended, token=held)
        self._keeper.settle()

    def take_up(self, chain: str) -> None:
        """Asks for a chain again that was set aside, and goes on with a study that stopped for it."""
        self._keeper.do(commands.take_up, chain)

    def extend(
        self, *, budget: float | None = None, target_loss: float | Mapping[str, float] | None = None,
        deadline: Any = None, target_width: float | None = None,
    ) -> None:  # fmt: skip
        """Sets another budget (the whole, not the increase), target or deadline. A finished study goes on."""
        settings = StudySettings(budget=budget, target_loss=target_loss, deadline=deadline, target_width=target_width)
        if not settings.given():
            raise InputError("a study is extended by a budget, a target or a deadline, and none was given")
        checked = settings.checked()
        self._keeper.do(
            commands.extend, limit=checked.budget, deadline=checked.deadline, target_loss=checked.target_loss,
            target_width=checked.target_width,
        )  # fmt: skip
        self._keeper.settle()

    @contextmanager
    def _program(self, repeating: Set[str]) -> Iterator[Callable[..., Worker]]:
        """What makes the workers of a call of ``learn``. First the slots of calls that were killed are given up."""
        self._keeper.do(commands.give_up_gone, is_gone, repeating)
        self._keeper.settle()
        with running() as mark:
            yield partial(Worker, self._keeper, warns=False, program=mark)

    def worker(self, name: str, *, renews: bool = True) -> Worker:
        """A worker of this study, which takes leases: ``with study.worker("rig 7") as worker: …``.

        ``renews``: whether it renews its leases by itself, in a thread, while this process lives.
        """
        if not isinstance(name, str) or not name:
            raise InputError(f"a worker's name must be a string that is not empty, not {shown(name)}")
        if "\0" in name:
            raise InputError(f"a worker's name cannot have the character NUL in it, as in {shown(name)}")
        for taken, who in ((name == MAIN, "the paths of plain tells have"), (is_learners(name), "learn gives its own")):
            if taken:
                raise InputError(f"a worker's name cannot be {name!r}, because {who} that name")
        return Worker(self._keeper, unicode_text(name, "a worker's name"), renews=renews)

    # -- what is known

    def _see(self, look: Callable[[State], Result]) -> Result:
        with self._keeper.lock():
            return look(self._keeper.state())

    def counts(self, chain: str, *, everything: bool = False) -> Counts:
        """The transitions of a chain, warm start included: those of the cut that its bound uses.

        ``everything``: also those that arrived beyond the cut.
        """

        def look(state: State) -> Counts:
            known = labels.find(state, chain)
            return counts_of(known, None if everything else state.chosen_cut(known))

        return self._see(look)

    def bounds(self) -> dict[str, Found]:
        """The bound of each chain's loss at this moment. Each is noted, so it may end its chain."""
        asked, found = self._bounds()
        return {one.name: bound for one, bound in zip(asked, found, strict=True)}

    def _bounds(self) -> tuple[list[Due], list[Found]]:
        asked: list[Due] = self._see(
            lambda state: [due(state, chain, state.chosen_cut(chain)) for chain in state.chains]
        )
        if self._keeper.journal.read_only:
            return asked, computed(asked)
        found = self._keeper.note_bounds(asked)
        self._keeper.settle()
        return asked, found

    plan = plan

    def certificate(self) -> StudyCertificate:
        """The bound on each chain's loss at this moment. Each is noted, so it may end its chain."""
        asked, found = self._bounds()
        holes = costs_of_holes(asked, found)
        only_read = self._keeper.journal.read_only
        return self._see(lambda state: certificate_of(state, asked, found, holes, only_read=only_read))

    def estimate(self, chain: str) -> Estimate | OpenEstimate:
        """The estimated matrix of a chain, with intervals that hold for all chains at once with probability 1 − δ."""
        return self._see(lambda state: estimate_of(state, labels.find(state, chain)))

    def paths(self, chain: str) -> Paths:
        """Every draw of a chain in the order of issue, pending and lost ones included; without the warm start."""
        with self._keeper.lock():
            state = self._keeper.recorded()
            return walked_paths(state, labels.find(state, chain))

    def answer(
        self, chain: str, question: Question | str, *, delta: float | None = None, method: str | None = None,
        asked: int | None = None, losses: str = "checked",
    ) -> Answer:  # fmt: skip
        """The answer to a question about a chain, from its draws. That to a registered question counts for the aim.

        ``question``: a question, or its line. ``delta``: the probability that its bounds fail; None: the study's δ, or
        for a registered question its share of δ. ``method``, ``asked``, ``losses``: see ``chainscout.answer``. The
        counts of a warm start are not read.
        """
        return answered(
            self._keeper, chain, question, self.checks(), delta=delta, method=method, asked=asked, losses=losses
        )

    def answers(self, question: Question | str, *, losses: str = "checked") -> dict[str, Answer]:
        """The answers of all K chains to one question, with δ/K each, so that all hold together."""
        share: float = self._see(lambda state: state.delta / len(state.chains))
        checks = self.checks()
        return {name: answered(self._keeper, name, question, checks, delta=share, losses=losses) for name in self.names}

    def questions(self) -> list[QuestionLine]:
        """The registered questions with their answers, as stored at the last look at their chains."""
        return self._see(lambda state: [asked.line(state) for asked in state.questions])

    def export(self, path: str | os.PathLike[str], *, chain: str | None = None, start: Hashable = None) -> None:
        """Writes the estimates to a file, or the journal if the name ends in .jsonl.

        The ending of the name is the format: docs/studies.md, docs/model-checkers.md.
        ``chain``, ``start``: for the formats of model checkers, which hold one chain: its name, and its initial state
        (None: the states in which its paths began).
        """
        from .export import write

        write(self, path, chain=chain, start=start)

    def diagnose(
        self, *, reference: Mapping[str, MarkovChain] | None = None, other: "Study | Mapping[str, Paths] | None" = None,
        delta: float | None = None,
    ) -> Diagnosis:  # fmt: skip
        """Checks the assumptions of all bounds, for each chain and for all together, in one pass over the journal.

        ``reference``: matrices that are known exactly, by the chain's name.
        ``other``: another study, or paths by the chain's name: do chains of the same name follow the same law?
        ``delta``: the probability that any check ever rejects wrongly; None: the study's.
        See ``chainscout.diagnose``.
        """
        with self._keeper.lock():
            state = self._keeper.recorded()
            chains = {chain.name: judged_paths(state, chain) for chain in state.chains}
            repeated, level = repeated_paths(state), state.delta if delta is None else delta
        if isinstance(other, Study):
            there = set(other.names)
            other = {name: other.paths(name) for name in chains if name in there}
            if not other:
                raise InputError("other must be a study that has a chain of this study, and it has none")
        return diagnose(chains, reference=reference, other=other, delta=level, repeated=repeated)

    def checks(self) -> Diagnosis | None:
        """The checks of all chains together at this moment.

        They equal those of ``diagnose`` up to the first pending draw, at the study's δ, without losses and without
        paths that repeat each other. None for a study with more than 1,000 chains.
        """
        if len(self.names) > MOST_CHECKED:
            return None
        return self._keeper.checked().diagnosis

    def repeated_paths(self, chain: str | None = None) -> tuple[str, ...]:
        """A sentence for each pair of paths that repeat each other, for example because two workers have one seed.

        ``chain``: this chain only. If there is a sentence, no bound holds.
        """
        return self._see(
            lambda state: repeated_paths(state, None if chain is None else labels.find(state, chain).number)
        )

    def chain(self, name: str) -> ChainProgress:
        """Where one chain stands."""
        walker = self._walker()

        def look(state: State) -> ChainProgress:
            known = labels.find(state, name)
            path = known.walks.get(known.paths) if state.shared else walker.path(known)
            path = None if path is None or path.ended else path
            if path is None:
                walker.offered[known.number] = known.paths + 1
            number, step = (known.paths + 1, 1) if path is None else (path.number, path.steps + 1)
            last = None if path is None or path.last < 0 else labels.label(known, path.last)
            index = math.inf if state.order is None else state.order.index(known)
            return ChainProgress(
                states=known.size, open=known.is_open, observations=known.observations, transitions=known.transitions,
                paths=known.begun, path=number, step=step, last=last, index=index, leases=known.leases,
                aside=known.aside is not None,
            )  # fmt: skip

        return self._see(look)

    def progress(self) -> Progress:
        """Where the study stands. Its bounds are those of the last looks."""
        return self._keeper.read(progress_of)

    def look(self) -> Look:
        """Everything that is shown of the study, of one moment. Its bounds are those of the last looks at them."""
        with no_garbage():
            return self._keeper.read(look_at, self._keeper.journal.notes(), self._shares)

    def _mark(self) -> tuple[int, StopReason | None]:
        """Another value whenever a look shows something else than before, clocks aside."""
        return self._keeper.read(lambda state, now: (state.head.number, stop.reason(state, now)))

    @property
    def stop_reason(self) -> StopReason | None:
        """Why the study stopped; None while it goes on."""
        return self._keeper.read(stop.reason)

    @property
    def finished(self) -> bool:
        """Whether there is nothing more to ask."""
        return self.stop_reason is not None

    @property
    def settings(self) -> StudySettings:
        """The settings, as they are now. The policy is its name."""
        found: StudySettings = self._see(settings_of)
        return found

    @property
    def names(self) -> list[str]:
        """The chains, by number."""
        return self._see(lambda state: list(state.names))

    def states(self, chain: str) -> list[Hashable]:
        """The chain's states, as far as they are known."""

        def look(state: State) -> list[Hashable]:
            known = labels.states(labels.find(state, chain))
            return list(range(known) if isinstance(known, int) else known)

        return self._see(look)

    def state_from_text(self, chain: str, text: str) -> Hashable:
        """The state that a text stands for: a label of the chain, or else a whole number."""
        return self._see(lambda state: labels.from_text(labels.find(state, chain), text))

    @property
    def policy(self) -> Policy:
        """The policy that chooses the chains. Raises ``InputError`` if it is not built in and was not given."""
        known = self._keeper.policy
        if known is None:
            raise rule.not_built_in(self.progress().policy)
        return known

    @property
    def knows_policy(self) -> bool:
        """Whether the policy's rule is available. A study that is only read does not need it."""
        return self._keeper.policy is not None

    @property
    def is_shared(self) -> bool:
        """Whether other processes can advance the study at the same time."""
        return self._keeper.journal.is_shared

    def indices(self) -> dict[str, float]:
        """Each chain's index, as the policy sees it now."""

        def look(state: State) -> dict[str, float]:
            order = state.order
            return {} if order is None else {chain.name: order.index(chain) for chain in state.chains}

        return self._see(look)

    def allocation(self) -> dict[str, int]:
        """Each chain's observations so far."""
        return self._see(lambda state: {c.name: c.observations for c in state.chains})

    def events(self, after: int = 0, limit: int | None = None) -> list[EventLine]:
        """What happened besides observations, in order.

        ``after``: begins after the entry with this number; a negative number counts events from the end.
        ``limit``: the largest number of events.
        """
        found = self._keeper.events(after)
        found = found[after:] if after < 0 else [event for event in found if event.number > after]
        return found[:limit]

    def log(self, chain: str | None = None, after: int = 0) -> Iterator[LogLine]:
        """All observations in order, or those of one chain. A page at a time is in memory.

        ``after``: begins after the observation with this number.
        """
        wanted: int | None = None if chain is None else self._see(lambda state: labels.find(state, chain).number)
        number, state = 0, State()
        for page in self._keeper.journal.pages():
            for entry in page:
                known = None if entry.kind is not Kind.TOLD else state.chains[entry.chain].walks.get(entry.path)
                state.apply((entry,))
                if entry.kind is not Kind.TOLD:
                    continue
                number += 1
                owner = state.chains[entry.chain]
                path = known or owner.walks[entry.path]
                if number > after and (wanted is None or owner.number == wanted):
                    told = labels.label(owner, entry.value)
                    yield LogLine(number, owner.name, path.number, path.steps, told, entry.time / 1000, path.told_slot)

    def audit(self) -> None:
        """Reads every entry, and compares everything that follows from them with what this study knows.

        Raises ``FileError`` with the number of the first entry that is not what was written.
        """
        self._keeper.audit()


def _checked_token(value: Any) -> int:
    return whole_number(value, "token", meaning="the number of a lease", most=MOST_TRANSITIONS)


def _remember(walker: Walker, told: commands.Told) -> None:
    """Notes what was stored."""
    if told.own:
        walker.remember(told.walker, told.chain, told.path, told.steps)
    else:
        walker.number = told.walker or walker.number
