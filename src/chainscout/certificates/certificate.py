"""A certificate: for each chain a number that its loss does not exceed, at all times, with probability 1 − δ."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..counts import Counts
from ..errors import InputError
from ..validation import failure_probability, one_of, shown, whole_number
from . import asymptotic, entrywise, mixture, paper, sharp

#: method → what its number is worth.
METHODS = {
    "sharp": "holds at all times at once with probability ≥ 1 − δ, whatever policy drew the samples; open chains have"
    " 'mixture'",
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


@dataclass(frozen=True)
class Certificate:
    """What is known of each chain's loss."""

    #: chain → upper bound on its loss; infinite before its first transition.
    loss: Mapping[str, float]
    delta: float
    method: str
    #: chain → bound on Σ_x π̂(x)·TV(P̂(x,·), P(x,·)), on the event of ``loss``; of closed chains, by ``sharp`` alone.
    total_variation: Mapping[str, float] = field(default_factory=dict, repr=False, kw_only=True)
    #: chain → (exits of a state, bound on the error of every probability out of it), on the event of ``loss``; of
    #: closed chains, by ``sharp`` alone.
    entries: Mapping[str, Sequence[tuple[int, float]]] = field(default_factory=dict, repr=False, kw_only=True)

    @property
    def max(self) -> float:
        """The bound on L = max_k L_k."""
        return max(self.loss.values())

    @property
    def guaranteed(self) -> bool:
        """Whether the bound is proved to hold with probability ≥ 1 − δ."""
        return self.method != "asymptotic"

    def largest_error(self, exits: int = 100) -> float:
        """A bound on |P̂(x,y) − P(x,y)| for every y and every state x that was left at least ``exits`` times.

        It holds on the same event as ``loss``: all of them at once, with probability ≥ 1 − δ. It is nan if no state was
        left so often, and infinite if a chain with such a state has no bounds on its entries.
        """
        whole_number(exits, "exits", meaning="how often a state must have been left")
        if set(self.entries) != set(self.loss):
            return math.inf
        found = [error for rows in self.entries.values() for number, error in rows if number >= exits]
        return max(found, default=math.nan)

    def in_words(self, exits: int = 100) -> str:
        """What the certificate says of single probabilities, in one sentence."""
        error = self.largest_error(exits)
        confidence = f"With probability at least {1 - self.delta:.4g}"
        if math.isnan(error):
            return f"No state was left {exits} times."
        if error == math.inf:
            return f"The certificate {self.method!r} says nothing of single probabilities here; 'sharp' does."
        shown_error = math.ceil(error * 10_000) / 10_000
        return (
            f"{confidence}, no transition probability out of a state that was left {exits} times is off by more than"
            f" {shown_error:g}."
        )


def certify(
    counts: Mapping[str, Counts], delta: float = 0.05, method: str = "mixture", budget: int | None = None
) -> Certificate:
    """The certificate of these chains' counts. ``budget``: the observations up to which ``paper`` holds; None: ever.

    ``sharp`` gives a chain with open states its ``mixture`` certificate. Every chain has δ/K, whichever of the two it
    has, so that all bounds hold at once with probability ≥ 1 − δ.
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
    """``sharp`` for closed chains and ``mixture`` for open ones, δ/K each."""
    log_inverse = math.log(len(counts) / delta)
    closed = {name: chain for name, chain in counts.items() if not chain.open_states}
    found = dict(zip(closed, sharp.bounds(list(closed.values()), log_inverse), strict=True))
    loss = {
        name: found[name].loss
        if name in found
        else mixture.bound_from_exits(chain.visited_exits(), chain.size, log_inverse, open_states=True)
        for name, chain in counts.items()
    }
    return Certificate(
        loss,
        delta,
        "sharp",
        total_variation={name: bounds.total_variation for name, bounds in found.items()},
        entries={name: bounds.entries for name, bounds in found.items()},
    )


def need_certifiable(counts: Mapping[str, Counts], method: str) -> None:
    """Refuses counts that no certificate, or not this one, holds for."""
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
