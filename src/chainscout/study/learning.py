"""``learn``: runs sources until the study is finished, one at a time or on an executor."""

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any

from ..chains import MarkovChain
from ..checks import shown, whole_number
from ..errors import InputError, NothingFree, SourceEnded, SourceError, StudyFinished
from ..policies import Policy
from ..problems import Problem
from ..sources import Program, Recorded, Source, convert
from ..store import Where, exists
from .lease import Lease
from .simulation import Simulated
from .study import Study

#: A chain whose source failed so often in a row is set aside.
FAILURES = 10
#: Seconds that a lease lasts; leases in flight are renewed when half of that is over.
SECONDS = 60.0
#: Seconds between two looks for a chain that other workers hold.
PAUSE = 0.05


def learn(
    sources: Mapping[str, Any] | Problem,
    budget: float | None = None,
    delta: float = 0.05,
    *,
    where: Where = None,
    states: Mapping[str, int | Sequence[Hashable]] | None = None,
    policy: str | Policy = "scout",
    executor: Executor | None = None,
    workers: int | None = None,
    progress: bool = True,
    seed: int = 0,
    **options: Any,
) -> Study:
    """Samples from ``sources`` until the budget is used, the target is certified or the deadline has passed.

    ``sources``: name → a callable, an iterator, a MarkovChain, or an object of chainscout.sources; or a Problem, which
    is simulated. ``states``: name → how many states there are, or their labels; what is neither given nor known from
    the source is discovered (open states). ``where``: a study that exists there is gone on with. ``executor``: any
    concurrent.futures executor, with ``workers`` sources at work at once; those on a process or Dask executor travel
    to it and back, and must be picklable. ``seed``: of simulated chains. Other options are those of Study.create.
    """
    ends = (budget, options.get("target_loss"), options.get("deadline"))
    if all(end is None for end in ends) and not exists(where):
        raise InputError("learning needs an end: a budget, a target_loss or a deadline")
    found = named_sources(sources, seed)
    if exists(where):
        study = Study.open(where, policy if isinstance(policy, Policy) else None)
    else:
        chains, opened = chain_states(found, states or {})
        study = Study.create(where, chains, budget, policy, delta, open_states=opened, **options)
    try:
        run(study, found, executor=executor, workers=workers, progress=progress)
    except BaseException:
        study.close()
        raise
    return study


def named_sources(sources: Mapping[str, Any] | Problem, seed: int = 0) -> dict[str, Source]:
    """Every source in its common form."""
    if isinstance(sources, Problem):
        sources = sources.chains
    if not isinstance(sources, Mapping) or not sources:
        raise InputError(f"sources must be a mapping from names of chains to sources, not {shown(sources)}")
    return {
        name: Simulated(thing, number, seed=seed) if isinstance(thing, MarkovChain) else convert(thing)
        for number, (name, thing) in enumerate(sources.items())
    }


def chain_states(
    sources: Mapping[str, Source], states: Mapping[str, int | Sequence[Hashable]]
) -> tuple[dict[str, int | Sequence[Hashable]], list[str]]:
    """The states of every chain, and the chains whose states are open."""
    unknown = [name for name in states if name not in sources]
    if unknown:
        raise InputError(f"states names chains that have no source: {shown(unknown)}")
    chains: dict[str, int | Sequence[Hashable]] = {}
    opened = []
    for name, source in sources.items():
        known = states.get(name)
        if known is None and isinstance(source, (Simulated, Recorded)):
            known = source.states
        if known is None:
            opened.append(name)
        chains[name] = [] if known is None else known
    return chains, opened


def run(
    study: Study,
    sources: Mapping[str, Source],
    *,
    executor: Executor | None = None,
    workers: int | None = None,
    progress: bool = True,
) -> None:
    """The loop: advances sources until the study is finished. All are closed at the end, however it comes."""
    missing = [name for name in study.names if name not in sources]
    if missing:
        raise InputError(f"the study has chains without a source: {shown(missing)}")
    from .bar import bar

    with ExitStack() as stack:
        for source in sources.values():
            stack.callback(source.close)
        shown_bar: AbstractContextManager[Callable[[], None]] = bar(study) if progress else nullcontext(_nothing)
        told = stack.enter_context(shown_bar)
        if executor is None:
            _one_at_a_time(study, sources, told)
        else:
            number = workers or getattr(executor, "_max_workers", None) or 4
            _Crew(study, sources, executor, whole_number(number, "workers"), told).run()


def _nothing() -> None:
    pass


