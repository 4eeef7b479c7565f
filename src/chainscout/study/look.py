"""A look at a study: one frozen record of one moment. Everything that is shown of a study is made from it.

A look is made from the state in one lock, and computes no certificate, no answer and no check.
"""

import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from itertools import islice
from typing import TYPE_CHECKING, Any, overload

from ..certificates import EXITS, Estimate
from ..certificates.certificate import promised
from ..counts import Counts
from ..errors import UnknownChain
from ..validation import one_of, shown
from . import stop
from .aim import FEW
from .certificate import StudyCertificate, as_of, repeated_paths, said
from .chain import Chain
from .checks import stored_diagnosis
from .labels import unknown_chain
from .repetition import as_sentence
from .state import State
from .views import (
    AnswerLine,
    Aside,
    ChainLine,
    EventLine,
    HistoryLine,
    LeaseLine,
    Pace,
    Progress,
    QuestionLine,
)  # fmt: skip

if TYPE_CHECKING:
    from ..diagnostics import Diagnosis
    from ..policies import Policy

__all__ = ["ORDERS", "Look", "Shares", "look_at", "progress_of"]

#: By what `Look.page` can sort the chains.
ORDERS = ("number", "name", "states", "observations", "certificate", "index")
#: The place of each value in a chain's line.
_PLACE = {one.name: place for place, one in enumerate(fields(ChainLine))}
#: The most chains, and entries of their matrices, for which the policy's aim is computed. It needs every estimate.
_MOST_AIMED = 100
_MOST_ENTRIES = 20_000


class _ChainLines(Sequence[ChainLine]):
    """The lines of all chains, by number. Each is made when somebody reads it, because there may be 100,000."""

    def __init__(self, values: Sequence[tuple[Any, ...]]) -> None:
        #: The values of each line, in the order of its fields.
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    @overload
    def __getitem__(self, index: int) -> ChainLine: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[ChainLine]: ...
    def __getitem__(self, index: int | slice) -> ChainLine | Sequence[ChainLine]:
        if isinstance(index, slice):
            return _ChainLines(self.values[index])
        return ChainLine(*self.values[index])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ChainLines) and self.values == other.values

    __hash__ = None  # type: ignore[assignment]


