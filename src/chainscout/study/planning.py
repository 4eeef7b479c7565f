"""How many more observations are needed, and of which chains: predicted from a study, a pilot's counts, or a guess."""

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..certificates.certificate import need_certifiable
from ..certificates.planning import further_transitions, least_transitions, mixture_bound, sharp_bound
from ..counts import Counts
from ..errors import InputError
from ..validation import failure_probability, printable, shown
from . import budget
from .aim import middle
from .commands import waited_in_vain
from .look import Look
from .repetition import as_sentence
from .settings import CHECKS, target_text, targets
from .state import State
from .views import ChainLine

if TYPE_CHECKING:
    from ..logs import TransitionCounts
    from ..problems import Problem
    from .study import Study

__all__ = ["AnswerPlan", "StudyPlan", "plan"]

#: The number of chains whose counts are read at a time.
_BATCH = 1_000
#: A sentence names at most this many chains or questions.
_MOST_NAMED = 3


@dataclass(frozen=True)
class StudyPlan:
    """The observations that are expected to certify a loss. A prediction from the counts so far, not a bound."""

    #: One loss for all chains, or one for each.
    target_loss: float | Mapping[str, float]
    delta: float
    #: The certificate.
    method: str
    #: Observations so far.
    observations: int
    #: Chain → how many more observations it needs: 0 if none, nan before its first transition, infinite if no number
    #: suffices.
    more: Mapping[str, float]
    #: What the observations cost; their number if they have no costs.
    cost: float
    #: What is left of the budget; infinite without a budget.
    left: float = math.inf
    #: The chains that are set aside, and get none.
    aside: tuple[str, ...] = ()
    #: Sentences about paths that repeat each other. If there is one, no number of observations helps.
    repeated: tuple[str, ...] = ()
    #: Chain → why no bound of it holds, however many observations are made.
    doubts: Mapping[str, str] = field(default_factory=dict)

    @property
    def total(self) -> float:
        """How many more observations in all, of the chains that have a transition and are not set aside."""
        return sum(n for name, n in self.more.items() if not math.isnan(n) and name not in self.aside)

    @property
    def unknown(self) -> int:
        """How many chains have no transition yet."""
        return sum(map(math.isnan, self.more.values()))

    def __str__(self) -> str:
        if self.repeated:
            return _hopeless(self.repeated)
        needed = sum(number > 0 for name, number in self.more.items() if name not in self.aside)
        number = f"about {self.total:,.0f} more observations"
        if math.isinf(self.total):
            number = "more observations than can be made"
        unknown = f"of {self.unknown:,} without a transition nothing can be said yet"
        words = f"{number} of {needed:,} of {_chains(len(self.more))}" if needed else "nothing more"
        if self.unknown:
            words = f"{words}; {unknown}" if self.unknown < len(self.more) else unknown
        words += _beyond(self.cost, self.left)
        words += _helpless(self.doubts)
        if missed := [name for name in self.aside if self.more[name] > 0 and name not in self.doubts]:
            words += f"; {_named(missed)} set aside, and would need more"
        wanted = self.target_loss.values() if isinstance(self.target_loss, Mapping) else (self.target_loss,)
        return f"For a certified loss ≤ {target_text(min(wanted), max(wanted))}: {words}."


