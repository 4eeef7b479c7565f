"""The certificate in a live study: stored at each look, and computed when somebody asks for it (MATH §7, §16)."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from ..certificates import ASSUMPTION, EXITS, Certificate, Estimate, sharp
from ..certificates.certificate import promised
from ..certificates.mixture import bound_of as bound_of_counts
from ..certificates.open_states import OpenEstimate
from ..counts import Counts
from ..markup import MOST
from ..numerals import bound
from ..store import ChainRecord, RowRecord, StudyRecord, Transaction, plug_in_variability
from ..validation import printable
from . import _evidence
from ._aim import FEW, LONG
from ._labels import Labels
from ._repetition import as_sentence, repeated

#: The number of chains whose counts are in memory at once.
_BATCH = 1_000


@dataclass(frozen=True, repr=False)
class StudyCertificate(Certificate):
    """A certificate, with the notes that must be shown with it."""

    #: The number of lost observations: a worker or a source died, or another worker was faster.
    lost: int = 0
    #: The chains that are set aside: their paths brought no transition, or their sources ended.
    aside: tuple[str, ...] = ()
    #: Sentences about paths that repeat each other, as workers with one seed do. If there is one, no bound holds.
    repeated: tuple[str, ...] = ()
    #: Whether several workers advanced one chain at a time.
    side_by_side: bool = False
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
            notes.append(f"{many} lost: if that depended on their values, the bound may fail")
        if self.side_by_side:
            notes.append(
                "several workers advanced one chain at once: the bound assumes that the time of a step does not depend"
                " on its outcome"
            )
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


#: The bounds of a chain: on its loss and, with 'sharp', on its rows and entries.
_Bounds = sharp.Bounds | float


def _loss(found: _Bounds) -> float:
    return found if isinstance(found, float) else found.loss


def _error(found: _Bounds) -> float:
    """The largest error of a probability out of a state that was left `EXITS` times; infinite if there is no bound."""
    entries = () if isinstance(found, float) else found.entries
    return max((error for exits, error in entries if exits >= EXITS), default=math.inf)


def _all_bounds(transaction: Transaction, chains: Iterable[ChainRecord]) -> Iterator[tuple[ChainRecord, _Bounds]]:
    if transaction.study.spoilt:
        yield from ((chain, math.inf) for chain in chains)
        return
    left = iter(chains)
    while batch := list(islice(left, _BATCH)):
        found = _bounds(transaction.study, [(chain, transaction.rows(chain)) for chain in batch])
        yield from zip(batch, found, strict=True)


def _bounds(study: StudyRecord, chains: Sequence[tuple[ChainRecord, Mapping[int, RowRecord]]]) -> list[_Bounds]:
    """Each chain's certificate, at δ/K: the one that the study promises."""
    log_inverse = math.log(study.chains / study.delta)
    counts = [
        Counts.over({x: row.counts for x, row in rows.items()}, max(1, chain.size), open_states=chain.open)
        for chain, rows in chains
    ]
    if study.method == "sharp":
        return list(sharp.bounds(counts, log_inverse))
    return [bound_of_counts(chain, log_inverse) for chain in counts]


def refresh(transaction: Transaction, chain: ChainRecord) -> None:
    """Computes the chain's certificate and variability from its counts. The caller saves the chain."""
    study, rows = transaction.study, transaction.rows(chain)
    (found,) = _bounds(study, [(chain, rows)])
    chain.certificate, chain.error = chain.weight * _loss(found), _error(found)
    before, chain.variability = chain.variability, chain.weight * plug_in_variability(chain.size, rows)
    study.variability += chain.variability - before
    chain.certified = chain.transitions


def is_shown(study: StudyRecord, chain: ChainRecord) -> bool:
    """Whether the chain's certificate is drawn over time."""
    return chain.transitions >= (1 if study.chains <= FEW and study.target_loss is not None else LONG)