class Shares:
    """The shares that a study's policy tends to. They are computed again when 1 % more was observed."""

    def __init__(self, policy: "Policy | None") -> None:
        self._policy = policy
        self._lock = threading.Lock()
        #: The observations at which the shares were computed, and the shares.
        self._known: tuple[int, dict[int, float]] | None = None

    def rows(self, chains: Sequence[Chain]) -> list[dict[int, dict[int, int]]]:
        """The counts that the shares need; none if the policy has no aim, or if it would cost too much."""
        if self._policy is None or self._policy.target is None or len(chains) > _MOST_AIMED:
            return []
        if any(chain.size == 0 for chain in chains) or sum(chain.size**2 for chain in chains) > _MOST_ENTRIES:
            return []
        return [{x: dict(row.counts) for x, row in chain.rows.items()} for chain in chains]

    def of(self, look: "Look") -> dict[int, float]:
        """The shares at this look, by chain."""
        with self._lock:
            observations = look.progress.observations
            if self._known is None or observations >= self._known[0] + max(1, self._known[0] // 100):
                self._known = observations, self._computed(look)
            return self._known[1]

    def _computed(self, look: "Look") -> dict[int, float]:
        from ..chains import MarkovChain  # here, because they load slowly
        from ..problems import Problem

        if self._policy is None:
            return {}
        if self._policy.aiming:  # what each chain is expected to need until it reaches the study's aim
            few = look.chains if len(look.chains) <= _MOST_AIMED else ()
            needed = {line.number: max(line.enough, line.transitions) for line in few}
            total = sum(needed.values())
            return {number: share / total for number, share in needed.items()} if 0 < total < math.inf else {}
        if not look._rows:
            return {}
        counts = (Counts.over(rows, line.states) for rows, line in zip(look._rows, look.chains, strict=True))
        matrices = (MarkovChain(Estimate(one, look.progress.delta).matrix) for one in counts)
        problem = Problem({str(number): matrix for number, matrix in enumerate(matrices)})
        shares = self._policy.aim(problem, [line.weight for line in look.chains])
        if shares is None or not all(map(math.isfinite, shares)):
            return {}
        return dict(enumerate(shares.tolist()))


@dataclass(frozen=True)
class Look:
    """A study at one moment."""

    progress: Progress
    #: By number.
    chains: Sequence[ChainLine]
    questions: Sequence[QuestionLine]
    #: The lease that ends first comes first.
    leases: Sequence[LeaseLine]
    #: The last 100, oldest first.
    events: Sequence[EventLine]
    pace: Pace
    #: Why the study has stopped, in words; None while it goes on.
    ending: str | None
    #: The chains that are set aside, and why.
    aside: Mapping[str, Aside]
    #: Chain → why no bound of it holds, by the last stored checks.
    doubts: Mapping[str, str]
    #: The last stored result of the checks of all chains together; None if there is none.
    checks: "Diagnosis | None"
    #: A sentence for each pair of paths that repeat each other. If there is one, no bound holds.
    repeated: tuple[str, ...]
    #: Notes about the place where the study is stored.
    notes: tuple[str, ...]
    #: The chains with a warm start.
    warm: tuple[str, ...]
    #: The last entry. The lines of earlier moments up to this entry are those of this look.
    _head: int = field(repr=False)
    _whole: tuple[HistoryLine, ...] = field(repr=False)
    _history: Mapping[int | None, Sequence[HistoryLine]] = field(repr=False, compare=False)
    _answers: Mapping[int, Sequence[AnswerLine]] = field(repr=False, compare=False)
    #: The largest error of a probability out of a state that was left `EXITS` times, by chain.
    _errors: Sequence[float] = field(repr=False)
    _numbers: Mapping[str, int] = field(repr=False)
    _shares: Shares = field(repr=False, compare=False)
    #: The counts that the shares need.
    _rows: Sequence[dict[int, dict[int, int]]] = field(repr=False)

    # -- chains

    def chain(self, chain: int | str) -> ChainLine:
        """The chain of this number or name."""
        if isinstance(chain, str):
            number = self._numbers.get(chain)
            if number is None:
                raise unknown_chain(self._numbers, chain)
            return self.chains[number]
        if not 0 <= chain < len(self.chains):
            raise UnknownChain(
                f"the chains have the numbers 0 to {len(self.chains) - 1}, and there is no {shown(chain)}"
            )
        return self.chains[chain]

    def page(
        self, search: str = "", order: str = "number", descending: bool = False, offset: int = 0, limit: int = 50
    ) -> tuple[int, list[ChainLine]]:
        """How many chains have ``search`` in their names, and those from ``offset`` on. Equal ones come by number."""
        one_of(order, "order", ORDERS)
        assert isinstance(self.chains, _ChainLines)
        found, wanted, name = self.chains.values, search.casefold(), _PLACE["name"]
        if wanted:
            found = [values for values in found if wanted in values[name].casefold()]
        if order != "number" or descending:
            key = _PLACE[order]
            found = sorted(found, key=lambda values: values[key], reverse=descending)
        return len(found), [ChainLine(*values) for values in found[offset : offset + limit]]

    # -- bounds

    def certificate(self, chains: Iterable[int] | None = None) -> StudyCertificate:
        """The stored bounds of these chains, or of all. `ChainLine.certified` says from which moment each is."""
        lines = list(self.chains if chains is None else map(self.chain, chains))
        held = [line for line in lines if line.name not in self.doubts]
        known = held if self.progress.method == "sharp" and not self.repeated else []
        entries = {
            line.name: ((EXITS, self._errors[line.number]),) if self._errors[line.number] < math.inf else ((0, 1.0),)
            for line in known
            if line.certified
        }
        losses = {line.name: line.loss if line.name not in self.doubts else math.inf for line in lines}
        return StudyCertificate(
            losses, self.progress.delta, self.progress.method, self.progress.lost,
            repeated=self.repeated,
            entries=entries,
            weights={line.name: line.weight for line in lines} if self.progress.weighted else {},
            moments={line.name: line.certified for line in lines if line.certified < line.transitions},
            warm=tuple(name for name in self.warm if name in losses),
            doubt=None if self.checks is None else self.checks.note,
            doubts={name: why for name, why in self.doubts.items() if name in losses},
        )  # fmt: skip

    def _moments(self) -> dict[str, int]:
        """Chain → the transition that its stored bound is as of, for one or two chains that have moved since then."""
        stale = (line for line in self.chains if line.certified < line.transitions)
        return {line.name: line.certified for line in islice(stale, 2)}

    def as_of(self) -> str:
        """As of when the stored bounds of all chains are, in words."""
        return as_of(self._moments(), len(self.chains)) or "now"

    def promise(self) -> str:
        """What the stored bounds of all chains say, in one sentence, and as of when."""
        if self.repeated:
            return as_sentence(self.repeated[0])
        if self.doubts:
            return f"{said(self.doubts)}."
        when = as_of(self._moments(), len(self.chains))
        words = promised(
            self.progress.certificate, self.progress.delta, len(self.chains), weighted=self.progress.weighted,
            as_of=when, warm=bool(self.warm),
        )  # fmt: skip
        return f"{words}."

    def needed(self) -> float:
        """How many more transitions the study's aim is expected to need, from the last looks at its chains.

        Infinite if nobody knows, and in a study of more than `FEW` chains.
        """
        if not self.progress.behind or len(self.chains) > FEW:
            return math.inf
        left = (line for line in self.chains if not line.aside)
        return sum(max(0.0, line.enough - line.transitions) for line in left)

    def shares(self) -> dict[int, float]:
        """The share that the policy tends to with the estimates of this moment, by chain.

        Empty if the policy has no aim, and in a study for which it would cost too much.
        """
        return self._shares.of(self)

    # -- over time

    def history(self, chain: int | None, after: int = 0) -> list[HistoryLine]:
        """The history of a chain, or of the whole study: the lines after number ``after``."""
        lines = self._whole if chain is None else self._history.get(chain, ())
        return [line for line in lines if after < line.number <= self._head]

    def answers(self, question: int) -> list[AnswerLine]:
        """The answers to a registered question at earlier moments."""
        return [line for line in self._answers.get(question, ()) if line.number <= self._head]

    # -- as data

    def to_dict(self) -> dict[str, Any]:
        """The look as plain data that JSON has. Infinite numbers become None."""
        shown_fields = (one.name for one in fields(self) if one.name[0] != "_" and one.name != "checks")
        found: dict[str, Any] = _plain({name: getattr(self, name) for name in shown_fields})
        found["progress"]["finished"] = self.progress.finished
        found["checks"] = None if self.checks is None else _plain(self.checks.to_json())
        return found


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, str | int):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: _plain(part) for name, part in zip(value._fields, value, strict=True)}
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    return [_plain(part) for part in value]