@dataclass(frozen=True)
class AnswerPlan:
    """The observations that are expected to answer the questions. This is a prediction from the cards so far."""

    #: The aim of the answers, in words.
    aim: str
    #: Observations so far.
    observations: int
    #: (chain, question on one line) → how many more observations of the chain it needs: 0 if none, nan if there are no
    #: data, infinite if the number is too large to predict.
    questions: Mapping[tuple[str, str], float]
    #: What the observations cost, where they have costs; else their number.
    cost: float
    #: What is left of the budget; infinite without a budget.
    left: float = math.inf
    #: The chains that are set aside, and get none.
    aside: tuple[str, ...] = ()
    #: (chain, question on one line) → the state whose exit it waits for, where it waits for one.
    waiting: Mapping[tuple[str, str], Hashable] = field(default_factory=dict)
    #: Sentences about paths that repeat each other. If there is one, no number of observations helps.
    repeated: tuple[str, ...] = ()
    #: Chain → why no bound of it holds, however many observations are made.
    doubts: Mapping[str, str] = field(default_factory=dict)

    @property
    def stuck(self) -> tuple[tuple[str, str], ...]:
        """The questions that no number of observations is expected to settle."""
        return tuple(key for key, number in self.questions.items() if math.isinf(number))

    @property
    def more(self) -> dict[str, float]:
        """Chain → how many more observations it needs for its most demanding question."""
        found: dict[str, float] = {}
        for (chain, _), number in self.questions.items():
            found[chain] = number if math.isnan(number) else max(number, found.get(chain, 0.0))
        return found

    @property
    def total(self) -> float:
        """How many more observations in all, for the chains with a prediction that are not set aside."""
        return sum(n for name, n in self.more.items() if not math.isnan(n) and name not in self.aside)

    @property
    def unknown(self) -> int:
        """How many chains have no prediction yet."""
        return sum(map(math.isnan, self.more.values()))

    def __str__(self) -> str:
        if self.repeated:
            return _hopeless(self.repeated)
        needed = sum(number > 0 for name, number in self.more.items() if name not in self.aside)
        words = f"about {self.total:,.0f} more observations of {needed:,} of {_chains(len(self.more))}"
        if math.isinf(self.total):
            words = "no number of observations is expected to be enough"
        words = words if needed else "nothing more"
        if self.unknown:
            unknown = f"of {self.unknown:,} nothing can be said yet"
            words = f"{words}; {unknown}" if self.unknown < len(self.more) else unknown
        words += _beyond(self.cost, self.left)
        words += _helpless(self.doubts)
        for key in [key for key in self.stuck if key[0] not in self.doubts][:_MOST_NAMED]:
            why = f", because it waits for an exit of {shown(self.waiting[key])}" if key in self.waiting else ""
            words += f"; nothing is expected to settle {key[1]!r} of {key[0]}{why}"
        return f"For {self.aim}: {words}."


def _named(names: Iterable[str]) -> str:
    """Some names, with the verb that follows them."""
    listed = list(names)
    more = f" and {len(listed) - _MOST_NAMED:,} more" if len(listed) > _MOST_NAMED else ""
    return f"{', '.join(map(printable, listed[:_MOST_NAMED]))}{more} {'is' if len(listed) == 1 else 'are'}"


def _beyond(cost: float, left: float) -> str:
    """What the budget does not pay for."""
    return f"; the budget pays for {left:,.10g} of them" if left < cost < math.inf else ""


def _helpless(doubts: Mapping[str, str]) -> str:
    """The chains for which no number of observations helps."""
    return "".join(f"; nothing helps {printable(name)}: {why}" for name, why in islice(doubts.items(), _MOST_NAMED))


def _hopeless(repeated: tuple[str, ...]) -> str:
    return f"{as_sentence(repeated[0])} More observations do not change this."


def _chains(number: int) -> str:
    return f"{number:,} chain{'s' * (number != 1)}"


