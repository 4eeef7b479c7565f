"""A certificate: for each chain a number that its loss does not exceed, at all times, with probability 1 − δ."""

from collections.abc import Mapping
from dataclasses import dataclass

from ..counts import Counts
from ..errors import InputError
from ..validation import failure_probability, one_of, shown, whole_number
from . import asymptotic, entrywise, mixture, paper

#: method → what its number is worth.
METHODS = {
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

    @property
    def max(self) -> float:
        """The bound on L = max_k L_k."""
        return max(self.loss.values())

    @property
    def guaranteed(self) -> bool:
        """Whether the bound is proved to hold with probability ≥ 1 − δ."""
        return self.method != "asymptotic"


def certify(
    counts: Mapping[str, Counts], delta: float = 0.05, method: str = "mixture", budget: int | None = None
) -> Certificate:
    """The certificate of these chains' counts. ``budget``: the observations up to which ``paper`` holds; None: ever."""
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
    else:
        module = {"mixture": mixture, "entrywise": entrywise, "asymptotic": asymptotic}[method]
        found = module.bounds(chains, delta)
    return Certificate(dict(zip(counts, found, strict=True)), delta, method)


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
                f" {shown(name)} are only the ones seen; take 'mixture', or give the states"
            )