class Paths:
    """Which chains are in the middle of a path, and how often their sources have failed in a row."""

    def __init__(self, study: Study, sources: Mapping[str, Source]) -> None:
        self._going: dict[str, bool] = {}
        self._failures = dict.fromkeys(sources, 0)
        self._study = study
        self._sources = sources

    def is_broken(self, name: str, fresh: bool) -> bool:
        """Whether the study must be told of a new segment before the source's next state."""
        return fresh and self._going.get(name, False)

    def has_told(self, name: str) -> None:
        """Notes a state that was told."""
        self._going[name] = True
        self._failures[name] = 0

    def find(self, name: str) -> None:
        """Brings a source to where the study is; if it cannot be, its next state is a fresh start."""
        if name not in self._going:
            chain = self._study.chain(name)
            self._going[name] = chain.last is not None
            if chain.last is not None and not self._sources[name].resume(chain.observations, chain.last):
                self._sources[name].restart()

    def has_failed(self, name: str) -> bool:
        """Notes a failure; whether the source is to be given up."""
        self._failures[name] += 1
        self._going[name] = False
        return self._failures[name] >= FAILURES


def _one_at_a_time(study: Study, sources: Mapping[str, Source], told: Callable[[], None]) -> None:
    paths = Paths(study, sources)
    while True:
        try:
            name = study.ask()
        except StudyFinished:
            return
        except NothingFree:  # other workers hold what there is
            time.sleep(PAUSE)
            continue
        paths.find(name)
        source = sources[name]
        try:
            state, fresh = source.advance()
            if paths.is_broken(name, fresh):
                study.restart(name)
            _tell(study, name, source, state, study.tell)
            paths.has_told(name)
        except SourceEnded as end:
            study.set_aside(name, str(end))
        except SourceError as error:
            study.restart(name, lost=True)
            if paths.has_failed(name):
                study.set_aside(name, str(error))
        told()


def _tell(study: Study, name: str, source: Source, state: Hashable, tell: Callable[[str, Hashable], None]) -> None:
    """Tells a state. What a program writes is a text, and one that is no state is its fault, nobody's slip."""
    if not isinstance(source, Program):
        tell(name, state)
        return
    try:
        tell(name, study.state_from_text(name, str(state)))
    except InputError:
        raise source.reject(state) from None


class _Crew:
    """Sources at work on an executor, each under a lease."""

    def __init__(
        self,
        study: Study,
        sources: Mapping[str, Source],
        executor: Executor,
        workers: int,
        told: Callable[[], None],
    ) -> None:
        self._study = study
        self._sources = dict(sources)
        self._executor = executor
        self._workers = workers
        self._told = told
        self._paths = Paths(study, self._sources)
        self._working: dict[Future[Any], Lease] = {}

    def run(self) -> None:
        """Keeps the workers busy until the study is finished and all are back."""
        try:
            while self._hire() or self._working:
                if not self._working:  # other workers hold what there is
                    time.sleep(PAUSE)
                done, _ = wait(self._working, timeout=SECONDS / 2, return_when=FIRST_COMPLETED)
                for future in done:
                    self._back(self._working.pop(future), future)
                    self._told()
                if not done:
                    for lease in self._working.values():
                        lease.renew(SECONDS)
        except BaseException:
            for lease in self._working.values():
                lease.abandon()
            raise

    def _hire(self) -> bool:
        """Gives leases to idle workers; whether there will be more to do."""
        while len(self._working) < self._workers:
            try:
                lease = self._study.lease(f"worker {len(self._working)}", SECONDS, wait=0)
            except NothingFree:
                return True
            except StudyFinished:
                return False
            self._paths.find(lease.chain)
            self._working[self._send(self._sources[lease.chain])] = lease
        return True

    def _send(self, source: Source) -> Future[Any]:
        if isinstance(self._executor, ThreadPoolExecutor):
            return self._executor.submit(_advance_here, source)
        import cloudpickle

        return self._executor.submit(_advance_there, cloudpickle.dumps(source))

    def _back(self, lease: Lease, future: "Future[Any]") -> None:
        name = lease.chain
        try:
            state, fresh, moved = future.result()
            if moved is not None:
                import cloudpickle

                self._sources[name] = cloudpickle.loads(moved)
            if self._paths.is_broken(name, fresh):
                lease.restart()
            _tell(self._study, name, self._sources[name], state, lambda _, known: lease.tell(known))
            self._paths.has_told(name)
        except SourceEnded as end:
            self._study.set_aside(name, str(end), token=lease.token)
            lease.give_back()
        except SourceError as error:
            if self._paths.has_failed(name):
                self._study.set_aside(name, str(error), token=lease.token)
            lease.restart(lost=True)
            lease.give_back()
        except BaseException:
            lease.abandon()
            raise


def _advance_here(source: Source) -> tuple[Hashable, bool, None]:
    state, fresh = source.advance()
    return state, fresh, None


def _advance_there(packed: bytes) -> tuple[Hashable, bool, bytes]:
    """On another process or machine: the source moves there, advances, and comes back."""
    import cloudpickle

    source = cloudpickle.loads(packed)
    state, fresh = source.advance()
    return state, fresh, cloudpickle.dumps(source)