def plan(
    known: "Study | Problem | TransitionCounts | Mapping[str, Counts]",
    target_loss: float | Mapping[str, float] | None = None,
    *,
    target_width: float | None = None,
    delta: float | None = None,
    certificate: str | None = None,
) -> StudyPlan | AnswerPlan:
    """How many observations are expected to certify a loss, or to answer a study's questions, and of which chains.

    ``known``: a study; or the counts of a pilot, by chain; or a guess of the matrices, as a Problem. Of a guess, all
    observations are counted, and of the others, what is needed beyond those that were made.
    ``target_loss``: one for all chains, or name → loss; a study has its own. ``target_width``: for a study's questions.
    ``delta``, ``certificate``: the probability that the bounds fail, and 'sharp' or 'mixture'; a study has its own.
    """
    from ..problems import Problem  # here, because it loads slowly
    from .study import Study

    if isinstance(known, Study):
        if (delta, certificate) != (None, None):
            raise InputError("a study that exists is planned for a target alone: it has its own delta and certificate")
        return _plan_study(known, target_loss, target_width)
    if target_width is not None:
        raise InputError("target_width is about the answers to the questions of a study, and this is none")
    target = CHECKS["target_loss"](target_loss)
    if target is None:
        raise InputError("a plan needs a target loss, and none was given")
    fails = failure_probability(0.05 if delta is None else delta)
    method = CHECKS["certificate"]("sharp" if certificate is None else certificate)
    if isinstance(known, Problem):
        more, made = _of_guess(known, targets(target, known.chains), fails, method), 0
    else:
        more, made = _of_pilot(known, target, fails, method)
    cost = sum(number for number in more.values() if not math.isnan(number))
    return StudyPlan(target, fails, method, made, more, cost)


def _of_guess(problem: "Problem", wanted: Mapping[str, float], delta: float, method: str) -> dict[str, float]:
    """The observations of each chain, its first one included."""
    bound = (sharp_bound if method == "sharp" else mixture_bound)(problem, delta)
    chains = problem.chains.items()
    return {
        name: 1 + least_transitions(chain, wanted[name], bound, 10 + 3 * chain.variability / wanted[name])
        if chain.size > 1
        else 0
        for name, chain in chains
    }


def _of_pilot(known: Any, target: Any, delta: float, method: str) -> tuple[dict[str, float], int]:
    """The observations that each chain needs beyond those of a pilot, and how many the pilot has."""
    if not (isinstance(known, Mapping) or hasattr(known, "next_samples")) or not len(known):  # the counts of a log
        raise InputError(f"a plan is made from a Study, a Problem, or Counts by chain, not from {shown(known)}")
    pairs = known.items() if isinstance(known, Mapping) else known
    wanted = targets(target, dict(pairs)) if isinstance(target, Mapping) else None
    more, made = {}, 0
    for name, counts in pairs:  # one after the other, because those of a log may not fit into memory together
        if not isinstance(counts, Counts):
            raise InputError(f"a pilot has Counts by chain, and those of the chain {shown(name)} are {shown(counts)}")
        need_certifiable({name: counts}, method)
        loss = target if wanted is None else wanted[name]
        more[name] = further_transitions(counts, loss, method, math.log(len(known) / delta))
        made += counts.observations
    return more, made


def _plan_study(study: "Study", target_loss: Any, target_width: Any) -> StudyPlan | AnswerPlan:
    """The plan for this loss or width, or for the study's own aim."""
    if target_loss is not None and target_width is not None:
        raise InputError("a plan is for a target loss or for a target width, not for both")
    width = CHECKS["target_width"](target_width)
    look = study.look()
    if width is not None or (target_loss is None and look.progress.target_loss is None and look.questions):
        return _plan_answers(study, look, width)
    return _plan_loss(study, look, CHECKS["target_loss"](target_loss))