# -- from the state


def look_at(state: State, now: int, notes: tuple[str, ...], shares: Shares) -> Look:
    """The look at this moment."""
    spoilt, infinite = state.spoilt, math.inf
    observations, variability = state.observations, sum(chain.variability for chain in state.chains)
    values = []
    for chain in state.chains:
        holes, beyond = _holes(state, chain)
        bound = infinite if spoilt else chain.bound
        values.append((
            chain.number, chain.name, chain.size, chain.is_open, chain.weight, chain.cost, chain.observations,
            chain.transitions, chain.begun, bound, chain.weight * bound, chain.variability, chain.at_cut[1],
            chain.target, chain.ratio, chain.looked, chain.enough, _index(state, chain),
            chain.leases, chain.pending, chain.aside is not None,
            chain.observations / observations if observations else None,
            chain.variability / variability if variability > 0 else None, chain.size - len(chain.rows), holes, beyond,
        ))  # fmt: skip
    why = stop.reason(state, now)
    leases = sorted(state.leases.values(), key=lambda lease: (lease.expires, lease.chain, lease.path))
    return Look(
        progress=progress_of(state, now),
        chains=_ChainLines(values),
        questions=tuple(one.line(state) for one in state.questions),
        leases=tuple(
            LeaseLine(
                lease.chain, state.chains[lease.chain].name, lease.path, state.walkers[lease.worker].name,
                lease.expires / 1000, lease.steps,
            )
            for lease in leases
        ),
        events=tuple(state.past.events),
        pace=_pace(state, now),
        ending=None if why is None else stop.words(state, why),
        aside={chain.name: Aside(chain.aside, chain.ended) for chain in state.chains if chain.aside is not None},
        doubts=dict(state.doubts),
        checks=stored_diagnosis(state),
        repeated=repeated_paths(state),
        notes=notes,
        warm=tuple(chain.name for chain in state.chains if chain.prior),
        _head=state.head.number,
        _whole=tuple(state.past.history.get(None, ())),
        _history=state.past.history,
        _answers=state.past.answers,
        _errors=tuple(chain.error for chain in state.chains),
        _numbers={name: chain.number for name, chain in state.names.items()},
        _shares=shares,
        _rows=shares.rows(state.chains),
    )  # fmt: skip


