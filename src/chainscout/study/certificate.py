"""What a study's bounds say together, with the notes that must be shown with them (MATH §7, §15, §16)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import NamedTuple

from ..certificates import ASSUMPTION, EXITS, Certificate, Estimate
from ..certificates.certificate import promised
from ..certificates.open_states import OpenEstimate
from ..markup import MOST
from ..numerals import bound
from ..validation import printable
from .bounds import Due, Found, counts_of
from .chain import Chain
from .checks import stored_diagnosis
from .draws import Status
from .repetition import MOST_NAMED, as_sentence, sentence
from .state import State

__all__ = [
    "OpenStep", "StudyCertificate", "as_of", "certificate_of", "estimate_of", "open_steps", "repeated_paths", "said",
]  # fmt: skip


class OpenStep(NamedTuple):
    """A step that was asked for and has not been told, while later ones of its chain have been."""

    chain: str
    path: int
    #: Who makes it, and since when, in seconds since 1970.
    walker: str
    since: float
    #: How many later transitions of the chain were told.
    later: int

    def __str__(self) -> str:
        since = datetime.fromtimestamp(self.since, UTC).isoformat(" ", timespec="minutes").removesuffix("+00:00")
        return f"path {self.path} of {printable(self.chain)} ({printable(self.walker)}, since {since} UTC)"


def open_steps(state: State) -> tuple[OpenStep, ...]:
    """The steps that somebody may still tell, with later transitions behind them."""
    found: list[OpenStep] = []
    for chain in state.chains:
        later, own = 0, []
        for hole in reversed(chain.draws.holes):
            later += sum(hole.after.values())
            if later and hole.status is Status.PENDING:
                walker = state.walkers[chain.walks[hole.path].owner].name
                own.append(OpenStep(chain.name, hole.path, walker, hole.since / 1000, later))
        found += reversed(own)
    return tuple(found)


@dataclass(frozen=True, repr=False)
class StudyCertificate(Certificate):
    """A certificate, with the notes that must be shown with it."""

    #: The number of lost observations: a worker or a source died, or another worker was faster.
    lost: int = 0
    #: The chains that are set aside: their paths brought no transition, or their sources ended.
    aside: tuple[str, ...] = ()
    #: Sentences about paths that repeat each other, as workers with one seed do. If there is one, no bound holds.
    repeated: tuple[str, ...] = ()
    #: Whether the bounds were computed in a study that is only read here, and so count for no stop.
    only_read: bool = field(default=False, repr=False, kw_only=True)
    #: Chain → why no bound of it holds, if the last stored checks speak against what the bound assumes.
    doubts: Mapping[str, str] = field(default_factory=dict, repr=False, kw_only=True)
    #: A note if the data contradict the bound's assumptions (`Diagnosis.note`), from the last stored checks.
    doubt: str | None = None
    #: Chain → its weight, where some weight is not 1. ``loss`` bounds the losses themselves.
    weights: Mapping[str, float] = field(default_factory=dict, repr=False, kw_only=True)
    #: Chain → the transition that its bound is as of, if the chain has moved since then: the bounds are stored ones.
    moments: Mapping[str, int] = field(default_factory=dict, repr=False, kw_only=True)
    #: The steps that were asked for and not told, in the order of issue; and chain → how many steps without a value its
    #: bound counts as any state, and which share of the bound they cost.
    open_steps: tuple[OpenStep, ...] = field(default=(), repr=False, kw_only=True)
    holes: Mapping[str, tuple[int, float]] = field(default_factory=dict, repr=False, kw_only=True)
    #: The chains with a warm start.
    warm: tuple[str, ...] = field(default=(), repr=False, kw_only=True)

    @property
    def weighted(self) -> dict[str, float]:
        """Chain → the bound on its weighted loss: its weight times the bound on its loss."""
        return {name: self.weights.get(name, 1.0) * loss for name, loss in self.loss.items()}

    @property
    def max(self) -> float:
        """The bound on the largest weighted loss: what a target loss is compared with."""
        return max(self.weighted.values())

    @property
    def guaranteed(self) -> bool:
        """Whether the bound is proved to hold with probability ≥ 1 − δ: not if the data contradict what it assumes."""
        return not self.repeated and not self.doubts and super().guaranteed

    def in_words(self, exits: int = EXITS) -> str:
        """What the certificate says of single probabilities, or that no bound holds, in one sentence."""
        words = super().in_words(exits)
        if self.doubts:
            return f"{said(self.doubts)}."
        return as_sentence(self.repeated[0]) if self.repeated else words

    @property
    def _as_of(self) -> str:
        return as_of(self.moments, len(self.loss))

    def _promise(self) -> str:
        if self.doubts:
            return said(self.doubts)
        return promised(
            self.max, self.delta, len(self.loss), guaranteed=self.guaranteed, weighted=bool(self.weights),
            loss=max(self.loss.values()), as_of=self._as_of, warm=bool(self.warm),
        )  # fmt: skip

    def __repr__(self) -> str:
        if self.repeated:
            return f"Certificate({self.repeated[0]})"
        weighted = f"; weighted ≤ {bound(self.max)}" if self.weights else ""
        when = f"; as of {self._as_of}" if self.moments else ""
        return f"{super().__repr__()[:-1]}{weighted}{when})"

    def _columns(self) -> dict[str, Mapping[str, float]]:
        weighted: dict[str, Mapping[str, float]] = {"weighted loss ≤": self.weighted} if self.weights else {}
        return weighted | super()._columns()

    def __str__(self) -> str:
        return self.in_words() if self.repeated or self.doubts else super().__str__()

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about the assumptions of the certificate."""
        notes = [f"assumes that {ASSUMPTION}"]
        if self.doubt is not None:
            notes.append(self.doubt)
        if self.lost:
            many = "1 observation was" if self.lost == 1 else f"{self.lost:,} observations were"
            notes.append(f"{many} lost: a step whose state is not known counts as one to any state")
        for name, (number, share) in islice(self.holes.items(), MOST_NAMED):
            steps, cost = ("step", "costs") if number == 1 else ("steps", "cost")
            whose = "the bound" if len(self.loss) == 1 else f"the bound of {printable(name)}"
            notes.append(f"{number:,} {steps} without a state {cost} about {share:.0%} of {whose}")
        if self.open_steps:
            named = ", ".join(map(str, self.open_steps[:MOST_NAMED]))
            more = f", and {len(self.open_steps) - MOST_NAMED:,} more" if len(self.open_steps) > MOST_NAMED else ""
            notes.append(f"asked for and not told yet: {named}{more}")
        if self.only_read:
            notes.append("the study is only read here: whether it has ended is as of the last look at its bounds")
        if self.aside:
            notes.append(f"set aside, and not sampled any more: {', '.join(map(printable, self.aside))}")
        if self.warm:
            notes.append(
                f"begun with a warm start: {', '.join(map(printable, self.warm))}; assumes that its data are draws of"
                " the same process"
            )
        notes.extend(self.repeated)
        return tuple(notes)