def _plan_answers(study: "Study", look: Look, width: float | None) -> AnswerPlan:
    """The plan for the study's questions: for this width of each answer, or for the study's own aim."""
    progress, own = look.progress, width is None
    if not look.questions:
        raise InputError("a plan for answers needs questions, and the study has none")
    width = progress.target_width if width is None else width
    limit = progress.limit
    if width is not None:
        aim = f"answers at most {width:g} wide"
    elif limit is not None:
        aim = f"knowing of every answer whether it is below {limit:g}"
    elif progress.worst is not None:
        aim = f"knowing which chain has the {progress.worst} answer"
        limit = middle([line.estimate for line in look.questions], progress.worst)
    else:
        raise InputError("a plan for answers needs a target width: none was given, and the study has no aim")

    def good(lower: float, upper: float) -> bool:
        if width is not None:
            return upper - lower <= width
        return limit is not None and (upper < limit or lower >= limit)

    chains = {line.chain: look.chain(line.chain) for line in look.questions}
    factors = {name: iter(study._keeper.growth(name, good, width)) for name in chains}
    vain, left, done = study._keeper.read(_standing)
    more: dict[tuple[str, str], float] = {}
    for line in look.questions:
        name, key = line.chain, (line.chain, line.question)
        factor = next(factors[name])
        if name in look.doubts or line.number in vain:
            factor = math.inf
        more[key] = math.ceil((factor - 1) * chains[name].observations) if math.isfinite(factor) else factor
    if own and progress.stop_reason is None:
        short = {name for (name, _), number in more.items() if not number <= 0}
        study._keeper.look_at([name for name in chains if name not in short and name not in done])
    aside = tuple(name for name, chain in chains.items() if chain.aside or name in look.doubts)
    waiting = {(one.chain, one.question): one.waiting_for for one in look.questions if one.waiting_for is not None}
    made = AnswerPlan(aim, progress.observations, more, 0.0, left, aside, waiting, look.repeated, look.doubts)
    needed = ((name, number) for name, number in made.more.items() if not math.isnan(number) and name not in aside)
    return replace(made, cost=sum((number * chains[name].cost for name, number in needed), 0.0))


def _standing(state: State, now: int) -> tuple[set[int], float, set[str]]:
    """The questions whose replays wait in vain, what is left of the budget, and the chains that are done."""
    waiting = (asked for asked in state.questions if asked.waits is not None)
    vain = {asked.number for asked in waiting if waited_in_vain(state.chains[asked.chain].transitions, asked.since)}
    return vain, budget.remaining(state, now), {chain.name for chain in state.chains if chain.done}


def _plan_loss(study: "Study", look: Look, target: float | Mapping[str, float] | None) -> StudyPlan:
    """The plan for this loss, or for the study's own target. The lock is held only while counts are read."""
    progress = look.progress
    if target is None and progress.target_loss is None:
        raise InputError(
            "a plan needs a target loss (--target-loss; target_loss in Python): none was given, and the study has none"
        )
    wanted = None if target is None else targets(target, study.names)
    log_inverse = math.log(progress.chains / progress.delta)
    _, left, done = study._keeper.read(_standing)
    more: dict[str, float] = {}
    own: dict[str, float] = {}
    news, cost = [], 0.0
    for line, begins, counts in _read(study, look):
        own[line.name] = line.target if wanted is None else wanted[line.name]
        number = further_transitions(counts, own[line.name] / line.weight, progress.method, log_inverse)
        if wanted is None and (number == 0) != (line.name in done) and not math.isnan(number):
            news.append(line.name)
        more[line.name] = number + (begins and number > 0)
        if not line.aside and not math.isnan(number):
            cost += more[line.name] * line.cost
    if progress.stop_reason is None:
        study._keeper.look_at(news)
    more |= dict.fromkeys(look.doubts, math.inf)
    aside = tuple(dict.fromkeys([*look.aside, *look.doubts]))
    goal = own if target is None and len(set(own.values())) > 1 else target or next(iter(own.values()))
    return StudyPlan(
        goal, progress.delta, progress.method, progress.observations, more, cost, left, aside, look.repeated,
        look.doubts,
    )  # fmt: skip


def _read(study: "Study", look: Look) -> Iterator[tuple[ChainLine, bool, Counts]]:
    """Each chain, whether its next observation begins a path, and the counts of its cut."""
    walker = study._walker()

    def counts(state: State, now: int, first: int) -> list[tuple[bool, Counts]]:
        found = []
        for chain in state.chains[first : first + _BATCH]:
            path = chain.walks.get(chain.paths) if state.shared else walker.path(chain)
            rows = {x: dict(row) for x, row in state.chosen_cut(chain).counts(chain.rows).items()}
            found.append((path is None or path.ended, Counts.over(rows, max(1, chain.size), chain.is_open)))
        return found

    for first in range(0, len(look.chains), _BATCH):
        for number, (begins, of) in enumerate(study._keeper.read(counts, first), first):
            yield look.chain(number), begins, of
