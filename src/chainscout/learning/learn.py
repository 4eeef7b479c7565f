"""``learn``: runs sources until the study is finished, one at a time or on an executor."""

import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields, replace
from itertools import islice
from typing import Any

from ..chains import MarkovChain
from ..counts import Counts
from ..errors import ChainscoutError, InputError, RepeatedPathsWarning, SetAsideWarning, UndeclaredStatesWarning
from ..journal.opening import Where, exists
from ..policies import Policy
from ..problems import Problem
from ..sources import Factory, Repeating, Simulated, Source, convert
from ..study import Study, StudySettings
from ..study.settings import UNDECLARED, open_chains
from ..study.worker import check_may_wait
from ..validation import Duration, printable, shown, whole_number
from ..validation import seconds as in_seconds
from ._driver import Driver
from ._resume import resume

__all__ = ["check_end", "learn", "run"]

#: The settings that end a study.
_ENDS = frozenset({"budget", "target_loss", "deadline", "target_width", "limit", "worst"})
#: A warning names at most this many chains.
_MOST_NAMED = 5


def learn(
    sources: Mapping[str, Any] | Problem, budget: float | None = None, delta: float | None = None, *,
    where: Where = None, states: Mapping[str, int | Sequence[Hashable]] | None = None,
    open_states: bool | Sequence[str] | None = None, policy: str | Policy | None = None,
    target_loss: float | Mapping[str, float] | None = None, deadline: Any = None, certificate: str | None = None,
    weights: Mapping[str, float] | None = None, costs: Mapping[str, float] | None = None, paths: str | None = None,
    warm_start: Mapping[str, Counts] | None = None, questions: Any = None, target_width: float | None = None,
    limit: float | None = None, worst: str | None = None, executor: Executor | None = None, workers: int | None = None,
    step_limit: Duration | None = None, progress: bool = True, seed: int = 0,
) -> Study:  # fmt: skip
    """Samples from ``sources`` until the budget is used, the target is reached or the deadline has passed.

    ``sources``: name → a callable, an iterator, a MarkovChain, or an object of chainscout.sources; or a Problem, which
    is simulated. A source makes one observation at a time; ``sources.Factory`` makes several copies that work at once.
    Sources that are ``async`` are awaited side by side, on an event loop in a thread of its own.
    ``where``: where the study is stored, as in Study.create. An existing study continues: a larger budget, a smaller
    target or a later deadline extends it; any other given setting must equal the study's own.
    ``states``: name → how many states there are, or their labels. If they are not given, the states of a simulated
    chain are known, and those of every other source are discovered (open states).
    ``warm_start``: counts to begin with. If a simulated or recorded source was used for them, its ``skip`` must say how
    many of its observations they contain.
    ``executor``: any concurrent.futures executor, with ``workers`` sources at work at once. Sources are sent to a
    process or Dask executor and back, so they must be picklable.
    ``step_limit``: seconds, or words such as '30s', after which a step is given up. Its state counts as lost, and its
    source begins anew when the step has really ended.
    ``progress``: whether a progress bar is shown.
    ``seed``: the seed of simulated chains.
    The other parameters are the fields of ``StudySettings``.
    """
    given = locals()
    check_may_wait("learn", "await asyncio.to_thread(cs.learn, …)")
    settings = StudySettings(**{field.name: given[field.name] for field in fields(StudySettings)})
    check_end(where, settings)
    for value, what, contents in ((states, "states", "states"), (warm_start, "warm_start", "Counts")):
        if value is not None and not isinstance(value, Mapping):
            raise InputError(f"{what} must be a mapping from names of chains to {contents}, not {shown(value)}")
    factories, found = _named_sources(sources, seed)
    for name, source in found.items():
        try:
            source.check()
        except InputError as error:
            raise InputError(f"the source of the chain {name!r} cannot be used: {error}") from None
    options = _checked_options(found, executor, workers, step_limit)
    study = _open_or_create(where, found, states, settings)
    try:
        run(study, found, factories=factories, executor=executor, progress=progress, **options)
        _warn_of_chains_set_aside(study)
        if repeated := study.repeated_paths():
            warnings.warn(repeated[0], RepeatedPathsWarning, stacklevel=2)
    except BaseException as error:
        if isinstance(error, Exception) and not isinstance(error, ChainscoutError):
            error.add_note(_what_is_kept(study, where))
        study.close()
        raise
    return study


