"""A certificate: for each chain a number that its loss does not exceed, at all times, with probability 1 − δ."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from ..counts import Counts
from ..errors import InputError
from ..markup import MOST, html_table
from ..numerals import Bound, bound, sure
from ..validation import failure_probability, one_of, printable, shown, whole_number
from . import asymptotic, entrywise, mixture, paper, sharp

#: method → what its bound guarantees.
METHODS = {
    "sharp": "holds at all times at once with probability ≥ 1 − δ, whatever policy drew the samples",
    "mixture": "holds at all times at once with probability ≥ 1 − δ, whatever policy drew the samples",
    "paper": "holds up to the budget with probability ≥ 1 − δ; BA-MC's index",
    "entrywise": "holds at all times at once with probability ≥ 1 − δ; from the intervals of single entries",
    "asymptotic": "not guaranteed: a quantile of the limit law with estimated moments",
}

#: Said wherever a certificate is shown (MATH §7).
ASSUMPTION = (
    "each next state was drawn afresh by the process itself from the state before it, and that whether an observation"
    " is lost does not depend on its value"
)


#: The sentence about errors of single probabilities covers the states that were left at least this often.
EXITS = 100


def promised(
    largest: float,
    delta: float,
    chains: int,
    *,
    guaranteed: bool = True,
    weighted: bool = False,
    loss: float | None = None,
    as_of: str = "",
    warm: bool = False,
) -> str:
    """What the bounds of all chains say together, without the full stop: the one place that words it.

    ``largest``: the largest bound on a loss, or with ``weighted`` on a weighted loss.
    ``loss``: with ``weighted``, the largest bound on a loss itself.
    ``as_of``: the moments of the bounds, if some are older than their chains.
    ``warm``: whether some bound rests on a warm start.
    """
    of_all = "the {} of the chain" if chains == 1 else "every {}"
    if math.isinf(largest):
        return f"There is no bound on {of_all.format('loss')} yet"
    verb = "was" if as_of else "is"
    words = f"{of_all.format('weighted loss' if weighted else 'loss')} {verb} at most {bound(largest)}"
    if weighted and loss is not None:
        words += f", and {of_all.format('loss')} {verb} at most {bound(loss)}"
    words = f"{_surely(delta, guaranteed, as_of)}, {words}"
    return f"{words}, if the data of the warm starts are of the same processes" if warm else words


def _surely(delta: float, guaranteed: bool = True, as_of: str = "") -> str:
    """The beginning of a sentence about bounds."""
    words = f"with probability {sure(delta)}" if guaranteed else "not guaranteed"
    words = f"as of {as_of}, {words}" if as_of else words
    return words[0].upper() + words[1:]


@dataclass(frozen=True)
class Certificate:
    """What is known of each chain's loss."""

    #: chain → upper bound on its loss; infinite before its first transition.
    loss: Mapping[str, float]
    delta: float
    method: str
    #: chain → bound on Σ_x π̂(x)·TV(P̂(x,·), P(x,·)), on the event of ``loss``. Only ``sharp`` has it.
    total_variation: Mapping[str, float] = field(default_factory=dict, repr=False, kw_only=True)
    #: chain → (exits of a state, bound on the error of every probability out of it), on the event of ``loss``. Only
    #: ``sharp`` has it.
    entries: Mapping[str, Sequence[tuple[int, float]]] = field(default_factory=dict, repr=False, kw_only=True)

    @property
    def max(self) -> float:
        """The bound on L = max_k L_k."""
        return max(self.loss.values())

    @property
    def guaranteed(self) -> bool:
        """Whether the bound is proved to hold with probability ≥ 1 − δ."""
        return self.method != "asymptotic"

    def largest_error(self, exits: int = EXITS) -> float:
        """A bound on |P̂(x,y) − P(x,y)| for every y and every state x that was left at least ``exits`` times.

        It holds on the same event as ``loss``: all of them at once, with probability ≥ 1 − δ. It is nan if no state was
        left that often, and infinite if a chain with such a state has no bounds on its entries.
        """
        whole_number(exits, "exits", meaning="how often a state must have been left")
        if set(self.entries) != set(self.loss):
            return math.inf
        found = [error for rows in self.entries.values() for number, error in rows if number >= exits]
        return max(found, default=math.nan)

    def in_words(self, exits: int = EXITS) -> str:
        """What the certificate says of single probabilities, in one sentence."""
        whole_number(exits, "exits", meaning="how often a state must have been left")
        if not self.entries:
            if self.method == "sharp":
                return "What is known of single probabilities was not kept."
            return f"The certificate {self.method!r} says nothing of single probabilities; 'sharp' does."
        error = max((error for rows in self.entries.values() for n, error in rows if n >= exits), default=math.nan)
        if math.isnan(error):
            return f"No state was left at least {exits} times."
        return (
            f"{_surely(self.delta, as_of=self._as_of)}, each probability of a transition out of a state that was"
            f" left at least {exits} times {'was' if self._as_of else 'is'} within ±{bound(error)} of its estimate."
        )

    @property
    def _as_of(self) -> str:
        """The moments of the bounds, if they are older than the counts."""
        return ""

    def _promise(self) -> str:
        """What the bounds say together."""
        return promised(self.max, self.delta, len(self.loss), guaranteed=self.guaranteed)

    def __repr__(self) -> str:
        chains = ", ".join(f"{printable(name)} ≤ {bound(loss)}" for name, loss in islice(self.loss.items(), MOST))
        more = ", …" if len(self.loss) > MOST else ""
        return f"Certificate({self.method!r}, δ = {self.delta:g}: {chains}{more})"

    def _repr_html_(self) -> str:
        """The certificate as a table for a notebook, the largest bounds first."""
        columns = self._columns()
        chains = sorted(self.loss, key=lambda name: -next(iter(columns.values()))[name])
        largest = [(name, *(Bound(bounds[name]) for bounds in columns.values())) for name in chains]
        notes = str(self).splitlines()
        if len(largest) > MOST:
            notes.append(f"These are the {MOST} largest bounds of {len(largest):,}.")
        return html_table(f"Certificate {self.method!r}", ("chain", *columns), largest[:MOST], notes)

    def _columns(self) -> dict[str, Mapping[str, float]]:
        """Heading → the bounds below it."""
        return {"loss ≤": self.loss}

    def __str__(self) -> str:
        return f"{self._promise()} (certificate {self.method!r}).\n{self.in_words()}"


