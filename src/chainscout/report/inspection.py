"""Tables of a problem's and a chain's quantities."""

from functools import partial
from typing import Any

from ..chains import MarkovChain
from ..problems import Problem
from ..validation import failure_probability
from .tables import Table, if_any


def inspect_problem(problem: Problem, delta: float = 0.05) -> list[Table]:
    """A problem's quantities: one row a chain, then those of the whole."""
    failure_probability(delta)
    columns = ("chain", "states", "ergodic", "reversible", "γ", "γ_ps", "mixing time", "min π", "H", "ΣG", "η")
    shares = problem.allocation if problem.variability > 0 else [None] * len(problem)
    rows = [
        (
            name,
            chain.size,
            chain.is_ergodic,
            _quantity(chain, "is_reversible"),
            _quantity(chain, "spectral_gap"),
            _quantity(chain, "pseudo_spectral_gap"),
            if_any(partial(_mixing_time, chain)),
            if_any(partial(_smallest_probability, chain)),
            _quantity(chain, "inverse_stationary_sum"),
            chain.variability,
            None if share is None else float(share),
        )
        for (name, chain), share in zip(problem.chains.items(), shares, strict=True)
    ]
    whole = (
        ("chains K", len(problem)),
        ("Λ = ΣΣG, the limit of n·max E[L]", problem.variability),
        ("C₀ of Theorem 2", if_any(lambda: problem.excess_constant)),
        (f"cut-off budget of Theorem 2, δ = {delta:g}, as stated", if_any(lambda: problem.cutoff_budget(delta))),
        ("the same with its derivation's gaps closed", if_any(lambda: problem.cutoff_budget(delta, corrected=True))),
    )
    return [
        Table(problem.name or "problem", columns, tuple(rows), _about(problem)),
        Table("the whole", ("quantity", "value"), whole),
    ]


def inspect_chain(name: str, chain: MarkovChain) -> list[Table]:
    """One chain, state by state."""
    law = if_any(lambda: chain.stationary.tolist()) or [None] * chain.size
    rows = tuple(
        (state, law[x], float(chain.gini[x]), int((chain.matrix[x] > 0).sum()), float(chain.matrix[x, x]))
        for x, state in enumerate(chain.states)
    )
    return [Table(name, ("state", "π", "G", "successors", "stays"), rows)]


def _quantity(chain: MarkovChain, name: str) -> Any:
    return if_any(lambda: getattr(chain, name))


def _mixing_time(chain: MarkovChain) -> str:
    return "{:,} … {:,}".format(*chain.mixing_time_bounds())


def _smallest_probability(chain: MarkovChain) -> float:
    return float(chain.stationary.min())


def _about(problem: Problem) -> tuple[str, ...]:
    source = f"source: {problem.source}" if problem.source else ""
    return tuple(text for text in (problem.description, source) if text)