def _what_is_kept(study: Study, where: Where) -> str:
    """What has become of a study when a source raised an exception."""
    if where is None:
        return 'The study was in memory and is gone: learn(…, where="lab.db") keeps what was told.'
    try:
        many = study.progress().observations
    except ChainscoutError:  # the place of the study is gone too, and the exception must still reach the user
        return "The study cannot be read now: if its place is there again, the same call of learn continues it."
    told = "1 observation" if many == 1 else f"{many:,} observations"
    return f"The study has kept {told}: the same call of learn continues it."


def _open_or_create(
    where: Where, sources: Mapping[str, Source], states: Mapping[str, int | Sequence[Hashable]] | None,
    settings: StudySettings,
) -> Study:  # fmt: skip
    """The existing study, if it fits; otherwise a new one. If several programs create it at once, one of them does."""
    if not exists(where):
        # An object that is not a Counts is refused when the study is created.
        given = settings.warm_start or {}
        _check_unused(sources, [name for name, counts in given.items() if isinstance(counts, Counts) and counts.total])
        chains, opened = _chain_states(sources, states or {}, settings.open_states)
        unsaid = sorted(set(opened) - open_chains(settings.open_states, sources))
        if settings.target_loss is not None and unsaid and settings.certificate != "mixture":
            several = f"{len(unsaid)} chains" if len(unsaid) > 1 else f"the chain {unsaid[0]!r}"
            warnings.warn(
                f"the states of {several} are not declared, so {UNDECLARED}", UndeclaredStatesWarning, stacklevel=3
            )
        try:
            return Study.from_settings(where, chains, replace(settings, open_states=opened))
        except InputError:
            if not exists(where):
                raise  # the reason was not that another program created the study meanwhile
    study = Study.open(where, settings.policy if isinstance(settings.policy, Policy) else None)
    try:
        names = study.names
        _check_sources(names, sources)
        _check_unused(sources, study.settings.warm_start or ())
        resume(study, states, settings)
    except BaseException:
        study.close()
        raise
    return study


def _warn_of_chains_set_aside(study: Study) -> None:
    """Warns which chains are not sampled any more, why, and how to take them up again."""
    reasons = study.look().aside
    if not reasons:
        return
    named = "; ".join(f"{name!r}: {printable(why.reason)}" for name, why in islice(reasons.items(), _MOST_NAMED))
    more = f"; and {len(reasons) - _MOST_NAMED:,} more" if len(reasons) > _MOST_NAMED else ""
    many = "1 chain was" if len(reasons) == 1 else f"{len(reasons):,} chains were"
    warnings.warn(
        f"{many} set aside ({named}{more}): study.take_up(chain) takes a chain up again",
        SetAsideWarning,
        stacklevel=3,
    )


def check_end(where: Where, settings: StudySettings) -> None:
    """Raises ``InputError`` for a new study without an end. An existing study has its own end, or none on purpose."""
    if not settings.given().keys() & _ENDS and not exists(where):
        raise InputError("learning needs an end: a budget, a target loss, a deadline, or an aim for its questions")


def _named_sources(sources: Mapping[str, Any] | Problem, seed: int = 0) -> tuple[dict[str, Factory], dict[str, Source]]:
    """The factories, and every source in its common form; a factory gives its first source."""
    if isinstance(sources, Problem):
        sources = sources.chains
    if not isinstance(sources, Mapping) or not sources:
        raise InputError(f"sources must be a mapping from names of chains to sources, not {shown(sources)}")
    factories = {name: thing for name, thing in sources.items() if isinstance(thing, Factory)}
    found: dict[str, Source] = {}
    for number, (name, thing) in enumerate(sources.items()):
        if name in factories:
            found[name] = factories[name].source()
        else:
            found[name] = Simulated(thing, number, seed=seed) if isinstance(thing, MarkovChain) else convert(thing)
    return factories, found