def certify(
    counts: Mapping[str, Counts], delta: float = 0.05, method: str = "sharp", budget: int | None = None
) -> Certificate:
    """The certificate for these chains' counts.

    Every chain uses δ/K, so that all bounds hold at once with probability ≥ 1 − δ.

    ``budget``: the number of observations up to which ``paper`` holds; None: without end.
    """
    failure_probability(delta)
    one_of(method, "method", METHODS)
    if not isinstance(counts, Mapping) or not counts or not all(isinstance(c, Counts) for c in counts.values()):
        raise InputError(f"counts must be a mapping from chain names to Counts, at least one, not {shown(counts)}")
    need_certifiable(counts, method)
    chains = list(counts.values())
    if method == "paper":
        if budget is not None:
            whole_number(budget, "budget", least=max(1, sum(chain.observations for chain in chains)))
        found = paper.bounds(chains, delta, budget)
    elif budget is not None:
        raise InputError(f"only the certificate 'paper' depends on a budget, and {method!r} was asked for")
    elif method == "sharp":
        return _sharp(counts, delta)
    else:
        module = {"mixture": mixture, "entrywise": entrywise, "asymptotic": asymptotic}[method]
        found = module.bounds(chains, delta)
    return Certificate(dict(zip(counts, found, strict=True)), delta, method)


def _sharp(counts: Mapping[str, Counts], delta: float) -> Certificate:
    """``sharp`` of each chain, with δ/K each."""
    found = dict(zip(counts, sharp.bounds(list(counts.values()), math.log(len(counts) / delta)), strict=True))
    return Certificate(
        {name: bounds.loss for name, bounds in found.items()},
        delta,
        "sharp",
        total_variation={name: bounds.total_variation for name, bounds in found.items()},
        entries={name: bounds.entries for name, bounds in found.items()},
    )


def loss_bound(counts: Counts, method: str, log_inverse: float) -> float:
    """b of one chain by 'sharp' or 'mixture'. It fails with probability at most e^{−log_inverse}."""
    if method == "sharp":
        return sharp.bounds([counts], log_inverse)[0].loss
    return mixture.bound_of(counts, log_inverse)


def need_certifiable(counts: Mapping[str, Counts], method: str) -> None:
    """Raises ``InputError`` for counts that no certificate, or not this one, holds for."""
    for name, chain in counts.items():
        if chain.correlated:
            raise InputError(
                f"the counts of chain {shown(name)} were taken with a sliding lag: overlapping transitions are"
                " correlated and no certificate holds for them; count with disjoint=True"
            )
        if chain.open_states and method in ("paper", "entrywise"):
            raise InputError(
                f"the certificate {method!r} needs the chains' states to be known beforehand, and those of"
                f" {shown(name)} are only the ones seen; take 'sharp' or 'mixture', or give the states"
            )
