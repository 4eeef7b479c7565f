"""Tables of problems: their quantities, what a budget buys, and what a loss costs."""

from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from .. import predictions
from ..certificates import ASSUMPTION, planning
from ..errors import InputError
from ..validation import failure_probability, quantile_failure, real_number, whole_number
from .tables import Table, if_any

if TYPE_CHECKING:
    from ..chains import MarkovChain
    from ..problems import Problem

#: Heading → a quantity of a chain, which need not exist.
QUANTITIES: "dict[str, Callable[[MarkovChain], Any]]" = {
    "states": attrgetter("size"),
    "ergodic": attrgetter("is_ergodic"),
    "reversible": attrgetter("is_reversible"),
    "γ": attrgetter("spectral_gap"),
    "γ_ps": attrgetter("pseudo_spectral_gap"),
    "mixing time": lambda chain: "{:,} … {:,}".format(*chain.mixing_time_bounds()),
    "min π": lambda chain: float(chain.stationary.min()),
    "H": attrgetter("inverse_stationary_sum"),
    "ΣG": attrgetter("variability"),
}


def inspect_problem(problem: "Problem", delta: float = 0.05) -> list[Table]:
    """The quantities of a problem: one row for each chain, then those of the whole problem."""
    failure_probability(delta)
    shares = problem.allocation.tolist() if problem.variability > 0 else [None] * len(problem)
    rows = tuple(
        (name, *(if_any(partial(quantity, chain)) for quantity in QUANTITIES.values()), share)
        for (name, chain), share in zip(problem.chains.items(), shares, strict=True)
    )
    whole = (
        ("chains K", len(problem)),
        ("Λ = ΣΣG, the limit of n·max E[L]", problem.variability),
        ("C₀ of Theorem 2", if_any(lambda: problem.excess_constant)),
        (f"cut-off budget of Theorem 2, δ = {delta:g}, as stated", if_any(lambda: problem.cutoff_budget(delta))),
        ("the same with its derivation's gaps closed", if_any(lambda: problem.cutoff_budget(delta, corrected=True))),
    )
    about = (problem.description, problem.source and f"source: {problem.source}")
    return [
        Table(problem.name or "problem", ("chain", *QUANTITIES, "η"), rows, tuple(filter(None, about))),
        Table("the whole", ("quantity", "value"), whole),
    ]


def inspect_chain(name: str, chain: "MarkovChain") -> list[Table]:
    """The quantities of one chain, state by state."""
    law = if_any(lambda: chain.stationary.tolist()) or [None] * chain.size
    rows = tuple(
        (state, law[x], float(chain.gini[x]), int((chain.matrix[x] > 0).sum()), float(chain.matrix[x, x]))
        for x, state in enumerate(chain.states)
    )
    return [Table(name, ("state", "π", "G", "successors", "stays"), rows)]


def plan(
    problem: "Problem", *, budget: int | None = None, target_loss: float | None = None, delta: float = 0.05
) -> list[Table]:
    """What a budget buys, or what a loss costs: limits, predictions, certificates and theorems side by side."""
    quantile_failure(delta)
    if budget is None and target_loss is None:
        raise InputError("a plan needs a budget, a target loss, or both")
    chains = len(problem)
    if budget is not None:
        meaning = "two observations of each chain at least"
        whole_number(budget, "budget", least=2 * chains, meaning=meaning, most=planning.BEYOND)
    if target_loss is not None:
        real_number(target_loss, "target_loss", above=0.0, meaning="the largest loss that is good enough")
    if problem.variability == 0:
        raise InputError("all chains are deterministic: one visit of each state is enough, there is nothing to plan")
    expected = planning.expectations(problem, delta)
    columns: dict[str, list[Any]] = {"quantity": [line.quantity for line in expected]}
    if budget is not None:
        found = [if_any(partial(line.loss_at, budget)) for line in expected]
        columns[f"loss at {budget:,} observations"] = found
    if target_loss is not None:
        found = [if_any(partial(line.budget_for, target_loss)) for line in expected]
        columns[f"observations for a loss ≤ {target_loss:g}"] = found
    columns["what it is"] = [line.kind for line in expected]
    title = f"{problem.name or 'problem'}: {chains} chain{'s' * (chains > 1)}, δ = {delta:g}"
    notes = [f"a certificate assumes that {ASSUMPTION}"]
    passing = [name for name, chain in problem.chains.items() if not chain.is_irreducible]
    if passing:
        notes.append(
            f"not irreducible: {', '.join(passing)}; limits and predictions count all their rows, also those of states"
            " that are left for good"
        )
    return [_allocation(problem, budget), Table.by_column(title, columns, notes)]


def _allocation(problem: "Problem", budget: int | None) -> Table:
    chains = problem.chains.values()
    eta, best = problem.allocation.tolist(), predictions.shares(problem, "oracle-max").tolist()
    columns: dict[str, Any] = {
        "chain": problem.names,
        "states": problem.sizes,
        "ΣG": [chain.variability for chain in chains],
        "η": eta,
        "best for max L": best,
    }
    if budget is not None:
        columns |= {"η·n": [round(share * budget) for share in eta], "best·n": [round(s * budget) for s in best]}
    notes = ("η makes max E[L] smallest in the limit; 'best for max L' makes E[max L] smallest (the share rule)",)
    return Table.by_column("how an oracle would share the budget", columns, notes)
