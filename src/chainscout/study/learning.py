"""``learn``: runs sources until the study is finished, one at a time or on an executor."""

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any

from ..chains import MarkovChain
from ..checks import real_number, shown, whole_number
from ..errors import InputError, NothingFree, SourceEnded, SourceError, StudyFinished
from ..policies import Policy
from ..problems import Problem
from ..sources import Source, convert
from ..store import Where, exists
from . import creation
from .crew import PAUSE, Crew, Paths, tell_from
from .simulation import Simulated
from .study import Study
from .views import Progress


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
    is simulated. ``states``: name → how many states there are, or their labels; where they are not given, those of a
    simulated chain are known, and those of all other sources, recordings too, are discovered (open states).
    ``where``: a study that exists there is gone on with; a larger budget, a smaller target or a later deadline than it
    has extends it, the contrary or another policy or delta is an error.
    ``executor``: any concurrent.futures executor, with ``workers`` sources at work at once; those on a process or Dask
    executor travel to it and back, and must be picklable. ``seed``: of simulated chains. Other options are those of
    Study.create.
    """
    check_end(where, budget, options.get("target_loss"), options.get("deadline"))
    found = named_sources(sources, seed)
    if exists(where):
        study = Study.open(where, policy if isinstance(policy, Policy) else None)
        try:
            _go_on(study, policy, delta, {"budget": budget, **options})
        except BaseException:
            study.close()
            raise
    else:
        chains, opened = chain_states(found, states or {})
        study = Study.create(where, chains, budget, policy, delta, open_states=opened, **options)
    try:
        run(study, found, executor=executor, workers=workers, progress=progress)
    except BaseException:
        study.close()
        raise
    return study


def check_end(where: Where, *ends: object) -> None:
    """Refuses to learn for ever; a study that exists has its own end, or none on purpose."""
    if all(end is None for end in ends) and not exists(where):
        raise InputError("learning needs an end: a budget, a target loss or a deadline")


def _go_on(study: Study, policy: str | Policy, delta: float, options: Mapping[str, Any]) -> None:
    """What is asked of a study that exists: it can have a later end, but not another rule."""
    state = study.progress()
    for what, given, default, known in (("policy", policy, "scout", state.policy), ("delta", delta, 0.05, state.delta)):
        if not isinstance(given, Policy) and given not in (default, known):
            raise InputError(f"the study was created with the {what} {known}: it cannot go on with {shown(given)}")
    budget = options.get("budget")
    asked = {
        "budget": None if budget is None else real_number(budget, "budget", above=0.0),
        "target_loss": creation.target_of(options.get("target_loss")),
        "deadline": creation.deadline_of(options.get("deadline")),
    }
    further = {name: end for name, end in asked.items() if end is not None and _is_further(state, name, end)}
    if further:
        study.extend(**further)


#: Which way each end of a study can be moved by learning, and the words for the other one.
_ENDS: dict[str, tuple[int, str, str, Callable[[float], str]]] = {
    "budget": (1, "smaller", "more", "{:g}".format),
    "target_loss": (-1, "larger", "less", "{:g}".format),
    "deadline": (1, "earlier", "later", creation.deadline_text),
}


def _is_further(state: Progress, name: str, end: float) -> bool:
    """Whether an end that is asked for is behind the study's own; one that comes before it is refused.

    Observations cost money: there are to be no more of them than was said, and nothing is taken back that others work
    with.
    """
    has = getattr(state, name)
    sign, worse, better, text = _ENDS[name]
    if has is not None and sign * end < sign * has:
        raise InputError(
            f"the study has the {name.replace('_', ' ')} {text(has)}, and the {worse} one of {text(end)} was given: "
            f"give {text(has)} or {better}, or change the study's own first, with extend"
        )
    return has is None or sign * end > sign * has


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
    """The states of every chain, and the chains whose states are open.

    Those that occur in a recording are chosen by the data, so that they are no more known than a callable's.
    """
    unknown = [name for name in states if name not in sources]
    if unknown:
        raise InputError(f"states names chains that have no source: {shown(unknown)}")
    chains: dict[str, int | Sequence[Hashable]] = {}
    opened = []
    for name, source in sources.items():
        known = states.get(name)
        if known is None and isinstance(source, Simulated):
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
            number = getattr(executor, "_max_workers", None) or 4 if workers is None else workers
            number = whole_number(number, "workers", meaning="sources at work at once")
            Crew(study, sources, executor, number, told).run()


def _nothing() -> None:
    pass


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
            tell_from(study, name, source, state, study.tell)
            paths.has_told(name)
        except SourceEnded as end:
            study.set_aside(name, str(end))
        except SourceError as error:
            study.restart(name, lost=True)
            if paths.has_failed(name):
                study.set_aside(name, str(error))
        told()