def _check_sources(names: Sequence[str], sources: Mapping[str, Source]) -> None:
    """Raises ``InputError`` unless there is exactly one source for each chain of the study."""
    missing = [name for name in names if name not in sources]
    if missing:
        raise InputError(f"the study has chains without a source: {shown(missing)}")
    known = frozenset(names)
    strange = [name for name in sources if name not in known]
    if strange:
        fixed = "its chains were fixed when it was made, and another study can have more"
        raise InputError(f"sources were given for chains that the study does not have: {shown(strange)}: {fixed}")


def _check_unused(sources: Mapping[str, Source], warm: Iterable[str]) -> None:
    """Raises ``InputError`` for a repeating source whose states may already be in the chain's warm-start counts."""
    for name in warm:
        source = sources.get(name)
        if isinstance(source, Repeating) and source.skipped is None:
            raise InputError(
                f"the source of the chain {name!r} repeats itself, and what its warm start was counted from would be "
                "counted twice: leave out the observations that were used, as in cs.simulated(chains)[name].skip(500) "
                "or Recorded(path).skip(500), or say with skip(0) that none was (a simulated chain with another seed)"
            )


def _checked_options(
    sources: Mapping[str, Source], executor: Executor | None, workers: int | None, step_limit: Duration | None
) -> dict[str, Any]:
    """How many sources are at work at once, and how many seconds a step may take.

    If nobody says how many, all async sources are. Without an executor, other sources work one at a time.
    """
    limit = None if step_limit is None else in_seconds(step_limit, "step_limit", meaning="how long a step may take")
    awaited = sum(source.is_awaited for source in sources.values())
    if workers is not None:
        workers = whole_number(workers, "workers", meaning="sources at work at once")
    elif executor is not None:
        workers = max(awaited, getattr(executor, "_max_workers", None) or 4)
    if executor is None:
        workers = (workers or awaited) if awaited else 1
    return {"workers": workers, "step_limit": limit}


def _chain_states(
    sources: Mapping[str, Source], states: Mapping[str, int | Sequence[Hashable]],
    open_states: bool | Sequence[str] | None,
) -> tuple[dict[str, int | Sequence[Hashable]], list[str]]:  # fmt: skip
    """The states of every chain, and the chains whose states are open.

    The data determine the states of a recording. So, like those of a function, they are not known beforehand.
    """
    unknown = [name for name in states if name not in sources]
    if unknown:
        raise InputError(f"states names chains that have no source: {shown(unknown)}")
    asked = open_chains(open_states, sources)
    chains: dict[str, int | Sequence[Hashable]] = {}
    undiscovered: list[str] = []
    for name, source in sources.items():
        known = states.get(name)
        if known is None and isinstance(source, Simulated):
            known = source.states
        if known is None:
            undiscovered.append(name)
        chains[name] = [] if known is None else known
    if undiscovered and open_states is False:
        raise InputError(
            f"open_states=False needs the states of every chain, and those of {shown(undiscovered)} are not given"
        )
    return chains, [*undiscovered, *asked.difference(undiscovered)]


def run(
    study: Study, sources: Mapping[str, Source], *, factories: Mapping[str, Factory] | None = None,
    executor: Executor | None = None, workers: int | None = None, step_limit: Duration | None = None,
    progress: bool = True,
) -> None:  # fmt: skip
    """Advances sources until the study is finished. Closes all of them at the end, also after an error.

    An exception of a source that is not a ``SourceError`` ends the run. It is raised again with the chain's name.

    ``factories``: make further sources of these chains, for several at work at once.
    """
    options = _checked_options(sources, executor, workers, step_limit)
    bar: AbstractContextManager[Callable[[], None]] = nullcontext(lambda: None)
    if progress:
        from ._progress_bar import progress_bar

        bar = progress_bar(study)
    with bar as told:
        Driver(study, sources, factories or {}, executor, told, **options).run()