def repeated_paths(state: State, only: int | None = None) -> tuple[str, ...]:
    """A sentence for each pair of paths that repeat each other. ``only``: of the chain of this number."""
    found = (pair for pair in state.repeated if only is None or pair.chain == only)
    return tuple(
        sentence(state.chains[pair.chain].name, pair.first, pair.second, pair.length)
        for pair in islice(found, MOST_NAMED)
    )


def as_of(moments: Mapping[str, int], chains: int) -> str:
    """As of when the stored bounds of so many chains are, in words; an empty text: all are of this moment.

    b_s bounds the loss at transition s and not a later one (MATH §15): an old bound is not said in the present tense.
    """
    if not moments:
        return ""
    return f"transition {next(iter(moments.values())):,}" if chains == 1 else "the transitions of the stored bounds"


def said(doubts: Mapping[str, str]) -> str:
    """Of which chains no bound holds, and why."""
    (name, sentence), *others = doubts.items()
    more = f"; nor does one of {', '.join(printable(other) for other, _ in others[:MOST])}" if others else ""
    return f"{printable(name)}: {sentence}{more}"


def certificate_of(
    state: State, asked: Sequence[Due], found: Sequence[Found], holes: Mapping[str, tuple[int, float]], *,
    only_read: bool,
) -> StudyCertificate:  # fmt: skip
    """What the bounds of all chains say together. ``holes``: what they cost. ``only_read``: nobody notes the bounds."""
    bounds = {due.name: one for due, one in zip(asked, found, strict=True)}
    weights = {chain.name: chain.weight for chain in state.chains}
    checks = stored_diagnosis(state)
    no_bound = set(bounds) if state.spoilt else set(state.doubts)
    sharper = {name: one.sharper for name, one in bounds.items() if one.sharper is not None and name not in no_bound}
    reached = (name for name, one in bounds.items() if one.ratio is not None and one.ratio <= 1.0)
    return StudyCertificate(
        {name: math.inf if name in no_bound else one.bound for name, one in bounds.items()},
        state.delta, state.settings["method"], state.lost,
        aside=tuple(chain.name for chain in state.chains if chain.aside is not None),
        repeated=repeated_paths(state),
        only_read=only_read and any(not state.names[name].done for name in reached),
        doubts=state.doubts,
        doubt=None if checks is None else checks.note,
        total_variation={name: one.total_variation for name, one in sharper.items()},
        entries={name: one.entries for name, one in sharper.items()},
        weights=weights if any(weight != 1.0 for weight in weights.values()) else {},
        warm=tuple(chain.name for chain in state.chains if chain.prior),
        open_steps=open_steps(state),
        holes={} if state.spoilt else holes,
    )  # fmt: skip


def estimate_of(state: State, chain: Chain) -> Estimate | OpenEstimate:
    """The estimated matrix of a chain, with intervals that hold for all chains at once with probability 1 − δ."""
    cut = state.chosen_cut(chain)
    if chain.is_open:
        # With holes, nobody knows the order of discovery in the order of issue.
        pairs = {} if cut.holes or cut.without else {x: dict(row.discoveries) for x, row in chain.rows.items()}
        counts = cut.counts(chain.rows)
        return OpenEstimate(tuple(chain.labels or ()), counts, pairs, state.delta, len(state.chains))
    # An open chain has its own δ/K. The closed chains share the rest equally among their entries.
    closed = [other.size**2 for other in state.chains if not other.is_open]
    entries = -(-sum(closed) * len(state.chains) // len(closed))
    return Estimate(counts_of(chain, cut), state.delta, entries=entries)