def largest(transaction: Transaction) -> float:
    """The largest stored certificate of all chains, each of its last look."""
    if transaction.study.spoilt:
        return math.inf
    found = transaction.worst()
    return max(found, transaction.worst(aside=True)) if transaction.study.aside else found


def bound_of(study: StudyRecord, chain: ChainRecord) -> float:
    """The chain's certificate as stored; infinite if no bound holds."""
    return math.inf if study.spoilt else chain.certificate


def moments(transaction: Transaction) -> dict[str, int]:
    """Chain → the transition that its stored bound is as of, for one or two chains that have moved since then."""
    return {chain.name: chain.certified for chain in islice(transaction.stale(), 2)}


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


def promise(transaction: Transaction) -> str:
    """What the stored bounds of all chains say together, in one sentence."""
    study = transaction.study
    if study.spoilt:
        return as_sentence(repeated(transaction)[0])
    if doubts := _evidence.doubts(transaction):
        return f"{said(doubts)}."
    largest_bound, when = largest(transaction), as_of(moments(transaction), study.chains)
    words = promised(
        largest_bound, study.delta, study.chains, weighted=study.weighted, as_of=when, warm=study.warm > 0
    )  # fmt: skip
    return f"{words}."


def stored(transaction: Transaction, chains: Iterable[ChainRecord]) -> StudyCertificate:
    """The stored certificates of these chains. Each was computed when its chain had `certified` transitions."""
    study, chains = transaction.study, list(chains)
    known = [chain for chain in chains if chain.certified and study.method == "sharp" and not study.spoilt]
    return StudyCertificate(
        {chain.name: bound_of(study, chain) / chain.weight for chain in chains},
        study.delta,
        study.method,
        study.lost,
        repeated=repeated(transaction),
        side_by_side=study.side_by_side,
        entries={chain.name: ((EXITS, chain.error),) if chain.error < math.inf else ((0, 1.0),) for chain in known},
        weights={chain.name: chain.weight for chain in chains} if study.weighted else {},
        moments={chain.name: chain.certified for chain in chains if chain.certified < chain.transitions},
        warm=tuple(chain.name for chain in chains if chain.prior),
    )


def certificate(transaction: Transaction, chains: Iterable[ChainRecord]) -> StudyCertificate:
    """The bounds on these chains' losses at this moment: a function of the counts alone."""
    study = transaction.study
    losses: dict[str, float] = {}
    variation: dict[str, float] = {}
    entries: dict[str, Sequence[tuple[int, float]]] = {}
    aside, warm, weights = [], [], {}
    for chain, found in _all_bounds(transaction, chains):
        losses[chain.name] = _loss(found)
        if study.weighted:
            weights[chain.name] = chain.weight
        if not isinstance(found, float):
            variation[chain.name], entries[chain.name] = found.total_variation, found.entries
        if chain.aside:
            aside.append(chain.name)
        if chain.prior:
            warm.append(chain.name)
    return StudyCertificate(
        losses,
        study.delta,
        study.method,
        study.lost,
        tuple(aside),
        repeated(transaction),
        study.side_by_side,
        total_variation=variation,
        entries=entries,
        weights=weights,
        warm=tuple(warm),
    )


def estimate(transaction: Transaction, chain: ChainRecord, labels: Labels) -> Estimate | OpenEstimate:
    """The estimated matrix of a chain, with intervals that hold for all chains at once with probability 1 − δ."""
    study = transaction.study
    if chain.open:
        rows = transaction.rows(chain)
        return OpenEstimate(
            transaction.labels(chain),
            {x: row.counts for x, row in rows.items()},
            {x: row.discoveries for x, row in rows.items()},
            study.delta,
            study.chains,
        )
    # An open chain has its own δ/K, because its pairs are numbered as they are discovered. The closed chains share the
    # rest, δ·(their number)/K, equally among their entries: Σ S² entries if no chain is open.
    entries = -(-study.closed_pairs * study.chains // study.closed)
    return Estimate(labels.counts(transaction, chain), study.delta, entries=entries)