def _index(state: State, chain: Chain) -> float:
    """The chain's index; infinite if there is no rule that says it."""
    try:
        return math.inf if state.order is None else state.order.index(chain)
    except Exception:  # of a user's rule: who asks is told
        return math.inf


def _holes(state: State, chain: Chain) -> tuple[int, int]:
    """How many slots are open or lost in the chain's chosen cut, and how many transitions lie beyond it.

    To choose a cut takes long, so the numbers are kept until the chain has other holes or transitions.
    """
    holes = chain.draws.holes
    if not any(hole.after for hole in holes):
        return 0, 0
    of = chain.transitions, len(holes), holes[-1].number, sum(hole.source for hole in holes)
    if chain.shown[:-1] != of:
        cut = state.chosen_cut(chain)
        chain.shown = *of, (sum(cut.holes.values()), sum(cut.without.values()))
    found: tuple[int, int] = chain.shown[-1]
    return found


def _pace(state: State, now: int) -> Pace:
    """How fast observations come in. While a study stands still, its pace falls."""
    times = state.past.times
    if len(times) < 2:
        return Pace(now / 1000, times[0] / 1000 if times else None)
    return Pace(now / 1000, times[-1] / 1000, 1000 * (len(times) - 1) / max(1e-3, now - times[0]))


def progress_of(state: State, now: int) -> Progress:
    """Where the study stands. Its bounds are those of the last looks."""
    given, aim = state.settings, state.aim
    targets = {chain.target for chain in state.chains} if "loss" in aim.targets else set()
    bound = max((chain.weight * chain.bound for chain in state.chains), default=0.0)
    return Progress(
        chains=len(state.chains), closed=sum(not chain.is_open for chain in state.chains),
        observations=state.observations, used=state.used, budget=state.budget,
        unit="cost units" if "costs" in given else "observations", target_loss=min(targets, default=None),
        target_most=max(targets, default=None), target_width=aim.targets.get("width"),
        limit=aim.targets.get("limit"), worst=aim.targets.get("worst"), deadline=state.deadline,
        delta=state.delta, method=given["method"], policy=given["policy"]["name"], shared=state.shared,
        weighted=any(chain.weight != 1.0 for chain in state.chains), paths=state.paths,
        first_cost=state.first_cost, leases=len(state.leases), lost=state.lost, aside=state.aside,
        behind=aim.behind, missed=aim.missed, events=state.past.happened,
        questions=len(given["questions"]), unmet=aim.unmet(state),
        spoilt=state.spoilt, certificate=math.inf if state.spoilt else bound,
        variability=sum(chain.variability for chain in state.chains), stop_reason=stop.reason(state, now),
    )  # fmt: skip
